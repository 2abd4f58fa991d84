/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_COMPARE_H
#define IPCLAB_DAEMON_SERVICE_COMPARE_H

/*
 * Compares two experiments, or two values of an axis within one: row by row the ratio of each figure with its interval
 * and a verdict (daemon/analysis/compare.h), after the differences of their environments and of their settings. A row
 * is a pair of points. Two experiments are matched by equal points. Two values of an axis are matched by points that
 * are equal in all other axes; an axis that has a meaning for one of the two only (`wait` of shared memory beside a
 * pipe) does not separate them, so that one point may stand in several rows.
 *
 * All done runs take part, noisy ones too, as in the table of results; failed ones do not. Text is malloc()ed and the
 * answer's.
 */

#include "daemon/analysis/compare.h"
#include "schema/figures.h"

struct cache;
struct cache_item;
struct refusal;
struct service;

enum comparison_side { SIDE_BASELINE, SIDE_CANDIDATE, SIDE_COUNT };

/* Runs of a side that take part, the first by position: as many as `until` runs at most. An exact test of tied
 * values takes a time that grows with their fourth power, to seconds for 200; percentiles are tied, by histograms. */
#define COMPARISON_RUNS_MAX 60

struct comparison_query {
        int64_t experiments[SIDE_COUNT]; /* the same one with an axis */
        const char *baseline;            /* the name of a baseline, for the first of them; NULL: its id is given */
        const char *axis;                /* NULL: two experiments */
        const char *values[SIDE_COUNT];  /* of the axis: a word, a number or JSON */
        double margin;                   /* of equivalence; 0 < margin < 1 */
        bool force;                      /* across unlike environments, too */
};

/* One member that differs, as JSON; NULL: that side has no such member. */
struct difference {
        char *key;
        char *values[SIDE_COUNT];
        bool unlike; /* figures cannot be compared across it without `force` */
};

struct difference_list {
        struct difference *items;
        size_t n;
};

struct comparison_points {
        char *point_json;
        uint32_t runs, runs_failed, runs_noisy; /* done; failed; of the done ones those with a flag noisy:… */
};

struct comparison_figure {
        size_t n[SIDE_COUNT]; /* runs that have the figure and take part */
        bool paired;
        const char *missing;        /* why there is no comparison; NULL: there is one. Static */
        const struct comparison *c; /* the answer's; NULL where it is missing */
};

struct comparison_row {
        struct comparison_points sides[SIDE_COUNT];
        struct comparison_figure *figures; /* of the compared figures, in the table's order */
};

struct comparison_experiment {
        int64_t id;
        char *name; /* NULL: none */
        char *version;
        const char *state; /* static */
        int64_t created_at;
        struct difference_list changed; /* between its first run and its last; not within one experiment */
};

/* Whether the machine was in the same state in both experiments (machine.h). */
enum machine_state { MACHINE_UNKNOWN, MACHINE_NO_DIFFERENCE, MACHINE_DIFFERS };

struct machine_figure {
        const char *what; /* as in a run's probes; static */
        char cpus[48];    /* of the runs' ends: "[0,1]" */
        uint32_t cpu;     /* whose thread timed it */
        double medians[SIDE_COUNT];
        size_t n[SIDE_COUNT]; /* runs that take part, COMPARISON_RUNS_MAX at most */
        struct comparison c;
        bool differs;
};

struct machine {
        enum machine_state state;
        const char *reason; /* of an unknown one; static */
        struct machine_figure *items;
        size_t n;
};

struct comparison_answer {
        struct comparison_experiment experiments[SIDE_COUNT];
        char *axis;                                   /* NULL: two experiments */
        char *values[SIDE_COUNT];                     /* JSON; NULL likewise */
        struct difference_list environment, settings; /* of the host; of the specs, without axes */
        bool has_machine;                             /* not with an axis: the runs of both sides took turns */
        struct machine machine;
        bool alike, forced; /* nothing in the environments is unlike; it is, and it was forced */
        double margin;
        uint32_t verdicts[COMPARE_EQUIVALENT + 1]; /* how many figures */
        size_t n_tests;                            /* over which the correction is */
        char **unmatched[SIDE_COUNT];              /* points of one side alone, JSON */
        size_t n_unmatched[SIDE_COUNT];
        struct comparison_row *rows;
        size_t n_rows;
        struct comparison *comparisons; /* of all figures, n_tests */
        /* The service's: */
        char *question;              /* the cache's key; NULL: it is not in the cache, as the rest of these */
        int64_t changes[SIDE_COUNT]; /* of the experiments */
        struct cache *cache;
        struct cache_item *item;
};

/* The figures that are compared, in the order of the table. */
struct comparison_figures {
        enum figure of[FIGURE_COUNT];
        size_t n;
};
void comparison_figures(struct comparison_figures *ret);
const char *comparison_verdict(enum compare_verdict v);
const char *machine_state_name(enum machine_state state); /* "unknown", "no-difference", "differs" */

/* Answers from the cache where both experiments have finished, or computes, one comparison at a time: 503 after the
 * service's deadline. 0, or a negative errno with *r: 404; 409 across unlike environments; 422: an unknown axis, a
 * value that the experiment does not have, the same value twice, nothing in common. From any thread. The answer is
 * shared and does not change; the caller must release it. */
int service_compare(struct service *s, const struct comparison_query *q, struct comparison_answer **ret,
                    struct refusal *r);
/* Memory of the answer, within a few kilobytes. */
size_t comparison_answer_bytes(const struct comparison_answer *a);
void comparison_answer_release(struct comparison_answer *a); /* NULL-safe */
void comparison_answer_free(void *answer);                   /* the service's, where it is in no cache; NULL-safe */

#endif
