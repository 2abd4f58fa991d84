/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RUNNER_HOST_H
#define IPCLAB_DAEMON_RUNNER_HOST_H

/*
 * What runs need of the machine and of the daemon. The scheduler has it, and lends it to every run.
 */

#include "daemon/admission/queues.h"
#include "daemon/host/environment/build.h"
#include "daemon/placement/placement.h"
#include "daemon/run/spawn/spawn.h"
#include "schema/detail.h"

#include <systemd/sd-event.h>

struct cgroup_tree;
struct rundir_root;

/* The resources of the machine that runs need: made once by main, lent to every run. */
struct runner_host {
        sd_event *event;
        int program_fd; /* the agent */
        struct agent_identity identity;
        struct cgroup_tree *cgroups;    /* NULL: not available */
        char cgroup_reason[DETAIL_MAX]; /* why not */
        struct rundir_root *rundirs;
        struct affinity affinity;  /* initial CPUs of the daemon and of unpinned agents: affinity_initial() */
        struct topology *topology; /* read again by the scheduler alone, between runs */
        struct queue_host queues;  /* the limits of runs' message queues */
        const char *root;          /* "" or a captured tree; NULL: "" */
        struct build build;
};

#endif
