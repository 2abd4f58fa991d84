/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A worker's activity and cost besides its messages: parts, interruptions, context switches, faults, CPU time,
 * migrations. The kernel maintains these counters for every thread in any case, and they are read from outside, so that
 * the loop is not disturbed; the perf events of the same names would count the same, at a cost (schema/measure/perf.h).
 * CPU time, switches and migrations of the kernel's threads for the worker's rings (kernel-threads.h) are included.
 */

#include "schema/measure/counters.h"

#include <stdint.h>

struct agent;

/* The counters of a worker since its thread began (CPU time: in its loops), with its rings' threads as of the last
 * kernel_threads_scan(). 0; negative errno with a->failure. */
int usage_take(struct agent *a, uint32_t thread, struct usage *ret);
