/* SPDX-License-Identifier: MIT */

/* The flags that follow from two reports and nothing else. */

#include "daemon/result/result.h"
#include "schema/util.h"

#include "check.h"
#include "effective.h"
#include "recorded.h"
#include "schema/json/json.h"

#include <stdlib.h>
#include <string.h>

static const struct {
        const char *first_effective, *second_effective;
        uint64_t bytes; /* of a window of a second, at both ends */
        bool flagged;
} cases[] = {
        {"{}", "{}", 1000, false},
        {"{\"memcpy_bytes_per_second\":1000}", "{}", 1000, false},
        {"{\"memcpy_bytes_per_second\":999}", "{}", 1000, true},
        {"{\"memcpy_bytes_per_second\":2000}", "{\"memcpy_bytes_per_second\":999}", 1000, true},
        {"{\"memcpy_bytes_per_second\":null}", "{}", 1000, false},
        {"{\"memcpy_bytes_per_second\":0}", "{}", 1000, false},
};

static bool has_flag(const struct run_verdict *v, const char *flag) {
        for (size_t i = 0; i < v->n_flags; i++)
                if (strcmp(v->flags[i], flag) == 0)
                        return true;
        return false;
}

static void test_above_memcpy_ceiling(void) {
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct point point = {.transport = TRANSPORT_SHM_POSIX, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = 1000000000, .messages = 100, .bytes = cases[i].bytes}, b = a;
                EFFECTIVE *first = effective_of(cases[i].first_effective),
                          *second = effective_of(cases[i].second_effective);
                a.effective = first;
                b.effective = second;
                struct result r = {.order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &b}};
                struct run_verdict v = {.n_flags = 0};
                result_flags(&r, &v);
                if (has_flag(&v, "above_memcpy_ceiling") != cases[i].flagged)
                        CHECK_FAIL("case %zu: expected %s flag", i, cases[i].flagged ? "a" : "no");
        }
}

static const struct {
        enum transport transport;
        uint64_t message_size;
        const char *reason;
        double rate;
        enum data_direction direction; /* 0: the only one, or down */
        bool unstamped;                /* `stamp` is off */
} silent_cases[] = {
        {TRANSPORT_PIPE, 4096, "a closed-loop stream has no latency of its own; pingpong measures it", 0, 0, false},
        {TRANSPORT_TCP, 15, "a message shorter than 16 bytes does not carry the time of its sending", 0, 0, false},
        {TRANSPORT_TCP, 16, "no stamped message arrived in the window", 0, 0, false},
        {TRANSPORT_TCP, 1 << 20, "no stamped message arrived in the window", 0, 0, false},
        {TRANSPORT_TCP, 16, "stamp is off: messages of a stream carry the time of their sending with \"stamp\": true",
         0, 0, true},
        {TRANSPORT_TCP, 16, "no message was timed in the window", 10, 0, true},
        {TRANSPORT_PIPE, 16, "no message was timed in the window", 10, 0, false},
        {TRANSPORT_TCP, 16, "no stamped message arrived in the window", 10, DIRECTION_BOTH, true},
        {TRANSPORT_TCP, 15, "a message shorter than 16 bytes does not carry the time of its sending", 10,
         DIRECTION_BOTH, false},
};

/* Why there is no latency, by what the run was and not by its transport alone. */
static void test_latency_reason(void) {
        for (size_t i = 0; i < sizeof(silent_cases) / sizeof(silent_cases[0]); i++) {
                struct point point = {.transport = silent_cases[i].transport,
                                      .message_size = silent_cases[i].message_size,
                                      .direction = silent_cases[i].direction,
                                      .threads = 1};
                struct spec spec = {
                        .verify = VERIFY_TOUCH, .stamp = !silent_cases[i].unstamped, .rate = silent_cases[i].rate};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = 1000000000, .messages = 100, .bytes = 100};
                struct result r = {.order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &a}};
                struct json *root = NULL;
                const char *reason = "";
                char *text = NULL;
                CHECK_INT(result_to_json(&r, &text), 0);
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                CHECK_INT(json_as_string(json_get(root, "latency_reason"), &reason), 0);
                CHECK_STRING(reason, silent_cases[i].reason);
                json_free(root);
                free(text);
        }
}

/* What reading the clock for 1000 stamps took of two threads' window of a second. */
static void test_stamp_cost(void) {
        static const struct {
                enum transport transport;
                bool stamp;
                const char *wanted;
        } rows[] = {
                {TRANSPORT_TCP, true,
                 "\"stamp_cost\":{\"messages\":1000,\"clock_cost_ns\":50,\"window_share\":2.5e-05}"},
                {TRANSPORT_TCP, false, "\"stamp_cost\":null,\"stamp_cost_reason\":\"no message carries a time\""},
                {TRANSPORT_PIPE, true, "\"stamp_cost\":null,\"stamp_cost_reason\":\"no message carries a time\""},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.transport = rows[i].transport, .message_size = 4096, .threads = 2};
                struct spec spec = {.verify = VERIFY_TOUCH, .stamp = rows[i].stamp};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = 1000000000,
                                           .messages = 1000,
                                           .bytes = 4096000,
                                           .clock = {.cost_ns = 30}},
                                      b = a;
                struct histogram latency = {0};
                b.clock.cost_ns = 50;
                for (int k = 0; k < 1000; k++)
                        histogram_record(&latency, 5000);
                struct result r = {
                        .order = &order, .roles = {"server", "client"}, .reports = {&a, &b}, .latency = &latency};
                _cleanup_free_ char *text = NULL;
                CHECK_INT(result_to_json(&r, &text), 0);
                if (!strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text);
        }
}

