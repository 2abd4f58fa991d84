/* SPDX-License-Identifier: MIT */

/*
 * The wrapper of SQLite: opening of connections, statements, transactions, and the meaning of result codes. Only the
 * store uses it.
 *
 * Source: https://www.sqlite.org/pragma.html, /wal.html, /rescode.html.
 */

#include "daemon/store/db.h"
#include "daemon/log.h"
#include "schema/util.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_TIMEOUT_MS 5000
#define CHECKPOINT_PAGES 1000 /* 4 MiB of log; a larger one makes every reader slower */

struct db_statement {
        sqlite3_stmt *handle;
        char *sql;
        bool used;
        struct db_statement *next;
};

struct db {
        sqlite3 *handle;
        enum db_mode mode;
        struct db_statement *statements; /* every statement ever prepared: as many as there are texts in the store */
};

static int error_from_code(struct db *db, int code) {
        switch (code & 0xff) {
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EBUSY;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EBADMSG;
        case SQLITE_CONSTRAINT:
                return -EEXIST;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_PERM:
        case SQLITE_AUTH:
                return -EACCES;
        case SQLITE_TOOBIG:
                return -EFBIG;
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN: {
                int error = db->handle ? sqlite3_system_errno(db->handle) : 0;
                if (error == EDQUOT)
                        return -ENOSPC; /* for the caller a quota is a full disk, too */
                return error > 0 ? -error : -EIO;
        }
        default:
                return -EIO;
        }
}

static int fail(struct db *db, int code, const char *what) {
        int r = error_from_code(db, code);
        log_error("database: %s: %s (SQLite %d, errno %d)", what,
                  db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code), code, -r);
        return r;
}

/* Opening */

static int configure_handle(struct db *db) {
        static const struct {
                int option, value;
        } options[] = {
                {SQLITE_DBCONFIG_DEFENSIVE, 1}, {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
                {SQLITE_DBCONFIG_DQS_DML, 0},   {SQLITE_DBCONFIG_DQS_DDL, 0},
        };
        for (size_t i = 0; i < ELEMENTS(options); i++) {
                int code = sqlite3_db_config(db->handle, options[i].option, options[i].value, NULL);
                if (code != SQLITE_OK)
                        return fail(db, code, "sqlite3_db_config");
        }
        int code = sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, db->mode == DB_READER, NULL);
        if (code != SQLITE_OK)
                return fail(db, code, "sqlite3_db_config");
        return 0;
}

static int require_wal(struct db *db) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(db, &q, "PRAGMA journal_mode = WAL");
        if (r < 0)
                return r;
        r = db_step(&q);
        if (r < 0)
                return r;
        const char *mode = r > 0 ? db_column_peek(&q, 0) : NULL;
        if (!mode || strcmp(mode, "wal") != 0) {
                log_error("database: the file system does not support write-ahead logging (journal mode is %s)",
                          mode ? mode : "unknown");
                return -EOPNOTSUPP;
        }
        return 0;
}

static int configure_writer(struct db *db) {
        /* auto_vacuum only takes effect in an empty database, before WAL writes its first page. FULL: with NORMAL a
         * power cut loses the last commits, which have been acknowledged. */
        int r = db_run_script(db, "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA mmap_size = 0;");
        if (r == 0)
                r = require_wal(db);
        if (r == 0)
                r = db_run_script(db, "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;");
        if (r < 0)
                return r;
        int code = sqlite3_wal_autocheckpoint(db->handle, CHECKPOINT_PAGES);
        return code == SQLITE_OK ? 0 : fail(db, code, "sqlite3_wal_autocheckpoint");
}

static int configure_reader(struct db *db) {
        int r = db_run_script(db, "PRAGMA mmap_size = 0; PRAGMA query_only = ON;");
        if (r < 0)
                return r;
        /* Two connections that checkpoint can corrupt the file (fixed in SQLite 3.51.3): only the writer does. */
        int code = sqlite3_wal_autocheckpoint(db->handle, 0);
        return code == SQLITE_OK ? 0 : fail(db, code, "sqlite3_wal_autocheckpoint");
}

static void closep(struct db **db) {
        db_close(*db);
}

