/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Cells of the CSV forms that results, runs and samples have in common. A header is known before the first row is read:
 * the columns of points come from the spec's axes, the others from tables. Each function appends its cells with a comma
 * before each, and leaves errors in the text.
 */

#include "api/http/text.h"
#include "daemon/service/service.h"

#define CSV_TYPE "text/csv; charset=utf-8; header=present"

void cells_double(struct text *t, double v);
/* Empty for NULL and for null, a string as it is, everything else as JSON. */
void cells_value(struct text *t, const struct json *value);
/* The rate of a search's row; an empty cell for 0, the closed loop. */
void cells_rate(struct text *t, uint64_t rate);
/* Texts of a list, in one cell with spaces between. */
void cells_words(struct text *t, const char *list);

/* The fields that a point of the experiment may have, in the order of the axes. */
struct point_columns {
        const char *names[32]; /* static */
        bool usual[32];        /* by the table of axes, or because another value was chosen */
        size_t n;
        unsigned workloads; /* of the points, as bits */
};
/* Finds the columns of an experiment_record's merged_json. 0; -EBADMSG when it is no spec; -ENOMEM. */
int point_columns_of(const char *merged_json, struct point_columns *ret);
void point_columns_keep_usual(struct point_columns *c);
/* The header, and the cells of a point. `leads`: they begin the line, without a comma before the first. */
void point_columns_header(const struct point_columns *c, struct text *t, bool leads);
int point_columns_cells(const struct point_columns *c, struct text *t, const char *point_json, bool leads);
