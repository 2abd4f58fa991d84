/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_FINDINGS_INTERNAL_H
#define IPCLAB_DAEMON_ANALYSIS_FINDINGS_INTERNAL_H

/*
 * Shared by the files of the findings. Each kind is a function over groups of otherwise equal rows that is called
 * twice: first `collecting`, when it registers the comparisons that it needs, then again to draw its conclusions from
 * them, when all have been made and corrected together.
 */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/findings/findings.h"
#include "daemon/analysis/statistics/order.h"

#include <stdio.h>

/* The figures that rows are judged by. */
enum judged {
        JUDGED_THROUGHPUT,
        JUDGED_LATENCY_P50,
        JUDGED_LATENCY_P99,
        JUDGED_ONE_WAY_P50,
        JUDGED_ONE_WAY_P99,
        JUDGED_COST,
        JUDGED_CPU,
        JUDGED_CYCLES,
        JUDGED_CACHE_MISSES,
        JUDGED_COUNT,
};

struct judged_term {
        enum figure figure;
        bool less_is_better;
        const char *words;          /* "throughput" */
        const char *article;        /* of both of these: "a " or "" */
        const char *better, *worse; /* "more throughput"; after "costs 5 %": "of the throughput" */
        unsigned workloads;         /* bits: whose rows are ranked by it; 0: it goes beside another one */
        bool one_way;               /* of those the streams whose messages have a latency */
};

extern const struct judged_term judged_terms[JUDGED_COUNT];

struct test {
        uint32_t baseline, candidate; /* rows */
        enum judged judged;
        struct comparison result;
};

#define CROSSINGS_NAMED_MAX 4u /* pairs that the doubt about crossovers names */

struct answer {
        const struct findings_input *in;
        uint16_t (*values)[AXIS_COUNT]; /* of each row, by number from 1; 0: the axis has no meaning for it */
        uint16_t n_values[AXIS_COUNT];
        uint16_t standard[AXIS_COUNT]; /* the number of the axis' default */
        uint32_t *rows;                /* those with runs enough */
        size_t n_rows;
        bool collecting;
        bool counting;    /* while collecting: how many comparisons there would be at most, if runs were enough */
        size_t n_counted; /* of these */
        struct test *tests;
        size_t n_tests, size_tests;
        struct doubt {
                uint32_t *rows;
                size_t n;
                uint32_t runs_first,
                        runs_needed;     /* of the pair that takes the fewest, and the most, of those in reach */
                uint32_t runs_most;      /* that take part, where a pair takes more; 0: none does */
                double visible;          /* the greatest; 0: none would have been seen */
                size_t n_tests, n_blind; /* comparisons; of these, in which none would have been seen */
        } doubts[AXIS_COUNT][JUDGED_COUNT];
        struct crossing { /* values of an axis whose medians change places, which the runs do not carry */
                struct doubt doubt;
                size_t n_pairs;
                struct crossing_pair {
                        uint32_t rows[2];
                        double bytes;         /* at which the medians first do */
                } pairs[CROSSINGS_NAMED_MAX]; /* the first ones */
        } crossings[AXIS_COUNT][JUDGED_COUNT];
        struct kneeless { /* series of sizes without a knee */
                uint32_t *rows;
                size_t n, n_off, n_outside; /* rows; series whose fit is off; that have no knee among their sizes */
                double residual;            /* of the worst fit */
        } kneeless;
        struct doubt cut;                          /* rows of which a test of runs that are no pairs left some out */
        struct doubt without_ratios[JUDGED_COUNT]; /* rows whose runs have a figure of 0 or less */
        uint32_t *uncounted;                       /* rows of which a choice's cost in cycles is not known */
        size_t n_uncounted;
        struct findings *out;
        int error; /* the first one, sticky */
};

/* Rows that differ in the axes of `varied` only. Sorted by `axis` (numbers by size, words as they first appeared), then
 * by message size. `draw` gets each group of two or more. */
typedef void (*draw_function)(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n);
void answer_groups(struct answer *a, uint32_t varied, enum axis_name axis, draw_function draw);
#define AXIS_BIT(axis) (UINT32_C(1) << (axis))

/* Whether what rests on the row has reduced confidence. */
static inline bool findings_row_is_doubtful(const struct findings_row *row) {
        return row->flags.noisy || row->flags.unsteady || row->flags.changed || row->flags.unobserved;
}
/* Whether all figures of the row's runs are above 0: ranks are of logarithms, and without a run of 0 the others would
 * be a choice. */
bool findings_row_has_ratios(const struct findings_row *x, enum figure figure);
/* A row's figures that ranks can be made of, > 0, RANK_MAX at most; none where one is not. `ret` may be NULL: they are
 * just counted. */
size_t findings_row_values(const struct findings_row *x, enum figure figure, double *ret);
/* The comparison of y with x: in pairs where there are blocks enough for an interval. `values` has room for both rows'
 * figures, and must outlive it; how many are used. */
size_t findings_fill_comparison(const struct findings_row *x, const struct findings_row *y, enum figure figure,
                                bool less_is_better, double *values, struct compare_row *ret);

/* False while collecting, and where a row has too few runs with that figure: *ret is undecided then. */
bool answer_compare(struct answer *a, uint32_t baseline, uint32_t candidate, enum judged judged,
                    struct comparison *ret);
/* How many comparisons the answer would make at most, if all rows had runs enough; 0 also after an error. Which they
 * are depends on medians that are not known: each comparison counts that some medians would call for. */
