/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_ADAPTIVE_H
#define IPCLAB_DAEMON_ANALYSIS_ADAPTIVE_H

/*
 * `until`: repeat until every row is known well enough. Whole blocks (every point once) are added, and the rows are
 * examined after 6, 9, 13, 19, 28, 41, 60, … of them only: a rule that examines them after every run stops when the
 * interval happens to be narrow, which then covers less often than its level (92.4 % instead of 95 %; with these looks
 * 94.9 to 95.6 %).
 */

#include "schema/figures.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADAPTIVE_BLOCKS_MAX 200u /* as far as rank.h is exact */

struct adaptive_limits {
        double relative_half_width; /* 0.02: the interval is at most ± 2 % of its estimate; > 0 */
        uint32_t blocks_least;      /* do not stop earlier for being narrow; 0: at the first look */
        uint32_t blocks_max;        /* 1 … ADAPTIVE_BLOCKS_MAX */
        double budget_seconds;      /* INFINITY: none */
};

/* One row's figure (order.h) or one compared pair's ratio (rank.h, compare.h), of all blocks so far. */
struct adaptive_row {
        double estimate; /* != 0 */
        bool has_interval;
        double low, high;
        bool decided;         /* a pair whose verdict is known, however wide its interval is */
        bool unsettled;       /* an undecided pair whose interval has not 1 in it: what it lacks is the verdict */
        uint32_t runs_decide; /* of an undecided pair: roughly how many blocks would decide it; 0: unknown */
};

enum adaptive_reason {
        ADAPTIVE_CONTINUE, /* run up to `next_blocks`, then look again */
        ADAPTIVE_REACHED,  /* every row is narrow enough */
        ADAPTIVE_MAX,      /* blocks_max were run */
        ADAPTIVE_BUDGET,   /* another block would take longer than the budget has left */
};

struct adaptive_decision {
        enum adaptive_reason reason;
        uint32_t next_blocks; /* how many there are to be in all before the next look; as many as now: none more */
        size_t n_reached;     /* rows */
};

/* The blocks at which there is a look: the first of them above `blocks`; ADAPTIVE_BLOCKS_MAX where there is none. */
uint32_t adaptive_next_look(uint32_t blocks);

/* How far the farther end of the interval is from the estimate, as a part of it; only where there is an interval. */
double adaptive_row_width(const struct adaptive_row *row);

/* Whether the row's interval is as narrow as the limits require, or the pair's verdict is known. A pair whose narrow
 * interval shows a difference that its verdict does not carry yet is not reached: one would read both. */
bool adaptive_row_reached(const struct adaptive_row *row, double relative_half_width);

/* How many blocks the row would need in all: its interval narrows with the root of their number; a pair may be
 * decided earlier, and one that is unsettled has to be. UINT32_MAX where it has no interval. */
uint32_t adaptive_row_needs(const struct adaptive_row *row, double relative_half_width, uint32_t blocks);

/* How many looks an experiment of at most `blocks_max` blocks can have: those of adaptive_next_look(), and one at its
 * end. */
uint32_t adaptive_looks(uint32_t blocks_max);

/* With fewer blocks the n compared pairs cannot decide themselves at one of that many looks, however clear they are: on
 * a quiet host intervals are narrow before that. */
uint32_t adaptive_blocks_least(size_t n, uint32_t n_looks);

/* The figure whose comparisons may end an experiment. Each of its k planned looks is tested at a k-th of the level
 * (compare.h), which all of them together spend: a verdict that ends the experiment within its plan is as rarely false
 * as one that is taken once. A look beyond them, after blocks that were added by hand, adds an error of its own,
 * 1/(k + 1) of the level for the first one, which the plan has not set aside: what is read then has the doubt
 * repetitions-added. */
struct adaptive_watch {
        enum figure figure;
        uint32_t looks; /* 0: no comparison ends it */
};
struct spec_until;
/* looks_made: so far, which are more than the plan has where blocks were added to an experiment that was over. */
struct adaptive_watch adaptive_watch_of(const struct spec_until *until, uint32_t looks_made);
static inline uint32_t adaptive_looks_at(const struct adaptive_watch *w, enum figure f) {
        return w->looks > 0 && w->figure == f ? w->looks : 1;
}

/* Compares pairs of rows, each with its looks, at one of them. `ret` has room for n rows, and `ret_comparisons` too.
 * Errors as of compare_rows(). */
struct compare_row;
struct comparison;
int adaptive_compare(const struct compare_row *pairs, size_t n, struct adaptive_row *ret,
                     struct comparison *ret_comparisons);

/* Decides after `blocks` whole blocks, which took `seconds`. Rows are examined only where a look is due; before that
 * the decision gives the next look. -EINVAL: a limit out of its range, or more blocks than ADAPTIVE_BLOCKS_MAX. */
int adaptive_decide(const struct adaptive_row *rows, size_t n_rows, uint32_t blocks, double seconds,
                    const struct adaptive_limits *limits, struct adaptive_decision *ret);

/*
 * The order of one more block: every point once. Points with the same group (any numbers) are compared with each other
 * and run one after the other, in an order of their own; so do the groups. The same seed and block give the same order,
 * however many blocks there are. groups NULL: all are of one. `ret_order` has room for n_points. -ENOMEM.
 */
int adaptive_block_order(uint64_t seed, uint32_t block, const uint32_t *groups, size_t n_points, uint32_t *ret_order);

#endif
