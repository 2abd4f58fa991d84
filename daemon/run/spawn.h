/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SPAWN_H
#define IPCLAB_DAEMON_SPAWN_H

/*
 * Starts one agent: no shell, no path look-up, no privilege, nothing inherited that is not listed here. CPUs and memory
 * policy are in force before the program is executed, so that its first page is already where it belongs.
 */

#include "daemon/run/affinity.h"
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

/* The user `name` when this process is root; "nobody" with a notice in the log when there is no such user. 0; -ENOENT
 * when there is neither. */
int agent_identity_find(const char *name, struct agent_identity *ret);

/* Whether agents are in a group; an agent that changes its user has no supplementary groups (spawn-child.c). */
bool agent_identity_is_in(const struct agent_identity *agents, gid_t group);

struct spawned {
        pid_t pid;
        int pidfd;
};

/* The forked peer: the second of two agents that share memory by descent. schema/protocol/protocol.h describes how the
 * first agent forks it. It inherits everything that is not listed here from the first. */
struct spawn_forked {
        const char *role;
        int control_fd, peer_fd;
        struct affinity affinity;
        enum memory_policy memory;
        struct node_set memory_nodes;
        uint64_t shared_bytes;
        bool huge_pages;
        struct spawned process; /* filled by spawn_agent() */
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

struct spawn_error {
        char step[32]; /* "setresuid", "exec", … */
        int error;
};

/* Returns when the agent has been executed. 0; -ECANCELED when the child gave up, with its step and errno in
 * *ret_error (it has been reaped); another negative errno from the parent's side, with step. */
int spawn_agent(const struct spawn_request *request, struct spawned *ret, struct spawn_error *ret_error);

/* Kills and reaps; a process that is still there after a second is logged, left, and reaped at a later start. */
void spawn_abort(struct spawned *s);

/* The most that agents can get of a resource limit (RLIMIT_*) that is raised for them as far as it goes. Tries the
 * limit and restores it, so it must be called while there is one thread. UINT64_MAX: no limit. */
uint64_t spawn_most(int resource);

#endif
