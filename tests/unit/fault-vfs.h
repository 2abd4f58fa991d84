/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FAULT_VFS_H
#define IPCLAB_TESTS_FAULT_VFS_H

/*
 * A disk below SQLite that can fail. It stands in front of the real VFS as the default one, and keeps for each
 * database, journal and log what a sync has made durable, apart from what was only written. At the operation that was
 * chosen it loses power (every later operation fails, and fault_write_image() shows the content of the disk: the
 * durable part and some of the rest, torn at sectors), or is full for one write.
 *
 * The real fsync is left out: nothing here survives by luck, and the tests are quick.
 *
 * Source: https://www.sqlite.org/vfs.html, /c3ref/io_methods.html.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FAULT_SECTOR 512u
#define FAULT_FILES 16u

enum fault_kind { FAULT_NONE, FAULT_POWER, FAULT_FULL, FAULT_SYNC };

struct fault_write {
        int64_t offset; /* of a truncation: the new size */
        uint8_t *data;  /* NULL: truncation */
        size_t length;
};

struct fault_disk_file {
        char path[256];
        bool exists;
        uint8_t *durable; /* has room for `room` bytes */
        size_t size, room;
        struct fault_write *pending; /* since the last sync */
        size_t n_pending, pending_room;
};

static struct fault_disk {
        sqlite3_vfs vfs, *real;
        enum fault_kind kind;
        unsigned countdown; /* operations until it happens; counts on below for fault_operations() */
        unsigned operations, writes, syncs;
        bool happened, dead;
        bool (*fails)(void); /* asked at every call, also of those that read; NULL: nobody */
        struct fault_disk_file files[FAULT_FILES];
        unsigned n_files;
} fault;

struct fault_file {
        sqlite3_file base;
        struct fault_disk_file *disk; /* NULL: not one that is watched */
        sqlite3_file *real;           /* behind this struct */
};

static void *fault_check(void *p) {
        if (!p) {
                perror("fault-vfs");
                abort();
        }
        return p;
}

/* Room for `needed` elements, twice as many at a time: AddressSanitizer's realloc() always copies. */
static void *fault_grow(void *p, size_t *room, size_t needed, size_t size) {
        if (needed <= *room)
                return p;
        *room = needed * 2;
        return fault_check(realloc(p, *room * size));
}

static void fault_apply(struct fault_disk_file *d, const struct fault_write *w, size_t from, size_t to) {
        size_t end = w->data ? (size_t) w->offset + to : (size_t) w->offset;
        if (end > d->size || !w->data) {
                d->durable = fault_grow(d->durable, &d->room, end ? end : 1, 1);
                if (end > d->size)
                        memset(d->durable + d->size, 0, end - d->size);
                d->size = end;
        }
        if (w->data)
                memcpy(d->durable + w->offset + from, w->data + from, to - from);
}

static void fault_forget_pending(struct fault_disk_file *d) {
        for (size_t i = 0; i < d->n_pending; i++)
                free(d->pending[i].data);
        free(d->pending);
        d->pending = NULL;
        d->n_pending = d->pending_room = 0;
}

static void fault_note(struct fault_disk_file *d, int64_t offset, const void *data, size_t length) {
        struct fault_write w = {.offset = offset, .length = length};
        if (data)
                w.data = memcpy(fault_check(malloc(length)), data, length);
        d->pending = fault_grow(d->pending, &d->pending_room, d->n_pending + 1, sizeof(w));
        d->pending[d->n_pending++] = w;
}

static bool fault_asked(void) {
        return fault.fails && fault.fails();
}

/* Counts a write, truncation or sync. Returns the result code that it shall have. */
static int fault_operation(bool write, bool sync) {
        if (fault.dead || fault_asked())
                return SQLITE_IOERR;
        fault.operations++;
        fault.writes += write;
        fault.syncs += sync;
        if (fault.kind == FAULT_NONE || fault.happened)
                return SQLITE_OK;
        if ((fault.kind == FAULT_FULL && !write) || (fault.kind == FAULT_SYNC && !sync))
                return SQLITE_OK;
        if (--fault.countdown > 0)
                return SQLITE_OK;
        fault.happened = true;
        fault.dead = fault.kind == FAULT_POWER;
        return fault.kind == FAULT_FULL ? SQLITE_FULL : fault.kind == FAULT_SYNC ? SQLITE_IOERR_FSYNC : SQLITE_IOERR;
}

/* File methods */

#define FAULT_REAL(file) (((struct fault_file *) (file))->real)
#define FAULT_DISK(file) (((struct fault_file *) (file))->disk)

