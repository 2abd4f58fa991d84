/* SPDX-License-Identifier: MIT */

/* See order.h. Called for every figure of the results table, and by other code that sorts or takes a median. */

#include "daemon/analysis/statistics/order.h"
#include "schema/util.h"

#include <errno.h>
#include <float.h>
#include <math.h>

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

void order_sort(double *values, size_t n) {
        if (n > 1)
                qsort(values, n, sizeof(*values), by_value);
}

double order_quantile(const double *sorted, size_t n, double p) {
        double rank = ceil((double) n * p * (1 - 4 * DBL_EPSILON)); /* 100 × 0.07 is more than 7 in doubles */
        return sorted[rank < 1 ? 0 : (size_t) rank - 1];
}

double order_middle(const double *sorted, size_t n) {
        double low = sorted[(n - 1) / 2], high = sorted[n / 2];
        return low == high ? low
                           : low + (high - low) / 2; /* the sum might overflow, and infinities have no difference */
}

/* The largest k with P(B <= k - 1) <= tail, for B binomial(n, p), and that probability; 0 where even P(B = 0) is more.
 * In logarithms, as 2^-n underflows from n = 1075 on. */
static size_t tail_rank(size_t n, double p, double tail, double *ret_probability) {
        long double at_most = 0, log_term = (long double) n * log1pl(-(long double) p);
        long double log_odds = logl((long double) p) - log1pl(-(long double) p);
        for (size_t k = 0; k < n; k++) {
                long double term = expl(log_term);
                if (at_most + term > (long double) tail) {
                        *ret_probability = (double) at_most;
                        return k;
                }
                at_most += term;
                log_term += logl((long double) (n - k) / (long double) (k + 1)) + log_odds;
        }
        *ret_probability = (double) at_most;
        return n;
}

int order_interval(const double *sorted, size_t n, double p, double level, struct order_interval *ret) {
        if (n == 0 || !(p > 0 && p < 1) || !(level > 0 && level < 1))
                return -EINVAL;
        double below, above;
        size_t low = tail_rank(n, p, (1 - level) / 2, &below);
        size_t high = tail_rank(n, 1 - p, (1 - level) / 2, &above); /* counted from the other end */
        if (low == 0 || high == 0) {
                *ret = (struct order_interval){0};
                return 0;
        }
        *ret = (struct order_interval){
                .has_interval = true,
                .low_rank = low,
                .high_rank = n + 1 - high,
                .low = sorted[low - 1],
                .high = sorted[n - high],
                .level = 1 - below - above,
        };
        return 0;
}

static void put_variation(const double *values, size_t n, struct statistic *s) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < n; i++)
                mean += values[i] / (double) n;
        for (size_t i = 0; i < n; i++)
                squares += (values[i] - mean) * (values[i] - mean);
        double variation = n >= 2 && fabs(mean) > 0 ? sqrt(squares / (double) (n - 1)) / fabs(mean) : NAN;
        s->has_variation = isfinite(variation);
        s->variation = s->has_variation ? variation : 0;
}

/* Computes the estimate of rank_signed_shift(), without its interval. */
static int put_hodges_lehmann(const double *values, size_t n, struct statistic *s) {
        if (n > RANK_MAX)
                return 0;
        size_t k = 0;
        _cleanup_free_ double *walsh = reallocarray(NULL, n * (n + 1) / 2, sizeof(*walsh));
        if (!walsh)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                for (size_t j = i; j < n; j++)
                        walsh[k++] = values[i] / 2 + values[j] / 2;
        order_sort(walsh, k);
        s->has_hodges_lehmann = true;
        s->hodges_lehmann = order_middle(walsh, k);
        return 0;
}

int order_summarize(const double *values, size_t n, struct statistic *ret) {
        if (n == 0) {
                *ret = (struct statistic){0};
                return 0;
        }
        _cleanup_free_ double *sorted = reallocarray(NULL, n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (!isfinite(values[i]))
                        return -EINVAL;
                sorted[i] = values[i];
        }
        order_sort(sorted, n);

        struct order_interval ci95;
        int r = order_interval(sorted, n, 0.5, ORDER_LEVEL, &ci95);
        if (r < 0)
                return r;
        struct statistic s = {
                .n = (uint32_t) n,
                .median = order_quantile(sorted, n, 0.5),
                .min = sorted[0],
                .max = sorted[n - 1],
                .has_ci95 = ci95.has_interval,
                .ci95_low = ci95.low,
                .ci95_high = ci95.high,
                .level = ci95.level,
        };
        put_variation(sorted, n, &s);
        r = put_hodges_lehmann(sorted, n, &s);
        if (r == 0)
                *ret = s;
        return r;
}

double order_variance(const double *values, size_t n, double *ret_mean) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < n; i++)
                mean += values[i] / (double) n;
        for (size_t i = 0; i < n; i++)
                squares += (values[i] - mean) * (values[i] - mean);
        if (ret_mean)
                *ret_mean = mean;
        return n > 1 ? squares / (double) (n - 1) : 0;
}
