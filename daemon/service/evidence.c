/* SPDX-License-Identifier: MIT */

/* From stored points and the results of their runs to rows of figures. */

#include "daemon/service/evidence.h"

#include "daemon/log.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define POINTS_PER_PAGE 32u

/* Settings in force at which something ends; by their names in a result's "effective". */
static const struct {
        const char *name, *what;
} limits[] = {
        {"pipe_size", "the pipe's capacity"},    {"sndbuf_bytes", "the send buffer"},
        {"rcvbuf_bytes", "the receive buffer"},  {"ring_bytes", "the ring's capacity"},
        {"queue_bytes", "the queue's capacity"}, {"queue_message_bytes", "the queue's largest message"},
};
_Static_assert(ELEMENTS(limits) <= FINDINGS_LIMITS_MAX, "each has a place in a row");

void evidence_deinit(struct evidence *e) {
        for (size_t i = 0; i < e->n_rows; i++)
                free(e->runs[i]);
        free(e->runs);
        free(e->rows);
        *e = (struct evidence){0};
}

static bool number_member(const struct json *object, const char *name, double *ret) {
        const struct json *value = object && json_type(object) == JSON_OBJECT ? json_get(object, name) : NULL;
        return value && json_as_double(value, ret) == 0;
}

static void take_settings(const struct json *result, struct findings_row *row) {
        const struct json *effective = json_type(result) == JSON_OBJECT ? json_get(result, "effective") : NULL;
        const struct json *steady = json_type(result) == JSON_OBJECT ? json_get(result, "steady") : NULL;
        bool is_steady;
        if (steady && json_as_bool(steady, &is_steady) == 0 && !is_steady)
                row->unsteady = true;
        (void) number_member(effective, "chunk_bytes", &row->chunk_bytes); /* absent: the message goes whole */
        if (row->n_limits > 0)                                             /* a run before this one had them */
                return;
        for (size_t i = 0; i < ELEMENTS(limits); i++) {
                struct findings_limit limit = {.what = limits[i].what};
                if (number_member(effective, limits[i].name, &limit.bytes))
                        row->limits[row->n_limits++] = limit;
        }
}

/* Flags of disturbances: those of results that cannot be, or of a placement, are other matters. */
static bool has_noise(const char *flags_json) {
        return flags_json && strstr(flags_json, "\"noisy:") != NULL;
}

static int take_run(const struct point_run *stored, struct findings_row *row, struct findings_run *ret) {
        struct json *result = NULL;
        struct json_error error;
        int r = json_parse(stored->result_json, strlen(stored->result_json), &result, &error);
        if (r < 0) {
                if (r != -ENOMEM)
                        log_error("a stored result is not JSON: %s", error.detail);
                return r == -ENOMEM ? r : -EBADMSG;
        }
        *ret = (struct findings_run){.id = stored->id, .block = stored->repetition};
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                if (!service_run_figure(result, f, &ret->values[f]))
                        ret->values[f] = NAN;
        take_settings(result, row);
        row->noisy |= has_noise(stored->flags_json);
        json_free(result);
        return 0;
}

static int compare_blocks(const void *x, const void *y) {
        const struct findings_run *a = x, *b = y;
        return (a->block > b->block) - (a->block < b->block);
}

static int take_point(const struct point_record *stored, struct findings_row *row, struct findings_run **ret) {
        struct findings_run *runs = reallocarray(NULL, stored->n_runs + 1, sizeof(*runs));
        int r = runs ? point_from_json(stored->point_json, strlen(stored->point_json), &row->point) : -ENOMEM;
        row->n_planned = (uint32_t) stored->n_runs;
        for (size_t i = 0; r == 0 && i < stored->n_runs; i++)
                if (stored->runs[i].state == STATE_DONE && stored->runs[i].result_json) {
                        r = take_run(&stored->runs[i], row, &runs[row->n_runs]);
                        row->n_runs += r == 0;
                }
        if (r < 0) {
                free(runs);
                return r == -EINVAL ? -EBADMSG : r;
        }
        qsort(runs, row->n_runs, sizeof(*runs), compare_blocks);
        row->runs = *ret = runs;
        return 0;
}

static int take_page(const struct point_record *page, size_t n, struct evidence *e) {
        struct findings_row *rows = reallocarray(e->rows, e->n_rows + n, sizeof(*rows));
        if (rows)
                e->rows = rows;
        struct findings_run **runs = reallocarray(e->runs, e->n_rows + n, sizeof(*runs));
        if (runs)
                e->runs = runs;
        if (!rows || !runs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                rows[e->n_rows] = (struct findings_row){0};
                int r = take_point(&page[i], &rows[e->n_rows], &runs[e->n_rows]);
                if (r < 0)
                        return r;
                e->n_rows++;
        }
        return 0;
}

int evidence_load(struct service *s, int64_t experiment_id, struct evidence *ret, struct refusal *r) {
        _cleanup_(evidence_deinit) struct evidence e = {0};
        for (;;) {
                struct point_record *page = NULL;
                size_t n = 0;
                struct reader *reader;
                int error = service_reader_get(s, &reader, r);
                if (error < 0)
                        return error;
                error = store_points(reader->store, experiment_id, (uint32_t) e.n_rows, POINTS_PER_PAGE, &page, &n);
                service_reader_put(s, reader);
                if (error < 0)
                        return service_fail(s, r, error, "experiment", experiment_id);
                error = n > 0 ? take_page(page, n, &e) : 0;
                store_points_free(page, n);
                if (error < 0)
                        return service_fail(s, r, error, "reading the runs' results", 0);
                if (n == 0)
                        break;
        }
        *ret = e;
        e = (struct evidence){0};
        return 0;
}
