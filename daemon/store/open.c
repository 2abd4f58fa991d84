/* SPDX-License-Identifier: MIT */

/*
 * The store's lifetime: the lock that excludes a second daemon, opening, migrations, housekeeping, closing. The tables
 * are in experiments.c, runs.c, samples.c, changes.c and tunings.c.
 */

#include "daemon/log.h"
#include "daemon/store/database/pages.h"
#include "daemon/store/database/reserve.h"
#include "daemon/store/integrity.h"
#include "daemon/store/search-text.h"
#include "schema/lock.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Rows that a step removes, at most: a run has entries in six indexes. */
#define TIDY_ROWS 500
#define TIDY_PARTS 16   /* 4 MiB of a bundle's file; up to 16 MiB each from before migration 0022 */
#define TIDY_PAGES 1024 /* 4 MiB: fewer free pages stay for new rows */

static void store_closep(struct store **s) {
        store_close(*s);
}

/* -EROFS: the file system is read-only. A disk that its file system does not trust any more may still open files to be
 * written, and ext4 sets ST_RDONLY (statvfs(3)) for it no more: only a change shows it, and that of a time is the
 * smallest. */
static int require_writes(const struct store *s) {
        return futimens(s->lock_fd, NULL) < 0 ? -errno : 0;
}

/* Has it also after -EROFS, where there is such a file. */
static int take_lock(struct store *s) {
        _cleanup_free_ char *path = NULL;
        if (asprintf(&path, "%s/" LOCK_FILE, s->dir) < 0)
                return -ENOMEM;
        s->lock_fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (s->lock_fd < 0) {
                int r = -errno;
                log_error("%s: %s", path, strerrordesc_np(-r));
                return r;
        }
        int r = lock_take(s->lock_fd);
        if (r < 0)
                log_error("%s: %s", path,
                          r == -EBUSY ? "another ipclabd uses this state directory" : strerrordesc_np(-r));
        return r < 0 ? r : require_writes(s);
}

/* SQLite syncs the directory for its log, not for the database itself. */
static int create_file(const struct store *s) {
        _cleanup_close_ int fd = open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
        if (fd < 0 && errno == EEXIST)
                return 0;
        if (fd < 0) {
                int r = -errno;
                log_error("%s: %s", s->path, strerrordesc_np(-r));
                return r;
        }
        _cleanup_close_ int dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir_fd < 0 || fsync(dir_fd) < 0) {
                int r = -errno;
                log_error("%s: %s", s->dir, strerrordesc_np(-r));
                return r;
        }
        return 0;
}

static int store_new(struct store **ret, const char *dir) {
        _cleanup_(store_closep) struct store *s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->lock_fd = -1;
        s->identity_fd = -1;
        (void) pthread_mutex_init(&s->lock, NULL); /* with default attributes it cannot fail on Linux */
        s->dir = realpath(dir, NULL);
        if (!s->dir) {
                int r = -errno;
                log_error("%s: %s", dir, strerrordesc_np(-r));
                return r;
        }
        if (asprintf(&s->path, "%s/ipclab.db", s->dir) < 0) {
                s->path = NULL;
                return -ENOMEM;
        }
        *ret = util_steal(&s);
        return 0;
}

static int migrate_step(struct db *db, const struct migration *m, size_t version) {
        char pragma[64];
        snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %zu", version);
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(db, &t);
        if (r == 0)
                r = db_run_script(db, m->sql);
        if (r == 0)
                r = db_run_script(db, pragma);
        if (r == 0)
                r = db_commit(&t);
        if (r < 0)
                log_error("migration %s failed, the database stays at version %zu", m->name, version - 1);
        return r;
}

int store_migrate(struct db *db, const struct migration *list, size_t n) {
        int64_t version;
        int r = db_get_one(db, &version, "PRAGMA user_version");
        if (r < 0)
                return r;
        if (version < 0 || (uint64_t) version > n) {
                log_error("the database has version %" PRId64
                          ", this ipclab supports up to %zu: a newer one has written it",
                          version, n);
                return -EPROTONOSUPPORT;
        }
        r = db_add_function(db, "search_text", search_text);
        for (size_t i = (size_t) version; r == 0 && i < n; i++) {
                r = migrate_step(db, &list[i], i + 1);
                if (r < 0)
                        return r;
                log_info("database: migrated to version %zu (%s)", i + 1, list[i].name);
        }
        return r;
}

