/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_LEADER_H
#define IPCLAB_AGENT_LEADER_H

/*
 * The leader thread: speaks with the daemon, sleeps for everybody, notices who is gone.
 */

#include "agent/script/agent.h"
#include "schema/util.h"

#define LEADER_RENDEZVOUS_NS (10 * NSEC_PER_SEC) /* for each step of the way to ready */
#define LEADER_THREAD_NS (20 * NSEC_PER_MSEC)    /* and of a step that each thread takes, so much more for each */
#define LEADER_START_NS (60 * NSEC_PER_SEC)      /* from ready to start: the other agent may be slower */
#define LEADER_SEND_NS (5 * NSEC_PER_SEC)        /* for the daemon to take a packet */
#define LEADER_CLOSE_NS (60 * NSEC_PER_SEC)      /* from report to the daemon's hanging up */
#define LEADER_ALIVE_NS (500 * NSEC_PER_MSEC)

/* What leader_wait() may return for, beside the time. */
#define LEADER_WORKERS 1u /* all workers are at rest */
#define LEADER_PEER 2u    /* a packet of the peer is there */
#define LEADER_CONTROL 4u /* a packet of the daemon is there */

/* Sleeps until the time or one of `interest`, telling the daemon now and then that the agent lives. Returns what came
 * (0: the time); negative errno with a->failure when a worker failed, the peer is gone, or the daemon spoke out of
 * turn. Does not return when the daemon is gone: the process ends. */
int leader_wait(struct agent *a, uint64_t until_ns, unsigned interest);

/* One packet to the daemon. 0; negative errno with a->failure. */
int leader_say(struct agent *a, const struct message *m);

/* The thread. Returns NULL when all went well; ends the process when not. userdata: struct agent. */
void *leader_main(void *userdata);

#endif
