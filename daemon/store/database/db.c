/* SPDX-License-Identifier: MIT */

/*
 * The wrapper of SQLite: opening of connections, statements, transactions, and the meaning of result codes. Only the
 * store uses it.
 *
 * Source: https://www.sqlite.org/pragma.html, /wal.html, /rescode.html.
 */

#include "daemon/store/database/db.h"
#include "daemon/log.h"
#include "daemon/store/database/index-guard.h"
#include "daemon/store/database/pages.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BUSY_TIMEOUT_MS 5000
#define CHECKPOINT_PAGES 1000 /* 4 MiB of log; a larger one makes every reader slower */
/* Of the log, are the database's even while it is shorter: on a full disk it can be written to, and half of this is
 * left when what it holds cannot be moved into the database for lack of room there. */
#define LOG_KEPT_BYTES (8 << 20)
#define GROWTH_STEP_BYTES (1 << 20)

struct db_statement {
        sqlite3_stmt *handle;
        char *sql;
        bool used;
        struct db_statement *next;
};

#define FAILURES_LOGGED_MAX 512u /* more than there are statements */
#define AUTO_VACUUM_INCREMENTAL 2
#define WATCHED_MAX 5u

struct watched_file {
        char *path;
        dev_t device;
        ino_t inode;
        off_t least; /* of the index, which SQLite never makes shorter while it is open; 0: any size */
};

struct db {
        sqlite3 *handle;
        struct watched_file files[WATCHED_MAX]; /* without a path: not watched */
        const struct db *beside;                /* of a reader: the writer, whose files it has; NULL: it is alone */
        void (*committed)(void *userdata);
        void *committed_userdata;
        void (*log_grown)(void *userdata);
        void *log_grown_userdata;
        enum db_mode mode;
        int fd;                          /* of the writer's database file, to allocate and look at its marks; -1 */
        sqlite3_file *file;              /* the same, as SQLite has it; NULL: not watched */
        int64_t kept_end, kept_size;     /* where what is allocated ends, and the file did when it was */
        bool stuck;                      /* in a transaction that could not be rolled back */
        struct db_statement *statements; /* every statement ever prepared: as many as there are texts in the store */
};

static const char rollback[] = "ROLLBACK";

static struct db_statement *prepare(struct db *db, const char *sql, int *ret_error);

static int error_from_code(struct db *db, int code) {
        if (code == SQLITE_IOERR_DATA) /* of pages.c */
                return -EBADMSG;
        if (index_guard_is_lost())
                return -ESTALE;
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
                int error = pages_errno(code);
                if (error == 0)
                        error = db->handle ? sqlite3_system_errno(db->handle) : 0;
                if (pages_is_full(error)) /* a file that is made, or the index */
                        return -ENOSPC;
                return error > 0 ? -error : -EIO;
        }
        default:
                return -EIO;
        }
}

/* What is damaged, or gone, fails at each read from now on, and anybody may read: each statement logs it once. */
static bool is_logged(const char *what, int error) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static uint64_t logged[FAILURES_LOGGED_MAX];
        static size_t n;
        uint64_t key = (uint64_t) -error;
        bool found = false;
        for (const char *c = what; *c; c++)
                key = (key ^ (unsigned char) *c) * UINT64_C(0x100000001b3); /* FNV-1a */
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < n && !found; i++)
                found = logged[i] == key;
        bool full = n == ELEMENTS(logged);
        if (!found && !full)
                logged[n++] = key;
        pthread_mutex_unlock(&lock);
        return found || full;
}

static int fail(struct db *db, int code, const char *what) {
        int r = error_from_code(db, code);
        if ((r == -EBADMSG || r == -ESTALE) && is_logged(what, r))
                return r;
        log_error("database: %s: %s (SQLite %d, errno %d)", what,
                  db->handle ? sqlite3_errmsg(db->handle) : sqlite3_errstr(code), code, -r);
        return r;
}

/* Opening */

/* Else the close of the last connection moves the log into the database, and empties it. */
static int keep_log(struct db *db, bool keep) {
        int code = sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int) keep, NULL);
        return code == SQLITE_OK ? 0 : fail(db, code, "sqlite3_db_config");
}

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
        return keep_log(db, true);
}

