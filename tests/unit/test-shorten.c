/* SPDX-License-Identifier: MIT */

/* What lists leave out of a run, and that they leave the rest as it is. */

#include "api/handle/render/shorten.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

/* NULL: it is no JSON. */
static char *shortened(const char *json) {
        struct text t = {0};
        if (shorten_put(&t, json, 77) < 0) {
                text_deinit(&t);
                return NULL;
        }
        return t.data ? t.data : strdup(json);
}

/* "[0,1,2…]" of n. */
static char *list_of(size_t n) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_array_begin(&w);
        for (size_t i = 0; i < n; i++)
                json_put_u64(&w, i);
        json_array_end(&w);
        if (json_writer_steal(&w, &text, NULL) < 0)
                abort();
        json_writer_deinit(&w);
        return text;
}

static void what_is_short_stays(void) {
        static const char *const texts[] = {
                "[]",
                "{}",
                "null",
                "[{\"role\":\"sender\",\"proof\":null,\"pid\":-1.5e3}]",
                "{\"threads\":{},\"pages\":[],\"threads_total\":1024,\"x\":{\"threads\":20}}",
                "{\"threads\":{\"a\":[1],\"b\":[{\"threads\":[]}]},\"pages\":[[[]]]}",
                "{\"a\":\"]}\\\"threads\\\\\",\"b\":[true,false,\"\\u00e9,\"]}",
        };
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                _cleanup_free_ char *s = shortened(texts[i]);
                CHECK_STRING(s, texts[i]);
        }
        for (size_t n = 0; n <= SHORTEN_THREADS_MAX; n++) {
                char text[512];
                _cleanup_free_ char *list = list_of(n), *pages = list_of(4 * n);
                (void) snprintf(text, sizeof(text), "{\"threads\":%s,\"pages\":%s}", list, pages);
                _cleanup_free_ char *s = shortened(text);
                CHECK_STRING(s, text);
        }
}

static void what_is_long_is_counted(void) {
        static const struct {
                const char *before, *behind, *expected;
                size_t n;
        } cases[] = {
                {"{\"a\":1,\"threads\":", ",\"b\":2}",
                 "{\"a\":1,\"threads\":null,\"threads_reason\":\"17 of them, too many for a list: GET /runs/77 has "
                 "them\",\"b\":2}",
                 17},
                {"[{\"proof\":{\"pages\":", "}}]",
                 "[{\"proof\":{\"pages\":null,\"pages_reason\":\"65 of them, too many for a list: GET /runs/77 has "
                 "them\"}}]",
                 65},
                {"{\"before\":{\"sender\":{\"others\":", ",\"others_left_out\":0}}}",
                 "{\"before\":{\"sender\":{\"others\":null,\"others_reason\":\"31 of them, too many for a list: GET "
                 "/runs/77 has them\",\"others_left_out\":0}}}",
                 31},
                /* by role: the longest counts */
                {"{\"threads\":{\"sender\":[{}],\"receiver\":", "}}",
                 "{\"threads\":null,\"threads_reason\":\"1024 of them, too many for a list: GET /runs/77 has them\"}",
                 1024},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                char text[8192];
                _cleanup_free_ char *list = list_of(cases[i].n);
                (void) snprintf(text, sizeof(text), "%s%s%s", cases[i].before, list, cases[i].behind);
                _cleanup_free_ char *s = shortened(text);
                CHECK_STRING(s, cases[i].expected);
        }
        char text[16384];
        _cleanup_free_ char *list = list_of(2000);
        (void) snprintf(text, sizeof(text), "{\"other\":%s}", list);
        _cleanup_free_ char *s = shortened(text);
        CHECK_STRING(s, text);
}

static void runs_of_few_threads_are_left_alone(void) {
        CHECK(!shorten_may_apply("{\"transport\":\"pipe\",\"threads\":1}"));
        CHECK(!shorten_may_apply("{\"threads\":16,\"message_size\":4096}"));
        CHECK(shorten_may_apply("{\"threads\":17}"));
        CHECK(shorten_may_apply("{\"threads\":1024,\"message_size\":4096}"));
        CHECK(shorten_may_apply("{\"options\":{\"threads\":1}}")); /* the point does not tell */
        CHECK(shorten_may_apply(NULL));
}

static void what_is_no_json_is_an_error(void) {
        static const char *const texts[] = {"",
                                            "[",
                                            "{\"a\":",
                                            "\"a",
                                            "{\"threads\":[1,2",
                                            "[\"\\",
                                            "[1,tru\"e]",
                                            "tru\"e",
                                            "x\"threads\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
                                            "x\"threads\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"};
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                _cleanup_free_ char *s = shortened(texts[i]);
                CHECK(s == NULL);
        }
}

int main(void) {
        RUN(what_is_short_stays);
        RUN(what_is_long_is_counted);
        RUN(runs_of_few_threads_are_left_alone);
        RUN(what_is_no_json_is_an_error);
        return check_end();
}
