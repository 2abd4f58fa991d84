/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PHASES_H
#define IPCLAB_AGENT_PHASES_H

/*
 * Warm-up, window and end of a workload with two ends, in step with the other agent.
 *
 * A window that time ends is cut out of one continuous loop: the leader takes the counters at its start and its end,
 * and the loop knows nothing of it. A window that a count ends is a loop of its own, begun by both ends at the same
 * instant after the warm-up's messages have all arrived. Either way both ends agree at last on how many messages were
 * sent, and a difference is an error: nothing here loses messages.
 */

#include <stdbool.h>
#include <stdint.h>

struct agent;

/* Whether this end's messages are the run's: the first end's, but for a stream upwards. It stops first, and tells how
 * many there were. */
bool phases_sends(const struct agent *a);
/* Whether streams go both ways at once: each worker sends and receives, and counts as messages what it received. */
bool phases_duplex(const struct agent *a);

/* A workload's run(): see workload.h. Fills a->window. */
int phases_run(struct agent *a, uint64_t start_ns);

#endif