static int database_file(struct db *db, sqlite3_file **ret) {
        int code = sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, (void *) ret);
        return code == SQLITE_OK ? 0 : fail(db, code, "SQLITE_FCNTL_FILE_POINTER");
}

/* Refuses a database without room for the trailer, whose content the checksums would overwrite. */
static int require_trailer(struct db *db) {
        sqlite3_file *file;
        unsigned bytes;
        int r = database_file(db, &file);
        if (r == 0)
                r = pages_reserved(file, &bytes);
        if (r == 0 && !pages_has_trailer(bytes)) {
                log_error("database: its pages have %u reserved bytes, and their checksums need %u", bytes,
                          PAGES_TRAILER);
                r = -EBADMSG;
        }
        return r;
}

int db_kind(struct db *db, enum pages_kind *ret) {
        sqlite3_file *file;
        int r = database_file(db, &file);
        return r < 0 ? r : pages_file_kind(file, ret);
}

int db_scrub(struct db *db, uint32_t from, uint32_t n, uint32_t *ret_next, uint32_t *ret_total) {
        sqlite3_file *file;
        int r = database_file(db, &file);
        return r < 0 ? r : pages_scrub(file, from, n, ret_next, ret_total);
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

/* Only takes effect in an empty database, before WAL writes its first page; elsewhere it would write all the same, for
 * which a full disk has no room. */
static int require_vacuum(struct db *db) {
        int64_t mode;
        int r = db_get_one(db, &mode, "PRAGMA auto_vacuum");
        return r < 0 || mode == AUTO_VACUUM_INCREMENTAL ? r : db_run_script(db, "PRAGMA auto_vacuum = INCREMENTAL");
}

/* The log, emptied, and its index outlive the last connection: a start on a full disk has them. */
static int keep_files(struct db *db) {
        int on = 1, code = sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
        return code == SQLITE_OK ? 0 : fail(db, code, "SQLITE_FCNTL_PERSIST_WAL");
}

void db_keep_room(const char *path) {
        _cleanup_free_ char *log = NULL;
        if (asprintf(&log, "%s-wal", path) < 0) {
                log = NULL;
                return;
        }
        _cleanup_close_ int fd = open(log, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd >= 0)
                (void) fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_KEPT_BYTES);
}

int db_keep_growth(struct db *db) {
        int64_t pages, page_bytes;
        struct stat st;
        if (db->mode != DB_WRITER) /* what it writes is refused as that of a reader */
                return 0;
        int r = db_get_one(db, &pages, "PRAGMA page_count");
        if (r == 0)
                r = db_get_one(db, &page_bytes, "PRAGMA page_size");
        if (r < 0)
                return r;
        if (fstat(db->fd, &st) < 0)
                return -errno;
        if (st.st_size < db->kept_size) /* it was truncated, and has lost what was beyond */
                db->kept_end = st.st_size;
        db->kept_size = st.st_size;
        int64_t wanted = (pages + CHECKPOINT_PAGES) * page_bytes;
        if (wanted <= db->kept_end)
                return 0;
        wanted = (wanted + GROWTH_STEP_BYTES - 1) / GROWTH_STEP_BYTES * GROWTH_STEP_BYTES;
        if (fallocate(db->fd, FALLOC_FL_KEEP_SIZE, st.st_size, wanted - st.st_size) < 0)
                return pages_is_full(errno)  ? -ENOSPC
                       : errno == EOPNOTSUPP ? 0 /* nor could it be for the log */
                                             : -errno;
        db->kept_end = wanted;
        return 0;
}

static int checkpoint_in_commits(struct db *db, int pages) {
        int code = sqlite3_wal_autocheckpoint(db->handle, pages);
        return code == SQLITE_OK ? 0 : fail(db, code, "sqlite3_wal_autocheckpoint");
}

