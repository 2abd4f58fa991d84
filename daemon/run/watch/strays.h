/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an agent leaves behind where no cgroup holds it, or outside its cgroup: the child of a child that has ended
 * has another parent, and lives on. The daemon adopts such processes (PR_SET_CHILD_SUBREAPER), and kills and reaps them
 * at the run's end.
 *
 * A stray is a child of this process that has begun since strays_adopt(), is of the agents' user and may gain no
 * privilege (no_new_privs), as all that an agent makes. Others are left alone: process 1 of a container adopts whatever
 * the container's other processes leave, and a program that was executed in place of another one has its children.
 */

#include "daemon/run/spawn/spawn.h"

#define STRAYS_KILLS_MAX 64u /* of one call */

/* What the last look has found. */
struct strays {
        unsigned n;    /* alive; of those that were looked at */
        pid_t pid;     /* one of them */
        char name[16]; /* its command's */
};

/* Before the first agent that has no cgroup. 0; negative errno: orphans are others', or the kernel lists no children
 * (CONFIG_PROC_CHILDREN). */
int strays_adopt(void);

/* Kills and reaps some, for at most some 20 ms. To be called by the main thread when no agent runs, until it returns
 * true: none was alive. */
bool strays_end(const struct agent_identity *agents, struct strays *ret);
