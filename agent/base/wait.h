/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_WAIT_H
#define IPCLAB_AGENT_WAIT_H

/*
 * The one place where the leader sleeps, so that a worker's failure, the peer's death and the daemon's end are noticed
 * wherever the run is; and the sending side of the control socket. In the leader's thread only.
 */

#include "agent/base/agent.h"
#include "schema/util.h"

#define AGENT_RENDEZVOUS_NS (10 * NSEC_PER_SEC) /* for each step of the way to ready */
#define AGENT_THREAD_NS (20 * NSEC_PER_MSEC)    /* and of a step that each thread takes, so much more for each */
#define AGENT_SEND_NS (5 * NSEC_PER_SEC)        /* for the daemon to take a packet */

/* What agent_wait() may return for, beside the time. */
#define WAIT_WORKERS 1u /* all workers are at rest */
#define WAIT_PEER 2u    /* a packet of the peer is there */
#define WAIT_CONTROL 4u /* a packet of the daemon is there */

/* The clock of all the leader's deadlines: CLOCK_MONOTONIC in ns. */
uint64_t agent_now_ns(void);

/* Sleeps until the time or one of `interest`; sends `alive` now and then. Returns what came (0: the time); negative
 * errno with a->failure when a worker failed, the peer is gone, or the daemon sent something unexpected; -ECONNRESET
 * with a->daemon_gone when the daemon closed the control socket. */
int agent_wait(struct agent *a, uint64_t until_ns, unsigned interest);

/* One packet to the daemon. 0; negative errno with a->failure, and as above. */
int agent_send(struct agent *a, const struct message *m);

/* The daemon has closed the control socket. Sets a->daemon_gone and a->failure; returns -ECONNRESET. */
int agent_orphaned(struct agent *a);

#endif