static int configure_writer(struct db *db) {
        /* FULL: with NORMAL a power cut loses the last commits, which have been acknowledged. */
        int r = db_run_script(db, "PRAGMA mmap_size = 0");
        if (r == 0)
                r = require_vacuum(db);
        if (r == 0)
                r = require_wal(db);
        if (r == 0)
                r = keep_files(db);
        if (r == 0)
                r = require_trailer(db);
        if (r == 0)
                r = db_run_script(db, "PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;");
        return r < 0 ? r : checkpoint_in_commits(db, CHECKPOINT_PAGES);
}

static int configure_reader(struct db *db) {
        int r = db_run_script(db, "PRAGMA mmap_size = 0; PRAGMA query_only = ON;");
        /* Two connections that checkpoint can corrupt the file (fixed in SQLite 3.51.3): only the writer does. */
        return r < 0 ? r : checkpoint_in_commits(db, 0);
}

static void closep(struct db **db) {
        db_close(*db);
}

static int open_handle(struct db *db, const char *path, int flags, const char *vfs) {
        int r = pages_register();
        if (r < 0) {
                log_error("database: the checksums of pages cannot be registered: %s", strerrordesc_np(-r));
                return r;
        }
        int code = sqlite3_open_v2(path, &db->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, vfs);
        if (code != SQLITE_OK)
                return fail(db, code, path);
        /* before journal_mode, which takes locks when it is changed */
        code = sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS);
        return code == SQLITE_OK ? 0 : fail(db, code, "sqlite3_busy_timeout");
}

/* Takes effect where SQLite lays pages out anew: in an empty database, and in VACUUM. */
static int reserve_trailer(struct db *db) {
        int bytes = (int) PAGES_TRAILER;
        int code = sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
        return code == SQLITE_OK ? 0 : fail(db, code, "SQLITE_FCNTL_RESERVE_BYTES");
}

static const char *vfs_of(enum db_mode mode) {
        return mode == DB_PLAIN_READER ? NULL : mode == DB_LONE_READER ? PAGES_VFS_ALONE : PAGES_VFS;
}

static int open_checked(struct db *db, const char *path) {
        int flags = SQLITE_OPEN_NOFOLLOW;
        flags |= db->mode == DB_WRITER ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
        int r = open_handle(db, path, flags, vfs_of(db->mode));
        return r == 0 && db->mode == DB_WRITER ? reserve_trailer(db)
                                               : r; /* it may be empty, or become so by a journal */
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
        db->fd = -1;
        int r = open_checked(db, path);
        if (r == 0)
                r = configure_handle(db);
        if (r == 0)
                r = mode == DB_WRITER ? configure_writer(db) : configure_reader(db);
        /* once SQLite has it open, and until it has closed it: with any descriptor that is closed, its locks would go
         */
        if (r == 0 && mode == DB_WRITER && (db->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) < 0)
                r = -errno;
        /* A transaction that failed for lack of memory is ended without more of it: else it would stay open, and take
         * in what is acknowledged later. */
        if (r == 0)
                (void) prepare(db, rollback, &r);
        if (r < 0)
                return r;
        *ret = util_steal(&db);
        return 0;
}

/* Functions */

struct text_function {
        char *(*call)(const char *);
};

static void call_function(sqlite3_context *context, int n, sqlite3_value **values) {
        const struct text_function *f = sqlite3_user_data(context);
        (void) n;
        if (sqlite3_value_type(values[0]) == SQLITE_NULL)
                return;
        const char *argument = (const char *) sqlite3_value_text(values[0]);
        char *result = argument ? f->call(argument) : NULL;
        if (result)
                sqlite3_result_text(context, result, -1, free);
        else
                sqlite3_result_error_nomem(context);
}

int db_add_function(struct db *db, const char *name, char *(*function)(const char *) ) {
        struct text_function *f = malloc(sizeof(*f));
        if (!f)
                return -ENOMEM;
        f->call = function;
        int code =
                sqlite3_create_function_v2(db->handle, name, 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                           f, call_function, NULL, NULL, free); /* which frees it after an error, too */
        return code == SQLITE_OK ? 0 : fail(db, code, name);
}

/* The files behind the names */

