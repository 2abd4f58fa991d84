/* SPDX-License-Identifier: MIT */

/*
 * Run directories. Owns RUNTIME_DIR/runs, which only the daemon can enter: agents get a descriptor of their run's
 * directory and need no path. Removal goes by directory descriptors that were opened without following anything, never
 * leaves the file system, and has a limit of depth.
 */

#include "daemon/run/rundir.h"

#include "daemon/log.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEPTH_MAX 32u
#define ROOT_NAME "runs"

struct rundir_root {
        int parent_fd, fd;
};

/* What openat2(2) does below, by hand: systemd's RestrictSUIDSGID= answers that with ENOSYS. */
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

/* One component below `dir`; a symbolic link or a mount is an error, whoever put it there. */
static int open_below(int dir, const char *name, uint64_t flags) {
        struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
                               .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
        long fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
        if (fd < 0 && errno == ENOSYS)
                return open_below_by_hand(dir, name, (int) how.flags);
        return fd < 0 ? -errno : (int) fd;
}

/* An agent may have taken its own permissions away, which an unprivileged daemon must give back first. chmod(2) by a
 * descriptor that cannot be read goes by /proc. */
static int open_for_removal(int dir, const char *name) {
        struct stat st;
        char path[64];
        _cleanup_close_ int fd = open_below(dir, name, O_PATH | O_DIRECTORY);
        if (fd < 0)
                return fd;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (fstat(fd, &st) < 0 || ((st.st_mode & 0700) != 0700 && chmod(path, 0700) < 0))
                return -errno;
        return open_below(fd, ".", O_RDONLY | O_DIRECTORY);
}

static int empty_dir(int fd, unsigned depth);

static int remove_entry(int dir, const char *name, unsigned depth) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR && errno != EPERM) /* EPERM: POSIX's answer to unlinking a directory */
                return -errno;
        int fd = open_for_removal(dir, name);
        if (fd < 0)
                return fd;
        int r = empty_dir(fd, depth + 1);
        if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                r = -errno;
        return r;
}

/* Takes fd over. */
static int empty_dir(int fd, unsigned depth) {
        DIR *dir = depth < DEPTH_MAX ? fdopendir(fd) : NULL;
        if (!dir) {
                util_close(fd);
                return depth < DEPTH_MAX ? -errno : -ELOOP;
        }
        int r = 0;
        for (;;) {
                errno = 0;
                struct dirent *d = readdir(dir); /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                if (!d) {
                        if (errno && r == 0)
                                r = -errno;
                        break;
                }
                if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                        continue;
                int q = remove_entry(dirfd(dir), d->d_name, depth);
                if (q < 0 && r == 0)
                        r = q;
        }
        closedir(dir);
        return r;
}

/* The last component shall be no link: whoever may change it would choose where we remove. Those above may be, as
 * /var/run is one. */
static int open_runtime_dir(const char *path) {
        size_t length = strlen(path);
        while (length > 1 && path[length - 1] == '/') /* a slash at the end would have a link followed */
                length--;
        _cleanup_free_ char *plain = strndup(path, length);
        if (!plain)
                return -ENOMEM;
        int fd = open(plain, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                return fd;
        int e = -errno;
        struct stat st;
        return e == -ENOTDIR && lstat(plain, &st) == 0 && S_ISLNK(st.st_mode) ? -ELOOP : e;
}

static int open_root(struct rundir_root *root, const char *runtime_dir) {
        int parent = open_runtime_dir(runtime_dir);
        if (parent < 0)
                return parent;
        root->parent_fd = parent;
        if (mkdirat(root->parent_fd, ROOT_NAME, 0700) < 0 && errno != EEXIST)
                return -errno;
        int fd = open_below(root->parent_fd, ROOT_NAME, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        root->fd = fd;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid())
                return -EPERM;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) /* what lies in it may be in use: by another daemon */
                return errno == EWOULDBLOCK ? -EBUSY : -errno;
        if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
                return -errno;
        int copy = open_below(fd, ".", O_RDONLY | O_DIRECTORY);
        return copy < 0 ? copy : empty_dir(copy, 0);
}

int rundir_root_new(struct rundir_root **ret, const char *runtime_dir) {
        struct rundir_root *root = malloc(sizeof(*root));
        if (!root)
                return -ENOMEM;
        *root = (struct rundir_root){.parent_fd = -1, .fd = -1};
        int r = open_root(root, runtime_dir);
        if (r < 0) {
                log_error("cannot make an empty %s/" ROOT_NAME ": %s", runtime_dir,
                          r == -EBUSY   ? "another ipclabd uses it"
                          : r == -ELOOP ? "it is a symbolic link, or lies in one, which is not followed"
                                        : strerrordesc_np(-r));
                util_close(root->fd);
                util_close(root->parent_fd);
                free(root);
                return r;
        }
        *ret = root;
        return 0;
}

void rundir_root_free(struct rundir_root *root) {
        if (!root)
                return;
        if (unlinkat(root->parent_fd, ROOT_NAME, AT_REMOVEDIR) < 0)
                log_warning("cannot remove the directory of the runs: %s", strerrordesc_np(errno));
        util_close(root->fd);
        util_close(root->parent_fd);
        free(root);
}

static void run_name(int64_t run_id, char name[static 32]) {
        (void) snprintf(name, 32, "run-%lld", (long long) run_id);
}

int rundir_new(struct rundir_root *root, int64_t run_id, uid_t uid, gid_t gid, int *ret_fd) {
        char name[32];
        run_name(run_id, name);
        int r = mkdirat(root->fd, name, 0700) < 0 ? -errno : 0;
        if (r == -EEXIST) { /* a removal that failed before */
                r = rundir_remove(root, run_id);
                if (r == 0 && mkdirat(root->fd, name, 0700) < 0)
                        r = -errno;
        }
        if (r < 0)
                return r;
        int fd = open_below(root->fd, name, O_PATH | O_DIRECTORY);
        r = fd < 0 ? fd : 0;
        if (r == 0 && uid != (uid_t) -1 && fchownat(root->fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        if (r < 0) {
                util_close(fd);
                (void) unlinkat(root->fd, name, AT_REMOVEDIR);
                return r;
        }
        *ret_fd = fd;
        return 0;
}

int rundir_remove(struct rundir_root *root, int64_t run_id) {
        char name[32];
        run_name(run_id, name);
        int r = remove_entry(root->fd, name, 0);
        if (r < 0)
                log_error("cannot remove the run directory %s: %s", name, strerrordesc_np(-r));
        return r;
}