/* Times that begin at one end and end at the other contain the difference of two clocks. */
static void test_clock(void) {
#define ENDS "\"clock\":{\"first\":{\"cost_ns\":30,\"quantum_ns\":10},\"second\":{\"cost_ns\":50,\"quantum_ns\":1},"
#define NOT_COMPARED ENDS "\"offset_ns\":null,\"offset_ns_reason\":\"no time begins at one end and ends at the other\"}"
        static const struct {
                enum workload workload;
                enum transport transport;
                bool stamp;
                double rate;
                struct clock_offset offset;
                const char *wanted;
        } rows[] = {
                {WORKLOAD_STREAM,
                 TRANSPORT_TCP,
                 true,
                 0,
                 {NULL, -20, 35, 2},
                 ENDS "\"offset_ns\":{\"low\":-20,\"high\":35,\"probes\":2}}"},
                {WORKLOAD_STREAM,
                 TRANSPORT_PIPE,
                 false,
                 10,
                 {NULL, -20, 35, 2},
                 ENDS "\"offset_ns\":{\"low\":-20,\"high\":35,\"probes\":2}}"},
                {WORKLOAD_STREAM,
                 TRANSPORT_TCP,
                 true,
                 0,
                 {.reason = "both ends are on one CPU"},
                 ENDS "\"offset_ns\":null,\"offset_ns_reason\":\"both ends are on one CPU\"}"},
                {WORKLOAD_STREAM, TRANSPORT_TCP, false, 0, {NULL, -20, 35, 2}, NOT_COMPARED},
                {WORKLOAD_STREAM, TRANSPORT_PIPE, false, 0, {NULL, -20, 35, 2}, NOT_COMPARED},
                {WORKLOAD_PINGPONG, TRANSPORT_PIPE, false, 10, {NULL, -20, 35, 2}, NOT_COMPARED},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = rows[i].workload,
                                      .transport = rows[i].transport,
                                      .message_size = 4096,
                                      .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH, .stamp = rows[i].stamp, .rate = rows[i].rate};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = 1000000000,
                                           .messages = 1000,
                                           .bytes = 4096000,
                                           .clock = {.cost_ns = 30, .quantum_ns = 10}},
                                      b = a;
                b.clock = (struct clock_facts){.cost_ns = 50, .quantum_ns = 1};
                struct result r = {.order = &order,
                                   .roles = {"first", "second"},
                                   .reports = {&a, &b},
                                   .clock_offset = rows[i].offset};
                _cleanup_free_ char *text = NULL;
                CHECK_INT(result_to_json(&r, &text), 0);
                if (!strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text);
        }
#undef ENDS
#undef NOT_COMPARED
}

/* Both probes bound the difference of the clocks, and each thing that makes them no bounds is named. */
static void test_clock_offset(void) {
#define ON(x, low, high)                                                                                               \
        {                                                                                                              \
                .cpu = (x), .offset = { PROBE_TAKEN, (low), (high) }                                                   \
        }
#define WITHOUT(x, why)                                                                                                \
        { .cpu = (x), .offset.absence = (why) }
        static const struct probe second = {.cpu = 1}, moved = {.cpu = 1, .moved = 1}, elsewhere = {.cpu = 3};
        static const struct {
                struct probe first[PROBE_TIMES];
                const struct probe *second[PROBE_TIMES];
                bool after; /* the second probe was taken */
                int64_t low_ns, high_ns;
                unsigned probes;
                const char *reason; /* NULL: there are bounds */
        } rows[] = {
                {{ON(0, -20, 35), ON(0, -10, 50)}, {&second, &second}, true, -10, 35, 2, NULL},
                {{ON(0, -20, 35), ON(0, 35, 50)}, {&second, &second}, true, 35, 35, 2, NULL},
                {{ON(0, -20, 35), ON(0, 36, 50)}, {&second, &second}, true, 0, 0, 0, "exclude each other"},
                {{ON(0, 36, 35), ON(0, -20, 35)}, {&second, &second}, true, 0, 0, 0, "exclude each other"},
                {{ON(0, -20, 35), ON(0, 36, 35)}, {&second, &second}, true, 0, 0, 0, "exclude each other"},
                {{ON(0, -20, 35), ON(0, -20, 35)}, {&moved, &second}, true, 0, 0, 0, "several CPUs during a probe"},
                {{ON(0, -20, 35), ON(0, -20, 35)}, {&second, &moved}, true, 0, 0, 0, "several CPUs during a probe"},
                {{ON(0, -20, 35), ON(0, -20, 35)}, {&second, &elsewhere}, true, 0, 0, 0, "on other CPUs after the run"},
                {{ON(0, -20, 35), ON(2, -20, 35)}, {&second, &second}, true, 0, 0, 0, "on other CPUs after the run"},
                {{ON(0, -20, 35), WITHOUT(0, PROBE_LATE)}, {&second, &second}, true, -20, 35, 1, NULL},
                {{WITHOUT(0, PROBE_LATE), ON(0, -20, 35)}, {&second, &second}, true, -20, 35, 1, NULL},
                {{ON(0, -20, 35)}, {&second}, false, -20, 35, 1, NULL},
                {{WITHOUT(0, PROBE_STARVED), WITHOUT(0, PROBE_LATE)}, {&second, &second}, true, 0, 0, 0, "others had"},
                {{WITHOUT(1, PROBE_SAME_CPU), WITHOUT(1, PROBE_SAME_CPU)},
                 {&second, &second},
                 true,
                 0,
                 0,
                 0,
                 "one CPU"},
                {{WITHOUT(1, PROBE_SAME_CPU), ON(0, -2, 3)}, {&second, &second}, true, 0, 0, 0, "on other CPUs after"},
        };
#undef ON
#undef WITHOUT
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                const struct probe *probes[PROBE_TIMES][END_COUNT] = {
                        {&rows[i].first[PROBE_BEFORE], rows[i].second[PROBE_BEFORE]},
                        {rows[i].after ? &rows[i].first[PROBE_AFTER] : NULL, rows[i].second[PROBE_AFTER]}};
                struct clock_offset got = clock_offset_of(probes);
                bool as_told = rows[i].reason ? got.reason && strstr(got.reason, rows[i].reason) : !got.reason;
                if (!as_told || got.low_ns != rows[i].low_ns || got.high_ns != rows[i].high_ns ||
                    got.probes != rows[i].probes)
                        CHECK_FAIL("case %zu: %lld to %lld of %u, %s", i, (long long) got.low_ns,
                                   (long long) got.high_ns, got.probes, got.reason ? got.reason : "no reason");
        }
        const struct probe *const none[PROBE_TIMES][END_COUNT] = {{NULL}};
        CHECK(clock_offset_of(none).reason);
}

