/* SPDX-License-Identifier: MIT */
#pragma once

/* What an agent is started with. */

#include "daemon/run/spawn/affinity.h"
#include "schema/protocol/protocol.h"

#include <stdbool.h>
#include <sys/types.h>

/* The user that agents run as. Without `change` they run as the daemon, which is no more than a user itself. */
struct agent_identity {
        bool change;
        uid_t uid;
        gid_t gid;
        char name[33];
        char trouble[160]; /* why no agent can run as this user; "": agents can */
};

/* The forked peer: the second of two agents that share memory by descent. schema/protocol/protocol.h describes how the
 * first agent forks it. It inherits everything that is not listed here from the first. */
struct spawn_forked {
        const char *role;
        int control_fd, peer_fd;
        struct affinity affinity;
        enum memory_policy memory;
        struct node_set memory_nodes;
        bool numa; /* as in struct spawn_request */
        uint64_t shared_bytes;
        bool huge_pages;
};

struct spawn_request {
        int program_fd; /* the agent, O_PATH or O_RDONLY */
        const char *role;
        int control_fd, peer_fd, run_dir_fd; /* become AGENT_*_FD; peer_fd -1: none */
        int stderr_fd;                       /* of agent_output_new(); -1: /dev/null */
        int cgroup_fd;                       /* -1: none */
        int ipc_ns_fd, user_ns_fd;           /* -1: none */
        uint64_t file_bytes;                 /* no file may be longer (RLIMIT_FSIZE); 0: not limited */
        struct agent_identity identity;
        struct affinity affinity;
        enum memory_policy memory;
        struct node_set memory_nodes;
        bool numa;                   /* false: a kernel without memory policies; the policy is not set */
        struct spawn_forked *forked; /* NULL: the agent starts alone */
};
