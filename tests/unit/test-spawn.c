/* SPDX-License-Identifier: MIT */

/* What an agent starts with, reported by a program that examines itself: nothing inherited, nothing privileged, and
 * already on its CPUs and node. And the error of a child that cannot get there. */

#include "daemon/run/spawn/spawn.h"

#include "check.h"
#include "daemon/log.h"
#include "daemon/run/sandbox/cgroup.h"
#include "daemon/run/sandbox/ipcns.h"
#include "daemon/run/spawn/program.h"
#include "schema/detail.h"
#include "schema/util.h"
#include "tests/unit/spawn-probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DEADLINE_MS 60000

static struct agent_identity identity;
static struct affinity own_affinity;
static char report[8192];
static int control = -1;

static int open_probe(void) {
        char path[512];
        (void) snprintf(path, sizeof(path), "%s/tests/unit/spawn-probe", getenv("IPCLAB_BUILD_ROOT"));
        return open(path, O_PATH | O_CLOEXEC);
}

/* As the runner does by events: until the program is executed and has forked, where it is to. On failure nothing is
 * left. */
static int start_and_wait(const struct spawn_request *q, struct spawned *ret, struct spawned *ret_forked,
                          struct spawn_error *e) {
        struct spawn_start s;
        siginfo_t info;
        int r = spawn_agent(q, &s, e);
        if (r < 0)
                return r;
        struct pollfd executed = {.fd = s.report_fd, .events = POLLIN}, born = {.fd = s.meeting_fd, .events = POLLIN};
        r = poll(&executed, 1, DEADLINE_MS) == 1 ? spawn_report(s.report_fd, e) : -ETIMEDOUT;
        if (r == 0 && q->forked)
                r = poll(&born, 1, DEADLINE_MS) == 1 ? spawn_meet(s.meeting_fd, s.process.pid, q->forked, ret_forked, e)
                                                     : -ETIMEDOUT;
        util_close(s.report_fd);
        util_close(s.meeting_fd);
        if (r < 0) {
                spawn_kill_group(s.process.pid);
                spawn_abort(&s.process);
                while (waitid(P_PGID, (id_t) s.process.pid, &info, WEXITED) == 0)
                        ;
                return r;
        }
        *ret = s.process;
        return 0;
}

/* Starts the probe and reads its report; the probe lives until finish(). */
static int start(struct spawn_request *q, struct spawned *s, struct spawn_error *e) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        q->control_fd = pair[1];
        q->role = "sender";
        q->identity = identity;
        int r = start_and_wait(q, s, NULL, e);
        util_close(pair[1]);
        if (r < 0) {
                util_close(pair[0]);
                return r;
        }
        control = pair[0];
        struct pollfd p = {.fd = control, .events = POLLIN};
        ssize_t n = poll(&p, 1, DEADLINE_MS) == 1 ? recv(control, report, sizeof(report) - 1, 0) : -1;
        report[n > 0 ? n : 0] = 0;
        return n > 0 ? 0 : -EIO;
}

static int finish(struct spawned *s) {
        siginfo_t info = {0};
        control = util_close(control);
        if (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED) < 0)
                return -errno;
        s->pidfd = util_close(s->pidfd);
        return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

