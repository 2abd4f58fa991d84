/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Warm-up, window and end of a run, in step with the other agent where there is one.
 *
 * A window that a duration ends is a part of one continuous loop: the leader reads the counters at its start and its
 * end, and the loop is not affected. A window that a count ends is a loop of its own, which both ends begin at the same
 * instant after all of the warm-up's messages have been received. Either way both ends compare the number of messages
 * at the end, and a difference is an error: no transport loses messages.
 */

#include <stdint.h>

struct agent;
struct window;

/* Called by the leader: runs all phases from start_ns on; *ret has the totals of the window. 0; negative errno with
 * a->failure. */
int phases_run(struct agent *a, uint64_t start_ns, struct window *ret);
