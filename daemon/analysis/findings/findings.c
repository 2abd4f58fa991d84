/* SPDX-License-Identifier: MIT */

/*
 * Groups of otherwise equal rows, the comparisons of all kinds of findings, and the findings as they are put together.
 */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/statistics/serial.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const finding_kind_names[FINDING_KINDS] = {
        [FINDING_RANKING] = "ranking",     [FINDING_BEST_SIZE] = "best-size",
        [FINDING_KNEE] = "knee",           [FINDING_CLIFF] = "cliff",
        [FINDING_CROSSOVER] = "crossover", [FINDING_SCALING] = "scaling",
        [FINDING_COST] = "cost",           [FINDING_NOISE_FLOOR] = "noise-floor",
        [FINDING_UNDECIDED] = "undecided", [FINDING_HIGHEST_RATE] = "highest-rate",
};

const char *const finding_confidence_names[CONFIDENCE_COUNT] = {
        [CONFIDENCE_NONE] = "none", [CONFIDENCE_REDUCED] = "reduced", [CONFIDENCE_HIGH] = "high"};

#define WORKLOAD_BIT(w) (1u << (w))
#define ALWAYS (WORKLOAD_BIT(WORKLOAD_SYSCALL) | WORKLOAD_BIT(WORKLOAD_CONTEXT_SWITCH))

const struct judged_term judged_terms[JUDGED_COUNT] = {
        [JUDGED_THROUGHPUT] = {FIGURE_THROUGHPUT, false, "throughput", "", "more throughput", "of the throughput",
                               WORKLOAD_BIT(WORKLOAD_STREAM), false},
        [JUDGED_LATENCY_P50] = {FIGURE_LATENCY_P50, true, "median round trip", "a ", "shorter median round trip",
                                "longer median round trip", WORKLOAD_BIT(WORKLOAD_PINGPONG), false},
        [JUDGED_LATENCY_P99] = {FIGURE_LATENCY_P99, true, "p99 of the round trip", "a ",
                                "shorter p99 of the round trip", "longer p99 of the round trip",
                                WORKLOAD_BIT(WORKLOAD_PINGPONG), false},
        [JUDGED_ONE_WAY_P50] = {FIGURE_LATENCY_P50, true, "median one-way latency", "a ",
                                "shorter median one-way latency", "longer median one-way latency",
                                WORKLOAD_BIT(WORKLOAD_STREAM), true},
        [JUDGED_ONE_WAY_P99] = {FIGURE_LATENCY_P99, true, "p99 of the one-way latency", "a ",
                                "shorter p99 of the one-way latency", "longer p99 of the one-way latency",
                                WORKLOAD_BIT(WORKLOAD_STREAM), true},
        [JUDGED_COST] = {FIGURE_COST, true, "cost", "a ", "lower cost", "higher cost", ALWAYS, false},
        [JUDGED_CPU] = {FIGURE_CPU_PER_MESSAGE, true, "CPU time per message", "", "less CPU time per message",
                        "more CPU time per message", 0, false},
        [JUDGED_CYCLES] = {FIGURE_CYCLES_PER_BYTE, true, "cycles per byte", "", "fewer cycles per byte",
                           "more cycles per byte", 0, false},
        [JUDGED_CACHE_MISSES] = {FIGURE_LLC_MISSES, true, "misses of the last cache per message", "",
                                 "fewer misses of the last cache per message",
                                 "more misses of the last cache per message", 0, false},
};

bool judged_applies(enum judged judged, const struct findings_row *row) {
        const struct judged_term *term = &judged_terms[judged];
        if (judged == JUDGED_THROUGHPUT && row->open_loop)
                return false;
        return term->workloads & WORKLOAD_BIT(row->point.workload) && (!term->one_way || row->one_way);
}

/* ---- groups ---- */

/* The values of an axis by number, in the order in which they first appear. Beyond FINDINGS_NUMBERED_MAX rows only
 * those with runs enough are numbered, as each new value is compared with all before it: each CPU of 128 with each are
 * 16384 placements. */