/* The rest of the line that begins with `name`, without leading blanks. */
static const char *line(const char *name) {
        static char value[2048];
        size_t n = strlen(name);
        for (const char *at = report; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
                if (strncmp(at, name, n) == 0 && (at[n] == ' ' || at[n] == '\n')) {
                        at += n;
                        at += strspn(at, " ");
                        (void) snprintf(value, sizeof(value), "%.*s", (int) strcspn(at, "\n"), at);
                        for (size_t end = strlen(value); end > 0 && value[end - 1] == ' '; end--)
                                value[end - 1] = 0;
                        return value;
                }
        return "(no such line)";
}

static struct spawn_request plain_request(int program) {
        return (struct spawn_request){.program_fd = program,
                                      .peer_fd = -1,
                                      .run_dir_fd = -1,
                                      .stderr_fd = -1,
                                      .cgroup_fd = -1,
                                      .ipc_ns_fd = -1,
                                      .user_ns_fd = -1,
                                      .affinity = own_affinity,
                                      .numa = true};
}

static void nothing_is_inherited(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct spawned s;
        struct spawn_error e;
        q.file_bytes = 1234567;
        /* what a careless parent has: an open file in the agent's range and above, an ignored and a blocked signal */
        int leak = open("/etc/passwd", O_RDONLY), high = fcntl(leak, F_DUPFD, 200);
        CHECK(leak >= 0 && high >= 0 && setenv("LD_PRELOAD", "", 1) == 0);
        struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL};
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        CHECK(sigaction(SIGPIPE, &ignore, NULL) == 0 && sigprocmask(SIG_BLOCK, &set, NULL) == 0);
        int r = start(&q, &s, &e);
        (void) sigaction(SIGPIPE, &standard, NULL);
        (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
        close(leak);
        close(high);
        if (r < 0)
                CHECK_FAIL("%s: %s", e.step, strerror(e.error));
        CHECK_STRING(line("fds"), "0 1 2 3 4 5");
        CHECK_STRING(line("argv"), "2 ipclab-agent sender");
        CHECK_STRING(line("env"), "LC_ALL=C.UTF-8");
        CHECK_STRING(line("SigIgn:"), "0000000000000000");
        CHECK_STRING(line("SigBlk:"), "0000000000000000");
        CHECK_STRING(line("session"), "1");
        CHECK_STRING(line("cwd"), "/");
        CHECK_STRING(line("umask"), "077");
        CHECK_STRING(line("core"), "0");
        CHECK_STRING(line("fsize"), "1234567");
        CHECK_STRING(line("pdeathsig"), "9");
        CHECK(strtol(line("nofile"), NULL, 10) >= 1024);
        if (identity.change) { /* an agent that forks without end leaves pids to others */
                _cleanup_fclose_ FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
                char pids[32] = "";
                CHECK(f && fgets(pids, sizeof(pids), f));
                unsigned long half = strtoul(pids, NULL, 10) / 2;
                CHECK(strtoul(line("nproc"), NULL, 10) <= (half > 4096 ? half : 4096));
        }
        char precedence[16];
        (void) snprintf(precedence, sizeof(precedence), "%d",
                        identity.change ? PRIO_MIN : getpriority(PRIO_PROCESS, 0));
        CHECK_STRING(line("nice"), precedence);
        CHECK_INT(finish(&s), 0);
}

static void no_privilege_is_left(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct spawned s;
        struct spawn_error e;
        char want[64];
        CHECK_INT(start(&q, &s, &e), 0);
        (void) snprintf(want, sizeof(want), "%u %u %u %u", identity.uid, identity.uid, identity.uid, identity.uid);
        CHECK_STRING(line("Uid:"), want);
        CHECK(identity.uid != 0);
        (void) snprintf(want, sizeof(want), "%u %u %u %u", identity.gid, identity.gid, identity.gid, identity.gid);
        CHECK_STRING(line("Gid:"), want);
        if (identity.change)
                CHECK_STRING(line("Groups:"), "");
        const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
        for (size_t i = 0; i < ELEMENTS(sets); i++)
                CHECK_STRING(line(sets[i]), "0000000000000000");
        if (identity.change)
                CHECK_STRING(line("CapBnd:"), "0000000000000000");
        CHECK_STRING(line("NoNewPrivs:"), "1");
        CHECK_INT(finish(&s), 0);
}

/* What the program finds, which does nothing for it: a program that its user may read is dumpable once it is
 * executed. */
static void a_sealed_program_is_not_dumpable(void) {
        _cleanup_close_ int program = open_probe(), sealed = -1;
        char path[64];
        struct spawned s;
        struct spawn_error e;
        struct spawn_request q = plain_request(program);
        CHECK_INT(start(&q, &s, &e), 0);
        CHECK_STRING(line("dumpable"), "1");
        CHECK_INT(finish(&s), 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
        _cleanup_close_ int readable = open(path, O_RDONLY | O_CLOEXEC);
        int r = program_copy(readable, &sealed);
        if (r == -EACCES)
                SKIP("vm.memfd_noexec is 2: no memory is executed");
        CHECK_INT(r, 0);
        q = plain_request(sealed);
        CHECK_INT(start(&q, &s, &e), 0);
        _cleanup_fclose_ FILE *setting = fopen("/proc/sys/fs/suid_dumpable", "re");
        char expected[8] = "0";
        if (setting && fgets(expected, sizeof(expected), setting))
                expected[strcspn(expected, "\n")] = 0;
        CHECK_STRING(line("dumpable"), expected);
        CHECK_STRING(line("pdeathsig"), "9"); /* which an exec may clear that is privileged, and this is not */
        CHECK_INT(finish(&s), 0);
        CHECK(write(sealed, "x", 1) < 0 && errno == EPERM);
        CHECK(ftruncate(sealed, 0) < 0 && errno == EPERM);
}

static void cpus_and_memory_are_set_before_exec(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct spawned s;
        struct spawn_error e;
        int32_t last = -1;
        char want[32];
        for (int32_t cpu = 0; cpu < 1024; cpu++)
                if (own_affinity.bits[cpu / 64] >> (cpu % 64) & 1)
                        last = cpu;
        CHECK_INT(affinity_from_list(&last, 1, &q.affinity), 0);
        q.memory = MEMORY_BIND;
        node_set_add(&q.memory_nodes, 0);
        int r = start(&q, &s, &e);
        if (r == -ECANCELED && e.error == ENOSYS)
                SKIP("a kernel without memory policies");
        CHECK_INT(r, 0);
        (void) snprintf(want, sizeof(want), "%d", last);
        CHECK_STRING(line("Cpus_allowed_list:"), want);
        (void) snprintf(want, sizeof(want), "%d 1", MPOL_BIND);
        CHECK_STRING(line("policy"), want);
        CHECK_INT(finish(&s), 0);
}

/* The daemon itself may be confined while it keeps out of a run's way. */
static void default_means_the_daemons_first_cpus(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct spawned s;
        struct spawn_error e;
        char all[512];
        CHECK_INT(start(&q, &s, &e), 0);
        (void) snprintf(all, sizeof(all), "%s", line("Cpus_allowed_list:"));
        CHECK_INT(finish(&s), 0);
        int32_t first = 0;
        while (!(own_affinity.bits[first / 64] >> (first % 64) & 1))
                first++;
        struct affinity one;
        CHECK_INT(affinity_from_list(&first, 1, &one), 0);
        CHECK_INT(affinity_set(0, &one), 0);
        int r = start(&q, &s, &e);
        CHECK_INT(affinity_set(0, &own_affinity), 0);
        CHECK_INT(r, 0);
        CHECK_STRING(line("Cpus_allowed_list:"), all);
        CHECK_INT(finish(&s), 0);
}

static void ipc_namespace_is_the_runs_own(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct ipcns ns = IPCNS_NONE;
        struct spawned s;
        struct spawn_error e;
        struct stat own, made;
        char detail[DETAIL_MAX], want[32];
        if (ipcns_new(NULL, &ns, detail) < 0)
                SKIP("%s", detail);
        q.ipc_ns_fd = ns.ipc_fd;
        q.user_ns_fd = ns.user_fd;
        CHECK_INT(fstat(ns.ipc_fd, &made), 0);
        CHECK_INT(stat("/proc/self/ns/ipc", &own), 0);
        CHECK(own.st_ino != made.st_ino); /* ours has not changed */
        int r = start(&q, &s, &e);
        ipcns_close(&ns);
        if (r < 0)
                CHECK_FAIL("%s: %s", e.step, strerror(e.error));
        (void) snprintf(want, sizeof(want), "%lu", (unsigned long) made.st_ino);
        CHECK_STRING(line("ipc"), want);
        CHECK_STRING(line("CapEff:"), "0000000000000000");
        CHECK_STRING(line("fds"), "0 1 2 3 4 5");
        CHECK_INT(finish(&s), 0);
}

/* As the system call filter of a service does. */
static int forbid_capset(void) {
        struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_capset, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog filter = {.len = ELEMENTS(code), .filter = code};
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0
                       ? -errno
                       : 0;
}

/* A service runs as the agents' user, whose namespaces make an agent root there. */
static int become_agents_user(void) {
        if (!identity.change)
                return 0;
        if (setgroups(0, NULL) < 0 || setresgid(identity.gid, identity.gid, identity.gid) < 0 ||
            setresuid(identity.uid, identity.uid, identity.uid) < 0 || prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return -errno;
        identity.change = false;
        return 0;
}

static void no_capability_is_left_without_capset(void) {
        pid_t pid = fork();
        int status = -1;
        if (pid == 0) {
                check_case_failed = forbid_capset() < 0;
                if (!check_case_failed)
                        no_privilege_is_left(); /* of root's agents, where the test is root's */
                if (!check_case_failed)
                        check_case_failed = become_agents_user() < 0;
                if (!check_case_failed)
                        no_privilege_is_left();
                if (!check_case_failed)
                        ipc_namespace_is_the_runs_own();
                _exit(check_case_failed);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK_INT(status, 0);
}

static void agent_is_born_in_its_cgroup(void) {
        _cleanup_close_ int program = open_probe();
        struct spawn_request q = plain_request(program);
        struct cgroup_tree *tree;
        struct cgroup_run *group;
        struct spawned s;
        struct spawn_error e;
        char detail[DETAIL_MAX], owner[64], path[64], text[1024] = "";
        (void) snprintf(owner, sizeof(owner), "ipclab-test-spawn-%d", getpid());
        if (cgroup_tree_new(&tree, owner, detail) < 0)
                SKIP("%s", detail);
        CHECK_INT(cgroup_run_new(tree, 5, &group), 0);
        q.cgroup_fd = cgroup_run_fd(group);
        CHECK_INT(start(&q, &s, &e), 0);
        (void) snprintf(path, sizeof(path), "/proc/%d/cgroup", s.pid);
        FILE *f = fopen(path, "re");
        CHECK(f != NULL);
        size_t n = fread(text, 1, sizeof(text) - 1, f);
        fclose(f);
        CHECK(n > 0 && strstr(text, cgroup_run_name(group)) != NULL);
        CHECK_INT(cgroup_run_kill(group), 0);
        siginfo_t info = {0};
        CHECK_INT(waitid(P_PIDFD, (id_t) s.pidfd, &info, WEXITED), 0);
        CHECK_INT(info.si_status, SIGKILL);
        util_close(s.pidfd);
        control = util_close(control);
        CHECK_INT(cgroup_run_end(group, 2 * NSEC_PER_SEC), 0);
        cgroup_tree_free(tree);
}

static void failures_name_their_step(void) {
        _cleanup_close_ int program = open_probe(), data = open("/etc/passwd", O_PATH | O_CLOEXEC);
        struct spawn_request q = plain_request(data);
        struct spawned s;
        struct spawn_error e = {"", 0};
        siginfo_t info;
        CHECK_INT(start(&q, &s, &e), -ECANCELED);
        CHECK_STRING(e.step, "exec");
        CHECK_INT(e.error, EACCES);

        q = plain_request(program);
        memset(&q.affinity, 0, sizeof(q.affinity)); /* no CPU at all */
        CHECK_INT(start(&q, &s, &e), -ECANCELED);
        CHECK_STRING(e.step, "sched_setaffinity");
        CHECK_INT(e.error, EINVAL);

        q = plain_request(program);
        q.memory = MEMORY_BIND; /* to no node */
        CHECK_INT(start(&q, &s, &e), -ECANCELED);
        CHECK_STRING(e.step, "set_mempolicy");

        q = plain_request(program);
        q.ipc_ns_fd = data;
        CHECK_INT(start(&q, &s, &e), -ECANCELED);
        CHECK_STRING(e.step, "enter IPC namespace");
        CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 && errno == ECHILD);
}

/* --- two agents out of one program: the real one, since only that becomes two --- */

static int open_agent(void) {
        char path[512];
        (void) snprintf(path, sizeof(path), "%s/agent/ipclab-agent", getenv("IPCLAB_BUILD_ROOT"));
        return open(path, O_PATH | O_CLOEXEC);
}

/* Sockets of both: [0] is ours, [1] theirs. */
struct both_sockets {
        int first[2], second[2], peer[2];
};

static int both_sockets_init(struct both_sockets *s) {
        int *pairs[] = {s->first, s->second, s->peer};
        for (size_t i = 0; i < ELEMENTS(pairs); i++)
                if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[i]) < 0)
                        return -errno;
        return 0;
}

static void both_sockets_deinit(struct both_sockets *s) {
        int *pairs[] = {s->first, s->second, s->peer};
        for (size_t i = 0; i < ELEMENTS(pairs); i++)
                for (unsigned k = 0; k < 2; k++)
                        pairs[i][k] = util_close(pairs[i][k]);
}

static int start_both(int program, const struct both_sockets *sockets, struct spawn_forked *forked,
                      struct spawned ret[static 2], struct spawn_error *e) {
        struct spawn_request q = plain_request(program);
        _cleanup_close_ int dir = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
        q.role = "sender";
        q.identity = identity;
        q.run_dir_fd = dir;
        q.control_fd = sockets->first[1];
        q.peer_fd = sockets->peer[0];
        q.forked = forked;
        forked->role = "receiver";
        forked->control_fd = sockets->second[1];
        forked->peer_fd = sockets->peer[1];
        return start_and_wait(&q, &ret[0], &ret[1], e);
}

static bool status_line(pid_t pid, const char *key, const char *value) {
        char path[64], text[200], want[200];
        bool found = false;
        (void) snprintf(path, sizeof(path), "/proc/%d/status", pid);
        (void) snprintf(want, sizeof(want), "%s\t%s\n", key, value);
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        while (f && fgets(text, sizeof(text), f))
                found |= strcmp(text, want) == 0;
        return found;
}

static int reap_one(struct spawned *s) {
        siginfo_t info = {0};
        if (waitid(P_PIDFD, (id_t) s->pidfd, &info, WEXITED) < 0)
                return -errno;
        s->pidfd = util_close(s->pidfd);
        return info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
}

/* The forked peer is a child of this process as well, has lost its privilege with the first agent, is on the CPU that
 * it was given, and sends on its own socket under its own pid. Each ends when its socket is closed. */
static void a_forked_peer_is_a_child_too(void) {
        _cleanup_close_ int program = open_agent();
        struct both_sockets sockets;
        struct spawned agents[2];
        struct spawn_error e = {"", 0};
        struct message hello;
        char own_pid[32], cpu[16], detail[200];
        int32_t last = -1;
        for (int32_t i = 0; i < (int32_t) AFFINITY_CPUS; i++)
                if (own_affinity.bits[(size_t) i / (8 * sizeof(long))] >> ((size_t) i % (8 * sizeof(long))) & 1)
                        last = i;
        struct spawn_forked forked = {.shared_bytes = 65536};
        CHECK_INT(affinity_from_list(&last, 1, &forked.affinity), 0);
        CHECK_INT(both_sockets_init(&sockets), 0);
        if (start_both(program, &sockets, &forked, agents, &e) < 0)
                CHECK_FAIL("%s: %s", e.step, strerror(e.error));
        CHECK(agents[1].pid > 0 && agents[1].pid != agents[0].pid);
        const struct {
                int fd;
                pid_t pid;
        } both[] = {{sockets.first[0], agents[0].pid}, {sockets.second[0], agents[1].pid}};
        for (size_t i = 0; i < ELEMENTS(both); i++) {
                CHECK_INT(message_receive(both[i].fd, &hello, util_now_ns() + DEADLINE_MS * NSEC_PER_MSEC, detail), 0);
                CHECK_INT(hello.type, MESSAGE_HELLO);
                CHECK_INT(hello.hello.pid, both[i].pid);
        }
        (void) snprintf(own_pid, sizeof(own_pid), "%d", getpid());
        (void) snprintf(cpu, sizeof(cpu), "%d", last);
        CHECK(status_line(agents[1].pid, "PPid:", own_pid));
        CHECK(status_line(agents[1].pid, "Cpus_allowed_list:", cpu));
        CHECK(status_line(agents[1].pid, "CapEff:", "0000000000000000"));
        CHECK(status_line(agents[1].pid, "NoNewPrivs:", "1"));
        both_sockets_deinit(&sockets);
        CHECK(reap_one(&agents[0]) > 0); /* both report that they are orphaned */
        CHECK(reap_one(&agents[1]) > 0);
}

static bool ends_within(pid_t pid, unsigned ms) {
        char path[64], text[400];
        (void) snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        for (unsigned i = 0; i < ms; i++) {
                _cleanup_fclose_ FILE *f = fopen(path, "re");
                if (!f || !fgets(text, sizeof(text), f))
                        return true;
                const char *state = strrchr(text, ')'); /* a zombie waits for the process that has inherited it */
                if (state && state[1] && (state[2] == 'Z' || state[2] == 'X'))
                        return true;
                (void) poll(NULL, 0, 1);
        }
        return false;
}

/* The sockets stay open here, so only the parent's death can end them. */
static void both_agents_die_with_their_parent(void) {
        _cleanup_close_ int program = open_agent();
        struct both_sockets sockets;
        int started[2], status;
        pid_t pids[2] = {0, 0};
        CHECK_INT(both_sockets_init(&sockets), 0);
        CHECK_INT(pipe2(started, O_CLOEXEC), 0);
        pid_t parent = fork();
        CHECK(parent >= 0);
        if (parent == 0) {
                struct spawn_forked forked = {.shared_bytes = 4096, .affinity = own_affinity};
                struct spawned agents[2];
                struct spawn_error e;
                if (start_both(program, &sockets, &forked, agents, &e) == 0) {
                        pids[0] = agents[0].pid;
                        pids[1] = agents[1].pid;
                }
                if (write(started[1], pids, sizeof(pids)) != (ssize_t) sizeof(pids))
                        _exit(1);
                for (;;)
                        (void) pause();
        }
        util_close(started[1]);
        CHECK_INT(read(started[0], pids, sizeof(pids)), sizeof(pids));
        util_close(started[0]);
        CHECK(pids[0] > 0 && pids[1] > 0);
        CHECK(!ends_within(pids[0], 50) && !ends_within(pids[1], 1)); /* they live for now */
        (void) kill(parent, SIGKILL);
        CHECK_INT(waitpid(parent, &status, 0), parent);
        CHECK(ends_within(pids[0], DEADLINE_MS));
        CHECK(ends_within(pids[1], DEADLINE_MS));
        both_sockets_deinit(&sockets);
}

/* No process is left, however far each of the two got. */
static void a_failed_fork_leaves_no_process(void) {
        _cleanup_close_ int agent = open_agent(), probe = open_probe();
        struct both_sockets sockets;
        struct spawned agents[2];
        struct spawn_error e = {"", 0};
        siginfo_t info;
        CHECK_INT(both_sockets_init(&sockets), 0);

        struct spawn_forked forked = {.shared_bytes = 0, .affinity = own_affinity};
        CHECK_INT(start_both(agent, &sockets, &forked, agents, &e), -ECANCELED);
        CHECK_STRING(e.step, "bytes to share");
        CHECK_INT(e.error, EINVAL);

        forked.shared_bytes = UINT64_C(1) << 60;
        CHECK_INT(start_both(agent, &sockets, &forked, agents, &e), -ECANCELED);
        CHECK_STRING(e.step, "mmap");
        CHECK_INT(e.error, ENOMEM);

        forked.shared_bytes = PROBE_FORKS_NONE;
        CHECK_INT(start_both(probe, &sockets, &forked, agents, &e), -EPIPE);
        both_sockets_deinit(&sockets);
        CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 && errno == ECHILD);
}

