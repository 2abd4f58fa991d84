/* SPDX-License-Identifier: MIT */

/*
 * Whether the machine was the same. tests/unit/data/probes/quiet.json has probes in pairs, a line each, between which
 * the machine cannot have changed: the even and the odd rounds of one probe with twice as many, taken by threads of
 * real-time priority, which no other program displaces, on a guest with two CPUs whose host moves them among its own.
 * overloaded.json has the probes before and after 36 runs, a line each, of six experiments in their order, on another
 * guest with two CPUs, on which other programs wanted more than both all the time.
 */

#include "daemon/result/probes.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/random.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define RECORDED_MAX 400u

static struct probe_sitting recorded[RECORDED_MAX];
static size_t n_recorded;

static bool read_recorded(const char *name, struct probe_sitting ret[RECORDED_MAX], size_t *n) {
        char path[512];
        _cleanup_free_ char *line = NULL;
        size_t room = 0;
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        (void) snprintf(path, sizeof path, "%s/tests/unit/data/probes/%s.json", root ? root : ".", name);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        if (!f)
                return false;
        while (getline(&line, &room, f) > 0 && *n < RECORDED_MAX)
                if (probe_sitting_parse(line, &ret[(*n)++]) < 0)
                        return false;
        return *n > 0 && *n % 2 == 0;
}

/* A copy, in which each of the figures named takes so much longer. */
static struct probe_sitting scaled(const struct probe_sitting *s, unsigned kinds, double by) {
        struct probe_sitting made = *s;
        for (unsigned end = 0; end < s->n_ends; end++)
                for (unsigned kind = 0; kind < PROBE_KIND_COUNT; kind++)
                        for (size_t i = 0; kinds & 1u << kind && i < PROBE_ROUNDS; i++)
                                made.ends[end].rounds[kind][i] *= by;
        return made;
}

/* The verdict on a run that had these two, in an experiment whose first run had the other (NULL: it is the first), by a
 * daemon that has seen the past: 1: changed; UNKNOWN; both; -1: none was possible. */
#define UNKNOWN 2
static int judge_after(struct probe_past *past, const struct probe_sitting *before, const struct probe_sitting *after,
                       const struct probe_sitting *first) {
        const struct run_probes p = {.roles = {"sender", "receiver"}, .at = {*before, *after}};
        const struct probe_reference reference = {.run_id = first ? 7 : 0, .before = first ? *first : *before};
        _cleanup_free_ char *text = NULL;
        struct probe_flags flags = {0};
        return run_probes_judge(&p, &reference, past, &text, &flags) < 0 ? -1 : flags.changed + UNKNOWN * flags.unknown;
}

static int judge(const struct probe_sitting *before, const struct probe_sitting *after,
                 const struct probe_sitting *first) {
        return judge_after(NULL, before, after, first);
}

static void quiet_runs_are_not_flagged(void) {
        int flagged = 0;
        for (size_t i = 0; i + 1 < n_recorded; i += 2) {
                int changed = judge(&recorded[i], &recorded[i + 1], &recorded[i]);
                CHECK(changed >= 0);
                flagged += changed;
        }
        printf("%d of %zu quiet runs are flagged\n", flagged, n_recorded / 2);
        CHECK((size_t) flagged * 100 <= 2 * (n_recorded / 2));
}

/* A clock that is a fifth slower makes as many cycles last a quarter longer; what is bound by another CPU's answer is
 * left as it was. */
static void another_frequency_is_flagged(void) {
        const unsigned own = 1u << PROBE_GETPID | 1u << PROBE_MEMCPY;
        size_t missed = 0;
        for (size_t i = 0; i + 1 < n_recorded; i += 2) {
                const struct probe_sitting *before = &recorded[i], *after = &recorded[i + 1];
                struct probe_sitting slower = scaled(after, own, 1 / 0.8), faster = scaled(after, own, 0.8);
                struct probe_sitting first = scaled(before, own, 1 / 0.8);
                missed += judge(before, &slower, before) != 1;
                missed += judge(before, &faster, before) != 1;
                missed += judge(before, after, &first) != 1;
        }
        printf("%zu of %zu changes of frequency are missed\n", missed, 3 * n_recorded / 2);
        CHECK(missed * 100 <= 3 * n_recorded / 2);
}

/* The recorded pairs in their order are a machine that goes from one state to another and back: of two probes some
 * seconds apart every other two differ. Two of them are a run. The first CPU's own figures take `by` times as long from
 * run `from` on. How many runs are flagged before that, of the early ones and of the late, and from then on; and of how
 * many it is not known. */
