/* SPDX-License-Identifier: MIT */

/* Comparing probes; their JSON is in probes-json.c. */

#include "daemon/result/probes.h"

#include "daemon/analysis/rank.h"
#include "daemon/result/probes-internal.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void probe_sitting_init(struct probe_sitting *s, const struct probe *const probes[END_COUNT], unsigned n_ends) {
        *s = (struct probe_sitting){.known = true, .n_ends = n_ends};
        for (unsigned end = 0; end < n_ends; end++) {
                const struct probe *p = probes[end];
                struct probe_end *e = &s->ends[end];
                e->moved = p->moved;
                e->cpu = p->cpu;
                e->cost_ns = (double) p->cost_ns;
                e->cpu_share = p->work_ns > p->cpu_ns ? (double) p->cpu_ns / (double) p->work_ns : 1;
                for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                        e->absences[kind] = (enum probe_absence) p->series[kind].absence;
                        for (size_t i = 0; i < PROBE_ROUNDS; i++)
                                e->rounds[kind][i] =
                                        (double) p->series[kind].round_ns[i] / (double) probe_terms[kind].operations;
                }
        }
}

static bool stayed(const struct probe_sitting *s) {
        for (unsigned end = 0; end < s->n_ends; end++)
                if (s->ends[end].moved)
                        return false;
        return s->known;
}

bool probe_sitting_comparable(const struct probe_sitting *a, const struct probe_sitting *b) {
        if (!stayed(a) || !stayed(b) || a->n_ends != b->n_ends)
                return false;
        for (unsigned end = 0; end < a->n_ends; end++)
                if (a->ends[end].cpu != b->ends[end].cpu)
                        return false;
        return true;
}

/* *ret_ratio is 1 where the two are alike. */
static int compare_series(const double *earlier, const double *later, double tolerance, double *ret_ratio) {
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
        bool differ = test.p_two_sided < PROBE_LEVEL && fabs(shift.estimate) > log1p(tolerance);
        *ret_ratio = differ ? exp(shift.estimate) : 1;
        return 0;
}

int probe_sitting_compare(const struct probe_sitting *earlier, const struct probe_sitting *later,
                          struct probe_change ret[PROBE_CHANGES_MAX], size_t *ret_n) {
        size_t n = 0;
        for (unsigned end = 0; end < later->n_ends; end++) {
                const struct probe_end *a = &earlier->ends[end], *b = &later->ends[end];
                for (int kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                        double ratio = 1;
                        if (a->absences[kind] != PROBE_TAKEN || b->absences[kind] != PROBE_TAKEN)
                                continue;
                        int r = compare_series(a->rounds[kind], b->rounds[kind], probe_terms[kind].tolerance, &ratio);
                        if (r < 0)
                                return r;
                        if (ratio != 1)
                                ret[n++] = (struct probe_change){.end = (enum end) end, .what = kind, .ratio = ratio};
                }
                if (fabs(b->cpu_share - a->cpu_share) > PROBE_SHARE_TOLERANCE)
                        ret[n++] = (struct probe_change){.end = (enum end) end,
                                                         .what = PROBE_SHARE,
                                                         .ratio = b->cpu_share / fmax(a->cpu_share, 1e-3)};
        }
        *ret_n = n;
        return 0;
}

bool run_probes_cpus(const struct run_probes *p, char ret[PROBE_CPUS_MAX]) {
        const struct probe_sitting *s = &p->at[PROBE_BEFORE];
        if (!stayed(s))
                return false;
        if (s->n_ends == 1)
                (void) snprintf(ret, PROBE_CPUS_MAX, "[%" PRIu32 "]", s->ends[END_FIRST].cpu);
        else
                (void) snprintf(ret, PROBE_CPUS_MAX, "[%" PRIu32 ",%" PRIu32 "]", s->ends[END_FIRST].cpu,
                                s->ends[END_SECOND].cpu);
        return true;
}

int run_probes_judge(const struct run_probes *p, const struct probe_reference *reference, char **ret_json,
                     bool *ret_changed) {
        const struct probe_sitting *before = &p->at[PROBE_BEFORE], *after = &p->at[PROBE_AFTER];
        struct probe_verdict v = {0};
        int r = 0;
        v.within = probe_sitting_comparable(before, after);
        if (v.within)
                r = probe_sitting_compare(before, after, v.changes, &v.n_within);
        v.n = v.n_within;
        if (r == 0 && reference && reference->run_id > 0 && probe_sitting_comparable(&reference->before, before)) {
                size_t n = 0;
                v.reference_id = reference->run_id;
                r = probe_sitting_compare(&reference->before, before, v.changes + v.n, &n);
                v.n += n;
        }
        if (r == 0)
                r = run_probes_to_json(p, &v, ret_json);
        if (r == 0)
                *ret_changed = v.n > 0;
        return r;
}
