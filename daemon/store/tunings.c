/* SPDX-License-Identifier: MIT */

/* The undo journal of changed settings of the host. Only tuning.c calls it. */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>

int store_add_tuning(struct store *s, const struct tuning_record *record) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_run(s->db,
                           "INSERT INTO tunings (name, run_id, changed_at, original, wanted, boot_id) "
                           "VALUES (?, ?, ?, ?, ?, ?)",
                           DB_TEXT(record->name), DB_INT(record->run_id), DB_INT(util_now_ms()),
                           DB_TEXT(record->original), DB_TEXT(record->wanted), DB_TEXT(record->boot_id));
        return r < 0 ? r : db_commit(&t);
}

int store_next_tuning(struct store *s, const char *after, struct tuning_record *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q,
                         "SELECT name, run_id, original, wanted, boot_id FROM tunings WHERE name > ? "
                         "ORDER BY name LIMIT 1",
                         DB_TEXT(after));
        if (r < 0)
                return r;
        struct tuning_record record = {.name = db_column_text(&q, 0),
                                       .run_id = db_column_i64(&q, 1),
                                       .original = db_column_text(&q, 2),
                                       .wanted = db_column_text(&q, 3),
                                       .boot_id = db_column_text(&q, 4)};
        if (q.error < 0 || !record.name || !record.original || !record.wanted) {
                tuning_record_deinit(&record);
                return q.error < 0 ? q.error : -ENOMEM;
        }
        *ret = record;
        return 0;
}

int store_remove_tuning(struct store *s, const char *name) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_run(s->db, "DELETE FROM tunings WHERE name = ?", DB_TEXT(name));
        return r < 0 ? r : db_commit(&t);
}

void tuning_record_deinit(struct tuning_record *r) {
        free(r->name);
        free(r->original);
        free(r->wanted);
        free(r->boot_id);
        *r = (struct tuning_record){0};
}