#define EARLY_RUNS (PROBE_PAST_LEAST / PROBE_TIMES)
struct flagged {
        size_t early, late, slower, unknown, failed;
};
static struct flagged count_restless(struct probe_past *past, const struct probe_sitting *first, size_t from,
                                     double by) {
        const unsigned own = 1u << PROBE_GETPID | 1u << PROBE_MEMCPY;
        struct flagged f = {0};
        for (size_t i = 0, run = 0; i + 3 < n_recorded; i += 4, run++) {
                const struct probe_sitting before = scaled(&recorded[i], own, run < from ? 1 : by),
                                           after = scaled(&recorded[i + 2], own, run < from ? 1 : by);
                const int verdict = judge_after(past, &before, &after, first);
                f.failed += verdict < 0;
                f.unknown += (verdict & UNKNOWN) > 0;
                *(run >= from ? &f.slower : run < EARLY_RUNS ? &f.early : &f.late) += verdict & 1;
        }
        return f;
}

/* What such a machine does of itself is no change of it, once it has been seen. Four of the late runs were beside
 * other programs: a copy took twice as long, a wake-up six times, or the CPU was away for a sixth of a probe. */
static void a_restless_machine_is_known(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        const size_t late = n_recorded / 4 - EARLY_RUNS;
        CHECK(past);
        const struct flagged without = count_restless(NULL, NULL, SIZE_MAX, 1);
        const struct flagged with = count_restless(past, NULL, SIZE_MAX, 1);
        free(past);
        printf("a restless machine: %zu of the first %u runs and %zu of the other %zu are flagged, %zu and %zu without "
               "a past; of %zu it is not known\n",
               with.early, EARLY_RUNS, with.late, late, without.early, without.late, with.unknown);
        CHECK_UINT(without.failed + with.failed, 0);
        CHECK(without.late * 2 >= late);
        CHECK_UINT(without.unknown, 0);
        CHECK(with.early <= 1 && with.late <= 4 && with.unknown > 0 && with.unknown <= EARLY_RUNS);
}

/* Its CPUs become slower by a quarter for good. */
static void a_slower_restless_machine_is_flagged(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        const size_t from = 40, runs = n_recorded / 4 - from;
        struct probe_sitting first = recorded[0];
        CHECK(past);
        first.ends[0].absences[PROBE_HAND_OVER] = PROBE_LATE; /* it is another for a hundred probes */
        const struct flagged f = count_restless(past, &first, from, 1.25);
        free(past);
        printf("a restless machine that is a quarter slower: %zu of %zu runs are flagged\n", f.slower, runs);
        CHECK_UINT(f.failed, 0);
        CHECK(f.slower * 4 >= 3 * runs);
}

/* Each operation changes alone, by half its tolerance and by twice that. */
static void each_has_its_tolerance(void) {
        const struct probe_sitting *s = &recorded[0];
        for (int kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                struct probe_change changes[PROBE_CHANGES_MAX];
                size_t n = 99;
                struct probe_sitting little = scaled(s, 1u << kind, 1 + probe_terms[kind].tolerance / 2);
                struct probe_sitting much = scaled(s, 1u << kind, 1 + 2 * probe_terms[kind].tolerance);
                CHECK_INT(probe_sitting_compare(s, &little, changes, &n), 0);
                CHECK_UINT(n, 0);
                CHECK_INT(probe_sitting_compare(s, &much, changes, &n), 0);
                CHECK_UINT(n, kind < PROBE_HAND_OVER ? 2 : 1); /* of both ends, or of the pair */
                CHECK_INT(changes[0].what, kind);
                CHECK_INT(changes[0].end, END_FIRST);
                CHECK(fabs(changes[0].ratio - (1 + 2 * probe_terms[kind].tolerance)) < 1e-9);
        }
}

/* A machine of which some part of the sittings have another state, chosen by chance, whichever part that is: from its
 * first run on, and with a first run that the others are held against. */
static void a_rare_state_is_no_change(void) {
        static const double parts[] = {0.002, 0.01, 0.03, 0.1, 0.3, 0.5};
        const unsigned own = 1u << PROBE_GETPID | 1u << PROBE_MEMCPY;
        const struct probe_sitting states[] = {recorded[0], scaled(&recorded[0], own, 1.4)};
        const size_t machines = 40, runs = 60, of_experiment = 6;
        struct probe_past *past = calloc(1, sizeof(*past));
        struct random random;
        random_init(&random, 20261130);
        for (size_t k = 0; past && k < ELEMENTS(parts); k++) {
                size_t changed = 0, unknown = 0;
                for (size_t run = 0, first = 0; run < machines * runs; run++) {
                        const size_t before = random_unit(&random) < parts[k], after = random_unit(&random) < parts[k];
                        if (run % runs == 0)
                                past->n = 0;
                        if (run % of_experiment == 0)
                                first = before;
                        const int verdict = judge_after(past, &states[before], &states[after], &states[first]);
                        changed += verdict & 1;
                        unknown += (verdict & UNKNOWN) > 0;
                }
                printf("of %zu runs with another state in %g of their sittings %zu are flagged; of %zu it is not "
                       "known\n",
                       machines * runs, parts[k], changed, unknown);
                CHECK(changed * 100 <= 2 * machines * runs);
        }
        CHECK(past);
        free(past);
}

