/* SPDX-License-Identifier: MIT */

/* The route table: which row serves which request, and that every row is whole. */

#include "api/handle/handlers.h"
#include "api/handle/route/routes.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#define REQUEST __attribute__((cleanup(request_deinit))) struct request

static bool request_init(struct request *q, enum method m, const char *target) {
        struct refusal r;
        *q = (struct request){.method = m};
        return request_parse_target(q, target, &r) == 0;
}

static void requests_find_their_row(void) {
        static const struct {
                enum method method;
                const char *target, *operation; /* NULL: none */
                int64_t id;
        } cases[] = {
                {METHOD_GET, "/", "getDashboard", 0},
                {METHOD_HEAD, "/", "getDashboard", 0},
                {METHOD_GET, "/experiments", "listExperiments", 0},
                {METHOD_HEAD, "/experiments?limit=1", "listExperiments", 0},
                {METHOD_POST, "/experiments", "submitExperiment", 0},
                {METHOD_GET, "/experiments/1", "getExperiment", 1},
                {METHOD_DELETE, "/experiments/9223372036854775807", "deleteExperiment", INT64_MAX},
                {METHOD_POST, "/experiments/12/cancel", "cancelExperiment", 12},
                {METHOD_GET, "/runs/77/samples", "listRunSamples", 77},
                {METHOD_GET, "/assets/app.js", "getAsset", 0},
                {METHOD_GET, "/assets/a/b/c.css", "getAsset", 0},
                {METHOD_GET, "/experiments/7/report", "getReport", 7},
                {METHOD_GET, "/openapi.json", "getOpenapi", 0},
                {METHOD_POST, "/", NULL, 0},
                {METHOD_OPTIONS, "/experiments", NULL, 0},
                {METHOD_OTHER, "/experiments", NULL, 0},
                {METHOD_GET, "/assets", NULL, 0},
                {METHOD_GET, "/experiment", NULL, 0},
                {METHOD_GET, "/experimentss", NULL, 0},
                {METHOD_GET, "/Experiments", NULL, 0},
                {METHOD_GET, "/experiments/0", NULL, 0},
                {METHOD_GET, "/experiments/-1", NULL, 0},
                {METHOD_GET, "/experiments/01", NULL, 0},
                {METHOD_GET, "/experiments/1x", NULL, 0},
                {METHOD_GET, "/experiments/9223372036854775808", NULL, 0},
                {METHOD_GET, "/experiments/1/nothing", NULL, 0},
                {METHOD_GET, "/experiments/1/runs/2", NULL, 0},
                {METHOD_GET, "/experiments/%7Bid%7D", NULL, 0},
                {METHOD_GET, "/runs", NULL, 0},
                {METHOD_PUT, "/baselines/v1.2", "pinBaseline", 0},
                {METHOD_GET, "/baselines/12", "getBaseline", 0},
                {METHOD_GET, "/baselines/", NULL, 0},
                {METHOD_GET, "/experiments%2F1", NULL, 0}, /* a name with a slash in it, and no path */
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                REQUEST q;
                unsigned allowed;
                CHECK(request_init(&q, cases[i].method, cases[i].target));
                const struct route *route = route_match(&q, &allowed);
                if (!route != !cases[i].operation ||
                    (route && (strcmp(route->operation, cases[i].operation) != 0 || q.id != cases[i].id)))
                        CHECK_FAIL("%s %s is served by %s, id %" PRId64, method_name(cases[i].method), cases[i].target,
                                   route ? route->operation : "nobody", q.id);
        }
}