/* A median of 33 steps of the clock, by the coarser of the two ends; the means of calls are not rounded to a step. */
static void test_latency_near_the_quantum(void) {
        static const struct {
                enum workload workload;
                uint64_t p50_ns, quantum_ns[END_COUNT];
                bool flagged;
        } rows[] = {
                {WORKLOAD_PINGPONG, 100, {10, 1}, true},   {WORKLOAD_PINGPONG, 100, {1, 10}, true},
                {WORKLOAD_PINGPONG, 190, {10, 10}, true},  {WORKLOAD_PINGPONG, 328, {10, 10}, true},
                {WORKLOAD_PINGPONG, 350, {10, 10}, false}, {WORKLOAD_PINGPONG, 100, {1, 1}, false},
                {WORKLOAD_PINGPONG, 100, {0, 0}, false},   {WORKLOAD_SYSCALL, 100, {10, 0}, false},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = rows[i].workload, .message_size = 64, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                bool alone = workload_agents(point.workload) == 1;
                struct message_report a = {.window_ns = 1000000000, .messages = 9, .bytes = 576}, b = a;
                struct histogram latency = {0};
                struct run_verdict v = {.n_flags = 0};
                a.clock.quantum_ns = rows[i].quantum_ns[END_FIRST];
                b.clock.quantum_ns = rows[i].quantum_ns[END_SECOND];
                for (int k = 0; k < 9; k++)
                        histogram_record(&latency, k < 5 ? rows[i].p50_ns : 5000);
                struct result r = {.order = &order,
                                   .roles = {"first", alone ? NULL : "second"},
                                   .reports = {&a, alone ? NULL : &b},
                                   .latency = &latency};
                result_flags(&r, &v);
                if (has_flag(&v, "latency_near_clock_quantum") != rows[i].flagged)
                        CHECK_FAIL("case %zu: expected %s flag", i, rows[i].flagged ? "a" : "no");
        }
}

/* A run whose ends, or whose only one, have equal reports: 100 messages of 10 bytes in a second, or calls that move
 * none. NULL: there is none. */
static char *result_of_timed_ends(enum workload workload, double rate, enum verify verify, struct histogram *latency) {
        struct point point = {.workload = workload, .message_size = 10, .threads = 1};
        struct spec spec = {.verify = verify, .rate = rate};
        struct run_order order = {.spec = &spec, .point = &point};
        char *text = NULL;
        struct message_report a = {
                .window_ns = 1000000000, .messages = 100, .bytes = workload == WORKLOAD_SYSCALL ? 0 : 1000};
        bool alone = workload_agents(workload) == 1;
        struct result r = {.order = &order,
                           .roles = {"first", alone ? NULL : "second"},
                           .reports = {&a, alone ? NULL : &a},
                           .latency = latency};
        return result_to_json(&r, &text) == 0 ? text : NULL;
}

static char *result_of_ends(enum workload workload, double rate, enum verify verify) {
        return result_of_timed_ends(workload, rate, verify, NULL);
}

/* An open loop is one where messages are sent, and bytes are verified where any come. */
static void test_loop_and_verify(void) {
        static const struct {
                enum workload workload;
                double rate;
                enum verify verify;
                const char *wanted;
        } rows[] = {
                {WORKLOAD_STREAM, 0, VERIFY_TOUCH, "\"loop\":\"closed\",\"verify\":\"touch\","},
                {WORKLOAD_PINGPONG, 1000, VERIFY_CHECKSUM, "\"loop\":\"open\",\"verify\":\"checksum\","},
                {WORKLOAD_SYSCALL, 1000, VERIFY_TOUCH,
                 "\"loop\":\"closed\",\"verify\":null,\"verify_reason\":\"no data was moved this way\","},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_free_ char *text = result_of_ends(rows[i].workload, rows[i].rate, rows[i].verify);
                if (!text || !strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text ? text : "no result");
        }
}

/* Round trips are timed from one of three moments, and only they are. */
static void test_round_trips_have_their_kind(void) {
        static const struct {
                enum workload workload;
                double rate;
                enum verify verify;
                const char *wanted;
        } rows[] = {
                {WORKLOAD_PINGPONG, 0, VERIFY_NONE, "\"effective\":{\"round_trip\":\"handed-over\"}"},
                {WORKLOAD_PINGPONG, 0, VERIFY_NONE, "\"measured_by\":\"first\""},
                {WORKLOAD_STREAM, 0, VERIFY_NONE, "\"measured_by\":\"second\""},
                {WORKLOAD_PINGPONG, 0, VERIFY_TOUCH, "\"effective\":{\"round_trip\":\"handed-over\"}"},
                {WORKLOAD_PINGPONG, 0, VERIFY_CHECKSUM, "\"effective\":{\"round_trip\":\"before-sending\"}"},
                {WORKLOAD_PINGPONG, 1000, VERIFY_TOUCH, "\"effective\":{\"round_trip\":\"due\",\"rate\":1000}"},
                {WORKLOAD_PINGPONG, 1000, VERIFY_CHECKSUM, "\"effective\":{\"round_trip\":\"due\",\"rate\":1000}"},
                {WORKLOAD_STREAM, 1000, VERIFY_CHECKSUM, "\"effective\":{\"rate\":1000}"},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_free_ char *text = result_of_ends(rows[i].workload, rows[i].rate, rows[i].verify);
                if (!text || !strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text ? text : "no result");
        }
}

/* Cycles in user mode alone. */
static struct counters_totals counters_of(uint64_t cpu_ns, uint64_t cycles) {
        struct counters_totals t = {.usage = {.cpu_ns = cpu_ns}};
        t.perf.counts[PERF_CYCLES][PERF_USER] = (struct perf_count){.known = true, .value = cycles, .fraction = 1};
        t.perf.counts[PERF_CYCLES][PERF_KERNEL] = (struct perf_count){.known = true, .value = 0, .fraction = 1};
        return t;
}

static const char *const nothing[END_COUNT] = {"{}", "{}"};
static const struct counters_totals uncounted[END_COUNT];

