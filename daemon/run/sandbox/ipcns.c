/* SPDX-License-Identifier: MIT */

/*
 * Makes an IPC namespace by a helper process that is cloned into it: the daemon itself never leaves its own namespaces.
 * The helper writes the settings, since /proc/sys shows each process those of its own namespace, reports the result and
 * waits until the daemon has opened its /proc/PID/ns files.
 *
 * Source: man 7 ipc_namespaces, user_namespaces. From Linux 6.9 on the root of a user namespace may set what is in the
 * IPC namespaces that it owns; before, only root may.
 */

#include "daemon/run/sandbox/ipcns.h"

#include "daemon/run/spawn/process.h"
#include "daemon/run/spawn/spawn.h"
#include "schema/detail.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define NUMBER_MAX 24u
#define ANSWER_MS 5000

/* The helper's orders, which it reads from its copy of the daemon's memory. */
struct task {
        char paths[QUEUE_SETTINGS][64];
        char texts[QUEUE_SETTINGS][NUMBER_MAX]; /* "": not written */
};

struct answer {
        int failed; /* setting that could not be set, or -1 */
        int error;
        uint64_t values[QUEUE_SETTINGS]; /* as they are then */
        uint64_t shmmax, shmall;
};

struct helper {
        pid_t pid;
        int pidfd;
        int hold;   /* writing end of a pipe: a byte starts the helper, which exits when the end is closed */
        int answer; /* reading end of another */
};

static void plan_task(const uint64_t *settings, struct task *ret) {
        memset(ret, 0, sizeof(*ret));
        for (unsigned s = 0; s < QUEUE_SETTINGS; s++) {
                (void) snprintf(ret->paths[s], sizeof(ret->paths[s]), "/proc/sys/%s", queue_setting_terms[s].path);
                if (settings && settings[s])
                        (void) snprintf(ret->texts[s], sizeof(ret->texts[s]), "%" PRIu64, settings[s]);
        }
}

/* --- in the child: only system calls --- */

static int set(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return errno;
        int error = write(fd, text, strlen(text)) < 0 ? errno : 0;
        (void) close(fd);
        return error;
}

