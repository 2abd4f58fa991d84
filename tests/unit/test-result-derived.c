/* SPDX-License-Identifier: MIT */

/* Figures derived from counters: quotients, sums of both agents, and why there is none. */

#include "check.h"
#include "daemon/result-derived.h"
#include "schema/json.h"
#include "schema/util.h"

static const struct point stream = {.workload = WORKLOAD_STREAM};

static int derive(const struct point *p, const char *counters, uint64_t messages, uint64_t bytes,
                  struct result_derived *ret) {
        _cleanup_free_ char *text = strdup(counters);
        struct message_report m = {.window_ns = 1, .messages = messages, .bytes = bytes, .counters = text};
        return text ? result_derive(p, &m, ret) : -ENOMEM;
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
        result_derived_add(&sum, &other, false);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 70);
        CHECK(sum.figures[DERIVED_CYCLES_PER_BYTE].value == 6);
        CHECK_INT(derive(&stream, NO_HARDWARE, 5, 500, &other), 0);
        result_derived_add(&sum, &other, false);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 170);
        CHECK(!sum.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK_STRING(sum.figures[DERIVED_CYCLES_PER_BYTE].reason, "no such counter");
        result_derived_add(&other, &sum, false); /* unknown first */
        CHECK(!other.figures[DERIVED_CYCLES_PER_BYTE].known);
        CHECK_STRING(other.figures[DERIVED_CYCLES_PER_BYTE].reason, "no such counter");
}

static void test_both_receive(void) {
        struct result_derived sum, other;
        CHECK_INT(derive(&stream, "{\"task_clock_ns\":500,\"cycles\":4000}", 10, 1000, &sum), 0);
        CHECK_INT(derive(&stream, "{\"task_clock_ns\":100,\"cycles\":1000}", 5, 250, &other), 0);
        result_derived_add(&sum, &other, true);
        CHECK(sum.figures[DERIVED_CPU_NS_PER_MESSAGE].value == 40);
        CHECK(sum.figures[DERIVED_CYCLES_PER_BYTE].value == 4);
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
        RUN(test_both_receive);
        RUN(test_ring_of_processes);
        return check_end();
}
