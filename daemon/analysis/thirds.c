/* SPDX-License-Identifier: MIT */

/* See thirds.h. Called for the runner's verdict on a finished run. */

#include "daemon/analysis/thirds.h"

#include <math.h>
#include <stdbool.h>

#define THIRDS_FROM 6 /* a third of two has a scatter of its own */

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
