/* SPDX-License-Identifier: MIT */
#pragma once

/* Declarations that only the files of schema/spec and schema/protocol share. */

#include "schema/json/json.h"
#include "schema/spec/spec.h"
#include "schema/spec/value.h"

extern const struct value_type value_placement;
extern const struct placement placement_default; /* each end at -1 */
bool placement_equal(const struct placement *a, const struct placement *b);
/* Compares the ends alone, not the roles that they are named by. */
bool placement_same(const struct placement *a, const struct placement *b);
/* A word or an object per role. 0; -EINVAL with *r filled. It does not check that the roles fit a workload. */
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

extern const struct value_table option_values; /* of struct transport_options */

extern const struct value_table require_values; /* of struct spec_require */
extern const struct value_table tune_values;    /* of struct spec_tune */
extern const struct value_table until_values;   /* of struct spec_until */
extern const struct value_table search_values;  /* of struct spec_search: members of search.rate */

/* An experiment's `require`, which may require every row of schema/facts.h beside require_values. 0; -EINVAL with *r;
 * -ENOMEM. */
int require_read(const struct json *v, struct spec *spec, struct refusal *r);
/* The member "require", where anything is required. */
void require_write(struct json_writer *w, const struct spec *spec);
/* Its property in the JSON Schema, and the definition of that of a placement, which may require require_values only. */
void require_describe(struct json_writer *w);
void require_define(struct json_writer *w);

/* The bits of the transports that the spec's points have, 1u << enum transport; 0: none moves messages. */
unsigned spec_transports(const struct spec *s);

/* The members of a point, inside an object that is open; and back: -EINVAL unless the object has exactly these. */
void point_put(struct json_writer *w, const struct point *p, bool with_placement);
int point_take(const struct json *object, bool with_placement, struct point *ret);
