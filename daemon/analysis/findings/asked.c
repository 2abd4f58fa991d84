/* SPDX-License-Identifier: MIT */

/* See asked.h. */

#include "daemon/analysis/findings/asked.h"

#include "schema/presets.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int parse_preset(const char *name, struct spec **ret) {
        char text[96];
        struct refusal ignored;
        int n = snprintf(text, sizeof(text), "{\"preset\": \"%s\"}", name);
        return preset_find(name) && n < (int) sizeof(text) ? spec_parse(text, (size_t) n, ret, &ignored) : -EINVAL;
}

int asked_init(struct asked *a, const char *preset, const char *study, const struct spec *posted) {
        struct asked ret = {.posted = posted};
        int r = parse_preset(study, &ret.study);
        if (r == 0)
                r = parse_preset(preset, &ret.preset);
        if (r < 0) {
                asked_deinit(&ret);
                return r;
        }
        if (!posted)
                ret.posted = ret.preset;
        ret.met = spec_axes_met(ret.preset) | spec_axes_met(ret.posted);
        ret.setting = spec_unlike_setting(ret.posted, ret.preset);
        *a = ret;
        return 0;
}

void asked_deinit(struct asked *a) {
        spec_free(a->study);
        spec_free(a->preset);
        *a = (struct asked){0};
}

static const void *value_at_index(const struct spec *s, enum axis_name axis, size_t i) {
        return (const char *) s->axes[axis].values + i * axes[axis].value.size;
}

/* Placements by their kind, whatever else they require. */
static bool is_same(enum axis_name axis, const void *x, const void *y) {
        const struct value *v = &axes[axis].value;
        if (axis == AXIS_PLACEMENT)
                return ((const struct placement *) x)->kind == ((const struct placement *) y)->kind;
        return v->type->equal(v, x, y);
}

static bool has_value(const struct spec *s, enum axis_name axis, const void *value) {
        for (size_t i = 0; i < s->axes[axis].n; i++)
                if (is_same(axis, value_at_index(s, axis, i), value))
                        return true;
        return false;
}

/* How many of the values of `of` the other has. */
static size_t count_common(const struct spec *of, const struct spec *other, enum axis_name axis) {
        size_t n = 0;
        for (size_t i = 0; i < of->axes[axis].n; i++)
                n += has_value(other, axis, value_at_index(of, axis, i));
        return n;
}

/* Which of two equal points it is makes no other point of it. */
static bool matters(const struct asked *a, enum axis_name axis) {
        return axis != AXIS_INSTANCE && a->met & UINT32_C(1) << axis;
}

bool asked_point(const struct asked *a, const struct point *p) {
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                if (matters(a, axis) && axis_applies(&axes[axis], p) &&
                    !has_value(a->study, axis, axis_of(&axes[axis], p)))
                        return false;
        return true;
}

bool asked_value(const struct asked *a, enum axis_name axis, const struct point *p) {
        const void *value = axis_of(&axes[axis], p);
        return has_value(a->posted, axis, value) || !has_value(a->preset, axis, value);
}

bool asked_by_preset(const struct asked *a, enum axis_name axis, const struct point *p) {
        return has_value(a->preset, axis, axis_of(&axes[axis], p));
}

bool asked_any(const struct asked *a, enum axis_name axis) {
        return !matters(a, axis) || count_common(a->posted, a->study, axis) > 0;
}

bool asked_all(const struct asked *a, enum axis_name axis) {
        return !matters(a, axis) || count_common(a->preset, a->posted, axis) == a->preset->axes[axis].n;
}

bool asked_alone(const struct asked *a, enum axis_name axis) {
        return !matters(a, axis) || count_common(a->posted, a->study, axis) == a->posted->axes[axis].n;
}