/* The flags of a run that went well otherwise. */
static struct run_verdict flags_of(enum transport transport, uint32_t threads, const char *const *effective,
                                   const struct counters_totals *counters) {
        struct point point = {.transport = transport, .message_size = 10, .threads = threads};
        struct spec spec = {.verify = VERIFY_TOUCH};
        struct run_order order = {.spec = &spec, .point = &point};
        struct message_report reports[END_COUNT];
        for (int end = 0; end < END_COUNT; end++)
                reports[end] = (struct message_report){.window_ns = 1000000000,
                                                       .messages = 100,
                                                       .bytes = 1000,
                                                       .effective = effective_of(effective[end]),
                                                       .counters = counters[end]};
        struct result r = {.order = &order, .roles = {"first", "second"}, .reports = {&reports[0], &reports[1]}};
        struct run_verdict v = {.n_flags = 0};
        result_flags(&r, &v);
        for (int end = 0; end < END_COUNT; end++)
                free(reports[end].effective);
        return v;
}

/* Some threads had smaller pipes than the others, whichever end reports it. */
static void test_pipes_that_differ(void) {
        static const struct {
                const char *effective[END_COUNT];
                bool flagged;
        } rows[] = {
                {{"{\"pipe_size\":65536}", "{\"pipe_size\":65536}"}, false},
                {{"{\"pipe_size\":8192,\"pipe_size_max\":65536}", "{\"pipe_size\":65536}"}, true},
                {{"{\"pipe_size\":null}", "{\"pipe_size\":8192,\"pipe_size_max\":65536}"}, true},
                {{"{}", "{}"}, false},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct run_verdict v = flags_of(TRANSPORT_PIPE, 1024, rows[i].effective, uncounted);
                CHECK_INT(has_flag(&v, "pipes_differ"), rows[i].flagged);
        }
}

/* Counters of either end that the figures do not show: refused sends, which slept, and counts that are scaled. */
static void test_flags_of_counters(void) {
#define SCALED(x) .perf.counts[PERF_CYCLES][PERF_USER] = {.known = true, .value = 5, .fraction = (x) }
        static const struct {
                struct counters_totals counters[END_COUNT];
                bool refused, scaled;
        } rows[] = {
                {{{.usage.eagain = 1}, {.usage.eagain = 1}}, false, false},
                {{{.usage.enobufs = 1}}, true, false},
                {{[END_SECOND] = {.usage.enobufs = 70000}}, true, false},
                {{{SCALED(1)}, {SCALED(1)}}, false, false},
                {{{SCALED(0.5)}}, false, true},
                {{[END_SECOND] = {SCALED(0.5)}}, false, true},
                {{{.usage.enobufs = 3, SCALED(0.5)}}, true, true},
        };
#undef SCALED
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct run_verdict v = flags_of(TRANSPORT_TCP, 1, nothing, rows[i].counters);
                if (has_flag(&v, "zerocopy:enobufs") != rows[i].refused)
                        CHECK_FAIL("case %zu: expected %s flag of refused sends", i, rows[i].refused ? "a" : "no");
                if (has_flag(&v, "counters:multiplexed") != rows[i].scaled)
                        CHECK_FAIL("case %zu: expected %s flag of scaled counts", i, rows[i].scaled ? "a" : "no");
        }
}

/* A time beyond a histogram's range is in its last bucket, where it would not be noticed. */
static void test_latency_above_the_limit(void) {
        static struct histogram within, beyond;
        static const struct {
                struct histogram *of_a_second;
                bool flagged;
        } rows[] = {{NULL, false}, {&within, false}, {&beyond, true}};
        histogram_record(&within, 99 * NSEC_PER_SEC);
        histogram_record(&beyond, 1000);
        histogram_record(&beyond, 300 * NSEC_PER_SEC);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = WORKLOAD_PINGPONG, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = NSEC_PER_SEC, .messages = 100, .bytes = 1000};
                struct result r = {.order = &order, .roles = {"first", "second"}, .reports = {&a, &a}};
                struct run_verdict v = {.n_flags = 0};
                struct message_sample sample = {.interval_ns = NSEC_PER_SEC, .messages = 100};
                sample.latency = rows[i].of_a_second;
                CHECK_INT(result_add_sample(&r, END_FIRST, &sample), 0);
                sample.latency = &within;
                CHECK_INT(result_add_sample(&r, END_FIRST, &sample), 0);
                result_flags(&r, &v);
                if (has_flag(&v, "latency_above_limit") != rows[i].flagged)
                        CHECK_FAIL("case %zu: expected %s flag", i, rows[i].flagged ? "a" : "no");
                result_deinit(&r);
        }
}

/* Each message that is counted at an end that times them is one latency, or one of so many is; by the clock all but the
 * few that are under way at the window's edges. */
