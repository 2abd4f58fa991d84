/* SPDX-License-Identifier: MIT */

/* Baselines over time in the store: the experiments that are still to be compared with them, and the outcomes. */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* What a spec requires, in an order of its own: earlier versions wrote it as it was posted, later ones sort it. */
#define REQUIRED(measures)                                                                                             \
        "(SELECT json_group_array(json_array(fullkey, type, atom)) FROM (SELECT fullkey, type, atom FROM "             \
        "json_tree(" measures ", '$.require') ORDER BY fullkey))"

/* The experiments of the spec of `p`. Texts that differ in the order of `require` have one length, too, by which the
 * index finds them. */
#define OF_THE_SPEC                                                                                                    \
        "(SELECT experiment_id FROM specs WHERE length(measures) = length(p.measures) "                                \
        "AND substr(measures, 1, 100) = substr(p.measures, 1, 100) AND measures = p.measures "                         \
        "UNION ALL SELECT experiment_id FROM specs WHERE json_type(p.measures, '$.require') IS NOT NULL "              \
        "AND length(measures) = length(p.measures) AND json_type(measures, '$.require') IS NOT NULL "                  \
        "AND json_remove(measures, '$.require') = json_remove(p.measures, '$.require') "                               \
        "AND " REQUIRED("measures") " = " REQUIRED("p.measures") ") "

/* 0: the pin is of an earlier version, which noted none. */
#define PIN_CHANGE "COALESCE((SELECT change FROM pin_changes WHERE name = b.name), 0)"

/* CROSS JOIN goes from the few baselines to the few of their spec; the planner would scan all finished experiments. */
int store_pending_check(struct store *s, const struct pending_check *after, struct pending_check *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q,
                         "SELECT b.name, b.experiment_id, e.id, e.finished_at, " PIN_CHANGE " FROM baselines b "
                         "CROSS JOIN specs p ON p.experiment_id = b.experiment_id "
                         "CROSS JOIN experiments e ON e.id IN " OF_THE_SPEC "AND e.id > p.experiment_id "
                         "AND +e.state IN ('done', 'failed') AND " SHOWN(
                                 "e.id") " "
                                         "LEFT JOIN baseline_checks c ON c.name = b.name AND c.experiment_id = e.id "
                                         "WHERE " SETTLED " AND (c.finished_at IS NULL OR "
                                         "c.finished_at <> e.finished_at) AND (e.id, b.name) > (?, ?) "
                                         "ORDER BY e.id, b.name LIMIT 1",
                         DB_INT(after->experiment_id), DB_TEXT(after->name ? after->name : ""));
        if (r < 0)
                return r;
        struct pending_check p = {.name = db_column_text(&q, 0),
                                  .baseline_id = db_column_i64(&q, 1),
                                  .experiment_id = db_column_i64(&q, 2),
                                  .finished_at = db_column_i64(&q, 3),
                                  .pin_change = db_column_i64(&q, 4)};
        if (q.error < 0) {
                free(p.name);
                return q.error;
        }
        *ret = p;
        return 0;
}

/* Whether both experiments and the pin are still as they were when the check began. */
static int require_pending(struct db *db, const struct pending_check *p) {
        int64_t one;
        return db_get(db, &one,
                      "SELECT 1 FROM baselines b JOIN experiments e ON e.id = ?3 AND e.finished_at = ?4 "
                      "AND " SHOWN("e.id") " WHERE b.name = ?1 AND b.experiment_id = ?2 AND " SETTLED " AND " PIN_CHANGE
                                           " = ?5",
                      DB_TEXT(p->name), DB_INT(p->baseline_id), DB_INT(p->experiment_id), DB_INT(p->finished_at),
                      DB_INT(p->pin_change));
}

/* Removes rows of one check, as many as *left has. */
static int remove_check(struct db *db, const char *name, int64_t experiment_id, uint64_t *left) {
        int r = db_run(db, "UPDATE baseline_checks SET finished_at = NULL WHERE name = ? AND experiment_id = ?",
                       DB_TEXT(name), DB_INT(experiment_id));
        if (r == 0)
                r = db_run(db,
                           "DELETE FROM baseline_ratios WHERE name = ?1 AND experiment_id = ?2 AND (point, figure) IN "
                           "(SELECT point, figure FROM baseline_ratios WHERE name = ?1 AND experiment_id = ?2 "
                           "LIMIT ?3)",
                           DB_TEXT(name), DB_INT(experiment_id), DB_INT(*left));
        if (r == 0)
                *left -= db_changed_rows(db);
        if (r < 0 || *left == 0)
                return r;
        r = db_run(db, "DELETE FROM baseline_checks WHERE name = ? AND experiment_id = ?", DB_TEXT(name),
                   DB_INT(experiment_id));
        if (r == 0)
                *left -= db_changed_rows(db);
        return r;
}

