/* SPDX-License-Identifier: MIT */

/*
 * Reads that span the tables: the changes after a change number (the event streams), and the points of an experiment
 * with the results of their runs (the results table).
 */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Changes: first their numbers from the three indexes, merged, then the records. */

enum kind { KIND_EXPERIMENT, KIND_RUN, KIND_SAMPLE, KIND_DELETION, KIND_PIN };

struct change_key {
        enum kind kind;
        int64_t id, change;
};

/* The stream of all experiments leaves out runs that have never begun, possibly thousands. A run that was
 * interrupted by a stop in its first attempt has attempt 0 again, also while it waits for its next one. */
#define BEGUN "(attempt > 0 OR begun)"

#define CHANGES_OF_ALL                                                                                                 \
        "SELECT change, kind, id FROM ("                                                                               \
        "SELECT * FROM (SELECT change, 0 AS kind, id FROM experiments WHERE change > ?1 AND " SHOWN(                   \
                "id") "               ORDER BY change LIMIT ?2) "                                                      \
                      "UNION ALL "                                                                                     \
                      "SELECT * FROM (SELECT change, 1, id FROM runs WHERE change > ?1 AND " BEGUN                     \
                      " AND " SHOWN("experiment_id") "               ORDER BY change LIMIT ?2) "                       \
                                                     "UNION ALL "                                                      \
                                                     "SELECT * FROM (SELECT change, 3, experiment_id FROM deletions "  \
                                                     "WHERE change > ?1 ORDER BY change LIMIT ?2) "                    \
                                                     "UNION ALL "                                                      \
                                                     "SELECT * FROM (SELECT change, 4, change FROM pin_changes "       \
                                                     "WHERE change > ?1 ORDER BY change LIMIT ?2)) "                   \
                                                     "ORDER BY change LIMIT ?2"

#define CHANGES_OF_ONE                                                                                                 \
        "SELECT change, kind, id FROM ("                                                                               \
        "SELECT change, 0 AS kind, id FROM experiments WHERE id = ?3 AND change > ?1 "                                 \
        "UNION ALL "                                                                                                   \
        "SELECT * FROM (SELECT change, 1, id FROM runs WHERE experiment_id = ?3 AND change > ?1 "                      \
        "               ORDER BY change LIMIT ?2) "                                                                    \
        "UNION ALL "                                                                                                   \
        "SELECT * FROM (SELECT change, 2, change FROM samples WHERE experiment_id = ?3 AND change > ?1 "               \
        "               ORDER BY change LIMIT ?2)) "                                                                   \
        "ORDER BY change LIMIT ?2"

#define DELETION_OF_ONE                                                                                                \
        "SELECT change, 3, experiment_id FROM deletions WHERE change > ?1 AND experiment_id = ?2 "                     \
        "ORDER BY change DESC LIMIT 1"

/* *ret_gone: there is no such experiment, and its deletion at most is selected. */
static int select_keys(struct db *db, struct db_query *q, int64_t experiment_id, int64_t after_change, uint32_t limit,
                       bool *ret_gone) {
        *ret_gone = false;
        if (experiment_id == 0)
                return db_select(db, q, CHANGES_OF_ALL, DB_INT(after_change), DB_INT(limit));
        int r = store_require_experiment(db, experiment_id);
        if (r == -ENOENT) {
                *ret_gone = true;
                return db_select(db, q, DELETION_OF_ONE, DB_INT(after_change), DB_INT(experiment_id));
        }
        if (r < 0)
                return r;
        return db_select(db, q, CHANGES_OF_ONE, DB_INT(after_change), DB_INT(limit), DB_INT(experiment_id));
}

static int read_keys(struct db *db, int64_t experiment_id, int64_t after_change, uint32_t limit,
                     struct change_key **ret, size_t *ret_n) {
        _cleanup_free_ struct change_key *keys = NULL;
        size_t n = 0, size = 0;
        bool gone;
        _cleanup_query_ struct db_query q = {0};
        int r = select_keys(db, &q, experiment_id, after_change, limit, &gone);
        while (r >= 0 && (r = store_next_row(&q, keys, size, n)) > 0)
                keys[n++] = (struct change_key){(enum kind) db_column_u32(&q, 1), db_column_i64(&q, 2),
                                                db_column_i64(&q, 0)};
        if (r == 0 && gone && n == 0)
                r = -ENOENT;
        if (r < 0)
                return r;
        *ret = util_steal(&keys);
        *ret_n = n;
        return 0;
}