/* Another program's work on a CPU is no habit of the machine, however often it comes and goes. */
static void a_cpu_that_is_taken_again_and_again(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        struct probe_sitting taken = recorded[0];
        taken.ends[0].cpu_share = recorded[0].ends[0].cpu_share / 2;
        CHECK(past);
        for (size_t i = 0; past && i < 40; i++)
                CHECK_INT(judge_after(past, &recorded[0], &taken, &recorded[0]), 1);
        free(past);
}

/* A machine that each run heats, so that it is slower after it, and that has cooled down before the next: no matter how
 * often, the run does that, and not the machine of itself. */
static void what_each_run_does_is_a_change(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        const struct probe_sitting hot = scaled(&recorded[0], 1u << PROBE_GETPID | 1u << PROBE_MEMCPY, 1.25);
        CHECK(past);
        for (size_t i = 0; past && i < 40; i++)
                CHECK_INT(judge_after(past, &recorded[0], &hot, &recorded[0]),
                          PROBE_TIMES * i + 1 < PROBE_PAST_LEAST ? UNKNOWN : 1);
        free(past);
}

/* On a machine that stays as it is, one that becomes slower for good is flagged in each run from then on; an excursion
 * and the way back are, too. */
static void a_change_that_stays_is_flagged(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        const unsigned own = 1u << PROBE_GETPID | 1u << PROBE_MEMCPY;
        const struct probe_sitting *one = &recorded[0], *other = &recorded[1];
        const struct probe_sitting slow = scaled(one, own, 1.25), slow_too = scaled(other, own, 1.25);
        for (size_t i = 0; i < 40; i++)
                CHECK_INT(judge_after(past, one, other, one), 0);
        CHECK_INT(judge_after(past, other, &slow, one), 1);
        for (size_t i = 0; i < 200; i++)
                CHECK_INT(judge_after(past, &slow_too, &slow, one), 1);
        CHECK_INT(judge_after(past, &slow, one, one), 1);
        free(past);
}

/* Of other CPUs, or of another pair of them, nothing is known by it. */
static void a_past_is_of_its_cpus(void) {
        struct probe_past *past = calloc(1, sizeof(*past));
        const struct probe_sitting slow = scaled(&recorded[0], ~0u, 2);
        struct probe_sitting moved = recorded[0], moved_slow = slow;
        for (size_t i = 0; i < 4; i++)
                (void) (i % 2 == 0 ? judge_after(past, &recorded[0], &slow, &recorded[0])
                                   : judge_after(past, &slow, &recorded[0], &recorded[0]));
        CHECK_INT(judge_after(past, &recorded[0], &slow, &recorded[0]), 0);
        moved.ends[1].cpu = moved_slow.ends[1].cpu = 7;
        CHECK_INT(judge_after(past, &moved, &moved_slow, &moved), UNKNOWN);
        moved.ends[1].cpu = moved_slow.ends[1].cpu = 8;
        for (int kind = 0; kind < PROBE_OWN_KINDS; kind++)
                moved_slow.ends[1].absences[kind] = PROBE_STARVED;
        CHECK_INT(judge_after(past, &moved, &moved_slow, &moved), UNKNOWN); /* the pair's alone */
        free(past);
}

/* Scatter that is as wide as the shift: as many rounds of both states in each. */
static void scatter_is_no_change(void) {
        struct probe_sitting a = recorded[0], b = recorded[0];
        for (size_t i = 0; i < PROBE_ROUNDS; i++) {
                a.ends[0].rounds[PROBE_GETPID][i] = i % 2 ? 100 + (double) i : 200 + (double) i;
                b.ends[0].rounds[PROBE_GETPID][i] = i % 2 ? 200 + (double) i : 100 + (double) i;
        }
        struct probe_change changes[PROBE_CHANGES_MAX];
        size_t n = 99;
        CHECK_INT(probe_sitting_compare(&a, &b, changes, &n), 0);
        CHECK_UINT(n, 0);
}

