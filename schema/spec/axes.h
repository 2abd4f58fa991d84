/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of the axes. Parsing, writing and freeing of a spec, its expansion into points, a point's JSON and the JSON
 * Schema loop over it. A new axis has an enumerator and a member of struct point in spec.h, its row in axes.c, and what
 * uses it.
 */

#include "schema/spec/spec.h"
#include "schema/spec/value.h"

struct axis {
        struct value value; /* of struct point; it has a standard value */
        /* The field of a spec that decides whether points differ in this axis; NULL: the field of the axis' name, which
         * lists its values. */
        const char *field;
        /* Whether the axis has a meaning for a point whose earlier axes are filled in; NULL: for all. With `field`: for
         * a point that has its own value of the axis, too. */
        bool (*applies)(const struct point *p);
        /* Whether a point to which the axis applies can have the value that it has; NULL: any. */
        bool (*possible)(const struct point *p);
        bool usual;         /* a column of a CSV without columns=all, also with the standard value alone */
        bool decides;       /* `applies` of this axis or a later one reads it */
        bool later;         /* points were stored before there was the axis: they have its standard value */
        bool strict;        /* a posted value that is not the standard one must have a meaning for some point */
        const void *absent; /* what a point has to which the axis does not apply; NULL: zeroes */
};

extern const struct axis axes[AXIS_COUNT];

static inline bool axis_applies(const struct axis *a, const struct point *p) {
        return !a->applies || a->applies(p);
}

/* Whether a point whose earlier axes are filled in is to be given a value of the axis. */
static inline bool axis_is_settable(const struct axis *a, const struct point *p) {
        return a->field || axis_applies(a, p);
}

static inline const char *axis_field(const struct axis *a) {
        return a->field ? a->field : a->value.name;
}

/* The axis' value in a point. */
static inline const void *axis_of(const struct axis *a, const struct point *p) {
        return (const char *) p + a->value.offset;
}

/* Value i of a spec's list into the point; and what it has where the axis does not apply. */
void axis_set(const struct axis *a, const struct spec *s, size_t i, struct point *p);
void axis_clear(const struct axis *a, struct point *p);

/* The workloads, as bits, of which some point has the axis. */
unsigned axis_workloads(const struct axis *a);
/* The transports, as bits, over which some point has the axis; all or none where it does not depend on them. */
unsigned axis_transports(const struct axis *a);

struct json_writer;
/* Member "enum" of a JSON Schema under construction: the names of all axes. */
void axes_put_enum(struct json_writer *w);
