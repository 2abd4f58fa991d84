/* SPDX-License-Identifier: MIT */

/*
 * The VFS with a checksum in every page. It uses whatever VFS is the default one when a file is opened.
 *
 * Source: https://www.sqlite.org/vfs.html, /fileformat2.html (the database's header, the write-ahead log's frames and
 * their checksum), /walformat.html (the log's index).
 */

#include "daemon/store/database/pages.h"
#include "daemon/log.h"
#include "daemon/store/database/index-guard.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define WAL_HEADER 32
#define WAL_FRAME_HEADER 24
#define WAL_FRAME (WAL_FRAME_HEADER + (sqlite3_int64) PAGES_SIZE)
#define WAL_SALTS 16 /* in its header: two numbers that it gets anew whenever it begins again, and each frame has */
#define WAL_FRAME_SALTS 8 /* in a frame's header */
#define SALTS_BYTES 8
#define INDEX_PAGES 20     /* in the log's index: the pages of the database, in the machine's byte order */
#define INDEX_SALTS 32     /* in it: those of the log, as they are there */
#define HEADER_BYTES 100   /* the database's, at the beginning of its first page */
#define HEADER_RESERVED 20 /* in it: bytes at the end of each page that SQLite leaves alone */
#define MARK_AT (PAGES_SIZE - PAGES_TRAILER)
#define MARK_BYTES 8 /* the database's and, in the first page, the log's */
#define NUMBER_AT (PAGES_SIZE - 8)
#define SUM_AT (PAGES_SIZE - 4)
#define READINGS_MAX 100u

/* Damage found */

static struct {
        pthread_mutex_t lock;
        struct damaged {
                char *path;
                uint32_t page; /* 0: of the log */
                sqlite3_int64 offset;
        } found[PAGES_DAMAGE_MAX];
        uint32_t n;
} damage = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_noted(const char *path, uint32_t page, sqlite3_int64 offset) {
        for (uint32_t i = 0; i < damage.n; i++)
                if (damage.found[i].page == page && damage.found[i].offset == offset &&
                    strcmp(damage.found[i].path, path) == 0)
                        return true;
        return false;
}

static void note(const char *path, uint32_t page, sqlite3_int64 offset) {
        if (index_guard_is_lost()) /* with which a frame is compared */
                return;
        pthread_mutex_lock(&damage.lock);
        if (!is_noted(path, page, offset) && damage.n < PAGES_DAMAGE_MAX) {
                char *copy = strdup(path);
                if (page)
                        log_error("%s: page %u does not match its checksum", path, page);
                else
                        log_error("%s-wal: the frame at byte %lld does not match its checksum", path,
                                  (long long) offset);
                if (copy) /* without memory it is noted at the next read */
                        damage.found[damage.n++] = (struct damaged){copy, page, offset};
        }
        pthread_mutex_unlock(&damage.lock);
}

void pages_damage(const char *path, struct pages_damage *ret) {
        struct pages_damage d = {0};
        pthread_mutex_lock(&damage.lock);
        for (uint32_t i = 0; i < damage.n; i++)
                if (strcmp(damage.found[i].path, path) == 0 && d.n++ == 0)
                        d.page = damage.found[i].page;
        pthread_mutex_unlock(&damage.lock);
        *ret = d;
}

/* Files */

static void put_be32(uint8_t *p, uint32_t v) {
        for (int i = 0; i < 4; i++)
                p[i] = (uint8_t) (v >> (24 - 8 * i));
}