/* A program that takes every other slice of the CPU leaves most rounds as they were. */
static void a_cpu_that_is_shared(void) {
        struct probe_sitting shared = recorded[1];
        shared.ends[1].cpu_share = recorded[0].ends[1].cpu_share - 0.4;
        struct probe_change changes[PROBE_CHANGES_MAX];
        size_t n = 99;
        CHECK_INT(probe_sitting_compare(&recorded[0], &shared, changes, &n), 0);
        CHECK_UINT(n, 1);
        CHECK(changes[0].what == PROBE_SHARE && changes[0].end == END_SECOND && changes[0].ratio < 0.7);
        /* shared both times: how many slices of others fall into a probe is chance */
        struct probe_sitting less = shared;
        less.ends[1].cpu_share = shared.ends[1].cpu_share / 2;
        CHECK_INT(probe_sitting_compare(&shared, &less, changes, &n), 0);
        CHECK_UINT(n, 0);
}

/* Other programs had a part of both CPUs before, in and after each run. Six runs are flagged, of which a probe met a
 * moment without them. */
static void an_overloaded_machine_is_no_change(void) {
        struct probe_sitting *taken = calloc(RECORDED_MAX, sizeof(*taken));
        struct probe_past *past = calloc(1, sizeof(*past));
        const size_t of_experiment = 12;
        size_t n = 0, flagged = 0, unknown = 0, shares = 0;
        CHECK(taken && past && read_recorded("overloaded", taken, &n) && n == 72);
        for (size_t i = 0; past && i + 1 < n; i += PROBE_TIMES) {
                const struct probe_sitting *before = &taken[i], *after = &taken[i + 1],
                                           *first = &taken[i / of_experiment * of_experiment];
                const int verdict = judge_after(past, before, after, first == before ? NULL : first);
                CHECK(verdict >= 0);
                flagged += verdict & 1;
                unknown += (verdict & UNKNOWN) > 0;
                for (int end = 0; end < END_COUNT; end++)
                        shares +=
                                fabs(after->ends[end].cpu_share - before->ends[end].cpu_share) > PROBE_SHARE_TOLERANCE;
        }
        printf("an overloaded machine: %zu of %zu runs are flagged, of %zu it is not known; %zu of %zu shares differ\n",
               flagged, n / PROBE_TIMES, unknown, shares, n);
        CHECK(flagged <= 6 && unknown <= 1);
        CHECK(shares * 2 >= n);
        free(past);
        free(taken);
}

static void unlike_cpus_are_not_compared(void) {
        struct probe_sitting a = recorded[0], b = recorded[0];
        CHECK(probe_sitting_comparable(&a, &b));
        b.ends[1].cpu++;
        CHECK(!probe_sitting_comparable(&a, &b));
        b = a;
        b.ends[0].moved = true;
        CHECK(!probe_sitting_comparable(&a, &b) && !probe_sitting_comparable(&b, &a));
        b = a;
        b.known = false;
        CHECK(!probe_sitting_comparable(&a, &b));
        b = a;
        b.n_ends = 1;
        CHECK(!probe_sitting_comparable(&a, &b));
        struct probe_sitting slower = scaled(&recorded[1], ~0u, 3);
        slower.ends[0].cpu += 2;
        CHECK_INT(judge(&recorded[0], &slower, &slower), 0);
}

static void cpus_in_words(void) {
        struct probe_sitting s = recorded[0];
        char cpus[PROBE_CPUS_MAX];
        CHECK(probe_sitting_cpus(&s, cpus));
        CHECK_STRING(cpus, "[0,1]");
        s.n_ends = 1;
        s.ends[0].cpu = INT32_MAX;
        CHECK(probe_sitting_cpus(&s, cpus));
        CHECK_STRING(cpus, "[2147483647]");
        s.ends[0].moved = true;
        CHECK(!probe_sitting_cpus(&s, cpus));
        s = (struct probe_sitting){0};
        CHECK(!probe_sitting_cpus(&s, cpus));
}

/* A recorded sitting whose ends have n_others further threads each, on CPUs of their own. Their figures are those of
 * other recorded pairs. */
static struct probe_sitting wide(size_t at, uint32_t n_others) {
        struct probe_sitting made = recorded[at];
        for (unsigned end = 0; end < made.n_ends; end++) {
                made.n_others[end] = n_others;
                for (uint32_t i = 0; i < n_others; i++) {
                        struct probe_end *e = &made.others[end][i];
                        *e = recorded[(at + 2 * (i + 1)) % n_recorded].ends[end];
                        e->cpu = 2 + 2 * i + end;
                        for (size_t kind = PROBE_OWN_KINDS; kind < PROBE_KIND_COUNT; kind++)
                                e->absences[kind] = PROBE_OTHER_THREAD;
                }
        }
        return made;
}

