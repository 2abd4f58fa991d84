/* SPDX-License-Identifier: MIT */

/* See levels.h. */

#include "daemon/analysis/statistics/levels.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

static double mean_of(const double *values, size_t n) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
                sum += (values[i] - values[0]) / (double) n;
        return values[0] + sum;
}

static bool all_finite(const double *values, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isfinite(values[i]))
                        return false;
        return true;
}

int levels_of(const double *values, const size_t *lengths, size_t n_runs, struct levels *ret) {
        if (n_runs < 2)
                return -EINVAL;
        size_t n = 0;
        double squares_of_lengths = 0, within = 0, mean_of_means = 0;
        for (size_t i = 0; i < n_runs; i++) {
                if (lengths[i] < 2 || !all_finite(values + n, lengths[i]))
                        return -EINVAL;
                double mean = mean_of(values + n, lengths[i]);
                for (size_t k = 0; k < lengths[i]; k++)
                        within += (values[n + k] - mean) * (values[n + k] - mean);
                mean_of_means += mean / (double) n_runs;
                squares_of_lengths += (double) lengths[i] * (double) lengths[i];
                n += lengths[i];
        }
        within /= (double) (n - n_runs);

        double grand = mean_of(values, n), between = 0;
        for (size_t i = 0, at = 0; i < n_runs; at += lengths[i++]) {
                double apart = mean_of(values + at, lengths[i]) - grand;
                between += (double) lengths[i] * apart * apart;
        }
        between /= (double) (n_runs - 1);
        double length = ((double) n - squares_of_lengths / (double) n) / (double) (n_runs - 1);
        *ret = (struct levels){
                .mean = mean_of_means,
                .between = fmax(0, (between - within) / length), /* an estimate of a small variance may be negative */
                .within = within,
                .n_runs = n_runs,
                .n_values = n,
        };
        return 0;
}

double levels_error(const struct levels *l, double runs, double seconds_per_run) {
        return sqrt((l->between + l->within / seconds_per_run) / runs) / fabs(l->mean);
}

int levels_plan(const struct levels *l, const struct levels_budget *b, struct levels_plan *ret) {
        if (!(fabs(l->mean) > 0) || !(b->overhead_seconds > 0) || !(b->seconds > 0) || b->runs_min < 2 ||
            b->window_max == 0)
                return -EINVAL;
        struct levels_plan best = {0};
        /* The root of (cost of a run / cost of a second) × (within / between) is where the optimum lies for fractions
         * of runs; whole ones are tried out. */
        for (uint32_t seconds = 1; seconds <= b->window_max; seconds++) {
                double runs = floor(b->seconds / (b->overhead_seconds + seconds));
                if (runs < b->runs_min)
                        break;
                runs = fmin(runs, UINT32_MAX);
                double error = levels_error(l, runs, seconds);
                if (best.runs == 0 || error < best.relative_error)
                        best = (struct levels_plan){
                                .runs = (uint32_t) runs, .seconds_per_run = seconds, .relative_error = error};
        }
        if (best.runs == 0)
                return -ERANGE;
        *ret = best;
        return 0;
}
