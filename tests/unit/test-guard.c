/* SPDX-License-Identifier: MIT */

/* Which request is allowed: each guard with heads that just pass and heads that just do not. tests/api has the same
 * over real sockets, as far as clients and the HTTP library let it through. */

#include "api/handle/route/guard.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static char host_name[] = "127.0.0.1:8620", local_name[] = "localhost:8620", token[] = "secret";
static const struct api api = {
        .token = token, .hosts = {host_name, local_name}, .n_hosts = 2, .body_max = REQUEST_FILE_MAX};

/* A request over TCP with headers of "Name: value", each ended by a newline. */
struct head {
        struct request q;
        struct refusal r;
};

static bool head_init(struct head *h, const char *headers) {
        *h = (struct head){.q = {.method = METHOD_POST}};
        for (const char *line = headers; *line;) {
                size_t n = strcspn(line, ":"), end = strcspn(line, "\n");
                if (pairs_add(&h->q.headers, line, n, line + n + 2, end - n - 2) < 0)
                        return false;
                line += end + 1;
        }
        return true;
}

static void head_deinit(struct head *h) {
        request_deinit(&h->q);
}
#define HEAD __attribute__((cleanup(head_deinit))) struct head

struct expected {
        const char *headers;
        int status; /* 0: passes */
};

/* guard's result for the head, which the caller compares. */
#define CHECK_STATUS(h, result, want, what)                                                                            \
        do {                                                                                                           \
                int _k = (result), _want = (want);                                                                     \
                if (_k != (_want ? -EINVAL : 0) || (h).r.status != _want)                                              \
                        CHECK_FAIL("\"%s\" gave %d with status %d, expected %d", what, _k, (h).r.status, _want);       \
        } while (0)

static void expectations_that_can_be_met(void) {
        static const struct expected cases[] = {{"", 0}, {"Expect: 100-Continue\n", 0}, {"Expect: nothing\n", 417}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                CHECK_STATUS(h, guard_expectation(&h.q, &h.r), cases[i].status, cases[i].headers);
        }
}

static void only_our_own_hosts(void) {
        static const struct expected cases[] = {
                {"Host: 127.0.0.1:8620\n", 0},
                {"Host: LocalHost:8620\n", 0},
                {"Host: localhost\n", 421},
                {"Host: localhost:8621\n", 421},
                {"Host: localhost:8620.evil.example\n", 421},
                {"Host: evil.example\n", 421},
                {"Host: \n", 421},
                {"", 400},
                {"Host: localhost:8620\nHost: localhost:8620\n", 400},
                {"Host: local host:8620\n", 400},
                {"Host: <b>\n", 400},
                {"Host: localhost:8620/path\n", 400},
                {"Host: a@localhost:8620\n", 400},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                CHECK_STATUS(h, guard_host(&api, &h.q, &h.r), cases[i].status, cases[i].headers);
        }
}

/* The target's own authority is what counts, where it has one (RFC 9112, 3.2.2). */
static void an_absolute_target_names_the_host(void) {
        static char evil[] = "evil.example";
        HEAD ours, theirs;
        CHECK(head_init(&ours, "Host: evil.example\nOrigin: http://localhost:8620\n"));
        ours.q.authority = strdup(local_name);
        CHECK_STATUS(ours, guard_host(&api, &ours.q, &ours.r), 0, "our authority");
        CHECK_STATUS(ours, guard_origin(&ours.q, &ours.r), 0, "our authority's origin");
        CHECK(head_init(&theirs, "Host: localhost:8620\nOrigin: http://localhost:8620\n"));
        theirs.q.authority = strdup(evil);
        CHECK_STATUS(theirs, guard_host(&api, &theirs.q, &theirs.r), 421, "another authority");
        CHECK_STATUS(theirs, guard_origin(&theirs.q, &theirs.r), 403, "another authority's origin");
}

/* The socket's mode guards it: any name may be given, and by HTTP/1.0 none. What is no name at all is still malformed.
 */
static void the_unix_socket_has_no_name(void) {
        static const struct {
                const char *headers;
                bool http_1_0;
                int status;
        } cases[] = {{"Host: anything\n", false, 0},
                     {"Host: \n", false, 0},
                     {"", true, 0},
                     {"", false, 400},
                     {"Host: a b\n", false, 400}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                h.q.local = true;
                h.q.http_1_0 = cases[i].http_1_0;
                CHECK_STATUS(h, guard_host(&api, &h.q, &h.r), cases[i].status, cases[i].headers);
        }
        HEAD old;
        CHECK(head_init(&old, ""));
        old.q.http_1_0 = true; /* over TCP a name is needed all the same */
        CHECK_STATUS(old, guard_host(&api, &old.q, &old.r), 400, "HTTP/1.0 without a Host");
}

