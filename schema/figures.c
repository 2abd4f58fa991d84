/* SPDX-License-Identifier: MIT */

/* The table of figures; see the header. */

#include "schema/figures.h"

#include <stdio.h>

const struct figure_group_term figure_groups[FIGURES_GROUPS] = {
        [FIGURES_RATE] = {NULL, NULL, false},
        [FIGURES_LATENCY] = {"latency_ns", "latency_ns", false},
        [FIGURES_ONE_WAY] = {"latency_one_way_ns", "latency_one_way_ns", false},
        [FIGURES_COUNTERS] = {"counters", NULL, true},
        [FIGURES_PER_UNIT] = {NULL, NULL, true},
};

#define RATE(member, of, ...)                                                                                          \
        { .group = FIGURES_RATE, .name = member, .unit = of, __VA_ARGS__ }
#define LATENCY(member, ...)                                                                                           \
        { .group = FIGURES_LATENCY, .name = member, .unit = "ns", __VA_ARGS__ }
#define ONE_WAY(member, ...)                                                                                           \
        { .group = FIGURES_ONE_WAY, .name = member, .unit = "ns", __VA_ARGS__ }
#define COUNTER(member)                                                                                                \
        { .group = FIGURES_COUNTERS, .name = member, .unit = "count" }
#define PER_UNIT(member, of, ...)                                                                                      \
        { .group = FIGURES_PER_UNIT, .name = member, .unit = of, __VA_ARGS__ }

const struct figure_term figure_terms[FIGURE_COUNT] = {
        [FIGURE_THROUGHPUT] = RATE("throughput_bytes_per_second", "bytes/s", .scaled = "throughput_gbit_per_second",
                                   .factor = 8, .divisor = 1e9, .faster = FIGURE_MORE_IS_FASTER),
        [FIGURE_MESSAGES] = RATE("messages_per_second", "messages/s"),
        [FIGURE_BOTH_WAYS] = RATE("both_ways_bytes_per_second", "bytes/s", .absent = "of pingpong only",
                                  .scaled = "both_ways_gbit_per_second", .factor = 8, .divisor = 1e9),
        [FIGURE_COST] =
                RATE("cost_ns", "ns", .absent = "of syscall and context-switch only", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_HOP] = RATE("hop_ns", "ns", .absent = "of context-switch only"),
        [FIGURE_LATENCY_MIN] = LATENCY("min"),
        [FIGURE_LATENCY_P50] = LATENCY("p50", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P90] = LATENCY("p90", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P99] = LATENCY("p99", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P99_9] = LATENCY("p99_9", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_MAX] = LATENCY("max"),
        [FIGURE_LATENCY_MEAN] = LATENCY("mean", .scaled = "latency_us_mean", .factor = 1, .divisor = 1e3),
        [FIGURE_ONE_WAY_MIN] = ONE_WAY("min"),
        [FIGURE_ONE_WAY_P50] = ONE_WAY("p50"),
        [FIGURE_ONE_WAY_P90] = ONE_WAY("p90"),
        [FIGURE_ONE_WAY_P99] = ONE_WAY("p99"),
        [FIGURE_ONE_WAY_P99_9] = ONE_WAY("p99_9"),
        [FIGURE_ONE_WAY_MAX] = ONE_WAY("max"),
        [FIGURE_ONE_WAY_MEAN] = ONE_WAY("mean", .scaled = "latency_one_way_us_mean", .factor = 1, .divisor = 1e3),
        [FIGURE_CYCLES] = COUNTER("cycles"),
        [FIGURE_INSTRUCTIONS] = COUNTER("instructions"),
        [FIGURE_L1D_READ_MISSES] = COUNTER("l1d_read_misses"),
        [FIGURE_LLC_MISSES] = COUNTER("llc_misses"),
        [FIGURE_DTLB_MISSES] = COUNTER("dtlb_misses"),
        [FIGURE_BRANCH_MISSES] = COUNTER("branch_misses"),
        [FIGURE_CONTEXT_SWITCHES] = COUNTER("context_switches"),
        [FIGURE_CPU_PER_MESSAGE] = PER_UNIT("cpu_ns_per_message", "ns", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_CPU_PER_GIGABYTE] = PER_UNIT("cpu_ns_per_gigabyte", "ns"),
        [FIGURE_CYCLES_PER_BYTE] = PER_UNIT("cycles_per_byte", "cycles"),
};

void figure_name(enum figure f, char *ret, size_t size) {
        const struct figure_term *term = &figure_terms[f];
        const char *prefix = figure_groups[term->group].in_row;
        (void) snprintf(ret, size, "%s%s%s", prefix ? prefix : "", prefix ? "_" : "", term->name);
}
