/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_ORDER_H
#define IPCLAB_DAEMON_ANALYSIS_ORDER_H

/*
 * Order statistics: quantiles, their intervals, and the summary of a point's repetitions. Nothing here assumes a
 * distribution, and every value that is shown was measured.
 *
 * The quantile p of n values is the smallest of them that at least the fraction p of all do not exceed, x(ceil(n p)):
 * the inverse of their distribution function, type 1 of Hyndman and Fan, "Sample Quantiles in Statistical Packages",
 * The American Statistician 50 (1996); R's quantile(type = 1), numpy's method="inverted_cdf". So the median of an even
 * number of runs is the lower of the two in the middle: the mean of two percentiles is the percentile of nothing.
 *
 * The interval of a quantile is [x(l), x(u)] with l and u from the binomial distribution, at most half of
 * 1 - level beyond either end. Its true level depends on n and p alone and is reported beside it: 0.992 for the median
 * of 8 values at a requested 0.95. Source: Conover, Practical Nonparametric Statistics, ch. 3.2.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RANK_MAX 200u    /* values that ranks or the means of all pairs are made of (rank.h) */
#define ORDER_LEVEL 0.95 /* of the interval of a row of results */

/* The summary of a point's repetitions; n = 0: there are none, and all else is meaningless. */
struct statistic {
        uint32_t n;
        double median, min, max;
        bool has_ci95; /* from 6 values on: with fewer, even [min, max] covers less than 95 % */
        double ci95_low, ci95_high;
        double level;       /* the true one of that interval, at least ORDER_LEVEL; 0 without */
        double widening;    /* how many times as wide as of independent values the interval is, or would be; 0: whether
                               they are independent is not known (serial.h) */
        bool has_variation; /* from 2 values on, whose mean is not 0 */
        double variation;   /* their standard deviation over their mean: the coefficient of variation */
        bool has_hodges_lehmann; /* up to RANK_MAX values */
        double hodges_lehmann;   /* the median of the means of all pairs, each value's with itself included */
};

struct order_interval {
        bool has_interval;          /* else no two of the values reach the level, and all else is 0 */
        size_t low_rank, high_rank; /* from 1 */
        double low, high;
        double level;
};

/* The sample variance, and the mean unless ret_mean is NULL; 0 of fewer than two values. */
double order_variance(const double *values, size_t n, double *ret_mean);

/* Ascending. */
void order_sort(double *values, size_t n);

/* The quantile p of n >= 1 sorted values; 0 <= p <= 1. */
double order_quantile(const double *sorted, size_t n, double p);

/* The median of n >= 1 sorted values, which may be infinite: the mean of the two in the middle where n is even. For
 * estimates that are defined so (Hodges and Lehmann's) and ratios, never for figures of runs. */
double order_middle(const double *sorted, size_t n);

/* 0 < p < 1, 0 < level < 1. -EINVAL: n is 0, or p or the level is out of its range. */
int order_interval(const double *sorted, size_t n, double p, double level, struct order_interval *ret);

/* Summarizes n values in any order, which are copied. -EINVAL: one is not finite; -ENOMEM. */
int order_summarize(const double *values, size_t n, struct statistic *ret);

#endif
