/* SPDX-License-Identifier: MIT */

/*
 * See fit.h. N / throughput = 1/λ + σ/λ (N - 1) + κ/λ N (N - 1) is linear in its coefficients, so least squares of
 * relative residuals find them without a start value; of the eight choices which coefficients are 0, those with λ are
 * tried, and the best whose others are not negative is taken.
 */

#include "daemon/analysis/statistics/fit.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>

#define TERMS 3u
#define DIFFERENT 3u /* numbers of threads */

struct solution {
        long double x[TERMS], squares;
        bool valid;
};

/* One point's row, divided by what it is to give. */
static void row_of(const struct fit_threads_point *p, long double ret[TERMS]) {
        long double n = (long double) p->threads, weight = (long double) p->throughput / n;
        ret[0] = weight;
        ret[1] = weight * (n - 1);
        ret[2] = weight * n * (n - 1);
}

/* Solves a x = b of k unknowns in place; a is symmetric and positive. Returns whether it was. */
static bool solve(long double a[TERMS][TERMS], long double b[TERMS], size_t k) {
        for (size_t i = 0; i < k; i++) {
                if (!(a[i][i] > 1e-15L)) /* of 1: columns have been scaled */
                        return false;
                for (size_t j = i + 1; j < k; j++) {
                        long double factor = a[j][i] / a[i][i];
                        for (size_t m = i; m < k; m++)
                                a[j][m] -= factor * a[i][m];
                        b[j] -= factor * b[i];
                }
        }
        for (size_t i = k; i-- > 0;) {
                for (size_t m = i + 1; m < k; m++)
                        b[i] -= a[i][m] * b[m];
                b[i] /= a[i][i];
        }
        return true;
}

static long double squares_of(const struct fit_threads_point *points, size_t n, const long double x[TERMS]) {
        long double sum = 0, row[TERMS];
        for (size_t i = 0; i < n; i++) {
                row_of(&points[i], row);
                long double residual = row[0] * x[0] + row[1] * x[1] + row[2] * x[2] - 1;
                sum += residual * residual;
        }
        return sum;
}

/* Least squares with the terms whose bits are set, by the normal equations of columns scaled to length 1. */
static struct solution solve_with(const struct fit_threads_point *points, size_t n, unsigned terms) {
        size_t which[TERMS], k = 0;
        for (size_t i = 0; i < TERMS; i++)
                if (terms & 1u << i)
                        which[k++] = i;
        long double scale[TERMS] = {0}, row[TERMS], a[TERMS][TERMS] = {{0}}, b[TERMS] = {0};
        for (size_t i = 0; i < n; i++) {
                row_of(&points[i], row);
                for (size_t j = 0; j < TERMS; j++)
                        scale[j] += row[j] * row[j];
        }
        for (size_t j = 0; j < TERMS; j++)
                scale[j] = sqrtl(scale[j]);
        for (size_t i = 0; i < n; i++) {
                row_of(&points[i], row);
                for (size_t j = 0; j < k; j++) {
                        b[j] += row[which[j]] / scale[which[j]];
                        for (size_t m = 0; m < k; m++)
                                a[j][m] += row[which[j]] / scale[which[j]] * (row[which[m]] / scale[which[m]]);
                }
        }
        struct solution s = {.valid = solve(a, b, k)};
        for (size_t j = 0; s.valid && j < k; j++) {
                s.x[which[j]] = b[j] / scale[which[j]];
                s.valid = b[j] >= 0;
        }
        s.squares = squares_of(points, n, s.x);
        return s;
}

static size_t count_different(const struct fit_threads_point *points, size_t n) {
        size_t different = 0;
        for (size_t i = 0; i < n; i++) {
                bool seen = false;
                for (size_t k = 0; k < i && !seen; k++)
                        seen = points[k].threads == points[i].threads;
                different += !seen;
        }
        return different;
}

static void put_peak(struct fit_threads *f) {
        if (!(f->kappa > 0))
                return;
        double n = sqrt(fmax(1 - f->sigma, 0) / f->kappa);
        f->has_peak = true;
        f->peak_threads = fmax(1, n);
        n = f->peak_threads;
        f->peak_throughput = f->lambda * n / (1 + f->sigma * (n - 1) + f->kappa * n * (n - 1));
}

int fit_threads(const struct fit_threads_point *points, size_t n, struct fit_threads *ret) {
        for (size_t i = 0; i < n; i++)
                if (!(points[i].threads >= 1 && isfinite(points[i].threads) && points[i].throughput > 0 &&
                      isfinite(points[i].throughput)))
                        return -EINVAL;
        if (count_different(points, n) < DIFFERENT)
                return -EINVAL;
        struct solution best = {.squares = INFINITY};
        for (unsigned terms = 1; terms < 1u << TERMS; terms += 2) { /* λ always is one */
                struct solution s = solve_with(points, n, terms);
                if (s.valid && s.x[0] > 0 && s.squares < best.squares)
                        best = s;
        }
        struct fit_threads f = {
                .lambda = (double) (1 / best.x[0]),
                .sigma = (double) (best.x[1] / best.x[0]),
                .kappa = (double) (best.x[2] / best.x[0]),
                .residual = (double) sqrtl(best.squares / (long double) n),
        };
        put_peak(&f);
        *ret = f;
        return 0;
}
