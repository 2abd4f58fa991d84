/* SPDX-License-Identifier: MIT */

/* Comparing probes; their JSON is in probes-json.c, what the machine does of itself in probes-past.c. */

#include "daemon/result/probes.h"

#include "daemon/analysis/statistics/rank.h"
#include "daemon/result/probes-internal.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct probe_end end_of(const struct probe *p) {
        struct probe_end e = {.moved = p->moved, .cpu = p->cpu, .cost_ns = (double) p->cost_ns};
        e.cpu_share = p->work_ns > p->cpu_ns ? (double) p->cpu_ns / (double) p->work_ns : 1;
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                e.absences[kind] = (enum probe_absence) p->series[kind].absence;
                for (size_t i = 0; i < PROBE_ROUNDS; i++)
                        e.rounds[kind][i] =
                                (double) p->series[kind].round_ns[i] / (double) probe_terms[kind].operations;
        }
        return e;
}

void probe_sitting_init(struct probe_sitting *s, const struct probe *const probes[END_COUNT], unsigned n_ends) {
        *s = (struct probe_sitting){.known = true, .n_ends = n_ends};
        for (unsigned end = 0; end < n_ends; end++)
                s->ends[end] = end_of(probes[end]);
}

void probe_sitting_add_others(struct probe_sitting *s, enum end end, const struct probe *others, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                s->others[end][i] = end_of(&others[i]);
        s->n_others[end] = n;
}

const struct probe_end *probe_sitting_of(const struct probe_sitting *s, unsigned end, uint32_t thread) {
        if (thread == 0)
                return &s->ends[end];
        return thread <= s->n_others[end] ? &s->others[end][thread - 1] : NULL;
}

static bool stayed(const struct probe_sitting *s) {
        for (unsigned end = 0; end < s->n_ends; end++)
                if (s->ends[end].moved)
                        return false;
        return s->known;
}

static bool on_one_cpu(const struct probe_end *a, const struct probe_end *b) {
        return a && b && !a->moved && !b->moved && a->cpu == b->cpu;
}

bool probe_sitting_comparable(const struct probe_sitting *a, const struct probe_sitting *b) {
        if (!stayed(a) || !stayed(b) || a->n_ends != b->n_ends)
                return false;
        for (unsigned end = 0; end < a->n_ends; end++)
                if (!on_one_cpu(&a->ends[end], &b->ends[end]))
                        return false;
        return true;
}

/* *ret_ratio is 1 where the two are alike. */
static int compare_series(const double *earlier, const double *later, double level, double tolerance,
                          double *ret_ratio) {
        double x[PROBE_ROUNDS], y[PROBE_ROUNDS];
        struct rank_test test;
        struct rank_shift shift;
        for (size_t i = 0; i < PROBE_ROUNDS; i++) {
                x[i] = log(later[i]);
                y[i] = log(earlier[i]);
        }
        int r = rank_sum_test(x, PROBE_ROUNDS, y, PROBE_ROUNDS, &test);
        if (r == 0)
                r = rank_sum_shift(x, PROBE_ROUNDS, y, PROBE_ROUNDS, 1 - PROBE_LEVEL, &shift);
        if (r < 0)
                return r;
        bool differ = test.p_two_sided < level && fabs(shift.estimate) > log1p(tolerance);
        *ret_ratio = differ ? exp(shift.estimate) : 1;
        return 0;
}

static bool have_both(const struct probe_end *a, const struct probe_end *b, int kind) {
        return a->absences[kind] == PROBE_TAKEN && b->absences[kind] == PROBE_TAKEN;
}

/* Adds to the *n that ret has. */
static int compare_ends(const struct probe_end *a, const struct probe_end *b, double level, struct probe_change of,
                        struct probe_change ret[PROBE_CHANGES_MAX], size_t *n) {
        for (of.what = 0; of.what < PROBE_KIND_COUNT; of.what++) {
                if (!have_both(a, b, of.what))
                        continue;
                int r = compare_series(a->rounds[of.what], b->rounds[of.what], level, probe_terms[of.what].tolerance,
                                       &of.ratio);
                if (r < 0)
                        return r;
                if (of.ratio != 1)
                        ret[(*n)++] = of;
        }
        of.what = PROBE_SHARE;
        of.ratio = b->cpu_share / fmax(a->cpu_share, PROBE_SHARE_LEAST);
        if (fabs(b->cpu_share - a->cpu_share) > PROBE_SHARE_TOLERANCE &&
            fmax(a->cpu_share, b->cpu_share) > PROBE_SHARE_ALONE)
                ret[(*n)++] = of;
        return 0;
}

/* Of each series: see the header. */
static double level_of(const struct probe_sitting *earlier, const struct probe_sitting *later) {
        size_t n = 0;
        for (unsigned end = 0; end < later->n_ends; end++)
                for (uint32_t thread = 0; thread <= later->n_others[end]; thread++) {
                        const struct probe_end *a = probe_sitting_of(earlier, end, thread);
                        const struct probe_end *b = probe_sitting_of(later, end, thread);
                        for (int kind = 0; on_one_cpu(a, b) && kind < PROBE_KIND_COUNT; kind++)
                                n += have_both(a, b, kind);
                }
        return fmin(PROBE_LEVEL, PROBE_BY_CHANCE / fmax((double) n, 1));
}

