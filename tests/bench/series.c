/* SPDX-License-Identifier: MIT */

/* Medians and the sign test; see series.h. */

#include "tests/bench/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

/* Sorts them. */
static double median_of(double *values, unsigned n) {
        qsort(values, n, sizeof values[0], by_value);
        return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double series_median(const struct series *s) {
        double values[SERIES_MAX];
        memcpy(values, s->values, s->n * sizeof values[0]);
        return median_of(values, s->n);
}

double series_min(const struct series *s) {
        double v = s->values[0];
        for (unsigned i = 1; i < s->n; i++)
                v = s->values[i] < v ? s->values[i] : v;
        return v;
}

double series_max(const struct series *s) {
        double v = s->values[0];
        for (unsigned i = 1; i < s->n; i++)
                v = s->values[i] > v ? s->values[i] : v;
        return v;
}

/* How many of n ratios, in order, lie up to either end of the interval: as many as there can be while at most 2.5 % of
 * all series have no more than that many, less one, below their median. 0: n is too few. */
static unsigned ends_at(unsigned n) {
        double exactly = ldexp(1, -(int) n), at_most = exactly; /* k of n below the median: binomial, of one half */
        unsigned k = 0;
        for (; 2 * at_most <= 0.05; k++) {
                exactly *= (double) (n - k) / (k + 1);
                at_most += exactly;
        }
        return k;
}

static double ratio_of(double of, double to) {
        return to > 0 ? of / to : of > 0 ? INFINITY : 1; /* neither has moved anything: alike */
}

struct ratio series_ratio(const struct series *of, const struct series *to) {
        double ratios[SERIES_MAX];
        for (unsigned i = 0; i < of->n; i++)
                ratios[i] = ratio_of(of->values[i], to->values[i]);
        struct ratio r = {.value = median_of(ratios, of->n)}; /* which has sorted them */
        unsigned end = ends_at(of->n);
        if (end == 0)
                return r;
        r.has_interval = true;
        r.low = ratios[end - 1];
        r.high = ratios[of->n - end];
        return r;
}

enum verdict ratio_verdict(const struct ratio *r, double limit) {
        if (r->has_interval && r->low >= limit)
                return VERDICT_REACHED;
        if (r->has_interval && r->high < limit)
                return VERDICT_BELOW;
        return r->value >= limit ? VERDICT_HOLDS : VERDICT_MISSES;
}

bool ratio_settled(const struct ratio *r, double half_width) {
        return r->has_interval && r->high - r->low <= 2 * half_width;
}