static void only_our_own_pages(void) {
        static const struct expected cases[] = {
                {"Host: localhost:8620\n", 0},
                {"Host: localhost:8620\nOrigin: http://localhost:8620\n", 0},
                {"Host: localhost:8620\nOrigin: HTTP://LOCALHOST:8620\n", 0},
                {"Host: localhost:8620\nOrigin: http://127.0.0.1:8620\n", 403},
                {"Host: localhost:8620\nOrigin: https://localhost:8620\n", 403},
                {"Host: localhost:8620\nOrigin: http://localhost:8620/\n", 403},
                {"Host: localhost:8620\nOrigin: http://localhost:86200\n", 403},
                {"Host: localhost:8620\nOrigin: http://localhost\n", 403},
                {"Host: localhost:8620\nOrigin: null\n", 403},
                {"Host: localhost:8620\nOrigin: \n", 403},
                {"Host: localhost:8620\nOrigin: http://localhost:8620\nOrigin: http://evil.example\n", 403},
                {"Origin: http://localhost:8620\n", 403},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                CHECK_STATUS(h, guard_origin(&h.q, &h.r), cases[i].status, cases[i].headers);
                h.q.local = true;
                h.r.status = 0;
                CHECK_STATUS(h, guard_origin(&h.q, &h.r), 0, "over the unix socket");
        }
}

