/* SPDX-License-Identifier: MIT */

/* The way of a request in front of four routes that this file makes up: the guards' order, handlers that fail with and
 * without a detail, and the headers that every answer bears. */

#include "api/handle/route/dispatch.h"
#include "api/handle/route/routes.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>

/* ---- the made-up table, in the place of routes.c ---- */

static struct {
        unsigned calls;
        int error;         /* what the handler returns */
        const char *words; /* NULL: it has none */
        bool quick, was_quick;
} script;

static int scripted(struct api *a, const struct request *q, struct response *p, struct refusal *r) {
        (void) a;
        script.calls++;
        script.was_quick = script.quick;
        if (script.words)
                (void) refuse(r, 409, "running", "", "%s", script.words);
        if (script.error < 0) {
                response_header(p, "X-Half-Way", "yes");
                return script.error;
        }
        response_body(p, 200, "text/plain", strdup(q->path), strlen(q->path));
        if (strcmp(q->path, "/cached") == 0)
                response_header(p, "Cache-Control", "no-cache");
        return 0;
}

static const struct parameter parameters[] = {{"limit", "{}", "x"}, {"cursor", "{}", "x"}, {"search", "{}", "x"}, {0}};
const struct route routes[] = {
        {METHOD_GET, "/list", scripted, "list", "x", .dear_with = "search", .parameters = parameters},
        {METHOD_GET, "/cached", scripted, "cached", "x", .status = 200},
        {METHOD_GET, "/table", scripted, "table", "x", .dear = true, .parameters = parameters},
        {METHOD_POST, "/list", scripted, "add", "x", .writes = true, .body = BODY_JSON},
        {METHOD_DELETE, "/gone", scripted, "remove", "x", .writes = true},
};
const size_t n_routes = ELEMENTS(routes);

const struct route *route_match(struct request *q, unsigned *ret_allowed) {
        const struct route *found = NULL;
        *ret_allowed = 0;
        for (size_t i = 0; i < n_routes; i++)
                if (strcmp(routes[i].pattern, q->path) == 0) {
                        *ret_allowed |= 1u << routes[i].method;
                        if (routes[i].method == q->method)
                                found = &routes[i];
                }
        return found;
}

void route_print_allow(char ret[static ALLOW_MAX], unsigned allowed) {
        (void) snprintf(ret, ALLOW_MAX, "methods %x", allowed);
}

/* ---- and in the place of the service ---- */

static struct {
        unsigned begun, ended;
        bool refused;
} turns;

int service_large_begin(struct service *s, struct refusal *r) {
        (void) s;
        turns.begun++;
        if (!turns.refused)
                return 0;
        (void) refuse(r, 503, "unavailable", "", "another one");
        return -ETIMEDOUT;
}

void service_set_quick(bool is_quick) {
        script.quick = is_quick;
}

void service_large_end(struct service *s) {
        (void) s;
        turns.ended++;
}

/* ---- requests over TCP ---- */

static char host[] = "localhost:8620", token[] = "secret";

struct call {
        struct api api;
        struct request q;
        struct response p;
};

/* headers: "Name: value" each with a newline; a Host of ours comes before them unless they begin with one. */
static bool call_init(struct call *c, enum method m, const char *target, const char *headers) {
        struct refusal r;
        *c = (struct call){.api = {.token = token,
                                   .hosts = {host},
                                   .n_hosts = 1,
                                   .body_max = REQUEST_BODY_MAX,
                                   .bodies = {.most = REQUEST_BODY_MAX}},
                           .q = {.method = m}};
        memset(&script, 0, sizeof script);
        if (strcmp(target, "*") == 0)
                c->q.path = strdup(target);
        else if (request_parse_target(&c->q, target, &r) < 0)
                return false;
        if (strncmp(headers, "Host", 4) != 0 && pairs_add(&c->q.headers, "Host", 4, host, strlen(host)) < 0)
                return false;
        for (const char *line = headers; *line;) {
                size_t n = strcspn(line, ":"), end = strcspn(line, "\n");
                if (pairs_add(&c->q.headers, line, n, line + n + 2, end - n - 2) < 0)
                        return false;
                line += end + 1;
        }
        return true;
}

static void call_deinit(struct call *c) {
        request_deinit(&c->q);
        response_deinit(&c->p);
}
#define CALL __attribute__((cleanup(call_deinit))) struct call