static int fault_close(sqlite3_file *f) {
        return FAULT_REAL(f)->pMethods->xClose(FAULT_REAL(f));
}
static int fault_read(sqlite3_file *f, void *data, int n, sqlite3_int64 offset) {
        if (fault_asked())
                return SQLITE_IOERR_READ;
        return FAULT_REAL(f)->pMethods->xRead(FAULT_REAL(f), data, n, offset);
}
static int fault_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 offset) {
        if (FAULT_DISK(f)) {
                int code = fault_operation(true, false);
                /* a part of the interrupted write may be on the disk */
                if (code == SQLITE_OK || (fault.kind == FAULT_POWER && code == SQLITE_IOERR && fault.happened))
                        fault_note(FAULT_DISK(f), offset, data, (size_t) n);
                if (code != SQLITE_OK)
                        return code;
        }
        return FAULT_REAL(f)->pMethods->xWrite(FAULT_REAL(f), data, n, offset);
}
static int fault_truncate(sqlite3_file *f, sqlite3_int64 size) {
        if (FAULT_DISK(f)) {
                int code = fault_operation(false, false);
                if (code != SQLITE_OK)
                        return code;
                fault_note(FAULT_DISK(f), size, NULL, 0);
        }
        return FAULT_REAL(f)->pMethods->xTruncate(FAULT_REAL(f), size);
}
static int fault_sync(sqlite3_file *f, int flags) {
        struct fault_disk_file *d = FAULT_DISK(f);
        (void) flags;
        if (!d)
                return SQLITE_OK;
        int code = fault_operation(false, true);
        if (code != SQLITE_OK)
                return code;
        for (size_t i = 0; i < d->n_pending; i++)
                fault_apply(d, &d->pending[i], 0, d->pending[i].length);
        fault_forget_pending(d);
        return SQLITE_OK;
}
static int fault_size(sqlite3_file *f, sqlite3_int64 *ret) {
        if (fault_asked())
                return SQLITE_IOERR_FSTAT;
        return FAULT_REAL(f)->pMethods->xFileSize(FAULT_REAL(f), ret);
}
static int fault_lock(sqlite3_file *f, int level) {
        if (fault_asked())
                return SQLITE_IOERR_LOCK;
        return FAULT_REAL(f)->pMethods->xLock(FAULT_REAL(f), level);
}
static int fault_unlock(sqlite3_file *f, int level) {
        return FAULT_REAL(f)->pMethods->xUnlock(FAULT_REAL(f), level);
}
static int fault_reserved(sqlite3_file *f, int *ret) {
        return FAULT_REAL(f)->pMethods->xCheckReservedLock(FAULT_REAL(f), ret);
}
static int fault_control(sqlite3_file *f, int op, void *arg) {
        return FAULT_REAL(f)->pMethods->xFileControl(FAULT_REAL(f), op, arg);
}
static int fault_sector(sqlite3_file *f) {
        (void) f;
        return (int) FAULT_SECTOR;
}
static int fault_characteristics(sqlite3_file *f) {
        (void) f;
        return 0; /* not even "powersafe overwrite" is promised */
}
static int fault_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret) {
        if (fault_asked())
                return SQLITE_IOERR_SHMMAP;
        return FAULT_REAL(f)->pMethods->xShmMap(FAULT_REAL(f), page, size, extend, ret);
}
static int fault_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
        return FAULT_REAL(f)->pMethods->xShmLock(FAULT_REAL(f), offset, n, flags);
}
static void fault_shm_barrier(sqlite3_file *f) {
        FAULT_REAL(f)->pMethods->xShmBarrier(FAULT_REAL(f));
}
static int fault_shm_unmap(sqlite3_file *f, int remove) {
        return FAULT_REAL(f)->pMethods->xShmUnmap(FAULT_REAL(f), remove);
}

static const sqlite3_io_methods fault_methods = {
        .iVersion = 2, /* without the mapped reads of 3, which would bypass this */
        .xClose = fault_close,
        .xRead = fault_read,
        .xWrite = fault_write,
        .xTruncate = fault_truncate,
        .xSync = fault_sync,
        .xFileSize = fault_size,
        .xLock = fault_lock,
        .xUnlock = fault_unlock,
        .xCheckReservedLock = fault_reserved,
        .xFileControl = fault_control,
        .xSectorSize = fault_sector,
        .xDeviceCharacteristics = fault_characteristics,
        .xShmMap = fault_shm_map,
        .xShmLock = fault_shm_lock,
        .xShmBarrier = fault_shm_barrier,
        .xShmUnmap = fault_shm_unmap,
};

/* VFS methods: open and delete are watched, the others are the real one's. */

