/* SPDX-License-Identifier: MIT */

/*
 * Whether the machine was the same. tests/unit/data/probes/quiet.json has probes in pairs, a line each, between which
 * the machine cannot have changed: the even and the odd rounds of one probe with twice as many, taken by threads of
 * real-time priority, which no other program displaces, on a guest with two CPUs whose host moves them among its own.
 */

#include "daemon/result/probes.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define RECORDED_MAX 400u

static struct probe_sitting recorded[RECORDED_MAX];
static size_t n_recorded;

static bool read_recorded(void) {
        char path[512];
        _cleanup_free_ char *line = NULL;
        size_t room = 0;
        const char *root = getenv("IPCLAB_SOURCE_ROOT");
        (void) snprintf(path, sizeof path, "%s/tests/unit/data/probes/quiet.json", root ? root : ".");
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        if (!f)
                return false;
        while (getline(&line, &room, f) > 0 && n_recorded < RECORDED_MAX)
                if (probe_sitting_parse(line, &recorded[n_recorded++]) < 0)
                        return false;
        return n_recorded >= 100 && n_recorded % 2 == 0;
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

/* The verdict on a run that had these two, in an experiment whose first run had the other; -1: none was possible. */
static int judge(const struct probe_sitting *before, const struct probe_sitting *after,
                 const struct probe_sitting *first) {
        const struct run_probes p = {.roles = {"sender", "receiver"}, .at = {*before, *after}};
        const struct probe_reference reference = {.run_id = 7, .before = *first};
        _cleanup_free_ char *text = NULL;
        bool changed = false;
        return run_probes_judge(&p, &reference, &text, &changed) < 0 ? -1 : changed;
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

/* Of each operation alone, by half its tolerance and by twice that. */
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
        struct run_probes p = {.roles = {"sender", "receiver"}, .at = {recorded[0], recorded[1]}};
        char cpus[PROBE_CPUS_MAX];
        CHECK(run_probes_cpus(&p, cpus));
        CHECK_STRING(cpus, "[0,1]");
        p.at[PROBE_BEFORE].n_ends = 1;
        p.at[PROBE_BEFORE].ends[0].cpu = INT32_MAX;
        CHECK(run_probes_cpus(&p, cpus));
        CHECK_STRING(cpus, "[2147483647]");
        p.at[PROBE_BEFORE].ends[0].moved = true;
        CHECK(!run_probes_cpus(&p, cpus));
        p.at[PROBE_BEFORE] = (struct probe_sitting){0};
        CHECK(!run_probes_cpus(&p, cpus));
}

/* Of several threads the probes are of the first one's CPU alone; a CPU that both ends have is listed once. */
static void cpus_without_a_probe_are_listed(void) {
        int32_t first[] = {0, 2, 4, 6}, second[] = {1, 3, 4, 5};
        static const struct {
                uint32_t threads;
                size_t n_cpus[END_COUNT];
                bool roam, moved, one_end;
                const char *wanted;
        } cases[] = {
                {1, {4, 4}, false, false, false, "\"cpus_unprobed\":[],"},
                {2, {4, 4}, false, false, false, "\"cpus_unprobed\":[2,3],"},
                {9, {4, 4}, false, false, false, "\"cpus_unprobed\":[2,4,6,3,5],"},
                {9, {2, 1}, false, false, false, "\"cpus_unprobed\":[2],"},
                {9, {2, 1}, false, false, true, "\"cpus_unprobed\":[2],"},
                {1, {2, 2}, true, false, false, "\"cpus_unprobed\":[2,3],"},
                {1, {2, 2}, true, true, false, "\"cpus_unprobed\":[0,2,3],"},
                {9, {0, 4}, false, false, false, "\"cpus_unprobed\":null,\"cpus_unprobed_reason\":\"threads are not"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct agent_placement a = {.cpus = first, .n_cpus = cases[i].n_cpus[0], .roam = cases[i].roam};
                struct agent_placement b = {.cpus = second, .n_cpus = cases[i].n_cpus[1], .roam = cases[i].roam};
                struct run_probes p = {.roles = {"sender", "receiver"},
                                       .placements = {&a, cases[i].one_end ? NULL : &b},
                                       .threads = cases[i].threads,
                                       .at = {recorded[0], recorded[1]}};
                _cleanup_free_ char *text = NULL;
                bool changed;
                for (int time = 0; time < PROBE_TIMES; time++) {
                        p.at[time].n_ends = cases[i].one_end ? 1 : 2;
                        p.at[time].ends[0].moved = cases[i].moved;
                }
                CHECK_INT(run_probes_judge(&p, NULL, &text, &changed), 0);
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
        bool changed = true;
        CHECK_INT(run_probes_judge(&p, NULL, &text, &changed), 0);
        CHECK(!changed);
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
        if (!read_recorded()) {
                fprintf(stderr, "the recorded probes cannot be read\n");
                return 1;
        }
        RUN(quiet_runs_are_not_flagged);
        RUN(another_frequency_is_flagged);
        RUN(each_has_its_tolerance);
        RUN(scatter_is_no_change);
        RUN(a_cpu_that_is_shared);
        RUN(unlike_cpus_are_not_compared);
        RUN(cpus_in_words);
        RUN(cpus_without_a_probe_are_listed);
        RUN(json_there_and_back);
        return check_end();
}
