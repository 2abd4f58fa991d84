/* SPDX-License-Identifier: MIT */

/* Refusals as problem+json: every member in its form, and no member that does not apply. */

#include "api/http/problem.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define RESPONSE __attribute__((cleanup(response_deinit))) struct response

static void a_plain_refusal_has_five_members(void) {
        RESPONSE p = {0};
        struct refusal r;
        refuse(&r, 404, "not-found", "", "There is no \"thing\".\n");
        problem_respond(&p, &r, "/experiments/7");
        CHECK_INT(p.status, 404);
        CHECK_STRING(response_get_header(&p, "Content-Type"), "application/problem+json");
        CHECK(response_get_header(&p, "Retry-After") == NULL);
        CHECK_STRING(p.body, "{\"type\":\"urn:ipclab:problem:not-found\",\"title\":\"There is no such resource\","
                             "\"status\":404,\"detail\":\"There is no \\\"thing\\\".\\n\",\"instance\":"
                             "\"/experiments/7\"}");
        CHECK_UINT(p.length, strlen(p.body));
}

static void a_limit_has_its_name_and_values(void) {
        RESPONSE p = {0};
        struct refusal r;
        refuse_limit(&r, "/message_size/1", "fs.mqueue.msgsize_max", "8192", "9000", "too long");
        problem_respond(&p, &r, NULL);
        CHECK_STRING(p.body, "{\"type\":\"urn:ipclab:problem:limit-exceeded\",\"title\":\"A limit is exceeded\","
                             "\"status\":422,\"detail\":\"too long\",\"pointer\":\"/message_size/1\",\"limit\":{"
                             "\"name\":\"fs.mqueue.msgsize_max\",\"value\":8192},\"value\":9000}");
}

/* A number that JSON keeps exactly is one, whole or not; all else is the text that it was. */
static void numbers_are_numbers_where_they_stay_exact(void) {
        static const struct {
                const char *value, *json;
        } cases[] = {{"0", "0"},
                     {"-1", "-1"},
                     {"9007199254740991", "9007199254740991"},
                     {"-9007199254740991", "-9007199254740991"},
                     {"9007199254740992", "\"9007199254740992\""},
                     {"18446744073709551615", "\"18446744073709551615\""},
                     {"1.5", "1.5"},
                     {"1e-05", "1e-05"},
                     {"1e+09", "1000000000"},
                     {"-0.5", "-0.5"},
                     {".5", "\".5\""},
                     {"00.5", "\"00.5\""},
                     {"0x1.8", "\"0x1.8\""},
                     {"1e999", "\"1e999\""},
                     {"nan", "\"nan\""},
                     {"007", "\"007\""},
                     {"-", "\"-\""},
                     {"--1", "\"--1\""},
                     {"+1", "\"+1\""},
                     {"12 KiB", "\"12 KiB\""},
                     {"cross-node", "\"cross-node\""}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                RESPONSE p = {0};
                struct refusal r;
                char want[128];
                refuse_limit(&r, "", "limit", cases[i].value, cases[i].value, "x");
                problem_respond(&p, &r, "");
                (void) snprintf(want, sizeof want, "\"limit\":{\"name\":\"limit\",\"value\":%s},\"value\":%s}",
                                cases[i].json, cases[i].json);
                const char *at = strstr(p.body, "\"limit\":{");
                CHECK_STRING(at, want);
                CHECK(!strstr(p.body, "\"instance\"") && !strstr(p.body, "\"pointer\""));
        }
}

/* A list of one CPU is a list as well, and the setting 0 a word among others. */
static void a_set_is_a_text_whatever_is_in_it(void) {
        static const char *const sets[] = {"0", "0-3", "performance powersave", "none", ""};
        for (size_t i = 0; i < ELEMENTS(sets); i++) {
                RESPONSE p = {0};
                struct refusal r;
                char want[128];
                CHECK_INT(refuse_set(&r, "/placement/sender/cpu", "CPUs present", sets[i], "8191", "no CPU"), -EINVAL);
                problem_respond(&p, &r, "");
                (void) snprintf(want, sizeof want,
                                "\"limit\":{\"name\":\"CPUs present\",\"value\":\"%s\"},\"value\":8191}", sets[i]);
                CHECK_STRING(strstr(p.body, "\"limit\":{"), want);
        }
}

/* A slug without a title of its own takes its status's. */
static void every_problem_has_a_title(void) {
        RESPONSE p = {0};
        struct refusal r;
        refuse(&r, 405, "method-not-allowed", "", "x");
        problem_respond(&p, &r, NULL);
        CHECK(strstr(p.body, "\"title\":\"Method Not Allowed\""));
        refuse(&r, 401, "token-wrong", "", "x");
        problem_respond(&p, &r, NULL);
        CHECK(strstr(p.body, "\"title\":\"The bearer token is wrong\""));
}

/* Whatever a handler had begun to answer is gone. */
static void replaces_what_was_there(void) {
        RESPONSE p = {0};
        struct refusal r;
        response_body(&p, 200, "text/csv", strdup("half a table"), 12);
        response_header(&p, "Location", "/experiments/1");
        refuse(&r, 503, "unavailable", "", "later");
        problem_respond(&p, &r, NULL);
        CHECK_INT(p.status, 503);
        CHECK(strstr(p.body, "later"));
        CHECK(response_get_header(&p, "Location") == NULL);
        CHECK_STRING(response_get_header(&p, "Content-Type"), "application/problem+json");
        CHECK_STRING(response_get_header(&p, "Retry-After"), "5");
        CHECK_UINT(p.headers.n, 2);
}

static void errors_without_a_detail_get_one(void) {
        static const struct {
                int error, status;
                const char *words;
        } cases[] = {{-ETIMEDOUT, 503, "did not answer in time"},
                     {-EAGAIN, 503, "did not answer in time"},
                     {-ESHUTDOWN, 503, "did not answer in time"},
                     {-ENOSPC, 500, "No space left on device"},
                     {-EIO, 500, "Input/output error"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct refusal r;
                problem_from_errno(&r, cases[i].error);
                CHECK_INT(r.status, cases[i].status);
                CHECK_STRING(r.code, cases[i].status == 503 ? "unavailable" : "internal-error");
                CHECK(strstr(r.detail, cases[i].words));
        }
}

int main(void) {
        RUN(a_plain_refusal_has_five_members);
        RUN(a_limit_has_its_name_and_values);
        RUN(numbers_are_numbers_where_they_stay_exact);
        RUN(a_set_is_a_text_whatever_is_in_it);
        RUN(every_problem_has_a_title);
        RUN(replaces_what_was_there);
        RUN(errors_without_a_detail_get_one);
        return check_end();
}
