/* SPDX-License-Identifier: MIT */

/* Canonical JSON: the examples of RFC 8785 and the edges of its numbers. */

#include "schema/json/canonical.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>

/* Prints the text's canonical form; the error where it has none. */
static int canonical(const char *text, char **ret) {
        struct json *root = NULL;
        struct json_writer w;
        json_writer_init(&w);
        if (json_parse(text, strlen(text), &root, NULL) < 0)
                return -EINVAL;
        json_put_canonical(&w, root);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        json_free(root);
        return r;
}

static void check_text(const char *text, const char *expected) {
        _cleanup_free_ char *found = NULL;
        CHECK_INT(canonical(text, &found), 0);
        CHECK_STRING(found, expected);
}

/* Appendix B of RFC 8785, but for integers that json_parse() refuses. */
static void numbers_are_ecmascripts(void) {
        static const char *const cases[][2] = {
                {"0.0", "0"},
                {"-0.0", "0"},
                {"5e-324", "5e-324"},
                {"-5e-324", "-5e-324"},
                {"1.7976931348623157e308", "1.7976931348623157e+308"},
                {"9007199254740991", "9007199254740991"},
                {"2.9514790517935283e20", "295147905179352830000"},
                {"9.999999999999997e22", "9.999999999999997e+22"},
                {"1e23", "1e+23"},
                {"1.0000000000000001e23", "1.0000000000000001e+23"},
                {"999999999999999700000.0", "999999999999999700000"},
                {"1e21", "1e+21"},
                {"9.999999999999997e-7", "9.999999999999997e-7"},
                {"0.000001", "0.000001"},
                {"1e-7", "1e-7"},
                {"333333333.3333332", "333333333.3333332"},
                {"333333333.33333343", "333333333.33333343"},
                {"-0.0000033333333333333333", "-0.0000033333333333333333"},
                {"1424953923781206.2", "1424953923781206.2"},
                {"4.50", "4.5"},
                {"2e-3", "0.002"},
                {"5.684341886080802e-14",
                 "5.684341886080802e-14"}, /* 2^-44: its nearest 16 digits are another double */
                {"1e3", "1000"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                check_text(cases[i][0], cases[i][1]);
}

static void strings_have_the_fewest_escapes(void) {
        check_text("\"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\\u007f\"",
                   "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\x7f\"");
        check_text("\"\\b\\f\\r\\t\"", "\"\\b\\f\\r\\t\"");
}

static void members_are_sorted_at_every_level(void) {
        check_text("{\"b\": [ 1, {\"z\": null, \"a\": true} ], \"a10\": false, \"a1\": {}, \"B\": []}",
                   "{\"B\":[],\"a1\":{},\"a10\":false,\"b\":[1,{\"a\":true,\"z\":null}]}");
}

static void a_name_out_of_order_is_refused(void) {
        char *text = NULL;
        CHECK_INT(canonical("{\"\\u00fc\": 1}", &text), -EBADMSG);
        CHECK_INT(canonical("{\"a\\\"b\": 1}", &text), -EBADMSG);
        CHECK_INT(canonical("{\"a\": [{\"a\\nb\": 1}]}", &text), -EBADMSG);
}

int main(void) {
        RUN(numbers_are_ecmascripts);
        RUN(strings_have_the_fewest_escapes);
        RUN(members_are_sorted_at_every_level);
        RUN(a_name_out_of_order_is_refused);
        return check_end();
}