size_t answer_count_comparisons(struct answer *a);
/* Summarizes a figure of a row's runs; n = 0 where none has it. Where neighbouring runs are alike (serial.h), the
 * interval is that which counts this. */
struct statistic answer_statistic(struct answer *a, uint32_t row, enum figure figure);
/* The index, in `rows`, of that with the greatest median throughput; the first of equal ones. */
size_t answer_fastest(struct answer *a, const uint32_t *rows, size_t n);
bool judged_applies(enum judged judged, const struct findings_row *row);
static inline bool is_better(const struct comparison *c) {
        return c->verdict == COMPARE_FASTER;
}
static inline bool is_worse(const struct comparison *c) {
        return c->verdict == COMPARE_SLOWER;
}

/* A finding that is being built; its sentence goes through `text`, which is never NULL. */
struct draft {
        struct answer *a;
        struct finding f;
        FILE *text;
        size_t text_length;
        char *text_data;
};

/* Whether the values of an axis are things to choose among: sizes, numbers of threads and workloads have findings of
 * their own, and the instances of a point are one thing. */
static inline bool axis_is_a_choice(enum axis_name axis) {
        return axis != AXIS_WORKLOAD && axis != AXIS_MESSAGE_SIZE && axis != AXIS_THREADS && axis != AXIS_INSTANCE;
}

/* The figure that ranks such rows first; JUDGED_COUNT: none. */
enum judged judged_first(const struct findings_row *row);

/* Rows from the best to the worst median, each with its comparison to the next. */
struct ranked {
        uint32_t row;
        struct statistic statistic;
        struct comparison next; /* this one as the baseline; of the last it is empty */
};
/* Ranks the rows that have the figure in runs enough. malloc()ed; NULL where there are none, or after an error. */
struct ranked *answer_rank(struct answer *a, const uint32_t *rows, size_t n, enum judged judged, size_t *ret_n);

/* Begins a draft about these rows: subject, runs and confidence follow from them. `varied` as in answer_groups(). */
void draft_begin(struct draft *d, struct answer *a, enum finding_kind kind, enum axis_name axis, const uint32_t *rows,
                 size_t n);
void draft_write(struct draft *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "stream over pipe, 4 KiB, same-node" without the axes of `varied`, behind `before`; nothing where nothing is common.
 */
void draft_write_subject(struct draft *d, uint32_t varied, const char *before);
/* What distinguishes the row's series from the finding's others: "cross-node, threads 4", without the axes of `varied`;
 * "" where nothing does. */
void draft_series(const struct draft *d, uint32_t row, uint32_t varied, char *ret, size_t size);
/* `constants` of struct findings; malloc()ed. 0 or -ENOMEM. */
int draft_constants(const struct findings_input *in, char **ret);
/* Writes in which settings the rows are unlike: " Their settings are unlike: fields 8 is of tcp alone." */
void draft_write_unlike(struct draft *d);
/* `of` may be NULL. */
void draft_figure(struct draft *d, const char *name, const char *of, const char *unit, double value);
/* Adds the interval of the last figure; level 0: not known. */
void draft_interval(struct draft *d, double low, double high, double level);
void draft_statistic(struct draft *d, enum figure figure, uint32_t row, const char *of);
void draft_ratio(struct draft *d, const char *name, const char *of, const struct comparison *c);
/* Adds it to the answer; the draft is empty then. */
void draft_end(struct draft *d);

/* Reduces the confidence of what rests on figures that a flag of their runs disputes. */
void reduce_disputed(struct answer *a);
/* The groups of figures that a finding rests on, as bits. */
unsigned finding_figures(const struct finding *f);
static inline unsigned judged_figures(enum judged judged) {
        return FIGURES_BIT(figure_terms[judged_terms[judged].figure].group);
}

/* The kinds */
void draw_rankings(struct answer *a);
void draw_sizes(struct answer *a); /* best size, knee, cliff */
void draw_crossovers(struct answer *a);
void draw_scalings(struct answer *a);
void draw_costs(struct answer *a);
void draw_searches(struct answer *a); /* the highest rates */
void draw_floors(struct answer *a);
void draw_doubts(struct answer *a); /* for all rows; the others add what their own comparisons left open */

/* Otherwise equal rows whose comparison `c` decided nothing: they go into the doubt about that axis. */
void doubt_rows(struct answer *a, enum axis_name axis, enum judged judged, const uint32_t *rows, size_t n,
                const struct comparison *c);
/* A row that is not compared, as a run's figure is not above 0; each once. */
void doubt_ratios(struct answer *a, uint32_t row, enum judged judged);
/* A row of whose runs a test took the first COMPARISON_RUNS_MAX; each once. */
void doubt_cut(struct answer *a, uint32_t row);
/* Rows whose runs have no counts of cycles and cache misses; each once. */
void doubt_counts(struct answer *a, const uint32_t *rows, size_t n);
/* How many runs of each row would decide: runs 0: it is not known; most: that take part, where it takes more; else 0.
 */
struct runs_to_decide {
        uint32_t runs, most;
};
/* Two values of an axis whose medians change places at `pair->bytes`, among these rows. */
void doubt_crossing(struct answer *a, enum axis_name axis, enum judged judged, const uint32_t *rows, size_t n,
                    const struct crossing_pair *pair, struct runs_to_decide needed);

#endif
