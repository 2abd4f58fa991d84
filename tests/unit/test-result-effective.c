/* SPDX-License-Identifier: MIT */

/* Whose word is taken of what was in force, and what a row says where runs differ. */

#include "daemon/result-effective.h"
#include "schema/json.h"
#include "schema/util.h"

#include "check.h"

#include <string.h>

/* NULL: refused */
static char *effective_of(const char *first, const char *second, const char *threads) {
        char a[200], b[200];
        (void) snprintf(a, sizeof(a), "%s", first);
        (void) snprintf(b, sizeof(b), "%s", second ? second : "");
        struct message_report reports[END_COUNT] = {{.effective = a}, {.effective = b}};
        const struct message_report *of[END_COUNT] = {&reports[0], second ? &reports[1] : NULL};
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        int r = result_effective_to_json(of, threads, &w);
        json_object_end(&w);
        if (r == 0)
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
                {"{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":2}", "{\"sndbuf_bytes\":3,\"rcvbuf_bytes\":4}",
                 "{\"effective\":{\"sndbuf_bytes\":1,\"rcvbuf_bytes\":4}}"},
                {"{}", "{\"file_sync\":\"direct\",\"huge_pages\":false}",
                 "{\"effective\":{\"huge_pages\":false,\"file_sync\":\"direct\"}}"},
                {"{\"pipe_size\":null,\"pipe_size_reason\":\"why\"}", "{}",
                 "{\"effective\":{\"pipe_size\":null,\"pipe_size_reason\":\"why\"}}"},
                {"[]", "{}", NULL},
                {"{}", "no object", NULL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *text = effective_of(cases[i].first, cases[i].second, NULL);
                if (!text || !cases[i].effective ? text != cases[i].effective : strcmp(text, cases[i].effective) != 0)
                        CHECK_FAIL("case %zu: %s", i, text ? text : "refused");
        }
}

/* How many threads moved anything is the daemon's own count. */
static void test_threads(void) {
        _cleanup_free_ char *text = effective_of("{\"slots\":2,\"threads\":99}", "{}", "{\"server\":3,\"client\":4}");
        CHECK_STRING(text, "{\"effective\":{\"slots\":2,\"threads\":{\"server\":3,\"client\":4}}}");
}

static void test_of_a_point(void) {
        static const char *const runs[] = {
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":1}}",
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":2}}",
                "{\"effective\":{\"chunk_bytes\":8192,\"rcvbuf_bytes\":1,\"huge_pages\":true}}",
                "{\"effective\":{\"threads\":{\"server\":4}}}",
                "{\"effective\":{\"threads\":{\"server\":3}}}",
                "{\"effective\":{\"threads\":{\"server\":4}}}",
                "{\"effective\":null}",
                "{}",
                "[]",
        };
        struct effective_values v = {0};
        _cleanup_free_ char *text = NULL;
        for (size_t i = 0; i < ELEMENTS(runs); i++) {
                struct json *result = NULL;
                CHECK_INT(json_parse(runs[i], strlen(runs[i]), &result, NULL), 0);
                CHECK_INT(effective_values_add(&v, result), 0);
                json_free(result);
        }
        CHECK_INT(effective_values_print(&v, &text), 0);
        CHECK_STRING(text, "{\"chunk_bytes\":8192,\"rcvbuf_bytes\":[1,2],\"huge_pages\":true,"
                           "\"threads\":[{\"server\":4},{\"server\":3}]}");
        effective_values_deinit(&v);
}

int main(void) {
        RUN(test_of_a_run);
        RUN(test_threads);
        RUN(test_of_a_point);
        return check_end();
}