/* Beside quiet pairs of as many threads as are probed at most, the same with one CPU of one thread slower, or shared.
 */
static void a_further_thread_is_judged(void) {
        size_t n = 0, quiet = 0, missed = 0;
        for (size_t i = 0; i + 1 < n_recorded; i += 10, n++) {
                struct probe_change changes[PROBE_CHANGES_MAX];
                size_t found = 99;
                uint32_t thread = 1 + (uint32_t) i / 10 % PROBE_OTHERS_MAX;
                const struct probe_sitting before = wide(i, PROBE_OTHERS_MAX);
                struct probe_sitting after = wide(i + 1, PROBE_OTHERS_MAX);
                struct probe_end *one = &after.others[END_SECOND][thread - 1];
                CHECK_INT(probe_sitting_compare(&before, &after, changes, &found), 0);
                quiet += found > 0;
                for (size_t k = 0; k < PROBE_ROUNDS; k++)
                        one->rounds[PROBE_MEMCPY][k] *= 1.25;
                CHECK_INT(probe_sitting_compare(&before, &after, changes, &found), 0);
                missed += !(found >= 1 && changes[0].end == END_SECOND && changes[0].thread == thread &&
                            changes[0].cpu == one->cpu && changes[0].what == PROBE_MEMCPY && changes[0].ratio > 1.12);
                after = wide(i + 1, PROBE_OTHERS_MAX);
                after.others[END_FIRST][30].cpu_share = before.others[END_FIRST][30].cpu_share - 0.3;
                CHECK_INT(probe_sitting_compare(&before, &after, changes, &found), 0);
                missed += !(found >= 1 && changes[0].thread == 31 && changes[0].what == PROBE_SHARE);
        }
        printf("%zu of %zu quiet runs of 64 threads are flagged, %zu of %zu changes missed\n", quiet, n, missed, 2 * n);
        CHECK(quiet * 100 <= 2 * n && missed * 100 <= 2 * 2 * n);
}

/* The most threads, on CPUs with two states of which three rounds of ten have the slower one: nothing changes. A
 * machine of 64 such CPUs is flagged no more often than one of two. */
static void many_cpus_are_no_change(void) {
        struct random random;
        size_t flagged = 0;
        const size_t runs = 600;
        random_init(&random, 20261129);
        for (size_t run = 0; run < runs; run++) {
                struct probe_sitting at[PROBE_TIMES] = {wide(0, PROBE_OTHERS_MAX), wide(0, PROBE_OTHERS_MAX)};
                struct probe_change changes[PROBE_CHANGES_MAX];
                size_t n = 99;
                for (size_t time = 0; time < PROBE_TIMES; time++)
                        for (unsigned end = 0; end < END_COUNT; end++)
                                for (uint32_t i = 0; i < PROBE_OTHERS_MAX; i++)
                                        for (size_t k = 0; k < PROBE_OWN_KINDS * PROBE_ROUNDS; k++)
                                                at[time].others[end][i].rounds[k / PROBE_ROUNDS][k % PROBE_ROUNDS] =
                                                        (random_unit(&random) < 0.7 ? 157 : 230) + random_unit(&random);
                CHECK_INT(probe_sitting_compare(&at[PROBE_BEFORE], &at[PROBE_AFTER], changes, &n), 0);
                flagged += n > 0;
        }
        printf("%zu of %zu runs of 64 CPUs with two states are flagged\n", flagged, runs);
        CHECK(flagged * 100 <= 2 * runs);
}

/* As a run's flag, within the run and since the first one, and by the CPU that it is of. */
static void a_change_names_the_thread(void) {
        const struct probe_sitting before = wide(0, 3);
        struct probe_sitting slower = wide(0, 3);
        for (size_t k = 0; k < PROBE_ROUNDS; k++)
                slower.others[END_FIRST][1].rounds[PROBE_GETPID][k] *= 1.5;
        CHECK_INT(judge(&before, &before, &before), 0);
        CHECK_INT(judge(&before, &slower, &before), 1);
        CHECK_INT(judge(&slower, &slower, &before), 1);
        const struct run_probes p = {.roles = {"sender", "receiver"}, .at = {before, slower}};
        _cleanup_free_ char *text = NULL;
        struct probe_flags flags = {0};
        CHECK_INT(run_probes_judge(&p, NULL, NULL, &text, &flags), 0);
        CHECK(flags.changed);
        const char *words = strstr(text, "\"changes\":");
        CHECK(words && strstr(words, "[{\"since\":\"before\",\"role\":\"sender\",\"thread\":2,\"cpu\":4,\"figure\":"
                                     "\"getpid_ns\",\"ratio\":1.5"));
        CHECK(strstr(text, "\"cpus_compared\":{\"before\":[0,2,4,6,1,3,5,7],\"first_run\":[]}"));
}

