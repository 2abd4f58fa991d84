/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_SEGMENTS_H
#define IPCLAB_DAEMON_ANALYSIS_SEGMENTS_H

/*
 * Judges whether a run was steady from the counts of messages, or the median latencies, in its window's parts of equal
 * length (ten a second): finds where their mean changes, and classifies the changes. Change points are the exact
 * minimum of squared deviations plus a penalty for each change (PELT: Killick, Fearnhead and Eckley, JASA 107 (2012)).
 * The penalty is
 *
 *     SEGMENTS_PENALTY × log(n × series) × variance × (1 + correlation) / (1 - correlation),
 *
 * the last two being what first-order autoregressive noise adds to the variance of a mean, and `series` how many are
 * searched for one answer, 1 for a run: of many, some change by chance. Without that factor 144 series of 12 values,
 * all noise, have 2.8 changes, and 7.8 where neighbours correlate by 0.35; with it 0.2 and 0.4. Variance and
 * correlation come from the differences between neighbours and between every other value, without those across a jump,
 * which every difference is where there are few of them at all. A standstill, less than SEGMENTS_STANDSTILL of the
 * median for half a second, is a segment whatever the noise is: none about a mean looks like that. Classes are those of
 * Barrett et al., "Virtual Machine Warmup Blows Hot and Cold", OOPSLA 2017.
 */

#include <stdbool.h>
#include <stddef.h>

#define SEGMENTS_PENALTY 3.0
#define SEGMENTS_LEAST 5u             /* values in a segment: half a second */
#define SEGMENTS_VALUES_MIN 30u       /* to be judged */
#define SEGMENTS_VALUES_MAX 3000u     /* of more, neighbours are put together: the time grows with the square */
#define SEGMENTS_CORRELATION_MAX 0.75 /* above it a change cannot be distinguished from noise */
#define SEGMENTS_STANDSTILL 0.1
#define SEGMENTS_STEADY_PART 3u /* the last segment is a steady state if it is at least this part of the window */
#define SEGMENTS_MAX (SEGMENTS_VALUES_MAX / SEGMENTS_LEAST)

struct segment {
        size_t begin, end; /* of the values, the end exclusive */
        double mean;
};

struct segments_noise {
        double variance;    /* of a value about the mean of its segment */
        double correlation; /* of neighbours, 0 … 0.99 */
        double long_run;    /* n times the variance of the mean of n values, for great n */
};

enum segments_of {
        SEGMENTS_OF_COUNTS, /* more is faster */
        SEGMENTS_OF_TIMES,  /* less is faster */
};

enum segments_class {
        SEGMENTS_UNKNOWN, /* see `reason` */
        SEGMENTS_FLAT,
        SEGMENTS_WARM_UP,   /* slower first, then steady */
        SEGMENTS_SLOW_DOWN, /* faster first, then steady */
        SEGMENTS_UNSTEADY,  /* no steady state: it is lost again, or comes too late to be one */
};

enum segments_reason {
        SEGMENTS_KNOWN,
        SEGMENTS_TOO_SHORT,  /* fewer than SEGMENTS_VALUES_MIN values */
        SEGMENTS_CORRELATED, /* more than SEGMENTS_CORRELATION_MAX */
};

struct segments {
        enum segments_class class;
        enum segments_reason reason;
        size_t steady_from; /* flat, warm-up, slow-down: the first value of the steady state; else 0 */
        struct segments_noise noise;
        size_t n;
        struct segment list[SEGMENTS_MAX]; /* as found, also where they differ by less than the tolerance */
};

/* n >= 8 values. -EINVAL: fewer, or one not finite; -ENOMEM. */
int segments_noise(const double *values, size_t n, struct segments_noise *ret);

/* The penalty above. */
double segments_penalty(size_t n, size_t n_series, double long_run);

/* Segments of at least `least` >= 1 values each that minimise squared deviations + penalty × changes. `ret` has room
 * for n / least of them. -EINVAL: n < least, a value not finite, a penalty < 0; -ENOMEM. */
int segments_find(const double *values, size_t n, size_t least, double penalty, struct segment *ret, size_t *ret_n);

/* Segments whose means differ by no more than `tolerance` (0.05 for 5 %) of the greater are alike. Any n. -EINVAL: a
 * value that is negative or not finite; -ENOMEM. */
int segments_judge(const double *values, size_t n, enum segments_of of, double tolerance, struct segments *ret);

#endif
