/* SPDX-License-Identifier: MIT */

/* Targets, parameters and cursors: what is taken apart and what is refused. */

#include "api/http/request.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static void joins_nothing_that_the_client_separated(void) {
        static const struct {
                const char *target;
                const char *segments; /* joined by | */
        } cases[] = {
                {"/", ""},
                {"/experiments", "experiments"},
                {"/experiments/12/runs", "experiments|12|runs"},
                {"/assets/a%2Fb.js", "assets|a/b.js"},
                {"/assets/%2e%2e/x", "assets|..|x"},
                {"/a//b", "a||b"},
                {"/a/", "a|"},
                {"//", "|"},
                {"/%61?x=1", "a"},
                {"http://host:1/a/b?x=/c", "a|b"},
                {"http://host", ""},
                {"/caf%C3%A9", "caf\xc3\xa9"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_(request_deinit) struct request q = {0};
                struct refusal r;
                char joined[200] = "";
                if (request_parse_target(&q, cases[i].target, &r) < 0)
                        CHECK_FAIL("%s was refused: %s", cases[i].target, r.detail);
                for (size_t j = 0; j < q.n_segments; j++) {
                        if (j > 0)
                                strcat(joined, "|");
                        strcat(joined, q.segments[j]);
                }
                CHECK_STRING(joined, cases[i].segments);
        }
}

static void refuses_targets_that_are_not_clean(void) {
        static const struct {
                const char *target;
                int status;
        } cases[] = {
                {"/a%00b", 400},     {"/a%", 400},
                {"/a%4", 400},       {"/a%4g", 400},
                {"/a%0d%0aX:", 400}, {"/a b", 400},
                {"/a\tb", 400},      {"/caf\xc3\xa9", 400},
                {"/a#b", 400},       {"a", 400},
                {"", 400},           {"*", 400},
                {"?x=1", 400},       {"/x?limit=%zz", 400},
                {"/x?%00=1", 400},   {"/1/2/3/4/5/6/7/8/9", 404},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_(request_deinit) struct request q = {0};
                struct refusal r = {0};
                int k = request_parse_target(&q, cases[i].target, &r);
                if (k != -EINVAL || r.status != cases[i].status)
                        CHECK_FAIL("\"%s\": returned %d with status %d, expected %d with %d", cases[i].target, k,
                                   r.status, -EINVAL, cases[i].status);
        }
}

static void splits_the_query(void) {
        _cleanup_(request_deinit) struct request q = {0};
        struct refusal r;
        CHECK_INT(request_parse_target(&q, "/x?limit=5&name=a+b%26c&empty=&bare&&e%3D=1", &r), 0);
        CHECK_UINT(q.query.n, 5);
        CHECK_STRING(request_parameter(&q, "limit"), "5");
        CHECK_STRING(request_parameter(&q, "name"), "a b&c");
        CHECK_STRING(request_parameter(&q, "empty"), "");
        CHECK_STRING(request_parameter(&q, "bare"), "");
        CHECK_STRING(request_parameter(&q, "e="), "1");
        CHECK(request_parameter(&q, "Limit") == NULL);
}

static void reads_the_authority_of_an_absolute_target(void) {
        _cleanup_(request_deinit) struct request q = {0};
        struct refusal r;
        CHECK_INT(request_parse_target(&q, "HTTP://127.0.0.1:8620?x=1", &r), -EINVAL);
        request_deinit(&q);
        CHECK_INT(request_parse_target(&q, "HTTP://127.0.0.1:8620/a?x=1", &r), 0);
        CHECK_STRING(q.authority, "127.0.0.1:8620");
        CHECK_STRING(q.path, "/a");
}

