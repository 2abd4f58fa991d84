/* SPDX-License-Identifier: MIT */

/*
 * The checks of a request, in order: framing, host, origin, route, token, body, parameters; then its handler. Every
 * response passes finish(), so that all have the same headers and are counted.
 */

#include "api/handle/route/dispatch.h"

#include "api/handle/route/routes.h"
#include "api/http/connection/peers.h"
#include "api/http/gzip.h"
#include "api/http/problem.h"
#include "api/http/tag.h"
#include "schema/util.h"

#include <string.h>

static const char content_policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                                     "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

void dispatch_count(void *userdata, unsigned status) {
        struct api *a = userdata;
        if (status >= 100 && status < 600)
                atomic_fetch_add(&a->responses[status / 100], 1);
}

/* What the request's route takes as a body. */
static const char *accepted_media(struct request *q) {
        unsigned allowed;
        const struct route *route = q ? route_match(q, &allowed) : NULL;
        return route && route->body == BODY_GZIP ? "application/gzip" : "application/json";
}

static void add_headers(struct request *q, struct response *p) {
        if (!response_get_header(p, "Content-Security-Policy"))
                response_header(p, "Content-Security-Policy", "%s", content_policy);
        response_header(p, "X-Content-Type-Options", "nosniff");
        response_header(p, "Referrer-Policy", "no-referrer");
        response_header(p, "Cross-Origin-Resource-Policy", "same-origin");
        if (!response_get_header(p, "Cache-Control"))
                response_header(p, "Cache-Control", "no-store");
        if (p->status == 401)
                response_header(p, "WWW-Authenticate", "Bearer realm=\"ipclab\"");
        if (p->status == 415)
                response_header(p, "Accept-Post", "%s", accepted_media(q));
        if (p->status == 405 && q) {
                unsigned allowed;
                char allow[ALLOW_MAX];
                route_match(q, &allowed);
                route_print_allow(allow, allowed);
                response_header(p, "Allow", "%s", allow);
        }
}

static void finish(struct api *a, struct request *q, struct response *p) {
        add_headers(q, p);
        dispatch_count(a, p->status > 0 ? (unsigned) p->status : 0);
}

void dispatch_refuse(void *userdata, const struct request *q, const struct refusal *r, struct response *p) {
        problem_respond(p, r, q ? q->path : NULL);
        if (q)
                finish(userdata, NULL, p);
        else
                add_headers(NULL, p);
}

static int check_parameters(const struct route *route, const struct request *q, struct refusal *r) {
        for (size_t i = 0; i < q->query.n; i++) {
                const char *name = q->query.items[i].name;
                const struct parameter *known = route->parameters;
                while (known && known->name && strcmp(known->name, name) != 0)
                        known++;
                if (!known || !known->name)
                        return refuse(r, 400, "unknown-parameter", "",
                                      "The query parameter \"%.80s\" is not known here.", name);
                if (request_parameter(q, name) != q->query.items[i].value)
                        return refuse(r, 400, "bad-parameter", "", "The query parameter \"%.80s\" is given twice.",
                                      name);
        }
        return 0;
}

/* NULL: there is none, and *r has the reason. */
static const struct route *find_route(struct request *q, struct refusal *r) {
        unsigned allowed;
        const struct route *route = route_match(q, &allowed);
        if (!route && allowed == 0)
                (void) refuse(r, 404, "not-found", "", "There is no resource at %.200s.", q->path);
        else if (!route)
                (void) refuse(r, 405, "method-not-allowed", "", "The resource at %.200s has no such method.", q->path);
        return route;
}

/* A body's bytes count from its head on, so that no two large ones of a listener are held at once, nor of both more
 * than the process has memory for; without a length, as many as it may have. */
