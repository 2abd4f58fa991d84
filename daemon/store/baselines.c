/* SPDX-License-Identifier: MIT */

/* Baselines in the store: names for experiments that later ones are compared with. */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>

/* experiment_id 0: the name is free again. By the number, too, a copy of the database without the pin is known as
 * older. */
static int add_change(struct db *db, const char *name, int64_t experiment_id) {
        int64_t change;
        int r = store_reserve_changes(db, 1, &change);
        return r < 0 ? r
                     : db_run(db, "INSERT OR REPLACE INTO pin_changes (change, name, experiment_id) VALUES (?, ?, ?)",
                              DB_INT(change), DB_TEXT(name), experiment_id > 0 ? DB_INT(experiment_id) : DB_NULL());
}

/* A name that is there already needs none. */
static int require_place(struct store *s, const char *name) {
        int64_t others, one;
        int r = db_get(s->db, &one, "SELECT 1 FROM baselines WHERE name = ?", DB_TEXT(name));
        if (r != -ENOENT)
                return r;
        r = store_require_room(s);
        if (r == 0)
                r = db_get_one(s->db, &others, "SELECT count(*) FROM baselines");
        return r < 0 ? r : others < BASELINES_MAX ? 0 : -E2BIG;
}

int store_pin_baseline(struct store *s, const char *name, int64_t experiment_id) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        if (r == 0)
                r = require_place(s, name);
        if (r == 0) /* the checks against another one */
                r = db_run(s->db,
                           "DELETE FROM baseline_checks WHERE name = ?1 AND EXISTS (SELECT 1 FROM baselines b "
                           "WHERE b.name = ?1 AND b.experiment_id <> ?2)",
                           DB_TEXT(name), DB_INT(experiment_id));
        if (r == 0)
                r = db_run(s->db,
                           "INSERT INTO baselines (name, experiment_id, pinned_at) VALUES (?1, ?2, ?3) "
                           "ON CONFLICT (name) DO UPDATE SET experiment_id = ?2, pinned_at = ?3 "
                           "WHERE experiment_id <> ?2",
                           DB_TEXT(name), DB_INT(experiment_id), DB_INT(util_now_ms()));
        if (r == 0 && db_changed_rows(s->db) > 0)
                r = add_change(s->db, name, experiment_id);
        return r < 0 ? r : db_commit(&t);
}

int store_remove_baseline(struct store *s, const char *name) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_run(s->db, "DELETE FROM baselines WHERE name = ?", DB_TEXT(name));
        if (r == 0 && db_changed_rows(s->db) == 0)
                return -ENOENT;
        if (r == 0)
                r = add_change(s->db, name, 0);
        return r < 0 ? r : db_commit(&t);
}

void baseline_record_deinit(struct baseline_record *b) {
        free(b->name);
        free(b->experiment_name);
        *b = (struct baseline_record){0};
}

void store_baselines_free(struct baseline_record *baselines, size_t n) {
        for (size_t i = 0; i < n; i++)
                baseline_record_deinit(&baselines[i]);
        free(baselines);
}

#define BASELINE_COLUMNS "baselines.name, experiment_id, pinned_at, experiments.name"
#define BASELINE_TABLES "baselines JOIN experiments ON experiments.id = experiment_id"

static int row_baseline(struct db_query *q, struct baseline_record *ret) {
        struct baseline_record b = {.name = db_column_text(q, 0),
                                    .experiment_id = db_column_i64(q, 1),
                                    .pinned_at = db_column_i64(q, 2),
                                    .experiment_name = db_column_text(q, 3)};
        if (q->error < 0) {
                baseline_record_deinit(&b);
                return q->error;
        }
        *ret = b;
        return 0;
}

int store_baseline(struct store *s, const char *name, struct baseline_record *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q, "SELECT " BASELINE_COLUMNS " FROM " BASELINE_TABLES " WHERE baselines.name = ?",
                         DB_TEXT(name));
        if (r < 0)
                return r;
        return row_baseline(&q, ret);
}

int store_baselines(struct store *s, int64_t experiment_id, struct baseline_record **ret, size_t *ret_n) {
        struct baseline_record *items = NULL;
        size_t n = 0, size = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT " BASELINE_COLUMNS " FROM " BASELINE_TABLES " WHERE ?1 = 0 OR experiment_id = ?1 "
                          "ORDER BY baselines.name",
                          DB_INT(experiment_id));
        while (r >= 0 && (r = store_next_row(&q, items, size, n)) > 0) {
                r = row_baseline(&q, &items[n]);
                n += r == 0;
        }
        if (r < 0) {
                store_baselines_free(items, n);
                return r;
        }
        *ret = items;
        *ret_n = n;
        return 0;
}