int store_remove_checks(struct db *db, const char *baseline, int64_t experiment_id, uint64_t *left) {
        int r = 0;
        while (r == 0 && *left > 0) {
                _cleanup_free_ char *name = NULL;
                int64_t id;
                r = baseline
                            ? db_get_text(db, &id, &name,
                                          "SELECT experiment_id, name FROM baseline_checks WHERE name = ? LIMIT 1",
                                          DB_TEXT(baseline))
                            : db_get_text(
                                      db, &id, &name,
                                      "SELECT experiment_id, name FROM baseline_checks WHERE experiment_id = ? LIMIT 1",
                                      DB_INT(experiment_id));
                if (r == 0)
                        r = remove_check(db, name, id, left);
        }
        return r == -ENOENT ? 0 : r;
}

int store_begin_check(struct store *s, const struct pending_check *p) {
        uint64_t left = STORE_STEP_ROWS;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(s, &t);
        if (r == 0)
                r = require_pending(s->db, p);
        if (r == 0)
                r = remove_check(s->db, p->name, p->experiment_id, &left);
        if (r == 0 && left > 0)
                r = db_run(s->db, "INSERT INTO baseline_checks (name, experiment_id) VALUES (?, ?)", DB_TEXT(p->name),
                           DB_INT(p->experiment_id));
        if (r == 0)
                r = db_commit(&t);
        return r < 0 ? r : left == 0;
}

static int insert_ratio(struct db *db, const struct pending_check *p, const struct new_ratio *ratio) {
        return db_run(
                db,
                "INSERT INTO baseline_ratios (name, experiment_id, figure, point, ratio, low, high, level, verdict) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                DB_TEXT(p->name), DB_INT(p->experiment_id), DB_TEXT(ratio->figure), DB_TEXT(ratio->point_json),
                DB_REAL(ratio->ratio), ratio->has_interval ? DB_REAL(ratio->low) : DB_NULL(),
                ratio->has_interval ? DB_REAL(ratio->high) : DB_NULL(),
                ratio->has_interval ? DB_REAL(ratio->level) : DB_NULL(), DB_TEXT(ratio->verdict));
}

int store_add_ratios(struct store *s, const struct pending_check *p, const struct new_ratio *ratios, size_t n) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(s, &t);
        if (r == 0)
                r = require_pending(s->db, p);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = insert_ratio(s->db, p, &ratios[i]);
        return r < 0 ? r : db_commit(&t);
}

int store_end_check(struct store *s, const struct pending_check *p, const struct new_check *c) {
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = require_pending(s->db, p);
        if (r == 0)
                r = db_run(
                        s->db,
                        "UPDATE baseline_checks SET finished_at = ?, alike = ?, undecided = ?, faster = ?, "
                        "slower = ?, equivalent = ?, error = ?, differences = ? WHERE name = ? AND experiment_id = ?",
                        DB_INT(p->finished_at), DB_INT(c->alike), DB_INT(c->undecided), DB_INT(c->faster),
                        DB_INT(c->slower), DB_INT(c->equivalent), DB_TEXT(c->error), DB_TEXT(c->differences_json),
                        DB_TEXT(p->name), DB_INT(p->experiment_id));
        if (r == 0)
                r = store_reserve_changes(s->db, 1, &change);
        if (r == 0) /* it has a flag, or has lost one */
                r = db_run(s->db, "UPDATE experiments SET change = ? WHERE id = ?", DB_INT(change),
                           DB_INT(p->experiment_id));
        return r < 0 ? r : db_commit(&t);
}

/* ---- history ---- */

void check_records_free(struct check_record *checks, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(checks[i].experiment_name);
                free(checks[i].version);
                free(checks[i].error);
                free(checks[i].differences_json);
        }
        free(checks);
}

