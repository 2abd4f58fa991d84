/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * All counters of the workers, thread by thread: the kernel's accounting (usage.h) and the hardware's
 * (schema/measure/perf.h). The sampler reads them right after the message counts at the window's start, at each sample
 * and at the window's end, and subtracts; the measured threads take no part in it.
 */

#include "agent/measure/usage.h"
#include "schema/measure/counters.h"

#include <stdint.h>

struct agent;
struct counters;

/* The counters of one thread since its start. */
struct counters_reading {
        struct usage usage;
        struct perf_snapshot perf;
};

/* Opens the available counters of each worker, whose thread exists, from `source`. It is no failure when counters are
 * unavailable (each event of each thread needs a descriptor) or the daemon does not reply; an unexpected message of the
 * daemon is one. 0; negative errno with a->failure. */
int counters_new(struct agent *a, const struct perf_source *source, struct counters **ret);
void counters_free(struct counters *c); /* NULL-safe */
/* Returns the workload's source: the daemon, or none where counting would dominate the measurement. */
struct perf_source counters_source(struct agent *a);

int counters_read(struct counters *c, uint32_t thread, struct counters_reading *ret); /* as counters_new() */
/* *into += later - earlier. The hardware counters are unknown where the kernel's threads for the rings worked in that
 * time. */
void counters_add(struct counters_totals *into, const struct counters_reading *later,
                  const struct counters_reading *earlier);
