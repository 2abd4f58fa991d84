/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_SPEC_INTERNAL_H
#define IPCLAB_SCHEMA_SPEC_INTERNAL_H

/* What the spec-*.c files and protocol.c share, and nobody else. */

#include "schema/json/json.h"
#include "schema/spec/spec.h"

/* A placement that says nothing: the default, each end at -1. */
void placement_init(struct placement *p);
bool placement_equal(const struct placement *a, const struct placement *b);
/* Whichever roles they name. */
bool placement_same(const struct placement *a, const struct placement *b);
/* A word or an object per role. 0; -EINVAL with *r filled. Whether the roles fit a workload is not asked here. */
int placement_parse(const struct json *value, const char *pointer, struct placement *ret, struct refusal *r);
/* Whether it stands for many: all-node-pairs, all-cpu-pairs. */
bool placement_is_pairs(const struct placement *p);
/* Makes a pair of ends that are the same the placement of one agent; false when they are not. */
bool placement_make_single(struct placement *p);
/* Whether the roles named are those of this workload over this transport. */
bool placement_fits(const struct placement *p, enum workload w, enum transport t);
/* roles: the words to use for an explicit one. */
void placement_put(struct json_writer *w, const struct placement *p, enum role_pair roles);

/* The whole spec, defaults spelled out, as what spec_parse() accepts. 0 or -ENOMEM. */
int spec_to_json(const struct spec *spec, char **ret);

/* Those that were asked for, as an object. */
void options_put(struct json_writer *w, const struct transport_options *t);
/* Whether each that is given has a value that options_take() accepts. 0; -EINVAL with a sentence. (Words are the
 * caller's to check.) */
int options_check_ranges(const struct transport_options *t, char *ret_detail, size_t size);
bool options_any(const struct transport_options *t);

bool require_any(const struct spec_require *q);
bool require_equal(const struct spec_require *a, const struct spec_require *b);
void require_put(struct json_writer *w, const struct spec_require *q); /* with its key */
void tune_put(struct json_writer *w, const struct spec_tune *t);       /* with its key, if anything is asked */

/* Of `n` names the one that `word` was probably meant to be, or NULL when none is close. */
const char *suggest(const char *word, const char *const *names, size_t n);

/* The members of a point, inside an object that is open; and back: -EINVAL unless the object has exactly these. */
void point_put(struct json_writer *w, const struct point *p, bool with_placement);
int point_take(const struct json *object, bool with_placement, struct point *ret);

/* Appends "/key" or "/index" to a pointer. */
void pointer_key(char pointer[JSON_POINTER_MAX], const char *parent, const char *key);
void pointer_index(char pointer[JSON_POINTER_MAX], const char *parent, size_t index);

#endif
