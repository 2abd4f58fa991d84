/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_SERIES_H
#define IPCLAB_TESTS_SERIES_H

/*
 * What rounds amount to: medians, the ratio of two contenders with its interval, and its verdict beside a limit. Pure
 * arithmetic; the bench measures, this judges.
 */

#include <stdbool.h>

#define SERIES_MAX 999u

struct series {
        double values[SERIES_MAX];
        unsigned n;
};

struct ratio {
        double value;
        bool has_interval; /* from six rounds on */
        double low, high;  /* of 95 % */
};

enum verdict {
        VERDICT_REACHED, /* the whole interval is at least the limit */
        VERDICT_HOLDS,   /* undecided: no interval, or one with the limit in it; the ratio itself holds it */
        VERDICT_MISSES,  /* the same, and the ratio itself misses it */
        VERDICT_BELOW,   /* the whole interval is below */
        VERDICT_COUNT,
};

/* The median of n >= 1 values, in any order. */
double series_median(const struct series *s);
double series_min(const struct series *s);
double series_max(const struct series *s);

/* The two are as long, and values at the same place were measured one right after the other: each such round has a
 * ratio of its own, and the value is their median. What changes the machine for longer than a round changes both sides
 * of it: under a hypervisor that moves them, two virtual CPUs are at one time a core's own siblings and at another a
 * fourteenth as fast to hand a cache line over, for seconds each. The interval is the distribution-free one of a
 * median, between two of the ratios, as in verdict.py. Source: the sign test turned round; Conover, Practical
 * Nonparametric Statistics, section 3.2. */
struct ratio series_ratio(const struct series *of, const struct series *to);

/* The rule of verdict.py, too. */
enum verdict ratio_verdict(const struct ratio *r, double limit);

/* Whether the interval is at most `half_width` to either side of its middle. Looks at nothing else: see compare.c. */
bool ratio_settled(const struct ratio *r, double half_width);

#endif