static void a_path_has_its_methods(void) {
        static const struct {
                const char *target, *allow; /* NULL: no such path */
        } cases[] = {
                {"/", "GET, HEAD, OPTIONS"},
                {"/experiments", "GET, HEAD, POST, OPTIONS"},
                {"/experiments/5", "GET, HEAD, DELETE, OPTIONS"},
                {"/experiments/5/cancel", "POST, OPTIONS"},
                {"/baselines/x", "GET, HEAD, PUT, DELETE, OPTIONS"},
                {"/nothing", NULL},
                {"/experiments/x", NULL},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                REQUEST q;
                unsigned allowed = 42;
                char allow[ALLOW_MAX];
                CHECK(request_init(&q, METHOD_OTHER, cases[i].target));
                CHECK(route_match(&q, &allowed) == NULL);
                CHECK(!allowed == !cases[i].allow);
                route_print_allow(allow, allowed);
                CHECK_STRING(allow, cases[i].allow ? cases[i].allow : "OPTIONS");
        }
        char allow[ALLOW_MAX];
        route_print_allow(allow, ~0u); /* all there are fit */
        CHECK_STRING(allow, "GET, HEAD, POST, PUT, DELETE, OPTIONS");
}

/* "OPTIONS *" is about the server, and not about its root. */
static void the_asterisk_is_no_path(void) {
        static char asterisk[] = "*";
        struct request q = {.method = METHOD_GET, .path = asterisk};
        unsigned allowed = 42;
        CHECK(route_match(&q, &allowed) == NULL);
        CHECK_UINT(allowed, 0);
}

static void rows_are_whole(void) {
        for (size_t i = 0; i < n_routes; i++) {
                const struct route *r = &routes[i];
                CHECK(r->pattern[0] == '/' && r->handle && r->summary[0]);
                if (r->writes != (r->method != METHOD_GET))
                        CHECK_FAIL("%s %s: a change needs the token, and only a change", method_name(r->method),
                                   r->pattern);
                CHECK(!r->body_schema == (r->body != BODY_JSON));
                CHECK(r->body == BODY_NONE || r->method == METHOD_POST || r->method == METHOD_PUT);
                CHECK(strcmp(status_phrase(r->status), "Error") != 0 && r->status < 300);
                CHECK(!r->media == (r->status == 204));
                for (size_t k = 0; k < i; k++)
                        CHECK(strcmp(routes[k].operation, r->operation) != 0 &&
                              (routes[k].method != r->method || strcmp(routes[k].pattern, r->pattern) != 0));
        }
}

/* A search reads all that is stored; a list without one reads its page. */
static void a_search_is_expensive(void) {
        for (size_t i = 0; i < n_routes; i++) {
                const char *with = routes[i].dear_with;
                bool known = !with;
                for (const struct parameter *p = routes[i].parameters; p && p->name; p++) {
                        CHECK_INT(strcmp(p->name, "q") == 0, with && strcmp(with, p->name) == 0);
                        known = known || strcmp(with, p->name) == 0;
                }
                CHECK(known && !(with && routes[i].dear));
        }
}

static void parameters_have_schemas(void) {
        for (size_t i = 0; i < n_routes; i++)
                for (const struct parameter *p = routes[i].parameters; p && p->name; p++) {
                        struct json *schema = NULL;
                        CHECK(p->description[0]);
                        CHECK_INT(json_parse(p->schema, strlen(p->schema), &schema, NULL), 0);
                        bool has_type = json_get(schema, "type") || json_get(schema, "enum") ||
                                        json_get(schema, "$ref"); /* to a component; test-openapi resolves them */
                        json_free(schema);
                        CHECK(has_type);
                }
}

/* The problems of a row are statuses, one blank apart. */
static void problems_are_statuses(void) {
        for (size_t i = 0; i < n_routes; i++)
                for (const char *p = routes[i].problems; p && *p;) {
                        char *end;
                        long status = strtol(p, &end, 10);
                        CHECK(end == p + 3 && status >= 400 && strcmp(status_phrase((int) status), "Error") != 0);
                        CHECK(*end == '\0' || (*end == ' ' && end[1]));
                        p = *end ? end + 1 : end;
                }
}

int main(void) {
        RUN(requests_find_their_row);
        RUN(a_path_has_its_methods);
        RUN(the_asterisk_is_no_path);
        RUN(rows_are_whole);
        RUN(a_search_is_expensive);
        RUN(parameters_have_schemas);
        RUN(problems_are_statuses);
        return check_end();
}
