/* SPDX-License-Identifier: MIT */

/*
 * Run directories. Owns RUNTIME_DIR/runs, which only the daemon can enter: agents get a descriptor of their run's
 * directory and need no path. An empty directory is removed at once. One that is not is renamed, so that its name is
 * free, and emptied by a thread of its own, which takes one after the other; what it cannot remove stays under its new
 * name, is logged, and is tried again by the next start, which it does not stop. RUNTIME_DIR/runs itself stays, empty,
 * when the daemon ends: the next start needs no block of the disk for it, and may have none.
 */

#include "daemon/run/sandbox/rundir.h"

#include "daemon/log.h"
#include "daemon/run/sandbox/tree.h"
#include "schema/lock.h"
#include "schema/signals.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define ROOT_NAME "runs"
#define REMOVED_PREFIX "removed-"
#define NAMES_TRIED 1000000u
#define REMOVE_WITHIN_NS (600 * NSEC_PER_SEC)
#define STOP_WITHIN_NS (2 * NSEC_PER_SEC)
#define NAME_BYTES 48u

/* A directory that waits for its removal. */
struct removal {
        struct removal *next;
        char name[NAME_BYTES];
};

struct rundir_root {
        int parent_fd, fd;
        int made_fd;    /* an inotify instance, for all runs: closing one takes the kernel's time; -1: none yet */
        int watched;    /* its watch of the run's directory; -1: none */
        char *path;     /* for the log */
        uint64_t names; /* given to directories that are to be removed */
        pthread_t remover;
        bool has_remover;
        atomic_bool quit; /* the remover ends soon */

        pthread_mutex_t lock;
        pthread_cond_t changed;         /* CLOCK_MONOTONIC */
        struct removal *first, **after; /* the first is the one at work; under the lock, as all below */
        bool over;                      /* the remover ends when there is none left */
        unsigned n_left;                /* directories that could not be removed */
        char left[NAME_BYTES];          /* one of them, and why */
        int left_error;
};

/* The last component must not be a link: a user who may change it would choose where files are removed. Those above may
 * be, as /var/run is one. */
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

static void note_left(struct rundir_root *root, const char *name, int error) {
        log_error("cannot remove %s/%s: %s; it stays until the next start", root->path, name, strerrordesc_np(-error));
        root->n_left++;
        root->left_error = error;
        (void) snprintf(root->left, sizeof(root->left), "%s", name);
}

/* --- the remover --- */

static void *remover_main(void *userdata) {
        struct rundir_root *root = userdata;
        (void) pthread_mutex_lock(&root->lock);
        for (;;) {
                while (!root->first && !root->over)
                        (void) pthread_cond_wait(&root->changed, &root->lock);
                struct removal *d = root->first;
                if (!d)
                        break;
                (void) pthread_mutex_unlock(&root->lock);
                int r = tree_remove(root->fd, d->name, &root->quit, util_now_ns() + REMOVE_WITHIN_NS);
                (void) pthread_mutex_lock(&root->lock);
                if (r < 0)
                        note_left(root, d->name, r);
                root->first = d->next;
                if (!root->first)
                        root->after = &root->first;
                free(d);
                (void) pthread_cond_broadcast(&root->changed);
        }
        (void) pthread_mutex_unlock(&root->lock);
        return NULL;
}

static int start_remover(struct rundir_root *root) {
        int r = signals_start_thread(&root->remover, remover_main, root);
        root->has_remover = r == 0;
        return r;
}

static int remove_later(struct rundir_root *root, const char *name) {
        struct removal *d = calloc(1, sizeof(*d));
        int r = !d ? -ENOMEM : root->has_remover ? 0 : start_remover(root);
        (void) pthread_mutex_lock(&root->lock);
        if (r == 0 && d) {
                (void) snprintf(d->name, sizeof(d->name), "%s", name);
                *root->after = d;
                root->after = &d->next;
                (void) pthread_cond_broadcast(&root->changed);
        } else {
                note_left(root, name, r);
                free(d);
        }
        (void) pthread_mutex_unlock(&root->lock);
        return r;
}

