/* SPDX-License-Identifier: MIT */

/*
 * The parent's side of starting an agent: everything that needs memory or may fail slowly is prepared here, then the
 * child (spawn-child.c) runs nothing but system calls up to the exec. A pipe that exec closes carries the child's
 * failure back. Called by the runner, whose event loop waits for what comes of it.
 */

#include "daemon/run/spawn/spawn.h"

#include "daemon/host/hostfs.h"
#include "daemon/log.h"
#include "daemon/run/spawn/process.h"
#include "daemon/run/spawn/spawn-child.h"
#include "schema/signals.h"
#include "schema/util.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define REAP_WITHIN_NS NSEC_PER_SEC
#define STRAYS_NS (10 * NSEC_PER_MSEC)
#define NGROUPS_KEPT 256
#define TASKS_MIN 4096u

static bool find_user(const char *name, struct agent_identity *ret) {
        struct passwd *p = getpwnam(name); /* NOLINT(concurrency-mt-unsafe): main thread, before the others */
        if (!p || p->pw_uid == 0)
                return false;
        *ret = (struct agent_identity){.change = true, .uid = p->pw_uid, .gid = p->pw_gid};
        (void) snprintf(ret->name, sizeof(ret->name), "%s", name);
        return true;
}

/* Whether a line of the map of a user namespace, "INSIDE OUTSIDE COUNT", has it. Without a map there is no namespace.
 */
static bool is_mapped(const char *path, unsigned long id) {
        struct hostfs h = HOSTFS_MACHINE;
        _cleanup_free_ char *text = NULL;
        if (hostfs_text(&h, &text, "%s", path) < 0)
                return true;
        for (char *line = text, *end; *line; line = end + strcspn(end, "\n"), line += *line == '\n') {
                unsigned long inside = strtoul(line, &end, 10);
                (void) strtoul(end, &end, 10);
                unsigned long count = strtoul(end, &end, 10);
                if (id >= inside && id - inside < count)
                        return true;
        }
        return false;
}

static void find_trouble(struct agent_identity *i) {
        if (is_mapped("/proc/self/uid_map", i->uid) && is_mapped("/proc/self/gid_map", i->gid))
                return;
        (void) snprintf(i->trouble, sizeof(i->trouble),
                        "the user namespace of ipclabd does not have user %s (uid %u, gid %u), whom agents run as",
                        i->name, (unsigned) i->uid, (unsigned) i->gid);
        log_error("no run can be started: %s", i->trouble);
}

int agent_identity_find(const char *name, struct agent_identity *ret) {
        if (geteuid() != 0) {
                *ret = (struct agent_identity){.uid = geteuid(), .gid = getegid()};
                return 0;
        }
        if (find_user(name, ret)) {
                find_trouble(ret);
                return 0;
        }
        if (!find_user("nobody", ret))
                return -ENOENT;
        log_notice(
                "agents run as user nobody, whose other processes may kill them: there is no unprivileged user %s on "
                "this machine",
                name);
        find_trouble(ret);
        return 0;
}

bool agent_identity_is_in(const struct agent_identity *agents, gid_t group) {
        gid_t groups[NGROUPS_KEPT];
        if (agents->gid == group)
                return true;
        int n = agents->change ? 0 : getgroups(NGROUPS_KEPT, groups);
        for (int i = 0; i < n; i++)
                if (groups[i] == group)
                        return true;
        return n < 0; /* too many groups to read: the agent's own attempt decides */
}

static int set_error(struct spawn_error *e, const char *step, int error) {
        (void) snprintf(e->step, sizeof(e->step), "%s", step);
        e->error = error;
        return -error;
}

/* --- killed children --- */

bool spawn_reap_strays(void) {
        uint64_t until = util_now_ns() + STRAYS_NS;
        do {
                siginfo_t info = {0};
                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) < 0) {
                        if (errno != EINTR)
                                return true;
                } else if (info.si_pid == 0)
                        return false;
        } while (util_now_ns() < until);
        return false;
}

static bool reap(pid_t pid) {
        siginfo_t info = {0};
        int r;
        do
                r = waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG);
        while (r < 0 && errno == EINTR);
        return r < 0 || info.si_pid != 0;
}

/* A process that does not end at once (in the kernel, or held by a tracer) must not block the daemon. */
void spawn_abort(struct spawned *s) {
        (void) pidfd_send_signal(s->pidfd, SIGKILL, NULL, 0);
        uint64_t deadline = util_now_ns() + REAP_WITHIN_NS;
        while (!reap(s->pid)) {
                if (util_now_ns() >= deadline) {
                        log_error("pid %d was killed and is still there", s->pid);
                        break;
                }
                (void) poll(NULL, 0, 1);
        }
        s->pidfd = util_close(s->pidfd);
}

/* The first agent leads a session of its own, so it and a forked peer without a known pid are one process group. */
void spawn_kill_group(pid_t first) {
        (void) kill(-first, SIGKILL);
}

int spawn_report(int report_fd, struct spawn_error *ret) {
        struct spawn_failure failure;
        if (read(report_fd, &failure, sizeof(failure)) != (ssize_t) sizeof(failure))
                return 0;
        (void) set_error(ret, spawn_step_name(failure.step), failure.error);
        return -ECANCELED;
}

/* --- the forked peer --- */

/* No descriptor is taken, and the kernel drops what the sender put beside the report: to close a file of a filesystem
 * that the sender itself serves could take it as long as it likes. */
