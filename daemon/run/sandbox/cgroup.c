/* SPDX-License-Identifier: MIT */

/*
 * The cgroups of runs, in the daemon's own cgroup. They need no controller, only the ability to kill a tree at once and
 * to know that it is empty. All work is done relative to directory descriptors.
 *
 * Source: Documentation/admin-guide/cgroup-v2.rst (cgroup.kill, cgroup.events), man 5 proc (mountinfo).
 */

#include "daemon/run/sandbox/cgroup.h"

#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define LEFTOVER_EMPTY_WITHIN_NS (2 * NSEC_PER_SEC)
#define LEVELS_MAX 64u
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct cgroup_tree {
        int fd; /* the daemon's own cgroup */
        char *owner;
        bool left; /* one that could not be emptied in time is still there */
};

struct cgroup_run {
        struct cgroup_tree *tree;
        int fd;
        char name[NAME_MAX + 1];
};

/* \040 and its like, as mountinfo writes blanks. In place. */
static void unescape(char *s) {
        char *to = s;
        while (*s) {
                if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
                    s[3] <= '7') {
                        *to++ = (char) ((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
                        s += 4;
                } else
                        *to++ = *s++;
        }
        *to = 0;
}

static bool has_word(const char *list, size_t length, const char *word) {
        const size_t n = strlen(word);
        for (const char *at = list, *end = list + length; at < end; at += strcspn(at, ",") + 1)
                if ((size_t) (end - at) >= n && strncmp(at, word, n) == 0 && (at + n == end || at[n] == ','))
                        return true;
        return false;
}

/* Root and mount point of the first such mount: "31 23 0:28 ROOT POINT rw,relatime - cgroup2 cgroup2 rw"; of version 1
 * the controllers are among the last options: "32 31 0:29 ROOT POINT rw - cgroup cgroup rw,cpu,cpuacct". */
static bool find_mount(const char *mountinfo, const char *controller, char *root, char *point) {
        const char *type = controller ? " - cgroup " : " - cgroup2 ";
        for (const char *line = mountinfo; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                size_t length = strcspn(line, "\n");
                if (!memmem(line, length, type, strlen(type)))
                        continue;
                const char *blank = memrchr(line, ' ', length), *options = blank ? blank + 1 : line;
                if ((!controller || has_word(options, (size_t) (line + length - options), controller)) &&
                    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2) { /* NOLINT(cert-err34-c) */
                        unescape(root);
                        unescape(point);
                        return true;
                }
        }
        return false;
}

/* The path in "ID:CONTROLLERS:/path", of version 2 in "0::/path"; NULL: there is none. */
static const char *find_path(const char *groups, const char *controller) {
        for (const char *line = groups; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
                const char *list = line + strcspn(line, ":\n");
                if (*list != ':')
                        continue;
                size_t length = strcspn(++list, ":\n");
                if (list[length] == ':' && list[length + 1] == '/' &&
                    (controller ? has_word(list, length, controller) : length == 0))
                        return list + length + 1;
        }
        return NULL;
}

int cgroup_find(const char *mountinfo, const char *groups, const char *controller, char **ret_path) {
        _cleanup_free_ char *root = malloc(2 * PATH_MAX);
        if (!root)
                return -ENOMEM;
        char *point = root + PATH_MAX;
        const char *own = find_path(groups, controller);
        if (!own || !find_mount(mountinfo, controller, root, point))
                return -ENOENT;
        int length = (int) strcspn(own, "\n");
        size_t skip = strcmp(root, "/") == 0 ? 0 : strlen(root);
        /* A mount may show only a part of the hierarchy; what lies outside of it cannot be reached. */
        if ((size_t) length < skip || strncmp(own, root, skip) != 0 || strncmp(own, "/..", 3) == 0)
                return -ENOENT;
        return asprintf(ret_path, "%s%.*s", point, length - (int) skip, own + skip) < 0 ? -ENOMEM : 0;
}

static int find_of(const char *groups_file, const char *controller, char **ret) {
        _cleanup_free_ char *mountinfo = NULL, *groups = NULL;
        struct hostfs h = HOSTFS_MACHINE;
        int r = hostfs_text(&h, &mountinfo, "/proc/self/mountinfo");
        if (r == 0)
                r = hostfs_text(&h, &groups, "%s", groups_file);
        return r < 0 ? r : cgroup_find(mountinfo, groups, controller, ret);
}

int cgroup_open(pid_t pid, const char *controller) {
        _cleanup_free_ char *path = NULL;
        char groups[64];
        (void) snprintf(groups, sizeof(groups), "/proc/%d/cgroup", pid);
        int r = find_of(groups, controller, &path);
        if (r < 0 || !path)
                return r;
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* "max" is no number; version 1 has one for it that is larger than any memory. */
static uint64_t read_limit(int fd, const char *name) {
        char text[32];
        _cleanup_close_ int file = openat(fd, name, O_RDONLY | O_CLOEXEC);
        ssize_t n = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
        text[n > 0 ? n : 0] = 0;
        return text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

uint64_t cgroup_least_limit(int fd, const char *name) {
        _cleanup_close_ int group = openat(fd, ".", DIR_FLAGS);
        uint64_t least = UINT64_MAX;
        for (unsigned i = 0; i < LEVELS_MAX && group >= 0 && faccessat(group, "cgroup.procs", F_OK, 0) == 0; i++) {
                uint64_t limit = read_limit(group, name);
                least = limit < least ? limit : least;
                int above = openat(group, "..", DIR_FLAGS);
                util_close(group);
                group = above;
        }
        return least;
}

uint64_t cgroup_memory_limit(void) {
        static const struct {
                const char *controller, *name;
        } versions[] = {{NULL, "memory.max"}, {"memory", "memory.limit_in_bytes"}};
        uint64_t least = UINT64_MAX;
        for (size_t i = 0; i < ELEMENTS(versions); i++) {
                _cleanup_close_ int fd = cgroup_open(getpid(), versions[i].controller);
                uint64_t limit = fd < 0 ? UINT64_MAX : cgroup_least_limit(fd, versions[i].name);
                least = limit < least ? limit : least;
        }
        return least;
}

static int kill_group(int fd) {
        _cleanup_close_ int kill_fd = openat(fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
        if (kill_fd < 0)
                return -errno;
        return write(kill_fd, "1", 1) == 1 ? 0 : -errno;
}

/* 1 populated, 0 empty, negative errno. */
static int populated(int events) {
        char text[256];
        ssize_t n = pread(events, text, sizeof(text) - 1, 0);
        if (n < 0)
                return -errno;
        text[n] = 0;
        return strstr(text, "populated 1") ? 1 : 0;
}

/* cgroup.events signals POLLPRI when it changes. */
static int wait_empty(int fd, uint64_t wait_ns) {
        _cleanup_close_ int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        if (events < 0)
                return -errno;
        uint64_t deadline = util_now_ns() + wait_ns;
        for (;;) {
                int r = populated(events);
                if (r <= 0)
                        return r;
                uint64_t now = util_now_ns();
                if (now >= deadline)
                        return -EBUSY;
                struct pollfd p = {.fd = events, .events = POLLPRI};
                if (poll(&p, 1, (int) ((deadline - now) / NSEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                        return -errno;
        }
}

static int end_group(int parent, int fd, const char *name, uint64_t wait_ns) {
        int r = kill_group(fd);
        if (r == 0)
                r = wait_empty(fd, wait_ns);
        if (r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
                r = -errno;
        if (r < 0)
                log_error("cgroup %s cannot be emptied and removed: %s", name, strerrordesc_np(-r));
        return r;
}

static void run_name(const struct cgroup_tree *t, int64_t run_id, char name[static NAME_MAX + 1]) {
        (void) snprintf(name, NAME_MAX + 1, "run-%lld.%s", (long long) run_id, t->owner);
}

/* Removes the cgroups that a dead daemon left, whose agents may still be alive, and those of runs that something
 * survived. */
static void remove_leftovers(struct cgroup_tree *t, uint64_t wait_ns) {
        int copy = openat(t->fd, ".", DIR_FLAGS);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                util_close(copy);
                return;
        }
        struct dirent *d;
        while ((d = readdir(dir))) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
                const char *dot = strchr(d->d_name, '.');
                if (strncmp(d->d_name, "run-", 4) != 0 || !dot || strcmp(dot + 1, t->owner) != 0)
                        continue;
                _cleanup_close_ int fd = openat(t->fd, d->d_name, DIR_FLAGS);
                if (fd < 0)
                        continue;
                if (end_group(t->fd, fd, d->d_name, wait_ns) == 0)
                        log_notice("removed the cgroup %s that an earlier run left", d->d_name);
                else
                        t->left = true;
        }
        closedir(dir);
}

/* Whether cgroups can be made here, and killed. */
static int probe(const struct cgroup_tree *t, const char *own, char *detail) {
        char name[NAME_MAX + 1];
        run_name(t, 0, name);
        if (mkdirat(t->fd, name, 0755) < 0 && errno != EEXIST)
                return detail_fail(detail, -errno, "may not make cgroups in %.200s: %s", own, strerrordesc_np(errno));
        _cleanup_close_ int fd = openat(t->fd, name, DIR_FLAGS);
        int r = fd < 0 || faccessat(fd, "cgroup.kill", W_OK, AT_EACCESS) < 0 ? -errno : 0;
        if (unlinkat(t->fd, name, AT_REMOVEDIR) < 0 && r == 0)
                r = -errno;
        return r < 0 ? detail_fail(detail, r, "cgroups in %.200s cannot be killed: %s", own, strerrordesc_np(-r)) : 0;
}

int cgroup_tree_new(struct cgroup_tree **ret, const char *owner, char *ret_detail) {
        _cleanup_free_ char *own = NULL;
        int r = find_of("/proc/self/cgroup", NULL, &own);
        if (r == -ENOENT)
                return detail_fail(ret_detail, r, "no cgroup v2 hierarchy is mounted here");
        if (r < 0)
                return detail_fail(ret_detail, r, "cannot read /proc/self/mountinfo and cgroup: %s",
                                   strerrordesc_np(-r));
        if (!own)
                return 0;
        struct cgroup_tree *t = malloc(sizeof(*t));
        if (!t)
                return -ENOMEM;
        *t = (struct cgroup_tree){.fd = -1, .owner = strdup(owner)};
        if (!t->owner)
                r = -ENOMEM;
        else if ((t->fd = open(own, DIR_FLAGS)) < 0)
                r = detail_fail(ret_detail, -errno, "cannot open own cgroup %.200s: %s", own, strerrordesc_np(errno));
        else
                r = probe(t, own, ret_detail);
        if (r < 0) {
                cgroup_tree_free(t);
                return r;
        }
        remove_leftovers(t, LEFTOVER_EMPTY_WITHIN_NS);
        *ret = t;
        return 0;
}

void cgroup_tree_free(struct cgroup_tree *t) {
        if (!t)
                return;
        util_close(t->fd);
        free(t->owner);
        free(t);
}

int cgroup_run_new(struct cgroup_tree *t, int64_t run_id, struct cgroup_run **ret) {
        struct cgroup_run *g = malloc(sizeof(*g));
        if (!g)
                return -ENOMEM;
        if (t->left) {
                t->left = false;
                remove_leftovers(t, 0);
        }
        *g = (struct cgroup_run){.tree = t, .fd = -1};
        run_name(t, run_id, g->name);
        int r = mkdirat(t->fd, g->name, 0755) < 0 && errno != EEXIST ? -errno : 0;
        if (r == 0) {
                g->fd = openat(t->fd, g->name, DIR_FLAGS);
                r = g->fd < 0 ? -errno : 0;
        }
        if (r < 0) {
                free(g);
                return r;
        }
        *ret = g;
        return 0;
}

int cgroup_run_fd(const struct cgroup_run *g) {
        return g->fd;
}

const char *cgroup_run_name(const struct cgroup_run *g) {
        return g->name;
}

int cgroup_run_kill(struct cgroup_run *g) {
        return kill_group(g->fd);
}

bool cgroup_run_is_empty(const struct cgroup_run *g) {
        _cleanup_close_ int events = openat(g->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
        return events < 0 || populated(events) != 1;
}

int cgroup_run_end(struct cgroup_run *g, uint64_t wait_ns) {
        if (!g)
                return 0;
        int r = end_group(g->tree->fd, g->fd, g->name, wait_ns);
        if (r < 0)
                g->tree->left = true;
        util_close(g->fd);
        free(g);
        return r;
}
