/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The routes as data: what dispatch.c serves and what openapi.c describes are the same rows. A new route is one row.
 */

#include "api/handle/route/guard.h"

/* A query parameter, with its JSON Schema. */
struct parameter {
        const char *name;
        const char *schema;
        const char *description;
};

struct media {
        const char *type;
        const char *schema; /* component that describes it; NULL: text without one */
};

struct route {
        enum method method;  /* a GET answers HEAD too */
        const char *pattern; /* "{id}" is a decimal id, "{name}" any segment; "{path}" is all the rest */
        /* Fills *p; or returns a negative errno, with *r filled when there are words for the client. */
        int (*handle)(struct api *a, const struct request *q, struct response *p, struct refusal *r);
        const char *operation; /* OpenAPI operationId */
        const char *summary;
        bool writes;           /* needs the token over TCP */
        bool keyed;            /* honours an Idempotency-Key */
        bool dear;             /* expensive: a peer may have few of them under way, and they leave a thread free */
        const char *dear_with; /* the parameter that makes it expensive; NULL: none does */
        enum body_rule body;
        const char *body_schema;            /* component, for BODY_JSON */
        const struct parameter *parameters; /* up to a NULL name; NULL: takes none */
        int status;                         /* when it goes well */
        const char *other;                  /* what goes well with another answer: its summary; NULL: there is none */
        int other_status;
        const struct media *other_media;
        int also;                  /* the same media with bad news, or a problem; 0: never */
        const struct media *media; /* up to a NULL type; NULL: no body */
        const char *problems;      /* further statuses, "404 409" */
};

extern const struct route routes[];
extern const size_t n_routes;

/* The row that serves the request, its id filled in; a HEAD is served by its GET. NULL: there is none; *ret_allowed
 * then has a bit (1u << method) for each method that the path has, none at all when there is no such path. */
const struct route *route_match(struct request *q, unsigned *ret_allowed);

/* "GET, HEAD, OPTIONS" */
#define ALLOW_MAX 64u
void route_print_allow(char ret[static ALLOW_MAX], unsigned allowed);
