/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The open loop: message n of a thread is due at start + n / rate, regardless of those before it. A late sender sends
 * at once and omits nothing, and latency counts from the due time, so that a stall adds to the latency of every message
 * that it delayed (this avoids coordinated omission). The threads' schedules are evenly offset within the interval
 * between two messages, so that together they send at a constant rate and not in bursts, whose queueing would count as
 * the mechanism's latency. Both ends know start, rate and threads, so the receiver of a stream needs no time stamp in
 * the message.
 */

#include "agent/base/agent.h"
#include "schema/util.h"

#include <stdint.h>

#define PACE_SPIN_NS (60 * NSEC_PER_USEC) /* a sleeper may wake late by up to this time */

struct effective;

/* The due time of the thread's n-th message since the start of the loop. Exact to a nanosecond for a day: n / rate
 * stays below 2^53 ns. */
static inline uint64_t pace_due(const struct worker *w, uint64_t n) {
        return w->start_ns + (uint64_t) ((double) n * w->pace_ns + w->pace_offset_ns);
}

/*
 * Sleeps until due_ns, and spins for the last microseconds; returns at once when due_ns has passed. 0; WORKER_STOP when
 * the loop ends first.
 *
 * Each turn of the spin yields the CPU. At a high rate the thread only spins between two messages, and the other end
 * may share its CPU: without the yield it would run only after a whole time slice, which would be the latency. The
 * placement does not show whether CPUs are shared (threads may outnumber CPUs, or roam), so the spin always yields.
 * Where no other thread is runnable, the message is sent some tenths of a microsecond after its due time, which its
 * latency includes.
 *
 * A thread that serves both directions of a connection waits likewise, and also for incoming bytes (tcp/loops.h).
 */
int pace_wait(struct worker *w, uint64_t due_ns);

/* Adds rows on how this end waits, where it has a rate. */
void pace_effective(const struct agent *a, struct effective *e);

/* Records the latency of a message that was due at due_ns and is complete now. */
void pace_record(struct worker *w, uint64_t due_ns);
