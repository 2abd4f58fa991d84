/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PACE_H
#define IPCLAB_AGENT_PACE_H

/*
 * The open loop: message n of a thread is due at start + n / rate, whatever became of those before it. A sender that is
 * late sends at once and leaves nothing out, and latency counts from the time that was intended, so that a stall is
 * paid for by every message that it delayed (what is known as coordinated omission does not happen). Threads begin one
 * after the other, evenly spread over the time from one message to the next, so that all of them together send one
 * every so often and not one each at once: bursts would queue, here and there, and be taken for the mechanism's
 * latency. Both ends know start, rate and threads, so the receiver of a stream needs no time stamp in the message.
 */

#include "agent/base/agent.h"
#include "schema/util.h"

#include <stdint.h>

#define PACE_SPIN_NS (60 * NSEC_PER_USEC) /* a sleeper wakes late by up to so much */

struct json_writer;

/* When the thread's n-th message since the loop began is due. Exact to a nanosecond for a day: n / rate stays below
 * 2^53 ns. */
static inline uint64_t pace_due(const struct worker *w, uint64_t n) {
        return w->start_ns + (uint64_t) ((double) n * w->pace_ns + w->pace_offset_ns);
}

/*
 * Sleeps, and for the last microseconds spins, until then; not at all when it is past. 0; WORKER_STOP when the loop is
 * over first.
 *
 * The spin gives the CPU away at each turn. At a high rate nothing but that spin is left between two messages, and the
 * other end may have no other CPU: it would get this one when the scheduler takes it, and the latency would be a time
 * slice. Placement does not tell (threads may outnumber CPUs, or roam), so it is done always; where nobody else wants
 * the CPU the message goes out some tenths of a microsecond later, and late by the schedule, so that it is counted.
 *
 * A thread that serves both directions of a connection waits likewise, but for what comes, too (tcp-loops.h).
 */
int pace_wait(struct worker *w, uint64_t due_ns);

/* Says in an object under way how this end waits, where it does. */
void pace_effective(const struct agent *a, struct json_writer *w);

/* Counts a message that was due then and is there now. */
void pace_record(struct worker *w, uint64_t due_ns);

#endif