/* What is in a file that was there before is on the disk. */
static void fault_load(struct fault_disk_file *d) {
        struct stat st;
        int fd = open(d->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        if (fstat(fd, &st) == 0 && st.st_size > 0) {
                d->size = d->room = (size_t) st.st_size;
                d->durable = fault_check(malloc(d->size));
                if (read(fd, d->durable, d->size) != (ssize_t) d->size)
                        abort();
        }
        close(fd);
}

static struct fault_disk_file *fault_find(const char *path) {
        for (unsigned i = 0; i < fault.n_files; i++)
                if (strcmp(fault.files[i].path, path) == 0)
                        return &fault.files[i];
        if (fault.n_files == FAULT_FILES)
                abort();
        struct fault_disk_file *d = &fault.files[fault.n_files++];
        *d = (struct fault_disk_file){0};
        snprintf(d->path, sizeof(d->path), "%s", path);
        fault_load(d);
        return d;
}

static pthread_mutex_t fault_open_lock = PTHREAD_MUTEX_INITIALIZER;

static int fault_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *f, int flags, int *ret_flags) {
        (void) vfs;
        struct fault_file *file = (struct fault_file *) f;
        file->base.pMethods = NULL;
        if (fault_asked())
                return SQLITE_CANTOPEN;
        *file = (struct fault_file){.real = (sqlite3_file *) (void *) (file + 1)};
        pthread_mutex_lock(&fault_open_lock); /* readers open from threads of their own; only one thread writes */
        if (path && flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) {
                file->disk = fault_find(path);
                file->disk->exists = true;
        }
        pthread_mutex_unlock(&fault_open_lock);
        int code = fault.real->xOpen(fault.real, path, file->real, flags, ret_flags);
        if (code == SQLITE_OK)
                file->base.pMethods = &fault_methods;
        return code;
}

static int fault_delete(sqlite3_vfs *vfs, const char *path, int sync_dir) {
        (void) vfs;
        if (fault.dead || fault_asked())
                return SQLITE_IOERR_DELETE;
        for (unsigned i = 0; i < fault.n_files; i++)
                if (strcmp(fault.files[i].path, path) == 0) {
                        fault_forget_pending(&fault.files[i]);
                        fault.files[i].size = 0;
                        fault.files[i].exists = false;
                }
        return fault.real->xDelete(fault.real, path, sync_dir);
}

/* Registers it; to be called once, before the first connection. */
static inline void fault_install(void) {
        fault.real = sqlite3_vfs_find(NULL);
        fault.vfs = *fault.real;
        fault.vfs.pNext = NULL;
        fault.vfs.zName = "fault";
        fault.vfs.szOsFile = (int) sizeof(struct fault_file) + fault.real->szOsFile;
        fault.vfs.xOpen = fault_open;
        fault.vfs.xDelete = fault_delete;
        if (sqlite3_vfs_register(&fault.vfs, 1) != SQLITE_OK)
                abort();
}

/* An empty disk that fails at the given operation, counted from 1. */
static inline void fault_reset(enum fault_kind kind, unsigned at) {
        for (unsigned i = 0; i < fault.n_files; i++) {
                fault_forget_pending(&fault.files[i]);
                free(fault.files[i].durable);
        }
        fault.n_files = 0;
        fault.kind = kind;
        fault.countdown = at;
        fault.operations = fault.writes = fault.syncs = 0;
        fault.happened = fault.dead = false;
}

/* What the disk holds after the cut, into a directory: `percent` of the sectors that no sync has covered, chosen by the
 * seed. */
static inline void fault_write_image(const char *dir, unsigned percent, unsigned seed) {
        for (unsigned i = 0; i < fault.n_files; i++) {
                struct fault_disk_file copy = fault.files[i];
                if (!copy.exists)
                        continue;
                copy.room = copy.size + 1;
                copy.durable = fault_check(malloc(copy.room));
                if (copy.size > 0)
                        memcpy(copy.durable, fault.files[i].durable, copy.size);
                for (size_t k = 0; k < copy.n_pending; k++) {
                        const struct fault_write *w = &copy.pending[k];
                        for (size_t at = 0; at == 0 || at < w->length; at += FAULT_SECTOR)
                                if ((unsigned) rand_r(&seed) % 100 < percent)
                                        fault_apply(&copy, w, at,
                                                    at + FAULT_SECTOR < w->length ? at + FAULT_SECTOR : w->length);
                }
                char path[512];
                const char *name = strrchr(copy.path, '/');
                snprintf(path, sizeof(path), "%s%s", dir, name ? name : copy.path);
                int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                if (fd < 0 || write(fd, copy.durable, copy.size) != (ssize_t) copy.size) {
                        perror(path);
                        abort();
                }
                close(fd);
                free(copy.durable);
        }
}

#endif
