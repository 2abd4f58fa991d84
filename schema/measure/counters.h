/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Counters of threads over an interval, beside their messages: the kernel's accounts and the hardware's events
 * (perf.h). The agent counts and sends these structs; the daemon calculates with them and makes the JSON.
 */

#include "schema/measure/perf.h"

#include <stdbool.h>
#include <stdint.h>

struct json_writer;

/* Parts, interruptions, zero-copy notifications, switches, faults, CPU time and migrations (agent/measure/usage.h). All
 * members up to the error are counters. */
struct usage {
        uint64_t partial_sends, partial_receives, eagain, eintr;
        uint64_t zerocopy_sends, zerocopy_completions, zerocopy_copied, enobufs;
        uint64_t voluntary_switches, involuntary_switches;
        uint64_t minor_faults, major_faults;
        uint64_t cpu_ns;                   /* exact */
        uint64_t user_ticks, system_ticks; /* how the kernel divides it, in clock ticks */
        uint64_t migrations;
        uint64_t ring_ns;     /* in the kernel's threads for its rings, or for all rings where these are not known */
        int migrations_error; /* errno; 0 = known */
        bool zerocopy;        /* the mode is such that the kernel notifies */
        bool parts_unseen;    /* the engine completes a message by itself, and does not report in how many parts */
};
#define USAGE_COUNT_MAX (UINT64_C(1) << 60) /* upper bound of each: a thousand threads in a day stay below it */

struct counters_totals {
        struct usage usage;
        struct perf_totals perf;
};

/* *into += later - earlier. */
void usage_add(struct usage *into, const struct usage *later, const struct usage *earlier);

/* Members of a counters object under construction: integers; context_switches = voluntary_switches +
 * involuntary_switches, page_faults = minor_faults + major_faults, task_clock_ns = cpu_ns = user_ns + system_ns;
 * zerocopy_… and enobufs only of senders without copying. An unknown member is null, with NAME_reason beside it. */
void usage_to_json(const struct usage *u, struct json_writer *w);

/* The "counters" object of a sample, a thread or a run, as the next value of one under construction. */
void counters_put(struct json_writer *w, const struct counters_totals *t);
/* The same as text; malloc()ed. 0; -ENOMEM. */
int counters_to_json(const struct counters_totals *t, char **ret);
