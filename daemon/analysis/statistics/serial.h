/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_SERIAL_H
#define IPCLAB_DAEMON_ANALYSIS_SERIAL_H

/*
 * Whether a row's runs depend on those before them, and what that makes of the interval of their median. Consecutive
 * runs of a machine whose state wanders are alike: fewer of them add something new than there are, and an interval that
 * counts them all covers the moment in which they were measured, not the machine.
 *
 * The lag-1 autocorrelation of n values is too low by about (1 + 4 r) / n (Kendall, Biometrika 41 (1954); Marriott and
 * Pope, the same volume), so that (n r + 1) / (n - 4) stands for it. Of first-order autoregressive values,
 * n (1 - r) / (1 + r) independent ones have a mean of the same variance (Bartlett, JRSS 98 (1935)). The interval of the
 * median is taken at the level that makes it wider by the root of that ratio, by the same order statistics (order.h):
 * without correlation it is the same interval.
 */

#include "daemon/analysis/statistics/order.h"

#define SERIAL_RUNS_LEAST 12 /* with fewer the estimate is worth little: see the table of test-serial.c */
#define SERIAL_MAX 0.9       /* no more is estimated from so few values */

struct serial {
        bool known;                     /* else there are fewer runs than SERIAL_RUNS_LEAST, or they are all equal */
        double correlation;             /* of a run with the next, as measured: -1 … 1 */
        double corrected;               /* without its bias: 0 … SERIAL_MAX */
        double effective_runs;          /* independent ones that would determine the median as well */
        bool material;                  /* not to be expected of independent runs: above 95 % of what such have */
        struct order_interval interval; /* of the median; its level, ORDER_LEVEL at least, is with this correlation */
};

/* n values in their order in time. -EINVAL: one is not finite; -ENOMEM. */
int serial_judge(const double *values, size_t n, struct serial *ret);

/* order_summarize() of values in their order in time, whose interval is that of serial_judge() where the correlation is
 * material, and widening is how much wider that is. ret_serial may be NULL. Errors as of both. */
int serial_summarize(const double *values, size_t n, struct statistic *ret, struct serial *ret_serial);

/* How many times as large the variance of their mean is as that of independent values; 1 where the correlation is not
 * material or not known. All are finite. */
double serial_inflation(const double *values, size_t n);

#endif