static int select_record(struct db *db, struct db_query *q, const struct change_key *key) {
        switch (key->kind) {
        case KIND_EXPERIMENT:
                return db_select(db, q, "SELECT " EXPERIMENT_COLUMNS " FROM " EXPERIMENT_TABLES " WHERE id = ?",
                                 DB_INT(key->id));
        case KIND_RUN:
                return db_select(db, q, "SELECT " RUN_COLUMNS " FROM " RUN_TABLES " WHERE runs.id = ?",
                                 DB_INT(key->id));
        case KIND_SAMPLE:
                return db_select(db, q, "SELECT " SAMPLE_COLUMNS " FROM samples WHERE change = ?", DB_INT(key->id));
        case KIND_PIN:
                return db_select(db, q,
                                 "SELECT change, COALESCE(experiment_id, 0), name FROM pin_changes WHERE change = ?",
                                 DB_INT(key->id));
        case KIND_DELETION:
                break; /* the key is all there is of it */
        }
        return -EBADMSG;
}

static void *record_new(size_t size, void **slot) {
        *slot = calloc(1, size);
        return *slot;
}

static int row_pin(struct db_query *q, struct pin_record *ret) {
        *ret = (struct pin_record){
                .change = db_column_i64(q, 0), .experiment_id = db_column_i64(q, 1), .name = db_column_text(q, 2)};
        return q->error;
}

static int read_record(struct db *db, const struct change_key *key, const struct backlog *b,
                       struct change_record *ret) {
        _cleanup_query_ struct db_query q = {0};
        ret->change = key->change;
        if (key->kind == KIND_DELETION) {
                if (!record_new(sizeof(*ret->deletion), (void **) &ret->deletion))
                        return -ENOMEM;
                *ret->deletion = (struct deletion_record){.change = key->change, .experiment_id = key->id};
                return 0;
        }
        int r = select_record(db, &q, key);
        if (r < 0)
                return r;
        r = db_step(&q);
        if (r <= 0)
                return r < 0 ? r : -EBADMSG; /* it must exist in the same snapshot */
        if (key->kind == KIND_EXPERIMENT)
                return record_new(sizeof(*ret->experiment), (void **) &ret->experiment)
                               ? store_row_experiment(&q, b, ret->experiment)
                               : -ENOMEM;
        if (key->kind == KIND_RUN)
                return record_new(sizeof(*ret->run), (void **) &ret->run) ? store_row_run(&q, ret->run) : -ENOMEM;
        if (key->kind == KIND_PIN)
                return record_new(sizeof(*ret->pin), (void **) &ret->pin) ? row_pin(&q, ret->pin) : -ENOMEM;
        return record_new(sizeof(*ret->sample), (void **) &ret->sample) ? store_row_sample(&q, ret->sample) : -ENOMEM;
}

static size_t record_bytes(const struct change_record *c) {
        if (c->experiment)
                return store_experiment_bytes(c->experiment);
        if (c->run)
                return store_run_bytes(c->run);
        return c->sample && c->sample->latency ? sizeof(*c->sample->latency) : 0;
}

void store_changes_free(struct change_record *changes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                if (changes[i].experiment)
                        experiment_record_deinit(changes[i].experiment);
                if (changes[i].run)
                        run_record_deinit(changes[i].run);
                if (changes[i].sample)
                        sample_record_deinit(changes[i].sample);
                free(changes[i].experiment);
                free(changes[i].run);
                free(changes[i].sample);
                free(changes[i].deletion);
                if (changes[i].pin)
                        free(changes[i].pin->name);
                free(changes[i].pin);
        }
        free(changes);
}

