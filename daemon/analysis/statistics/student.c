/* SPDX-License-Identifier: MIT */

/* See student.h. */

#include "daemon/analysis/statistics/student.h"

#include <math.h>
#include <stdbool.h>

/* The probability between -t and t, at θ = atan(t / √degrees): finite sums in sines and cosines, as the degrees are
 * whole. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4. */
static double between(double angle, unsigned degrees) {
        bool odd = degrees % 2 == 1;
        double s = sin(angle), c = cos(angle), term = odd ? c : 1, sum = 0;
        for (unsigned k = degrees % 2; k + 2 <= degrees; k += 2) {
                sum += term;
                term *= c * c * (k + 1) / (k + 2);
        }
        return odd ? (angle + s * sum) * 2 / M_PI : s * sum;
}

double student_quantile(double p, unsigned degrees) {
        double low = 0, high = M_PI / 2, wanted = 2 * p - 1;
        for (unsigned i = 0; i < 60; i++) {
                double middle = (low + high) / 2;
                if (between(middle, degrees) < wanted)
                        low = middle;
                else
                        high = middle;
        }
        return sqrt(degrees) * tan((low + high) / 2);
}