static int open_writer(struct store *s) {
        int r = create_file(s);
        return r < 0 ? r : db_open(&s->db, s->path, DB_WRITER);
}

/* Nothing of it is left open after an error. */
static int open_once(struct store *s) {
        int r = integrity_before_open(s);
        if (r == 0)
                r = open_writer(s);
        if (r == 0)
                r = integrity_compare(s);
        if (r == 0)
                r = store_migrate(s->db, migrations, n_migrations);
        if (r == 0)
                r = integrity_keep(s);
        if (r == 0)
                return 0;
        db_close(util_steal(&s->db));
        s->identity_fd = util_close(s->identity_fd);
        return r;
}

static int open_to_write(struct store *s) {
        int r;
        do
                r = open_once(s);
        while (r == -ENOSPC && reserve_release(s->dir));
        if (r < 0)
                return r;
        s->read_only = false;
        db_keep_room(s->path);
        (void) db_keep_growth(s->db); /* what needs it tries again */
        if (reserve_keep(s->dir) < 0)
                log_notice("%s has no room for " RESERVE_FILE ", from which experiments are deleted when the disk is "
                           "full",
                           s->dir);
        return 0;
}

/* A migration writes. Newer versions are refused as elsewhere. */
static int require_own_version(struct store *s) {
        int64_t version;
        int r = db_get_one(s->db, &version, "PRAGMA user_version");
        if (r < 0 || version < 0 || (uint64_t) version >= n_migrations)
                return r < 0 ? r : store_migrate(s->db, migrations, n_migrations);
        log_error(
                "the database in %s has version %" PRId64 ", and this ipclab needs version %zu, to which it cannot be "
                "migrated, as its file system is read-only: mount it to be written to, or copy the directory to where "
                "that is possible, and name the copy with --state-dir",
                s->dir, version, n_migrations);
        return -EROFS;
}

static int open_to_read(struct store *s) {
        s->read_only = true;
        int r = integrity_before_open(s);
        if (r == 0)
                r = db_open(&s->db, s->path, DB_LONE_READER);
        if (r == 0)
                r = integrity_compare(s);
        if (r == 0)
                r = require_own_version(s);
        if (r == 0)
                r = integrity_know(s);
        if (r == 0)
                log_error("the file system that holds %s is read-only: what is stored is served, and nothing is stored "
                          "until it can be written to again",
                          s->dir);
        return r;
}

int store_open(struct store **ret, const char *dir) {
        _cleanup_(store_closep) struct store *s = NULL;
        int r = store_new(&s, dir);
        if (r < 0)
                return r;
        do
                r = take_lock(s);
        while (r == -ENOSPC && reserve_release(s->dir));
        if (r == 0)
                r = open_to_write(s);
        else if (r == -EROFS && s->lock_fd >= 0)
                r = open_to_read(s);
        if (r < 0)
                return r;
        *ret = util_steal(&s);
        return 0;
}

bool store_is_read_only(const struct store *s) {
        return s->read_only;
}

int store_require_writable(const struct store *s) {
        return s->read_only ? -EROFS : require_writes(s);
}

/* The reader has no locks of its own, so that both may have the database open for a moment. */
int store_reopen(struct store *s) {
        int r = require_writes(s);
        if (r < 0)
                return r;
        pthread_mutex_lock(&s->lock);
        if (s->n_beside > 0) /* they have an index of the log that they would not share */
                r = -EBUSY;
        else {
                struct db *reader = util_steal(&s->db);
                r = open_to_write(s);
                if (r < 0)
                        s->db = reader;
                else
                        db_close(reader);
        }
        pthread_mutex_unlock(&s->lock);
        if (r == 0)
                log_notice("the file system that holds %s can be written to again: the queue goes on", s->dir);
        return r;
}

int store_adopt(const char *dir) {
        _cleanup_(store_closep) struct store *s = NULL;
        struct identity above = {0};
        enum pages_kind kind;
        int r = store_new(&s, dir);
        if (r == 0)
                r = take_lock(s);
        if (r < 0)
                return r;
        r = identity_read(s->dir, &above);
        if (r < 0)
                log_notice("%s/" IDENTITY_FILE ": %s: ids continue above the database's own", s->dir,
                           strerrordesc_np(-r));
        r = integrity_compare_log(s);
        if (r == 0)
                r = pages_kind(s->path, &kind);
        if (r == 0 && kind == PAGES_PLAIN)
                r = db_convert(s->path);
        if (r == 0)
                r = open_writer(s);
        if (r == 0)
                r = store_migrate(s->db, migrations, n_migrations);
        return r < 0 ? r : integrity_adopt(s, &above);
}

