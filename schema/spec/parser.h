/* SPDX-License-Identifier: MIT */
#pragma once

/* Declarations that the parts of the spec parser share: parse.c is the entry, axes.c reads the fields that may be
 * lists. */

#include "schema/spec/internal.h"

struct parser {
        struct spec *spec;
        const struct json *body;   /* what was posted */
        const struct json *preset; /* the spec inside the preset it names, or NULL */
        bool stored;               /* the body is the merged_json of an earlier parse, not a request */
        struct refusal *r;
};

/* A field's value: the posted one, else the preset's, else NULL. */
const struct json *parser_get(const struct parser *p, const char *field);
/* Whether the posted body itself has the field. A preset's field is dropped where the body leaves it without a
 * meaning. */
bool parser_is_posted(const struct parser *p, const char *field);

/* Checks the given transport_options against the experiment's transports. 0 or -EINVAL. */
int options_check(struct parser *p, const struct json *v);

/* Reads all axes, with their defaults; then checks that a point can have the posted values. 0, -EINVAL, -ENOMEM. */
int parser_axes(struct parser *p);
int parser_meanings(struct parser *p);