int store_changes(struct store *s, int64_t experiment_id, int64_t after_change, uint32_t limit, int64_t now_ms,
                  struct change_record **ret, size_t *ret_n) {
        _cleanup_free_ struct change_key *keys = NULL;
        size_t n = 0;
        _cleanup_(backlog_deinit) struct backlog b = {0};
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = read_keys(s->db, experiment_id, after_change, limit, &keys, &n);
        if (r == 0)
                r = store_read_backlog(s->db, now_ms, &b);
        if (r < 0)
                return r;
        struct change_record *items = calloc(n ? n : 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        size_t read = 0;
        for (size_t bytes = 0; r == 0 && read < n && bytes < STORE_PAGE_BYTES; read++) {
                r = read_record(s->db, &keys[read], &b, &items[read]);
                bytes += record_bytes(&items[read]);
        }
        if (r < 0) {
                store_changes_free(items, n);
                return r;
        }
        *ret = items;
        *ret_n = read;
        return 0;
}

/* Points with their runs */

void point_record_deinit(struct point_record *p) {
        for (size_t k = 0; k < p->n_runs; k++) {
                free(p->runs[k].result_json);
                free(p->runs[k].flags_json);
                free(p->runs[k].error);
        }
        free(p->runs);
        free(p->point_json);
        *p = (struct point_record){0};
}

STORE_LIST_FREE(store_points_free, point_record)

#define ALL_RUNS (-1)

static int read_point_runs(struct db *db, int64_t point_id, bool done_only, int64_t limit, struct point_record *p,
                           size_t *bytes) {
        size_t size = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(db, &q,
                          "SELECT state, result, flags, error, COALESCE(block, 0), id FROM runs WHERE point_id = ? "
                          "AND (state = 'done' OR NOT ?) ORDER BY " IN_TIME " LIMIT ?",
                          DB_INT(point_id), DB_INT(done_only), DB_INT(limit));
        while (r >= 0 && (r = store_next_row(&q, p->runs, size, p->n_runs)) > 0) {
                struct point_run *run = &p->runs[p->n_runs++];
                *run = (struct point_run){
                        .result_json = db_column_text(&q, 1),
                        .flags_json = db_column_text(&q, 2),
                        .error = db_column_text(&q, 3),
                        .block = db_column_u32(&q, 4),
                        .id = db_column_i64(&q, 5),
                };
                *bytes += (run->result_json ? strlen(run->result_json) : 0) + (run->error ? strlen(run->error) : 0);
                r = store_row_state(&q, 0, &run->state);
        }
        return r;
}

static int read_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                       struct point_record **ret, size_t *ret_n) {
        struct point_record *items = NULL;
        size_t n = 0, size = 0, bytes = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT id, point, rate FROM points WHERE experiment_id = ? AND ordinal >= ? "
                          "ORDER BY ordinal LIMIT ?",
                          DB_INT(experiment_id), DB_INT(from_ordinal), DB_INT(limit));
        while (r >= 0 && bytes < STORE_PAGE_BYTES && (r = store_next_row(&q, items, size, n)) > 0) {
                items[n++] = (struct point_record){.point_json = db_column_text(&q, 1),
                                                   .rate = (uint64_t) db_column_i64(&q, 2)};
                r = read_point_runs(s->db, db_column_i64(&q, 0), false, ALL_RUNS, &items[n - 1], &bytes);
        }
        if (r == 0)
                r = q.error;
        if (r < 0) {
                store_points_free(items, n);
                return r;
        }
        *ret = items;
        *ret_n = n;
        return 0;
}

int store_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                 struct point_record **ret, size_t *ret_n) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        return r < 0 ? r : read_points(s, experiment_id, from_ordinal, limit, ret, ret_n);
}

int store_import_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                        struct point_record **ret, size_t *ret_n) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        return r < 0 ? r : read_points(s, experiment_id, from_ordinal, limit, ret, ret_n);
}

/* The writer of merged specs has one order of members, so that equal objects are equal text. */
#define MEASURED_HERE SHOWN("experiment_id") " AND " OWN("experiment_id")
#define SAME(field) " AND json_extract(merged, '$." field "') IS json_extract(?2, '$." field "')"
#define MEASURED_ALIKE SPEC_MEASURED_ALIKE(SAME)

