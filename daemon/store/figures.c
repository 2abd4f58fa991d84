/* SPDX-License-Identifier: MIT */

/*
 * The figures of runs alone, without the rest of their results: SQLite takes them out of the stored JSON many times as
 * fast as a tree can be built of it, and a comparison reads thousands of runs.
 */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SQL_MAX 8192u

void store_figures_free(struct figures_point *points, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(points[i].point_json);
                free(points[i].runs);
        }
        free(points);
}

/* Where the table of figures places one: as result_figure() finds it. The names are the table's own. */
static size_t print_path(char *sql, size_t size, enum figure f) {
        const struct figure_group_term *group = &figure_groups[figure_terms[f].group];
        const char *in = group->in_run ? group->in_run : "", *dot = group->in_run ? "." : "";
        if (group->end == FIGURE_OF_OTHER) /* none of them is compared */
                return (size_t) snprintf(sql, size, ", NULL");
        if (group->end == FIGURE_OF_RUN)
                return (size_t) snprintf(sql, size, ", result ->> '$.%s%s%s'", in, dot, figure_terms[f].name);
        return (size_t) snprintf(sql, size, ", result ->> ('$.%s%s' || (result ->> '$.counted_by') || '.%s')", in, dot,
                                 figure_terms[f].name);
}

/* *ret_n: of the figures, in the order of their columns. */
static int print_select(char sql[static SQL_MAX], enum figure figures[static FIGURE_COUNT], size_t *ret_n) {
        size_t used =
                (size_t) snprintf(sql, SQL_MAX, "SELECT point_id, point, state, repetition, flags LIKE '%%\"noisy:%%'");
        *ret_n = 0;
        for (size_t f = 0; f < FIGURE_COUNT && used < SQL_MAX; f++) {
                if (figure_terms[f].faster == FIGURE_NOT_COMPARED)
                        continue;
                used += print_path(sql + used, SQL_MAX - used, (enum figure) f);
                figures[(*ret_n)++] = (enum figure) f;
        }
        if (used < SQL_MAX)
                used += (size_t) snprintf(sql + used, SQL_MAX - used,
                                          " FROM points JOIN runs ON runs.point_id = points.id "
                                          "WHERE points.experiment_id = ? AND ordinal >= ? AND ordinal < ? "
                                          "ORDER BY ordinal, position");
        return used < SQL_MAX ? 0 : -E2BIG;
}

struct figures_list {
        struct figures_point *items;
        size_t n, size, runs_size; /* the last: of the last point's runs */
        int64_t last_id;
};

static int take_row(struct db_query *q, const enum figure *figures, size_t n_figures, struct figures_list *list) {
        int64_t id = db_column_i64(q, 0);
        int r = 0;
        if (list->n == 0 || id != list->last_id) {
                r = store_grow((void **) &list->items, &list->size, list->n, sizeof(*list->items));
                if (r < 0)
                        return r;
                list->items[list->n++] = (struct figures_point){.point_json = db_column_text(q, 1)};
                list->last_id = id;
                list->runs_size = 0;
        }
        struct figures_point *p = &list->items[list->n - 1];
        r = store_grow((void **) &p->runs, &list->runs_size, p->n_runs, sizeof(*p->runs));
        if (r < 0)
                return r;
        struct figures_run *run = &p->runs[p->n_runs++];
        *run = (struct figures_run){.repetition = db_column_u32(q, 3), .noisy = db_column_i64(q, 4) != 0};
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                run->values[f] = NAN;
        for (size_t i = 0; i < n_figures; i++)
                if (!db_column_is_null(q, (int) i + 5))
                        run->values[figures[i]] = db_column_double(q, (int) i + 5);
        r = store_row_state(q, 2, &run->state);
        return r < 0 ? r : q->error;
}

int store_figures(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                  struct figures_point **ret, size_t *ret_n) {
        char sql[SQL_MAX];
        enum figure figures[FIGURE_COUNT];
        size_t n_figures = 0;
        struct figures_list list = {0};
        _cleanup_transaction_ struct db_transaction t = {0};
        _cleanup_query_ struct db_query q = {0};
        int r = print_select(sql, figures, &n_figures);
        if (r == 0)
                r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        if (r == 0)
                r = db_select(s->db, &q, sql, DB_INT(experiment_id), DB_INT(from_ordinal),
                              DB_INT((int64_t) from_ordinal + limit));
        while (r == 0 && (r = db_step(&q)) > 0)
                r = take_row(&q, figures, n_figures, &list);
        if (r < 0) {
                store_figures_free(list.items, list.n);
                return r;
        }
        *ret = list.items;
        *ret_n = list.n;
        return 0;
}
