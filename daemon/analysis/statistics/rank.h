/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_RANK_H
#define IPCLAB_DAEMON_ANALYSIS_RANK_H

/*
 * Two samples, paired or not: exact rank tests and the shift between them with its exact interval. No distribution is
 * assumed and no random number drawn.
 *
 * Tests are exact for up to RANK_MAX values a side, with ties too: their null distribution is that of the midranks
 * that the values have (all assignments of these to the two sides, or of signs, are as likely), not that of ranks
 * without ties. Sources: Lehmann, Nonparametrics (1975), ch. 1 and 3; Streitberg and Röhmel, "Exact Distributions for
 * Permutation and Rank Tests", Statistical Software Newsletter 12 (1986).
 *
 * The interval of a shift lies between two order statistics of the differences (Moses) or of the Walsh averages
 * (Tukey), which the null distribution without ties chooses. Where values are tied it covers at least as often as its
 * level. Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods (3rd ed.),
 * ch. 3.2, 3.3, 4.2, 4.3.
 *
 * All functions: -EINVAL: a side is empty or a value not finite; -E2BIG: a side has more than RANK_MAX; -ENOMEM. The
 * cost of a call grows with the product of the sides, and with ties with the square of that: two of 60 tied take 2 MB
 * and 10 ms, two of 200 tied 64 MB and a second or two at worst; without ties 640 kB and 0.1 s at most.
 */

#include "daemon/analysis/statistics/order.h"

#include <stdbool.h>
#include <stddef.h>

struct rank_test {
        double statistic; /* pairs with x > y, ties counting half (Mann and Whitney's U); or the positive ranks' sum (V)
                           */
        double p_less;    /* of a statistic as small or smaller, when there is no difference */
        double p_greater; /* as great or greater */
        double p_two_sided; /* twice the smaller of these, at most 1 */
        size_t n_used;      /* values; of signed ranks, differences other than 0 */
};

/* n values of x and m of y (Wilcoxon, Mann and Whitney). */
int rank_sum_test(const double *x, size_t n, const double *y, size_t m, struct rank_test *ret);

/* n differences (Wilcoxon); those that are 0 are left out. All 0: V is 0 and every p is 1. */
int rank_signed_test(const double *differences, size_t n, struct rank_test *ret);

struct rank_shift {
        double estimate;   /* Hodges and Lehmann's: the median of the differences, or of the Walsh averages */
        bool has_interval; /* else there are too few values for the level, and low, high and level are 0 */
        double low, high;
        double level; /* the true one, at least the requested */
};

/* How much greater x is than y. 0 < level < 1, else -EINVAL. */
int rank_sum_shift(const double *x, size_t n, const double *y, size_t m, double level, struct rank_shift *ret);
/* The centre of the n differences. */
int rank_signed_shift(const double *differences, size_t n, double level, struct rank_shift *ret);

/* The smallest two-sided p that these tests can give without ties: that of n pairs, or of n and m values. */
double rank_signed_least_p(size_t n);
double rank_sum_least_p(size_t n, size_t m);

#endif
