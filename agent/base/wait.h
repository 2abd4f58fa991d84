/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one place where the leader sleeps, so that it detects a worker's failure, the peer's death and the daemon's end
 * in every phase of a run; and the sending side of the control socket. The leader's thread alone calls it.
 */

#include "agent/base/agent.h"
#include "schema/util.h"

#define AGENT_RENDEZVOUS_NS (10 * NSEC_PER_SEC) /* for each step of the set-up */
#define AGENT_THREAD_NS (20 * NSEC_PER_MSEC)    /* added for each thread, in a step that each thread takes */
#define AGENT_SEND_NS (5 * NSEC_PER_SEC)        /* in which the daemon reads nothing of what was sent to it */

/* The events that agent_wait() may return for, besides the time. */
#define WAIT_WORKERS 1u /* all workers are at rest */
#define WAIT_PEER 2u    /* a packet of the peer can be received */
#define WAIT_CONTROL 4u /* a packet of the daemon can be received */

/* The clock of all the leader's deadlines: CLOCK_MONOTONIC in ns. */
uint64_t agent_now_ns(void);

/* Sleeps until the time or one of `interest`; sends `alive` at intervals. Returns the events (0: the time); negative
 * errno with a->failure when a worker failed, the peer has closed its channel, or the daemon sent an unexpected
 * message; -ECONNRESET with a->daemon_gone when the daemon closed the control socket. */
int agent_wait(struct agent *a, uint64_t until_ns, unsigned interest);

/* Bytes that the daemon has not read of the control socket, as the kernel counts their memory; negative errno. */
int64_t agent_unread(const struct agent *a);

/* Sends one packet to the daemon. Waits for room as long as the daemon reads what is before it. 0; negative errno with
 * a->failure, and as above. */
int agent_send(struct agent *a, const struct message *m);

/* To be called when the daemon has closed the control socket. Sets a->daemon_gone and a->failure; returns
 * -ECONNRESET. */
int agent_orphaned(struct agent *a);
