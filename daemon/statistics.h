/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STATISTICS_H
#define IPCLAB_DAEMON_STATISTICS_H

/*
 * What repetitions amount to. Medians and order statistics only; nothing here assumes a distribution.
 */

#include "daemon/records.h"

/* Median, min, max of n values (any order; they are copied); the 95 % interval for the median from order statistics
 * (binomial) from 6 values on. Source: Conover, Practical Nonparametric Statistics, ch. 3.2. -ENOMEM. */
int statistic_of(const double *values, size_t n, struct statistic *ret);

/* Whether a per-second series (messages per second, in order) has reached a steady state: false when its first and last
 * thirds differ by more than `tolerance` and by more than the scatter within them. Series shorter than 6 are not
 * judged: true. */
bool series_is_steady(const double *values, size_t n, double tolerance);

#endif
