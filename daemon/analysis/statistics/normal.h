/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_NORMAL_H
#define IPCLAB_DAEMON_ANALYSIS_NORMAL_H

/*
 * Quantiles of the standard normal distribution, for plans only ("how many runs would it take"): no verdict and no
 * interval rests on them.
 */

/* 0 < p < 1; to 1e-12. */
double normal_quantile(double p);

#endif