int db_open(struct db **ret, const char *path, enum db_mode mode) {
        if (!sqlite3_threadsafe()) {
                log_error("database: this SQLite was built without threads");
                return -EOPNOTSUPP;
        }
        _cleanup_(closep) struct db *db = calloc(1, sizeof(*db));
        if (!db)
                return -ENOMEM;
        db->mode = mode;

        int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
        flags |= mode == DB_WRITER ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
        int code = sqlite3_open_v2(path, &db->handle, flags, NULL);
        if (code != SQLITE_OK)
                return fail(db, code, path);

        /* before journal_mode, which takes locks when it is changed */
        code = sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
        if (code != SQLITE_OK)
                return fail(db, code, "sqlite3_busy_timeout");
        int r = configure_handle(db);
        if (r == 0)
                r = mode == DB_WRITER ? configure_writer(db) : configure_reader(db);
        if (r < 0)
                return r;
        *ret = util_steal(&db);
        return 0;
}

static void statement_free(struct db_statement *s) {
        (void) sqlite3_finalize(s->handle); /* reports the last step's error again */
        free(s->sql);
        free(s);
}

void db_close(struct db *db) {
        if (!db)
                return;
        for (struct db_statement *s = db->statements, *next; s; s = next) {
                next = s->next;
                statement_free(s);
        }
        int code = sqlite3_close(db->handle);
        if (code != SQLITE_OK)
                (void) fail(db, code, "close");
        free(db);
}

/* Statements */

static struct db_statement *prepare(struct db *db, const char *sql, int *ret_error) {
        for (struct db_statement *s = db->statements; s; s = s->next)
                if (!s->used && strcmp(s->sql, sql) == 0)
                        return s;
        struct db_statement *s = calloc(1, sizeof(*s));
        if (!s || !(s->sql = strdup(sql))) {
                free(s);
                *ret_error = -ENOMEM;
                return NULL;
        }
        int code = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &s->handle, NULL);
        if (code != SQLITE_OK) {
                *ret_error = fail(db, code, sql);
                statement_free(s);
                return NULL;
        }
        s->next = db->statements;
        db->statements = s;
        return s;
}

static int bind_value(sqlite3_stmt *statement, int index, const struct db_value *v) {
        switch (v->type) {
        case DB_TYPE_INTEGER:
                return sqlite3_bind_int64(statement, index, v->integer);
        case DB_TYPE_REAL:
                return sqlite3_bind_double(statement, index, v->real);
        case DB_TYPE_TEXT:
                return v->data ? sqlite3_bind_text(statement, index, v->data, -1, SQLITE_STATIC)
                               : sqlite3_bind_null(statement, index);
        case DB_TYPE_BLOB:
                return v->data ? sqlite3_bind_blob64(statement, index, v->data, v->length, SQLITE_STATIC)
                               : sqlite3_bind_null(statement, index);
        case DB_TYPE_NULL:
                return sqlite3_bind_null(statement, index);
        }
        return SQLITE_MISUSE;
}

int db_select_values(struct db *db, struct db_query *ret, const char *sql, const struct db_value *values, size_t n) {
        int error = 0;
        struct db_statement *s = prepare(db, sql, &error);
        if (!s)
                return error;
        s->used = true;
        _cleanup_query_ struct db_query q = {.db = db, .statement = s};
        if ((size_t) sqlite3_bind_parameter_count(s->handle) != n) {
                log_error("database: %zu values do not match the parameters of: %s", n, sql);
                return -EINVAL;
        }
        for (size_t i = 0; i < n; i++) {
                int code = bind_value(s->handle, (int) i + 1, &values[i]);
                if (code != SQLITE_OK)
                        return fail(db, code, sql);
        }
        *ret = q;
        q.statement = NULL;
        return 0;
}

int db_step(struct db_query *q) {
        if (q->error < 0)
                return q->error;
        int code = sqlite3_step(q->statement->handle);
        if (code == SQLITE_ROW)
                return 1;
        if (code == SQLITE_DONE)
                return 0;
        q->error = fail(q->db, code, q->statement->sql);
        return q->error;
}

void db_query_end(struct db_query *q) {
        if (!q->statement)
                return;
        (void) sqlite3_reset(q->statement->handle); /* reports the last step's error again */
        (void) sqlite3_clear_bindings(q->statement->handle);
        q->statement->used = false;
        q->statement = NULL;
}

/* Columns */

static bool has_type(struct db_query *q, int column, int type) {
        int actual = sqlite3_column_type(q->statement->handle, column);
        if (actual == type)
                return true;
        if (actual != SQLITE_NULL && q->error == 0) {
                log_error("database: column %d has type %d, expected %d: %s", column, actual, type, q->statement->sql);
                q->error = -EBADMSG;
        }
        return false;
}