static int number_values(struct answer *a, enum axis_name axis) {
        const struct axis *x = &axes[axis];
        _cleanup_free_ const void **seen = NULL;
        size_t size = 0;
        for (size_t i = 0; i < a->in->n_rows; i++) {
                const struct point *p = &a->in->rows[i].point;
                uint16_t k = 0;
                if (!axis_applies(x, p) ||
                    (a->in->n_rows > FINDINGS_NUMBERED_MAX && a->in->rows[i].n_runs < FINDINGS_RUNS_LEAST))
                        continue;
                while (k < a->n_values[axis] && !x->value.type->equal(&x->value, seen[k], axis_of(x, p)))
                        k++;
                if (k == UINT16_MAX - 1)
                        return -EINVAL;
                if (k == size) {
                        size = size ? 2 * size : 16;
                        const void **more = reallocarray(seen, size, sizeof(*seen));
                        if (!more)
                                return -ENOMEM;
                        seen = more;
                }
                if (k == a->n_values[axis]) {
                        seen[a->n_values[axis]++] = axis_of(x, p);
                        if (x->value.type->equal(&x->value, seen[k], x->value.standard))
                                a->standard[axis] = (uint16_t) (k + 1);
                }
                a->values[i][axis] = (uint16_t) (k + 1);
        }
        if (a->standard[axis] == 0)
                a->standard[axis] = 1;
        return 0;
}

struct sorting {
        const struct answer *a;
        uint32_t varied;
        enum axis_name axis;
};

/* An axis that has no meaning for a row counts as standing at its standard. */
static uint16_t folded(const struct answer *a, uint32_t row, size_t axis) {
        uint16_t value = a->values[row][axis];
        return value ? value : a->standard[axis];
}

static int compare_keys(const struct sorting *s, uint32_t x, uint32_t y) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                uint16_t v = folded(s->a, x, i), w = folded(s->a, y, i);
                if (!(s->varied & AXIS_BIT(i)) && v != w)
                        return v < w ? -1 : 1;
        }
        return 0;
}

static uint64_t number_of(const struct answer *a, uint32_t row, enum axis_name axis) {
        const struct value *v = &axes[axis].value;
        const void *value = axis_of(&axes[axis], &a->in->rows[row].point);
        uint64_t wide;
        uint32_t narrow;
        if (v->type != &value_number)
                return a->values[row][axis];
        if (v->size == sizeof(narrow))
                return memcpy(&narrow, value, sizeof(narrow)), narrow;
        return memcpy(&wide, value, sizeof(wide)), wide;
}

static int compare_rows_of_groups(const void *x, const void *y, void *userdata) {
        const struct sorting *s = userdata;
        uint32_t i = *(const uint32_t *) x, j = *(const uint32_t *) y;
        int order = compare_keys(s, i, j);
        if (order != 0)
                return order;
        uint64_t v = number_of(s->a, i, s->axis), w = number_of(s->a, j, s->axis);
        if (v == w) {
                v = s->a->in->rows[i].point.message_size;
                w = s->a->in->rows[j].point.message_size;
        }
        if (v == w)
                return i < j ? -1 : i > j;
        return v < w ? -1 : 1;
}

void answer_groups(struct answer *a, uint32_t varied, enum axis_name axis, draw_function draw) {
        struct sorting s = {a, varied | AXIS_BIT(axis), axis};
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, a->n_rows + 1, sizeof(*rows));
        size_t n = 0;
        if (!rows || a->error < 0) {
                a->error = a->error < 0 ? a->error : -ENOMEM;
                return;
        }
        for (size_t i = 0; i < a->n_rows; i++)
                if (a->values[a->rows[i]][axis])
                        rows[n++] = a->rows[i];
        qsort_r(rows, n, sizeof(*rows), compare_rows_of_groups, &s);
        for (size_t begin = 0, end; begin < n; begin = end) {
                for (end = begin + 1; end < n && compare_keys(&s, rows[begin], rows[end]) == 0;)
                        end++;
                if (end - begin > 1 && a->error == 0)
                        draw(a, axis, rows + begin, end - begin);
        }
}

/* ---- comparisons ---- */