static uint32_t get_be32(const uint8_t *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

enum role { ROLE_DATABASE, ROLE_LOG, ROLE_OTHER };

struct checked_file {
        sqlite3_file base;
        sqlite3_file *real;
        char *path; /* of the database, also for its log; NULL for others */
        enum role role;
        const volatile uint8_t *index; /* database: of its log, while SQLite has it mapped; NULL */
        bool alone;                    /* database: opened by PAGES_VFS_ALONE */
        uint8_t **parts;               /* of its own index, then */
        int n_parts;
        struct checked_file *of; /* log: the connection's database, which SQLite closes after it */
        /* Log: what this connection has written from here on is not synced yet. SQLite may write a frame of the open
         * transaction again, and mends the checksums behind it when it commits. */
        sqlite3_int64 unsynced_from;
        unsigned trailer; /* database: of its pages, in bytes; 0: it had none yet */
        uint32_t mark, log_mark;
        uint32_t begun; /* log: the mark of the header that this connection has written last; 0: none */
        bool log_mark_unsynced;
};

static pthread_mutex_t marks_lock = PTHREAD_MUTEX_INITIALIZER; /* they change in the file and here as one */

static struct checked_file *checked(sqlite3_file *f) {
        return (struct checked_file *) (void *) f;
}

static sqlite3_file *real_of(sqlite3_file *f) {
        return checked(f)->real;
}

/* Pages */

/* The number is within the checksum: a page that the disk has put at another's place does not match either. */
static uint32_t page_sum(const uint8_t *page) {
        return (uint32_t) crc32(0, page, SUM_AT);
}

static void put_marks(const struct checked_file *c, uint8_t *trailer, uint32_t number) {
        put_be32(trailer, c->mark);
        put_be32(trailer + 4, number == 1 ? c->log_mark : 0);
}

static void seal_page(const struct checked_file *c, uint8_t *page, uint32_t number) {
        if (c->trailer == PAGES_TRAILER)
                put_marks(c, page + MARK_AT, number);
        put_be32(page + NUMBER_AT, number);
        put_be32(page + SUM_AT, page_sum(page));
}

static bool page_matches(const struct checked_file *c, const uint8_t *page, uint32_t number) {
        return (c->trailer != PAGES_TRAILER || get_be32(page + MARK_AT) == c->mark) &&
               get_be32(page + NUMBER_AT) == number && get_be32(page + SUM_AT) == page_sum(page);
}

/* Marks */

static uint32_t not_zero(uint32_t v) {
        return v ? v : 1;
}

static uint32_t mark_of_log(const uint8_t salts[static SALTS_BYTES]) {
        return not_zero((uint32_t) crc32(0, salts, SALTS_BYTES));
}

/* Reads the marks of the file's first page, if there is one. */
static int find_marks(struct checked_file *c) {
        uint8_t header[HEADER_RESERVED + 1] = {0}, marks[MARK_BYTES];
        int code = c->real->pMethods->xRead(c->real, header, sizeof(header), 0);
        if (code == SQLITE_OK && header[0])
                code = c->real->pMethods->xRead(c->real, marks, sizeof(marks), MARK_AT);
        if (code == SQLITE_IOERR_SHORT_READ || (code == SQLITE_OK && !header[0]))
                return SQLITE_OK;
        if (code != SQLITE_OK)
                return code;
        bool marked = header[HEADER_RESERVED] != PAGES_TRAILER_UNMARKED;
        c->trailer = marked ? PAGES_TRAILER : PAGES_TRAILER_UNMARKED;
        c->mark = marked ? get_be32(marks) : 0;
        c->log_mark = marked ? get_be32(marks + 4) : 0;
        return SQLITE_OK;
}

/* Before a page is read or written: a file without any gets a mark of its own. */
static int require_marks(struct checked_file *c) {
        uint32_t mark;
        int code = c->trailer ? SQLITE_OK : find_marks(c);
        if (code != SQLITE_OK || c->trailer)
                return code;
        sqlite3_randomness(sizeof(mark), &mark);
        c->trailer = PAGES_TRAILER;
        c->mark = not_zero(mark);
        return SQLITE_OK;
}

bool pages_is_full(int error) {
        return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

static _Thread_local struct { int code, error; } failed;

int pages_errno(int code) {
        return failed.code == code ? failed.error : 0;
}

/* Of what the real VFS has done with a file: SQLITE_FULL for all of these, else the same code. */
static int note_errno(const struct checked_file *c, int code) {
        int error = 0;
        if ((code & 0xff) != SQLITE_IOERR || code == SQLITE_IOERR_SHORT_READ ||
            c->real->pMethods->xFileControl(c->real, SQLITE_FCNTL_LAST_ERRNO, &error) != SQLITE_OK)
                return code;
        failed.code = code;
        failed.error = error;
        return pages_is_full(error) ? SQLITE_FULL : code;
}

static int write_real(struct checked_file *c, const void *data, int n, sqlite3_int64 offset) {
        return note_errno(c, c->real->pMethods->xWrite(c->real, data, n, offset));
}

static int write_log_mark(struct checked_file *c, uint8_t *page, uint32_t mark) {
        uint32_t before = c->log_mark;
        pthread_mutex_lock(&marks_lock);
        c->log_mark = mark;
        seal_page(c, page, 1);
        int code = write_real(c, page + MARK_AT, PAGES_TRAILER, MARK_AT);
        if (code != SQLITE_OK)
                c->log_mark = before;
        pthread_mutex_unlock(&marks_lock);
        c->log_mark_unsynced |= code == SQLITE_OK;
        return code;
}

static int compare_marks(struct checked_file *c) {
        uint8_t found[MARK_BYTES], marks[MARK_BYTES];
        int code = c->real->pMethods->xRead(c->real, found, sizeof(found), MARK_AT);
        put_marks(c, marks, 1);
        if (code == SQLITE_IOERR_SHORT_READ || (code == SQLITE_OK && memcmp(found, marks, sizeof(marks)) != 0))
                return SQLITE_IOERR_DATA;
        return code;
}

/* After the log was synced: one that has begun anew is named in the database's first page, which a checkpoint has
 * written and synced before. SQLite syncs the new header before it writes the first frame, so that none is there before
 * its log is named. A header that others have written is not named. SQLite syncs the log before each checkpoint, too,
 * which would move it into another database, or an older copy, and make a mixture of both look whole. */
static int name_log(const struct checked_file *log, int flags) {
        struct checked_file *c = log->of;
        uint8_t page[PAGES_SIZE];
        if (!c || c->trailer != PAGES_TRAILER)
                return SQLITE_OK;
        int code = compare_marks(c);
        if (code != SQLITE_OK)
                return code;
        if (log->begun && log->begun != c->log_mark) {
                code = c->real->pMethods->xRead(c->real, page, sizeof(page), 0);
                if (code == SQLITE_OK && !page_matches(c, page, 1)) {
                        note(c->path, 1, 0);
                        code = SQLITE_IOERR_DATA;
                }
                if (code == SQLITE_OK)
                        code = write_log_mark(c, page, log->begun);
        }
        if (code == SQLITE_OK && c->log_mark_unsynced) {
                code = note_errno(c, c->real->pMethods->xSync(c->real, flags));
                c->log_mark_unsynced = code != SQLITE_OK;
        }
        return code;
}

int pages_check_marks(sqlite3_file *file, int fd) {
        const struct checked_file *c = checked(file);
        uint8_t found[MARK_BYTES], marks[MARK_BYTES];
        if (c->trailer != PAGES_TRAILER)
                return 0;
        pthread_mutex_lock(&marks_lock);
        ssize_t n = pread(fd, found, sizeof(found), MARK_AT);
        int r = n < 0 ? -errno : 0;
        put_marks(c, marks, 1);
        pthread_mutex_unlock(&marks_lock);
        if (r < 0)
                return r;
        return n == MARK_BYTES && memcmp(found, marks, sizeof(marks)) == 0 ? 0 : -ESTALE;
}

/* What SQLite calls */

static void free_parts(struct checked_file *c) {
        for (int i = 0; i < c->n_parts; i++)
                free(c->parts[i]);
        free(c->parts);
        c->parts = NULL;
        c->n_parts = 0;
}

static int checked_close(sqlite3_file *f) {
        struct checked_file *c = checked(f);
        free_parts(c);
        int code = c->real->pMethods->xClose(c->real);
        free(c->real);
        free(c->path);
        return code;
}

/* SQLite's own checksum over 32-bit words, in the byte order that the log's magic number names. */
static void add_words(const uint8_t *data, size_t length, bool big_endian, uint32_t sum[2]) {
        for (size_t i = 0; i < length; i += 8) {
                uint32_t word[2];
                for (int k = 0; k < 2; k++) {
                        word[k] = get_be32(data + i + 4 * k);
                        if (!big_endian)
                                word[k] = __builtin_bswap32(word[k]);
                }
                sum[0] += word[0] + sum[1];
                sum[1] += word[1] + sum[0];
        }
}

/* Another log's frames match their sums as well. */
static bool is_of_index(const struct checked_file *c, const uint8_t salts[static SALTS_BYTES]) {
        const volatile uint8_t *index = c->of ? c->of->index : NULL;
        for (size_t i = 0; index && i < SALTS_BYTES; i++)
                if (index[INDEX_SALTS + i] != salts[i])
                        return false;
        return true;
}

/* A frame's sum goes on from that of the frame before it, or of the log's header. Both are read at once, with the page
 * between them, as a checkpoint looks at a thousand frames. */
static int frame_matches(struct checked_file *c, const uint8_t *page, sqlite3_int64 offset, bool *ret) {
        uint8_t header[WAL_HEADER], around[WAL_FRAME + WAL_FRAME_HEADER];
        sqlite3_int64 start = offset - WAL_FRAME_HEADER;
        sqlite3_int64 before = start == WAL_HEADER ? 24 : start - WAL_FRAME + 16;
        const uint8_t *frame = around + (start - before);
        int code = c->real->pMethods->xRead(c->real, header, sizeof(header), 0);
        if (code == SQLITE_OK)
                code = c->real->pMethods->xRead(c->real, around, (int) (offset - before), before);
        if (code != SQLITE_OK)
                return code;
        uint32_t sum[2] = {get_be32(around), get_be32(around + 4)};
        bool big_endian = header[3] & 1;
        add_words(frame, 8, big_endian, sum);
        add_words(page, PAGES_SIZE, big_endian, sum);
        *ret = sum[0] == get_be32(frame + 16) && sum[1] == get_be32(frame + 20) && is_of_index(c, header + WAL_SALTS) &&
               is_of_index(c, frame + WAL_FRAME_SALTS);
        return SQLITE_OK;
}

static int check_frame(struct checked_file *c, const void *data, sqlite3_int64 offset) {
        bool matches = false;
        if ((offset - WAL_HEADER) % WAL_FRAME != WAL_FRAME_HEADER || offset >= c->unsynced_from)
                return SQLITE_OK;
        int code = frame_matches(c, data, offset, &matches);
        if (code != SQLITE_OK || matches)
                return code;
        note(c->path, 0, offset);
        return SQLITE_IOERR_DATA;
}

static int check_page(struct checked_file *c, const void *data, sqlite3_int64 offset) {
        uint32_t number = (uint32_t) (offset / PAGES_SIZE) + 1;
        int code = require_marks(c);
        if (code != SQLITE_OK || (offset % PAGES_SIZE == 0 && page_matches(c, data, number)))
                return code;
        note(c->path, number, offset);
        return SQLITE_IOERR_DATA;
}

/* The database's pages after the last commit; 0: there was none since the log's beginning, and SQLite compares the
 * file's length with the database's header. */
static uint32_t committed_pages(const struct checked_file *c) {
        return c->index ? *(const volatile uint32_t *) (c->index + INDEX_PAGES) : 0;
}

/* SQLite takes what is behind the file's end for zeros: right for a page that its transaction has added. */
static bool is_lost(const struct checked_file *c, sqlite3_int64 offset) {
        return c->role == ROLE_LOG || (c->role == ROLE_DATABASE && offset / PAGES_SIZE < committed_pages(c));
}

static int fail_lost(const struct checked_file *c, sqlite3_int64 offset) {
        note(c->path, c->role == ROLE_LOG ? 0 : (uint32_t) (offset / PAGES_SIZE) + 1, offset);
        return SQLITE_IOERR_DATA;
}

static int read_checked(struct checked_file *c, void *data, int n, sqlite3_int64 offset) {
        int code = note_errno(c, c->real->pMethods->xRead(c->real, data, n, offset));
        if (n != (int) PAGES_SIZE) /* of the header alone, SQLite reads the page sooner or later */
                return code;
        if (code == SQLITE_IOERR_SHORT_READ && is_lost(c, offset))
                return fail_lost(c, offset);
        if (code != SQLITE_OK)
                return code;
        switch (c->role) {
        case ROLE_DATABASE:
                return check_page(c, data, offset);
        case ROLE_LOG:
                return check_frame(c, data, offset);
        case ROLE_OTHER:
                break;
        }
        return SQLITE_OK;
}

/* Where SQLite has looked a page up in an index of zeros, it reads an older one. */
static int checked_read(sqlite3_file *f, void *data, int n, sqlite3_int64 offset) {
        int code = read_checked(checked(f), data, n, offset);
        return index_guard_is_lost() ? SQLITE_IOERR_SHMMAP : code;
}

/* SQLite writes frame after frame: a gap before one is what others have cut off, and with another header the log is
 * another one. A recovery would not come to what is written here. A frame that a transaction writes once more has no
 * salts until it commits. */
static int check_log(const struct checked_file *c, const uint8_t *data, int n, sqlite3_int64 offset) {
        static const uint8_t none[SALTS_BYTES];
        bool begins = n == WAL_FRAME_HEADER && (offset - WAL_HEADER) % WAL_FRAME == 0;
        uint8_t salts[SALTS_BYTES];
        sqlite3_int64 size;
        int code = c->real->pMethods->xFileSize(c->real, &size);
        if (code == SQLITE_OK && offset > size)
                return fail_lost(c, offset);
        if (code != SQLITE_OK || !begins || memcmp(data + WAL_FRAME_SALTS, none, sizeof(none)) == 0)
                return code;
        code = c->real->pMethods->xRead(c->real, salts, sizeof(salts), WAL_SALTS);
        if (code == SQLITE_OK && memcmp(salts, data + WAL_FRAME_SALTS, sizeof(salts)) != 0)
                return fail_lost(c, offset);
        return code;
}

static int checked_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 offset) {
        struct checked_file *c = checked(f);
        int code = c->role == ROLE_LOG ? check_log(c, data, n, offset) : SQLITE_OK;
        if (index_guard_is_lost())
                return SQLITE_IOERR_SHMMAP;
        if (code != SQLITE_OK)
                return code;
        if (c->role == ROLE_LOG && offset == 0 && n == WAL_HEADER)
                c->begun = mark_of_log((const uint8_t *) data + WAL_SALTS);
        if (c->role == ROLE_LOG && offset < c->unsynced_from)
                c->unsynced_from = offset;
        if (c->role != ROLE_DATABASE)
                return write_real(c, data, n, offset);
        if (n != (int) PAGES_SIZE || offset % PAGES_SIZE != 0) {
                log_error("%s: SQLite writes %d bytes at %lld, which is no page of %u bytes", c->path, n,
                          (long long) offset, PAGES_SIZE);
                return SQLITE_IOERR_WRITE;
        }
        code = require_marks(c);
        if (code != SQLITE_OK)
                return code;
        uint8_t page[PAGES_SIZE];
        memcpy(page, data, sizeof(page));
        seal_page(c, page, (uint32_t) (offset / PAGES_SIZE) + 1);
        return write_real(c, page, n, offset);
}

static int checked_sync(sqlite3_file *f, int flags) {
        struct checked_file *c = checked(f);
        if (index_guard_is_lost()) /* a checkpoint that has found zeros, and so nothing to move, would empty the log */
                return SQLITE_IOERR_SHMMAP;
        int code = note_errno(c, c->real->pMethods->xSync(c->real, flags));
        if (code != SQLITE_OK)
                return code;
        c->unsynced_from = INT64_MAX;
        return c->role == ROLE_LOG ? name_log(c, flags) : SQLITE_OK;
}

/* The methods below call those of the real file. */

/* A file is cut to the size that it has, too, as by a checkpoint: the kernel would free what is allocated beyond. */
static int checked_truncate(sqlite3_file *f, sqlite3_int64 size) {
        sqlite3_int64 now;
        if (index_guard_is_lost())
                return SQLITE_IOERR_SHMMAP;
        int code = real_of(f)->pMethods->xFileSize(real_of(f), &now);
        if (code == SQLITE_OK && now == size)
                return SQLITE_OK;
        return note_errno(checked(f), real_of(f)->pMethods->xTruncate(real_of(f), size));
}
static int checked_size(sqlite3_file *f, sqlite3_int64 *ret) {
        return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}
static int checked_lock(sqlite3_file *f, int level) {
        return checked(f)->alone ? SQLITE_OK : real_of(f)->pMethods->xLock(real_of(f), level);
}
static int checked_unlock(sqlite3_file *f, int level) {
        return checked(f)->alone ? SQLITE_OK : real_of(f)->pMethods->xUnlock(real_of(f), level);
}
static int checked_reserved(sqlite3_file *f, int *ret) {
        return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}
static int checked_control(sqlite3_file *f, int op, void *arg) {
        return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}
static int checked_sector(sqlite3_file *f) {
        return real_of(f)->pMethods->xSectorSize(real_of(f));
}
static int checked_characteristics(sqlite3_file *f) {
        return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}
/* SQLite fills it from the log, as it does with one that is lost. */
static int own_part(struct checked_file *c, int part, int size, int extend, void volatile **ret) {
        while (extend && c->n_parts <= part) {
                uint8_t **grown = reallocarray(c->parts, (size_t) c->n_parts + 1, sizeof(*grown));
                if (!grown)
                        return SQLITE_IOERR_NOMEM;
                c->parts = grown;
                grown[c->n_parts] = calloc(1, (size_t) size);
                if (!grown[c->n_parts])
                        return SQLITE_IOERR_NOMEM;
                c->n_parts++;
        }
        *ret = part < c->n_parts ? c->parts[part] : NULL;
        return SQLITE_OK;
}

static int checked_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret) {
        int code = checked(f)->alone ? own_part(checked(f), page, size, extend, ret)
                                     : real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
        if (page == 0)
                checked(f)->index = code == SQLITE_OK ? *ret : NULL;
        return code;
}
static int checked_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
        return checked(f)->alone ? SQLITE_OK : real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}