bool db_column_is_null(struct db_query *q, int column) {
        return sqlite3_column_type(q->statement->handle, column) == SQLITE_NULL;
}

int64_t db_column_i64(struct db_query *q, int column) {
        return has_type(q, column, SQLITE_INTEGER) ? sqlite3_column_int64(q->statement->handle, column) : 0;
}

uint32_t db_column_u32(struct db_query *q, int column) {
        int64_t v = db_column_i64(q, column);
        if (v >= 0 && v <= UINT32_MAX)
                return (uint32_t) v;
        if (q->error == 0)
                q->error = -EBADMSG;
        return 0;
}

double db_column_double(struct db_query *q, int column) {
        int type = sqlite3_column_type(q->statement->handle, column);
        return has_type(q, column, type == SQLITE_INTEGER ? SQLITE_INTEGER : SQLITE_FLOAT)
                       ? sqlite3_column_double(q->statement->handle, column)
                       : 0;
}

const char *db_column_peek(struct db_query *q, int column) {
        if (!has_type(q, column, SQLITE_TEXT))
                return NULL;
        const char *text = (const char *) sqlite3_column_text(q->statement->handle, column);
        if (!text && q->error == 0)
                q->error = -ENOMEM;
        return text;
}

char *db_column_text(struct db_query *q, int column) {
        const char *text = db_column_peek(q, column);
        if (!text)
                return NULL;
        char *copy = strdup(text);
        if (!copy && q->error == 0)
                q->error = -ENOMEM;
        return copy;
}

const void *db_column_blob(struct db_query *q, int column, size_t *ret_length) {
        *ret_length = 0;
        if (!has_type(q, column, SQLITE_BLOB))
                return NULL;
        const void *data = sqlite3_column_blob(q->statement->handle, column);
        *ret_length = (size_t) sqlite3_column_bytes(q->statement->handle, column);
        return data;
}

/* Whole statements */

int db_run_values(struct db *db, const char *sql, const struct db_value *values, size_t n) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_values(db, &q, sql, values, n);
        if (r < 0)
                return r;
        do
                r = db_step(&q);
        while (r > 0);
        return r;
}

int db_run_script(struct db *db, const char *sql) {
        int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
        return code == SQLITE_OK ? 0 : fail(db, code, "script");
}

int db_get_values(struct db *db, int64_t *ret, const char *sql, const struct db_value *values, size_t n) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_values(db, &q, sql, values, n);
        if (r < 0)
                return r;
        r = db_step(&q);
        if (r < 0)
                return r;
        if (r == 0)
                return -ENOENT;
        int64_t v = db_column_i64(&q, 0);
        if (q.error < 0)
                return q.error;
        *ret = v;
        return 0;
}

uint64_t db_changed_rows(struct db *db) {
        return (uint64_t) sqlite3_changes64(db->handle);
}

int64_t db_last_id(struct db *db) {
        return sqlite3_last_insert_rowid(db->handle);
}

/* Transactions */

static int begin(struct db *db, struct db_transaction *ret, const char *sql) {
        int r = db_run_values(db, sql, NULL, 0);
        if (r < 0)
                return r;
        ret->db = db;
        return 0;
}

int db_begin_write(struct db *db, struct db_transaction *ret) {
        return begin(db, ret, "BEGIN IMMEDIATE");
}

int db_begin_read(struct db *db, struct db_transaction *ret) {
        return begin(db, ret, "BEGIN");
}

int db_commit(struct db_transaction *t) {
        int r = db_run_values(t->db, "COMMIT", NULL, 0);
        if (r == 0)
                t->db = NULL;
        return r;
}

void db_transaction_end(struct db_transaction *t) {
        if (!t->db)
                return;
        /* some errors (a full disk, no memory) have rolled it back already */
        if (!sqlite3_get_autocommit(t->db->handle) && db_run_values(t->db, "ROLLBACK", NULL, 0) < 0)
                log_error("database: a transaction could not be rolled back");
        t->db = NULL;
}

int db_checkpoint(struct db *db) {
        /* Without the timeout, as a slow reader must not block the main loop. */
        int code = sqlite3_busy_timeout(db->handle, 0);
        if (code != SQLITE_OK)
                return fail(db, code, "sqlite3_busy_timeout");
        int checkpoint = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
        code = sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
        if (code != SQLITE_OK)
                return fail(db, code, "sqlite3_busy_timeout");
        if (checkpoint == SQLITE_BUSY)
                return -EBUSY;
        return checkpoint == SQLITE_OK ? 0 : fail(db, checkpoint, "checkpoint");
}
