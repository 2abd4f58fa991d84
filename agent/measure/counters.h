/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_COUNTERS_H
#define IPCLAB_AGENT_COUNTERS_H

/*
 * All counters of the workers, thread by thread: the kernel's accounts (usage.h) and the hardware's
 * (schema/measure/perf.h). The sampler reads them right after the message counts at the window's begin, at each sample
 * and at its end, and subtracts; the measured threads do nothing for it.
 */

#include "agent/measure/usage.h"
#include "schema/measure/counters.h"

#include <stdint.h>

struct agent;
struct counters;

/* One thread, since it began. */
struct counters_reading {
        struct usage usage;
        struct perf_snapshot perf;
};

/* Opens what can be had for each worker, from `source`. The threads exist. What cannot be had, up to a descriptor for
 * each event of a thousand threads, is no failure, nor is a daemon that gives no answer; one that says something else
 * is. 0; negative errno with a->failure. */
int counters_new(struct agent *a, const struct perf_source *source, struct counters **ret);
void counters_free(struct counters *c); /* NULL-safe */
/* The source for the workload: the daemon, or none where counting would be what is measured. */
struct perf_source counters_source(struct agent *a);

int counters_read(struct counters *c, uint32_t thread, struct counters_reading *ret); /* as counters_new() */
/* *into += later - earlier. The hardware's are unknown where the kernel's threads for the rings worked meanwhile. */
void counters_add(struct counters_totals *into, const struct counters_reading *later,
                  const struct counters_reading *earlier);

#endif
