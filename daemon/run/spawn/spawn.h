/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Starts one agent: no shell, no path look-up, no privilege, nothing inherited that is not listed here. CPUs and memory
 * policy are in force before the program is executed, so that its first page is already where it belongs.
 */

#include "daemon/run/spawn/spawn-request.h"

#include <stdbool.h>
#include <sys/types.h>

/* The user `name` when this process is root; "nobody" with a notice in the log when there is no such user. 0; -ENOENT
 * when there is neither. */
int agent_identity_find(const char *name, struct agent_identity *ret);

/* Whether agents are in a group; an agent that changes its user has no supplementary groups (spawn-child.c). */
bool agent_identity_is_in(const struct agent_identity *agents, gid_t group);

struct spawned {
        pid_t pid;
        int pidfd;
};

struct spawn_error {
        char step[32]; /* "setresuid", "exec", … */
        int error;
};

/* A process that has been made. It may not have executed its program yet: another process of the agents' user can stop
 * it at any time, so nothing waits for it here. */
struct spawn_start {
        struct spawned process;
        int report_fd;  /* for spawn_report() */
        int meeting_fd; /* for spawn_meet(), when it is readable; -1: no forked peer */
};

/* 0, or negative errno with the step in *ret_error. */
int spawn_agent(const struct spawn_request *request, struct spawn_start *ret, struct spawn_error *ret_error);

/* Why the process has ended before it executed its program: -ECANCELED, with its step and errno. 0: it has executed it,
 * or has not come to an end. */
int spawn_report(int report_fd, struct spawn_error *ret);

/* Receives the pid of the forked peer, checks it and sends its placement. 0; -EAGAIN; -EPIPE: none will come, and the
 * first agent has its own reason; -ECANCELED when the first agent could not fork it, with its step and errno; another
 * negative errno, with step. After a failure the peer may exist: spawn_kill_group(). */
int spawn_meet(int meeting_fd, pid_t first, const struct spawn_forked *forked, struct spawned *ret,
               struct spawn_error *ret_error);

/* Kills a first agent and what it has forked. */
void spawn_kill_group(pid_t first);

/* Reaps children that nothing watches, such as a forked peer that was not met, for at most some 10 ms. To be called
 * when no agent runs, as it would take the status of one. True: no child is left. */
bool spawn_reap_strays(void);

/* Kills and reaps; a process that is still there after a second is logged, and left to spawn_reap_strays(). */
void spawn_abort(struct spawned *s);

/* The limits that clone(2) may mean by its error, as words behind it, in parentheses; "" where it means none. */
const char *spawn_limits_meant(int error);

/* The most that agents can get of a resource limit (RLIMIT_*) that is raised for them as far as it goes. Tries the
 * limit and restores it, so it must be called while there is one thread. UINT64_MAX: no limit. */
uint64_t spawn_most(int resource);