/* Renames the directory at once and queues it for the remover. */
static int move_aside(struct rundir_root *root, const char *name) {
        char aside[NAME_BYTES];
        for (unsigned i = 0; i < NAMES_TRIED; i++) {
                (void) snprintf(aside, sizeof(aside), REMOVED_PREFIX "%" PRIu64, root->names++);
                if (renameat2(root->fd, name, root->fd, aside, RENAME_NOREPLACE) == 0)
                        return remove_later(root, aside);
                if (errno != EEXIST)
                        return -errno;
        }
        return -EEXIST;
}

/* Queues the directories that a dead daemon left. */
static int move_all_aside(struct rundir_root *root) {
        int fd = tree_open_below(root->fd, ".", O_RDONLY | O_DIRECTORY);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        if (!dir) {
                int r = fd < 0 ? fd : -errno;
                util_close(fd);
                return r;
        }
        for (;;) {
                errno = 0;
                struct dirent *d = readdir(dir); /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                if (!d)
                        break;
                if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                        continue;
                bool aside = strncmp(d->d_name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)) == 0;
                int r = aside && strlen(d->d_name) < NAME_BYTES ? remove_later(root, d->d_name)
                                                                : move_aside(root, d->d_name);
                if (r < 0)
                        log_error("cannot move %s/%s aside: %s", root->path, d->d_name, strerrordesc_np(-r));
        }
        int r = -errno;
        closedir(dir);
        return r;
}

/* --- the root --- */

static const char *user_name(uid_t uid, char buffer[static NAME_BYTES]) {
        char names[1024];
        struct passwd entry, *found = NULL;
        if (getpwuid_r(uid, &entry, names, sizeof(names), &found) == 0 && found)
                (void) snprintf(buffer, NAME_BYTES, "%s", found->pw_name);
        else
                (void) snprintf(buffer, NAME_BYTES, "uid %ju", (uintmax_t) uid);
        return buffer;
}

static int refuse_foreign(const struct rundir_root *root, uid_t owner) {
        char theirs[NAME_BYTES], ours[NAME_BYTES];
        log_error("%s belongs to the user %s, and ipclabd runs as %s: remove the directory (rm -r %s) once no other "
                  "ipclabd uses it, or have another runtime directory (--runtime-dir)",
                  root->path, user_name(owner, theirs), user_name(geteuid(), ours), root->path);
        return -EPERM;
}

/* What a daemon of another user left: only if it is empty, in use by nobody, and this user may, it goes. */
static int remove_foreign(const struct rundir_root *root, int fd, uid_t owner, int (*lock)(int fd)) {
        int r = lock(fd);
        if (r < 0)
                return r;
        return unlinkat(root->parent_fd, ROOT_NAME, AT_REMOVEDIR) < 0 ? refuse_foreign(root, owner) : 0;
}

/* 0 with root->fd; 1: another user's was removed; negative errno. */
static int open_or_replace(struct rundir_root *root, int (*lock)(int fd)) {
        struct stat st;
        if (mkdirat(root->parent_fd, ROOT_NAME, 0700) < 0 && errno != EEXIST)
                return -errno;
        _cleanup_close_ int fd = tree_open_below(root->parent_fd, ROOT_NAME, O_RDONLY | O_DIRECTORY);
        if (fd == -EACCES && fstatat(root->parent_fd, ROOT_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode) && st.st_uid != geteuid())
                return refuse_foreign(root, st.st_uid);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid()) {
                int r = remove_foreign(root, fd, st.st_uid, lock);
                return r < 0 ? r : 1;
        }
        int r = lock(fd); /* another daemon may be using it */
        if (r < 0)
                return r;
        if ((st.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)
                return -errno;
        root->fd = util_steal_fd(&fd);
        return 0;
}

/* lock: with patience (lock_take) or without (lock_try) while another daemon has the directory. */
static int open_own(struct rundir_root *root, int (*lock)(int fd)) {
        int r = open_or_replace(root, lock);
        if (r > 0)
                r = open_or_replace(root, lock);
        return r > 0 ? -EPERM : r;
}

static int open_root(struct rundir_root *root, const char *runtime_dir) {
        int parent = open_runtime_dir(runtime_dir);
        if (parent < 0)
                return parent;
        root->parent_fd = parent;
        int r = open_own(root, lock_take);
        return r == 0 ? move_all_aside(root) : r;
}

