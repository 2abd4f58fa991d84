/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A request as http.c passes it to the handlers: plain data, parsed once. The path is decoded segment by segment (so
 * that %2F stays inside its segment), the query pair by pair; a malformed target is refused here.
 */

#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_SEGMENTS_MAX 8u
#define REQUEST_PAIRS_MAX 100u
#define REQUEST_BODY_MAX (1024u * 1024u)
/* The limit of a body that is a file: a bundle of SPEC_RUNS_MAX runs has 40 MiB. */
#define REQUEST_FILE_MAX (64u * 1024u * 1024u)

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_PUT, METHOD_DELETE, METHOD_OPTIONS, METHOD_OTHER };

const char *method_name(enum method m); /* "" for METHOD_OTHER */
enum method method_from_name(const char *name);

struct pair {
        char *name;
        char *value;
};

struct pairs {
        struct pair *items;
        size_t n;
};

/* Copies name and value. -E2BIG above REQUEST_PAIRS_MAX, -ENOMEM. */
int pairs_add(struct pairs *p, const char *name, size_t name_length, const char *value, size_t value_length);
void pairs_deinit(struct pairs *p);

struct peer;

struct request {
        enum method method;
        struct peer *peer; /* the client, referenced by its connection; NULL: there is none */
        bool dear;         /* it has one of the peer's shares of expensive requests */
        bool slow;         /* its handler may run for long, by its route's row */
        bool local;        /* received over the unix socket */
        bool http_1_0;     /* or older */
        char *target;      /* as received */
        char *path;        /* of it, still encoded: the "instance" of a problem */
        char *authority;   /* of an absolute target, else NULL */
        char *segments[REQUEST_SEGMENTS_MAX];
        size_t n_segments;
        struct pairs query;
        struct pairs headers;
        char *body; /* NUL-terminated; NULL when there was none */
        size_t body_length;
        size_t body_max;              /* by its route; 0: REQUEST_BODY_MAX */
        size_t body_cost;             /* what its body has of the peer's share of request bytes, and of the budget */
        int64_t id;                   /* the {id} of the path, set by the route's match */
        const char *name;             /* likewise its {name}; NULL: it has none */
        bool (*gone)(void *userdata); /* see request_has_gone(); NULL: the client stays */
        void *gone_userdata;
};

/* Parses the target: path, segments, query. -EINVAL with *r (400) on a malformed one, -ENOMEM. */
int request_parse_target(struct request *q, const char *target, struct refusal *r);
void request_deinit(struct request *q);

/* Whether nobody waits for the answer any more: the client has left, or its connection was ended. A handler that works
 * long looks now and then. */
bool request_has_gone(const struct request *q);

/* The header's value, NULL when there is none. Names are compared without case. */
const char *request_header(const struct request *q, const char *name);
size_t request_header_count(const struct request *q, const char *name);

/* The query parameter's value, NULL when it was not given. */
const char *request_parameter(const struct request *q, const char *name);
/* A parameter that is not what it must be: 400, "must be WANTED, not VALUE". Returns -EINVAL. */
int refuse_parameter(struct refusal *r, const char *name, const char *value, const char *wanted, ...)
        __attribute__((format(printf, 4, 5)));
/* A decimal between min and max, `fallback` when it was not given; -EINVAL with *r (400, naming the parameter). */
int request_parameter_u32(const struct request *q, const char *name, uint32_t min, uint32_t max, uint32_t fallback,
                          uint32_t *ret, struct refusal *r);
/* A position in a list: `kind`, a dash and a number, opaque to clients. 0 when it was not given. */
#define CURSOR_MAX 32u
int request_parameter_cursor(const struct request *q, char kind, int64_t *ret, struct refusal *r);
void cursor_print(char ret[static CURSOR_MAX], char kind, int64_t position);

/* Decimal digits only, no leading zero, in range. 0 or -EINVAL. */
int decimal_parse(const char *text, int64_t *ret);
/* A decimal of at most 18 digits, as places in lists and streams are described. 0, or -EINVAL. */
int place_parse(const char *text, int64_t *ret);
/* A number as JSON writes one. 0; -EINVAL for other text, or a number that a double has no room for. */
int number_parse(const char *text, double *ret);
