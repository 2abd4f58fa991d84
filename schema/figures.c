/* SPDX-License-Identifier: MIT */

/* The table of figures; see the header. */

#include "schema/figures.h"

#include <stdio.h>

const struct figure_group_term figure_groups[FIGURES_GROUPS] = {
        [FIGURES_RATE] = {NULL, NULL, FIGURE_OF_RUN, NULL},
        [FIGURES_LATENCY] = {"latency_ns", "latency_ns", FIGURE_OF_RUN, NULL},
        [FIGURES_ONE_WAY] = {"latency_one_way_ns", "latency_one_way_ns", FIGURE_OF_RUN, NULL},
        [FIGURES_PER_UNIT] = {NULL, NULL, FIGURE_OF_RUN, NULL},
        [FIGURES_SENDER] = {NULL, NULL, FIGURE_OF_COUNTED, "_sender"},
        [FIGURES_RECEIVER] = {NULL, NULL, FIGURE_OF_OTHER, "_receiver"},
};

#define RATE(member, of, ...)                                                                                          \
        { .group = FIGURES_RATE, .name = member, .unit = of, __VA_ARGS__ }
#define LATENCY(member, ...)                                                                                           \
        { .group = FIGURES_LATENCY, .name = member, .unit = "ns", __VA_ARGS__ }
#define ONE_WAY(member, ...)                                                                                           \
        { .group = FIGURES_ONE_WAY, .name = member, .unit = "ns", __VA_ARGS__ }
#define PER_UNIT(of_group, member, of)                                                                                 \
        { .group = of_group, .name = member, .unit = of }
#define OF_ENDS(prefix, of_group)                                                                                      \
        [prefix##CPU_PER_MESSAGE] = PER_UNIT(of_group, "cpu_ns_per_message", "ns"),                                    \
        [prefix##CPU_PER_GIGABYTE] = PER_UNIT(of_group, "cpu_ns_per_gigabyte", "ns"),                                  \
        [prefix##CYCLES_PER_BYTE] = PER_UNIT(of_group, "cycles_per_byte", "cycles"),                                   \
        [prefix##CYCLES] = PER_UNIT(of_group, "cycles_per_message", "count"),                                          \
        [prefix##INSTRUCTIONS] = PER_UNIT(of_group, "instructions_per_message", "count"),                              \
        [prefix##L1D_READ_MISSES] = PER_UNIT(of_group, "l1d_read_misses_per_message", "count"),                        \
        [prefix##LLC_MISSES] = PER_UNIT(of_group, "llc_misses_per_message", "count"),                                  \
        [prefix##DTLB_MISSES] = PER_UNIT(of_group, "dtlb_misses_per_message", "count"),                                \
        [prefix##BRANCH_MISSES] = PER_UNIT(of_group, "branch_misses_per_message", "count"),                            \
        [prefix##CONTEXT_SWITCHES] = PER_UNIT(of_group, "context_switches_per_message", "count")

const struct figure_term figure_terms[FIGURE_COUNT] = {
        [FIGURE_THROUGHPUT] = RATE("throughput_bytes_per_second", "bytes/s", .scaled = "throughput_gbit_per_second",
                                   .factor = 8, .divisor = 1e9),
        [FIGURE_MESSAGES] = RATE("messages_per_second", "messages/s"),
        [FIGURE_BOTH_WAYS] = RATE("both_ways_bytes_per_second", "bytes/s", .absent = "of pingpong only",
                                  .scaled = "both_ways_gbit_per_second", .factor = 8, .divisor = 1e9),
        [FIGURE_COST] = RATE("cost_ns", "ns", .absent = "of syscall and context-switch only"),
        [FIGURE_HOP] = RATE("hop_ns", "ns", .absent = "of context-switch only"),
        [FIGURE_LATENCY_MIN] = LATENCY("min"),
        [FIGURE_LATENCY_P50] = LATENCY("p50"),
        [FIGURE_LATENCY_P90] = LATENCY("p90"),
        [FIGURE_LATENCY_P99] = LATENCY("p99"),
        [FIGURE_LATENCY_P99_9] = LATENCY("p99_9"),
        [FIGURE_LATENCY_MAX] = LATENCY("max"),
        [FIGURE_LATENCY_MEAN] = LATENCY("mean", .scaled = "latency_us_mean", .factor = 1, .divisor = 1e3),
        [FIGURE_ONE_WAY_MIN] = ONE_WAY("min"),
        [FIGURE_ONE_WAY_P50] = ONE_WAY("p50"),
        [FIGURE_ONE_WAY_P90] = ONE_WAY("p90"),
        [FIGURE_ONE_WAY_P99] = ONE_WAY("p99"),
        [FIGURE_ONE_WAY_P99_9] = ONE_WAY("p99_9"),
        [FIGURE_ONE_WAY_MAX] = ONE_WAY("max"),
        [FIGURE_ONE_WAY_MEAN] = ONE_WAY("mean", .scaled = "latency_one_way_us_mean", .factor = 1, .divisor = 1e3),
        OF_ENDS(FIGURE_, FIGURES_PER_UNIT),
        OF_ENDS(FIGURE_SENDER_, FIGURES_SENDER),
        OF_ENDS(FIGURE_RECEIVER_, FIGURES_RECEIVER),
};

void figure_name(enum figure f, char *ret, size_t size) {
        const struct figure_term *term = &figure_terms[f];
        const char *prefix = figure_groups[term->group].in_row;
        const char *suffix = figure_groups[term->group].suffix;
        (void) snprintf(ret, size, "%s%s%s%s", prefix ? prefix : "", prefix ? "_" : "", term->name,
                        suffix ? suffix : "");
}
