/* SPDX-License-Identifier: MIT */

/* The figures of runs alone, without a copy of their results: a comparison reads thousands of runs. */

#include "daemon/store/internal.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void store_figures_free(struct figures_point *points, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(points[i].point_json);
                free(points[i].runs);
        }
        free(points);
}

_Static_assert(FIGURE_COUNT <= 64, "each has a bit");

struct figures_list {
        struct figures_point *items;
        size_t n, size, runs_size; /* the last: of the last point's runs */
        int64_t last_id;
};

/* Reads the figures that are compared; NAN where the run has none, too few latencies for it, or one that was requested.
 */
static int read_figures(struct json_view *view, const char *result_json, struct figures_run *ret) {
        const struct json_part *objects[FIGURES_GROUPS];
        int r = json_view_read(view, result_json ? result_json : "null");
        if (r < 0)
                return r;
        figure_objects(view->parts, objects);
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                enum figure_state state = figure_terms[f].faster == FIGURE_NOT_COMPARED
                                                  ? FIGURE_ABSENT
                                                  : figure_read(objects, (enum figure) f, &ret->values[f]);
                if (state != FIGURE_KNOWN)
                        ret->values[f] = NAN;
                ret->few |= state == FIGURE_FEW ? UINT64_C(1) << f : 0;
                ret->requested |= state == FIGURE_REQUESTED ? UINT64_C(1) << f : 0;
        }
        return 0;
}

static int take_row(struct db_query *q, struct json_view *view, struct figures_list *list) {
        int64_t id = db_column_i64(q, 0);
        if (list->n == 0 || id != list->last_id) {
                if (!util_grow(list->items, list->n, list->size))
                        return -ENOMEM;
                list->items[list->n++] = (struct figures_point){.point_json = db_column_text(q, 1)};
                list->last_id = id;
                list->runs_size = 0;
        }
        struct figures_point *p = &list->items[list->n - 1];
        if (!util_grow(p->runs, p->n_runs, list->runs_size))
                return -ENOMEM;
        struct figures_run *run = &p->runs[p->n_runs++];
        *run = (struct figures_run){.block = db_column_u32(q, 3), .noisy = db_column_i64(q, 4) != 0};
        disputed_count(db_column_peek(q, 6), run->disputed);
        int r = read_figures(view, db_column_peek(q, 5), run);
        if (r == 0)
                r = store_row_state(q, 2, &run->state);
        return r < 0 ? r : q->error;
}

int store_figures(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                  struct figures_point **ret, size_t *ret_n) {
        struct figures_list list = {0};
        _cleanup_(json_view_deinit) struct json_view view = {0};
        _cleanup_transaction_ struct db_transaction t = {0};
        _cleanup_query_ struct db_query q = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        if (r == 0)
                r = db_select(s->db, &q,
                              "SELECT point_id, point, state, COALESCE(block, 0), flags LIKE '%\"noisy:%', result, "
                              "flags "
                              "FROM points JOIN runs ON runs.point_id = points.id "
                              "WHERE points.experiment_id = ? AND ordinal >= ? AND ordinal < ? AND points.rate IS NULL "
                              "ORDER BY ordinal, " IN_TIME,
                              DB_INT(experiment_id), DB_INT(from_ordinal), DB_INT((int64_t) from_ordinal + limit));
        while (r == 0 && (r = db_step(&q)) > 0)
                r = take_row(&q, &view, &list);
        if (r < 0) {
                store_figures_free(list.items, list.n);
                return r;
        }
        *ret = list.items;
        *ret_n = list.n;
        return 0;
}

int store_rate_flags(struct store *s, int64_t experiment_id,
                     void (*visit)(void *userdata, uint32_t ordinal, const char *flags_json), void *userdata) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT closed.ordinal, runs.flags FROM points "
                          "JOIN points closed ON closed.experiment_id = points.experiment_id "
                          "AND closed.rate IS NULL AND closed.point = points.point "
                          "JOIN runs ON runs.point_id = points.id "
                          "WHERE points.experiment_id = ? AND points.rate IS NOT NULL AND runs.state = 'done'",
                          DB_INT(experiment_id));
        while (r >= 0 && (r = db_step(&q)) > 0)
                visit(userdata, db_column_u32(&q, 0), db_column_peek(&q, 1));
        return r;
}
