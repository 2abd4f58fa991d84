/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_LEVELS_H
#define IPCLAB_DAEMON_ANALYSIS_LEVELS_H

/*
 * Finds the source of a point's scatter: from run to run, or from second to second within a run; and from it the plan
 * with the smallest error in the same time: how many runs of how many seconds. Where runs differ more than their
 * seconds do, a longer run improves the estimate of that run and not of the next. Source: Kalibera and Jones, "Rigorous
 * Benchmarking in Reasonable Time", ISMM 2013, sections 6 and 8 (two levels); Searle, Casella and McCulloch, Variance
 * Components, section 3.6 (unbiased estimates for runs of unlike length).
 */

#include <stddef.h>
#include <stdint.h>

struct levels {
        double mean;    /* of the runs' means */
        double between; /* variance from run to run, beyond what the seconds explain; 0 where they explain all */
        double within;  /* variance of the seconds within a run */
        size_t n_runs, n_values;
};

/* values has the runs' values one run after the other, lengths[i] >= 2 of the i-th; n_runs >= 2. -EINVAL: fewer, or a
 * value that is not finite. */
int levels_of(const double *values, const size_t *lengths, size_t n_runs, struct levels *ret);

/* The relative standard error of the mean of `runs` runs, each with a window of `seconds_per_run`. */
double levels_error(const struct levels *l, double runs, double seconds_per_run);

struct levels_budget {
        double seconds;          /* in all */
        double overhead_seconds; /* of each run beside its window: its start and warm-up */
        uint32_t runs_min;       /* >= 2 */
        uint32_t window_max;     /* seconds; the longest window */
};

struct levels_plan {
        uint32_t runs;
        uint32_t seconds_per_run; /* of the window, >= 1 */
        double relative_error;    /* as of levels_error() */
};

/* The plan with the smallest error in a budget. -EINVAL: mean 0, or a member of the budget that is out of range;
 * -ERANGE: not even runs_min runs of one second fit in. */
int levels_plan(const struct levels *l, const struct levels_budget *b, struct levels_plan *ret);

#endif