static int read_checks(struct db *db, const char *name, uint32_t limit, struct check_record **items, size_t *n) {
        size_t size = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(db, &q,
                          "SELECT * FROM (SELECT c.experiment_id, e.name, e.version, c.finished_at, alike, undecided, "
                          "faster, slower, equivalent, c.error, differences FROM baseline_checks c "
                          "JOIN experiments e ON e.id = c.experiment_id "
                          "JOIN baselines b ON b.name = c.name AND " SETTLED
                          " WHERE c.name = ? AND c.finished_at IS NOT NULL AND " SHOWN(
                                  "e.id") " "
                                          "ORDER BY c.experiment_id DESC LIMIT ?) ORDER BY experiment_id",
                          DB_TEXT(name), DB_INT(limit));
        while (r >= 0 && (r = store_next_row(&q, *items, size, *n)) > 0)
                (*items)[(*n)++] = (struct check_record){.experiment_id = db_column_i64(&q, 0),
                                                         .experiment_name = db_column_text(&q, 1),
                                                         .version = db_column_text(&q, 2),
                                                         .finished_at = db_column_i64(&q, 3),
                                                         .alike = db_column_i64(&q, 4) != 0,
                                                         .undecided = db_column_u32(&q, 5),
                                                         .faster = db_column_u32(&q, 6),
                                                         .slower = db_column_u32(&q, 7),
                                                         .equivalent = db_column_u32(&q, 8),
                                                         .error = db_column_text(&q, 9),
                                                         .differences_json = db_column_text(&q, 10)};
        return r;
}

void series_records_free(struct series_record *series, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(series[i].point_json);
                free(series[i].figure);
                free(series[i].values);
        }
        free(series);
}

struct series_list {
        struct series_record *items;
        size_t n, size, values_size; /* the last: of the last one's values */
};

/* The series that a row of the select belongs to: the last one, or a new one. */
static int series_of_row(struct db_query *q, struct series_list *list, struct series_record **ret) {
        const char *point = db_column_peek(q, 0), *figure = db_column_peek(q, 1);
        if (q->error < 0 || !point || !figure)
                return q->error < 0 ? q->error : -EBADMSG;
        if (list->n > 0) {
                struct series_record *last = &list->items[list->n - 1];
                if (strcmp(last->point_json, point) == 0 && strcmp(last->figure, figure) == 0) {
                        *ret = last;
                        return 0;
                }
        }
        if (!util_grow(list->items, list->n, list->size))
                return -ENOMEM;
        struct series_record *fresh = &list->items[list->n++];
        *fresh = (struct series_record){.point_json = strdup(point), .figure = strdup(figure)};
        list->values_size = 0;
        *ret = fresh;
        return fresh->point_json && fresh->figure ? 0 : -ENOMEM;
}

static int take_value(struct db_query *q, struct series_list *list) {
        struct series_record *s;
        int r = series_of_row(q, list, &s);
        if (r < 0)
                return r;
        if (!util_grow(s->values, s->n, list->values_size))
                return -ENOMEM;
        const char *verdict = db_column_peek(q, 7);
        struct series_value *v = &s->values[s->n++];
        *v = (struct series_value){.experiment_id = db_column_i64(q, 2),
                                   .ratio = db_column_double(q, 3),
                                   .has_interval = !db_column_is_null(q, 4),
                                   .low = db_column_double(q, 4),
                                   .high = db_column_double(q, 5),
                                   .level = db_column_double(q, 6)};
        (void) snprintf(v->verdict, sizeof(v->verdict), "%s", verdict ? verdict : "");
        return q->error;
}

static int read_series(struct db *db, const char *name, int64_t from_id, struct series_list *list) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(
                db, &q,
                "SELECT point, figure, r.experiment_id, ratio, low, high, level, verdict FROM baseline_ratios r "
                "JOIN baseline_checks c ON c.name = r.name AND c.experiment_id = r.experiment_id "
                "AND c.finished_at IS NOT NULL AND " SHOWN(
                        "c.experiment_id") " WHERE r.name = ? AND r.experiment_id >= ? ORDER BY point, "
                                           "figure, r.experiment_id",
                DB_TEXT(name), DB_INT(from_id));
        while (r == 0 && (r = db_step(&q)) > 0)
                r = take_value(&q, list);
        return r;
}

int store_history(struct store *s, const char *name, uint32_t limit, struct check_record **ret_checks,
                  size_t *ret_n_checks, struct series_record **ret_series, size_t *ret_n_series) {
        struct check_record *checks = NULL;
        struct series_list series = {0};
        size_t n_checks = 0;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = read_checks(s->db, name, limit, &checks, &n_checks);
        if (r == 0 && n_checks > 0)
                r = read_series(s->db, name, checks[0].experiment_id, &series);
        if (r < 0) {
                check_records_free(checks, n_checks);
                series_records_free(series.items, series.n);
                return r;
        }
        *ret_checks = checks;
        *ret_n_checks = n_checks;
        *ret_series = series.items;
        *ret_n_series = series.n;
        return 0;
}
