/* SPDX-License-Identifier: MIT */

/*
 * Makes an IPC namespace by a helper process that is born in it and does nothing but wait until the daemon has opened
 * its /proc/PID/ns files: the daemon itself never leaves its own namespaces. The helper is also the place from where
 * limits of the new namespace can be set, since their sysctls are those of whoever opens them.
 */

#include "daemon/ipcns.h"

#include "daemon/process.h"
#include "schema/util.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DETAIL_MAX 200u

struct helper {
        pid_t pid;
        int pidfd;
        int hold; /* writing end of a pipe: the helper goes when it is closed */
};

/* In the child: only system calls. */
static void helper_main(int hold_read, int hold_write) {
        char byte;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(hold_write);
        ssize_t n = read(hold_read, &byte, 1);
        _exit(n == 0 ? 0 : 1);
}

static int helper_start(uint64_t namespaces, struct helper *ret) {
        int hold[2], pidfd = -1;
        if (pipe2(hold, O_CLOEXEC) < 0)
                return -errno;
        int joins;
        pid_t pid = process_clone(namespaces, -1, &pidfd, &joins);
        if (pid == 0)
                helper_main(hold[0], hold[1]);
        int r = pid < 0 ? pid : 0;
        util_close(hold[0]);
        if (r < 0) {
                util_close(hold[1]);
                return r;
        }
        *ret = (struct helper){.pid = pid, .pidfd = pidfd, .hold = hold[1]};
        return 0;
}

static void helper_stop(struct helper *h) {
        siginfo_t info;
        util_close(h->hold);
        (void) syscall(SYS_pidfd_send_signal, h->pidfd, SIGKILL, NULL, 0);
        while (waitid(P_PIDFD, (id_t) h->pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        util_close(h->pidfd);
}

static int write_proc(int proc, const char *name, const char *text) {
        _cleanup_close_ int fd = openat(proc, name, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* The one mapping that needs no privilege: this user to itself. Source: man 7 user_namespaces. */
static int map_self(int proc) {
        char map[64];
        int r = write_proc(proc, "setgroups", "deny");
        (void) snprintf(map, sizeof(map), "%u %u 1", geteuid(), geteuid());
        if (r == 0)
                r = write_proc(proc, "uid_map", map);
        (void) snprintf(map, sizeof(map), "%u %u 1", getegid(), getegid());
        if (r == 0)
                r = write_proc(proc, "gid_map", map);
        return r;
}

static int open_namespaces(pid_t pid, bool user, struct ipcns *ret) {
        char path[32];
        (void) snprintf(path, sizeof(path), "/proc/%d", pid);
        _cleanup_close_ int proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (proc < 0)
                return -errno;
        int r = user ? map_self(proc) : 0;
        if (r < 0)
                return r;
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

static int make(bool user, struct ipcns *ret) {
        struct helper h = {.pidfd = -1, .hold = -1};
        int r = helper_start(CLONE_NEWIPC | (user ? CLONE_NEWUSER : 0), &h);
        if (r < 0)
                return r;
        r = open_namespaces(h.pid, user, ret);
        helper_stop(&h);
        return r;
}

int ipcns_new(struct ipcns *ret, char *ret_detail) {
        int r = make(false, ret);
        if (r == -EPERM && geteuid() != 0) {
                r = make(true, ret);
                if (r < 0)
                        (void) snprintf(ret_detail, DETAIL_MAX,
                                        "needs CAP_SYS_ADMIN, and a user namespace is not to be had either: %s",
                                        strerrordesc_np(-r));
        } else if (r < 0)
                (void) snprintf(ret_detail, DETAIL_MAX, "cannot make an IPC namespace: %s", strerrordesc_np(-r));
        return r;
}

void ipcns_close(struct ipcns *ns) {
        util_close(ns->ipc_fd);
        util_close(ns->user_fd);
        *ns = IPCNS_NONE;
}
