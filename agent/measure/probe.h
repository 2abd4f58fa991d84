/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calibration probe (schema/measure/probe.h) as a worker takes it, in its own thread, on its own CPU. The ends take
 * turns: first getpid and memcpy at the first end while the other sleeps, then at the second; then, together, the
 * hand-over of a cache line, the difference of their clocks, and the wake-ups. They synchronize in a page of shared
 * memory with a limit on every wait: an end that does not respond, or whose CPU others have, leaves the probe
 * incomplete and neither hangs nor fails the run.
 *
 * Each end's part begins with some uncounted milliseconds, in which an idle CPU raises its clock.
 */

#include "schema/measure/probe.h"

#include <stdbool.h>

#define PROBE_PAGE_BYTES 4096u

/* More than the duration of a probe whose every wait ends at its limit: its thread has had no CPU. */
#define PROBE_LONGEST_NS UINT64_C(6000000000)

struct probe_page; /* PROBE_PAGE_BYTES of zeros, shared by the two ends */

struct probe_order {
        struct probe_page *page; /* NULL: the run has one end, or there is no memory */
        bool no_memory;          /* for a page, although there are two ends: only one of them takes its probe now */
        bool second;             /* this is the second end */
        uint32_t thread;         /* 0 takes all of it; another one, without a page, what is its CPU's alone */
        uint32_t pass;           /* from 0, the same at both ends: how many probes were taken with this page before */
};

/* Takes a probe. What it has no memory for is absent. */
void probe_take(const struct probe_order *order, struct probe *ret);
