/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How far the clocks of a run's two ends may differ, from the round trips of both of its probes
 * (schema/measure/probe.h). What lies within the bounds of each holds at the two probes. For the window between them it
 * holds where threads 0 are pinned to one CPU each: one that may roam can have been on another meanwhile. A probe
 * during which a thread moved is of more CPUs than two, and bounds nothing.
 */

#include "schema/measure/probe.h"
#include "schema/terms.h"

struct clock_offset {
        const char *reason;      /* static; why there are no bounds; NULL: there are */
        int64_t low_ns, high_ns; /* of the second end's clock minus the first's */
        unsigned probes;         /* that they are of, 1 or 2 */
};

/* probes: NULL: that end sent none at that time. */
struct clock_offset clock_offset_of(const struct probe *const probes[PROBE_TIMES][END_COUNT]);