static size_t count_descriptors(void) {
        size_t n = 0;
        DIR *dir = opendir("/proc/self/fd");
        while (dir && readdir(dir))
                n++;
        if (dir)
                closedir(dir);
        return n;
}

/* An agent is not trusted: its report must be whole, with no descriptor, and name a child of this process that is of
 * the agent's group. */
static void a_false_report_of_a_fork_is_refused(void) {
        _cleanup_close_ int probe = open_probe();
        for (uint64_t lie = PROBE_SENDS_ONE; lie <= PROBE_SENDS_NOTHING; lie++) {
                struct both_sockets sockets;
                struct spawned agents[2];
                struct spawn_error e = {"", 0};
                siginfo_t info;
                size_t before = count_descriptors();
                CHECK_INT(both_sockets_init(&sockets), 0);
                struct spawn_forked forked = {.shared_bytes = lie, .affinity = own_affinity};
                int r = start_both(probe, &sockets, &forked, agents, &e);
                both_sockets_deinit(&sockets);
                if (r != (lie == PROBE_SENDS_PARENT ? -ECHILD : -EBADMSG))
                        CHECK_FAIL("lie %u: %d", (unsigned) (lie - PROBE_SENDS_ONE), r);
                CHECK_UINT(count_descriptors(), before);
                CHECK(waitid(P_ALL, 0, &info, WEXITED | WNOHANG) < 0 && errno == ECHILD);
        }
}

