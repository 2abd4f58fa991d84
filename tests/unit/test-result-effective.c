/* SPDX-License-Identifier: MIT */

/* Which end's report decides what was in force, and the value of a row where runs differ. */

#include "daemon/result/effective.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include "check.h"
#include "effective.h"

#include <string.h>

static const struct effective_known nothing = {.rate = 0};

static char *chosen(const char *first, const char *second, enum end sender, struct effective_known known) {
        EFFECTIVE *a = effective_of(first), *b = effective_of(second ? second : "{}");
        struct message_report reports[END_COUNT] = {{.effective = a}, {.effective = b}};
        const struct message_report *of[END_COUNT] = {&reports[0], second ? &reports[1] : NULL};
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        result_effective_to_json(of, sender, &known, &w);
        json_object_end(&w);
        (void) json_writer_steal(&w, &text, NULL);
        json_writer_deinit(&w);
        return text;
}

static void test_of_a_run(void) {
        static const struct {
                const char *first, *second, *effective;
        } cases[] = {
                {"{}", "{}", "{\"effective\":{}}"},
                {"{\"clock_cost_ns\":40}", NULL, "{\"effective\":{}}"},
                {"{\"chunk_bytes\":8192,\"chunks_per_message\":512}", "{\"chunk_bytes\":8192}",
                 "{\"effective\":{\"chunk_bytes\":8192,\"chunks_per_message\":512}}"},
                {"{\"pipe_size\":4096,\"buffer_bytes\":4096}", "{\"buffer_bytes\":8192}",
                 "{\"effective\":{\"buffer_bytes\":4096,\"pipe_size\":4096}}"},
                {"{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":2}", "{\"sndbuf_bytes\":3,\"rcvbuf_bytes\":4}",
                 "{\"effective\":{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":4}}"},
                {"{}", "{\"file_sync\":\"direct\",\"huge_pages\":false}",
                 "{\"effective\":{\"huge_pages\":false,\"file_sync\":\"direct\"}}"},
                {"{\"pipe_size\":null,\"pipe_size_reason\":\"why\"}", "{}",
                 "{\"effective\":{\"pipe_size\":null,\"pipe_size_reason\":\"why\"}}"},
                {"{\"clocksource\":\"hpet\",\"glibc\":\"2.36\"}", NULL, "{\"effective\":{\"clocksource\":\"hpet\"}}"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *text = chosen(cases[i].first, cases[i].second, END_FIRST, nothing);
                CHECK_STRING(text, cases[i].effective);
        }
}

/* A buffer is reported by the end that fills or empties it, whichever end of the run that is. */
static void test_either_end_sends(void) {
        static const char first[] = "{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":2,\"busy_poll_us\":3,\"nodelay\":true,"
                                    "\"congestion\":\"reno\",\"segment_bytes\":4}";
        static const char second[] = "{\"sndbuf_bytes\":5,\"rcvbuf_bytes\":6,\"busy_poll_us\":7,\"nodelay\":false,"
                                     "\"congestion\":\"cubic\",\"segment_bytes\":8}";
        _cleanup_free_ char *down = chosen(first, second, END_FIRST, nothing);
        _cleanup_free_ char *up = chosen(first, second, END_SECOND, nothing);
        CHECK_STRING(down, "{\"effective\":{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":6,\"busy_poll_us\":7,"
                           "\"nodelay\":true,\"congestion\":\"reno\",\"segment_bytes\":4}}");
        CHECK_STRING(up, "{\"effective\":{\"sndbuf_bytes\":5,\"rcvbuf_bytes\":2,\"busy_poll_us\":3,"
                         "\"nodelay\":false,\"congestion\":\"cubic\",\"segment_bytes\":8}}");
}

/* The largest where threads' sizes differ, and never another end's beside the smallest of this one. */
static void test_largest_sizes(void) {
        static const char uneven[] = "{\"sndbuf_bytes\":1,\"sndbuf_bytes_max\":2,\"rcvbuf_bytes\":3,"
                                     "\"rcvbuf_bytes_max\":4,\"pipe_size\":5,\"pipe_size_max\":6}";
        static const char even[] = "{\"sndbuf_bytes\":7,\"rcvbuf_bytes\":8,\"pipe_size\":9}";
        _cleanup_free_ char *sent = chosen(uneven, even, END_FIRST, nothing);
        _cleanup_free_ char *received = chosen(uneven, even, END_SECOND, nothing);
        CHECK_STRING(sent, "{\"effective\":{\"pipe_size\":5,\"pipe_size_max\":6,\"sndbuf_bytes\":1,"
                           "\"sndbuf_bytes_max\":2,\"rcvbuf_bytes\":8}}");
        CHECK_STRING(received, "{\"effective\":{\"pipe_size\":9,\"sndbuf_bytes\":7,\"rcvbuf_bytes\":3,"
                               "\"rcvbuf_bytes_max\":4}}");
}

/* Where a switch was, what a round trip is timed from, the rate, and how many threads moved anything, the daemon knows
 * by itself. */
static void test_of_the_daemon(void) {
        const int32_t cpu = 3;
        const struct effective_known known = {
                .cpu = &cpu, .round_trip = "due", .rate = 2500.5, .threads_json = "{\"server\":3,\"client\":4}"};
        _cleanup_free_ char *text = chosen("{\"slots\":2}", "{}", END_FIRST, known);
        CHECK_STRING(text, "{\"effective\":{\"slots\":2,\"cpu\":3,\"round_trip\":\"due\",\"rate\":2500.5,"
                           "\"threads\":{\"server\":3,\"client\":4}}}");
}

static void test_of_a_point(void) {
        static const char *const runs[] = {
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":1}}",
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":2}}",
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":1,\"huge_pages\":true}}",
                "{\"effective\":{\"rate\":1000,\"threads\":{\"server\":4}}}",
                "{\"effective\":{\"threads\":{\"server\":3}}}",
                "{\"effective\":{\"threads\":{\"server\":4}}}",
                "{\"effective\":null}",
                "{}",
                "[]",
        };
        struct effective_values v = {0};
        _cleanup_(json_view_deinit) struct json_view view = {0};
        _cleanup_free_ char *text = NULL;
        for (size_t i = 0; i < ELEMENTS(runs); i++) {
                CHECK_INT(json_view_read(&view, runs[i]), 0);
                CHECK_INT(effective_values_add(&v, view.parts), 0);
        }
        CHECK_INT(effective_values_print(&v, &text), 0);
        CHECK_STRING(text, "{\"chunk_bytes\":8192,\"rcvbuf_bytes\":[1,2],\"huge_pages\":true,\"rate\":1000,"
                           "\"threads\":[{\"server\":4},{\"server\":3}]}");
        effective_values_deinit(&v);
}

int main(void) {
        RUN(test_of_a_run);
        RUN(test_either_end_sends);
        RUN(test_largest_sizes);
        RUN(test_of_the_daemon);
        RUN(test_of_a_point);
        return check_end();
}