#define BEARER "Authorization: Bearer secret\n"
#define BODY "Content-Length: 2\nContent-Type: application/json\n"

/* Where a head breaks several rules at once, the first guard on the way answers. */
static void heads_are_refused_in_order(void) {
        static const struct {
                enum method method;
                const char *target, *headers;
                int status; /* 0: admitted */
        } cases[] = {
                {METHOD_POST, "/list", "Host: evil\nExpect: x\nOrigin: http://evil\n", 417},
                {METHOD_POST, "/list", "Host: evil\nOrigin: http://evil\n", 421},
                {METHOD_POST, "/list", "Origin: http://evil\n", 403},
                {METHOD_POST, "/nowhere", "", 404}, /* a 404 needs no token */
                {METHOD_DELETE, "/list", "", 405},
                {METHOD_OTHER, "/list", "", 405},
                {METHOD_POST, "/list?x=1", "Content-Length: 2\n", 401},
                {METHOD_POST, "/list?x=1", BEARER "Content-Length: 2\n", 415},
                {METHOD_POST, "/list?x=1", BEARER "Content-Length: 99999999\n", 413},
                {METHOD_POST, "/list?x=1", BEARER, 411},
                {METHOD_POST, "/list?x=1", BEARER BODY, 400},
                {METHOD_POST, "/list", BEARER BODY, 0},
                {METHOD_DELETE, "/gone", BEARER, 0},
                {METHOD_GET, "/list", "", 0},
                {METHOD_GET, "/list", BODY, 400}, /* a body that no handler reads */
                {METHOD_GET, "/list?limit=1&cursor=2", "", 0},
                {METHOD_GET, "/list?limit=1&limit=1", "", 400},
                {METHOD_GET, "/list?Limit=1", "", 400},
                {METHOD_GET, "/cached?limit=1", "", 400},
                {METHOD_OPTIONS, "/nowhere", "", 0}, /* found out by the handler */
                {METHOD_OPTIONS, "/list", BODY, 400},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CALL c;
                CHECK(call_init(&c, cases[i].method, cases[i].target, cases[i].headers));
                bool admitted = dispatch_admit(&c.api, &c.q, &c.p);
                if (admitted != !cases[i].status || c.p.status != cases[i].status)
                        CHECK_FAIL("case %zu, %s: status %d, expected %d: %s", i, cases[i].target, c.p.status,
                                   cases[i].status, c.p.body ? c.p.body : "");
                CHECK_UINT(script.calls, 0);
                if (cases[i].status)
                        CHECK_UINT(atomic_load(&c.api.responses[4]), 1);
        }
}

static void the_unix_socket_needs_no_token(void) {
        CALL c;
        CHECK(call_init(&c, METHOD_DELETE, "/gone", "Host: anything\nOrigin: http://evil\n"));
        c.q.local = true;
        CHECK(dispatch_admit(&c.api, &c.q, &c.p));
        CHECK_UINT(c.p.headers.n, 0); /* nothing has been sent yet */
}

static void every_answer_bears_the_headers(void) {
        static const struct {
                enum method method;
                const char *target, *headers;
                int status;
        } cases[] = {{METHOD_GET, "/list", "", 200},
                     {METHOD_GET, "/nowhere", "", 404},
                     {METHOD_OPTIONS, "/list", "", 204},
                     {METHOD_POST, "/list", "", 200}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CALL c;
                CHECK(call_init(&c, cases[i].method, cases[i].target, cases[i].headers));
                dispatch_handle(&c.api, &c.q, &c.p);
                CHECK_INT(c.p.status, cases[i].status);
                CHECK_STRING(response_get_header(&c.p, "X-Content-Type-Options"), "nosniff");
                CHECK_STRING(response_get_header(&c.p, "Referrer-Policy"), "no-referrer");
                CHECK_STRING(response_get_header(&c.p, "Cross-Origin-Resource-Policy"), "same-origin");
                CHECK_STRING(response_get_header(&c.p, "Cache-Control"),
                             response_get_header(&c.p, "ETag") ? "no-cache" : "no-store");
                const char *policy = response_get_header(&c.p, "Content-Security-Policy");
                CHECK(policy && strstr(policy, "default-src 'none'") && strstr(policy, "script-src 'self';") &&
                      strstr(policy, "frame-ancestors 'none'") && !strstr(policy, "unsafe"));
                CHECK_UINT(atomic_load(&c.api.responses[c.p.status / 100]), 1);
                CHECK_INT(c.p.error, 0);
        }
        CALL c;
        CHECK(call_init(&c, METHOD_GET, "/cached", ""));
        dispatch_handle(&c.api, &c.q, &c.p);
        CHECK_STRING(response_get_header(&c.p, "Cache-Control"), "no-cache"); /* the handler's own value, and once */
        CHECK_UINT(c.p.headers.n, 7);                                         /* with the tag of the body */
}

