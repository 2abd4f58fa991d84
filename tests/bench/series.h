/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_SERIES_H
#define IPCLAB_TESTS_SERIES_H

/*
 * What rounds amount to: medians, the ratio of two with its interval, and what may be said of it beside a limit. Pure
 * arithmetic; the bench measures, this judges.
 */

#include <stdbool.h>

#define SERIES_MAX 999u
#define RATIO_INTERVAL_FROM 6u /* with fewer rounds no interval is claimed */

struct series {
        double values[SERIES_MAX];
        unsigned n;
};

struct ratio {
        double value;
        bool has_interval;
        double low, high; /* of 95 % */
};

enum verdict {
        VERDICT_REACHED, /* the whole interval is at least the limit */
        VERDICT_HOLDS,   /* not told apart: no interval, or one with the limit in it; the ratio itself holds it */
        VERDICT_MISSES,  /* the same, and the ratio itself misses it */
        VERDICT_BELOW,   /* the whole interval is below */
        VERDICT_COUNT,
};

/* Of n >= 1 values, in any order. */
double series_median(const struct series *s);
double series_min(const struct series *s);
double series_max(const struct series *s);

/* median(of) / median(to), the two being as long: values at the same place were measured side by side. The interval is
 * a percentile bootstrap that draws such pairs, so that what disturbed both is in both; from a fixed seed, so that the
 * same series always say the same. Source: Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13. */
struct ratio series_ratio(const struct series *of, const struct series *to);

/* The rule of verdict.py, too. */
enum verdict ratio_verdict(const struct ratio *r, double limit);

/* Whether the interval is at most `half_width` to either side of its middle. Looks at nothing else: see compare.c. */
bool ratio_settled(const struct ratio *r, double half_width);

#endif