static void test_latencies_are_of_the_counted_messages(void) {
        enum { RIGHT, FLAGGED, REFUSED };
        static const struct {
                enum workload workload;
                uint64_t duration_ns, messages[END_COUNT], latencies[END_COUNT], every;
                int wanted;
        } rows[] = {
                {WORKLOAD_PINGPONG, 0, {100, 100}, {100, 0}, 0, RIGHT},
                {WORKLOAD_PINGPONG, 0, {100, 100}, {99, 0}, 0, REFUSED},
                {WORKLOAD_PINGPONG, 0, {100, 100}, {101, 0}, 0, REFUSED},
                {WORKLOAD_STREAM, 0, {100, 100}, {0, 100}, 1, RIGHT},
                {WORKLOAD_STREAM, 0, {100, 100}, {0, 98}, 1, REFUSED},
                {WORKLOAD_STREAM, 0, {100, 100}, {100, 100}, 1, RIGHT}, /* both ways */
                {WORKLOAD_STREAM, 0, {150, 150}, {0, 38}, 4, RIGHT},
                {WORKLOAD_STREAM, 0, {150, 150}, {0, 150}, 4, REFUSED},
                {WORKLOAD_STREAM, 0, {100, 100}, {0, 0}, 0, RIGHT}, /* none is timed */
                {WORKLOAD_SYSCALL, 0, {50000, 0}, {500, 0}, 0, RIGHT},
                {WORKLOAD_PINGPONG, NSEC_PER_SEC, {100, 100}, {104, 0}, 0, RIGHT},
                {WORKLOAD_PINGPONG, NSEC_PER_SEC, {100, 100}, {95, 0}, 0, FLAGGED},
                {WORKLOAD_PINGPONG, NSEC_PER_SEC, {100000, 100000}, {100100, 0}, 0, RIGHT},
                {WORKLOAD_PINGPONG, NSEC_PER_SEC, {100000, 100000}, {100200, 0}, 0, FLAGGED},
                {WORKLOAD_PINGPONG, NSEC_PER_SEC, {100000, 100000}, {99800, 0}, 0, FLAGGED},
                {WORKLOAD_STREAM, NSEC_PER_SEC, {100000, 90000}, {0, 90000}, 1, RIGHT}, /* the receiver's */
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = rows[i].workload, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH, .end = {.duration_ns = rows[i].duration_ns}};
                struct run_order order = {.spec = &spec, .point = &point};
                char text[64];
                (void) snprintf(text, sizeof(text), "{\"latency_every_messages\":%d}", (int) rows[i].every);
                EFFECTIVE *effective = effective_of(rows[i].every ? text : "{}");
                struct message_report reports[END_COUNT] = {{.window_ns = NSEC_PER_SEC}, {.window_ns = NSEC_PER_SEC}};
                struct result r = {
                        .order = &order, .roles = {"first", "second"}, .reports = {&reports[0], &reports[1]}};
                struct run_verdict v = {.n_flags = 0};
                char detail[300] = "";
                for (int end = 0; end < END_COUNT; end++) {
                        struct histogram latency = {0};
                        struct message_sample sample = {.latency = rows[i].latencies[end] ? &latency : NULL};
                        for (uint64_t k = 0; k < rows[i].latencies[end]; k++)
                                histogram_record(&latency, 5000);
                        reports[end].messages = rows[i].messages[end];
                        reports[end].bytes = 10 * rows[i].messages[end];
                        reports[end].effective = effective;
                        CHECK_INT(result_add_sample(&r, (enum end) end, &sample), 0);
                }
                if (rows[i].workload == WORKLOAD_SYSCALL)
                        r.roles[END_SECOND] = NULL;
                int checked = result_check(&r, detail);
                result_flags(&r, &v);
                CHECK_INT(checked, rows[i].wanted == REFUSED ? -EBADMSG : 0);
                CHECK((strstr(detail, "counts_disagree") != NULL) == (rows[i].wanted == REFUSED));
                if (rows[i].wanted != REFUSED && has_flag(&v, "latency_counts_differ") != (rows[i].wanted == FLAGGED))
                        CHECK_FAIL("case %zu: expected %s flag", i, rows[i].wanted == FLAGGED ? "a" : "no");
                result_deinit(&r);
        }
}

/* A window may be short: an end that gets its CPU when the other one is over. */
static void test_a_window_without_a_message(void) {
        static const struct {
                enum workload workload;
                uint64_t window_ns;
                const char *words;
        } rows[] = {{WORKLOAD_STREAM, 213000, "first completed no message in its window of 213 µs"},
                    {WORKLOAD_SYSCALL, NSEC_PER_SEC / 10, "first completed no call in its window of 100 ms"}};
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = rows[i].workload, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = rows[i].window_ns},
                                      b = {.window_ns = NSEC_PER_SEC, .messages = 1};
                struct result r = {.order = &order, .roles = {"first", "second"}, .reports = {&a, &b}};
                char detail[300] = "";
                CHECK_INT(result_check(&r, detail), -EBADMSG);
                CHECK_STRING(detail, rows[i].words);
        }
}

/* What was received is checked against the rate: of all threads together, and of each end where both receive. */
static void test_rate_that_is_not_reached(void) {
        static const struct {
                enum workload workload;
                enum data_direction direction;
                double rate;
                uint64_t window_ns, messages[END_COUNT];
                bool flagged;
        } rows[] = {
                {WORKLOAD_STREAM, DIRECTION_DOWN, 0, NSEC_PER_SEC, {1, 1}, false},
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, NSEC_PER_SEC, {1000, 1000}, false},
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, NSEC_PER_SEC, {969, 969}, false}, /* and the one between */
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, NSEC_PER_SEC, {968, 968}, true},
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, 2 * NSEC_PER_SEC, {1000, 1000}, true},
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, NSEC_PER_SEC, {1000, 900}, true}, /* sent, but not received */
                {WORKLOAD_STREAM, DIRECTION_UP, 1000, NSEC_PER_SEC, {900, 1000}, true},
                {WORKLOAD_STREAM, DIRECTION_UP, 1000, NSEC_PER_SEC, {1000, 900}, false},
                {WORKLOAD_STREAM, DIRECTION_BOTH, 1000, NSEC_PER_SEC, {1000, 1000}, false}, /* 2000 in all */
                {WORKLOAD_STREAM, DIRECTION_BOTH, 1000, NSEC_PER_SEC, {1500, 500}, true},
                {WORKLOAD_PINGPONG, DIRECTION_DOWN, 1000, NSEC_PER_SEC, {500, 500}, true},
                {WORKLOAD_PINGPONG, DIRECTION_DOWN, 1, NSEC_PER_SEC / 2, {1, 1}, false},
                {WORKLOAD_PINGPONG, DIRECTION_DOWN, 2, NSEC_PER_SEC, {1, 1}, false}, /* two to three were due */
                {WORKLOAD_SYSCALL, DIRECTION_DOWN, 1e9, NSEC_PER_SEC, {1, 1}, false},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.workload = rows[i].workload,
                                      .transport = TRANSPORT_TCP,
                                      .direction = rows[i].direction,
                                      .message_size = 1,
                                      .threads = 4};
                struct spec spec = {.rate = rows[i].rate};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = rows[i].window_ns, .messages = rows[i].messages[END_FIRST]};
                struct message_report b = {.window_ns = rows[i].window_ns, .messages = rows[i].messages[END_SECOND]};
                bool alone = workload_agents(point.workload) == 1;
                struct result r = {.order = &order,
                                   .roles = {"first", alone ? NULL : "second"},
                                   .reports = {&a, alone ? NULL : &b}};
                struct run_verdict v = {.n_flags = 0};
                result_flags(&r, &v);
                if (has_flag(&v, "rate_not_reached") != rows[i].flagged)
                        CHECK_FAIL("case %zu: expected %s flag", i, rows[i].flagged ? "a" : "no");
        }
}

