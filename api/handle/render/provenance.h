/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The provenance of figures, beside them in every form in which results, runs and samples are served: experiment,
 * host, kernel, version, date, seed. Host and kernel are those of the environment of the first of its runs that has
 * one; null before. A bundle of another host has no host's name: its label stands for it. Units stand in the names of
 * fields and columns; where they do not, in "units".
 */

#include "api/handle/render/cells.h"
#include "api/http/request.h"
#include "api/http/response.h"
#include "api/state.h"

struct provenance {
        int64_t experiment_id;
        char *name, *host, *kernel, *version; /* NULL: null */
        char preset[64];                      /* that was posted; "": none */
        int64_t started_at;
        uint64_t seed;
        uint32_t runs_total;
        uint64_t version_hash;       /* identifies all that is served of an experiment that has ended; 0: it has not */
        bool searched;               /* its rows and runs are of a search's rates */
        struct point_columns points; /* empty unless requested */
};

/* 0; negative with *r, 404 for an experiment that is not there. `columns`: also fills in `points`, for a CSV. */
int provenance_load(struct api *a, int64_t experiment_id, bool columns, struct provenance *ret, struct refusal *r);
void provenance_deinit(struct provenance *p);

/* Tags the response of that type, where the experiment has ended; true: the client has it (tag_version()). */
bool provenance_tag(const struct provenance *p, const struct request *q, struct response *response, const char *type);

void provenance_header(struct text *t); /* of the columns that provenance_cells() fills */
void provenance_cells(const struct provenance *p, struct text *t);
/* The object, as the next value of one under construction. */
void provenance_put(const struct provenance *p, struct json_writer *w);
/* Ends a JSON list: its cursor, and "provenance" with the units of the fields in which figures are. */
void provenance_list_end(const struct provenance *p, struct text *t, bool begun, const char *next);
