/* SPDX-License-Identifier: MIT */

/* See normal.h. Halving the bracket is slow and cannot go wrong; compare.c needs a handful a row. */

#include "daemon/analysis/statistics/normal.h"

#include <math.h>

#define FARTHEST 40.0 /* where the distribution function is 0 in doubles */
#define HALVINGS 64u

double normal_quantile(double p) {
        if (p > 0.5)
                return -normal_quantile(1 - p);
        double low = -FARTHEST, high = 0;
        for (unsigned i = 0; i < HALVINGS; i++) {
                double middle = (low + high) / 2;
                if (erfc(-middle * M_SQRT1_2) / 2 < p)
                        low = middle;
                else
                        high = middle;
        }
        return (low + high) / 2;
}