/* A tenth of a second, n times. */
static int add_tenths(struct result *r, enum end end, size_t n, uint64_t messages, uint64_t p50_ns) {
        const struct steadiness_end *e = &r->steadiness.ends[end];
        struct message_parts parts = {.begin_ns = e->end_ns ? e->end_ns : 5 * NSEC_PER_SEC, .n = 1};
        for (size_t i = 0; i < n; i++) {
                parts.list[0] = (struct message_part){NSEC_PER_SEC / 10, messages + i % 2, p50_ns, 0};
                if (result_add_parts(r, end, &parts) < 0)
                        return -1;
                parts.begin_ns += NSEC_PER_SEC / 10;
        }
        return 0;
}

/* No flag is not a verdict: a window of few seconds reports whether it was judged. */
static void test_steady_is_reported(void) {
        static const struct {
                struct {
                        size_t tenths;
                        uint64_t messages, p50_ns;
                } of[4];
                const char *wanted[3];
                bool flagged;
        } rows[] = {
                {{{0, 0, 0}},
                 {"\"steady\":null,\"steady_reason\":\"not judged: the window has fewer than 3 seconds"},
                 false},
                {{{29, 10, 0}}, {"\"steady\":null,\"steady_reason\":\"not judged: the window has fewer"}, false},
                {{{30, 100, 0}},
                 {"\"steady\":true,\"steadiness\":[{\"figure\":\"messages_per_second\",\"measured_by\":\"receiver\","
                  "\"class\":\"flat\",\"steady_from_seconds\":0,",
                  "\"segments\":[{\"begin_seconds\":0,\"end_seconds\":3,\"mean\":1005}],\"changes\":[]}]"},
                 false},
                /* a dip in the middle third */
                {{{20, 1000, 0}, {20, 500, 0}, {20, 1000, 0}},
                 {"\"steady\":false,", "\"class\":\"no-steady-state\",\"steady_from_seconds\":null,",
                  "\"at_seconds\":2,\"second\":2,\"at_ns\":7000000000,\"from\":10005,\"to\":5005,\"beside\":null}"},
                 true},
                {{{10, 500, 0}, {40, 1000, 0}},
                 {"\"steady\":false,", "\"class\":\"warm-up\",\"steady_from_seconds\":1,"},
                 true},
                {{{15, 1000, 0}, {25, 500, 0}},
                 {"\"steady\":false,", "\"class\":\"slow-down\",\"steady_from_seconds\":1.5,"},
                 true},
                /* as many messages, of another latency */
                {{{20, 1000, 100}, {20, 1000, 200}, {20, 1000, 100}},
                 {"\"steady\":false,", "\"class\":\"flat\"",
                  "{\"figure\":\"latency_p50_ns\",\"measured_by\":\"receiver\",\"class\":\"no-steady-state\","},
                 true},
                {{{20, 1000, 0}, {20, 1000, 200}, {20, 1000, 0}},
                 {"\"steady\":null,\"steady_reason\":\"not judged: most tenths of a second have no latency\"",
                  "\"class\":null,\"class_reason\":\"not judged: most tenths"},
                 false},
                {{{1, 1000, 200}, {1, 1000, 0}, {58, 1000, 200}}, {"\"steady\":true,"}, false},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.transport = TRANSPORT_PIPE, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {.window_ns = NSEC_PER_SEC, .messages = 100, .bytes = 1000};
                struct result r = {.order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &a}};
                struct run_verdict v = {.n_flags = 0};
                _cleanup_free_ char *text = NULL;
                CHECK_INT(add_tenths(&r, END_FIRST, 40, 1 + i, 0), 0); /* which is not measured here */
                for (size_t k = 0; k < 4; k++)
                        CHECK_INT(add_tenths(&r, END_SECOND, rows[i].of[k].tenths, rows[i].of[k].messages,
                                             rows[i].of[k].p50_ns),
                                  0);
                CHECK_INT(result_judge(&r), 0);
                CHECK_INT(result_to_json(&r, &text), 0);
                for (size_t k = 0; k < 3; k++)
                        if (rows[i].wanted[k] && !strstr(text, rows[i].wanted[k]))
                                CHECK_FAIL("case %zu, %s: %s", i, rows[i].wanted[k], text);
                result_flags(&r, &v);
                if (has_flag(&v, "no_steady_state") != rows[i].flagged)
                        CHECK_FAIL("case %zu: expected %s flag", i, rows[i].flagged ? "a" : "no");
                result_deinit(&r);
        }
}

/* An end that was stopped has one long part, which is the dip that it was; and the machine's second is beside it. */
static void test_a_stop_is_a_dip(void) {
        struct point point = {.transport = TRANSPORT_PIPE, .message_size = 10, .threads = 1};
        struct spec spec = {.verify = VERIFY_TOUCH};
        struct run_order order = {.spec = &spec, .point = &point};
        struct message_report a = {.window_ns = NSEC_PER_SEC, .messages = 100, .bytes = 1000};
        struct result r = {.order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &a}};
        _cleanup_free_ char *text = NULL;
        struct disturbance_second seconds[] = {
                {.begin_ns = 7 * NSEC_PER_SEC, .interval_ns = NSEC_PER_SEC, .foreign = 0.5}};
        const struct disturbance beside = {.seconds = seconds, .n = 1};
        r.beside = &beside;
        CHECK_INT(add_tenths(&r, END_SECOND, 20, 1000, 0), 0);
        struct message_parts stopped = {
                .begin_ns = 7 * NSEC_PER_SEC, .n = 1, .list = {{3 * NSEC_PER_SEC / 2, 150, 0, 0}}};
        CHECK_INT(result_add_parts(&r, END_SECOND, &stopped), 0);
        CHECK_INT(add_tenths(&r, END_SECOND, 30, 1000, 0), 0);
        CHECK_INT(result_judge(&r), 0);
        CHECK_INT(result_to_json(&r, &text), 0);
        static const char *const wanted[] = {
                "\"begin_ns\":5000000000,",
                "{\"begin_seconds\":2,\"end_seconds\":3.5,\"mean\":100",
                "\"at_seconds\":2,\"second\":2,\"at_ns\":7000000000,\"from\":10005,\"to\":100",
                ",\"beside\":{\"second\":0,\"begin_ns\":7000000000,",
                "\"flags\":[\"noisy:foreign-cpu\"]}}",
                "\"at_seconds\":3.5,\"second\":3,\"at_ns\":8500000000,\"from\":100",
        };
        for (size_t k = 0; k < sizeof(wanted) / sizeof(wanted[0]); k++)
                if (!strstr(text, wanted[k]))
                        CHECK_FAIL("%s: %s", wanted[k], text);
        result_deinit(&r);
}