static int receive_born(int fd, struct forked_report *ret) {
        struct iovec iov = {.iov_base = ret, .iov_len = sizeof(*ret)};
        struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
        ssize_t got = recvmsg(fd, &m, MSG_DONTWAIT);
        if (got < 0)
                return -errno;
        if (m.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
                return -EBADMSG;
        return got == 0 ? -EPIPE : got == (ssize_t) sizeof(*ret) ? 0 : -EBADMSG;
}

/* The message is not trusted: it must name a child of this process, which keeps its number until it is reaped here, of
 * the agent's group. */
static int open_born(const struct forked_report *born, pid_t first, int *ret_pidfd) {
        siginfo_t info = {0};
        if (born->pid <= 0 || born->pid == first)
                return -EBADMSG;
        if (waitid(P_PID, (id_t) born->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                return -errno;
        if (getpgid(born->pid) != first)
                return -EBADMSG;
        int fd = pidfd_open(born->pid, 0);
        if (fd < 0)
                return -errno;
        *ret_pidfd = fd;
        return 0;
}

static int send_place(int fd, const struct spawn_forked *forked) {
        struct forked_placement place = {.set_memory = forked->numa || forked->memory != MEMORY_DEFAULT,
                                         .memory = (uint32_t) forked->memory,
                                         .memory_nodes = forked->memory_nodes};
        static_assert(sizeof(place.cpus) == sizeof(forked->affinity.bits),
                      "one bit per CPU, as many as the kernel has");
        memcpy(place.cpus, forked->affinity.bits, sizeof(place.cpus));
        return send(fd, &place, sizeof(place), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Source: man 2 clone, EAGAIN and ENOSPC. */
const char *spawn_limits_meant(int error) {
        return error == EAGAIN   ? " (RLIMIT_NPROC, or the cgroup's pids.max)"
               : error == ENOSPC ? " (user.max_ipc_namespaces or user.max_user_namespaces)"
                                 : "";
}

int spawn_meet(int meeting_fd, pid_t first, const struct spawn_forked *forked, struct spawned *ret,
               struct spawn_error *ret_error) {
        struct forked_report born = {0};
        int pidfd = -1;
        int r = receive_born(meeting_fd, &born);
        if (r == 0 && born.error) {
                born.step[sizeof(born.step) - 1] = 0;
                (void) set_error(ret_error, born.step, born.error);
                return -ECANCELED;
        }
        if (r == 0)
                r = open_born(&born, first, &pidfd);
        if (r == 0)
                r = send_place(meeting_fd, forked);
        if (r < 0) {
                util_close(pidfd);
                return set_error(ret_error, "meet", -r);
        }
        *ret = (struct spawned){.pid = born.pid, .pidfd = pidfd};
        return 0;
}

/* All signals are blocked until the child has reset its own handlers: no handler of the daemon runs in it. */
static int clone_child(struct spawn_child *child, int cgroup_fd, struct spawned *ret) {
        sigset_t before;
        int pidfd = -1, r = signals_block(0, &before);
        if (r < 0)
                return r;
        pid_t pid = process_clone(0, cgroup_fd, &pidfd, &child->cgroup_fd);
        if (pid == 0)
                spawn_child_main(child);
        r = pid < 0 ? pid : 0;
        signals_restore(&before);
        if (r == 0)
                *ret = (struct spawned){.pid = pid, .pidfd = pidfd};
        return r;
}

/* An agent that forks without end leaves half of the host's pids to others, where its user is not the daemon's, of
 * whose tasks a service manager limits the number. A run needs far fewer than TASKS_MIN. Source: getrlimit(2)
 * (RLIMIT_NPROC), proc_sys_kernel(5) (pid_max). */
static uint64_t most_tasks(const struct agent_identity *agents) {
        struct hostfs h = HOSTFS_MACHINE;
        int64_t pids;
        if (!agents->change || hostfs_i64(&h, &pids, "/proc/sys/kernel/pid_max") < 0)
                return 0;
        return pids / 2 > TASKS_MIN ? (uint64_t) pids / 2 : TASKS_MIN;
}

int spawn_agent(const struct spawn_request *request, struct spawn_start *ret, struct spawn_error *ret_error) {
        struct spawn_child child = {.request = request, .parent = getpid(), .forked_fd = -1};
        struct spawned s = {.pidfd = -1};
        int report[2], forked[2] = {-1, -1};
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0)
                return set_error(ret_error, "open /dev/null", errno);
        if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
                return set_error(ret_error, "pipe", errno);
        if (request->forked && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, forked) < 0) {
                int error = errno;
                util_close(report[0]);
                util_close(report[1]);
                return set_error(ret_error, "socketpair", error);
        }
        child.null_fd = null;
        child.tasks_max = most_tasks(&request->identity);
        child.report_fd = report[1];
        child.forked_fd = forked[1];
        if (request->forked)
                (void) snprintf(child.shared_bytes, sizeof(child.shared_bytes), "%" PRIu64,
                                request->forked->shared_bytes);
        int r = clone_child(&child, request->cgroup_fd, &s);
        util_close(report[1]);
        util_close(forked[1]);
        if (r < 0) {
                util_close(report[0]);
                util_close(forked[0]);
                return set_error(ret_error, "clone", -r);
        }
        *ret = (struct spawn_start){.process = s, .report_fd = report[0], .meeting_fd = forked[0]};
        return 0;
}

uint64_t spawn_most(int resource) {
        struct rlimit limit, none = {RLIM_INFINITY, RLIM_INFINITY};
        if (getrlimit(resource, &limit) < 0)
                return UINT64_MAX;
        if (limit.rlim_max == RLIM_INFINITY || setrlimit(resource, &none) == 0) {
                (void) setrlimit(resource, &limit);
                return UINT64_MAX;
        }
        return limit.rlim_max;
}