static void refusals_name_the_alternative(void) {
        CALL token_missing, media, method;
        CHECK(call_init(&token_missing, METHOD_DELETE, "/gone", ""));
        CHECK(!dispatch_admit(&token_missing.api, &token_missing.q, &token_missing.p));
        CHECK_STRING(response_get_header(&token_missing.p, "WWW-Authenticate"), "Bearer realm=\"ipclab\"");
        CHECK(call_init(&media, METHOD_POST, "/list", BEARER "Content-Length: 2\n"));
        CHECK(!dispatch_admit(&media.api, &media.q, &media.p));
        CHECK_STRING(response_get_header(&media.p, "Accept-Post"), "application/json");
        CHECK(response_get_header(&media.p, "WWW-Authenticate") == NULL);
        CHECK(call_init(&method, METHOD_DELETE, "/list", ""));
        CHECK(!dispatch_admit(&method.api, &method.q, &method.p));
        CHECK_STRING(response_get_header(&method.p, "Allow"), "methods 5"); /* GET and POST */
        CHECK(response_get_header(&method.p, "Accept-Post") == NULL);
        CHECK(strstr(method.p.body, "\"instance\":\"/list\""));
}

static void failures_of_handlers(void) {
        static const struct {
                int error;
                const char *words;
                int status;
        } cases[] = {{-EINVAL, "it runs", 409},      {-EIO, "it runs", 409}, {-EIO, NULL, 500},
                     {-ETIMEDOUT, NULL, 503},        {-EAGAIN, NULL, 503},   {0, NULL, 200},
                     {0, "words of no failure", 200}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CALL c;
                CHECK(call_init(&c, METHOD_GET, "/list", ""));
                script.error = cases[i].error;
                script.words = cases[i].words;
                dispatch_handle(&c.api, &c.q, &c.p);
                CHECK_UINT(script.calls, 1);
                CHECK_INT(c.p.status, cases[i].status);
                CHECK(response_get_header(&c.p, "X-Half-Way") == NULL);
                if (cases[i].status == 409)
                        CHECK(strstr(c.p.body, "it runs"));
                if (cases[i].status == 200)
                        CHECK_STRING(c.p.body, "/list");
        }
}

static void large_bodies_take_turns(void) {
        static const struct {
                size_t length;
                bool refused;
                int status;
                unsigned calls, begun, ended;
        } cases[] = {{SERVICE_LARGE_BODY, true, 200, 1, 0, 0},
                     {SERVICE_LARGE_BODY + 1, false, 200, 1, 1, 1},
                     {SERVICE_LARGE_BODY + 1, true, 503, 0, 1, 0}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CALL c;
                CHECK(call_init(&c, METHOD_POST, "/list", BEARER BODY));
                c.q.body_length = cases[i].length;
                memset(&turns, 0, sizeof(turns));
                turns.refused = cases[i].refused;
                dispatch_handle(&c.api, &c.q, &c.p);
                CHECK_INT(c.p.status, cases[i].status);
                CHECK_UINT(script.calls, cases[i].calls);
                CHECK_UINT(turns.begun, cases[i].begun);
                CHECK_UINT(turns.ended, cases[i].ended);
        }
}

