/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_FINDINGS_H
#define IPCLAB_DAEMON_ANALYSIS_FINDINGS_H

/*
 * Conclusions from an experiment's runs, each with its sentence, its figures and the rows that it rests on; and doubts,
 * each with the reason why nothing can be concluded and the runs that would decide. Pure computation: rows with their
 * runs' figures in, findings out. daemon/service/findings.c loads the rows, api/handle/ shows the findings.
 *
 * A conclusion is drawn only from rows of at least FINDINGS_RUNS_LEAST runs, save for what a search has found, which is
 * no comparison of rows. Every comparison of the answer is part of one Holm correction (compare.h): the probability
 * that a whole answer holds a single false difference is at most 5 %. Which comparisons are made depends on the rows,
 * on the order of their medians and on the signs of their differences, never on a p value. Two rows are compared in
 * pairs of a block where there are blocks enough for the pairs to decide at all, else as two samples, which drift makes
 * less sensitive but not wrong (compare.h).
 *
 * Rows are "otherwise equal" when all other axes agree. An axis that has no meaning for one of them counts as agreed
 * where the other has its standard value; the sentence then names the setting that only one of them has.
 */

#include "daemon/analysis/adaptive.h"
#include "daemon/analysis/statistics/rank.h"
#include "daemon/analysis/statistics/serial.h"
#include "daemon/analysis/unlike.h"
#include "schema/disputed.h"
#include "schema/figures.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FINDINGS_RUNS_LEAST 4u /* of a row: with fewer no exact test of two of them reaches 5 % */
#define FINDINGS_LIMITS_MAX 12u
#define FINDINGS_RUN_IDS_MAX 200 /* that a finding names */

/* Of each rate of a search, for full confidence. A rate meets the limit where most of its runs do, and one disturbed
 * run of three does not change that; of one or two it may. With fewer than FINDINGS_RUNS_LEAST there is no test of a
 * rate, but none is made: a step rests on the neighbouring rates, which confirm it from either side. It is what a spec
 * has by default (SPEC_SEARCH_REPETITIONS). */
#define FINDINGS_SEARCH_RUNS_LEAST 3u

/* A run that is done. */
struct findings_run {
        int64_t id;
        uint32_t block;              /* runs of the same one are paired; 0: of none */
        double values[FIGURE_COUNT]; /* NAN: it has none */
};

/* What the flags of runs dispute. */
struct findings_flags {
        bool noisy;                          /* one has a noise flag */
        bool unsteady;                       /* one was not steady */
        bool changed;                        /* the host's environment or the build changed in one */
        bool unobserved;                     /* one was not watched: that it has no noise flag means nothing */
        bool restless;                       /* its probes found the machine in another state in one */
        uint32_t n_disputed[DISPUTED_COUNT]; /* how many have a flag that disputes their figures */
};

/* A size that is a limit of a row's mechanism or of the host. */
struct findings_limit {
        const char *what; /* "the pipe's capacity"; static */
        double bytes;
};

struct findings_row {
        struct point point;
        const struct findings_run *runs; /* in their order in time */
        size_t n_runs;
        uint32_t n_planned, n_failed; /* n_failed: or cancelled */
        uint32_t n_added;             /* of n_planned: by hand, after what the spec required */
        struct findings_flags flags;  /* of its runs; restless: also since the first of all */
        bool unprobed;                /* whether they did is not known of one: no probes, or of other CPUs */
        bool few_messages;            /* in a run, for a 99th percentile: its runs have none in `values` */
        bool open_loop;               /* its throughput is of the requested rate, and its runs have none in `values` */
        bool one_way;                 /* a stream whose messages have a latency, from one end to the other */
        struct adaptive_watch watch;  /* of its experiment */
        struct in_force in_force;
        struct findings_limit limits[FINDINGS_LIMITS_MAX];
        size_t n_limits;
};

/* Up to which rate of messages a search (daemon/result/search.h) has found that the 99th percentile of the latency
 * stays below its limit. A rate that was not reached, or has no such percentile, is not kept either. The step is where
 * the fewest runs contradict it, so that rates may: by a disturbance below it, or by chance beyond it. */
struct findings_search {
        uint32_t row;                /* of the closed loop */
        double kept, not_kept;       /* messages per second; 0: no rate that was tried kept the limit, or all did */
        uint32_t n_below, n_beyond;  /* rates that contradict: not kept up to `kept`; kept from `not_kept` on */
        double closed_loop;          /* messages per second that it carries, the median; 0: not known */
        uint32_t n_rates, n_runs;    /* that were tried, and their runs that are done */
        uint32_t runs_least;         /* of a rate */
        struct findings_flags rates; /* of these runs; a rate that was not reached is none that is kept */
        bool wide;                   /* no more rates may be tried, and the two are further apart than the precision */
};

