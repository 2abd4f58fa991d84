/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_SPEC_PARSER_H
#define IPCLAB_SCHEMA_SPEC_PARSER_H

/* What the parts of the spec parser share: spec-parse.c leads, spec-axes.c reads the fields that may be lists. */

#include "schema/spec/internal.h"

struct parser {
        struct spec *spec;
        const struct json *body;   /* what was posted */
        const struct json *preset; /* the spec inside the preset it names, or NULL */
        bool stored;               /* the body is no person's words, but what an earlier parse came to */
        struct refusal *r;
};

/* A field's value: the posted one, else the preset's, else NULL. */
const struct json *parser_get(const struct parser *p, const char *field);
/* Whether a person's body itself says it. What the preset alone says gives way where the body leaves it without a
 * meaning. */
bool parser_is_posted(const struct parser *p, const char *field);

/* Scalars of a field, each with its pointer; 0 or -EINVAL with the refusal filled. */
int parser_integer(struct parser *p, const struct json *v, const char *pointer, const char *what, uint64_t least,
                   uint64_t most, uint64_t *ret);
int parser_word(struct parser *p, const struct json *v, const char *pointer, const char *what,
                const char *(*name)(unsigned), unsigned n, unsigned *ret);
int parser_wrong_type(struct parser *p, const struct json *v, const char *pointer, const char *wanted);

int parser_toggle(struct parser *p, const struct json *v, const char *pointer, enum toggle *ret);
/* Refuses a member that has no row, and offers of `names` the one that was probably meant. */
int parser_unknown_member(struct parser *p, const char *parent, const struct json *member, const char *const *names,
                          size_t n);

/* spec-options.c; transport_options as JSON and back, and the experiment's against its transports. */
int options_take(struct parser *p, const struct json *v, const char *pointer, struct transport_options *ret);
int options_check(struct parser *p, const struct json *v);

/* spec-require.c */
int require_take(struct parser *p, const struct json *v, const char *pointer, struct spec_require *ret);
int tune_take(struct parser *p, const struct json *v, struct spec_tune *ret);

/* All axes with their defaults; then whether a point can have what they ask of mechanisms. 0, -EINVAL, -ENOMEM. */
int parser_axes(struct parser *p);
int parser_mechanisms(struct parser *p);

#endif
