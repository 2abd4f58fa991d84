/* SPDX-License-Identifier: MIT */

/*
 * The steps of the child between clone and exec. They are system calls only, in an order that matters: limits and
 * namespaces need the privilege that the next steps give up; the parent-death signal is cleared by a change of user,
 * which may make the process dumpable, too: both are set after it; the program is executed last, by descriptor.
 *
 * Source: man 7 capabilities, man 2 prctl (PR_SET_PDEATHSIG), close_range, execveat, set_mempolicy.
 */

#include "daemon/run/spawn/spawn-child.h"

#include "daemon/run/spawn/process.h"
#include "schema/util.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <numaif.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The child's own descriptors lie right above those of the agent and of its forked peer. */
#define REPORT_FD 9
#define PROGRAM_FD 10
#define FIRST_FREE_FD 11
#define SAFE_FD 16 /* below: about to be overwritten */

#define AGENT_FILES 65536u /* 1024 threads with a channel both ways, and room */

const char *spawn_step_name(int step) {
#define ROW(id, name) [STEP_##id] = name,
        static const char *const names[STEP_COUNT] = {SPAWN_STEPS(ROW)};
#undef ROW
        return step >= 0 && step < STEP_COUNT ? names[step] : "unknown step";
}

/* 0 or errno, as all steps below. */
static int place_descriptors(const struct spawn_child *c, int *report) {
        const struct spawn_request *r = c->request;
        const struct spawn_forked *forked = r->forked;
        const int from[] = {c->null_fd,
                            c->null_fd,
                            r->stderr_fd,
                            r->control_fd,
                            r->peer_fd,
                            r->run_dir_fd,
                            forked ? forked->control_fd : -1,
                            forked ? forked->peer_fd : -1,
                            forked ? c->forked_fd : -1,
                            c->report_fd,
                            r->program_fd,
                            r->ipc_ns_fd,
                            r->user_ns_fd};
        int safe[ELEMENTS(from)];
        for (size_t i = 0; i < ELEMENTS(from); i++) {
                int fd = from[i] < 0 && i <= AGENT_RUN_DIR_FD ? c->null_fd : from[i];
                safe[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SAFE_FD);
                if (fd >= 0 && safe[i] < 0)
                        return errno;
        }
        *report = safe[REPORT_FD];
        for (int i = 0; i < (int) ELEMENTS(from); i++)
                /* descriptors from REPORT_FD on are the child's own */
                if (safe[i] < 0)
                        (void) close(i); /* whatever the daemon has there */
                else if (dup3(safe[i], i, i >= REPORT_FD ? O_CLOEXEC : 0) < 0)
                        return errno;
        *report = REPORT_FD;
        unsigned first = FIRST_FREE_FD + (r->ipc_ns_fd >= 0) + (r->user_ns_fd >= 0);
        return syscall(SYS_close_range, first, ~0U, 0) < 0 ? errno : 0;
}

static int reset_signals(void) {
        struct sigaction sa = {.sa_handler = SIG_DFL};
        sigset_t none;
        for (int s = 1; s < _NSIG; s++)
                (void) sigaction(s, &sa, NULL); /* fails for SIGKILL, SIGSTOP and libc's own two */
        sigemptyset(&none);
        int e = pthread_sigmask(SIG_SETMASK, &none, NULL);
        if (e != 0)
                return e;
        /* A terminal's ^C is for the daemon, which ends its agents in its own way. */
        return setsid() < 0 ? errno : 0;
}

/* Raises a limit to the wanted value where the daemon may raise the hard limit, else up to the hard limit. */
static int raise_limit(int resource, rlim_t want) {
        struct rlimit limit, raised = {want, want};
        if (setrlimit(resource, &raised) == 0)
                return 0;
        if (getrlimit(resource, &limit) < 0)
                return errno;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(resource, &limit) < 0 ? errno : 0;
}

/* When memory is short the kernel kills an agent before the daemon: its run fails, and the queue goes on. Any process
 * may raise its score; without /proc it stays. Source: proc_pid_oom_score_adj(5). */
static void raise_oom_score(void) {
        static const char most[] = "1000";
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        (void) !write(fd, most, sizeof(most) - 1);
        (void) close(fd);
}

static int lower_limit(int resource, rlim_t most) {
        struct rlimit limit;
        if (getrlimit(resource, &limit) < 0)
                return errno;
        limit.rlim_max = limit.rlim_max < most ? limit.rlim_max : most;
        limit.rlim_cur = limit.rlim_cur < most ? limit.rlim_cur : most;
        return setrlimit(resource, &limit) < 0 ? errno : 0;
}

static int set_limits(const struct spawn_child *c) {
        const struct spawn_request *r = c->request;
        struct rlimit none = {0, 0};
        int e = raise_limit(RLIMIT_NOFILE, AGENT_FILES);
        if (e == 0)
                e = raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
        if (e == 0)
                e = raise_limit(RLIMIT_MSGQUEUE, RLIM_INFINITY);
        if (e == 0 && c->tasks_max)
                e = lower_limit(RLIMIT_NPROC, c->tasks_max);
        if (e == 0 && setrlimit(RLIMIT_CORE, &none) < 0)
                e = errno;
        if (e == 0 && r->file_bytes)
                e = lower_limit(RLIMIT_FSIZE, r->file_bytes);
        /* The priority is for the thread that serves the control socket; agent/main.c lowers it for the others. Agents
         * of a daemon that may not raise it run without. No agent can raise it again after this step. */
        (void) setpriority(PRIO_PROCESS, 0, PRIO_MIN);
        if (e == 0 && setrlimit(RLIMIT_NICE, &none) < 0)
                e = errno;
        return e;
}

