/* SPDX-License-Identifier: MIT */

/* See compare.h. */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/statistics/normal.h"
#include "daemon/analysis/statistics/rank.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define RANK_EFFICIENCY                                                                                                \
        (3 / M_PI)      /* of Wilcoxon's tests beside the t test, for normal values; Lehmann, section 2.4              \
                         */
#define SMALL_SAMPLE 2u /* runs more than the approximation gives: see the table in test-compare.c */

/* The difference, in standard errors, that is detected with COMPARE_POWER. */
static double reach(double error) {
        return normal_quantile(1 - error / 2) + normal_quantile(COMPARE_POWER);
}

uint32_t compare_runs_least(bool paired, size_t n_rows) {
        uint32_t n = 2;
        while ((paired ? rank_signed_least_p(n) : rank_sum_least_p(n, n)) * (double) n_rows > COMPARE_ERROR)
                n++;
        return n;
}

static uint32_t runs_of(double n, uint32_t at_least) {
        if (!(n < COMPARE_RUNS_MAX))
                return COMPARE_RUNS_MAX;
        return n > at_least ? (uint32_t) ceil(n) : at_least;
}

uint32_t compare_runs_for(double variation, double difference, bool paired, size_t n_rows) {
        double steps = reach(COMPARE_ERROR / (double) n_rows) * variation / log1p(difference);
        return runs_of(2 * steps * steps / RANK_EFFICIENCY + SMALL_SAMPLE, compare_runs_least(paired, n_rows));
}

/* Logarithms of both sides, and the differences of pairs. */
struct logs {
        double *candidate, *baseline, *pairs; /* pairs: NULL: there are none */
        size_t n, m;
};

static void logs_deinit(struct logs *l) {
        free(l->candidate);
        free(l->baseline);
        free(l->pairs);
}

static int take_logs(const double *values, size_t n, double **ret) {
        double *logs = reallocarray(NULL, n, sizeof(*logs));
        if (!logs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (!(values[i] > 0 && isfinite(values[i]))) {
                        free(logs);
                        return -EDOM;
                }
                logs[i] = log(values[i]);
        }
        *ret = logs;
        return 0;
}

static int logs_init(struct logs *l, const struct compare_row *row) {
        if (row->n_baseline == 0 || row->n_candidate == 0 || (row->paired && row->n_baseline != row->n_candidate))
                return -EINVAL;
        l->n = row->n_candidate;
        l->m = row->n_baseline;
        int r = take_logs(row->candidate, l->n, &l->candidate);
        if (r == 0)
                r = take_logs(row->baseline, l->m, &l->baseline);
        if (r < 0 || !row->paired)
                return r; /* the caller frees */
        l->pairs = reallocarray(NULL, l->n, sizeof(*l->pairs));
        for (size_t i = 0; l->pairs && i < l->n; i++)
                l->pairs[i] = l->candidate[i] - l->baseline[i];
        return l->pairs ? 0 : -ENOMEM;
}

/* The variance of their mean, were they independent. */
static double variance_of_mean(const double *values, size_t n) {
        return n > 1 ? order_variance(values, n, NULL) / (double) n : 0;
}

/* What the dependence of each side's runs makes of the difference's standard error. A block's drift is in both runs of
 * a pair. */
static double widening_of(const struct logs *l) {
        double candidate = variance_of_mean(l->candidate, l->n), baseline = variance_of_mean(l->baseline, l->m);
        double inflated =
                candidate * serial_inflation(l->candidate, l->n) + baseline * serial_inflation(l->baseline, l->m);
        return l->pairs || !(candidate + baseline > 0) ? 1 : sqrt(inflated / (candidate + baseline));
}

static int shift_of(const struct logs *l, double level, double widening, struct rank_shift *ret) {
        int r = l->pairs ? rank_signed_shift(l->pairs, l->n, level, ret)
                         : rank_sum_shift(l->candidate, l->n, l->baseline, l->m, level, ret);
        if (r < 0 || !ret->has_interval || !(widening > 1))
                return r;
        ret->low = ret->estimate - widening * (ret->estimate - ret->low);
        ret->high = ret->estimate + widening * (ret->high - ret->estimate);
        return 0;
}

static uint32_t looks_of(const struct compare_row *row) {
        return row->looks > 1 ? row->looks : 1;
}

/* The error that one of the row's interim analyses may have. */
static double error_of(const struct compare_row *row) {
        return COMPARE_ERROR / looks_of(row);
}

/* Two-sided. The runs of both sides may differ the other way round than most of their pairs do: only a difference in
 * the direction of the pairs counts, which makes no error more likely. */