/* A program that cleans up may remove the directory while the daemon runs: it is made anew, else each run would fail
 * from then on. The remover may be at work: the descriptors keep their numbers, and what it removes is not in the new
 * one. Waits for nobody, as the main loop waits for it. */
static int make_again(struct rundir_root *root) {
        _cleanup_free_ char *dir = strndup(root->path, strlen(root->path) - strlen("/" ROOT_NAME));
        _cleanup_close_ int parent = -1, fd = -1;
        if (!dir)
                return -ENOMEM;
        int r = tree_make(dir, 0755);
        if (r < 0)
                return r;
        parent = open_runtime_dir(dir);
        if (parent < 0)
                return parent;
        struct rundir_root made = {.path = root->path, .parent_fd = parent, .fd = -1};
        r = open_own(&made, lock_try);
        fd = made.fd;
        if (r < 0)
                return r;
        if (dup3(parent, root->parent_fd, O_CLOEXEC) < 0 || dup3(fd, root->fd, O_CLOEXEC) < 0)
                return -errno;
        log_warning("%s was removed while ipclabd runs: it is made anew", root->path);
        return move_all_aside(root);
}

static int init_lock(struct rundir_root *root) {
        pthread_condattr_t attributes;
        int e = pthread_condattr_init(&attributes);
        if (e != 0)
                return -e;
        e = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        if (e == 0)
                e = pthread_cond_init(&root->changed, &attributes);
        (void) pthread_condattr_destroy(&attributes);
        return e == 0 ? -pthread_mutex_init(&root->lock, NULL) : -e;
}

/* The next start removes what the remover has not by then. */
static void stop_remover(struct rundir_root *root) {
        if (!root->has_remover)
                return;
        (void) rundir_settle(root, util_now_ns() + STOP_WITHIN_NS);
        atomic_store(&root->quit, true);
        (void) pthread_mutex_lock(&root->lock);
        root->over = true;
        (void) pthread_cond_broadcast(&root->changed);
        (void) pthread_mutex_unlock(&root->lock);
        (void) pthread_join(root->remover, NULL);
}

static void root_close(struct rundir_root *root) {
        stop_remover(root);
        (void) pthread_cond_destroy(&root->changed);
        (void) pthread_mutex_destroy(&root->lock);
        util_close(root->made_fd);
        util_close(root->fd);
        util_close(root->parent_fd);
        free(root->path);
        free(root);
}

int rundir_root_new(struct rundir_root **ret, const char *runtime_dir) {
        struct rundir_root *root = calloc(1, sizeof(*root));
        int r = root ? init_lock(root) : -ENOMEM;
        if (r < 0) {
                free(root);
                return r;
        }
        root->parent_fd = root->fd = root->watched = -1;
        root->made_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* else rundir_watch() tries, and returns why not */
        root->after = &root->first;
        r = asprintf(&root->path, "%s/" ROOT_NAME, runtime_dir) < 0 ? -ENOMEM : open_root(root, runtime_dir);
        if (r < 0) {
                log_error("cannot have %s/" ROOT_NAME ": %s", runtime_dir,
                          r == -EBUSY   ? "another ipclabd uses it"
                          : r == -ELOOP ? "it is a symbolic link, or lies in one, which is not followed"
                                        : strerrordesc_np(-r));
                root_close(root);
                return r;
        }
        *ret = root;
        return 0;
}

/* It stays where the next daemon is of this user, too; the daemon of the runtime directory's owner could not use it. */
static void leave_root(const struct rundir_root *root) {
        struct stat st;
        bool ours = fstat(root->parent_fd, &st) < 0 || st.st_uid == geteuid();
        if (!ours && unlinkat(root->parent_fd, ROOT_NAME, AT_REMOVEDIR) < 0)
                log_warning("cannot remove %s: %s", root->path, strerrordesc_np(errno));
}

void rundir_root_free(struct rundir_root *root) {
        if (!root)
                return;
        stop_remover(root);
        root->has_remover = false;
        leave_root(root);
        root_close(root);
}

