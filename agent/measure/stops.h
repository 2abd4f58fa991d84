/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How long this agent stood still: a signal or a freezer stopped it, or the machine itself stood still. The leader's
 * sleeps end at known times. What one of them lasted longer, and the leader did not wait for a CPU in (schedstat), is a
 * stop, unless the process used more CPU time than its threads can in the time before: then only the leader's CPU stood
 * still, as that of a virtual machine may.
 *
 * Source: Documentation/scheduler/sched-stats.rst (/proc/PID/task/TID/schedstat: the second number).
 */

#include <stdint.h>

/* Shorter ones do not count: a twentieth of a second, as of every other disturbance. One that lies between the ends of
 * two sleeps is not noticed, so that every stop of two tenths of a second is, and of one tenth every second one. */
#define STOP_LEAST_NS (50 * NSEC_PER_MSEC)

struct stops {
        int fd;             /* schedstat of the leader; negative errno: there is none, and no stop is known */
        uint32_t n_threads; /* that work, besides the leader */
        uint64_t begin_ns, waited_ns, cpu_ns; /* when the sleep began */
        uint64_t total_ns;
        uint64_t last_end_ns, last_ns; /* of the last stop: when it ended, and how long it was */
};

/* To be called by the thread whose sleeps these are. */
void stops_begin(struct stops *s, uint32_t n_threads);
void stops_end(struct stops *s);

/* Around each sleep. */
void stops_sleep(struct stops *s, uint64_t now_ns);
void stops_wake(struct stops *s, uint64_t due_ns, uint64_t now_ns);

/* The total of what was before this moment, which lies after all stops but the last. */
uint64_t stops_until(const struct stops *s, uint64_t at_ns);
