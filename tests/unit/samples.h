/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_SAMPLES_H
#define IPCLAB_TESTS_SAMPLES_H

/* Draws for the simulations, repeatable by their seed, and the line that reports what came out. */

#include "schema/random.h"

#include <math.h>
#include <stdio.h>

/* Box and Muller; one of the two that a pair of draws gives. */
static inline double sample_normal(struct random *r) {
        double radius = sqrt(-2 * log(1 - random_unit(r)));
        return radius * cos(2 * M_PI * random_unit(r));
}

/* Skewed to the right, as latencies are; its median is 1. */
static inline double sample_skewed(struct random *r, double spread) {
        return exp(spread * sample_normal(r));
}

/* Prints a share of trials, and gives it. */
static inline double sample_share(const char *what, unsigned n, unsigned trials) {
        double share = (double) n / trials;
        printf("     %-76s %6.2f %% of %u\n", what, 100 * share, trials);
        return share;
}

#endif