struct findings_input {
        const struct findings_row *rows; /* in the points' order; findings name their numbers */
        size_t n_rows;
        const struct findings_limit *caches; /* of the host */
        size_t n_caches;
        const struct findings_search *searches; /* of the points that a search was concluded of, in their order */
        size_t n_searches;
        double search_limit_us; /* of the 99th percentile */
        const char *uncounted;  /* why runs have no cycles and cache misses; NULL: all that move data have them */
};

enum finding_kind {
        FINDING_RANKING,
        FINDING_BEST_SIZE,
        FINDING_KNEE,
        FINDING_CLIFF,
        FINDING_CROSSOVER,
        FINDING_SCALING,
        FINDING_COST,
        FINDING_HIGHEST_RATE,
        FINDING_NOISE_FLOOR,
        FINDING_UNDECIDED, /* a doubt: nothing can be concluded */
        FINDING_KINDS,
};

/* The reason of a doubt about the error of all comparisons of the answer: runs were added by hand. */
#define FINDING_REPETITIONS_ADDED "repetitions-added"

enum finding_confidence {
        CONFIDENCE_NONE,    /* of FINDING_UNDECIDED */
        CONFIDENCE_REDUCED, /* the tests hold, but a row it rests on is noisy, not steady, of two environments, or
                               has figures that a flag of its runs disputes (disputed.h); or, where nothing is tested,
                               of few runs; or rates of a search contradict each other, or their runs are so */
        CONFIDENCE_HIGH,
        CONFIDENCE_COUNT,
};

extern const char *const finding_kind_names[FINDING_KINDS];
extern const char *const finding_confidence_names[CONFIDENCE_COUNT];

struct finding_figure {
        char name[48];    /* a figure's (figure_name()), or "knee", "ratio", … */
        char of[96];      /* the axis' value it belongs to; "": of the finding as a whole */
        const char *unit; /* static */
        double value;
        bool has_interval;
        double low, high, level; /* level 0: not known */
};

struct finding {
        enum finding_kind kind;
        enum axis_name axis;  /* AXIS_COUNT: of no single one */
        const char *reason;   /* of FINDING_UNDECIDED: "too-few-runs", "overlap", "noise", …; static; else NULL */
        struct point subject; /* its rows' common values … */
        uint32_t common;      /* … of the axes with this bit (1u << axis) */
        char *sentence;
        struct finding_figure *figures;
        size_t n_figures;
        uint32_t *rows; /* by number */
        size_t n_rows;
        uint32_t n_runs;  /* of these rows, and of a search's rates */
        int64_t *run_ids; /* of these rows, without a search's rates; NULL: they are more than FINDINGS_RUN_IDS_MAX */
        size_t n_run_ids;
        enum finding_confidence confidence;
        unsigned rests_on; /* groups of figures that it rests on, as bits; 0: those of all findings of its kind */
        int lead; /* of FINDING_COST: whether the second row is for certain better (1) or worse (-1) than the first in
                     the figure that ranks them; 0: neither is known */
        uint32_t runs_needed; /* of each row, to decide; 0: not known */
};

struct findings {
        struct finding *items;
        size_t n;
        size_t n_tests; /* comparisons, which are corrected together */
        /* What all rows have in common and no sentence names: the placement, and what is not the standard: "threads 4,
         * placement same-node". "" where there is nothing. */
        char *constants;
};

/* -EINVAL: more than UINT16_MAX values of an axis; -ENOMEM. */
int findings_draw(const struct findings_input *in, struct findings **ret);
/* How many comparisons, each look counted, it would make at most, if all rows had runs enough with all figures; of more
 * rows than FINDINGS_NUMBERED_MAX each is counted with each, and `rows` is not read. Errors as of findings_draw(). */
#define FINDINGS_NUMBERED_MAX 4096u
int findings_count(const struct findings_input *in, size_t *ret);
void findings_free(struct findings *f); /* NULL-safe */
/* serial_summarize() of all runs of a row that have the figure: a median of 0 has a place beside a limit, though no
 * ratio. */
int findings_row_statistic(const struct findings_row *row, enum figure figure, struct statistic *ret,
                           struct serial *ret_serial);
/* Bytes of memory that it holds. */
size_t findings_bytes(const struct findings *f);

#endif