static int set_memory_policy(const struct spawn_request *r) {
        int policy = (int) r->memory; /* numbered as the kernel's modes */
        if (!r->numa && policy == MPOL_DEFAULT)
                return 0;
        bool nodes = policy != MPOL_DEFAULT && policy != MPOL_LOCAL;
        const unsigned long *bits = (const unsigned long *) (const void *) r->memory_nodes.bits;
        return set_mempolicy(policy, nodes ? bits : NULL, nodes ? SPEC_NODES_MAX + 1 : 0) < 0 ? errno : 0;
}

static int enter_namespace(int fd, int type) {
        return fd >= 0 && setns(fd, type) < 0 ? errno : 0;
}

/* Needs CAP_SETPCAP. A process without it has nothing to bound, since with no_new_privs file capabilities add none. */
static int drop_bounding_set(void) {
        for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
                if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
                        return errno;
        return 0;
}

/* Whether a process without ambient capabilities has none after exec, which gives those of the bounding and inheritable
 * sets to root alone: an agent is that in a user namespace of its run. Source: capabilities(7). */
static bool exec_drops_capabilities(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
        int bound = 0;
        if (getuid() != 0 && geteuid() != 0)
                return true;
        if (syscall(SYS_capget, &header, data) < 0 || data[0].inheritable || data[1].inheritable)
                return false;
        for (unsigned long cap = 0; bound == 0; cap++)
                bound = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
        return bound < 0; /* beyond the last */
}

static int drop_capabilities(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                return errno;
        if (syscall(SYS_capset, &header, none) == 0)
                return 0;
        return errno == EPERM && exec_drops_capabilities() ? 0 : errno; /* a service may be forbidden the call */
}

static int change_user(const struct agent_identity *id, int *step) {
        if (!id->change)
                return 0;
        *step = STEP_GROUPS;
        if (syscall(SYS_setgroups, 0, NULL) < 0)
                return errno;
        /* The raw calls: libc's would make the daemon's other threads, which are not here, do the same. */
        *step = STEP_GID;
        if (syscall(SYS_setresgid, id->gid, id->gid, id->gid) < 0)
                return errno;
        *step = STEP_UID;
        return syscall(SYS_setresuid, id->uid, id->uid, id->uid) < 0 ? errno : 0;
}

static int give_up_privilege(const struct spawn_child *c, int *step) {
        const struct spawn_request *r = c->request;
        int fd = FIRST_FREE_FD, e;
        int ipc = r->ipc_ns_fd >= 0 ? fd : -1, user = r->user_ns_fd >= 0 ? fd + 1 : -1;
        *step = STEP_USER_NAMESPACE;
        if ((e = enter_namespace(user, CLONE_NEWUSER)) != 0)
                return e;
        *step = STEP_IPC_NAMESPACE;
        if ((e = enter_namespace(ipc, CLONE_NEWIPC)) != 0)
                return e;
        *step = STEP_CAPABILITY_BOUND;
        if ((e = drop_bounding_set()) != 0 || (e = change_user(&r->identity, step)) != 0)
                return e;
        /* A change of user sets the dumpable flag to fs.suid_dumpable. Until exec this process has the daemon's memory,
         * which other processes of the agents' user could read; exec sets the flag again (program.h). */
        *step = STEP_NOT_DUMPABLE;
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return errno;
        *step = STEP_CAPABILITIES;
        if ((e = drop_capabilities()) != 0)
                return e;
        *step = STEP_NO_NEW_PRIVILEGES;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return errno;
        *step = STEP_PARENT_DEATH;
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
                return errno;
        return getppid() == c->parent ? 0 : ESRCH; /* the daemon may have died before the signal was requested */
}

static int prepare(const struct spawn_child *c, int *step, int *report) {
        int e;
        *step = STEP_CGROUP;
        if (c->cgroup_fd >= 0 && (e = process_join(c->cgroup_fd)) != 0)
                return e;
        *step = STEP_DESCRIPTORS;
        if ((e = place_descriptors(c, report)) != 0)
                return e;
        *step = STEP_SIGNALS;
        if ((e = reset_signals()) != 0)
                return e;
        *step = STEP_LIMITS;
        if ((e = set_limits(c)) != 0)
                return e;
        raise_oom_score();
        *step = STEP_AFFINITY;
        if ((e = -affinity_set(0, &c->request->affinity)) != 0)
                return e;
        *step = STEP_MEMORY_POLICY;
        if ((e = set_memory_policy(c->request)) != 0)
                return e;
        return give_up_privilege(c, step);
}

_Noreturn void spawn_child_main(const struct spawn_child *c) {
        char name[] = "ipclab-agent", locale[] = "LC_ALL=C.UTF-8";
        /* exec does not write to its arguments; the types are older than const */
        const struct spawn_forked *forked = c->request->forked;
        char huge[] = "huge";
        char *const arguments[] = {name,
                                   (char *) (uintptr_t) c->request->role,
                                   forked ? (char *) (uintptr_t) forked->role : NULL,
                                   (char *) (uintptr_t) c->shared_bytes,
                                   forked && forked->huge_pages ? huge : NULL,
                                   NULL};
        char *const environment[] = {locale, NULL};
        int report = c->report_fd, step = STEP_DESCRIPTORS;
        int e = prepare(c, &step, &report);
        if (e == 0) {
                umask(077);
                step = STEP_DIRECTORY;
                if (chdir("/") == 0) {
                        step = STEP_EXEC;
                        (void) syscall(SYS_execveat, PROGRAM_FD, "", arguments, environment, AT_EMPTY_PATH);
                }
                e = errno;
        }
        struct spawn_failure failure = {.step = step, .error = e};
        ssize_t n = write(report, &failure, sizeof(failure));
        _exit(n == (ssize_t) sizeof(failure) ? 126 : 127);
}