/* The suffixes of the database's own files, which are watched before the others. */
static const char *const suffixes[] = {"", "-wal", "-shm"};
#define INDEX 2

/* Takes the path. */
static int watch_file(struct db *db, char *path) {
        struct stat st;
        struct watched_file *f = db->files;
        if (!path)
                return -ENOMEM;
        while (f < db->files + WATCHED_MAX && f->path)
                f++;
        if (f == db->files + WATCHED_MAX) {
                free(path);
                return -E2BIG;
        }
        if (lstat(path, &st) < 0) {
                int r = -errno;
                log_error("%s: %s", path, strerrordesc_np(-r));
                free(path);
                return r;
        }
        *f = (struct watched_file){path, st.st_dev, st.st_ino, f == db->files + INDEX ? st.st_size : 0};
        return 0;
}

int db_watch_files(struct db *db, const char *dir, const char *const *others, size_t n_others) {
        const char *database = sqlite3_db_filename(db->handle, "main");
        int r = 0;
        for (size_t i = 0; r == 0 && i < ELEMENTS(suffixes) + n_others; i++) {
                bool own = i < ELEMENTS(suffixes);
                char *path = NULL;
                int n = own ? asprintf(&path, "%s%s", database, suffixes[i])
                            : asprintf(&path, "%s/%s", dir, others[i - ELEMENTS(suffixes)]);
                r = watch_file(db, n < 0 ? NULL : path);
        }
        if (r == 0)
                r = database_file(db, &db->file);
        return r < 0 ? r : keep_log(db, false);
}

/* A link to the file is not the file either: the next start does not follow it. */
static int check_file(const struct watched_file *f) {
        struct stat st;
        if (lstat(f->path, &st) < 0)
                return errno == ENOENT || errno == ENOTDIR ? -ESTALE : -errno;
        return st.st_dev == f->device && st.st_ino == f->inode && st.st_size >= f->least ? 0 : -ESTALE;
}

/* Another file's content, or this one's of an earlier time, written over it. */
static int check_content(const struct db *writer, const char **ret_path) {
        bool lost = index_guard_is_lost();
        int r = lost ? -ESTALE : writer->file ? pages_check_marks(writer->file, writer->fd) : 0;
        if (r < 0 && ret_path)
                *ret_path = writer->files[lost ? INDEX : 0].path;
        return r;
}

static int check_first(const struct db *writer, size_t n, const char **ret_path) {
        for (size_t i = 0; i < n; i++) {
                const struct watched_file *f = &writer->files[i];
                int r = f->path ? check_file(f) : 0;
                if (r < 0 && ret_path)
                        *ret_path = f->path;
                if (r < 0)
                        return r;
        }
        return check_content(writer, ret_path);
}

int db_check_files(const struct db *db, const char **ret_path) {
        return db->beside ? check_first(db->beside, ELEMENTS(suffixes), ret_path)
                          : check_first(db, WATCHED_MAX, ret_path);
}

/* Only the first read opens the log, by its name: the names are compared before it, as it would make a log where there
 * is none, and after it. The cache, in KiB, has room for the inner pages of the trees: what a reader goes through is
 * larger than any cache, and 2 MiB, the default, would be filled by each of them and read again by none. */
int db_open_beside(struct db **ret, const char *path, const struct db *writer) {
        _cleanup_(closep) struct db *db = NULL;
        int64_t tables;
        int r = check_first(writer, ELEMENTS(suffixes), NULL);
        if (r < 0)
                return r;
        r = db_open(&db, path, writer->mode == DB_WRITER ? DB_READER : writer->mode);
        if (r == 0)
                r = db_get_one(db, &tables, "SELECT count(*) FROM sqlite_schema");
        if (r == 0)
                r = db_run_script(db, "PRAGMA cache_size = -512;"); /* it reads the schema, too */
        int stale = check_first(writer, ELEMENTS(suffixes), NULL);  /* the cause of any other error */
        if (stale < 0 || r < 0)
                return stale < 0 ? stale : r;
        db->beside = writer;
        *ret = util_steal(&db);
        return 0;
}