/* What is announced is taken of the budget, if it is more than a little; without a length, all that may come. */
static void bodies_share_a_budget(void) {
#define JSON "Content-Type: application/json\n"
        static const struct {
                const char *headers;
                size_t cost;
        } cases[] = {{BEARER JSON "Content-Length: 16384\n", 0},
                     {BEARER JSON "Content-Length: 16385\n", 16385},
                     {BEARER JSON "Transfer-Encoding: chunked\n", REQUEST_BODY_MAX}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (unsigned full = 0; full < 2; full++) {
                        CALL c;
                        CHECK(call_init(&c, METHOD_POST, "/list", cases[i].headers));
                        c.api.bodies.most = cases[i].cost + 5 - full;
                        atomic_store(&c.api.bodies.used, 5);
                        bool admitted = dispatch_admit(&c.api, &c.q, &c.p), may = full == 0 || cases[i].cost == 0;
                        CHECK_INT(admitted, may);
                        CHECK_UINT(c.q.body_cost, may ? cases[i].cost : 0);
                        CHECK_UINT(atomic_load(&c.api.bodies.used), 5 + c.q.body_cost);
                        if (may)
                                continue;
                        CHECK_INT(c.p.status, 503);
                        CHECK_STRING(response_get_header(&c.p, "Retry-After"), "5");
                        CHECK(strstr(c.p.body, "request bytes of all clients"));
                }
}

/* Expensive ones have a share of their client, and leave a thread free. */
static void a_parameter_may_make_a_request_expensive(void) {
        static const struct {
                enum method method;
                const char *target;
                bool dear, slow;
        } cases[] = {{METHOD_GET, "/list", false, false},
                     {METHOD_GET, "/list?limit=1&cursor=2", false, false},
                     {METHOD_GET, "/list?limit=1&search=a", true, true},
                     {METHOD_GET, "/list?search=", true, true},
                     {METHOD_GET, "/table", true, true},
                     {METHOD_DELETE, "/gone", false, true}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CALL c;
                CHECK(call_init(&c, cases[i].method, cases[i].target, cases[i].method == METHOD_GET ? "" : BEARER));
                CHECK(dispatch_admit(&c.api, &c.q, &c.p));
                CHECK_INT(c.q.dear, cases[i].dear);
                CHECK_INT(c.q.slow, cases[i].slow);
                dispatch_handle(&c.api, &c.q, &c.p);
                CHECK_INT(script.was_quick, !cases[i].slow);
                CHECK(!script.quick);
        }
}

static void options_are_answered(void) {
        CALL path, server, nowhere;
        CHECK(call_init(&path, METHOD_OPTIONS, "/gone", ""));
        dispatch_handle(&path.api, &path.q, &path.p);
        CHECK_INT(path.p.status, 204);
        CHECK_STRING(response_get_header(&path.p, "Allow"), "methods 10");
        CHECK(call_init(&server, METHOD_OPTIONS, "*", ""));
        dispatch_handle(&server.api, &server.q, &server.p);
        CHECK_INT(server.p.status, 204);
        CHECK_STRING(response_get_header(&server.p, "Allow"), "methods 1f");
        CHECK(call_init(&nowhere, METHOD_OPTIONS, "/nowhere", ""));
        dispatch_handle(&nowhere.api, &nowhere.q, &nowhere.p);
        CHECK_INT(nowhere.p.status, 404);
        CHECK_UINT(script.calls, 0);
}

/* What the server itself refuses, before there is a request or a path in it: a text to be sent, which is no answer
 * before it is. */
static void the_servers_own_refusals(void) {
        CALL c;
        struct refusal r;
        CHECK(call_init(&c, METHOD_GET, "/list", ""));
        refuse(&r, 408, "request-timeout", "", "too slow");
        dispatch_refuse(&c.api, NULL, &r, &c.p);
        CHECK_INT(c.p.status, 408);
        CHECK(!strstr(c.p.body, "instance"));
        CHECK_STRING(response_get_header(&c.p, "X-Content-Type-Options"), "nosniff");
        response_reset(&c.p);
        dispatch_refuse(&c.api, &c.q, &r, &c.p);
        CHECK(strstr(c.p.body, "\"instance\":\"/list\""));
        CHECK_UINT(atomic_load(&c.api.responses[4]), 1);
        dispatch_count(&c.api, 408);
        CHECK_UINT(atomic_load(&c.api.responses[4]), 2);
}

int main(void) {
        RUN(heads_are_refused_in_order);
        RUN(the_unix_socket_needs_no_token);
        RUN(every_answer_bears_the_headers);
        RUN(refusals_name_the_alternative);
        RUN(failures_of_handlers);
        RUN(large_bodies_take_turns);
        RUN(bodies_share_a_budget);
        RUN(a_parameter_may_make_a_request_expensive);
        RUN(options_are_answered);
        RUN(the_servers_own_refusals);
        return check_end();
}