/* Ranks are of logarithms. */
bool findings_row_has_ratios(const struct findings_row *x, enum figure figure) {
        for (size_t i = 0; i < x->n_runs; i++)
                if (isfinite(x->runs[i].values[figure]) && !(x->runs[i].values[figure] > 0))
                        return false;
        return true;
}

/* Pairs of both rows' runs, by block; at most as far as the tests are exact. */
static size_t pair_up(const struct findings_row *x, const struct findings_row *y, enum figure figure, double *ret_x,
                      double *ret_y) {
        size_t n = 0;
        if (!findings_row_has_ratios(x, figure) || !findings_row_has_ratios(y, figure))
                return 0;
        for (size_t i = 0, k = 0; i < x->n_runs && y->n_runs > 0 && n < RANK_MAX; i++) {
                const struct findings_run *u = &x->runs[i];
                if (!isfinite(u->values[figure]) ||
                    !compare_find_block(&y->runs->block, sizeof(*y->runs), y->n_runs, u->block, &k) ||
                    !isfinite(y->runs[k].values[figure]))
                        continue;
                if (ret_x) {
                        ret_x[n] = u->values[figure];
                        ret_y[n] = y->runs[k].values[figure];
                }
                n++;
        }
        return n;
}

size_t findings_row_values(const struct findings_row *x, enum figure figure, double *ret) {
        size_t n = 0;
        if (!findings_row_has_ratios(x, figure))
                return 0;
        for (size_t i = 0; i < x->n_runs && n < RANK_MAX; i++)
                if (isfinite(x->runs[i].values[figure])) {
                        if (ret)
                                ret[n] = x->runs[i].values[figure];
                        n++;
                }
        return n;
}

/* While counting, whether it would have: a row without runs is taken to have every figure that the machine has. */
static bool has_runs_enough(struct answer *a, uint32_t row, enum judged judged) {
        const struct findings_row *x = &a->in->rows[row];
        const enum figure figure = judged_terms[judged].figure;
        if (!a->collecting && !findings_row_has_ratios(x, figure))
                doubt_ratios(a, row, judged);
        if (a->counting && x->n_runs == 0)
                return !a->in->uncounted || (figure != FIGURE_CYCLES_PER_BYTE && figure != FIGURE_LLC_MISSES);
        return findings_row_values(x, figure, NULL) >= (a->counting ? 1 : FINDINGS_RUNS_LEAST);
}

static int want(struct answer *a, uint32_t baseline, uint32_t candidate, enum judged judged) {
        if (a->n_tests == a->size_tests) {
                size_t size = a->size_tests ? 2 * a->size_tests : 64;
                struct test *tests = reallocarray(a->tests, size, sizeof(*tests));
                if (!tests)
                        return -ENOMEM;
                a->tests = tests;
                a->size_tests = size;
        }
        a->tests[a->n_tests++] = (struct test){.baseline = baseline, .candidate = candidate, .judged = judged};
        return 0;
}

static int compare_tests(const void *x, const void *y) {
        const struct test *t = x, *u = y;
        if (t->baseline != u->baseline)
                return t->baseline < u->baseline ? -1 : 1;
        if (t->candidate != u->candidate)
                return t->candidate < u->candidate ? -1 : 1;
        return (t->judged > u->judged) - (t->judged < u->judged);
}

bool answer_compare(struct answer *a, uint32_t baseline, uint32_t candidate, enum judged judged,
                    struct comparison *ret) {
        bool turn = baseline > candidate;
        const struct test key = {
                .baseline = turn ? candidate : baseline, .candidate = turn ? baseline : candidate, .judged = judged};
        *ret = (struct comparison){.verdict = COMPARE_UNDECIDED};
        if (a->error < 0 || !has_runs_enough(a, baseline, judged) || !has_runs_enough(a, candidate, judged))
                return false;
        if (a->counting) {
                a->n_counted += adaptive_looks_at(&a->in->rows[baseline].watch, judged_terms[judged].figure);
                return false;
        }
        if (a->collecting) {
                a->error = want(a, key.baseline, key.candidate, judged);
                return false;
        }
        const struct test *t = bsearch(&key, a->tests, a->n_tests, sizeof(key), compare_tests);
        if (t)
                *ret = turn ? compare_turned(&t->result) : t->result;
        return t != NULL;
}