static void checked_shm_barrier(sqlite3_file *f) {
        if (!checked(f)->alone)
                real_of(f)->pMethods->xShmBarrier(real_of(f));
}
static int checked_shm_unmap(sqlite3_file *f, int remove) {
        checked(f)->index = NULL;
        free_parts(checked(f));
        return checked(f)->alone ? SQLITE_OK : real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods checked_methods = {
        .iVersion = 2, /* without the mapped reads of 3, which would go around the checks */
        .xClose = checked_close,
        .xRead = checked_read,
        .xWrite = checked_write,
        .xTruncate = checked_truncate,
        .xSync = checked_sync,
        .xFileSize = checked_size,
        .xLock = checked_lock,
        .xUnlock = checked_unlock,
        .xCheckReservedLock = checked_reserved,
        .xFileControl = checked_control,
        .xSectorSize = checked_sector,
        .xDeviceCharacteristics = checked_characteristics,
        .xShmMap = checked_shm_map,
        .xShmLock = checked_shm_lock,
        .xShmBarrier = checked_shm_barrier,
        .xShmUnmap = checked_shm_unmap,
};

static int set_role(struct checked_file *c, const char *path, int flags) {
        c->role = ROLE_OTHER;
        if (!path || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
                return SQLITE_OK;
        size_t length = strlen(path), suffix = strlen("-wal");
        if (flags & SQLITE_OPEN_WAL && (length <= suffix || strcmp(path + length - suffix, "-wal") != 0))
                return SQLITE_CANTOPEN;
        c->role = flags & SQLITE_OPEN_WAL ? ROLE_LOG : ROLE_DATABASE;
        c->of = c->role == ROLE_LOG ? checked(sqlite3_database_file_object(path)) : NULL;
        c->path = strndup(path, c->role == ROLE_LOG ? length - suffix : length);
        return c->path ? SQLITE_OK : SQLITE_NOMEM;
}

static sqlite3_vfs checked_vfs, alone_vfs;

/* The log of files that nobody can write: SQLite does not open a database without one that has had one. */
static int open_log_alone(sqlite3_vfs *real, const char *path, struct checked_file *c, int *ret_flags) {
        int flags = SQLITE_OPEN_WAL | SQLITE_OPEN_READONLY;
        bool none = access(path, F_OK) < 0 && errno == ENOENT;
        return real->xOpen(real, none ? "/dev/null" : path, c->real, flags, ret_flags);
}

static int checked_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *ret_flags) {
        sqlite3_vfs *real = sqlite3_vfs_find(NULL);
        struct checked_file *c = checked(f);
        *c = (struct checked_file){.unsynced_from = INT64_MAX}; /* without methods: SQLite does not close it */
        c->real = calloc(1, (size_t) real->szOsFile);
        if (!c->real)
                return SQLITE_NOMEM;
        int code = set_role(c, path, flags);
        c->alone = vfs == &alone_vfs && c->role == ROLE_DATABASE;
        if (code == SQLITE_OK && vfs == &alone_vfs && c->role == ROLE_LOG)
                code = open_log_alone(real, path, c, ret_flags);
        else if (code == SQLITE_OK)
                code = real->xOpen(real, path, c->real, flags, ret_flags);
        if (code == SQLITE_OK && c->role == ROLE_DATABASE)
                code = find_marks(c);
        if (code == SQLITE_OK) {
                c->base.pMethods = &checked_methods;
                return SQLITE_OK;
        }
        if (c->real->pMethods)
                (void) c->real->pMethods->xClose(c->real); /* the failure to open is what is reported */
        free(c->real);
        free(c->path);
        return code;
}

static int checked_delete(sqlite3_vfs *vfs, const char *path, int sync_dir) {
        (void) vfs;
        sqlite3_vfs *real = sqlite3_vfs_find(NULL);
        return real->xDelete(real, path, sync_dir);
}

static int registered; /* an SQLite code */

static void register_once(void) {
        sqlite3_vfs *real = sqlite3_vfs_find(NULL);
        if (!real) {
                registered = SQLITE_ERROR;
                return;
        }
        checked_vfs = *real; /* all that names no file of ours is the real one's */
        checked_vfs.pNext = NULL;
        checked_vfs.zName = PAGES_VFS;
        checked_vfs.szOsFile = (int) sizeof(struct checked_file);
        checked_vfs.xOpen = checked_open;
        checked_vfs.xDelete = checked_delete;
        alone_vfs = checked_vfs;
        alone_vfs.zName = PAGES_VFS_ALONE;
        registered = index_guard_install() < 0 ? SQLITE_ERROR : sqlite3_vfs_register(&checked_vfs, 0);
        if (registered == SQLITE_OK)
                registered = sqlite3_vfs_register(&alone_vfs, 0);
}

int pages_register(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        int r = pthread_once(&once, register_once);
        if (r != 0)
                return -r;
        return registered == SQLITE_OK ? 0 : -EIO;
}

/* The files without SQLite */

bool pages_has_trailer(unsigned reserved) {
        return reserved == PAGES_TRAILER || reserved == PAGES_TRAILER_UNMARKED;
}

static int kind_of(const uint8_t header[static HEADER_BYTES], size_t n, enum pages_kind *ret) {
        static const uint8_t unwritten[HEADER_BYTES];
        if (memcmp(header, unwritten, n) == 0) /* the power failed before SQLite had written the first page */
                *ret = PAGES_NONE;
        else if (n < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) != 0)
                return -EBADMSG;
        else
                *ret = pages_has_trailer(header[HEADER_RESERVED]) ? PAGES_CHECKED : PAGES_PLAIN;
        return 0;
}

