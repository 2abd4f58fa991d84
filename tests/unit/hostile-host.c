/* SPDX-License-Identifier: MIT */

/*
 * A host that turns against the daemon, for tests/crash/test_hostile_host.py: a library that is loaded before the
 * others. The file that IPCLAB_HOSTILE_HOST names holds what it does now, as two numbers in text: the seconds by which
 * the wall clock is off, and the errno of everything that is written (0: none fails). Agents start without an
 * environment, and so without this.
 *
 * Source: ld.so(8), LD_PRELOAD.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void *next(const char *name) {
        void *function = dlsym(RTLD_NEXT, name);
        if (!function)
                abort();
        return function;
}

static void read_mood(long long *ret_offset, int *ret_error) {
        static int (*real_open)(const char *, int, ...);
        char text[64] = "";
        const char *path = getenv("IPCLAB_HOSTILE_HOST");
        *ret_offset = 0;
        *ret_error = 0;
        if (!real_open)
                real_open = (int (*)(const char *, int, ...)) next("open");
        int before = errno, fd = path ? real_open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd >= 0) {
                if (read(fd, text, sizeof(text) - 1) > 0)
                        (void) sscanf(text, "%lld %d", ret_offset, ret_error); /* NOLINT(cert-err34-c): the test's */
                (void) close(fd);
        }
        errno = before;
}

/* Whether writing to it fails: to files, not to sockets, pipes and the log. */
static int fails(int fd) {
        struct stat st;
        long long offset;
        int error;
        if (fd == STDERR_FILENO || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        read_mood(&offset, &error);
        return error;
}

#define WRITES(type, name, parameters, arguments)                                                                      \
        type name parameters;                                                                                          \
        type name parameters {                                                                                         \
                static type(*real) parameters;                                                                         \
                if (!real)                                                                                             \
                        real = (type(*) parameters) next(#name);                                                       \
                int error = fails(fd);                                                                                 \
                if (error == 0)                                                                                        \
                        return real arguments;                                                                         \
                errno = error;                                                                                         \
                return -1;                                                                                             \
        }

/* By the names that 64-bit offsets give them. */
WRITES(ssize_t, write, (int fd, const void *data, size_t n), (fd, data, n))
WRITES(ssize_t, pwrite, (int fd, const void *data, size_t n, off_t offset), (fd, data, n, offset))
WRITES(ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))
WRITES(int, fsync, (int fd), (fd))
WRITES(int, fdatasync, (int fd), (fd))
WRITES(int, ftruncate, (int fd, off_t size), (fd, size))

int clock_gettime(clockid_t id, struct timespec *ret) {
        static int (*real)(clockid_t, struct timespec *);
        long long offset;
        int error;
        if (!real)
                real = (int (*)(clockid_t, struct timespec *)) next("clock_gettime");
        int r = real(id, ret);
        if (r == 0 && id == CLOCK_REALTIME) {
                read_mood(&offset, &error);
                ret->tv_sec += offset;
        }
        return r;
}