static void keeps_numbers_in_their_range(void) {
        static const struct {
                const char *target;
                int result;
                uint32_t value;
        } cases[] = {
                {"/x", 0, 50},
                {"/x?limit=1", 0, 1},
                {"/x?limit=1000", 0, 1000},
                {"/x?limit=0", -EINVAL, 0},
                {"/x?limit=1001", -EINVAL, 0},
                {"/x?limit=-1", -EINVAL, 0},
                {"/x?limit=", -EINVAL, 0},
                {"/x?limit=1.0", -EINVAL, 0},
                {"/x?limit=01", -EINVAL, 0},
                {"/x?limit=1e2", -EINVAL, 0},
                {"/x?limit=+1", -EINVAL, 0},
                {"/x?limit=99999999999999999999", -EINVAL, 0},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_(request_deinit) struct request q = {0};
                struct refusal r = {0};
                uint32_t value = 0;
                CHECK_INT(request_parse_target(&q, cases[i].target, &r), 0);
                int k = request_parameter_u32(&q, "limit", 1, 1000, 50, &value, &r);
                if (k != cases[i].result || value != cases[i].value)
                        CHECK_FAIL("%s: returned %d and %u", cases[i].target, k, value);
                if (k < 0 && (r.status != 400 || !strstr(r.detail, "limit")))
                        CHECK_FAIL("%s: status %d, %s", cases[i].target, r.status, r.detail);
        }
}

static void reads_numbers_as_json_has_them(void) {
        static const struct {
                const char *text;
                double value;
        } good[] = {{"0", 0},
                    {"-0.5", -0.5},
                    {"12.25", 12.25},
                    {"1e3", 1000},
                    {"1E-3", 1e-3},
                    {"25e+2", 2500},
                    {"5e-324", 4.94065645841246544e-324}};
        static const char *const bad[] = {"",    "-",  "+1", ".5",   "1.",  "01",  "1e",
                                          "1e+", " 1", "1 ", "0x10", "nan", "inf", "1e999"};
        double value;
        for (size_t i = 0; i < ELEMENTS(good); i++)
                if (number_parse(good[i].text, &value) != 0 || memcmp(&value, &good[i].value, sizeof(value)) != 0)
                        CHECK_FAIL("\"%s\" is not read as %g", good[i].text, good[i].value);
        for (size_t i = 0; i < ELEMENTS(bad); i++)
                if (number_parse(bad[i], &value) != -EINVAL)
                        CHECK_FAIL("\"%s\" is read as a number", bad[i]);
}

static void takes_back_only_cursors_of_its_own_kind(void) {
        char cursor[CURSOR_MAX], target[64];
        cursor_print(cursor, 's', INT64_C(999999999999999999));
        snprintf(target, sizeof(target), "/x?cursor=%s", cursor);
        _cleanup_(request_deinit) struct request q = {0};
        struct refusal r = {0};
        int64_t position = 0;
        CHECK_INT(request_parse_target(&q, target, &r), 0);
        CHECK_INT(request_parameter_cursor(&q, 's', &position, &r), 0);
        CHECK_INT(position, INT64_C(999999999999999999));
        CHECK_INT(request_parameter_cursor(&q, 'e', &position, &r), -EINVAL);
        CHECK_INT(r.status, 400);
        static const char *const bad[] = {"/x?cursor=",
                                          "/x?cursor=s",
                                          "/x?cursor=s-",
                                          "/x?cursor=s--1",
                                          "/x?cursor=s-1x",
                                          "/x?cursor=s-01",
                                          "/x?cursor=s-1000000000000000000"};
        for (size_t i = 0; i < ELEMENTS(bad); i++) {
                _cleanup_(request_deinit) struct request p = {0};
                CHECK_INT(request_parse_target(&p, bad[i], &r), 0);
                CHECK_INT(request_parameter_cursor(&p, 's', &position, &r), -EINVAL);
        }
}

static void bounds_the_number_of_pairs(void) {
        _cleanup_(request_deinit) struct request q = {0};
        struct refusal r = {0};
        char target[1024] = "/x?";
        for (unsigned i = 0; i < REQUEST_PAIRS_MAX + 1; i++)
                strcat(target, "a&");
        CHECK_INT(request_parse_target(&q, target, &r), -EINVAL);
        CHECK_INT(r.status, 400);
}

int main(void) {
        RUN(joins_nothing_that_the_client_separated);
        RUN(refuses_targets_that_are_not_clean);
        RUN(splits_the_query);
        RUN(reads_the_authority_of_an_absolute_target);
        RUN(keeps_numbers_in_their_range);
        RUN(reads_numbers_as_json_has_them);
        RUN(takes_back_only_cursors_of_its_own_kind);
        RUN(bounds_the_number_of_pairs);
        return check_end();
}
