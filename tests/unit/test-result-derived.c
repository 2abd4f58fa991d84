/* SPDX-License-Identifier: MIT */

/* Figures derived from counters: quotients, sums of both agents, and why there is none. */

#include "check.h"
#include "daemon/result/derived.h"
#include "schema/json/json.h"
#include "schema/util.h"

static const struct point stream = {.workload = WORKLOAD_STREAM};

/* cycles_error: 0, or why there are none. */
static struct counters_totals counted(uint64_t cpu_ns, uint64_t cycles, int cycles_error) {
        struct counters_totals t = {.usage = {.cpu_ns = cpu_ns}};
        t.perf.counts[PERF_CYCLES][PERF_USER] =
                cycles_error ? (struct perf_count){.error = cycles_error}
                             : (struct perf_count){.known = true, .value = cycles, .fraction = 1};
        t.perf.counts[PERF_CYCLES][PERF_KERNEL] = (struct perf_count){.known = true, .value = 0, .fraction = 1};
        return t;
}

static struct result_derived derive(const struct point *p, struct counters_totals counters, uint64_t messages,
                                    uint64_t bytes) {
        const struct message_report m = {.window_ns = 1, .messages = messages, .bytes = bytes, .counters = counters};
        struct result_derived d;
        result_derive(p, &m, NULL, &d);
        return d;
}

static char *print(const struct result_derived *d) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        result_derived_to_json(d, &w);
        json_object_end(&w);
        if (json_writer_steal(&w, &text, NULL) < 0)
                text = NULL;
        json_writer_deinit(&w);
        return text;
}

#define NO_CYCLES "no such counter (a virtual machine often has none)"
#define CANNOT(name, why) "\"" name "\":null,\"" name "_reason\":\"" why "\""