static int take_body(struct api *a, struct request *q, struct refusal *r) {
        int64_t length = 0;
        const char *announced = request_header(q, "Content-Length");
        if (request_header(q, "Transfer-Encoding") || (announced && decimal_parse(announced, &length) < 0))
                length = (int64_t) q->body_max;
        size_t cost = peer_cost((size_t) length);
        if (cost == 0)
                return 0;
        int k = peer_take(q->peer, PEER_SENT_BYTES, cost, r);
        if (k < 0)
                return k;
        k = budget_take(&a->bodies, cost, "request bytes", r);
        if (k < 0)
                peer_give(q->peer, PEER_SENT_BYTES, cost);
        else
                q->body_cost = cost;
        return k;
}

static int check_head(struct api *a, struct request *q, struct refusal *r) {
        int k = guard_expectation(q, r);
        if (k >= 0)
                k = guard_host(a, q, r);
        if (k >= 0)
                k = guard_origin(q, r);
        if (k >= 0 && q->method == METHOD_OPTIONS)
                return guard_body(a, q, BODY_NONE, r);
        if (k < 0)
                return k;
        const struct route *route = find_route(q, r);
        if (!route)
                return -EINVAL;
        if (route->writes)
                k = guard_token(a, q, r);
        if (k >= 0)
                k = guard_body(a, q, route->body, r);
        q->body_max = guard_body_max(a, route->body);
        if (k >= 0)
                k = check_parameters(route, q, r);
        bool dear = route->dear || (route->dear_with && request_parameter(q, route->dear_with));
        q->slow = dear || route->writes;
        if (k >= 0)
                k = take_body(a, q, r);
        if (k >= 0 && dear) {
                k = peer_take(q->peer, PEER_DEAR, 1, r);
                q->dear = k >= 0;
        }
        return k;
}

bool dispatch_admit(void *userdata, struct request *q, struct response *p) {
        struct api *a = userdata;
        struct refusal r = {0};
        if (check_head(a, q, &r) >= 0)
                return true;
        problem_respond(p, &r, q->path);
        finish(a, q, p);
        return false;
}

static int options(struct request *q, struct response *p, struct refusal *r) {
        unsigned allowed;
        char allow[ALLOW_MAX];
        route_match(q, &allowed);
        if (strcmp(q->path, "*") == 0)
                allowed = 1u << METHOD_GET | 1u << METHOD_HEAD | 1u << METHOD_POST | 1u << METHOD_PUT |
                          1u << METHOD_DELETE;
        if (allowed == 0)
                return refuse(r, 404, "not-found", "", "There is no resource at %.200s.", q->path);
        route_print_allow(allow, allowed);
        p->status = 204;
        response_header(p, "Allow", "%s", allow);
        return 0;
}

static int handle(struct api *a, struct request *q, struct response *p, struct refusal *r) {
        if (q->method == METHOD_OPTIONS)
                return options(q, p, r);
        const struct route *route = find_route(q, r);
        if (!route)
                return -EINVAL;
        bool large =
                route->body != BODY_GZIP && q->body_length > SERVICE_LARGE_BODY; /* bundles have a turn of theirs */
        int k = large ? service_large_begin(a->service, r) : 0;
        if (k < 0)
                return k;
        service_set_quick(!q->slow);
        k = route->handle(a, q, p, r);
        service_set_quick(false);
        if (large)
                service_large_end(a->service);
        return k;
}

/* A body that was made as a whole. */
static int charge(const struct request *q, struct response *p, struct refusal *r) {
        if (p->borrowed || p->peer || peer_cost(p->length) == 0)
                return 0;
        int k = peer_take(q->peer, PEER_BODY_BYTES, peer_cost(p->length), r);
        if (k < 0)
                return k;
        p->peer = q->peer;
        p->cost = peer_cost(p->length);
        response_made(p->length);
        return 0;
}

void dispatch_handle(void *userdata, struct request *q, struct response *p) {
        struct api *a = userdata;
        struct refusal r = {0};
        int k = handle(a, q, p, &r);
        if (k >= 0)
                tag_response(q, p);
        if (k >= 0)
                k = gzip_response(q, p);
        if (k >= 0)
                k = charge(q, p, &r);
        if (k < 0) {
                if (r.status == 0)
                        problem_from_errno(&r, k);
                problem_respond(p, &r, q->path);
        }
        finish(a, q, p);
}
