/* SPDX-License-Identifier: MIT */

#include "schema/figures.h"

#include "schema/json/view.h"
#include "schema/terms.h"
#include "schema/util.h"

#include <stdio.h>
#include <string.h>

static const char *const one_way_kinds[] = {"one_way", NULL};

const struct figure_group_term figure_groups[FIGURES_GROUPS] = {
        [FIGURES_RATE] = {0},
        [FIGURES_LATENCY] = {.in_run = "latency_ns",
                             .in_row = "latency_ns",
                             .title = "Latency",
                             .description =
                                     "Each run's percentiles over its whole window, and of them the statistic over the "
                                     "runs. No percentile is an average of others, and only mean has hodges_lehmann. "
                                     "kind: what the times are of.",
                             .kinds = latency_kinds},
        [FIGURES_ONE_WAY] = {.in_run = "latency_one_way_ns",
                             .in_row = "latency_one_way_ns",
                             .title = "One-way latency",
                             .description =
                                     "Half of latency_ns of a pingpong in a closed loop, each run's halved. Null "
                                     "elsewhere, and in an open loop (RunResult).",
                             .kinds = one_way_kinds},
        [FIGURES_PER_UNIT] = {0},
        [FIGURES_SENDER] = {.end = FIGURE_OF_COUNTED, .suffix = "_sender"},
        [FIGURES_RECEIVER] = {.end = FIGURE_OF_OTHER, .suffix = "_receiver"},
};

/* The condition of a percentile, by the least number of latencies that a run needs for it. */
#define BEYOND(least, which)                                                                                           \
        .latencies_least = least,                                                                                      \
        .few = "a run has fewer than " UTIL_TEXT(least) " latencies, and too few of them lie "                         \
                                                        "beyond the " which " percentile to tell it from the longest"
#define BEYOND_P90 BEYOND(FIGURE_P90_LATENCIES_LEAST, "90th")
#define BEYOND_P99 BEYOND(FIGURE_P99_LATENCIES_LEAST, "99th")
#define BEYOND_P99_9 BEYOND(FIGURE_P99_9_LATENCIES_LEAST, "99.9th")
_Static_assert(FIGURE_P90_LATENCIES_LEAST == 10 * FIGURE_BEYOND_LEAST &&
                       FIGURE_P99_LATENCIES_LEAST == 100 * FIGURE_BEYOND_LEAST &&
                       FIGURE_P99_9_LATENCIES_LEAST == 1000 * FIGURE_BEYOND_LEAST,
               "each has as many beyond it");

#define QUANTILE .quantile = true
#define REQUESTED .requested = "in an open loop it follows from the specified rate"

#define RATE(member, of, ...)                                                                                          \
        { .group = FIGURES_RATE, .name = member, .unit = of, .usual = true, __VA_ARGS__ }
#define LATENCY(member, ...)                                                                                           \
        { .group = FIGURES_LATENCY, .name = member, .unit = "ns", __VA_ARGS__ }
#define ONE_WAY(member, ...)                                                                                           \
        { .group = FIGURES_ONE_WAY, .name = member, .unit = "ns", .workloads = 1u << WORKLOAD_PINGPONG, __VA_ARGS__ }
#define PER_UNIT(of_group, member, of, ...)                                                                            \
        { .group = of_group, .name = member, .unit = of, __VA_ARGS__ }
