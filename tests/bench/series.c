/* SPDX-License-Identifier: MIT */

/* Medians and the bootstrap; see series.h. */

#include "tests/bench/series.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 2000u
#define TAIL (RESAMPLES / 40) /* 2.5 % */
#define SEED UINT64_C(20260117)

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

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t draw(uint64_t *state) {
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        return z ^ (z >> 31);
}

static double resampled_ratio(const struct series *of, const struct series *to, uint64_t *state) {
        double a[SERIES_MAX], b[SERIES_MAX];
        for (unsigned i = 0; i < of->n; i++) {
                unsigned at = (unsigned) ((draw(state) >> 32) * of->n >> 32);
                a[i] = of->values[at];
                b[i] = to->values[at];
        }
        return median_of(a, of->n) / median_of(b, of->n);
}

struct ratio series_ratio(const struct series *of, const struct series *to) {
        struct ratio r = {.value = series_median(of) / series_median(to)};
        double ratios[RESAMPLES];
        uint64_t state = SEED;
        if (of->n < RATIO_INTERVAL_FROM)
                return r;
        for (unsigned i = 0; i < RESAMPLES; i++)
                ratios[i] = resampled_ratio(of, to, &state);
        qsort(ratios, RESAMPLES, sizeof ratios[0], by_value);
        r.has_interval = true;
        r.low = ratios[TAIL];
        r.high = ratios[RESAMPLES - 1 - TAIL];
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
