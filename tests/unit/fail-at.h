/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FAIL_AT_H
#define IPCLAB_TESTS_FAIL_AT_H

/*
 * Memory and files that fail at the n-th use, once or from then on, in every thread. The program's own calls come here
 * by the linker's --wrap (fail_at_wrapped in meson.build has the same names), SQLite's by its own two interfaces: the
 * allocator, and the VFS of fault-vfs.h.
 *
 * Source: https://www.sqlite.org/malloc.html, ld(1).
 */

#include <stdlib.h>

/* What the test's disk itself has to remember does not fail. */
void *__real_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
#define malloc __real_malloc
#define realloc __real_realloc
#include "tests/unit/fault-vfs.h"
#undef malloc
#undef realloc

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/file.h>

enum fail_kind { FAIL_MEMORY, FAIL_FILES, FAIL_KIND_COUNT };

static const struct {
        const char *name;
        int error; /* of a call that fails */
} fail_kinds[FAIL_KIND_COUNT] = {[FAIL_MEMORY] = {"allocation", ENOMEM}, [FAIL_FILES] = {"file operation", EIO}};

static struct {
        enum fail_kind kind;
        bool onwards; /* all uses after it, too */
        atomic_bool armed, happened;
        atomic_long left; /* uses until it */
} fail;

static inline void fail_arm(enum fail_kind kind, bool onwards, long at) {
        fail.kind = kind;
        fail.onwards = onwards;
        fail.happened = false;
        fail.left = at;
        fail.armed = true;
}

/* Whether it happened. */
static inline bool fail_disarm(void) {
        fail.armed = false;
        return fail.happened;
}

static inline bool fail_now(enum fail_kind kind) {
        if (!fail.armed || fail.kind != kind)
                return false;
        long left = atomic_fetch_sub(&fail.left, 1);
        if (left > 1 || (left < 1 && !fail.onwards))
                return false;
        fail.happened = true;
        errno = fail_kinds[kind].error;
        return true;
}

#define FAIL_WRAP(kind, failed, type, name, parameters, arguments)                                                     \
        type __real_##name parameters;                                                                                 \
        type __wrap_##name parameters;                                                                                 \
        type __wrap_##name parameters {                                                                                \
                return fail_now(kind) ? (failed) : __real_##name arguments;                                            \
        }

FAIL_WRAP(FAIL_MEMORY, NULL, void *, malloc, (size_t size), (size))
FAIL_WRAP(FAIL_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
FAIL_WRAP(FAIL_MEMORY, NULL, void *, realloc, (void *p, size_t size), (p, size))
FAIL_WRAP(FAIL_MEMORY, NULL, void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
FAIL_WRAP(FAIL_MEMORY, NULL, char *, strdup, (const char *s), (s))
FAIL_WRAP(FAIL_MEMORY, NULL, char *, strndup, (const char *s, size_t n), (s, n))
FAIL_WRAP(FAIL_FILES, -1, int, stat, (const char *path, struct stat *ret), (path, ret))
FAIL_WRAP(FAIL_FILES, -1, int, fstatat, (int fd, const char *path, struct stat *ret, int flags), (fd, path, ret, flags))
FAIL_WRAP(FAIL_FILES, -1, int, fsync, (int fd), (fd))
FAIL_WRAP(FAIL_FILES, -1, int, flock, (int fd, int operation), (fd, operation))
FAIL_WRAP(FAIL_FILES, -1, int, unlink, (const char *path), (path))
FAIL_WRAP(FAIL_FILES, -1, int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
FAIL_WRAP(FAIL_FILES, -1, int, rename, (const char *from, const char *to), (from, to))
FAIL_WRAP(FAIL_FILES, -1, int, renameat, (int from_fd, const char *from, int to_fd, const char *to),
          (from_fd, from, to_fd, to))
FAIL_WRAP(FAIL_FILES, -1, ssize_t, pwrite, (int fd, const void *data, size_t n, off_t offset), (fd, data, n, offset))
FAIL_WRAP(FAIL_FILES, EIO, int, posix_fallocate, (int fd, off_t offset, off_t n), (fd, offset, n))

int __wrap_asprintf(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **ret, const char *format, ...) {
        va_list arguments;
        if (fail_now(FAIL_MEMORY))
                return -1;
        va_start(arguments, format);
        int n = vasprintf(ret, format, arguments);
        va_end(arguments);
        return n;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
        va_end(arguments);
        return fail_now(FAIL_FILES) ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...) {
        va_list arguments;
        va_start(arguments, flags);
        mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
        va_end(arguments);
        return fail_now(FAIL_FILES) ? -1 : __real_openat(fd, path, flags, mode);
}

static sqlite3_mem_methods fail_sqlite_memory;

static void *fail_sqlite_malloc(int size) {
        return fail_now(FAIL_MEMORY) ? NULL : fail_sqlite_memory.xMalloc(size);
}

static void *fail_sqlite_realloc(void *p, int size) {
        return fail_now(FAIL_MEMORY) ? NULL : fail_sqlite_memory.xRealloc(p, size);
}

static bool fail_vfs_now(void) {
        return fail_now(FAIL_FILES);
}

/* To be called once, before SQLite is used. */
static inline void fail_install(void) {
        if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &fail_sqlite_memory) != SQLITE_OK)
                abort();
        sqlite3_mem_methods mine = fail_sqlite_memory;
        mine.xMalloc = fail_sqlite_malloc;
        mine.xRealloc = fail_sqlite_realloc;
        if (sqlite3_config(SQLITE_CONFIG_MALLOC, &mine) != SQLITE_OK)
                abort();
        fault_install();
        fault.fails = fail_vfs_now;
}

#endif
