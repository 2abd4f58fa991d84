/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The data of a report, read once, so that its tables and its charts have the same figures: the rows of results, and
 * the proofs of the runs. report.c makes the document; report-rows.c and report-runs.c read and write their parts.
 *
 * A report is one file of at most REPORT_BYTES_MAX. Each part of it has its share, and names what it leaves out.
 */

#include "api/handle/render/provenance.h"
#include "api/http/text.h"

#define REPORT_BYTES_MAX 1000000u
#define REPORT_ROWS_MAX 400u  /* of the table */
#define REPORT_RUNS_MAX 2000u /* that a report reads */

struct report_row {
        struct json *point, *flags;
        uint32_t runs, runs_planned;
        struct statistic figures[FIGURE_COUNT];
        char *error;
};

struct report_rows {
        struct report_row *items;
        size_t n, size;
        bool cut;         /* there are more rows than are here */
        struct text json; /* what charts are drawn from: the first n_json rows, with commas between them */
        size_t n_json;
        size_t n_curves; /* of these, the first, with the whole curve of their latencies */
};

/* Numbers below 4096, as CPUs and nodes have. */
struct report_ids {
        uint64_t words[64];
};

/* An end of the runs of one placement, over all of them. */
struct report_place {
        char *placement, *role;
        uint32_t runs;
        struct report_ids allowed, seen, nodes;
        uint64_t pages, pages_moved;
        int64_t migrations; /* -1: unknown in a run */
};

struct report_runs {
        uint32_t read, done, failed;
        struct report_place *places;
        size_t n, size;
        bool cut;                 /* there are more placements than are here */
        struct json *environment; /* before the first run that has one; NULL */
        struct text json; /* figures of the done runs, with commas between them; empty where they are too many */
        bool json_cut;
};

/* 0; negative with *r. _deinit() frees *ret in either case. */
int report_rows_load(struct service *s, int64_t experiment_id, struct report_rows *ret, struct refusal *r);
void report_rows_deinit(struct report_rows *rows);
int report_runs_load(struct service *s, int64_t experiment_id, struct report_runs *ret, struct refusal *r);
void report_runs_deinit(struct report_runs *runs);

/* Write these parts as HTML. */
void report_put_rows(struct text *t, const struct report_rows *rows);
void report_put_proof(struct text *t, const struct report_runs *runs);
void report_put_environment(struct text *t, const struct report_runs *runs);

/* A member of an object in few words, escaped: a placement by hand as "sender CPU 0, receiver CPU 1", any other object
 * as JSON. Nothing for NULL and null. */
void report_put_value(struct text *t, const struct json *value);
/* A member of an object; NULL where `object` is not one. */
const struct json *report_member(const struct json *object, const char *key);