static int test_of(const struct logs *l, bool by_pairs, double shift, double *ret) {
        struct rank_test t;
        int r = by_pairs ? rank_signed_test(l->pairs, l->n, &t)
                         : rank_sum_test(l->candidate, l->n, l->baseline, l->m, &t);
        if (r < 0)
                return r;
        *ret = by_pairs || !l->pairs ? t.p_two_sided : fmin(1, 2 * (shift < 0 ? t.p_less : t.p_greater));
        return 0;
}

/* The standard error of the ratio's logarithm, from its interval. */
static double standard_error(double low, double high, double level) {
        return (high - low) / 2 / normal_quantile((1 + level) / 2);
}

/* The p of a shift whose interval is widened: by its distance from none in standard errors, as an exact test of so few
 * runs gives no smaller p however far apart they are; without an interval, by the distance that p stands for. */
static double widened_p(const struct rank_shift *s, double p, double widening) {
        double distance = s->has_interval ? fabs(s->estimate) / standard_error(s->low, s->high, s->level)
                                          : -normal_quantile(p / 2) / widening;
        return erfc(distance / M_SQRT2);
}

static int compare_row(const struct compare_row *row, size_t n_tests, struct comparison *ret) {
        _cleanup_(logs_deinit) struct logs logs = {0};
        struct rank_shift shift, narrow;
        double p = 1;
        bool by_pairs = row->paired && row->n_baseline >= compare_runs_least(true, n_tests);
        int r = logs_init(&logs, row);
        if (r < 0)
                return r;
        double widening = widening_of(&logs);
        r = shift_of(&logs, 1 - COMPARE_ERROR, widening, &shift);
        if (r == 0)
                r = test_of(&logs, by_pairs, shift.estimate, &p);
        if (r == 0)
                r = shift_of(&logs, 1 - 2 * error_of(row), widening, &narrow);
        if (r < 0)
                return r;
        *ret = (struct comparison){
                .ratio = exp(shift.estimate),
                .has_interval = shift.has_interval,
                .low = shift.has_interval ? exp(shift.low) : 0,
                .high = shift.has_interval ? exp(shift.high) : 0,
                .level = shift.level,
                .has_equivalence = narrow.has_interval,
                .equivalence_low = narrow.has_interval ? exp(narrow.low) : 0,
                .equivalence_high = narrow.has_interval ? exp(narrow.high) : 0,
                .equivalence_level = narrow.level,
                .widening = widening,
                .baseline_unjudged = !row->paired && row->n_baseline < SERIAL_RUNS_LEAST,
                .candidate_unjudged = !row->paired && row->n_candidate < SERIAL_RUNS_LEAST,
                .by_runs = row->paired && !by_pairs,
                .runs_most = row->runs_most ? row->runs_most : comparison_runs_most(row->paired),
                .p = widening > 1 ? fmax(p, widened_p(&shift, p, widening)) : p,
        };
        return 0;
}

/* That of the rank-sum test of a paired row, which has what the pairs share in it. */
static int error_by_runs(const struct compare_row *row, double *ret) {
        _cleanup_(logs_deinit) struct logs logs = {0};
        struct rank_shift shift;
        int r = logs_init(&logs, row);
        if (r == 0)
                r = rank_sum_shift(logs.candidate, logs.n, logs.baseline, logs.m, 1 - COMPARE_ERROR, &shift);
        if (r == 0)
                *ret = shift.has_interval ? standard_error(shift.low, shift.high, shift.level) : INFINITY;
        return r;
}

/* Runs of a side that detect the difference: its distance from none is measured in standard errors, which shrink with
 * the root of the runs. Where it would have been seen by these, and it was not, a few runs are far off, which the
 * test counts and the interval does not: p has the distance then. Of pairs the rank-sum test may decide before there
 * are enough for their own. */
static uint32_t runs_to_detect(const struct comparison *c, size_t n, size_t n_tests, bool paired, double own,
                               double by_runs) {
        const double error = COMPARE_ERROR / (double) n_tests, steps = reach(error), shift = fabs(log(c->ratio));
        const uint32_t least = compare_runs_least(false, n_tests), least_pairs = compare_runs_least(paired, n_tests),
                       more = (uint32_t) n + 1;
        double needed = shift > 0 ? steps * own / shift : INFINITY;
        double needed_by_runs = shift > 0 ? steps * by_runs / shift : INFINITY;
        double *tested = c->by_runs ? &needed_by_runs : &needed;
        if (n >= least && *tested <= 1)
                *tested = steps / -normal_quantile(c->p / 2);
        uint32_t detected = runs_of((double) n * needed * needed, more > least_pairs ? more : least_pairs);
        uint32_t early = runs_of((double) n * needed_by_runs * needed_by_runs, more > least ? more : least);
        return early < least_pairs && early < detected ? early : detected;
}

