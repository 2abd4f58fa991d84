/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_STOPS_H
#define IPCLAB_AGENT_STOPS_H

/*
 * How long this agent stood still: a signal or a freezer stopped it, or the machine itself stood still. The leader's
 * sleeps end at known times. What one of them lasted longer, and the leader did not wait for a CPU in (schedstat), is a
 * stop, unless the workers moved messages meanwhile: then only the leader's CPU stood still, as that of a virtual
 * machine may.
 *
 * Source: Documentation/scheduler/sched-stats.rst (/proc/PID/task/TID/schedstat: the second number).
 */

#include <stdbool.h>
#include <stdint.h>

/* Shorter ones do not count: a twentieth of a second, as of every other disturbance. One that lies between the ends of
 * two sleeps is not noticed, so that every stop of two tenths of a second is, and of one tenth every second one. */
#define STOP_LEAST_NS (50 * NSEC_PER_MSEC)

struct stops {
        int fd; /* schedstat of the leader; negative errno: there is none, and no stop is known */
        uint64_t begin_ns, waited_ns, messages; /* when the sleep began */
        double rate;                            /* messages in a nanosecond of the sleep before; 0: not known */
        uint64_t total_ns;
};

/* To be called by the thread whose sleeps these are. */
void stops_begin(struct stops *s);
void stops_end(struct stops *s);

/* Around each sleep, with the messages of all workers. paced: they come by a schedule, and what a stop delayed comes at
 * once behind it. */
void stops_sleep(struct stops *s, uint64_t now_ns, uint64_t messages);
void stops_wake(struct stops *s, uint64_t due_ns, uint64_t now_ns, uint64_t messages, bool paced);

#endif
