/* SPDX-License-Identifier: MIT */

/* See clock-offset.h. Called by the runner. */

#include "daemon/result/clock-offset.h"

#include <stdbool.h>

/* NULL: each thread that took a probe had one CPU, the same at both times. Where it was between them does not matter.
 */
static const char *why_elsewhere(const struct probe *const probes[PROBE_TIMES][END_COUNT]) {
        for (int end = 0; end < END_COUNT; end++) {
                const struct probe *before = probes[PROBE_BEFORE][end], *after = probes[PROBE_AFTER][end];
                if ((before && before->moved) || (after && after->moved))
                        return "a thread was on several CPUs during a probe";
                if (before && after && before->cpu != after->cpu)
                        return "the ends were on other CPUs after the run than before it";
        }
        return NULL;
}

/* Narrows the bounds to those of one probe, which the first end has for both. NULL, or why it has none. */
static const char *narrow(struct clock_offset *o, const struct probe *first) {
        if (!first)
                return probe_absence_reason(PROBE_LATE);
        if (first->offset.absence != PROBE_TAKEN)
                return probe_absence_reason((enum probe_absence) first->offset.absence);
        o->low_ns = first->offset.low_ns > o->low_ns ? first->offset.low_ns : o->low_ns;
        o->high_ns = first->offset.high_ns < o->high_ns ? first->offset.high_ns : o->high_ns;
        o->probes++;
        return NULL;
}

struct clock_offset clock_offset_of(const struct probe *const probes[PROBE_TIMES][END_COUNT]) {
        struct clock_offset o = {.low_ns = INT64_MIN, .high_ns = INT64_MAX};
        const char *before = narrow(&o, probes[PROBE_BEFORE][END_FIRST]);
        const char *reason = why_elsewhere(probes);
        (void) narrow(&o, probes[PROBE_AFTER][END_FIRST]);
        if (!reason && o.probes == 0)
                reason = before;
        if (!reason && o.low_ns > o.high_ns)
                reason = "the difference of the clocks changed: the bounds of two moments exclude each other";
        return reason ? (struct clock_offset){.reason = reason} : o;
}
