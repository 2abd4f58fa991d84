/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SPAWN_CHILD_H
#define IPCLAB_DAEMON_SPAWN_CHILD_H

/* The child's side of spawn.c, from clone to exec. */

#include "daemon/run/spawn-request.h"

struct spawn_child {
        const struct spawn_request *request;
        pid_t parent;
        int report_fd; /* takes a struct spawn_failure; closed by exec */
        int null_fd;
        int forked_fd;         /* becomes AGENT_FORKED_REPORT_FD; -1: no forked peer */
        char shared_bytes[24]; /* as text, for the argument of the forked peer */
        int cgroup_fd;         /* the child must join it; -1: it is in it already */
        uint64_t tasks_max;    /* of the agents' user (RLIMIT_NPROC); 0: as the daemon */
};

enum spawn_step {
        STEP_CGROUP,
        STEP_DESCRIPTORS,
        STEP_SIGNALS,
        STEP_LIMITS,
        STEP_AFFINITY,
        STEP_MEMORY_POLICY,
        STEP_USER_NAMESPACE,
        STEP_IPC_NAMESPACE,
        STEP_CAPABILITY_BOUND,
        STEP_GROUPS,
        STEP_GID,
        STEP_UID,
        STEP_NOT_DUMPABLE,
        STEP_CAPABILITIES,
        STEP_NO_NEW_PRIVILEGES,
        STEP_PARENT_DEATH,
        STEP_DIRECTORY,
        STEP_EXEC,
        STEP_COUNT,
};

struct spawn_failure {
        int step, error;
};

const char *spawn_step_name(int step);

/* Async-signal-safe: the daemon has other threads, whose locks may be held for ever in this copy. */
_Noreturn void spawn_child_main(const struct spawn_child *c);

#endif
