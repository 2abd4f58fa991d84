/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_REQUEST_H
#define IPCLAB_API_REQUEST_H

/*
 * A request as the rooms behind http.c see it: plain data, taken apart once. The path is decoded segment by segment
 * (so that %2F stays inside its segment), the query pair by pair; what is not clean is refused here.
 */

#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REQUEST_SEGMENTS_MAX 8u
#define REQUEST_PAIRS_MAX 100u
#define REQUEST_BODY_MAX (1024u * 1024u)

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

struct request {
        enum method method;
        bool local;      /* came over the unix socket */
        bool http_1_0;   /* or older */
        char *target;    /* as it came */
        char *path;      /* of it, still encoded: what a problem names as its instance */
        char *authority; /* of an absolute target, else NULL */
        char *segments[REQUEST_SEGMENTS_MAX];
        size_t n_segments;
        struct pairs query;
        struct pairs headers;
        char *body; /* NUL-terminated; NULL when there was none */
        size_t body_length;
        int64_t id;       /* the {id} of the path, set by the route's match */
        const char *name; /* likewise its {name}; NULL: it has none */
};

/* Takes the target apart: path, segments, query. -EINVAL with *r (400) on one that is not clean, -ENOMEM. */
int request_parse_target(struct request *q, const char *target, struct refusal *r);
void request_deinit(struct request *q);

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

#endif
