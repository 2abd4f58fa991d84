/* SPDX-License-Identifier: MIT */

/* See the header. Probes are read a run at a time, so that a large experiment holds no reader for long. */

#include "daemon/service/compare/machine.h"

#include "daemon/analysis/statistics/order.h"
#include "daemon/log.h"
#include "daemon/service/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

_Static_assert(sizeof(((struct machine_figure *) NULL)->cpus) == PROBE_CPUS_MAX, "as a run's probes have them");

/* One operation on one CPU, of runs on one set of CPUs of threads 0. */
struct series {
        size_t set; /* of the collection's */
        uint32_t cpu;
        int kind;
        double *values[SIDE_COUNT]; /* of each run */
        size_t n[SIDE_COUNT], size[SIDE_COUNT];
};

struct collection {
        struct series *items; /* a set's together, as far as its first run goes */
        size_t n, size;
        struct {
                char cpus[PROBE_CPUS_MAX];
                size_t runs[SIDE_COUNT];
        } sets[MACHINE_CPU_SETS_MAX];
        size_t n_sets;
        size_t elsewhere[SIDE_COUNT]; /* runs of none of these sets: without probes, of moved threads, of other CPUs */
        size_t beyond;                /* of these, the baseline's for whose sets of CPUs there was no room */
};

static void collection_freep(struct collection **c) {
        for (size_t i = 0; *c && i < (*c)->n; i++)
                for (size_t side = 0; side < SIDE_COUNT; side++)
                        free((*c)->items[i].values[side]);
        if (*c)
                free((*c)->items);
        free(*c);
}

/* The series, which is added where there is none. NULL: out of memory. */
static struct series *obtain_series(struct collection *c, size_t set, uint32_t cpu, int kind) {
        for (size_t i = 0; i < c->n; i++)
                if (c->items[i].cpu == cpu && c->items[i].kind == kind && c->items[i].set == set)
                        return &c->items[i];
        if (!util_grow(c->items, c->n, c->size))
                return NULL;
        c->items[c->n] = (struct series){.set = set, .cpu = cpu, .kind = kind};
        return &c->items[c->n++];
}

/* Counts a run, and adds its set of CPUs where it is the baseline's and there is room. Whether the set is kept. */
static bool count_run(struct collection *c, enum comparison_side side, const char *cpus, size_t *ret_set) {
        size_t i = 0;
        while (i < c->n_sets && strcmp(c->sets[i].cpus, cpus) != 0)
                i++;
        if (i == c->n_sets && (side != SIDE_BASELINE || i == MACHINE_CPU_SETS_MAX)) {
                c->elsewhere[side]++;
                c->beyond += side == SIDE_BASELINE;
                return false;
        }
        if (i == c->n_sets)
                (void) snprintf(c->sets[c->n_sets++].cpus, PROBE_CPUS_MAX, "%s", cpus);
        c->sets[i].runs[side]++;
        *ret_set = i;
        return true;
}

/* Runs that nothing of the other side is held against. */
static size_t uncompared(const struct collection *c, enum comparison_side side) {
        enum comparison_side other = side == SIDE_BASELINE ? SIDE_CANDIDATE : SIDE_BASELINE;
        size_t n = c->elsewhere[side];
        for (size_t i = 0; i < c->n_sets; i++)
                n += c->sets[i].runs[other] == 0 ? c->sets[i].runs[side] : 0;
        return n;
}

static int series_add(struct series *s, enum comparison_side side, double value) {
        if (!util_grow(s->values[side], s->n[side], s->size[side]))
                return -ENOMEM;
        s->values[side][s->n[side]++] = value;
        return 0;
}