/* Only what was on one CPU, the same in both; of what is in one of them nothing is said. */
static void unlike_cpus_of_further_threads_are_not_compared(void) {
        const struct probe_sitting before = wide(0, 3);
        struct probe_sitting after = scaled(&before, 0, 1);
        char cpus[PROBE_ALL_CPUS_MAX];
        for (size_t k = 0; k < PROBE_ROUNDS; k++)
                after.others[END_FIRST][2].rounds[PROBE_GETPID][k] *= 1.5;
        CHECK_INT(judge(&before, &after, &before), 1);
        after.others[END_FIRST][2].cpu = 99;
        CHECK_INT(judge(&before, &after, &before), 0);
        after.others[END_FIRST][2].cpu = 6;
        after.others[END_FIRST][2].moved = true;
        CHECK_INT(judge(&before, &after, &before), 0);
        probe_sitting_compared(&before, &after, cpus);
        CHECK_STRING(cpus, "[0,2,4,1,3,5,7]");
        after.others[END_FIRST][2].moved = false;
        after.n_others[END_FIRST] = 2;
        CHECK_INT(judge(&before, &after, &before), 0);
        CHECK_INT(judge(&after, &before, &before), 0);
        after.others[END_SECOND][0].cpu = 0; /* of both ends, and once in the list */
        struct probe_sitting same = after;
        probe_sitting_compared(&after, &same, cpus);
        CHECK_STRING(cpus, "[0,2,4,1,5,7]");
        struct probe_sitting most = wide(0, PROBE_OTHERS_MAX);
        for (unsigned end = 0; end < END_COUNT; end++)
                for (uint32_t i = 0; i < PROBE_OTHERS_MAX; i++)
                        most.others[end][i].cpu = INT32_MAX - 2 * i - end;
        probe_sitting_compared(&most, &most, cpus);
        CHECK(strlen(cpus) == 1 + 3 + 62 * 11 + 1 && cpus[strlen(cpus) - 1] == ']');
}