/* The first bytes of a file: how many there are, 0 without a file. */
static ssize_t read_first(const char *path, uint8_t *ret, size_t n) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        ssize_t got = read(fd, ret, n);
        return got < 0 ? -errno : got;
}

int pages_kind(const char *path, enum pages_kind *ret) {
        uint8_t header[HEADER_BYTES];
        ssize_t n = read_first(path, header, sizeof(header));
        return n < 0 ? (int) n : kind_of(header, (size_t) n, ret);
}

/* The header and that of the first frame, which a recovery takes if it has the header's salts: zeros if not. */
static int read_log(const char *path, uint8_t ret[static WAL_HEADER + WAL_FRAME_HEADER]) {
        ssize_t n = read_first(path, ret, WAL_HEADER + WAL_FRAME_HEADER);
        if (n < 0)
                return (int) n;
        if (n < WAL_HEADER + WAL_FRAME_HEADER ||
            memcmp(ret + WAL_SALTS, ret + WAL_HEADER + WAL_FRAME_SALTS, SALTS_BYTES) != 0)
                memset(ret, 0, WAL_HEADER + WAL_FRAME_HEADER);
        return 0;
}

/* The log is read before the page that names it, and again after it: a daemon may be at work. */
static int compare_log(const char *path, const char *log, bool *ret_same, bool *ret_settled) {
        uint8_t first[WAL_HEADER + WAL_FRAME_HEADER], again[WAL_HEADER + WAL_FRAME_HEADER], page[PAGES_SIZE];
        int r = read_log(log, first);
        ssize_t n = r < 0 ? r : read_first(path, page, sizeof(page));
        if (n >= 0)
                r = read_log(log, again);
        if (n < 0 || r < 0)
                return n < 0 ? (int) n : r;
        *ret_same = first[0] == 0 || n < (ssize_t) sizeof(page) || page[HEADER_RESERVED] != PAGES_TRAILER ||
                    get_be32(page + MARK_AT + 4) == mark_of_log(first + WAL_SALTS);
        *ret_settled = *ret_same || memcmp(first, again, sizeof(first)) == 0;
        return 0;
}