/* Two outcomes decide: the difference is detected, or the interval shrinks to within the margin. */
static int plan_row(const struct compare_row *row, const struct compare_rule *rule, size_t n_tests,
                    struct comparison *c) {
        size_t n = row->n_baseline < row->n_candidate ? row->n_baseline : row->n_candidate;
        double error = COMPARE_ERROR / (double) n_tests, margin = rule->margin;
        uint32_t least = compare_runs_least(false, n_tests);
        if (!c->has_interval) {
                c->runs_needed = least;
                return 0;
        }
        double own = standard_error(log(c->low), log(c->high), c->level), by_runs = own, shift = log(c->ratio);
        int r = row->paired ? error_by_runs(row, &by_runs) : 0;
        if (r < 0)
                return r;
        if (n >= least && isfinite(by_runs)) { /* one as great as that which was not seen would not have been */
                c->has_visible = true;
                c->visible = expm1(fmax(reach(error) * (c->by_runs ? by_runs : own), fabs(shift)));
        }
        double room = shift > 0 ? log1p(margin) - shift : shift - log1p(-margin);
        double to_agree = room > 0 ? reach(2 * error_of(row)) * own / room : INFINITY;
        uint32_t agreed = runs_of((double) n * to_agree * to_agree, (uint32_t) n + 1);
        uint32_t detected = runs_to_detect(c, n, n_tests, row->paired, own, by_runs);
        c->runs_needed = agreed < detected ? agreed : detected;
        return 0;
}

static int settle_row(const struct compare_row *row, const struct compare_rule *rule, size_t n_tests,
                      struct comparison *c) {
        const bool has_one = c->has_interval && c->low < 1 && c->high > 1; /* the test may be another than its own */
        c->differs = c->p_adjusted <= COMPARE_ERROR && !has_one;
        if (c->has_equivalence && c->equivalence_low >= 1 - rule->margin && c->equivalence_high <= 1 + rule->margin) {
                c->verdict = COMPARE_EQUIVALENT;
        } else if (c->differs && c->ratio != 1) {
                c->verdict = (c->ratio < 1) == row->less_is_faster ? COMPARE_FASTER : COMPARE_SLOWER;
        } else {
                c->verdict = COMPARE_UNDECIDED;
                int r = plan_row(row, rule, n_tests, c);
                c->out_of_reach = c->runs_needed > c->runs_most;
                if (row->paired && c->runs_needed < COMPARE_RUNS_MAX - row->n_alone)
                        c->runs_needed += row->n_alone;
                return r;
        }
        return 0;
}

bool compare_find_block(const uint32_t *blocks, size_t stride, size_t n, uint32_t block, size_t *at) {
        for (size_t i = 0; block > 0 && i < n; i++) {
                size_t k = (*at + i) % n;
                uint32_t here;
                memcpy(&here, (const char *) blocks + k * stride, sizeof(here));
                if (here == block) {
                        *at = k;
                        return true;
                }
        }
        return false;
}

int compare_rows(const struct compare_row *rows, size_t n_rows, const struct compare_rule *rule,
                 struct comparison *ret) {
        if (!(rule->margin > 0 && rule->margin < 1))
                return -EINVAL;
        if (n_rows == 0)
                return 0;
        _cleanup_free_ struct comparison *all = calloc(n_rows, sizeof(*all));
        _cleanup_free_ double *p = reallocarray(NULL, n_rows, sizeof(*p));
        _cleanup_free_ uint32_t *looks = reallocarray(NULL, n_rows, sizeof(*looks));
        size_t n_tests = 0;
        if (!all || !p || !looks)
                return -ENOMEM;
        for (size_t i = 0; i < n_rows; i++)
                n_tests += looks[i] = looks_of(&rows[i]);
        for (size_t i = 0; i < n_rows; i++) {
                int r = compare_row(&rows[i], n_tests, &all[i]);
                if (r < 0)
                        return r;
                p[i] = all[i].p;
        }
        int r = multiple_adjust(rule->correction, p, looks, n_rows, p);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n_rows; i++) {
                all[i].p_adjusted = p[i];
                r = settle_row(&rows[i], rule, n_tests, &all[i]);
                if (r < 0)
                        return r;
        }
        memcpy(ret, all, n_rows * sizeof(*all));
        return 0;
}

struct comparison compare_turned(const struct comparison *c) {
        struct comparison t = *c;
        t.ratio = 1 / c->ratio;
        t.low = c->has_interval ? 1 / c->high : 0;
        t.high = c->has_interval ? 1 / c->low : 0;
        t.baseline_unjudged = c->candidate_unjudged;
        t.candidate_unjudged = c->baseline_unjudged;
        t.equivalence_low = c->has_equivalence ? 1 / c->equivalence_high : 0;
        t.equivalence_high = c->has_equivalence ? 1 / c->equivalence_low : 0;
        if (c->verdict == COMPARE_FASTER || c->verdict == COMPARE_SLOWER)
                t.verdict = c->verdict == COMPARE_FASTER ? COMPARE_SLOWER : COMPARE_FASTER;
        return t;
}
