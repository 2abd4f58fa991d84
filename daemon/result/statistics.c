/* SPDX-License-Identifier: MIT */

/*
 * Order statistics over repetitions, and the question whether a series has settled. Called by the results table and
 * by the runner's verdict on a finished run.
 */

#include "daemon/result/statistics.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define INTERVAL_FROM 6 /* with fewer, even [min, max] covers less than 95 % */
#define TAIL 0.025
#define THIRDS_FROM 6 /* a third of two has a scatter of its own */

static int compare_doubles(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

static double median_of_sorted(const double *v, size_t n) {
        return n % 2 ? v[n / 2] : v[n / 2 - 1] + (v[n / 2] - v[n / 2 - 1]) / 2;
}

/* The largest k with P(B <= k - 1) <= 0.025 for B binomial(n, 1/2): [x(k), x(n + 1 - k)] covers the median with at
 * least 95 %, whatever the distribution. In logarithms, as 2^-n underflows from n = 1075 on. */
static size_t interval_rank(size_t n) {
        double cumulative = 0, log_term = -(double) n * M_LN2; /* of C(n, i) / 2^n, from i = 0 */
        for (size_t i = 0; i <= n / 2; i++) {
                cumulative += exp(log_term);
                if (cumulative > TAIL)
                        return i;
                log_term += log((double) (n - i) / (double) (i + 1));
        }
        return 0;
}

int statistic_of(const double *values, size_t n, struct statistic *ret) {
        struct statistic s = {0};
        if (n == 0) {
                *ret = s;
                return 0;
        }
        _cleanup_free_ double *sorted = reallocarray(NULL, n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        memcpy(sorted, values, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), compare_doubles);

        s.n = (uint32_t) n;
        s.median = median_of_sorted(sorted, n);
        s.min = sorted[0];
        s.max = sorted[n - 1];
        size_t k = n >= INTERVAL_FROM ? interval_rank(n) : 0;
        if (k > 0) {
                s.has_ci95 = true;
                s.ci95_low = sorted[k - 1];
                s.ci95_high = sorted[n - k];
        }
        *ret = s;
        return 0;
}

static double mean_of(const double *v, size_t n) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
                sum += v[i];
        return sum / (double) n;
}

static double squares_of(const double *v, size_t n, double mean) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
                sum += (v[i] - mean) * (v[i] - mean);
        return sum;
}

/* Two sides of 95 %, by degrees of freedom from 1 on, of which a short series has two less than values. */
static const double student_t[] = {12.706, 4.303, 3.182};

/* Whether the slope of the straight line that fits best is more than scatter about it makes. */
static bool has_trend(const double *v, size_t n) {
        double middle = (double) (n - 1) / 2, mean = mean_of(v, n), spread = 0, together = 0;
        for (size_t i = 0; i < n; i++) {
                double at = (double) i - middle;
                spread += at * at;
                together += at * (v[i] - mean);
        }
        double slope = together / spread;
        double left = fmax(squares_of(v, n, mean) - slope * together, 0); /* below 0 by rounding only */
        return fabs(slope) * sqrt(spread) > student_t[n - 3] * sqrt(left / (double) (n - 2));
}

/* Whether the first is farther from the others than one more of them would be: it was not yet what they are. */
static bool begins_apart(const double *v, size_t n) {
        double mean = mean_of(v + 1, n - 1);
        double scatter = sqrt(squares_of(v + 1, n - 1, mean) / (double) (n - 2));
        return fabs(v[0] - mean) > student_t[n - 3] * scatter * sqrt(1 + 1 / (double) (n - 1));
}

static enum series_verdict judge_short(const double *v, size_t n, double tolerance, bool alike) {
        double mean = mean_of(v, n), scatter = sqrt(squares_of(v, n, mean) / (double) (n - 1));
        if (alike)
                return scatter <= tolerance * fabs(mean) ? SERIES_STEADY : SERIES_UNCLEAR;
        return has_trend(v, n) || begins_apart(v, n) ? SERIES_UNSTEADY : SERIES_UNCLEAR;
}

enum series_verdict series_judge(const double *values, size_t n, double tolerance) {
        if (n < SERIES_JUDGED_FROM)
                return SERIES_TOO_SHORT;
        size_t third = n / 3;
        const double *last = values + n - third;
        double first_mean = mean_of(values, third), last_mean = mean_of(last, third);
        double difference = fabs(last_mean - first_mean);
        bool alike = difference <= tolerance * fmax(fabs(first_mean), fabs(last_mean));
        if (n < THIRDS_FROM)
                return judge_short(values, n, tolerance, alike);
        if (alike)
                return SERIES_STEADY;
        double squares = squares_of(values, third, first_mean) + squares_of(last, third, last_mean);
        double scatter = sqrt(squares / (double) (2 * third - 2)); /* pooled standard deviation within the thirds */
        return difference <= scatter ? SERIES_STEADY : SERIES_UNSTEADY;
}
