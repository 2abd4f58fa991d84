/* SPDX-License-Identifier: MIT */

/* Figures derived from counters: quotients, sums of both agents, and why there is none. */

#include "check.h"
#include "daemon/result/derived.h"
#include "schema/json/json.h"
#include "schema/util.h"

static const struct point stream = {.workload = WORKLOAD_STREAM};

static int derive(const struct point *p, const char *counters, uint64_t messages, uint64_t bytes,
                  struct result_derived *ret) {
        _cleanup_free_ char *text = strdup(counters);
        struct message_report m = {.window_ns = 1, .messages = messages, .bytes = bytes, .counters = text};
        return text ? result_derive(p, &m, NULL, ret) : -ENOMEM;
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

#define NO_HARDWARE "{\"task_clock_ns\":500,\"cycles\":null,\"reasons\":{\"hardware\":\"no such counter\"}}"
#define CANNOT(name, why) "\"" name "\":null,\"" name "_reason\":\"" why "\""

static void test_table(void) {
        static const struct {
                const char *counters;
                uint64_t messages, bytes;
                const char *want;
        } cases[] = {
                {"{\"task_clock_ns\":500,\"cycles\":4000}", 10, 1000,
                 "{\"cpu_ns_per_message\":50,\"cpu_ns_per_gigabyte\":500000000,\"cycles_per_byte\":4}"},
                {"{\"task_clock_ns\":0,\"cycles\":0}", 10, 1000,
                 "{\"cpu_ns_per_message\":0,\"cpu_ns_per_gigabyte\":0,\"cycles_per_byte\":0}"},
                {NO_HARDWARE, 10, 1000,
                 "{\"cpu_ns_per_message\":50,\"cpu_ns_per_gigabyte\":500000000," CANNOT("cycles_per_byte",
                                                                                        "no such counter") "}"},
                {"{\"task_clock_ns\":500,\"cycles\":null,\"reasons\":{\"cycles\":\"not allowed\"}}", 10, 1000,
                 "{\"cpu_ns_per_message\":50,\"cpu_ns_per_gigabyte\":500000000," CANNOT("cycles_per_byte",
                                                                                        "not allowed") "}"},
                {NO_HARDWARE, 10, 0,
                 "{\"cpu_ns_per_message\":50," CANNOT("cpu_ns_per_gigabyte", "this workload moves no data") "," CANNOT(
                         "cycles_per_byte", "this workload moves no data") "}"},
                {"{}", 10, 1000,
                 "{" CANNOT("cpu_ns_per_message", "the agent did not count it") "," CANNOT(
                         "cpu_ns_per_gigabyte",
                         "the agent did not count it") "," CANNOT("cycles_per_byte", "the agent did not count it") "}"},
                {"{\"task_clock_ns\":\"many\",\"reasons\":7,\"cycles\":1}", 1, 1,
                 "{" CANNOT("cpu_ns_per_message", "the agent did not count it") "," CANNOT(
                         "cpu_ns_per_gigabyte", "the agent did not count it") ",\"cycles_per_byte\":1}"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct result_derived d;
                CHECK_INT(derive(&stream, cases[i].counters, cases[i].messages, cases[i].bytes, &d), 0);
                _cleanup_free_ char *text = print(&d);
                CHECK_STRING(text, cases[i].want);
        }
}

static void test_not_counters(void) {
        static const char *const texts[] = {"", "[]", "7", "null", "{\"cycles\":}"};
        struct result_derived d;
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                CHECK_INT(derive(&stream, texts[i], 1, 1, &d), -EBADMSG);
}

static void test_both_agents(void) {
        struct result_derived sum, other;
        CHECK_INT(derive(&stream, "{\"task_clock_ns\":500,\"cycles\":4000}", 10, 1000, &sum), 0);
        CHECK_INT(derive(&stream, "{\"task_clock_ns\":100,\"cycles\":1000}", 5, 500, &other), 0);
        result_derived_add(&sum, &other);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 70);
        CHECK(sum.figures[DERIVED_CYCLES_PER_BYTE].value == 6);
        CHECK_INT(derive(&stream, NO_HARDWARE, 5, 500, &other), 0);
        result_derived_add(&sum, &other);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 170);
        CHECK(!sum.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK_STRING(sum.figures[DERIVED_CYCLES_PER_BYTE].reason, "no such counter");
        result_derived_add(&other, &sum); /* unknown first */
        CHECK(!other.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK_STRING(other.figures[DERIVED_CYCLES_PER_BYTE].reason, "no such counter");
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
                char counters[] = "{\"task_clock_ns\":500,\"cycles\":4000}";
                const struct message_report m = {
                        .window_ns = 1000, .messages = 10, .bytes = 1000, .counters = counters};
                const struct message_report other = {
                        .window_ns = rows[i].other_window_ns, .messages = 30, .bytes = 3000, .counters = counters};
                struct result_derived d;
                CHECK_INT(result_derive(&p, &m, &other, &d), 0);
                if (d.figures[DERIVED_CPU_NS_PER_MESSAGE].value != rows[i].per_message ||
                    d.figures[DERIVED_CYCLES_PER_BYTE].value != rows[i].cycles_per_byte)
                        CHECK_FAIL("case %zu: %g ns per message, %g cycles per byte", i,
                                   d.figures[DERIVED_CPU_NS_PER_MESSAGE].value,
                                   d.figures[DERIVED_CYCLES_PER_BYTE].value);
        }
}

static void test_ring_of_processes(void) {
        const struct point p = {.workload = WORKLOAD_CONTEXT_SWITCH};
        struct result_derived d;
        CHECK_INT(derive(&p, "{\"task_clock_ns\":500,\"cycles\":4000}", 10, 0, &d), 0);
        for (size_t i = 0; i < DERIVED_COUNT; i++)
                CHECK(!d.figures[i].known && strstr(d.figures[i].reason, "several processes"));
}

int main(void) {
        RUN(test_table);
        RUN(test_not_counters);
        RUN(test_both_agents);
        RUN(test_both_ways);
        RUN(test_ring_of_processes);
        return check_end();
}
