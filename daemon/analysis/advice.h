/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_ADVICE_H
#define IPCLAB_DAEMON_ANALYSIS_ADVICE_H

/*
 * Finds the best mechanism for a message size, by all that a host has measured: a ranking, and for each place in it how
 * well it is known. Pure computation over rows of several experiments.
 *
 * Two mechanisms are compared only by runs of one experiment that has both, in blocks or at least in one sitting:
 * figures of different sittings differ by the state of the machine as well (in 55 of 100 trials on a host that drifts).
 * All pairs of an answer share one Holm correction, as the best of many is one that was chosen for being best. A size
 * that was not measured is interpolated by the fitted time (fit.h) and never beats anything for certain.
 *
 * One mechanism leads, and the others are compared with it. The figures alone choose the first to lead, those of
 * FINDINGS_RUNS_LEAST runs before those of fewer; then the lead goes to whichever beats the one that has it, as often
 * as there are mechanisms: experiments may disagree in a circle. At last it goes to one that is not distinguished from
 * it and is ahead by the ratio of their runs, which has no drift of the machine in it. The leader is the best when it
 * has runs enough and nobody beats it, else it is open. Only one that is known to keep the limits leads.
 *
 * A limit is kept where the whole interval of the figure's median keeps it, and exceeded where none of it does; between
 * the two it is undecided. Runs too few for an interval (order.h), or too much alike (serial.h), keep or exceed a limit
 * when all of them do.
 */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/findings/findings.h"

enum advice_want { WANT_THROUGHPUT, WANT_LATENCY_P50, WANT_LATENCY_P99, WANT_CPU, WANT_COUNT };

struct advice_term {
        const char *name; /* "latency_p99" */
        enum figure figure;
        bool less_is_better;
        const char *limit; /* "latency_p99_below_us": a mechanism that does not meet it is left out of the ranking */
        double limit_unit; /* of the limit, in the figure's */
        const char *words;
        const char *limit_words, *limit_unit_name; /* "p99 below", "us" */
};
extern const struct advice_term advice_terms[WANT_COUNT];

struct advice_question {
        enum workload workload;
        uint64_t message_size;
        enum placement_kind placement;
        uint32_t threads;
        bool both_ways; /* of two streams at once, whose throughput is their sum; else of one, or of round trips */
        enum advice_want want;
        double limits[WANT_COUNT]; /* in the figures' units; NAN: none */
};

/* A row of an experiment that answers the question, perhaps at another size. */
struct advice_row {
        int64_t experiment_id, measured_at;
        const char *settings; /* of the experiment, as JSON: rows of unlike ones are different mechanisms */
        struct findings_row row;
};

enum advice_standing {
        STANDING_BEST,
        STANDING_EQUAL, /* within 3 % of the leader */
        STANDING_WORSE, /* than the leader */
        STANDING_OPEN,  /* see `reason` */
        STANDING_EXCLUDED,
        STANDING_COUNT,
};
extern const char *const advice_standing_names[STANDING_COUNT];

/* Why an item is open, or excluded. */
enum advice_reason {
        REASON_NONE,
        REASON_OVERLAP,
        REASON_TOO_FEW_RUNS,
        REASON_NOT_TOGETHER, /* with the leader, in one experiment */
        REASON_INTERPOLATED,
        REASON_DISAGREE, /* experiments do, in a circle: the leader and one that beats it */
        REASON_LIMIT_UNDECIDED,
        REASON_LIMIT,           /* excluded: exceeds one */
        REASON_LIMIT_NOT_KNOWN, /* excluded: has no figure that a limit is of */
        REASON_COUNT,
};
extern const char *const advice_reason_names[REASON_COUNT]; /* of REASON_NONE NULL */

struct advice_item {
        struct point point; /* with the requested size */
        const char *settings;
        const char *version; /* of ipclab, that of the experiment; advice_draw() leaves it NULL: not known */
        bool leads;          /* it is the first item then */
        enum advice_standing standing;
        enum advice_reason reason;
        double value;
        bool has_interval;
        double low, high, level; /* of a median; where interpolated that of fit_predict_median() */
        bool interpolated;
        double residual, left_out_error; /* of the fit */
        bool has_ratio;
        struct comparison ratio; /* this one over the leader */
        int64_t experiment_id, measured_at;
        uint32_t n_runs;
        bool noisy, unsteady, unobserved, changed; /* as of struct findings_row */
        uint32_t n_disputed[DISPUTED_COUNT];       /* likewise, of all its rows */
        uint32_t n_added;                          /* likewise, the most of a row of it */
        struct in_force in_force;                  /* likewise; of nothing where interpolated */
        bool alike; /* runs are like those before them (serial.h): the interval is as much wider, or there is none */
        uint32_t runs_needed; /* of each, to decide; 0: not known, or out of reach */
        bool out_of_reach;    /* it takes more than take part in a comparison, or than a spec may have */
};

struct advice {
        struct advice_item *items; /* the leader, the others by their values, then those that are excluded */
        size_t n;
        size_t n_excluded;
        size_t n_better; /* whose own figure is better than the leader's: it is of another sitting, or not compared */
        size_t n_better_fitted;  /* whose interpolated one is */
        bool cut;                /* of more than COMPARISON_RUNS_MAX runs that are no pairs the first were compared */
        bool measured;           /* some run is of the size that was requested, with or without the figure */
        size_t n_without_ratios; /* rows of the size of which a run's figure is 0 or less: they rank nothing */
        bool few;                /* of these, some have too few latencies for a 99th percentile */
};

/* Whether the row is of a point that the question is about, at any size: of one stream or of two, as the sum of two at
 * once would be the best of any. */
bool advice_concerns(const struct advice_question *q, const struct point *p);
/* A size is interpolated from at least this number of others of one experiment. */
#define ADVICE_SIZES_LEAST 4
/* Rows in any order, those of the newest experiment first. -ENOMEM. */
int advice_draw(const struct advice_question *q, const struct advice_row *rows, size_t n_rows, struct advice *ret);
void advice_deinit(struct advice *a);

#endif
