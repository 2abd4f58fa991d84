/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_LIMITS_H
#define IPCLAB_SCHEMA_LIMITS_H

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

enum host_limit {
        HOST_PIPE_MAX_SIZE,
        HOST_PIPE_USER_PAGES,
        HOST_WMEM_MAX,
        HOST_RMEM_MAX,
        HOST_BUSY_READ,
        HOST_TCP_WMEM,
        HOST_PORTS,
        HOST_NPROC,
        HOST_PID_MAX,
        HOST_THREADS_MAX,
        HOST_CGROUP_PIDS,
        HOST_NOFILE,
        HOST_MEMLOCK,
        HOST_ADDRESS_SPACE,
        HOST_SHMMAX,
        HOST_SHMALL,
        HOST_SHMMNI,
        HOST_HUGETLB_GROUP,
        HOST_MSGMAX,
        HOST_MSGMNB,
        HOST_MSGMNI,
        HOST_MQ_MSG_DEFAULT,
        HOST_MQ_MSG_MAX,
        HOST_MQ_MSGSIZE_MAX,
        HOST_MQ_QUEUES_MAX,
        HOST_MSGQUEUE,
        HOST_PTRACE_SCOPE,
        HOST_LIMIT_COUNT,
};

/* name: as sysctl(8), getrlimit(2) or cgroups(7) have it. raise: what a person does. Units are in `raise`. */
extern const struct host_limit_term { const char *name, *raise; } host_limits[HOST_LIMIT_COUNT];

#define LIMIT_SENTENCE_MAX 400u

/* "WHY: NEED needed, NAME is HAVE (to raise it: …)", into ret[LIMIT_SENTENCE_MAX], which it returns. */
const char *limit_sentence(char *ret, enum host_limit limit, uint64_t have, uint64_t need, const char *why);

#endif