static uint64_t get(const char *path) {
        char text[NUMBER_MAX];
        uint64_t v = 0;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        for (ssize_t i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
                v = 10 * v + (uint64_t) (text[i] - '0');
        if (fd >= 0)
                (void) close(fd);
        return v;
}

static void carry_out(const struct task *t, struct answer *a) {
        a->failed = -1;
        for (int s = 0; s < QUEUE_SETTINGS && a->failed < 0; s++) {
                a->error = t->texts[s][0] ? set(t->paths[s], t->texts[s]) : 0;
                if (a->error)
                        a->failed = s;
        }
        for (int s = 0; s < QUEUE_SETTINGS; s++)
                a->values[s] = get(t->paths[s]);
        a->shmmax = get("/proc/sys/kernel/shmmax");
        a->shmall = get("/proc/sys/kernel/shmall");
}

static _Noreturn void helper_main(const struct task *t, const int hold[2], const int report[2]) {
        struct answer a = {.failed = -1};
        char byte;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(hold[1]);
        (void) close(report[0]);
        if (read(hold[0], &byte, 1) != 1) /* its user and group are mapped by now */
                _exit(1);
        carry_out(t, &a);
        if (write(report[1], &a, sizeof(a)) != (ssize_t) sizeof(a))
                _exit(1);
        _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
}

/* --- in the daemon --- */

static int helper_start(uint64_t namespaces, const struct task *t, struct helper *ret) {
        int hold[2], report[2], pidfd = -1;
        if (pipe2(hold, O_CLOEXEC) < 0)
                return -errno;
        if (pipe2(report, O_CLOEXEC) < 0) {
                int error = errno;
                util_close(hold[0]);
                util_close(hold[1]);
                return -error;
        }
        int joins;
        pid_t pid = process_clone(namespaces, -1, &pidfd, &joins);
        if (pid == 0)
                helper_main(t, hold, report);
        int r = pid < 0 ? pid : 0;
        util_close(hold[0]);
        util_close(report[1]);
        if (r < 0) {
                util_close(hold[1]);
                util_close(report[0]);
                return r;
        }
        *ret = (struct helper){.pid = pid, .pidfd = pidfd, .hold = hold[1], .answer = report[0]};
        return 0;
}

static int helper_run(const struct helper *h, struct answer *ret) {
        struct pollfd p = {.fd = h->answer, .events = POLLIN};
        if (write(h->hold, "", 1) != 1)
                return -errno;
        int n = poll(&p, 1, ANSWER_MS);
        if (n <= 0)
                return n == 0 ? -ETIMEDOUT : -errno;
        return read(h->answer, ret, sizeof(*ret)) == (ssize_t) sizeof(*ret) ? 0 : -ECHILD;
}

static int write_proc(int proc, const char *name, const char *text) {
        _cleanup_close_ int fd = openat(proc, name, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* A mapping that needs no privilege. The agents are root there and nowhere else, and have no capability. */
static int map_root(int proc) {
        char map[64];
        int r = write_proc(proc, "setgroups", "deny");
        (void) snprintf(map, sizeof(map), "0 %u 1", geteuid());
        if (r == 0)
                r = write_proc(proc, "uid_map", map);
        (void) snprintf(map, sizeof(map), "0 %u 1", getegid());
        if (r == 0)
                r = write_proc(proc, "gid_map", map);
        return r;
}

static int open_namespaces(int proc, bool user, struct ipcns *ret) {
        _cleanup_close_ int ipc = openat(proc, "ns/ipc", O_RDONLY | O_CLOEXEC);
        if (ipc < 0)
                return -errno;
        int owner = -1;
        if (user) {
                owner = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
                if (owner < 0)
                        return -errno;
        }
        *ret = (struct ipcns){.ipc_fd = util_steal_fd(&ipc), .user_fd = owner};
        return 0;
}

static int use_helper(const struct helper *h, bool user, struct answer *answer, struct ipcns *ret) {
        char path[32];
        (void) snprintf(path, sizeof(path), "/proc/%d", h->pid);
        _cleanup_close_ int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc < 0)
                return -errno;
        int r = user ? map_root(proc) : 0;
        if (r == 0)
                r = helper_run(h, answer);
        return r < 0 ? r : open_namespaces(proc, user, ret);
}

static int make(bool user, const struct task *t, struct answer *answer, struct ipcns *ret) {
        struct helper h = {.pidfd = -1, .hold = -1, .answer = -1};
        int r = helper_start(CLONE_NEWIPC | (user ? CLONE_NEWUSER : 0), t, &h);
        if (r < 0)
                return r;
        r = use_helper(&h, user, answer, ret);
        /* It is ended like an agent: a process that survives SIGKILL (in the kernel, or traced) must not block the
         * daemon. */
        util_close(h.hold);
        util_close(h.answer);
        spawn_abort(&(struct spawned){.pid = h.pid, .pidfd = h.pidfd});
        return r;
}

static int make_somehow(const uint64_t *settings, struct answer *answer, struct ipcns *ret, char *ret_detail) {
        struct task t;
        plan_task(settings, &t);
        int r = make(false, &t, answer, ret);
        if (r == -EPERM && geteuid() != 0) { /* root changes users, and a user namespace has only one */
                r = make(true, &t, answer, ret);
                if (r < 0)
                        (void) snprintf(ret_detail, DETAIL_MAX,
                                        "needs CAP_SYS_ADMIN, and a user namespace cannot be made either: %s%s",
                                        strerrordesc_np(-r), spawn_limits_meant(-r));
        } else if (r < 0)
                (void) snprintf(ret_detail, DETAIL_MAX, "cannot make an IPC namespace: %s%s", strerrordesc_np(-r),
                                spawn_limits_meant(-r));
        return r;
}

int ipcns_new(const uint64_t settings[QUEUE_SETTINGS], struct ipcns *ret, char *ret_detail) {
        struct answer a = {.failed = -1};
        struct ipcns made = IPCNS_NONE;
        int r = make_somehow(settings, &a, &made, ret_detail);
        if (r < 0)
                return r;
        if (a.failed >= 0) {
                ipcns_close(&made);
                return detail_fail(ret_detail, -a.error, "cannot set %s in an IPC namespace: %s",
                                   host_limits[queue_setting_terms[a.failed].id].name, strerrordesc_np(a.error));
        }
        *ret = made;
        return 0;
}

void ipcns_close(struct ipcns *ns) {
        util_close(ns->ipc_fd);
        util_close(ns->user_fd);
        *ns = IPCNS_NONE;
}

void ipcns_probe(struct queue_host *ret) {
        struct answer a = {.failed = -1};
        struct ipcns ns = IPCNS_NONE;
        uint64_t most[QUEUE_SETTINGS];

        *ret = (struct queue_host){.rlimit_msgqueue = spawn_most(RLIMIT_MSGQUEUE)};
        if (make_somehow(NULL, &a, &ns, ret->trouble) < 0)
                return;
        ipcns_close(&ns);
        memcpy(ret->fresh, a.values, sizeof(ret->fresh));
        ret->shmmax = a.shmmax;
        ret->shmall = a.shmall;
        for (unsigned s = 0; s < QUEUE_SETTINGS; s++)
                most[s] = a.values[s] ? queue_setting_terms[s].most : 0; /* a kernel without POSIX queues has none */
        ret->settable = ipcns_new(most, &ns, ret->set_trouble) == 0;
        ipcns_close(&ns);
}