void db_on_commit(struct db *db, void (*committed)(void *userdata), void *userdata) {
        db->committed = committed;
        db->committed_userdata = userdata;
}

static int on_log(void *userdata, sqlite3 *handle, const char *name, int pages) {
        struct db *db = userdata;
        (void) handle, (void) name;
        if (pages >= CHECKPOINT_PAGES && db->log_grown)
                db->log_grown(db->log_grown_userdata);
        return SQLITE_OK;
}

int db_on_long_log(struct db *db, void (*grown)(void *userdata), void *userdata) {
        db->log_grown = grown;
        db->log_grown_userdata = userdata;
        if (!grown)
                return checkpoint_in_commits(db, CHECKPOINT_PAGES);
        (void) sqlite3_wal_hook(db->handle, on_log, db); /* returns what it replaces: that of the commits */
        return 0;
}

/* Copies */

/* `to` as a URI, as it also names the VFS of the copy. */
static char *copy_uri(const char *to) {
        char *uri = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&uri, &size);
        if (!out)
                return NULL;
        fputs("file:", out);
        for (const char *p = to; *p; p++)
                if (strchr("%?#", *p))
                        fprintf(out, "%%%02X", (unsigned) (unsigned char) *p);
                else
                        fputc(*p, out);
        fputs("?vfs=" PAGES_VFS, out);
        if (fclose(out) != 0) {
                free(uri);
                return NULL;
        }
        return uri;
}

static int sync_path(const char *path, int flags) {
        _cleanup_close_ int fd = open(path, flags | O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 || fsync(fd) < 0) {
                int r = -errno;
                log_error("%s: %s", path, strerrordesc_np(-r));
                return r;
        }
        return 0;
}

static int sync_parent(const char *path) {
        _cleanup_free_ char *dir = strdup(path);
        char *slash = dir ? strrchr(dir, '/') : NULL;
        if (!slash)
                return dir ? -EINVAL : -ENOMEM;
        slash[slash == dir] = '\0';
        return sync_path(dir, O_DIRECTORY);
}

/* Nothing of it is left after an error. accept: NULL, or called first, and the log stays as it is. */
static int copy_into(const char *path, enum db_mode mode, const char *to, int (*accept)(struct db *db, void *userdata),
                     void *userdata) {
        _cleanup_(closep) struct db *db = calloc(1, sizeof(*db));
        _cleanup_free_ char *uri = copy_uri(to);
        if (!db || !uri)
                return -ENOMEM;
        if (unlink(to) < 0 && errno != ENOENT)
                return -errno;
        db->mode = mode;
        db->fd = -1;
        int r = open_handle(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_URI, vfs_of(mode));
        if (r == 0)
                r = keep_files(db);
        if (r == 0 && !accept) /* else the close leaves the log as long as it is, though it has moved all of it */
                r = db_run_script(db, "PRAGMA journal_size_limit = 0");
        if (r == 0 && accept)
                r = keep_log(db, true);
        if (r == 0 && accept)
                r = accept(db, userdata);
        if (r == 0)
                r = reserve_trailer(db);
        if (r == 0)
                r = db_run(db, "VACUUM INTO ?", DB_TEXT(uri));
        if (r == 0)
                r = sync_path(to, 0);
        if (r < 0)
                (void) unlink(to); /* the first error is what is reported */
        return r;
}

