/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_FIT_H
#define IPCLAB_DAEMON_ANALYSIS_FIT_H

/*
 * Two laws for a transport's figures.
 *
 * Time per message = α + β × size, in up to FIT_PIECES_MAX pieces, which need not meet: a cliff is a cliff. Residuals
 * are relative, (fitted - measured) / measured: with absolute ones the largest size alone would decide α. α and β are
 * not negative. Where pieces begin is found by dynamic programming over the sizes (Bellman and Roth, "Curve Fitting by
 * Segmented Straight Lines", JASA 64 (1969)), how many there are by Schwarz's criterion (BIC), with three parameters a
 * piece. α + β × size is Hockney's law, "The communication challenge for MPP", Parallel Computing 20 (1994); its knee
 * α / β is the size at which half of the time is spent on bytes.
 *
 * Throughput over threads N = λ N / (1 + σ (N - 1) + κ N (N - 1)): the universal scalability law, σ for the
 * serialised part and κ for the coherence between every two threads. Source: Gunther, Guerrilla Capacity Planning
 * (2007), ch. 4 to 6.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_PIECES_MAX 4u
#define FIT_SIZES_MAX 64u
#define FIT_PIECE_SIZES 3u   /* different ones in each piece, where there is more than one piece */
#define FIT_INTERVAL_FROM 6u /* runs of every size, for the intervals */
#define FIT_RESAMPLES_MAX 10000u
#define FIT_PREDICTION_LEVEL 0.95

/* One run. */
struct fit_point {
        double size; /* bytes, > 0 */
        double time; /* per message, any unit, > 0 */
};

struct fit_piece {
        double size_low, size_high; /* the smallest and the largest measured size in it */
        double alpha, beta;
        bool has_knee;     /* both are greater than 0 */
        double knee;       /* bytes; may lie outside of the piece */
        bool has_interval; /* of 95 %; see fit_intervals() */
        double alpha_low, alpha_high, beta_low, beta_high;
};

struct fit {
        size_t n_points, n_sizes, n_pieces;
        struct fit_piece pieces[FIT_PIECES_MAX];
        double bic;
        double residual; /* root of the mean squared relative residual */
        /* The worst relative error of a size that was left out of the fit and predicted by it, over all but the
         * smallest and the largest: the error to expect for a size that was never measured. Not known of fewer than
         * four sizes. */
        bool has_left_out;
        double left_out_error;
        double left_out_squares; /* of the logarithms of these errors, their sum */
        /* How far the sizes' median times are from the law, in logarithms: the mean, as relative least squares lie
         * below the medians of skewed times (by a third where runs differ by 50 %), and the standard deviation about
         * it, with as many degrees of freedom as there are more sizes than parameters of the lines; 0: not known. */
        double shift;
        double scatter;
        unsigned scatter_degrees;
};

/* Points in any order. -EINVAL: fewer than two sizes, a size or time that is not greater than 0 and finite; -E2BIG:
 * more than FIT_SIZES_MAX sizes; -ENOMEM. */
int fit_time(const struct fit_point *points, size_t n, struct fit *ret);

/* Adds intervals to the fit of these points, by drawing runs of each size with replacement `resamples` times (Efron and
 * Tibshirani, An Introduction to the Bootstrap, ch. 13: percentiles). The pieces stay where they are. What a size's
 * runs scatter in logarithms is widened by the root of n / (n - 1), which a sample of n runs lacks. Without
 * FIT_INTERVAL_FROM runs of each size nothing is added. -EINVAL: points that the fit is not of, resamples < 100 or >
 * FIT_RESAMPLES_MAX; -ENOMEM. */
int fit_intervals(const struct fit_point *points, size_t n, uint64_t seed, size_t resamples, struct fit *fit);

/* The fitted time at a size, which may lie between two pieces (then of the one that is nearer by ratio) or outside. */
double fit_predict(const struct fit *fit, double size);

struct fit_prediction {
        double value, low, high; /* level FIT_PREDICTION_LEVEL */
};

/* The median time that as many runs of a size that was never measured would have, between the smallest and the largest
 * size, and its interval. It takes that size to be as far from the law as those that were measured are, in which both
 * the law's misfit and the runs' noise are: the prediction interval of a linear regression over the sizes' medians,
 * whose leverage it takes as the average one. Several pieces have nearly as many parameters as there are sizes, so that
 * this interval has one or two degrees of freedom and may reach over a factor of a hundred: the one that follows from
 * the sizes left out is taken when it is narrower. It knows nothing of a cliff that no size shows, nor of what the
 * machine does between one day and another. By simulation it covers 95 to 100 % (straight lines with 1 to 60 % of
 * noise, a smooth misfit of 10 %, a cliff). False: the scatter is not known. */
bool fit_predict_median(const struct fit *fit, double size, struct fit_prediction *ret);

struct fit_threads_point {
        double threads;    /* >= 1 */
        double throughput; /* any unit, > 0 */
};

struct fit_threads {
        double lambda, sigma, kappa;          /* none is negative */
        bool has_peak;                        /* else it never falls (κ = 0) */
        double peak_threads, peak_throughput; /* not before 1 thread */
        double residual; /* root of the mean squared relative residual of the time, N / throughput */
};

/* -EINVAL: fewer than three different numbers of threads, or a value out of its range. */
int fit_threads(const struct fit_threads_point *points, size_t n, struct fit_threads *ret);

#endif