int probe_sitting_compare(const struct probe_sitting *earlier, const struct probe_sitting *later,
                          struct probe_change ret[PROBE_CHANGES_MAX], size_t *ret_n) {
        const double level = level_of(earlier, later);
        size_t n = 0;
        for (unsigned end = 0; end < later->n_ends; end++)
                for (uint32_t thread = 0; thread <= later->n_others[end]; thread++) {
                        const struct probe_end *a = probe_sitting_of(earlier, end, thread);
                        const struct probe_end *b = probe_sitting_of(later, end, thread);
                        const struct probe_change of = {.end = (enum end) end, .thread = thread, .cpu = b->cpu};
                        int r = on_one_cpu(a, b) ? compare_ends(a, b, level, of, ret, &n) : 0;
                        if (r < 0)
                                return r;
                }
        *ret_n = n;
        return 0;
}

void probe_sitting_compared(const struct probe_sitting *a, const struct probe_sitting *b,
                            char ret[PROBE_ALL_CPUS_MAX]) {
        uint32_t cpus[END_COUNT * (1 + PROBE_OTHERS_MAX)];
        size_t n = 0, used = 1;
        (void) snprintf(ret, PROBE_ALL_CPUS_MAX, "[");
        for (unsigned end = 0; end < b->n_ends; end++)
                for (uint32_t thread = 0; thread <= b->n_others[end]; thread++) {
                        const struct probe_end *e = probe_sitting_of(b, end, thread);
                        size_t i = 0;
                        while (i < n && cpus[i] != e->cpu)
                                i++;
                        if (i < n || !on_one_cpu(probe_sitting_of(a, end, thread), e))
                                continue;
                        cpus[n++] = e->cpu;
                        used += (size_t) snprintf(ret + used, PROBE_ALL_CPUS_MAX - used, "%s%" PRIu32, i ? "," : "",
                                                  e->cpu);
                }
        (void) snprintf(ret + used, PROBE_ALL_CPUS_MAX - used, "]");
}

bool probe_sitting_cpus(const struct probe_sitting *s, char ret[PROBE_CPUS_MAX]) {
        if (!stayed(s))
                return false;
        if (s->n_ends == 1)
                (void) snprintf(ret, PROBE_CPUS_MAX, "[%" PRIu32 "]", s->ends[END_FIRST].cpu);
        else
                (void) snprintf(ret, PROBE_CPUS_MAX, "[%" PRIu32 ",%" PRIu32 "]", s->ends[END_FIRST].cpu,
                                s->ends[END_SECOND].cpu);
        return true;
}

/* Adds to the verdict what differs, and whether it is usual by what was known before the later of the two. Without a
 * past nothing is. */
static int add_changes(const struct probe_sitting *earlier, const struct probe_sitting *later,
                       const struct probe_past *past, struct probe_verdict *v) {
        struct probe_change *changes = v->changes + v->n;
        size_t n = 0;
        int r = probe_sitting_compare(earlier, later, changes, &n);
        if (r < 0)
                return r;
        for (size_t i = 0; past && i < n; i++)
                probe_past_judge(past, earlier, later, &changes[i]);
        v->n += n;
        return 0;
}

/* What differs since the reference, and then within the run: each by the sittings before it. */
static int compare_all(const struct run_probes *p, const struct probe_reference *reference, struct probe_past *past,
                       struct probe_verdict *v) {
        const struct probe_sitting *before = &p->at[PROBE_BEFORE], *after = &p->at[PROBE_AFTER];
        int r = 0;
        v->within = probe_sitting_comparable(before, after);
        if (reference && reference->run_id > 0 && probe_sitting_comparable(&reference->before, before)) {
                v->reference_id = reference->run_id;
                probe_sitting_compared(&reference->before, before, v->cpus_since);
                r = add_changes(&reference->before, before, past, v);
        }
        v->n_since = v->n;
        if (past)
                probe_past_add(past, before, PROBE_BEFORE);
        if (r == 0 && v->within) {
                probe_sitting_compared(before, after, v->cpus_within);
                r = add_changes(before, after, past, v);
        }
        if (past)
                probe_past_add(past, after, PROBE_AFTER);
        return r;
}

int run_probes_judge(const struct run_probes *p, const struct probe_reference *reference, struct probe_past *past,
                     char **ret_json, struct probe_flags *ret_flags) {
        struct probe_verdict v = {.cpus_within = "[]", .cpus_since = "[]"};
        const size_t known = past ? past->n : 0;
        struct probe_flags flags = {0};
        int r = compare_all(p, reference, past, &v);
        if (r == 0)
                r = run_probes_to_json(p, &v, ret_json);
        if (r < 0) {
                if (past)
                        past->n = known; /* a run that is judged again is counted once */
                return r;
        }
        for (size_t i = 0; i < v.n; i++) {
                flags.changed |= v.changes[i].habit == PROBE_UNUSUAL;
                flags.unknown |= v.changes[i].habit == PROBE_UNKNOWN;
        }
        *ret_flags = flags;
        return 0;
}