/* A process that waits, and that another one holds by ptrace: killed, it is a zombie of its tracer's at first. */
static pid_t start_sleeper(void) {
        pid_t pid = fork();
        if (pid == 0) {
                (void) prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
                (void) poll(NULL, 0, 60000);
                _exit(0);
        }
        return pid;
}

/* Says a byte when it holds the process, or that it may not. */
static pid_t start_tracer(pid_t of, char *ret_word) {
        int words[2];
        if (pipe2(words, O_CLOEXEC) < 0)
                return -1;
        pid_t pid = fork();
        if (pid == 0) {
                bool holds = ptrace(PTRACE_SEIZE, of, NULL, NULL) == 0;
                if (write(words[1], holds ? "y" : "n", 1) != 1)
                        _exit(1);
                (void) poll(NULL, 0, 60000);
                _exit(0);
        }
        util_close(words[1]);
        if (read(words[0], ret_word, 1) != 1)
                *ret_word = '?';
        util_close(words[0]);
        return pid;
}

/* 0: it is there, dead or alive. */
static int still_there(pid_t pid) {
        siginfo_t info = {0};
        return waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ? -errno : 0;
}

static void a_child_that_does_not_die_does_not_hold_the_daemon(void) {
        char word = '?';
        pid_t victim = start_sleeper(), tracer = start_tracer(victim, &word);
        struct spawned s = {.pid = victim, .pidfd = pidfd_open(victim, 0)};
        CHECK(s.pidfd >= 0);
        if (word == 'y') {
                spawn_abort(&s);
                CHECK_INT(s.pidfd, -1);
                CHECK_INT(still_there(victim), 0);
        }
        (void) kill(tracer, SIGKILL);
        CHECK_INT(waitpid(tracer, NULL, 0), tracer);
        if (word != 'y') {
                spawn_abort(&s);
                SKIP("no process may be traced here");
        }
        CHECK(spawn_reap_strays());
        CHECK_INT(still_there(victim), -ECHILD);
}

