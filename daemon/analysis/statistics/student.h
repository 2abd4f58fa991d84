/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_STUDENT_H
#define IPCLAB_DAEMON_ANALYSIS_STUDENT_H

/*
 * Quantiles of Student's t distribution, for the error of a fitted law alone (fit.h): runs are compared by ranks, but
 * the residuals of the five or seven sizes that a law was fitted to are too few for an interval by order.
 */

/* 0.5 < p < 1; degrees of freedom from 1 on. To 1e-9 of the value. */
double student_quantile(double p, unsigned degrees);

#endif
