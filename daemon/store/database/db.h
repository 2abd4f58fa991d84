/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The store's wrapper of SQLite. db.c is the only file that uses the library, with its pragmas, pitfalls and result
 * codes, but for pages.c, the VFS with checksums through which all its files are read and written. One struct db is one
 * connection and belongs to one thread at a time.
 *
 * Errors are negative errnos, logged with SQLite's message where they occur: -ENOSPC disk full, -EBUSY locked past the
 * timeout, -EBADMSG not (or no longer) a database, a page that does not match its checksum, or a column of another
 * type, -ESTALE the files were removed or replaced, -EEXIST a constraint, -EROFS, -ENOMEM, -EIO for the rest.
 */

#include "daemon/store/database/pages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db;

enum db_mode {
        DB_WRITER,       /* creates what is missing, owns the checkpoints: one per database */
        DB_READER,       /* cannot change anything, never checkpoints */
        DB_LONE_READER,  /* the same, of files that nobody can write (PAGES_VFS_ALONE) */
        DB_PLAIN_READER, /* the same, of a database whose pages have no checksums */
};

/* Allocates room for the log of the database at this path beyond its end, where the disk has it. The log loses it when
 * it is truncated: by db_checkpoint(), and when the writer is closed. */
void db_keep_room(const char *path);

/* Allocates, beyond the end of the writer's database file, what its log holds of pages that are new, and 4 MiB for
 * those that the next transactions add, so that the log can be moved into it on a full disk. -ENOSPC: the disk has no
 * room. A file system that cannot allocate: 0. */
int db_keep_growth(struct db *db);

/* dir must be an absolute path without symbolic links (realpath(3)); a link in place of the file is refused. */
int db_open(struct db **ret, const char *path, enum db_mode mode);
/* A reader of the files that a writer of this process has open, which db_watch_files() has noted, and which outlives
 * it, or one like this other reader: -ESTALE when one of their names is another file's by now. SQLite itself opens each
 * by its name, and a new log where there is none. From any thread. */
int db_open_beside(struct db **ret, const char *path, const struct db *writer);
void db_close(struct db *db); /* NULL-safe; after db_watch_files() the writer checkpoints */

/* To be called by the writer once the database has its tables. From then on db_check_files(), and every db_commit()
 * before it commits, compares the database, its log, the log's index and these other files of the directory with the
 * files that have their names: -ESTALE when one was removed or replaced, *ret_path (which may be NULL), when another
 * database, or an older copy, was written over this one, or when the index was cut off. Commits to a file without a
 * name are lost with the process, and without the index or the lock another process takes the database for one that
 * nobody uses. */
int db_watch_files(struct db *db, const char *dir, const char *const *others, size_t n_others);
/* From any thread. Of a reader it compares what it reads: its writer's database, log and index. */
int db_check_files(const struct db *db, const char **ret_path);

/* pages_scrub() of the writer's database file, for which a checkpoint has moved the log into it. */
int db_scrub(struct db *db, uint32_t from, uint32_t n, uint32_t *ret_next, uint32_t *ret_total);

/* A function of one text for statements of this connection, which returns a malloc()ed text, or NULL without memory.
 * Its result depends on its argument alone; NULL of NULL. */
int db_add_function(struct db *db, const char *name, char *(*function)(const char *) );

/* Called after each commit of this connection. */
void db_on_commit(struct db *db, void (*committed)(void *userdata), void *userdata);

/* Once the log is longer than 4 MiB, each commit of the writer moves it into the database itself, which takes as long
 * as the commit. With `grown` it calls that instead, for db_move_log() to be called soon; NULL: as at first. `grown`
 * must not use the connection. */
int db_on_long_log(struct db *db, void (*grown)(void *userdata), void *userdata);

/* Gives the pages of a database checksums: a copy takes its place in one step. No process may have it open. */
int db_convert(const char *path);
/* One consistent copy of a database that others may be using, as the new file `to`: -EEXIST when there is one. The mode
 * is that of the reader that it takes. `accept` decides first whether it is the right one, on the connection that is
 * copied; its error is returned. */
int db_backup(const char *path, enum db_mode mode, const char *to, int (*accept)(struct db *db, void *userdata),
              void *userdata);
/* The kind that the header of its file has. */
int db_kind(struct db *db, enum pages_kind *ret);

