/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RUNNER_H
#define IPCLAB_DAEMON_RUNNER_H

/*
 * One run, from its agents' start to the last trace of them removed. The scheduler makes one at a time, gets its
 * samples and its verdict. The runner knows neither the store nor the queue.
 */

#include "daemon/admission/queues.h"
#include "daemon/host/build.h"
#include "daemon/placement/placement.h"
#include "daemon/run/order.h"
#include "daemon/run/spawn.h"
#include "daemon/store/records.h"
#include "schema/detail.h"

#include <systemd/sd-event.h>

struct cgroup_tree;
struct rundir_root;
struct runner;

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

struct runner_ops {
        /* Takes the sample over. */
        void (*sample)(void *userdata, struct sample_record *sample);
        /* The last call, from the event loop: nothing of the run is left. The verdict is taken over; the runner may be
         * freed. */
        void (*ended)(void *userdata, struct run_verdict *verdict);
};

/* A run that cannot even start ends through ops->ended, too. 0; -ENOMEM or the event loop's errno. */
int runner_new(struct runner **ret, const struct runner_host *host, const struct run_order *order,
               const struct runner_ops *ops, void *userdata);
/* Ends it as cancelled or interrupted; ops->ended follows. `words` go to the run's error, NULL for none. */
void runner_stop(struct runner *r, enum state as, const char *words);
/* Kills agents that are still alive. NULL-safe. */
void runner_free(struct runner *r);

#endif
