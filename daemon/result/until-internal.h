/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_UNTIL_INTERNAL_H
#define IPCLAB_DAEMON_UNTIL_INTERNAL_H

/* Shared by the files of `until`: an experiment's rows with a figure of their runs, and the pairs among them. */

#include "daemon/analysis/adaptive.h"
#include "daemon/analysis/compare.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/json/json.h"
#include "schema/spec/spec.h"

#define INTERVAL_RUNS_MIN SPEC_UNTIL_REPETITIONS_LEAST /* order.h, rank.h */
/* The most rows or pairs that are listed as not reached, the widest first; their number stands beside the list. */
#define LISTED_MAX 64u

struct row {
        char *point_json;
        uint32_t runs;      /* that have the figure */
        bool few_latencies; /* a run has too few of them for the figure, a percentile */
        bool dead;          /* no run of it is done: it decides nothing, and the others go on without it */
        double *values;     /* of these, in their order in time */
        uint32_t *blocks;
        struct serial serial; /* where material, the interval is the one that counts it */
        struct adaptive_row known;
};

/* What a list of those that are not reached has of one of them. `most`: blocks of which something is concluded. Whether
 * it needs more, and has no number of them. */
bool until_put_width(struct json_writer *w, const struct adaptive_row *known, double relative_ci, uint32_t blocks,
                     uint32_t most);

struct pair {
        size_t baseline, candidate; /* rows */
        double *values;             /* of the blocks that both have: the baseline's, then the candidate's */
        size_t n;
        bool no_ratio; /* one of them is not above 0: the others alone would be a choice */
        struct adaptive_row known;
        struct comparison comparison;
};

struct pairs {
        struct pair *items;
        size_t n, size;
};

/* The pairs that the spec compares. 0; -EBADMSG: a point cannot be read, or there is no pair; -ENOMEM. */
int until_find_pairs(const struct row *rows, size_t n_rows, const struct spec *spec, struct pairs *ret);
/* Compares the pairs; `looks` is the number of looks, this one included. 0 or -errno, as compare_rows() returns it. */
int until_compare_pairs(const struct spec *spec, uint32_t looks, struct pairs *p);
void until_pairs_deinit(struct pairs *p);
/* What is compared, and the pairs; p NULL: before the first look. It sorts them. */
void until_put_pairs(struct json_writer *w, const struct spec *spec, const struct row *rows, struct pairs *p,
                     uint32_t blocks);

#endif
