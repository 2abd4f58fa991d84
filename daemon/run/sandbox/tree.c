/* SPDX-License-Identifier: MIT */

/*
 * Removing a tree without recursion. Files are unlinked where they are; a directory that is deeper than the first
 * level is renamed into the top, and so becomes one of the first level. Called by rundir.c in a thread of its own.
 *
 * Source: man 2 openat2, unlinkat, rename.
 */

#include "daemon/run/sandbox/tree.h"

#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int tree_make(const char *path, mode_t mode) {
        _cleanup_free_ char *part = strdup(path);
        if (!part || !*part)
                return part ? -ENOENT : -ENOMEM;
        for (char *p = part + 1; *p; p++)
                if (*p == '/') {
                        *p = 0;
                        if (mkdir(part, 0755) < 0 && errno != EEXIST)
                                return -errno;
                        *p = '/';
                }
        return mkdir(part, mode) < 0 && errno != EEXIST ? -errno : 0;
}

/* Does the work of the openat2(2) below by hand: under systemd's RestrictSUIDSGID= that fails with ENOSYS. */
static int open_below_by_hand(int dir, const char *name, int flags) {
        struct stat above, st;
        if (strchr(name, '/') || strcmp(name, "..") == 0)
                return -EXDEV;
        _cleanup_close_ int fd = openat(dir, name, flags);
        if (fd < 0 || fstat(dir, &above) < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (S_ISLNK(st.st_mode)) /* O_PATH opens the link itself */
                return -ELOOP;
        if (above.st_dev != st.st_dev)
                return -EXDEV;
        return util_steal_fd(&fd);
}

int tree_open_below(int dir, const char *name, uint64_t flags) {
        struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
        if (fd < 0 && errno == ENOSYS)
                return open_below_by_hand(dir, name, (int) how.flags);
        return fd < 0 ? -errno : (int) fd;
}

struct emptying {
        int top;
        const atomic_bool *quit;
        uint64_t deadline_ns;
        uint64_t names; /* given to directories that were brought up */
        uint64_t progress;
        int error; /* the first one */
};

static bool is_over(struct emptying *e) {
        if (atomic_load_explicit(e->quit, memory_order_relaxed))
                e->error = -ECANCELED;
        else if (util_now_ns() >= e->deadline_ns)
                e->error = -ETIMEDOUT;
        else
                return false;
        return true;
}

/* A directory to be emptied becomes this user's own, with all permissions; its owner may have taken away its own.
 * chmod(2) by a descriptor that cannot be read goes by /proc. */
static int open_as_own(int dir, const char *name) {
        struct stat st;
        char path[64];
        _cleanup_close_ int fd = tree_open_below(dir, name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return fd;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (fstat(fd, &st) < 0 ||
            (st.st_uid != geteuid() && fchownat(fd, "", geteuid(), getegid(), AT_EMPTY_PATH) < 0) ||
            ((st.st_mode & 07777) != 0700 && chmod(path, 0700) < 0))
                return -errno;
        return tree_open_below(fd, ".", O_RDONLY | O_DIRECTORY);
}

/* Names may have been taken on purpose: the next one is tried, and no one twice. An empty directory of the name is
 * replaced, which is as good. */
static int bring_up(struct emptying *e, int dir, const char *name) {
        char up[32];
        int fd = open_as_own(dir, name); /* whose entry ".." is going to change */
        if (fd < 0)
                return fd;
        util_close(fd);
        do {
                (void) snprintf(up, sizeof(up), "deep-%" PRIu64, e->names++);
                if (renameat(dir, name, e->top, up) == 0)
                        return 0;
        } while ((errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) && !is_over(e));
        return -errno;
}

/* Handles one directory: remove_directory() those of the first level, bring_up() those below them. */
typedef int (*directory_handler)(struct emptying *e, int dir, const char *name);

static int remove_entry(struct emptying *e, int dir, const char *name, directory_handler handle) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM) /* EPERM: POSIX's answer to unlinking a directory */
                return -errno;
        int r = handle(e, dir, name);
        return r == -ENOTDIR ? -EPERM : r; /* a file that may not be unlinked */
}

/* One pass over a directory, whose descriptor is taken over; what is added meanwhile may be passed over. */
static void pass(struct emptying *e, int fd, directory_handler handle) {
        DIR *dir = fdopendir(fd);
        if (!dir) {
                e->error = e->error ? e->error : -errno;
                util_close(fd);
                return;
        }
        while (!is_over(e)) {
                errno = 0;
                struct dirent *d = readdir(dir); /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                int r = d ? 0 : -errno;
                if (d && (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0))
                        continue;
                if (d && (r = remove_entry(e, dirfd(dir), d->d_name, handle)) == 0)
                        e->progress++;
                if (r < 0 && e->error == 0)
                        e->error = r;
                if (!d)
                        break;
        }
        closedir(dir);
}

static int remove_directory(struct emptying *e, int dir, const char *name) {
        int fd = open_as_own(dir, name);
        if (fd < 0)
                return fd;
        pass(e, fd, bring_up);
        return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int tree_remove(int dir, const char *name, const atomic_bool *quit, uint64_t deadline_ns) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                return 0;
        int opened = open_as_own(dir, name);
        if (opened < 0)
                return opened;
        _cleanup_close_ int top = opened;
        struct emptying e = {.top = top, .quit = quit, .deadline_ns = deadline_ns};
        do {
                e.progress = 0;
                e.error = 0;
                int fd = tree_open_below(top, ".", O_RDONLY | O_DIRECTORY);
                if (fd < 0)
                        return fd;
                pass(&e, fd, remove_directory);
        } while (e.progress > 0 && !is_over(&e));
        return e.error == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : e.error;
}