int store_backup(const char *dir, const char *to) {
        _cleanup_(store_closep) struct store *s = NULL;
        int r = store_new(&s, dir);
        return r < 0 ? r : integrity_backup(s, to);
}

int store_verify(const char *dir, void (*report)(const char *fault), unsigned *ret_faults) {
        _cleanup_(store_closep) struct store *s = NULL;
        int r = store_new(&s, dir);
        return r < 0 ? r : integrity_verify(s, report, ret_faults);
}

int store_open_beside(struct store **ret, struct store *writer) {
        _cleanup_(store_closep) struct store *s = NULL;
        int r = store_new(&s, writer->dir);
        if (r == 0) {
                pthread_mutex_lock(&writer->lock);
                r = db_open_beside(&s->db, s->path, writer->db);
                writer->n_beside += r == 0;
                pthread_mutex_unlock(&writer->lock);
        }
        if (r < 0)
                return r == -ENOENT ? -ESTALE : r; /* the directory is gone */
        s->beside = writer;
        *ret = util_steal(&s);
        return 0;
}

void store_close(struct store *s) {
        if (!s)
                return;
        bool writes = s->lock_fd >= 0 && s->db && !s->read_only;
        db_close(s->db);
        if (writes)
                db_keep_room(s->path);
        if (s->beside) {
                pthread_mutex_lock(&s->beside->lock);
                s->beside->n_beside--;
                pthread_mutex_unlock(&s->beside->lock);
        }
        integrity_close(s);
        free(s->pins.ids);
        free(s->forgotten.ids);
        free(s->extensions.ids);
        free(s->queued.ids);
        free(s->passed.ids);
        free(s->stuck.ids);
        util_close(s->lock_fd);
        (void) pthread_mutex_destroy(&s->lock);
        free(s->path);
        free(s->dir);
        free(s);
}

const char *store_dir(const struct store *s) {
        return s->dir;
}

int store_reserve_changes(struct db *db, uint64_t n, int64_t *ret_first) {
        int64_t last;
        int r = db_get(db, &last, "UPDATE counters SET value = value + ? WHERE name = 'change' RETURNING value",
                       DB_INT(n));
        if (r < 0)
                return r == -ENOENT ? -EBADMSG : r;
        *ret_first = last - (int64_t) n + 1;
        return 0;
}

int store_begin_write(struct db *db, struct db_transaction *t, uint64_t n, int64_t *ret_first) {
        int r = db_begin_write(db, t);
        return r < 0 ? r : store_reserve_changes(db, n, ret_first);
}

int store_last_change(struct store *s, int64_t *ret) {
        int r = db_get_one(s->db, ret, "SELECT value FROM counters WHERE name = 'change'");
        return r == -ENOENT ? -EBADMSG : r;
}

/* The last of the disk, and the room of the log, are for what makes room. */
int store_require_room(struct store *s) {
        struct statvfs fs;
        int r = db_keep_growth(s->db);
        if (r < 0)
                return r;
        if (statvfs(s->dir, &fs) < 0)
                return -errno;
        bool full = fs.f_blocks > 0 && (uint64_t) fs.f_bavail * fs.f_frsize < STORE_ROOM_BYTES; /* 0: it has no size */
        return full ? -ENOSPC : 0;
}

int store_begin_growth(struct store *s, struct db_transaction *t) {
        int r = store_require_room(s);
        return r < 0 ? r : db_begin_write(s->db, t);
}

static uint64_t file_bytes(const char *path, const char *suffix) {
        _cleanup_free_ char *name = NULL;
        struct stat st;
        if (asprintf(&name, "%s%s", path, suffix) < 0) {
                name = NULL;
                return 0;
        }
        return stat(name, &st) == 0 ? (uint64_t) st.st_size : 0;
}

static int read_totals(struct db *db, struct store_totals *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first_of_all(db, &q, STORE_TOTALS_SQL);
        if (r < 0)
                return r;
        ret->experiments_queued = db_column_u32(&q, 0);
        ret->runs_done = (uint64_t) db_column_i64(&q, 1);
        ret->runs_failed = (uint64_t) db_column_i64(&q, 2);
        ret->samples = (uint64_t) db_column_i64(&q, 3);
        return q.error;
}