/* What ksoftirqd used per message, or the reason why that is null. */
static void test_ksoftirqd_has_a_reason(void) {
        static const struct {
                enum transport transport;
                uint64_t messages;
                int64_t ksoftirqd_ns, observed_ns;
                const char *wanted;
        } rows[] = {
                {TRANSPORT_TCP, 100, 50 * NSEC_PER_MSEC, NSEC_PER_SEC, "\"ksoftirqd_ns_per_message\":500000,"},
                {TRANSPORT_TCP, 100, 0, NSEC_PER_SEC, "\"ksoftirqd_ns_per_message\":0,"},
                {TRANSPORT_TCP, 100, -1, NSEC_PER_SEC,
                 "\"ksoftirqd_ns_per_message\":null,\"ksoftirqd_ns_per_message_reason\":\"a thread ksoftirqd "},
                {TRANSPORT_TCP, 0, 50 * NSEC_PER_MSEC, NSEC_PER_SEC,
                 "\"ksoftirqd_ns_per_message\":null,\"ksoftirqd_ns_per_message_reason\":\"no message came\""},
                {TRANSPORT_TCP, 0, 0, NSEC_PER_SEC,
                 "\"ksoftirqd_ns_per_message\":null,\"ksoftirqd_ns_per_message_reason\":\"no message came\""},
                {TRANSPORT_PIPE, 100, 50 * NSEC_PER_MSEC, NSEC_PER_SEC,
                 "\"ksoftirqd_ns_per_message\":null,\"ksoftirqd_ns_per_message_reason\":\"the run's messages raise "},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.transport = rows[i].transport, .message_size = 10, .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {
                        .window_ns = NSEC_PER_SEC, .messages = rows[i].messages, .bytes = 10 * rows[i].messages};
                const struct disturbance beside = {.run = {.network = rows[i].transport == TRANSPORT_TCP},
                                                   .ksoftirqd_ns = rows[i].ksoftirqd_ns,
                                                   .interval_total_ns = rows[i].observed_ns};
                struct result r = {
                        .order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &a}, .beside = &beside};
                _cleanup_free_ char *text = NULL;
                CHECK_INT(result_to_json(&r, &text), 0);
                if (!text || !strstr(text, rows[i].wanted))
                        CHECK_FAIL("%s: %s", rows[i].wanted, text);
        }
}

/* Where both ends receive, they are one series. */
static void test_both_directions_are_judged_together(void) {
        struct point point = {
                .transport = TRANSPORT_TCP, .message_size = 10, .threads = 1, .direction = DIRECTION_BOTH};
        struct spec spec = {.verify = VERIFY_TOUCH};
        struct run_order order = {.spec = &spec, .point = &point};
        struct message_report a = {.window_ns = NSEC_PER_SEC, .messages = 100, .bytes = 1000};
        struct result r = {.order = &order, .roles = {"server", "client"}, .reports = {&a, &a}};
        _cleanup_free_ char *text = NULL;
        CHECK_INT(add_tenths(&r, END_FIRST, 40, 10, 0), 0);
        CHECK_INT(add_tenths(&r, END_SECOND, 41, 20, 0), 0);
        CHECK_INT(result_judge(&r), 0);
        CHECK_INT(result_to_json(&r, &text), 0);
        CHECK(strstr(text, "\"measured_by\":\"both\",\"class\":\"flat\","));
        CHECK(strstr(text, "\"segments\":[{\"begin_seconds\":0,\"end_seconds\":4,\"mean\":310}]"));
        result_deinit(&r);
}

/* A requested thread that moved nothing was not used. */
static void test_threads_in_use(void) {
        struct point point = {.transport = TRANSPORT_PIPE, .message_size = 10, .threads = 3};
        struct spec spec = {.verify = VERIFY_TOUCH};
        struct run_order order = {.spec = &spec, .point = &point};
        struct message_report a = {.window_ns = 1000000000, .messages = 3, .bytes = 30};
        struct message_thread used[3] = {{.thread = 0, .messages = 1, .bytes = 10},
                                         {.thread = 1, .messages = 1, .bytes = 10},
                                         {.thread = 2, .messages = 1, .bytes = 10}};
        struct message_thread starved[3] = {{.thread = 0, .messages = 1, .bytes = 10},
                                            {.thread = 1, .messages = 0, .bytes = 0},
                                            {.thread = 2, .messages = 2, .bytes = 20}};
        struct result r = {
                .order = &order, .roles = {"sender", "receiver"}, .reports = {&a, &a}, .threads = {used, starved}};
        _cleanup_free_ char *text = NULL;
        CHECK_INT(result_to_json(&r, &text), 0);
        CHECK(strstr(text, "\"effective\":{\"threads\":{\"sender\":3,\"receiver\":2}}"));
}

/* What only a round trip has is null with a reason elsewhere. */
static void test_both_ways_has_a_reason(void) {
        static const struct {
                enum workload workload;
                const char *wanted;
        } rows[] = {
                {WORKLOAD_PINGPONG, "\"both_ways_bytes_per_second\":2000,\"messages_per_second\":"},
                {WORKLOAD_STREAM, "\"both_ways_bytes_per_second\":null,"
                                  "\"both_ways_bytes_per_second_reason\":\"of pingpong only\","},
        };
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_free_ char *text = result_of_ends(rows[i].workload, 0, VERIFY_TOUCH);
                if (!text || !strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text ? text : "no result");
        }
}

/* Half of a round trip is one way's only where nothing but the two ways is in it. */
static void test_one_way_is_of_closed_loops(void) {
        static const struct {
                enum workload workload;
                double rate;
                const char *wanted;
        } rows[] = {
                {WORKLOAD_PINGPONG, 0, "\"latency_one_way_ns\":{\"min\":1000,\"p50\":"},
                {WORKLOAD_PINGPONG, 1000,
                 "\"latency_one_way_ns\":null,\"latency_one_way_ns_reason\":\"none in an open loop: "},
                {WORKLOAD_STREAM, 0, "\"latency_one_way_ns\":null,\"latency_one_way_ns_reason\":\"of pingpong only\","},
                {WORKLOAD_STREAM, 1000,
                 "\"latency_one_way_ns\":null,\"latency_one_way_ns_reason\":\"of pingpong only\","},
        };
        struct histogram *latency = calloc(1, sizeof(*latency));
        CHECK(latency);
        histogram_record(latency, 2000);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_free_ char *text = result_of_timed_ends(rows[i].workload, rows[i].rate, VERIFY_TOUCH, latency);
                if (!text || !strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text ? text : "no result");
                if (text && !strstr(text, "\"latency_ns\":{\"min\":2000,"))
                        CHECK_FAIL("case %zu: %s", i, text);
        }
        free(latency);
}

