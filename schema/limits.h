/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The host's limits by name: how a person raises each, and the one sentence that names the limit and the value that was
 * needed. The daemon refuses with it beforehand; an agent fails with it where a limit was lowered in the meantime.
 */

#include <stddef.h>
#include <stdint.h>

/* The descriptors that ipclabd itself has open at once: its store, sockets and event loop, and a run's cgroups, pipes,
 * links and files below /proc. A quarter of RLIMIT_NOFILE's rest is for the files of threads that are observed one by
 * one, those of the run and the measured CPUs' ksoftirqd, and for these CPUs' clocks: where there is no room for all of
 * the one kind, the daemon omits that kind. The other three are divided equally among the listeners, for HTTP clients.
 */
#define DESCRIPTORS_OF_DAEMON 96u
#define DESCRIPTORS_OF_CLIENT 3u
#define DESCRIPTORS_CLIENTS_MIN 4u /* of each of the two listeners, without regard to the limit */
#define DESCRIPTORS_LEAST (DESCRIPTORS_OF_DAEMON + 2u * DESCRIPTORS_CLIENTS_MIN * DESCRIPTORS_OF_CLIENT)

static inline uint64_t descriptors_of_threads(uint64_t limit) {
        return limit > DESCRIPTORS_OF_DAEMON ? (limit - DESCRIPTORS_OF_DAEMON) / 4 : 0;
}

static inline uint64_t descriptors_clients_most(uint64_t limit) {
        uint64_t rest =
                limit > DESCRIPTORS_OF_DAEMON ? limit - DESCRIPTORS_OF_DAEMON - descriptors_of_threads(limit) : 0;
        uint64_t clients = rest / (2 * DESCRIPTORS_OF_CLIENT);
        return clients > DESCRIPTORS_CLIENTS_MIN ? clients : DESCRIPTORS_CLIENTS_MIN;
}

/* The limits: enumerator, name as sysctl(8), getrlimit(2) or cgroups(7) have it, and what a person does to raise it, in
 * which the unit is. */
#define HOST_LIMITS(ROW)                                                                                               \
        ROW(PIPE_MAX_SIZE, "fs.pipe-max-size", "sysctl fs.pipe-max-size=BYTES")                                        \
        ROW(PIPE_USER_PAGES, "fs.pipe-user-pages-soft", "sysctl fs.pipe-user-pages-soft=PAGES")                        \
        ROW(WMEM_MAX, "net.core.wmem_max", "sysctl net.core.wmem_max=BYTES")                                           \
        ROW(RMEM_MAX, "net.core.rmem_max", "sysctl net.core.rmem_max=BYTES")                                           \
        ROW(BUSY_READ, "net.core.busy_read", "sysctl net.core.busy_read=MICROSECONDS")                                 \
        ROW(TCP_WMEM, "net.ipv4.tcp_wmem", "sysctl net.ipv4.tcp_wmem='LEAST DEFAULT BYTES'")                           \
        ROW(PORTS, "ports of net.ipv4.ip_local_port_range", "sysctl net.ipv4.ip_local_port_range='FIRST LAST'")        \
        ROW(NPROC, "RLIMIT_NPROC", "LimitNPROC= in the unit, or ulimit -u")                                            \
        ROW(PID_MAX, "kernel.pid_max", "sysctl kernel.pid_max=NUMBER")                                                 \
        ROW(THREADS_MAX, "kernel.threads-max", "sysctl kernel.threads-max=NUMBER")                                     \
        ROW(CGROUP_PIDS, "pids.max of the cgroup", "TasksMax= in the unit")                                            \
        ROW(NOFILE, "RLIMIT_NOFILE", "LimitNOFILE= in the unit, or ulimit -n")                                         \
        ROW(MEMLOCK, "RLIMIT_MEMLOCK", "LimitMEMLOCK= in the unit, or ulimit -l")                                      \
        ROW(ADDRESS_SPACE, "RLIMIT_AS", "LimitAS= in the unit, or ulimit -v")                                          \
        ROW(SHMMAX, "kernel.shmmax", "sysctl kernel.shmmax=BYTES")                                                     \
        ROW(SHMALL, "kernel.shmall", "sysctl kernel.shmall=PAGES")                                                     \
        ROW(SHMMNI, "kernel.shmmni", "sysctl kernel.shmmni=NUMBER")                                                    \
        ROW(HUGETLB_GROUP, "vm.hugetlb_shm_group", "sysctl vm.hugetlb_shm_group=GID")                                  \
        ROW(MSGMAX, "kernel.msgmax", "sysctl kernel.msgmax=BYTES kernel.msgmnb=BYTES")                                 \
        ROW(MSGMNB, "kernel.msgmnb", "sysctl kernel.msgmnb=BYTES")                                                     \
        ROW(MSGMNI, "kernel.msgmni", "sysctl kernel.msgmni=NUMBER")                                                    \
        ROW(MQ_MSG_DEFAULT, "fs.mqueue.msg_default", "sysctl fs.mqueue.msg_default=NUMBER")                            \
        ROW(MQ_MSG_MAX, "fs.mqueue.msg_max", "sysctl fs.mqueue.msg_max=NUMBER")                                        \
        ROW(MQ_MSGSIZE_MAX, "fs.mqueue.msgsize_max", "sysctl fs.mqueue.msgsize_max=BYTES (16777216 at most)")          \
        ROW(MQ_QUEUES_MAX, "fs.mqueue.queues_max", "sysctl fs.mqueue.queues_max=NUMBER")                               \
        ROW(MSGQUEUE, "RLIMIT_MSGQUEUE", "LimitMSGQUEUE=BYTES in the unit, or ulimit -q")                              \
        ROW(PTRACE_SCOPE, "kernel.yama.ptrace_scope",                                                                  \
            "sysctl kernel.yama.ptrace_scope=1 (3 stays until the host is booted again)")

enum host_limit {
#define ROW(id, ...) HOST_##id,
        HOST_LIMITS(ROW)
#undef ROW
                HOST_LIMIT_COUNT
};

extern const struct host_limit_term { const char *name, *raise; } host_limits[HOST_LIMIT_COUNT];

#define LIMIT_SENTENCE_MAX 400u

/* "WHY: NEED needed, NAME is HAVE (to raise it: …)", into ret[LIMIT_SENTENCE_MAX], which it returns. */
const char *limit_sentence(char *ret, enum host_limit limit, uint64_t have, uint64_t need, const char *why);