int pages_goes_with_log(const char *path, bool *ret) {
        _cleanup_free_ char *log = NULL;
        bool same = false, settled = false;
        int r = 0;
        if (asprintf(&log, "%s-wal", path) < 0) {
                log = NULL;
                return -ENOMEM;
        }
        for (unsigned i = 0; r == 0 && !settled && i < READINGS_MAX; i++)
                r = compare_log(path, log, &same, &settled);
        if (r == 0 && !settled)
                return -EAGAIN;
        if (r == 0)
                *ret = same;
        return r;
}

int pages_file_kind(sqlite3_file *file, enum pages_kind *ret) {
        uint8_t header[HEADER_BYTES];
        int code = real_of(file)->pMethods->xRead(real_of(file), header, sizeof(header), 0);
        if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) /* after which zeros are behind what there is */
                return -EIO;
        return kind_of(header, sizeof(header), ret);
}

static bool is_zero(const uint8_t *page) {
        return page[0] == 0 && memcmp(page, page + 1, PAGES_SIZE - 1) == 0;
}

int pages_reserved(sqlite3_file *file, unsigned *ret) {
        uint8_t header[HEADER_RESERVED + 1];
        int code = real_of(file)->pMethods->xRead(real_of(file), header, sizeof(header), 0);
        if (code != SQLITE_OK)
                return -EIO;
        *ret = header[HEADER_RESERVED];
        return 0;
}

int pages_scrub(sqlite3_file *file, uint32_t from, uint32_t n, uint32_t *ret_next, uint32_t *ret_total) {
        sqlite3_file *real = real_of(file);
        uint8_t page[PAGES_SIZE];
        sqlite3_int64 size;
        if (real->pMethods->xFileSize(real, &size) != SQLITE_OK)
                return -EIO;
        uint32_t total = (uint32_t) (size / PAGES_SIZE), number = from;
        for (; number <= total && number - from < n; number++) {
                sqlite3_int64 offset = (sqlite3_int64) (number - 1) * PAGES_SIZE;
                if (real->pMethods->xRead(real, page, sizeof(page), offset) != SQLITE_OK)
                        return -EIO;
                if (!is_zero(page) && !page_matches(checked(file), page, number))
                        note(checked(file)->path, number, offset);
        }
        *ret_next = number <= total ? number : 0;
        *ret_total = total;
        return 0;
}