static const struct {
        enum transport transport;
        enum workload workload;
        enum data_direction direction;
        const char *counted_by;
} counted_cases[] = {
        {TRANSPORT_TCP, WORKLOAD_STREAM, DIRECTION_DOWN, "server"},
        {TRANSPORT_TCP, WORKLOAD_STREAM, DIRECTION_UP, "client"},
        {TRANSPORT_TCP, WORKLOAD_STREAM, DIRECTION_BOTH, "server"}, /* both send alike: the first */
        {TRANSPORT_TCP, WORKLOAD_PINGPONG, DIRECTION_UP, "server"},
        {TRANSPORT_PIPE, WORKLOAD_STREAM, DIRECTION_UP, "server"}, /* has no direction */
};

/* The copy mode is the sender's, and so is what it saves. */
static void test_the_sender_is_counted(void) {
        for (size_t i = 0; i < sizeof(counted_cases) / sizeof(counted_cases[0]); i++) {
                struct point point = {.transport = counted_cases[i].transport,
                                      .workload = counted_cases[i].workload,
                                      .direction = counted_cases[i].direction,
                                      .message_size = 10,
                                      .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                EFFECTIVE *first = effective_of("{\"nodelay\":true}"), *second = effective_of("{\"nodelay\":false}");
                struct message_report a = {.window_ns = 1000000000, .messages = 100, .bytes = 1000, .effective = first};
                struct message_report b = a;
                struct result r = {.order = &order, .roles = {"server", "client"}, .reports = {&a, &b}};
                _cleanup_free_ char *text = NULL;
                struct json *root = NULL;
                const char *by = "";
                b.effective = second;
                CHECK_INT(result_to_json(&r, &text), 0);
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                CHECK_INT(json_as_string(json_get(root, "counted_by"), &by), 0);
                if (strcmp(by, counted_cases[i].counted_by) != 0)
                        CHECK_FAIL("case %zu: counted by the %s", i, by);
                bool of_first = strstr(text, "\"effective\":{\"nodelay\":true");
                if (of_first != (strcmp(counted_cases[i].counted_by, "server") == 0))
                        CHECK_FAIL("case %zu: the other end's settings", i);
                json_free(root);
        }
}

/* A byte that an end sent cost it CPU time as one that it received: those of a pingpong go both ways, and of two
 * streams at once an end has one each way. */
static void test_cost_of_both_ways(void) {
        static const struct {
                enum workload workload;
                enum data_direction direction;
                const char *wanted; /* of an end, and of both together */
        } rows[] = {
                {WORKLOAD_STREAM, DIRECTION_DOWN,
                 "\"cpu_ns_per_message\":60,\"cpu_ns_per_gigabyte\":6000000000,\"cycles_per_byte\":12"},
                {WORKLOAD_PINGPONG, DIRECTION_DOWN,
                 "\"cpu_ns_per_message\":60,\"cpu_ns_per_gigabyte\":3000000000,\"cycles_per_byte\":6"},
                {WORKLOAD_STREAM, DIRECTION_BOTH,
                 "\"cpu_ns_per_message\":15,\"cpu_ns_per_gigabyte\":1500000000,\"cycles_per_byte\":3"},
        };
        static const char sum_of_both[] =
                "\"cpu_ns_per_message\":30,\"cpu_ns_per_gigabyte\":3000000000,\"cycles_per_byte\":6";
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct point point = {.transport = TRANSPORT_TCP,
                                      .workload = rows[i].workload,
                                      .direction = rows[i].direction,
                                      .message_size = 10,
                                      .threads = 1};
                struct spec spec = {.verify = VERIFY_TOUCH};
                struct run_order order = {.spec = &spec, .point = &point};
                struct message_report a = {
                        .window_ns = 1000000000, .messages = 100, .bytes = 1000, .counters = counters_of(6000, 12000)};
                struct message_report b = a;
                struct result r = {.order = &order, .roles = {"first", "second"}, .reports = {&a, &b}};
                _cleanup_free_ char *text = NULL;
                if (rows[i].direction == DIRECTION_BOTH) { /* at three times the rate, for twice as long */
                        b.window_ns *= 2;
                        b.messages *= 6;
                        b.bytes *= 6;
                        b.counters = counters_of(12000, 24000);
                }
                CHECK_INT(result_to_json(&r, &text), 0);
                if (!strstr(text, rows[i].wanted))
                        CHECK_FAIL("case %zu: %s", i, text);
                if (rows[i].direction == DIRECTION_BOTH && !strstr(text, sum_of_both))
                        CHECK_FAIL("case %zu, together: %s", i, text);
        }
}

int main(void) {
        RUN(test_above_memcpy_ceiling);
        RUN(test_latency_reason);
        RUN(test_stamp_cost);
        RUN(test_clock);
        RUN(test_clock_offset);
        RUN(test_latency_near_the_quantum);
        RUN(test_loop_and_verify);
        RUN(test_round_trips_have_their_kind);
        RUN(test_threads_in_use);
        RUN(test_both_ways_has_a_reason);
        RUN(test_one_way_is_of_closed_loops);
        RUN(test_the_sender_is_counted);
        RUN(test_pipes_that_differ);
        RUN(test_flags_of_counters);
        RUN(test_a_window_without_a_message);
        RUN(test_rate_that_is_not_reached);
        RUN(test_latency_above_the_limit);
        RUN(test_latencies_are_of_the_counted_messages);
        RUN(test_steady_is_reported);
        RUN(test_a_stop_is_a_dip);
        RUN(test_ksoftirqd_has_a_reason);
        RUN(test_both_directions_are_judged_together);
        RUN(test_cost_of_both_ways);
        return check_end();
}