/* Further threads that are not probed are counted, with why. */
static void what_is_left_out_says_so(void) {
        static const struct {
                uint32_t threads;
                size_t n_cpus;
                bool roam;
                uint32_t n_others;
                const char *wanted;
        } cases[] = {
                {4, 4, false, 3, "\"others_left_out\":0}"},
                {9, 4, false, 3, "\"others_left_out\":0}"}, /* they share the CPUs of those before them */
                {4, 4, false, 1, "\"others_left_out\":2,\"others_left_out_reason\":\"the probes of the threads before"},
                {40, 40, false, 31, "\"others_left_out\":8,\"others_left_out_reason\":\"no more threads than 31"},
                {4, 4, true, 0, "\"others_left_out\":3,\"others_left_out_reason\":\"threads that are not pinned"},
                {4, 0, false, 0, "\"others_left_out\":3,\"others_left_out_reason\":\"threads that are not pinned"},
                {1, 0, false, 0, "\"others_left_out\":0}"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int32_t cpus[40] = {0};
                const struct agent_placement place = {.cpus = cpus, .n_cpus = cases[i].n_cpus, .roam = cases[i].roam};
                const struct probe_sitting s = wide(0, cases[i].n_others);
                const struct run_probes p = {.roles = {"sender", "receiver"},
                                             .placements = {&place, &place},
                                             .threads = cases[i].threads,
                                             .at = {s, s}};
                _cleanup_free_ char *text = NULL;
                struct probe_flags flags;
                CHECK_INT(run_probes_judge(&p, NULL, NULL, &text, &flags), 0);
                if (!strstr(text, cases[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, strstr(text, "\"others_left_out"));
        }
}

static void further_threads_there_and_back(void) {
        struct run_probes p = {.roles = {"sender", "receiver"}, .at = {wide(0, PROBE_OTHERS_MAX), {0}}};
        struct probe_sitting *s = &p.at[PROBE_BEFORE], got;
        s->n_others[END_SECOND] = 1;
        s->others[END_SECOND][0].moved = true;
        s->others[END_FIRST][2].absences[PROBE_GETPID] = PROBE_STARVED;
        _cleanup_free_ char *text = NULL;
        struct probe_flags flags = {.changed = true};
        CHECK_INT(run_probes_judge(&p, NULL, NULL, &text, &flags), 0);
        CHECK(strstr(text, "{\"thread\":31,\"cpu\":62,") && strstr(text, "{\"thread\":1,\"cpu\":null,\"cpu_reason\":"));
        CHECK(strstr(text, "\"hand_over_ns\":null,\"hand_over_ns_reason\":\"the threads 0 measure it for all\""));
        CHECK_INT(probe_sitting_parse(text, &got), 0);
        CHECK(got.n_others[END_FIRST] == PROBE_OTHERS_MAX && got.n_others[END_SECOND] == 1);
        CHECK(got.others[END_SECOND][0].moved && !got.others[END_FIRST][0].moved);
        CHECK(got.others[END_FIRST][2].absences[PROBE_GETPID] != PROBE_TAKEN);
        CHECK_UINT(got.others[END_FIRST][30].cpu, 62);
        for (size_t i = 0; i < PROBE_OTHERS_MAX; i++)
                CHECK(memcmp(got.others[END_FIRST][i].rounds[PROBE_MEMCPY],
                             s->others[END_FIRST][i].rounds[PROBE_MEMCPY],
                             sizeof(got.others[END_FIRST][i].rounds[PROBE_MEMCPY])) == 0);
        static const char *const bad[] = {
                "{}",
                "[7]",
                "[{\"cpu\":0,\"cpu_share\":1}]",
                "[{\"thread\":2,\"cpu\":0,\"cpu_share\":1}]",
                "[{\"thread\":1,\"cpu\":-1,\"cpu_share\":1}]",
                "[{\"thread\":1,\"cpu\":0,\"cpu_share\":1},{\"thread\":1,\"cpu\":1,\"cpu_share\":1}]",
                "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"};
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                char whole[400];
                (void) snprintf(whole, sizeof whole,
                                "{\"before\":{\"sender\":{\"cpu\":0,\"cpu_share\":1,\"others\":%s}}}", bad[i]);
                if (probe_sitting_parse(whole, &got) != -EBADMSG)
                        CHECK_FAIL("%s is taken", whole);
        }
        CHECK_INT(probe_sitting_parse("{\"before\":{\"sender\":{\"cpu\":0,\"cpu_share\":1}}}", &got), 0);
        CHECK_UINT(got.n_others[END_FIRST], 0); /* of an earlier version */
}

/* What neither thread 0 nor a further one has probed, both times; a CPU that both ends have is listed once. */
static void cpus_without_a_probe_are_listed(void) {
        int32_t first[] = {0, 2, 4, 6}, second[] = {1, 3, 4, 5};
        static const struct {
                uint32_t threads;
                size_t n_cpus[END_COUNT];
                bool roam, moved, one_end;
                const char *wanted;
                uint32_t n_others[PROBE_TIMES]; /* of each end */
        } cases[] = {
                {1, {4, 4}, false, false, false, "\"cpus_unprobed\":[],", {0, 0}},
                {2, {4, 4}, false, false, false, "\"cpus_unprobed\":[2,3],", {0, 0}},
                {9, {4, 4}, false, false, false, "\"cpus_unprobed\":[2,4,6,3,5],", {0, 0}},
                {9, {2, 1}, false, false, false, "\"cpus_unprobed\":[2],", {0, 0}},
                {9, {2, 1}, false, false, true, "\"cpus_unprobed\":[2],", {0, 0}},
                {1, {2, 2}, true, false, false, "\"cpus_unprobed\":[2,3],", {0, 0}},
                {1, {2, 2}, true, true, false, "\"cpus_unprobed\":[0,2,3],", {0, 0}},
                {4, {4, 2}, false, false, false, "\"cpus_unprobed\":[],", {3, 3}},
                {4, {4, 2}, false, false, false, "\"cpus_unprobed\":[6],", {3, 2}},
                {4, {4, 2}, false, false, false, "\"cpus_unprobed\":[4,6],", {1, 3}},
                {9,
                 {0, 4},
                 false,
                 false,
                 false,
                 "\"cpus_unprobed\":null,\"cpus_unprobed_reason\":\"threads are not",
                 {0, 0}},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct agent_placement a = {.cpus = first, .n_cpus = cases[i].n_cpus[0], .roam = cases[i].roam};
                struct agent_placement b = {.cpus = second, .n_cpus = cases[i].n_cpus[1], .roam = cases[i].roam};
                struct run_probes p = {.roles = {"sender", "receiver"},
                                       .placements = {&a, cases[i].one_end ? NULL : &b},
                                       .threads = cases[i].threads,
                                       .at = {recorded[0], recorded[1]}};
                _cleanup_free_ char *text = NULL;
                struct probe_flags flags;
                for (int time = 0; time < PROBE_TIMES; time++) {
                        p.at[time].n_ends = cases[i].one_end ? 1 : 2;
                        p.at[time].ends[0].moved = cases[i].moved;
                        for (int end = 0; end < END_COUNT; end++)
                                p.at[time].n_others[end] = cases[i].n_others[time];
                        for (uint32_t k = 0; k < cases[i].n_others[time]; k++) {
                                p.at[time].others[0][k] = (struct probe_end){.cpu = (uint32_t) first[k + 1]};
                                p.at[time].others[1][k] = (struct probe_end){.cpu = 3};
                                for (int kind = 0; kind < PROBE_KIND_COUNT; kind++)
                                        p.at[time].others[0][k].absences[kind] =
                                                p.at[time].others[1][k].absences[kind] = PROBE_STARVED;
                        }
                }
                CHECK_INT(run_probes_judge(&p, NULL, NULL, &text, &flags), 0);
                if (!strstr(text, cases[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, strstr(text, "\"cpus"));
        }
}

/* What is read back is what was written, to the last digit; and what is missing has its reason. */
static void json_there_and_back(void) {
        struct run_probes p = {.roles = {"sender", "receiver"}, .at = {recorded[0], {0}}};
        p.at[PROBE_BEFORE].ends[0].absences[PROBE_HAND_OVER] = PROBE_SAME_CPU;
        p.at[PROBE_BEFORE].ends[1].moved = true;
        _cleanup_free_ char *text = NULL;
        struct probe_flags flags = {.changed = true};
        CHECK_INT(run_probes_judge(&p, NULL, NULL, &text, &flags), 0);
        CHECK(!flags.changed);
        CHECK(strstr(text, "\"hand_over_ns\":null,\"hand_over_ns_reason\":\"both ends are on one CPU\""));
        CHECK(strstr(text, "\"after\":null,\"after_reason\":\"the run did not get so far\""));
        CHECK(strstr(text, "\"cpus\":null") && strstr(text, "\"compared\":false,\"compared_reason\":"));
        CHECK(strstr(text, "\"first_run_id\":null,\"first_run_id_reason\":") && strstr(text, "\"changes\":[]"));
        struct probe_sitting got;
        CHECK_INT(probe_sitting_parse(text, &got), 0);
        CHECK(got.known && got.n_ends == 2 && got.ends[1].moved && !got.ends[0].moved);
        CHECK(got.ends[0].absences[PROBE_HAND_OVER] != PROBE_TAKEN);
        for (int end = 0; end < END_COUNT; end++)
                for (int kind = 0; kind < PROBE_HAND_OVER; kind++)
                        CHECK(memcmp(got.ends[end].rounds[kind], recorded[0].ends[end].rounds[kind],
                                     sizeof(got.ends[end].rounds[kind])) == 0);
        static const char *const bad[] = {"{}",
                                          "[]",
                                          "x",
                                          "{\"before\":null}",
                                          "{\"before\":{\"sender\":7}}",
                                          "{\"before\":{\"sender\":{\"cpu\":0}}}",
                                          "{\"before\":{\"sender\":{\"cpu\":-1,\"cpu_share\":1}}}",
                                          "{\"before\":{\"sender\":{\"cpu\":0,\"cpu_share\":1,\"getpid_ns\":{}}}}",
                                          "{\"before\":{\"a\":{},\"b\":{},\"c\":{}}}"};
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                if (probe_sitting_parse(bad[i], &got) != -EBADMSG)
                        CHECK_FAIL("%s is taken", bad[i]);
}

int main(void) {
        if (!read_recorded("quiet", recorded, &n_recorded) || n_recorded < 100) {
                fprintf(stderr, "the recorded probes cannot be read\n");
                return 1;
        }
        RUN(quiet_runs_are_not_flagged);
        RUN(another_frequency_is_flagged);
        RUN(a_restless_machine_is_known);
        RUN(a_slower_restless_machine_is_flagged);
        RUN(a_rare_state_is_no_change);
        RUN(a_cpu_that_is_taken_again_and_again);
        RUN(what_each_run_does_is_a_change);
        RUN(a_change_that_stays_is_flagged);
        RUN(a_past_is_of_its_cpus);
        RUN(each_has_its_tolerance);
        RUN(scatter_is_no_change);
        RUN(a_cpu_that_is_shared);
        RUN(an_overloaded_machine_is_no_change);
        RUN(unlike_cpus_are_not_compared);
        RUN(a_further_thread_is_judged);
        RUN(many_cpus_are_no_change);
        RUN(a_change_names_the_thread);
        RUN(unlike_cpus_of_further_threads_are_not_compared);
        RUN(what_is_left_out_says_so);
        RUN(further_threads_there_and_back);
        RUN(cpus_in_words);
        RUN(cpus_without_a_probe_are_listed);
        RUN(json_there_and_back);
        return check_end();
}