/* A comparison that several kinds need is made once. */
static void settle_tests(struct answer *a) {
        size_t n = 0;
        if (a->n_tests == 0)
                return;
        qsort(a->tests, a->n_tests, sizeof(*a->tests), compare_tests);
        for (size_t i = 0; i < a->n_tests; i++)
                if (n == 0 || compare_tests(&a->tests[n - 1], &a->tests[i]) != 0)
                        a->tests[n++] = a->tests[i];
        a->n_tests = n;
}

static bool is_in_blocks(const struct findings_row *row) {
        return row->n_runs > 0 && row->runs[row->n_runs - 1].block > 0;
}

size_t findings_fill_comparison(const struct findings_row *x, const struct findings_row *y, enum figure figure,
                                bool less_is_better, double *values, struct compare_row *ret) {
        size_t n = pair_up(x, y, figure, NULL, NULL), n_x = findings_row_values(x, figure, values), n_y;
        *ret = (struct compare_row){.baseline = values,
                                    .candidate = values + n_x,
                                    .n_baseline = n_x,
                                    .paired = n >= compare_runs_least(true, 1),
                                    .less_is_faster = less_is_better,
                                    .looks = adaptive_looks_at(&x->watch, figure),
                                    .runs_most = comparison_runs_most(is_in_blocks(x) && is_in_blocks(y))};
        if (ret->paired) {
                n_y = findings_row_values(y, figure, NULL);
                ret->n_alone = (uint32_t) ((n_x > n_y ? n_x : n_y) - n);
                ret->n_baseline = ret->n_candidate = n_y = pair_up(x, y, figure, values, values + n_x);
        } else {
                n_y = findings_row_values(y, figure, values + n_x);
                ret->n_baseline = n_x < COMPARISON_RUNS_MAX ? n_x : COMPARISON_RUNS_MAX;
                ret->n_candidate = n_y < COMPARISON_RUNS_MAX ? n_y : COMPARISON_RUNS_MAX;
        }
        return n_x + n_y;
}

/* The values of all comparisons together, at most. */
static size_t count_values(const struct answer *a) {
        size_t n = 0;
        for (size_t i = 0; i < a->n_tests; i++) {
                enum figure figure = judged_terms[a->tests[i].judged].figure;
                n += findings_row_values(&a->in->rows[a->tests[i].baseline], figure, NULL) +
                     findings_row_values(&a->in->rows[a->tests[i].candidate], figure, NULL);
        }
        return n;
}

/* The rows of which runs were left out of a test of runs that are no pairs. */
static void note_cut(struct answer *a, const struct test *t) {
        const uint32_t rows[] = {t->baseline, t->candidate};
        for (size_t i = 0; i < ELEMENTS(rows); i++)
                if (findings_row_values(&a->in->rows[rows[i]], judged_terms[t->judged].figure, NULL) >
                    COMPARISON_RUNS_MAX)
                        doubt_cut(a, rows[i]);
}

/* All at once, as the correction is over all of them. */
static int make_comparisons(struct answer *a) {
        settle_tests(a);
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        _cleanup_free_ double *values = reallocarray(NULL, count_values(a) + 1, sizeof(*values));
        _cleanup_free_ struct compare_row *rows = reallocarray(NULL, a->n_tests + 1, sizeof(*rows));
        _cleanup_free_ struct comparison *results = reallocarray(NULL, a->n_tests + 1, sizeof(*results));
        if (!values || !rows || !results)
                return -ENOMEM;
        for (size_t i = 0, used = 0; i < a->n_tests; i++)
                used += findings_fill_comparison(
                        &a->in->rows[a->tests[i].baseline], &a->in->rows[a->tests[i].candidate],
                        judged_terms[a->tests[i].judged].figure, judged_terms[a->tests[i].judged].less_is_better,
                        values + used, &rows[i]);
        int r = compare_rows(rows, a->n_tests, &rule, results);
        for (size_t i = 0; r == 0 && i < a->n_tests; i++) {
                a->tests[i].result = results[i];
                if (!rows[i].paired)
                        note_cut(a, &a->tests[i]);
        }
        return r < 0 ? r : a->error;
}