static int drop_log(const char *path) {
        _cleanup_free_ char *log = NULL;
        struct stat st;
        if (asprintf(&log, "%s-wal", path) < 0) {
                log = NULL;
                return -ENOMEM;
        }
        if (stat(log, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (st.st_size > 0) {
                log_error("%s: what it holds could not be moved into the database", log);
                return -EBUSY;
        }
        return unlink(log) < 0 ? -errno : 0;
}

int db_convert(const char *path) {
        _cleanup_free_ char *copy = NULL;
        if (asprintf(&copy, "%s.new", path) < 0) {
                copy = NULL;
                return -ENOMEM;
        }
        log_notice("%s: its pages are given checksums, which takes a copy of it", path);
        int r = copy_into(path, DB_PLAIN_READER, copy, NULL, NULL);
        if (r == 0)
                r = drop_log(path); /* it would be taken for the copy's */
        if (r == 0 && rename(copy, path) < 0)
                r = -errno;
        return r < 0 ? r : sync_parent(path);
}

int db_backup(const char *path, enum db_mode mode, const char *to, int (*accept)(struct db *db, void *userdata),
              void *userdata) {
        _cleanup_free_ char *part = NULL;
        if (access(to, F_OK) == 0)
                return -EEXIST;
        if (asprintf(&part, "%s.part", to) < 0) {
                part = NULL;
                return -ENOMEM;
        }
        int r = copy_into(path, mode, part, accept, userdata);
        if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, to, RENAME_NOREPLACE) < 0) {
                r = -errno;
                (void) unlink(part); /* the first error is what is reported */
        }
        return r < 0 ? r : sync_parent(to);
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
        util_close(db->fd);
        for (size_t i = 0; i < ELEMENTS(db->files); i++)
                free(db->files[i].path);
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

/* A statement that a changed schema has made stale is prepared anew, for which memory may be lacking. What is run next
 * would become part of the transaction, so that nothing is run before it has ended. */
static int roll_back(struct db *db) {
        int r = 0;
        db->stuck = false;
        if (!sqlite3_get_autocommit(db->handle)) /* some errors (a full disk, no memory) have rolled it back already */
                r = db_run_values(db, rollback, NULL, 0);
        db->stuck = r < 0;
        if (r < 0)
                log_error("database: a transaction could not be rolled back");
        return r;
}

int db_select_values(struct db *db, struct db_query *ret, const char *sql, const struct db_value *values, size_t n) {
        int error = db->stuck ? roll_back(db) : 0;
        if (error < 0)
                return error;
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

int db_first_values(struct db *db, struct db_query *ret, const char *sql, const struct db_value *values, size_t n) {
        int r = db_select_values(db, ret, sql, values, n);
        if (r == 0)
                r = db_step(ret);
        return r > 0 ? 0 : r < 0 ? r : -ENOENT;
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
        int r = db->stuck ? roll_back(db) : 0;
        if (r < 0)
                return r;
        int code = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
        return code == SQLITE_OK ? 0 : fail(db, code, "script");
}

int db_get_values(struct db *db, int64_t *ret, const char *sql, const struct db_value *values, size_t n) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first_values(db, &q, sql, values, n);
        if (r < 0)
                return r;
        int64_t v = db_column_i64(&q, 0);
        if (q.error == 0)
                *ret = v;
        return q.error;
}

int db_get_text_values(struct db *db, int64_t *ret, char **ret_text, const char *sql, const struct db_value *values,
                       size_t n) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first_values(db, &q, sql, values, n);
        if (r < 0)
                return r;
        int64_t v = db_column_i64(&q, 0);
        _cleanup_free_ char *text = db_column_text(&q, 1);
        if (q.error < 0)
                return q.error;
        *ret = v;
        *ret_text = util_steal(&text);
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
        return db->mode != DB_WRITER ? -EROFS : begin(db, ret, "BEGIN IMMEDIATE");
}

int db_begin_read(struct db *db, struct db_transaction *ret) {
        return begin(db, ret, "BEGIN");
}

int db_commit(struct db_transaction *t) {
        const char *path = "";
        int r = db_check_files(t->db, &path);
        if (r == -ESTALE)
                log_error("%s was removed or replaced: nothing is committed", path);
        else if (r < 0)
                log_error("%s: %s: nothing is committed", path, strerrordesc_np(-r));
        else
                r = db_run_values(t->db, "COMMIT", NULL, 0);
        if (r < 0)
                return r;
        if (t->db->committed)
                t->db->committed(t->db->committed_userdata);
        t->db = NULL;
        return 0;
}

void db_transaction_end(struct db_transaction *t) {
        if (!t->db)
                return;
        (void) roll_back(t->db);
        t->db = NULL;
}

int db_move_log(struct db *db) {
        int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        return code == SQLITE_OK ? 0 : error_from_code(db, code);
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
