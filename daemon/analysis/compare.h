/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_COMPARE_H
#define IPCLAB_DAEMON_ANALYSIS_COMPARE_H

/*
 * Whether a candidate is faster than a baseline, row by row of an answer: exact rank tests on the logarithms of one
 * figure of their runs (throughput, or a percentile that each run has of its own), the ratio with its exact interval,
 * and a verdict. Runs of the same block are compared with each other: the machine's drift is in both.
 *
 * Few pairs have few arrangements of signs: the least p of 7 pairs is 1/64, with which an answer of 48 rows finds
 * nothing, however great a difference is. Where the least p of the pairs is too great for the answer, the rank-sum test
 * of the same runs takes the place of the signed-rank test (7 runs a side: 1/1716). What the runs of a block have in
 * common makes it find less, not more: 0.5 % false alarms in place of 5 % on a host that drifts. Which test it is
 * follows from the number of blocks and rows alone. Ratio and interval are those of the pairs all the same, and a
 * difference that the interval does not bear out is not certain.
 *
 * Runs of two sittings are compared as they come. Where those of a side depend on the ones before them (serial.h),
 * fewer add something new than there are: interval and p are those of a difference that is as much less certain.
 *
 * A row is
 *  - equivalent, where the 90 % interval of the ratio lies within 1 ± margin: two one-sided tests at 5 % (Schuirmann,
 *    J. Pharmacokin. Biopharm. 15 (1987)). This is decided first: a certain difference below the margin is of no
 *    interest. `differs` is set where it is certain;
 *  - faster or slower, where the two-sided test finds a difference at 5 % after the correction over all rows;
 *  - undecided otherwise, with the difference that would have been seen and the runs that would decide.
 *
 * Runs that ended because a comparison of them decided are a choice: of two equal points 5 to 7 % were unlike when the
 * answer to `until` was read once more as if their number had been fixed. A row has its looks in every answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/analysis/statistics/multiple.h"
#include "daemon/analysis/statistics/order.h"

#define COMPARE_MARGIN 0.03
#define COMPARE_ERROR 0.05 /* of first kind, over the answer; one minus the level of a ratio's interval */
#define COMPARE_POWER 0.95 /* of the test in "would have been seen" and "would decide" */
#define COMPARE_RUNS_MAX UINT32_C(1000000)

enum comparison_side { SIDE_BASELINE, SIDE_CANDIDATE, SIDE_COUNT };

/* Runs of a side that take part, the first by position, where they are no pairs: an exact test of tied values takes a
 * time that grows with their fourth power, to seconds for 200; percentiles are tied, by histograms. */
#define COMPARISON_RUNS_MAX 60
/* Pairs that take part: as many as `until` runs blocks at most, as the test of their signs takes the third power. */
#define COMPARISON_PAIRS_MAX RANK_MAX
/* What takes more runs of a side to decide than take part is out of reach, however many there are. */
static inline uint32_t comparison_runs_most(bool paired) {
        return paired ? COMPARISON_PAIRS_MAX : COMPARISON_RUNS_MAX;
}

enum compare_verdict { COMPARE_UNDECIDED, COMPARE_FASTER, COMPARE_SLOWER, COMPARE_EQUIVALENT };

/* One figure of the runs of both sides, in their order in time, > 0, at most RANK_MAX of rank.h a side. */
struct compare_row {
        const double *baseline, *candidate;
        size_t n_baseline, n_candidate;
        bool paired;         /* runs at the same place are of the same block; there are as many of both */
        bool less_is_faster; /* a time */
        uint32_t runs_most;  /* of a side, that would take part if there were more; 0: comparison_runs_most() */
        uint32_t n_alone;    /* if paired: runs of the side that has more of them, which are in no pair */
        uint32_t looks; /* how often the comparison may be made before one that decides ends the experiment: each is a
                           test of its own (Bonferroni); 0 as 1: once */
};

struct compare_rule {
        double margin;                   /* of equivalence; 0 < margin < 1 */
        enum multiple_method correction; /* Holm; for maps Benjamini and Hochberg */
};

struct comparison {
        enum compare_verdict verdict;
        double ratio;      /* candidate over baseline, Hodges and Lehmann's */
        bool has_interval; /* at 95 % or more; else there are too few runs and low, high and level are 0 */
        double low, high, level;
        bool has_equivalence; /* the same at 90 % or more; at more where there are looks */
        double equivalence_low, equivalence_high, equivalence_level;
        double widening; /* how many times as wide the intervals are as of independent runs; 1 of a paired row */
        /* unless paired: the side has too few runs to tell whether they are (serial.h), and widens nothing */
        bool baseline_unjudged, candidate_unjudged;
        bool by_runs;         /* of a paired row: the rank-sum test decided, as there are too few pairs */
        double p, p_adjusted; /* two-sided */
        bool differs;         /* p_adjusted is at most the error and 1 not within the interval, whatever the margin */
        /* undecided: */
        bool has_visible;     /* else no difference would have been seen by so few runs */
        double visible;       /* the smallest difference that would have been seen, 0.02 for 2 %; else 0 */
        uint32_t runs_needed; /* a side, with those alone, to decide, at most COMPARE_RUNS_MAX; else 0 */
        uint32_t runs_most;   /* of a side, that would take part */
        bool out_of_reach;    /* more are needed than that: further runs do not decide it */
};

/* Finds the run of a block among n, whose blocks are `stride` bytes apart; 0 is none. *at is where the search begins
 * and where it ended: the runs of two points have nearly the same order. false: there is none. */
bool compare_find_block(const uint32_t *blocks, size_t stride, size_t n, uint32_t block, size_t *at);

/* All rows of one answer. -EINVAL: no runs, pairs of unlike number, a margin out of range; -EDOM: a value that is not
 * greater than 0 and finite; -E2BIG: more than RANK_MAX runs; -ENOMEM. */
int compare_rows(const struct compare_row *rows, size_t n_rows, const struct compare_rule *rule,
                 struct comparison *ret);

/* The same two sides, the candidate as the baseline. */
struct comparison compare_turned(const struct comparison *c);

/* Runs a side that detect a difference (0.05 for 5 %) with COMPARE_POWER where a run differs from the next by
 * `variation` (standard deviation over mean) and an answer has `n_rows` rows. From the normal approximation with the
 * rank test's efficiency of 3/π, checked by simulation in the test. Both > 0. */
uint32_t compare_runs_for(double variation, double difference, bool paired, size_t n_rows);

/* With fewer runs a side no difference can be detected in an answer of `n_rows` rows: the least p is too great. With
 * fewer pairs than those of `paired` none can be by pairs, of which an interval takes those of one row. */
uint32_t compare_runs_least(bool paired, size_t n_rows);

#endif