int findings_row_statistic(const struct findings_row *row, enum figure figure, struct statistic *ret,
                           struct serial *ret_serial) {
        _cleanup_free_ double *values = reallocarray(NULL, row->n_runs + 1, sizeof(*values));
        size_t n = 0;
        if (!values)
                return -ENOMEM;
        for (size_t i = 0; i < row->n_runs; i++)
                if (isfinite(row->runs[i].values[figure]))
                        values[n++] = row->runs[i].values[figure];
        return serial_summarize(values, n, ret, ret_serial);
}

struct statistic answer_statistic(struct answer *a, uint32_t row, enum figure figure) {
        struct statistic s = {0};
        int r = findings_row_statistic(&a->in->rows[row], figure, &s, NULL);
        if (r < 0 && a->error == 0)
                a->error = r;
        return s;
}

size_t answer_fastest(struct answer *a, const uint32_t *rows, size_t n) {
        size_t fastest = 0;
        double most = 0;
        for (size_t i = 0; i < n; i++) {
                double rate = answer_statistic(a, rows[i], FIGURE_THROUGHPUT).median;
                if (rate > most) {
                        most = rate;
                        fastest = i;
                }
        }
        return fastest;
}

enum judged judged_first(const struct findings_row *row) {
        enum judged j = 0;
        while (j < JUDGED_COUNT && !judged_applies(j, row))
                j++;
        return j;
}

static int best_first(const void *x, const void *y, void *userdata) {
        const struct ranked *u = x, *v = y;
        const enum judged *judged = userdata;
        bool less = judged_terms[*judged].less_is_better;
        if (u->statistic.median == v->statistic.median)
                return u->row < v->row ? -1 : 1;
        return (u->statistic.median < v->statistic.median) == less ? -1 : 1;
}

struct ranked *answer_rank(struct answer *a, const uint32_t *rows, size_t n, enum judged judged, size_t *ret_n) {
        enum figure figure = judged_terms[judged].figure;
        struct ranked *ranked = calloc(n, sizeof(*ranked));
        size_t n_ranked = 0;
        if (!ranked && a->error == 0)
                a->error = -ENOMEM;
        for (size_t i = 0; ranked && i < n; i++)
                if (has_runs_enough(a, rows[i], judged))
                        ranked[n_ranked++] =
                                (struct ranked){.row = rows[i], .statistic = answer_statistic(a, rows[i], figure)};
        if (n_ranked == 0 || a->error < 0) {
                free(ranked);
                return NULL;
        }
        qsort_r(ranked, n_ranked, sizeof(*ranked), best_first, &judged);
        for (size_t i = 0; i + 1 < n_ranked; i++)
                (void) answer_compare(a, ranked[i].row, ranked[i + 1].row, judged, &ranked[i].next);
        *ret_n = n_ranked;
        return ranked;
}

/* ---- the answer ---- */

unsigned finding_figures(const struct finding *f) {
        static const bool of_rates[FINDING_KINDS] = {[FINDING_BEST_SIZE] = true,
                                                     [FINDING_KNEE] = true,
                                                     [FINDING_CLIFF] = true,
                                                     [FINDING_SCALING] = true,
                                                     [FINDING_HIGHEST_RATE] = true /* its closed loop; the rates' runs
                                                                                      are with the search */};
        if (f->rests_on)
                return f->rests_on;
        return of_rates[f->kind] ? FIGURES_BIT(FIGURES_RATE) : FIGURES_BIT(FIGURES_GROUPS) - 1;
}

void reduce_disputed(struct answer *a) {
        for (size_t i = 0; !a->collecting && i < a->out->n; i++) {
                struct finding *f = &a->out->items[i];
                for (size_t k = 0; f->confidence == CONFIDENCE_HIGH && k < f->n_rows; k++)
                        if (disputed_any(a->in->rows[f->rows[k]].flags.n_disputed, finding_figures(f)))
                                f->confidence = CONFIDENCE_REDUCED;
        }
}