static void an_unknown_user_is_nobody(void) {
        struct agent_identity id;
        if (geteuid() != 0)
                SKIP("not root: agents run as the daemon's user");
        CHECK_INT(agent_identity_find("no-such-user-at-all", &id), 0);
        CHECK_STRING(id.name, "nobody");
        CHECK_INT(agent_identity_find("root", &id), 0);
        CHECK_STRING(id.name, "nobody"); /* never as root, even on request */
        CHECK(id.change && id.uid != 0);
}

int main(void) {
        log_open(LOG_ERR);
        if (!getenv("IPCLAB_BUILD_ROOT") || agent_identity_find("nobody", &identity) < 0 ||
            affinity_get(0, &own_affinity) < 0)
                return 1;
        RUN(nothing_is_inherited);
        RUN(no_privilege_is_left);
        RUN(a_sealed_program_is_not_dumpable);
        RUN(cpus_and_memory_are_set_before_exec);
        RUN(default_means_the_daemons_first_cpus);
        RUN(ipc_namespace_is_the_runs_own);
        RUN(no_capability_is_left_without_capset);
        RUN(agent_is_born_in_its_cgroup);
        RUN(failures_name_their_step);
        RUN(a_forked_peer_is_a_child_too);
        RUN(both_agents_die_with_their_parent);
        RUN(a_failed_fork_leaves_no_process);
        RUN(a_false_report_of_a_fork_is_refused);
        RUN(a_child_that_does_not_die_does_not_hold_the_daemon);
        RUN(an_unknown_user_is_nobody);
        return check_end();
}