static void test_table(void) {
        static const struct {
                uint64_t cpu_ns, cycles;
                int cycles_error;
                uint64_t messages, bytes;
                const char *want;
        } cases[] = {
                {500, 4000, 0, 10, 1000,
                 "{\"cpu_ns_per_message\":50,\"cpu_ns_per_gigabyte\":500000000,\"cycles_per_byte\":4,\"cycles_per_"
                 "message\":400,"},
                {0, 0, 0, 10, 1000, "{\"cpu_ns_per_message\":0,\"cpu_ns_per_gigabyte\":0,\"cycles_per_byte\":0,"},
                {500, 0, -ENOENT, 10, 1000,
                 "{\"cpu_ns_per_message\":50,\"cpu_ns_per_gigabyte\":500000000," CANNOT(
                         "cycles_per_byte", "this machine has " NO_CYCLES) ","},
                {500, 0, -ENOENT, 10, 0,
                 "{\"cpu_ns_per_message\":50," CANNOT("cpu_ns_per_gigabyte", "this workload moves no data") "," CANNOT(
                         "cycles_per_byte", "this workload moves no data") ","},
                {500, 1, 0, 0, 1000,
                 "{" CANNOT("cpu_ns_per_message",
                            "there was no message") ",\"cpu_ns_per_gigabyte\":500000000,\"cycles_per_byte\":0.001,"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct result_derived d =
                        derive(&stream, counted(cases[i].cpu_ns, cases[i].cycles, cases[i].cycles_error),
                               cases[i].messages, cases[i].bytes);
                _cleanup_free_ char *text = print(&d);
                if (!text || strncmp(text, cases[i].want, strlen(cases[i].want)) != 0)
                        CHECK_FAIL("case %zu: %s", i, text ? text : "nothing");
        }
}

/* Every event, of user and kernel together, and the switches of both kinds. */
static void test_per_message(void) {
        struct counters_totals t = {.usage = {.voluntary_switches = 3, .involuntary_switches = 2}};
        for (unsigned event = 0; event < PERF_EVENT_COUNT; event++)
                for (unsigned mode = 0; mode < PERF_MODE_COUNT; mode++)
                        t.perf.counts[event][mode] =
                                (struct perf_count){.known = true, .value = 5 * (event + 1), .fraction = 1};
        struct result_derived d = derive(&stream, t, 10, 1000);
        _cleanup_free_ char *text = print(&d);
        CHECK(text && strstr(text, "\"cycles_per_message\":1,\"instructions_per_message\":2,"
                                   "\"l1d_read_misses_per_message\":3,\"llc_misses_per_message\":4,"
                                   "\"dtlb_misses_per_message\":5,\"branch_misses_per_message\":6,"
                                   "\"context_switches_per_message\":0.5}"));
}

static void test_both_agents(void) {
        struct result_derived sum = derive(&stream, counted(500, 4000, 0), 10, 1000);
        struct result_derived other = derive(&stream, counted(100, 1000, 0), 5, 500);
        result_derived_add(&sum, &other);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 70);
        CHECK(sum.figures[DERIVED_CYCLES_PER_BYTE].value == 6);
        other = derive(&stream, counted(500, 0, -ENOENT), 5, 500);
        result_derived_add(&sum, &other);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 170);
        CHECK(!sum.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK(strstr(sum.figures[DERIVED_CYCLES_PER_BYTE].reason, NO_CYCLES));
        result_derived_add(&other, &sum); /* unknown first */
        CHECK(!other.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK(strstr(other.figures[DERIVED_CYCLES_PER_BYTE].reason, NO_CYCLES));
}

/* Each way counts, of a round trip in bytes, of two streams at once in messages, too. */
static void test_both_ways(void) {
        static const struct {
                enum workload workload;
                enum data_direction direction;
                uint64_t other_window_ns;
                double per_message, cycles_per_byte;
        } rows[] = {
                {WORKLOAD_PINGPONG, DIRECTION_DOWN, 1000, 50, 2},
                {WORKLOAD_STREAM, DIRECTION_DOWN, 1000, 50, 4},
                {WORKLOAD_STREAM, DIRECTION_UP, 1000, 50, 4},
                {WORKLOAD_STREAM, DIRECTION_BOTH, 1000, 12.5, 1}, /* 10 and 30 messages of 100 bytes */
                {WORKLOAD_STREAM, DIRECTION_BOTH, 3000, 25, 2},   /* 10 and, in a third of that window, 10 */
                {WORKLOAD_PINGPONG, DIRECTION_BOTH, 1000, 50, 2}, /* has no direction */
                {WORKLOAD_STREAM, DIRECTION_BOTH, 0, 50, 4},      /* no window, no rate */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                const struct point p = {
                        .transport = TRANSPORT_TCP, .workload = rows[i].workload, .direction = rows[i].direction};
                const struct counters_totals counters = counted(500, 4000, 0);
                const struct message_report m = {
                        .window_ns = 1000, .messages = 10, .bytes = 1000, .counters = counters};
                const struct message_report other = {
                        .window_ns = rows[i].other_window_ns, .messages = 30, .bytes = 3000, .counters = counters};
                struct result_derived d;
                result_derive(&p, &m, &other, &d);
                if (d.figures[DERIVED_CPU_NS_PER_MESSAGE].value != rows[i].per_message ||
                    d.figures[DERIVED_CYCLES_PER_BYTE].value != rows[i].cycles_per_byte)
                        CHECK_FAIL("case %zu: %g ns per message, %g cycles per byte", i,
                                   d.figures[DERIVED_CPU_NS_PER_MESSAGE].value,
                                   d.figures[DERIVED_CYCLES_PER_BYTE].value);
        }
}

static void test_ring_of_processes(void) {
        const struct point p = {.workload = WORKLOAD_CONTEXT_SWITCH};
        struct result_derived d = derive(&p, counted(500, 4000, 0), 10, 0);
        for (size_t i = 0; i < DERIVED_COUNT; i++)
                CHECK(!d.figures[i].known && strstr(d.figures[i].reason, "several processes"));
}

int main(void) {
        RUN(test_table);
        RUN(test_per_message);
        RUN(test_both_agents);
        RUN(test_both_ways);
        RUN(test_ring_of_processes);
        return check_end();
}