bool rundir_settle(struct rundir_root *root, uint64_t deadline_ns) {
        struct timespec until = {.tv_sec = (time_t) (deadline_ns / NSEC_PER_SEC),
                                 .tv_nsec = (long) (deadline_ns % NSEC_PER_SEC)};
        int e = 0;
        (void) pthread_mutex_lock(&root->lock);
        while (root->first && e != ETIMEDOUT && deadline_ns > 0)
                e = pthread_cond_timedwait(&root->changed, &root->lock, &until);
        bool settled = !root->first;
        (void) pthread_mutex_unlock(&root->lock);
        return settled;
}

unsigned rundir_left(struct rundir_root *root, char *words, size_t size) {
        (void) pthread_mutex_lock(&root->lock);
        unsigned n = root->n_left;
        if (n > 0)
                (void) snprintf(words, size, "%s/%s cannot be removed: %s%s", root->path, root->left,
                                strerrordesc_np(-root->left_error), n > 1 ? ", nor can others there" : "");
        (void) pthread_mutex_unlock(&root->lock);
        return n;
}

/* --- a run's directory --- */

static void run_name(int64_t run_id, char name[static 32]) {
        (void) snprintf(name, 32, "run-%lld", (long long) run_id);
}

int rundir_new(struct rundir_root *root, int64_t run_id, uid_t uid, gid_t gid, int *ret_fd) {
        char name[32];
        run_name(run_id, name);
        int r = mkdirat(root->fd, name, 0700) < 0 ? -errno : 0;
        if (r == -ENOENT && (r = make_again(root)) == 0 && mkdirat(root->fd, name, 0700) < 0)
                r = -errno;
        if (r == -EEXIST) { /* it could not even be moved aside before */
                r = rundir_remove(root, run_id);
                if (r == 0 && mkdirat(root->fd, name, 0700) < 0)
                        r = -errno;
        }
        if (r < 0)
                return r;
        int fd = tree_open_below(root->fd, name, O_PATH | O_DIRECTORY);
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
        if (unlinkat(root->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
                return 0;
        int r = move_aside(root, name);
        if (r < 0)
                log_error("cannot move %s/%s aside: %s", root->path, name, strerrordesc_np(-r));
        return r;
}

/* --- what is made in it --- */

/* The bytes read; 0: there are no more. */
static size_t read_made(const struct rundir_root *root, char *data, size_t size) {
        ssize_t n = read(root->made_fd, data, size);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
                log_error("cannot read what is made in %s: %s", root->path, strerrordesc_np(errno));
        return n > 0 ? (size_t) n : 0;
}

int rundir_watch(struct rundir_root *root, int run_dir_fd) {
        char path[64], former[4096]; /* inotify takes no descriptor */
        if (root->made_fd < 0)
                root->made_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (root->made_fd < 0)
                return -errno;
        rundir_unwatch(root);
        while (read_made(root, former, sizeof(former)) > 0) /* what is still to be read is of former runs */
                continue;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", run_dir_fd);
        root->watched = inotify_add_watch(root->made_fd, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
        return root->watched < 0 ? -errno : root->made_fd;
}

void rundir_take_made(struct rundir_root *root, struct rundir_made *made) {
        char data[16384];
        size_t n = read_made(root, data, sizeof(data));
        for (size_t at = 0; n - at >= sizeof(struct inotify_event);) {
                struct inotify_event e;
                memcpy(&e, data + at, sizeof(e));
                at += sizeof(e) + e.len;
                if (e.mask & IN_Q_OVERFLOW)
                        made->names = UINT_MAX;
                if (e.wd != root->watched || !(e.mask & (IN_CREATE | IN_MOVED_TO)))
                        continue;
                made->names += made->names < UINT_MAX;
                made->directories += (e.mask & IN_ISDIR) != 0;
        }
}

void rundir_unwatch(struct rundir_root *root) {
        if (root->watched >= 0 && inotify_rm_watch(root->made_fd, root->watched) < 0 && errno != EINVAL)
                log_error("cannot end the watch of a run's directory: %s", strerrordesc_np(errno));
        root->watched = -1; /* EINVAL: it ended with the directory */
}
