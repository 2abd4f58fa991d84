/* SPDX-License-Identifier: MIT */

/* Up to which change the store has been exported, and whether an experiment has to be before it may be deleted. */

#include "daemon/store/internal.h"

#include <errno.h>

void store_keep_until_exported(struct store *s, bool keep) {
        s->keep_until_exported = keep;
}

int store_exported(struct store *s, int64_t *ret) {
        int r = db_get_one(s->db, ret, "SELECT COALESCE(change, -1) FROM exported");
        return r == -ENOENT ? -EBADMSG : r;
}

/* An acknowledgement is a change, by which an older copy of the database is known, but not when it is of nothing but
 * other acknowledgements and pins: an exporter would have its own to acknowledge, time and again. */
#define CHANGED(table) "EXISTS (SELECT 1 FROM " table " WHERE change > ?1 AND change <= ?2)"
static int acknowledge(struct db *db, int64_t before, int64_t change) {
        int64_t any, own;
        int r = db_get(db, &any,
                       "SELECT " CHANGED("experiments") " OR " CHANGED("runs") " OR " CHANGED("samples") " OR " CHANGED(
                               "deletions"),
                       DB_INT(before), DB_INT(change));
        if (r == 0 && any)
                r = store_reserve_changes(db, 1, &own);
        return r < 0 ? r : db_run(db, "UPDATE exported SET change = ?", DB_INT(change));
}

int store_acknowledge_export(struct store *s, int64_t change, int64_t *ret_newest) {
        int r = store_last_change(s, ret_newest);
        if (r < 0)
                return r;
        if (change > *ret_newest)
                return -ERANGE;
        int64_t before;
        r = store_exported(s, &before);
        if (r < 0 || change <= before) /* nothing is written for a repetition */
                return r;
        _cleanup_transaction_ struct db_transaction t = {0};
        r = db_begin_write(s->db, &t);
        if (r == 0)
                r = acknowledge(s->db, before, change);
        return r < 0 ? r : db_commit(&t);
}

int store_export_of(struct store *s, int64_t id, int64_t *ret_newest, int64_t *ret_exported) {
        int64_t newest, exported;
        int r = db_get(s->db, &newest,
                       "SELECT max(change, COALESCE((SELECT max(change) FROM runs WHERE experiment_id = ?1), 0)) "
                       "FROM experiments WHERE id = ?1 AND " SHOWN("id"),
                       DB_INT(id));
        if (r == 0)
                r = store_exported(s, &exported);
        if (r < 0)
                return r;
        *ret_newest = newest;
        *ret_exported = exported;
        return 0;
}

int store_require_exported(struct store *s, int64_t id) {
        int64_t newest, exported, own;
        if (!s->keep_until_exported)
                return 0;
        int r = db_get(s->db, &own, "SELECT " OWN("?1"), DB_INT(id));
        if (r < 0 || !own) /* its own host exports it */
                return r;
        r = store_export_of(s, id, &newest, &exported);
        if (r < 0)
                return r;
        return newest <= exported ? 0 : -EPERM;
}