static void only_with_the_token(void) {
        static const struct {
                const char *headers, *code; /* NULL: passes */
        } cases[] = {
                {"Authorization: Bearer secret\n", NULL},
                {"authorization: bearer   secret\n", NULL},
                {"", "token-required"},
                {"Authorization: \n", "token-required"},
                {"Authorization: Basic secret\n", "token-required"},
                {"Authorization: Bearer\n", "token-required"},
                {"Authorization: secret\n", "token-required"},
                {"Authorization: Bearer secret\nAuthorization: Bearer secret\n", "token-required"},
                {"Authorization: Bearer \n", "token-wrong"},
                {"Authorization: Bearer secre\n", "token-wrong"},
                {"Authorization: Bearer secrets\n", "token-wrong"},
                {"Authorization: Bearer secretsecret\n", "token-wrong"},
                {"Authorization: Bearer Secret\n", "token-wrong"},
                {"Authorization: Bearer secret \n", "token-wrong"},
                {"Authorization: Bearer tsecre\n", "token-wrong"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                CHECK_STATUS(h, guard_token(&api, &h.q, &h.r), cases[i].code ? 401 : 0, cases[i].headers);
                CHECK_STRING(h.r.code, cases[i].code ? cases[i].code : "");
        }
        HEAD local;
        CHECK(head_init(&local, ""));
        local.q.local = true;
        CHECK_STATUS(local, guard_token(&api, &local.q, &local.r), 0, "over the unix socket");
}

/* A daemon without a readable token lets no client write, instead of every client. */
static void an_empty_token_opens_nothing(void) {
        static char none[] = "";
        const struct api without = {.token = none};
        HEAD h;
        CHECK(head_init(&h, "Authorization: Bearer \n"));
        CHECK_STATUS(h, guard_token(&without, &h.q, &h.r), 401, "an empty token");
}

static void bodies_by_rule(void) {
        static const struct {
                enum body_rule rule;
                const char *headers;
                int status;
        } cases[] = {
                {BODY_NONE, "", 0},
                {BODY_NONE, "Content-Length: 000\n", 0},
                {BODY_NONE, "Content-Length: 1\n", 400},
                {BODY_NONE, "Transfer-Encoding: chunked\n", 400},
                {BODY_OPTIONAL, "", 0},
                {BODY_OPTIONAL, "Content-Length: 2\nContent-Type: application/json\n", 0},
                {BODY_OPTIONAL, "Content-Length: 2\n", 415},
                {BODY_JSON, "", 411},
                {BODY_JSON, "Content-Length: 0\n", 400},
                {BODY_JSON, "Content-Length: 2\nContent-Type: application/json\n", 0},
                {BODY_JSON, "Transfer-Encoding: chunked\nContent-Type: application/json\n", 0},
                {BODY_JSON, "Content-Length: 1048576\nContent-Type: application/json\n", 0},
                {BODY_JSON, "Content-Length: 00001048576\nContent-Type: application/json\n", 0},
                {BODY_JSON, "Content-Length: 1048577\nContent-Type: application/json\n", 413},
                {BODY_JSON, "Content-Length: 99999999999999999999999\nContent-Type: application/json\n", 413},
                {BODY_NONE, "Content-Length: 1048577\n", 413},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HEAD h;
                CHECK(head_init(&h, cases[i].headers));
                CHECK_STATUS(h, guard_body(&api, &h.q, cases[i].rule, &h.r), cases[i].status, cases[i].headers);
                CHECK_STRING(h.r.limit_value, cases[i].status == 413 ? "1048576" : "");
        }
}

/* A process of 48 MiB holds no body of more than 12, and one of 2 MiB no JSON of more than a half. */
static void a_limit_of_memory_limits_bodies(void) {
        static const struct {
                size_t memory;
                enum body_rule rule;
                size_t length;
                const char *words; /* NULL: it passes */
        } cases[] = {
                {48u << 20, BODY_GZIP, 12u << 20, NULL},
                {48u << 20, BODY_GZIP, (12u << 20) + 1,
                 "The body may have 12582912 bytes, a quarter of the daemon's limit of memory, not 12582913."},
                {48u << 20, BODY_JSON, (1u << 20) + 1, "The body may have 1048576 bytes, not 1048577."},
                {2u << 20, BODY_JSON, 1u << 19, NULL},
                {2u << 20, BODY_JSON, (1u << 19) + 1,
                 "The body may have 524288 bytes, a quarter of the daemon's limit of memory, not 524289."},
                {4 * REQUEST_FILE_MAX, BODY_GZIP, REQUEST_FILE_MAX, NULL},
                {4 * REQUEST_FILE_MAX, BODY_GZIP, REQUEST_FILE_MAX + 1,
                 "The body may have 67108864 bytes, not 67108865."},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct api small = {.body_max = cases[i].memory / 4};
                char headers[128];
                HEAD h;
                (void) snprintf(headers, sizeof headers, "Content-Length: %zu\nContent-Type: application/%s\n",
                                cases[i].length, cases[i].rule == BODY_GZIP ? "gzip" : "json");
                CHECK(head_init(&h, headers));
                CHECK_STATUS(h, guard_body(&small, &h.q, cases[i].rule, &h.r), cases[i].words ? 413 : 0, headers);
                CHECK_STRING(h.r.detail, cases[i].words ? cases[i].words : "");
                CHECK_STRING(h.r.limit, cases[i].words ? "body bytes" : "");
        }
}

static void bodies_are_json(void) {
        static const struct {
                const char *type, *more;
                int status, status_local;
        } cases[] = {
                {"application/json", "", 0, 0},
                {"Application/JSON", "", 0, 0},
                {"application/json;charset=utf-8", "", 0, 0},
                {"application/json ; charset=\"UTF-8\" ", "", 0, 0},
                {"application/json; charset=latin-1", "", 415, 415},
                {"application/json; charset=\"utf-8", "", 415, 415},
                {"application/json; charset=utf-80", "", 415, 415},
                {"application/json; version=1", "", 415, 415},
                {"application/jsonx", "", 415, 415},
                {"application/json-patch+json", "", 415, 415},
                {"text/plain", "", 415, 415},
                {"", "", 415, 415},
                {"multipart/form-data", "", 415, 415},
                {"application/x-www-form-urlencoded", "", 415, 0}, /* curl's default */
                {"application/json", "Content-Type: application/json\n", 415, 415},
                {"application/json", "Content-Encoding: identity\n", 0, 0},
                {"application/json", "Content-Encoding: gzip\n", 415, 415},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (unsigned local = 0; local < 2; local++) {
                        char headers[256];
                        HEAD h;
                        (void) snprintf(headers, sizeof headers, "Content-Length: 2\nContent-Type: %s\n%s",
                                        cases[i].type, cases[i].more);
                        CHECK(head_init(&h, headers));
                        h.q.local = local;
                        CHECK_STATUS(h, guard_body(&api, &h.q, BODY_JSON, &h.r),
                                     local ? cases[i].status_local : cases[i].status, headers);
                }
}

int main(void) {
        RUN(expectations_that_can_be_met);
        RUN(only_our_own_hosts);
        RUN(an_absolute_target_names_the_host);
        RUN(the_unix_socket_has_no_name);
        RUN(only_our_own_pages);
        RUN(only_with_the_token);
        RUN(an_empty_token_opens_nothing);
        RUN(bodies_by_rule);
        RUN(a_limit_of_memory_limits_bodies);
        RUN(bodies_are_json);
        return check_end();
}