#define OUTSTANDING "runs_total - runs_done - runs_failed - runs_cancelled"

static int count_backlog(struct db *db, struct store_backlog *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first_of_all(db, &q,
                                "SELECT count(*), COALESCE(SUM(" OUTSTANDING "), 0) FROM experiments "
                                "WHERE state IN ('queued', 'running') AND " SHOWN("id"));
        if (r < 0)
                return r;
        struct store_backlog backlog = {.experiments = (uint64_t) db_column_i64(&q, 0),
                                        .runs = (uint64_t) db_column_i64(&q, 1)};
        if (q.error == 0)
                *ret = backlog;
        return q.error;
}

/* One by one: the runs of an experiment whose row is damaged are counted in their index, if that can be read. */
static int count_readable(struct db *db, struct store_backlog *ret) {
        _cleanup_free_ int64_t *ids = NULL;
        struct store_backlog backlog = {0};
        size_t n = 0;
        int r = store_queued_ids(db, &ids, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                int64_t runs = 0;
                r = db_get(db, &runs, "SELECT " OUTSTANDING " FROM experiments WHERE id = ? AND " SHOWN("id"),
                           DB_INT(ids[i]));
                if (r == -EBADMSG)
                        r = db_get(db, &runs,
                                   "SELECT count(*) FROM runs INDEXED BY runs_state "
                                   "WHERE state IN ('queued', 'running', 'interrupted') AND experiment_id = ?",
                                   DB_INT(ids[i]));
                backlog.experiments += r != -ENOENT;
                backlog.runs += r == 0 ? (uint64_t) runs : 0;
                r = r == -ENOENT || r == -EBADMSG ? 0 : r;
        }
        if (r == 0)
                *ret = backlog;
        return r;
}

int store_backlog(struct store *s, struct store_backlog *ret) {
        struct store_backlog backlog;
        int r = count_backlog(s->db, &backlog);
        if (r == -EBADMSG)
                r = count_readable(s->db, &backlog);
        if (r < 0)
                return r;
        backlog.bytes = file_bytes(s->path, "") + file_bytes(s->path, "-wal");
        *ret = backlog;
        return 0;
}

int store_totals(struct store *s, struct store_totals *ret) {
        struct store_totals totals = {0};
        int r = read_totals(s->db, &totals);
        if (r < 0)
                return r;
        totals.database_bytes = file_bytes(s->path, "") + file_bytes(s->path, "-wal");
        *ret = totals;
        return 0;
}

/* Housekeeping */

/* The order of removal: a row goes before the rows that it refers to. */
static const struct {
        const char *sql;
        unsigned most;
        bool samples;
} removals[] = {
        {"DELETE FROM samples WHERE change IN (SELECT change FROM samples WHERE experiment_id = ? LIMIT ?)", TIDY_ROWS,
         true},
        {"DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE experiment_id = ? LIMIT ?)", TIDY_ROWS, false},
        {"DELETE FROM points WHERE id IN (SELECT id FROM points WHERE experiment_id = ? LIMIT ?)", TIDY_ROWS, false},
        {"DELETE FROM bundle_parts WHERE rowid IN (SELECT rowid FROM bundle_parts WHERE experiment_id = ? LIMIT ?)",
         TIDY_PARTS, false},
        {"DELETE FROM experiments WHERE id IN (SELECT id FROM experiments WHERE id = ? LIMIT ?)", 1, false},
        {"DELETE FROM forgotten WHERE experiment_id IN (SELECT experiment_id FROM forgotten WHERE experiment_id = ? "
         "LIMIT ?)",
         1, false},
};

static int remove_forgotten(struct store *s, int64_t experiment_id) {
        uint64_t left = TIDY_ROWS;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = store_remove_checks(s->db, NULL, experiment_id, &left);
        for (size_t i = 0; r == 0 && left == TIDY_ROWS && i < ELEMENTS(removals); i++) {
                r = db_run(s->db, removals[i].sql, DB_INT(experiment_id), DB_INT(removals[i].most));
                uint64_t n = r == 0 ? db_changed_rows(s->db) : 0;
                if (r == 0 && removals[i].samples)
                        r = store_count_samples(s->db, -(int64_t) n);
                if (n > 0)
                        break; /* a portion of one table is a step */
        }
        return r < 0 ? r : db_commit(&t);
}