/* Values to bind, in the order of the statement's parameters. Text and blobs must live until the statement ends. */
enum db_type { DB_TYPE_NULL, DB_TYPE_INTEGER, DB_TYPE_REAL, DB_TYPE_TEXT, DB_TYPE_BLOB };
struct db_value {
        enum db_type type;
        int64_t integer;
        double real;
        const void *data; /* NULL binds NULL */
        size_t length;
};
#define DB_INT(v) ((struct db_value){.type = DB_TYPE_INTEGER, .integer = (int64_t) (v)})
#define DB_REAL(v) ((struct db_value){.type = DB_TYPE_REAL, .real = (v)})
#define DB_TEXT(v) ((struct db_value){.type = DB_TYPE_TEXT, .data = (v)})
#define DB_BLOB(v, n) ((struct db_value){.type = DB_TYPE_BLOB, .data = (v), .length = (n)})
#define DB_NULL() ((struct db_value){.type = DB_TYPE_NULL})

#define DB_VALUES(...)                                                                                                 \
        (const struct db_value[]){__VA_ARGS__}, sizeof((const struct db_value[]){__VA_ARGS__}) / sizeof(struct db_value)

/* A statement in execution. Statements are prepared once per connection and text. Always ends with db_query_end(). */
struct db_query {
        struct db *db;
        struct db_statement *statement;
        int error; /* the first one, sticky: it is checked once after all columns have been read */
};
#define _cleanup_query_ __attribute__((cleanup(db_query_end)))

int db_select_values(struct db *db, struct db_query *ret, const char *sql, const struct db_value *values, size_t n);
#define db_select(db, ret, sql, ...) db_select_values(db, ret, sql, DB_VALUES(__VA_ARGS__))
#define db_select_all(db, ret, sql) db_select_values(db, ret, sql, NULL, 0)
int db_step(struct db_query *q);       /* 1: a row; 0: no more; negative errno, also of the columns read before */
void db_query_end(struct db_query *q); /* a zeroed struct is fine */
/* Selects, and steps to the first row. -ENOENT: there is none. */
int db_first_values(struct db *db, struct db_query *ret, const char *sql, const struct db_value *values, size_t n);
#define db_first(db, ret, sql, ...) db_first_values(db, ret, sql, DB_VALUES(__VA_ARGS__))
#define db_first_of_all(db, ret, sql) db_first_values(db, ret, sql, NULL, 0)

/* Columns of the row, from 0. A wrong type is -EBADMSG in q->error, and the value is empty. */
bool db_column_is_null(struct db_query *q, int column);
int64_t db_column_i64(struct db_query *q, int column); /* NULL is 0 */
uint32_t db_column_u32(struct db_query *q, int column);
double db_column_double(struct db_query *q, int column);                        /* of any number; NULL is 0 */
char *db_column_text(struct db_query *q, int column);                           /* malloc()ed; NULL for NULL */
const char *db_column_peek(struct db_query *q, int column);                     /* until the next step */
const void *db_column_blob(struct db_query *q, int column, size_t *ret_length); /* until the next step */

/* A statement without rows. */
int db_run_values(struct db *db, const char *sql, const struct db_value *values, size_t n);
#define db_run(db, sql, ...) db_run_values(db, sql, DB_VALUES(__VA_ARGS__))
int db_run_script(struct db *db, const char *sql); /* several statements, nothing bound */
/* One integer from one row: -ENOENT without a row. */
int db_get_values(struct db *db, int64_t *ret, const char *sql, const struct db_value *values, size_t n);
#define db_get(db, ret, sql, ...) db_get_values(db, ret, sql, DB_VALUES(__VA_ARGS__))
#define db_get_one(db, ret, sql) db_get_values(db, ret, sql, NULL, 0)
/* An integer and a text (malloc()ed; NULL for NULL) from one row: -ENOENT without a row. */
int db_get_text_values(struct db *db, int64_t *ret, char **ret_text, const char *sql, const struct db_value *values,
                       size_t n);
#define db_get_text(db, ret, ret_text, sql, ...) db_get_text_values(db, ret, ret_text, sql, DB_VALUES(__VA_ARGS__))

uint64_t db_changed_rows(struct db *db); /* of the last statement */
int64_t db_last_id(struct db *db);

/* A transaction that is rolled back when it leaves the scope uncommitted. */
struct db_transaction {
        struct db *db; /* NULL: not open */
};
#define _cleanup_transaction_ __attribute__((cleanup(db_transaction_end)))

int db_begin_write(struct db *db, struct db_transaction *ret); /* takes the write lock now; -EROFS of a reader */
int db_begin_read(struct db *db, struct db_transaction *ret);  /* one snapshot for several selects */
int db_commit(struct db_transaction *t);                       /* 0: it is on disk */
void db_transaction_end(struct db_transaction *t);

/* Moves the write-ahead log into the database and truncates its file; -EBUSY at once when a reader blocks it. */
int db_checkpoint(struct db *db);

/* Moves what of the log no reader needs into the database; the log is written from its beginning again once all of it
 * was moved. An error is not logged, as there may be one after every commit. */
int db_move_log(struct db *db);
