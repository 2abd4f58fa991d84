/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PHASES_H
#define IPCLAB_AGENT_PHASES_H

/*
 * Warm-up, window and end of a run, in step with the other agent where there is one.
 *
 * A window that time ends is cut out of one continuous loop: the leader takes the counters at its start and its end,
 * and the loop knows nothing of it. A window that a count ends is a loop of its own, begun by both ends at the same
 * instant after the warm-up's messages have all arrived. Either way both ends agree at last on how many messages were
 * sent, and a difference is an error: nothing here loses messages.
 */

#include <stdint.h>

struct agent;
struct window;

/* The leader: everything from start_ns to the totals of the window in *ret. 0; negative errno with a->failure. */
int phases_run(struct agent *a, uint64_t start_ns, struct window *ret);

#endif
