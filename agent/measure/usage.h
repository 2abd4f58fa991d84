/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_USAGE_H
#define IPCLAB_AGENT_USAGE_H

/*
 * What a worker did and cost, beside its messages: parts, interruptions, context switches, faults, CPU time,
 * migrations. These are the kernel's own accounts, kept for every thread anyway and read from outside, so that the loop
 * is not disturbed; the perf events of the same names would count the same, at a price (schema/measure/perf.h). What
 * the kernel's threads for the worker's rings (kernel-threads.h) used, waited and were moved is the worker's.
 *
 * Source: man 5 proc (task/TID/stat, status, sched), man 3 pthread_getcpuclockid.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;
struct json_writer;

struct usage {
        uint64_t partial_sends, partial_receives, eagain, eintr;
        uint64_t zerocopy_sends, zerocopy_completions, zerocopy_copied, enobufs;
        uint64_t voluntary_switches, involuntary_switches;
        uint64_t minor_faults, major_faults;
        uint64_t cpu_ns;                   /* exact */
        uint64_t user_ticks, system_ticks; /* how the kernel divides it, in clock ticks */
        uint64_t migrations;
        uint64_t ring_ns;     /* in the kernel's threads for its rings, or for anybody's where that cannot be told */
        int migrations_error; /* errno; 0 = known */
        bool zerocopy;        /* the mode is such that the kernel notifies */
        bool parts_unseen;    /* the engine completes a message by itself, and does not tell in how many parts */
};

/* The counters of a worker since its thread began, with its rings' threads as kernel_threads_look() saw them last. 0;
 * negative errno with a->failure. */
int usage_take(struct agent *a, uint32_t thread, struct usage *ret);
/* *u += what the kernel accounted to a thread of this process since it began: CPU time, switches, faults,
 * migrations. 0 or negative errno. */
int usage_add_thread(struct usage *u, pid_t tid);
/* *into += later - earlier. */
void usage_add(struct usage *into, const struct usage *later, const struct usage *earlier);

/* Members of a counters object under construction: integers; context_switches = voluntary_switches +
 * involuntary_switches, page_faults = minor_faults + major_faults, task_clock_ns = cpu_ns = user_ns + system_ns;
 * zerocopy_… and enobufs only of who sends so. What cannot be told is null, with the reason in NAME_reason. */
void usage_to_json(const struct usage *u, struct json_writer *w);

#endif