static void draw_all(struct answer *a) {
        draw_rankings(a);
        draw_sizes(a);
        draw_crossovers(a);
        draw_scalings(a);
        draw_costs(a);
        draw_searches(a);
        draw_floors(a);
        reduce_disputed(a);
        draw_doubts(a);
}

/* counting: all rows, whatever runs they have */
static int answer_init(struct answer *a, const struct findings_input *in, bool counting) {
        *a = (struct answer){.in = in,
                             .values = calloc(in->n_rows + 1, sizeof(*a->values)),
                             .rows = reallocarray(NULL, in->n_rows + 1, sizeof(*a->rows)),
                             .counting = counting,
                             .collecting = true,
                             .out = calloc(1, sizeof(*a->out))};
        int r = a->values && a->rows && a->out ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < AXIS_COUNT; i++)
                r = number_values(a, (enum axis_name) i);
        for (size_t i = 0; r == 0 && i < in->n_rows; i++)
                if (counting || in->rows[i].n_runs >= FINDINGS_RUNS_LEAST)
                        a->rows[a->n_rows++] = (uint32_t) i;
        return r;
}

static void answer_deinit(struct answer *a) {
        free(a->values);
        free(a->rows);
        free(a->tests);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                for (size_t j = 0; j < JUDGED_COUNT; j++) {
                        free(a->doubts[i][j].rows);
                        free(a->crossings[i][j].doubt.rows);
                }
        for (size_t j = 0; j < JUDGED_COUNT; j++)
                free(a->without_ratios[j].rows);
        free(a->cut.rows);
        free(a->kneeless.rows);
        free(a->uncounted);
        findings_free(a->out);
}

size_t answer_count_comparisons(struct answer *a) {
        _cleanup_(answer_deinit) struct answer counter = {};
        const size_t n = a->in->n_rows;
        if (n > FINDINGS_NUMBERED_MAX) /* each row with each, by all that they are judged by */
                return n * (n - 1) / 2 * JUDGED_COUNT;
        int r = answer_init(&counter, a->in, true);
        if (r == 0)
                draw_all(&counter);
        if (r == 0)
                r = counter.error;
        if (r < 0 && a->error == 0)
                a->error = r;
        return r < 0 ? 0 : counter.n_counted;
}

int findings_count(const struct findings_input *in, size_t *ret) {
        struct answer a = {.in = in};
        *ret = answer_count_comparisons(&a);
        return a.error;
}

int findings_draw(const struct findings_input *in, struct findings **ret) {
        _cleanup_(answer_deinit) struct answer a = {};
        int r = answer_init(&a, in, false);
        if (r < 0)
                return r;
        draw_all(&a);
        r = a.error < 0 ? a.error : make_comparisons(&a);
        if (r < 0)
                return r;
        a.collecting = false;
        draw_all(&a);
        if (a.error < 0)
                return a.error;
        r = draft_constants(in, &a.out->constants);
        if (r < 0)
                return r;
        a.out->n_tests = a.n_tests;
        *ret = util_steal(&a.out);
        return 0;
}

void findings_free(struct findings *f) {
        for (size_t i = 0; f && i < f->n; i++) {
                free(f->items[i].sentence);
                free(f->items[i].figures);
                free(f->items[i].rows);
                free(f->items[i].run_ids);
        }
        if (f) {
                free(f->items);
                free(f->constants);
        }
        free(f);
}

size_t findings_bytes(const struct findings *f) {
        size_t bytes = sizeof(*f) + f->n * sizeof(*f->items) + strlen(f->constants) + 1;
        for (size_t i = 0; i < f->n; i++)
                bytes += strlen(f->items[i].sentence) + 1 + f->items[i].n_figures * sizeof(struct finding_figure) +
                         f->items[i].n_rows * sizeof(uint32_t) + f->items[i].n_run_ids * sizeof(int64_t);
        return bytes;
}
