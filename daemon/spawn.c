/* SPDX-License-Identifier: MIT */

/*
 * The parent's side of starting an agent: everything that needs memory or may fail slowly is prepared here, then the
 * child (spawn-child.c) runs nothing but system calls up to the exec. A pipe that exec closes carries the child's
 * failure back. Called by the runner; leaves a pid and a pidfd behind, nothing else.
 */

#include "daemon/spawn.h"

#include "daemon/log.h"
#include "daemon/process.h"
#include "daemon/spawn-child.h"
#include "schema/util.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EXEC_WITHIN_NS (5 * NSEC_PER_SEC)

static bool find_user(const char *name, struct agent_identity *ret) {
        struct passwd *p = getpwnam(name); /* NOLINT(concurrency-mt-unsafe): main thread, before the others */
        if (!p || p->pw_uid == 0)
                return false;
        *ret = (struct agent_identity){.change = true, .uid = p->pw_uid, .gid = p->pw_gid};
        (void) snprintf(ret->name, sizeof(ret->name), "%s", name);
        return true;
}

int agent_identity_find(const char *name, struct agent_identity *ret) {
        if (geteuid() != 0) {
                *ret = (struct agent_identity){.uid = geteuid(), .gid = getegid()};
                return 0;
        }
        if (find_user(name, ret))
                return 0;
        if (!find_user("nobody", ret))
                return -ENOENT;
        log_notice("agents run as user nobody: there is no unprivileged user %s on this machine", name);
        return 0;
}

static int set_error(struct spawn_error *e, const char *step, int error) {
        (void) snprintf(e->step, sizeof(e->step), "%s", step);
        e->error = error;
        return -error;
}

void spawn_abort(struct spawned *s) {
        siginfo_t info;
        (void) syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
        while (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        s->pidfd = util_close(s->pidfd);
}

/* End of file: exec has closed the pipe. A record: the child has given up. */
static int wait_exec(int fd, struct spawn_error *e) {
        struct spawn_failure failure;
        uint64_t deadline = util_now_ns() + EXEC_WITHIN_NS;
        for (;;) {
                uint64_t now = util_now_ns();
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int n = now >= deadline ? 0 : poll(&p, 1, (int) ((deadline - now) / NSEC_PER_MSEC) + 1);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return set_error(e, "poll", errno);
                if (n == 0)
                        return set_error(e, "exec", ETIMEDOUT);
                break;
        }
        ssize_t n = read(fd, &failure, sizeof(failure));
        if (n == 0)
                return 0;
        if (n != (ssize_t) sizeof(failure))
                return set_error(e, "exec", n < 0 ? errno : EBADMSG);
        (void) set_error(e, spawn_step_name(failure.step), failure.error);
        return -ECANCELED;
}

/* All signals wait until the child has reset its own: nothing of the daemon's runs in it. */
static int clone_child(struct spawn_child *child, int cgroup_fd, struct spawned *ret) {
        sigset_t all, old;
        int pidfd = -1;
        sigfillset(&all);
        if (pthread_sigmask(SIG_SETMASK, &all, &old) != 0)
                return -EINVAL;
        pid_t pid = process_clone(0, cgroup_fd, &pidfd, &child->cgroup_fd);
        if (pid == 0)
                spawn_child_main(child);
        int r = pid < 0 ? pid : 0;
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (r == 0)
                *ret = (struct spawned){.pid = pid, .pidfd = pidfd};
        return r;
}

int spawn_agent(const struct spawn_request *request, struct spawned *ret, struct spawn_error *ret_error) {
        struct spawn_child child = {.request = request, .parent = getpid()};
        struct spawned s = {.pidfd = -1};
        int report[2];
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0)
                return set_error(ret_error, "open /dev/null", errno);
        if (pipe2(report, O_CLOEXEC) < 0)
                return set_error(ret_error, "pipe", errno);
        child.null_fd = null;
        child.report_fd = report[1];
        int r = clone_child(&child, request->cgroup_fd, &s);
        util_close(report[1]);
        if (r < 0) {
                util_close(report[0]);
                return set_error(ret_error, "clone", -r);
        }
        r = wait_exec(report[0], ret_error);
        util_close(report[0]);
        if (r < 0) {
                spawn_abort(&s);
                return r;
        }
        *ret = s;
        return 0;
}