/* The point, as whichever instance of it: which one it is changes nothing in how it is measured. */
#define SAME_POINT                                                                                                     \
        "point IN (json_remove(?1, '$.instance'), json_set(?1, '$.instance', 1), json_set(?1, '$.instance', 2)) "
_Static_assert(SPEC_INSTANCES == 2, "each has its place in the list");

static int find_earlier(struct db *db, const char *point_json, const char *merged_json, uint32_t least,
                        int64_t *ret_experiment, int64_t *ret_point) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(
                db, &q,
                "SELECT experiment_id, points.id FROM points "
                "JOIN specs USING (experiment_id) "
                "WHERE " SAME_POINT "AND points.rate IS NULL AND " MEASURED_HERE
                " AND (SELECT count(*) FROM runs WHERE point_id = points.id AND state = 'done') >= ?3" MEASURED_ALIKE
                " ORDER BY experiment_id DESC LIMIT 1",
                DB_TEXT(point_json), DB_TEXT(merged_json), DB_INT(least));
        if (r < 0)
                return r;
        *ret_experiment = db_column_i64(&q, 0);
        *ret_point = db_column_i64(&q, 1);
        return q.error;
}

int store_earlier_runs(struct store *s, const char *point_json, const char *merged_json, uint32_t least, uint32_t most,
                       int64_t *ret_experiment, struct point_record *ret) {
        int64_t experiment_id = 0, point_id = 0;
        struct point_record p = {0};
        size_t bytes = 0;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = find_earlier(s->db, point_json, merged_json, least, &experiment_id, &point_id);
        if (r == 0)
                r = read_point_runs(s->db, point_id, true, most, &p, &bytes);
        if (r < 0) {
                point_record_deinit(&p);
                return r;
        }
        *ret_experiment = experiment_id;
        *ret = p;
        return 0;
}

int store_earlier_time(struct store *s, const char *point_json, double *ret_message_ns) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(
                s->db, &q,
                "SELECT CAST(json_extract(result, '$.window_ns') AS REAL) / json_extract(result, '$.messages') "
                "FROM runs WHERE id = (SELECT runs.id FROM points JOIN specs USING (experiment_id) "
                "JOIN runs ON runs.point_id = points.id WHERE " SAME_POINT "AND points.rate IS NULL "
                "AND state = 'done' AND json_extract(merged, '$.rate') IS NULL "
                "AND " SHOWN("points.experiment_id") " AND " OWN(
                        "points.experiment_id") " ORDER BY runs.id DESC LIMIT 1)",
                DB_TEXT(point_json));
        if (r == 0)
                r = db_step(&q);
        if (r <= 0 || db_column_is_null(&q, 0))
                return r < 0 ? r : -ENOENT;
        double each = db_column_double(&q, 0);
        if (q.error == 0)
                *ret_message_ns = each;
        return q.error;
}

int store_run_environment(struct store *s, int64_t run_id, char **ret) {
        return db_get_text(s->db, &run_id, ret,
                           "SELECT id, environment FROM runs WHERE id = ? AND environment IS NOT NULL", DB_INT(run_id));
}

void store_changed_runs_free(struct changed_run *runs, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(runs[i].flags_json);
        free(runs);
}

/* Flags stand before what is large in a row, so that of ten thousand runs little is read. */
int store_changed_runs(struct store *s, int64_t experiment_id, struct changed_run **ret, size_t *ret_n) {
        struct changed_run *runs = NULL;
        size_t n = 0, size = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT id, flags, MIN(position) AS first FROM runs WHERE experiment_id = ? "
                          "AND state = 'done' AND flags LIKE '%\"environment-%' GROUP BY flags ORDER BY first",
                          DB_INT(experiment_id));
        while (r >= 0 && (r = store_next_row(&q, runs, size, n)) > 0)
                runs[n++] = (struct changed_run){.id = db_column_i64(&q, 0), .flags_json = db_column_text(&q, 1)};
        if (r < 0) {
                store_changed_runs_free(runs, n);
                return r;
        }
        *ret = runs;
        *ret_n = n;
        return 0;
}
