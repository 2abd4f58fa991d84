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

int store_settle_baseline(struct db *db, const char *name) {
        int64_t to;
        uint64_t left = STORE_STEP_ROWS;
        int r = db_get(db, &to, "SELECT " PINNED_TO " FROM baselines b WHERE b.name = ? AND NOT " SETTLED,
                       DB_TEXT(name));
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = store_remove_checks(db, name, 0, &left);
        if (r < 0 || left == 0)
                return r;
        return to > 0 ? db_run(db, "UPDATE baselines SET experiment_id = ? WHERE name = ?", DB_INT(to), DB_TEXT(name))
                      : db_run(db, "DELETE FROM baselines WHERE name = ?", DB_TEXT(name));
}

/* 0: it is free. */
static int read_pin(struct db *db, const char *name, int64_t *ret) {
        int r = db_get(db, ret, "SELECT " PINNED_TO " FROM baselines b WHERE b.name = ?", DB_TEXT(name));
        if (r == -ENOENT)
                *ret = 0;
        return r == -ENOENT ? 0 : r;
}

static int require_place(struct store *s) {
        int64_t others;
        int r = store_require_room(s);
        if (r == 0)
                r = db_get_one(s->db, &others, "SELECT count(*) FROM baselines b WHERE " PINNED_TO " > 0");
        return r < 0 ? r : others < BASELINES_MAX ? 0 : -E2BIG;
}

int store_pin_baseline(struct store *s, const char *name, int64_t experiment_id) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int64_t pinned = 0;
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        if (r == 0)
                r = read_pin(s->db, name, &pinned);
        if (r < 0 || pinned == experiment_id)
                return r;
        if (pinned == 0)
                r = require_place(s);
        if (r == 0)
                r = db_run(s->db,
                           "INSERT INTO baselines (name, experiment_id, pinned_at) VALUES (?1, ?2, ?3) "
                           "ON CONFLICT (name) DO UPDATE SET pinned_at = ?3",
                           DB_TEXT(name), DB_INT(experiment_id), DB_INT(util_now_ms()));
        if (r == 0)
                r = add_change(s->db, name, experiment_id);
        if (r == 0)
                r = store_settle_baseline(s->db, name);
        return r < 0 ? r : db_commit(&t);
}

int store_remove_baseline(struct store *s, const char *name) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int64_t pinned = 0;
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = read_pin(s->db, name, &pinned);
        if (r == 0 && pinned == 0)
                return -ENOENT;
        if (r == 0)
                r = add_change(s->db, name, 0);
        if (r == 0)
                r = store_settle_baseline(s->db, name);
        return r < 0 ? r : db_commit(&t);
}

void baseline_record_deinit(struct baseline_record *b) {
        free(b->name);
        free(b->experiment_name);
        *b = (struct baseline_record){0};
}

STORE_LIST_FREE(store_baselines_free, baseline_record)

#define BASELINE_COLUMNS "b.name, experiments.id, pinned_at, experiments.name"
#define BASELINE_TABLES "baselines b JOIN experiments ON experiments.id = " PINNED_TO

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
        int r = db_first(s->db, &q, "SELECT " BASELINE_COLUMNS " FROM " BASELINE_TABLES " WHERE b.name = ?",
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
                          "SELECT " BASELINE_COLUMNS " FROM " BASELINE_TABLES
                          " WHERE ?1 IN (0, experiments.id) ORDER BY b.name",
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