/* `of_study`: the study whose plots are of this end's hardware counts and switches. */
#define OF_ENDS(prefix, of_group, whose, of_study, ...)                                                                \
        [prefix##CPU_PER_MESSAGE] = PER_UNIT(                                                                          \
                of_group, "cpu_ns_per_message", "ns", .title = "CPU time per message" whose,                           \
                .description = "io_uring's workers included, per message that went from one end to the other, or per " \
                               "round trip of a pingpong; of one end, per message that it sent or received (with "     \
                               "direction both, of all these together).",                                              \
                __VA_ARGS__),                                                                                          \
        [prefix##CPU_PER_GIGABYTE] =                                                                                   \
                PER_UNIT(of_group, "cpu_ns_per_gigabyte", "ns", .title = "CPU time per 10^9 bytes" whose,              \
                         .description = "The same per 10^9 bytes; those of a pingpong's round trip count there and "   \
                                        "back."),                                                                      \
        [prefix##CYCLES_PER_BYTE] = PER_UNIT(of_group, "cycles_per_byte", "cycles", .title = "Cycles per byte" whose,  \
                                             .usual_in = of_study),                                                    \
        [prefix##CYCLES] = PER_UNIT(of_group, "cycles_per_message", "count", .title = "Cycles per message" whose,      \
                                    .usual_in = of_study),                                                             \
        [prefix##INSTRUCTIONS] =                                                                                       \
                PER_UNIT(of_group, "instructions_per_message", "count", .title = "Instructions per message" whose),    \
        [prefix##L1D_READ_MISSES] =                                                                                    \
                PER_UNIT(of_group, "l1d_read_misses_per_message", "count",                                             \
                         .title = "Read misses of the first data cache per message" whose, .usual_in = of_study),      \
        [prefix##LLC_MISSES] = PER_UNIT(of_group, "llc_misses_per_message", "count",                                   \
                                        .title = "Misses of the last cache per message" whose, .usual_in = of_study),  \
        [prefix##DTLB_MISSES] = PER_UNIT(of_group, "dtlb_misses_per_message", "count",                                 \
                                         .title = "Misses of the data TLB per message" whose),                         \
        [prefix##BRANCH_MISSES] = PER_UNIT(of_group, "branch_misses_per_message", "count",                             \
                                           .title = "Mispredicted branches per message" whose),                        \
        [prefix##CONTEXT_SWITCHES] = PER_UNIT(of_group, "context_switches_per_message", "count",                       \
                                              .title = "Context switches per message" whose, .usual_in = of_study)

const struct figure_term figure_terms[FIGURE_COUNT] = {
        [FIGURE_THROUGHPUT] = RATE("throughput_bytes_per_second", "bytes/s", .title = "Throughput", REQUESTED,
                                   .scaled = {{"throughput_gbit_per_second", 8, 1e9, "tcp-copy-modes"},
                                              {"throughput_mib_per_second", 1, 1048576, "pipe-block-sweep"}},
                                   .faster = FIGURE_MORE_IS_FASTER),
        [FIGURE_MESSAGES] = RATE("messages_per_second", "messages/s", .title = "Messages", REQUESTED,
                                 .description = "A syscall counts its calls, a context-switch the rounds through "
                                                "all its processes.",
                                 .scaled = {{"operations_per_second", 1, 1, "fifo-numa"}}),
        [FIGURE_BOTH_WAYS] = RATE("both_ways_bytes_per_second", "bytes/s", .title = "Throughput both ways", REQUESTED,
                                  .description = "Each run's 2 x message_size x round trips of a pingpong, of all "
                                                 "threads / window.",
                                  .workloads = 1u << WORKLOAD_PINGPONG, .absent = "of pingpong only",
                                  .scaled = {{"both_ways_gbit_per_second", 8, 1e9, "ipc-4mib"}}),
        [FIGURE_COST] =
                RATE("cost_ns", "ns", .title = "Cost",
                     .description = "The cost of a call, or of a context switch less the pipe's overhead; null for "
                                    "workloads that move data.",
                     .workloads = 1u << WORKLOAD_SYSCALL | 1u << WORKLOAD_CONTEXT_SWITCH,
                     .absent = "of syscall and context-switch only", .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_HOP] = RATE("hop_ns", "ns", .title = "Hop",
                            .description = "The time of a context switch, the pipe's overhead included; null for other "
                                           "workloads.",
                            .workloads = 1u << WORKLOAD_CONTEXT_SWITCH, .absent = "of context-switch only",
                            .scaled = {{"context_switch_us", 1, 1e3, "syscall-and-switch"}}),
        [FIGURE_LATENCY_MIN] = LATENCY("min", QUANTILE, .title = "Shortest latency"),
        [FIGURE_LATENCY_P50] =
                LATENCY("p50", QUANTILE, .title = "Median latency", .usual = true, .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P90] = LATENCY("p90", QUANTILE, .title = "Latency, 90th percentile", BEYOND_P90,
                                       .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P99] = LATENCY("p99", QUANTILE, .title = "Latency, 99th percentile", .usual = true, BEYOND_P99,
                                       .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_P99_9] = LATENCY("p99_9", QUANTILE, .title = "Latency, 99.9th percentile", .usual = true,
                                         BEYOND_P99_9, .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_LATENCY_MAX] = LATENCY("max", QUANTILE, .title = "Longest latency"),
        [FIGURE_LATENCY_MEAN] =
                LATENCY("mean", .title = "Mean latency", .scaled = {{"latency_us_mean", 1, 1e3, "tcp-copy-modes"}}),
        [FIGURE_ONE_WAY_MIN] = ONE_WAY("min", QUANTILE, .title = "Shortest one-way latency"),
        [FIGURE_ONE_WAY_P50] = ONE_WAY("p50", QUANTILE, .title = "Median one-way latency", .usual = true),
        [FIGURE_ONE_WAY_P90] = ONE_WAY("p90", QUANTILE, .title = "One-way latency, 90th percentile", BEYOND_P90),
        [FIGURE_ONE_WAY_P99] = ONE_WAY("p99", QUANTILE, .title = "One-way latency, 99th percentile", BEYOND_P99),
        [FIGURE_ONE_WAY_P99_9] =
                ONE_WAY("p99_9", QUANTILE, .title = "One-way latency, 99.9th percentile", BEYOND_P99_9),
        [FIGURE_ONE_WAY_MAX] = ONE_WAY("max", QUANTILE, .title = "Longest one-way latency"),
        [FIGURE_ONE_WAY_MEAN] = ONE_WAY(
                "mean", .title = "Mean one-way latency",
                .scaled = {{"latency_one_way_us_mean", 1, 1e3, NULL}, {"latency_one_way_ms_mean", 1, 1e6, "ipc-4mib"}}),
        OF_ENDS(FIGURE_, FIGURES_PER_UNIT, "", NULL, .usual = true, .faster = FIGURE_LESS_IS_FASTER),
        [FIGURE_KSOFTIRQD_PER_MESSAGE] = PER_UNIT(
                FIGURES_PER_UNIT, "ksoftirqd_ns_per_message", "ns", .title = "CPU time of ksoftirqd per message",
                .description = "The time of the kernel's threads ksoftirqd of the measured CPUs, in runs over tcp. No "
                               "other figure "
                               "has it, as the kernel accounts it to no agent: a mode that leaves more work to these "
                               "threads has less CPU time per message for it.",
                .usual = true, .workloads = 1u << WORKLOAD_STREAM | 1u << WORKLOAD_PINGPONG),
        OF_ENDS(FIGURE_SENDER_, FIGURES_SENDER, ", sender", "tcp-copy-modes", .usual = false),
        OF_ENDS(FIGURE_RECEIVER_, FIGURES_RECEIVER, ", receiver", NULL, .usual = false),
};

/* The part of the end that counted, or of the other end, whose counters the run has, too; NULL: there is none. */
static const struct json_part *end_object(const struct json_part *result, const struct json_part *in,
                                          const struct json_part *counted_by, enum figure_end end) {
        const struct json_part *ends = json_part_get(end == FIGURE_OF_OTHER ? result : NULL, "counters");
        const char *role = counted_by->text + 1;
        size_t length = counted_by->length - 2;
        if (end == FIGURE_OF_OTHER) {
                const struct json_part *stop = ends ? ends + ends->span : NULL, *i = ends ? ends + 1 : NULL;
                while (i < stop && i->key_length == length && memcmp(i->key, role, length) == 0)
                        i += i->span;
                if (i == stop)
                        return NULL;
                role = i->key;
                length = i->key_length;
        }
        return json_part_get_n(in, role, length);
}

void figure_objects(const struct json_part *result, const struct json_part *ret[FIGURES_GROUPS]) {
        const struct json_part *counted_by = json_part_get(result, "counted_by");
        bool open = json_part_is(json_part_get(result, "loop"), "open");
        for (enum figure_group g = 0; g < FIGURES_GROUPS; g++) {
                const struct figure_group_term *group = &figure_groups[g];
                const struct json_part *in = group->in_run ? json_part_get(result, group->in_run) : result;
                bool halved = g == FIGURES_ONE_WAY && open;
                if (group->end == FIGURE_OF_RUN)
                        ret[g] = halved ? NULL : in;
                else
                        ret[g] = counted_by && counted_by->text[0] == '"'
                                         ? end_object(result, in, counted_by, group->end)
                                         : NULL;
        }
}

/* Messages, where a run of an early version has no count of its latencies. */
static bool has_few(const struct json_part *const objects[FIGURES_GROUPS], enum figure f) {
        const struct figure_term *term = &figure_terms[f];
        double n;
        if (term->latencies_least == 0)
                return false;
        return (json_part_double(json_part_get(objects[term->group], "count"), &n) ||
                json_part_double(json_part_get(objects[FIGURES_RATE], "messages"), &n)) &&
               n < term->latencies_least;
}

enum figure_state figure_read(const struct json_part *const objects[FIGURES_GROUPS], enum figure f, double *ret) {
        if (!json_part_double(json_part_get(objects[figure_terms[f].group], figure_terms[f].name), ret))
                return FIGURE_ABSENT;
        if (figure_terms[f].requested && json_part_is(json_part_get(objects[FIGURES_RATE], "loop"), "open"))
                return FIGURE_REQUESTED;
        return has_few(objects, f) ? FIGURE_FEW : FIGURE_KNOWN;
}

void figure_name(enum figure f, char *ret, size_t size) {
        const struct figure_term *term = &figure_terms[f];
        const char *prefix = figure_groups[term->group].in_row;
        const char *suffix = figure_groups[term->group].suffix;
        (void) snprintf(ret, size, "%s%s%s%s", prefix ? prefix : "", prefix ? "_" : "", term->name,
                        suffix ? suffix : "");
}

void figures_compared(struct compared_figures *ret) {
        ret->n = 0;
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].faster != FIGURE_NOT_COMPARED)
                        ret->of[ret->n++] = (enum figure) f;
}