static int take_probe(struct collection *c, enum comparison_side side, size_t set, const struct probe_end *probe) {
        for (int kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                struct statistic rounds;
                if (probe->absences[kind] != PROBE_TAKEN)
                        continue;
                struct series *s = obtain_series(c, set, probe->cpu, kind);
                int r = s ? order_summarize(probe->rounds[kind], PROBE_ROUNDS, &rounds) : -ENOMEM;
                if (r == 0)
                        r = series_add(s, side, rounds.median);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Each CPU once, by the first thread that is on it. */
static int take_sitting(struct collection *c, enum comparison_side side, const struct probe_sitting *p) {
        char cpus[PROBE_CPUS_MAX] = "";
        uint32_t taken[END_COUNT * (1 + PROBE_OTHERS_MAX)];
        size_t set, n = 0;
        if (!probe_sitting_cpus(p, cpus)) {
                c->elsewhere[side]++;
                return 0;
        }
        if (!count_run(c, side, cpus, &set))
                return 0;
        for (uint32_t thread = 0; thread <= PROBE_OTHERS_MAX; thread++)
                for (unsigned end = 0; end < p->n_ends; end++) {
                        const struct probe_end *probe = probe_sitting_of(p, end, thread);
                        size_t i = 0;
                        while (probe && i < n && taken[i] != probe->cpu)
                                i++;
                        if (!probe || probe->moved || i < n)
                                continue;
                        taken[n++] = probe->cpu;
                        int r = take_probe(c, side, set, probe);
                        if (r < 0)
                                return r;
                }
        return 0;
}

/* text: NULL: the run has none. What cannot be read counts as none: the run's own figures are there all the same. */
static int take_text(struct collection *c, enum comparison_side side, int64_t experiment, const char *text) {
        struct probe_sitting sitting;
        int r = text ? probe_sitting_parse(text, &sitting) : -EBADMSG;
        if (r != -EBADMSG)
                return r < 0 ? r : take_sitting(c, side, &sitting);
        if (text)
                log_warning("experiment %" PRId64 ": the probes of a run cannot be read and are not compared",
                            experiment);
        c->elsewhere[side]++;
        return 0;
}

/* Without a run that was deleted meanwhile. */
static int collect_run(struct service *s, enum comparison_side side, int64_t experiment, int64_t run,
                       struct collection *c, struct refusal *r) {
        _cleanup_free_ char *text = NULL;
        int error = SERVICE_READ(s, r, "reading the probes", 0, store_probes(store, run, &text));
        if (error < 0)
                return error == -ENOENT ? 0 : error;
        error = take_text(c, side, experiment, text);
        return error < 0 ? service_fail(s, r, error, "reading the probes", 0) : 0;
}

/* In the order in which the runs ran: by it neighbours that are alike are known. */
static int collect(struct service *s, enum comparison_side side, int64_t experiment, struct collection *c,
                   struct refusal *r) {
        _cleanup_free_ int64_t *runs = NULL;
        size_t n = 0;
        int error = SERVICE_READ(s, r, "reading the probes", 0, store_done_runs(store, experiment, &runs, &n));
        for (size_t i = 0; error == 0 && i < n; i++)
                error = collect_run(s, side, experiment, runs[i], c, r);
        return error;
}

/* Values of COMPARISON_RUNS_MAX runs at most, from all of the experiment. */
static void thin(struct series *s, enum comparison_side side) {
        size_t n = s->n[side];
        for (size_t i = 0; n > COMPARISON_RUNS_MAX && i < COMPARISON_RUNS_MAX; i++)
                s->values[side][i] = s->values[side][i * n / COMPARISON_RUNS_MAX];
        s->n[side] = n > COMPARISON_RUNS_MAX ? COMPARISON_RUNS_MAX : n;
}

static int add_figure(struct series *s, const char *cpus, struct machine *m, struct compare_row *ret) {
        struct machine_figure *f = &m->items[m->n++];
        *f = (struct machine_figure){.cpu = s->cpu, .what = probe_terms[s->kind].name};
        memcpy(f->cpus, cpus, sizeof(f->cpus));
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                struct statistic values;
                thin(s, (enum comparison_side) side);
                int r = order_summarize(s->values[side], s->n[side], &values);
                if (r < 0)
                        return r;
                f->n[side] = s->n[side];
                f->medians[side] = values.median;
        }
        *ret = (struct compare_row){.baseline = s->values[SIDE_BASELINE],
                                    .candidate = s->values[SIDE_CANDIDATE],
                                    .n_baseline = s->n[SIDE_BASELINE],
                                    .n_candidate = s->n[SIDE_CANDIDATE],
                                    .less_is_faster = true};
        return 0;
}

static const char *why_unknown(const struct machine *m, bool enough, bool beyond, bool one_sided) {
#define FIRST_SETS "only the first " UTIL_TEXT(MACHINE_CPU_SETS_MAX) " sets of CPUs of the baseline are compared: "
        if (m->n == 0)
                return beyond ? FIRST_SETS "no runs of both on the same of these have probes"
                              : "no runs of both on the same CPUs have probes";
        if (!enough)
                return beyond ? FIRST_SETS "too few runs of both on the same of these have probes to find a difference"
                              : "too few runs of both on the same CPUs have probes to find a difference";
        if (one_sided)
                return "some CPUs or operations were probed in one experiment alone, and the others show no difference";
        return beyond ? FIRST_SETS "some runs were on others, and those that were compared show no difference"
                      : "some runs have no probes of CPUs that both have, and the others show no difference";
#undef FIRST_SETS
}

/* One figure that shows no difference is no evidence about the CPUs and runs that no figure is of. beyond: some of them
 * are of sets of CPUs for which there was no room. one_sided: runs of both on the same CPUs of threads 0 have other
 * probes.
 */
static void conclude(struct machine *m, const struct comparison *results, const int *kinds, bool beyond,
                     bool one_sided) {
        size_t least = compare_runs_least(false, m->n ? m->n : 1);
        bool any = false, enough = m->n > 0,
             all = !one_sided && m->uncompared[SIDE_BASELINE] + m->uncompared[SIDE_CANDIDATE] == 0;
        for (size_t i = 0; i < m->n; i++) {
                struct machine_figure *f = &m->items[i];
                f->c = results[i];
                f->differs = f->c.differs && fabs(log(f->c.ratio)) > log1p(probe_terms[kinds[i]].tolerance);
                any |= f->differs;
                enough &= f->n[SIDE_BASELINE] >= least && f->n[SIDE_CANDIDATE] >= least;
        }
        m->state = any ? MACHINE_DIFFERS : enough && all ? MACHINE_NO_DIFFERENCE : MACHINE_UNKNOWN;
        if (m->state == MACHINE_UNKNOWN)
                m->reason = why_unknown(m, enough, beyond, one_sided);
}

static int judge(struct collection *c, struct machine *m) {
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        _cleanup_free_ struct compare_row *rows = calloc(c->n + 1, sizeof(*rows));
        _cleanup_free_ struct comparison *results = calloc(c->n + 1, sizeof(*results));
        _cleanup_free_ int *kinds = calloc(c->n + 1, sizeof(*kinds));
        bool one_sided = false;
        int r = 0;
        m->items = calloc(c->n + 1, sizeof(*m->items));
        for (int side = 0; side < SIDE_COUNT; side++)
                m->uncompared[side] = uncompared(c, (enum comparison_side) side);
        if (!rows || !results || !kinds || !m->items)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < c->n; i++) {
                struct series *s = &c->items[i];
                if (s->n[SIDE_BASELINE] == 0 || s->n[SIDE_CANDIDATE] == 0) {
                        const size_t *runs = c->sets[s->set].runs;
                        one_sided |= runs[SIDE_BASELINE] > 0 && runs[SIDE_CANDIDATE] > 0;
                        continue;
                }
                kinds[m->n] = s->kind;
                r = add_figure(s, c->sets[s->set].cpus, m, &rows[m->n]);
        }
        if (r == 0 && m->n > 0)
                r = compare_rows(rows, m->n, &rule, results);
        if (r == 0)
                conclude(m, results, kinds, c->beyond > 0, one_sided);
        return r;
}

int machine_compare(struct service *s, const int64_t experiments[SIDE_COUNT], struct machine *ret, struct refusal *r) {
        __attribute__((cleanup(collection_freep))) struct collection *c = calloc(1, sizeof(*c));
        struct machine m = {0};
        int error = c ? 0 : service_fail(s, r, -ENOMEM, "comparing the probes", 0);
        for (size_t side = 0; error == 0 && side < SIDE_COUNT; side++)
                error = collect(s, (enum comparison_side) side, experiments[side], c, r);
        if (error < 0)
                return error;
        error = judge(c, &m);
        if (error < 0) {
                free(m.items);
                return service_fail(s, r, error == -EDOM ? -EBADMSG : error, "comparing the probes", 0);
        }
        *ret = m;
        return 0;
}
