/* SPDX-License-Identifier: MIT */
#pragma once

/* The child's side of spawn.c, from clone to exec. */

#include "daemon/run/spawn/spawn-request.h"

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

#define SPAWN_STEPS(ROW)                                                                                               \
        ROW(CGROUP, "enter cgroup")                                                                                    \
        ROW(DESCRIPTORS, "descriptors")                                                                                \
        ROW(SIGNALS, "signals")                                                                                        \
        ROW(LIMITS, "resource limits")                                                                                 \
        ROW(AFFINITY, "sched_setaffinity")                                                                             \
        ROW(MEMORY_POLICY, "set_mempolicy")                                                                            \
        ROW(USER_NAMESPACE, "enter user namespace")                                                                    \
        ROW(IPC_NAMESPACE, "enter IPC namespace")                                                                      \
        ROW(CAPABILITY_BOUND, "drop bounding set")                                                                     \
        ROW(GROUPS, "setgroups")                                                                                       \
        ROW(GID, "setresgid")                                                                                          \
        ROW(UID, "setresuid")                                                                                          \
        ROW(NOT_DUMPABLE, "PR_SET_DUMPABLE")                                                                           \
        ROW(CAPABILITIES, "drop capabilities")                                                                         \
        ROW(NO_NEW_PRIVILEGES, "no_new_privs")                                                                         \
        ROW(PARENT_DEATH, "parent death signal")                                                                       \
        ROW(DIRECTORY, "chdir")                                                                                        \
        ROW(EXEC, "exec")

enum spawn_step {
#define ROW(id, name) STEP_##id,
        SPAWN_STEPS(ROW)
#undef ROW
                STEP_COUNT
};

struct spawn_failure {
        int step, error;
};

const char *spawn_step_name(int step);

/* Async-signal-safe: the daemon has other threads, whose locks may be held for ever in this copy. */
_Noreturn void spawn_child_main(const struct spawn_child *c);
