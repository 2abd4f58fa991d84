/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_COMPARISON_H
#define IPCLAB_DAEMON_SERVICE_COMPARISON_H

/*
 * Compares two experiments, or two values of an axis within one: row by row the ratio of each figure with its interval
 * and a verdict (daemon/analysis/compare.h), after the differences of their environments and of their settings. A row
 * is a pair of points. Two experiments are matched by equal points. Two values of an axis are matched by points that
 * are equal in all other axes; an axis that has a meaning for one of the two only (`wait` of shared memory beside a
 * pipe) does not separate them, so that one point may stand in several rows.
 *
 * An answer with many pairs of CPUs or nodes is a map: a reader looks for where in it something differs, and may take
 * one cell of twenty that do for a false one. Its correction bounds that share, where that of other answers makes any
 * false one improbable, for which the cells of a map are too many.
 *
 * All done runs take part, noisy ones too, as in the table of results; failed ones do not. Text is malloc()ed and the
 * answer's.
 */

#include "daemon/analysis/compare.h"
#include "daemon/service/compare/difference.h"
#include "daemon/service/compare/machine.h"
#include "schema/disputed.h"
#include "schema/figures.h"

struct cache;
struct cache_item;

/* Placements by hand or of all pairs, from which on an answer is a map. The page draws one from as many on. */
#define COMPARISON_MAP_PAIRS 4

struct comparison_query {
        int64_t experiments[SIDE_COUNT]; /* the same one with an axis */
        const char *baseline;            /* the name of a baseline, for the first of them; NULL: its id is given */
        const char *axis;                /* NULL: two experiments */
        const char *values[SIDE_COUNT];  /* of the axis: a word, a number or JSON */
        double margin;                   /* of equivalence; 0 < margin < 1 */
        bool force;                      /* across unlike environments, too */
};

struct comparison_points {
        char *point_json;
        uint32_t runs, runs_failed, runs_noisy; /* done; failed; of the done ones those with a flag noisy:… */
        uint32_t runs_disputed[DISPUTED_COUNT]; /* of the done ones, those with that flag */
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
        char *unlike; /* of an axis: in which settings in force the two differ beside; NULL: none */
};

struct comparison_experiment {
        int64_t id;
        char *name; /* NULL: none */
        char *version;
        const char *state; /* static */
        int64_t created_at;
        uint32_t added;                 /* repetitions, by hand: evidence_added() */
        struct difference_list changed; /* between its first run and its last; not within one experiment */
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
        enum multiple_method correction;           /* Benjamini and Hochberg's of a map, see COMPARISON_MAP_PAIRS */
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

/* In which settings two mechanisms are unlike, in words (daemon/analysis/unlike.h); *ret is NULL: in none. */
struct findings_row;
int comparison_write_unlike(const struct findings_row *const rows[SIDE_COUNT], char **ret);

const char *comparison_verdict(enum compare_verdict v);

/* Memory of the answer, within a few kilobytes. */
size_t comparison_answer_bytes(const struct comparison_answer *a);
void comparison_answer_release(struct comparison_answer *a); /* NULL-safe */
void comparison_answer_free(void *answer);                   /* the service's, where it is in no cache; NULL-safe */

#endif
