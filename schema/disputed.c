/* SPDX-License-Identifier: MIT */

#include "schema/disputed.h"

#include <stdio.h>
#include <string.h>

#define EVERY (FIGURES_BIT(FIGURES_GROUPS) - 1)
#define RATES FIGURES_BIT(FIGURES_RATE)
#define LATENCIES (FIGURES_BIT(FIGURES_LATENCY) | FIGURES_BIT(FIGURES_ONE_WAY))

const struct disputed_flag disputed_flags[DISPUTED_COUNT] = {
        [DISPUTED_ENOBUFS] = {"zerocopy:enobufs", "the kernel refused sends without copying, each of which then waited",
                              "runs with a greater net.core.optmem_max would decide", EVERY},
        [DISPUTED_RATE] = {"rate_not_reached",
                           "fewer messages came than the rate specifies, so that their latencies are those of an "
                           "overload",
                           "runs at a lower rate would decide", RATES | LATENCIES},
        [DISPUTED_CEILING] = {"above_memcpy_ceiling", "the throughput is higher than the sending CPU can copy", NULL,
                              RATES},
        [DISPUTED_ENDS] = {"ends_differ", "the throughput of one end differs from that of the other by more than 3 %",
                           "longer runs would decide", RATES},
        [DISPUTED_PIPES] = {"pipes_differ", "some threads had smaller pipes than others",
                            "runs with transport_options.pipe_size would decide", EVERY},
        [DISPUTED_SHARED_CPUS] = {"placement:shared-cpus", "there were more threads than CPUs for their placement",
                                  "runs of fewer threads, or on more CPUs, would decide", EVERY},
        [DISPUTED_SHARED_CORES] = {"placement:shared-cores",
                                   "both ends were on one core, as there was no other for their placement", NULL,
                                   EVERY},
        [DISPUTED_MEMORY] = {"placement:memory-elsewhere",
                             "pages of an end were on another node, as that of its placement has no memory", NULL,
                             EVERY},
        [DISPUTED_LATENCY_LIMIT] = {"latency_above_limit",
                                    "latencies were 100 s or more, so that percentiles may be too small", NULL,
                                    LATENCIES},
        [DISPUTED_LATENCY_COUNTS] = {"latency_counts_differ", "there are not as many latencies as messages",
                                     "longer runs would decide", LATENCIES},
        [DISPUTED_LATENCY_QUANTUM] = {"latency_near_clock_quantum",
                                      "the median latency is at most 33 steps of the clock, so that 3 % of it or more "
                                      "may be rounding",
                                      NULL, LATENCIES},
};

void disputed_count(const char *flags_json, uint32_t n[DISPUTED_COUNT]) {
        char flag[64];
        for (enum disputed i = 0; flags_json && i < DISPUTED_COUNT; i++) {
                (void) snprintf(flag, sizeof(flag), "\"%s\"", disputed_flags[i].flag);
                n[i] += strstr(flags_json, flag) != NULL;
        }
}

bool disputed_any(const uint32_t n[DISPUTED_COUNT], unsigned figures) {
        for (enum disputed i = 0; i < DISPUTED_COUNT; i++)
                if (n[i] > 0 && disputed_flags[i].figures & figures)
                        return true;
        return false;
}
