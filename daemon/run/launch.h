/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_LAUNCH_H
#define IPCLAB_DAEMON_LAUNCH_H

/*
 * How the agents of a run come to be, and what they are in: the run's cgroup, IPC namespace and directory, the pipes of
 * their standard error. Owns these from launch_start() to launch_deinit(). The runner makes the links, and decides.
 */

#include "daemon/run/order.h"
#include "daemon/run/runner-host.h"
#include "daemon/run/sandbox/ipcns.h"
#include "daemon/run/sandbox/rundir.h"
#include "daemon/run/watch/agent-link.h"
#include "daemon/run/watch/strays.h"

struct launch_ops {
        /* An agent's process runs; a peer that the first one forks comes later, from the event loop. The handler makes
         * its link of *o, to which it adds its own ops, and which takes descriptor and process over. Negative errno: it
         * has failed the run, and both are still the caller's. */
        int (*begun)(void *userdata, enum end end, struct agent_link_options *o);
        void (*failed)(void *userdata, const char *words);
        void *userdata;
};

struct launch {
        /* set by the owner */
        const struct runner_host *host;
        const struct run_order *order;
        const char *roles[END_COUNT];
        unsigned n_agents;
        const struct message_setup *setups; /* of each agent, complete before the start */
        struct launch_ops ops;

        /* for the owner to read */
        struct cgroup_run *cgroup;                                /* NULL: there is none */
        char cgroup_reason[DETAIL_MAX], ipcns_reason[DETAIL_MAX]; /* why the run has none of its own; "": it has one */
        bool adopts;                                              /* what agents leave behind */
        struct strays strays;                                     /* of the last launch_end_strays() */
        pid_t unmet; /* leads a group with a forked peer whose pid is not known; 0: there is none */

        /* its own */
        struct ipcns ipcns;
        struct agent_output *outputs[END_COUNT];
        int report_fds[END_COUNT]; /* of spawn_report(); -1: none, or the agent is ready */
        pid_t first;               /* 0: it does not run */
        struct {
                int fd; /* of spawn_meet(); -1: no forked peer is to come, or it has */
                sd_event_source *source;
                struct spawn_forked forked;
                struct agent_link_options link; /* control_fd -1: taken over by the link */
        } meeting;
        int run_dir_fd;
        struct rundir_made made;
        sd_event_source *making; /* of rundir_watch() */
        bool removed;
};

/* Leaves what its owner has set. */
void launch_init(struct launch *l);
/* Calls ops.failed, once or more, when something goes wrong. */
void launch_start(struct launch *l);
/* Whether the first agent has yet to fork the second. */
bool launch_is_meeting(const struct launch *l);
/* The agent's program runs: launch_gave_up() is false from now on. */
void launch_ready(struct launch *l, enum end end);
/* Whether an agent that has ended did so before its program began: its step and errno. */
bool launch_gave_up(const struct launch *l, enum end end, struct spawn_error *ret);
/* Kills what the run's cgroup has, and a forked peer that has not been met; the links kill the agents. */
void launch_kill(struct launch *l);
/* When no agent runs any more: kills and reaps some of what they have left where the run has no cgroup. True: nothing
 * is left. */
bool launch_end_strays(struct launch *l);
/* Removes what the agents were in; the first time it waits so long for the cgroup to be empty, or for what they have
 * left without one. */
void launch_deinit(struct launch *l, uint64_t wait_ns);

#endif
