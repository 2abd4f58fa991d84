/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_USAGE_H
#define IPCLAB_AGENT_USAGE_H

/*
 * What the workers did and cost during the window, beside their messages: parts, interruptions, context switches,
 * faults, CPU time, migrations. Read from outside, so that the loop is not disturbed, right after the snapshots that
 * begin and end the window.
 *
 * Source: man 5 proc (task/TID/stat, status, sched), man 3 pthread_getcpuclockid.
 */

#include <stdint.h>

struct agent;
struct json_writer;

struct usage {
        uint64_t partial_sends, partial_receives, eagain, eintr;
        uint64_t voluntary_switches, involuntary_switches;
        uint64_t minor_faults, major_faults;
        uint64_t cpu_ns;                   /* exact */
        uint64_t user_ticks, system_ticks; /* how the kernel divides it, in clock ticks */
        uint64_t migrations;
        int migrations_error; /* errno; 0 = known */
};

/* All workers' counters since their threads began, summed. 0; negative errno with a->failure. */
int usage_take(struct agent *a, struct usage *ret);
/* *ret = later - earlier. */
void usage_subtract(struct usage *ret, const struct usage *later, const struct usage *earlier);

/* report.counters, a JSON object: integers; cpu_ns = user_ns + system_ns. What cannot be told is null, with the reason
 * in NAME_reason. */
void usage_put(struct json_writer *w, const struct usage *u);
int usage_to_json(struct agent *a, char **ret); /* of the window; malloc()ed. 0; negative errno with a->failure */

#endif