/* Finds the pin by the number of its last change. */
static int settle_pin(struct store *s, int64_t change) {
        _cleanup_free_ char *name = NULL;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_get_text(s->db, &change, &name, "SELECT change, name FROM pin_changes WHERE change = ?",
                                DB_INT(change));
        if (r == 0)
                r = store_settle_baseline(s->db, name);
        return r < 0 ? r : db_commit(&t);
}

bool store_is_left_out(const struct left_out *out, int64_t id) {
        for (size_t i = 0; i < out->n; i++)
                if (out->ids[i] == id)
                        return true;
        return false;
}

int store_leave_out(struct left_out *out, int64_t id) {
        if (store_is_left_out(out, id))
                return 0;
        if (!util_grow(out->ids, out->n, out->size))
                return -ENOMEM;
        out->ids[out->n++] = id;
        return 0;
}

static int first_left(struct db *db, const char *list, const struct left_out *out, int64_t *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(db, &q, list);
        while (r >= 0 && (r = db_step(&q)) > 0) {
                int64_t id = db_column_i64(&q, 0);
                if (q.error < 0)
                        return q.error;
                if (store_is_left_out(out, id))
                        continue;
                *ret = id;
                return 0;
        }
        return r < 0 ? r : -ENOENT;
}

int store_step_leftovers(struct store *s, const struct leftovers *l, struct left_out *out) {
        int64_t id = 0;
        int r = out->all ? -ENOENT : first_left(s->db, l->list, out, &id);
        if (r == -ENOENT)
                return 0;
        if (r == 0)
                r = l->step(s, id);
        else if (r == -EBADMSG)
                out->all = true;
        if (r != -EBADMSG)
                return r < 0 ? r : 1;
        log_error("%s %" PRId64 ": " UNREADABLE "; it is left as it is until the next start", l->what, id);
        r = out->all ? 0 : store_leave_out(out, id);
        return r < 0 ? r : 1;
}

static int tidy_forgotten(struct store *s) {
        static const struct leftovers pins = {"what was compared with an earlier pin, of change",
                                              "SELECT p.change FROM pin_changes p JOIN baselines b ON b.name = p.name "
                                              "WHERE p.experiment_id IS NOT b.experiment_id",
                                              settle_pin},
                                      forgotten = {"what is left of deleted experiment",
                                                   /* the rows of pins refer to experiments */
                                                   "SELECT experiment_id FROM forgotten WHERE experiment_id NOT IN "
                                                   "(SELECT experiment_id FROM baselines)",
                                                   remove_forgotten};
        int r = store_step_leftovers(s, &pins, &s->pins);
        if (r != 0 || s->adding > 0) /* one of the forgotten may be it */
                return r;
        return store_step_leftovers(s, &forgotten, &s->forgotten);
}

int store_tidy_forgotten(struct store *s) {
        int r;
        do
                r = tidy_forgotten(s);
        while (r == -ENOSPC && reserve_release(s->dir));
        return r;
}

static int return_pages(struct store *s) {
        int64_t free_pages;
        int r = db_get_one(s->db, &free_pages, "PRAGMA freelist_count");
        if (r < 0 || free_pages <= TIDY_PAGES)
                return r;
        r = db_run_script(s->db, "PRAGMA incremental_vacuum(512)");
        return r < 0 ? r : 1;
}

static int empty_log(struct store *s) {
        int r = db_checkpoint(s->db);
        if (r == 0) { /* as soon as there is room for them */
                db_keep_room(s->path);
                (void) db_keep_growth(s->db);
                (void) reserve_keep(s->dir);
        }
        return r == -EBUSY ? 0 : r; /* a reader blocks it: the next call tries again */
}

/* A damaged page ends none of the steps but its own. */
int store_tidy(struct store *s) {
        static int (*const steps[])(struct store * s) = {store_tidy_forgotten, integrity_scrub, return_pages,
                                                         empty_log};
        int r = 0, damaged = 0;
        for (size_t i = 0; i < ELEMENTS(steps); i++) {
                r = steps[i](s);
                if (r == -EBADMSG)
                        damaged = r;
                else if (r != 0)
                        return r;
        }
        return damaged;
}

int store_on_long_log(struct store *s, void (*grown)(void *userdata), void *userdata) {
        return db_on_long_log(s->db, grown, userdata);
}

int store_move_log(struct store *s) {
        return db_move_log(s->db);
}
