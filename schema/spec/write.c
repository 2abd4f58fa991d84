/* SPDX-License-Identifier: MIT */

/*
 * A spec as JSON, preset merged and defaults spelled out: what is stored beside the posted text, so that an experiment
 * means the same after presets and defaults have changed. Called by spec_parse().
 */

#include "schema/spec/axes.h"
#include "schema/spec/fields.h"
#include "schema/util.h"

static void put_axes(struct json_writer *w, const struct spec *s) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                if (axes[i].field)
                        continue;
                json_member_array(w, v->name);
                for (size_t k = 0; k < s->axes[i].n; k++)
                        v->type->write(v, w, (const char *) s->axes[i].values + k * v->size);
                json_array_end(w);
        }
}

const char *spec_unlike_setting(const struct spec *a, const struct spec *b) {
        for (size_t i = 0; i < FIELD_COUNT; i++) {
                const struct value *v = &fields[i].value;
                if (fields[i].measured &&
                    !v->type->equal(v, (const char *) a + v->offset, (const char *) b + v->offset))
                        return v->name;
        }
        return NULL;
}

static void put_field(struct json_writer *w, const struct spec *s, const struct field *f) {
        const struct value *v = &f->value;
        if (f->write) {
                f->write(w, s);
        } else if (v->type && (f->written ? f->written(s) : value_is_given(v, s))) {
                json_put_key(w, v->name);
                v->type->write(v, w, (const char *) s + v->offset);
        }
}

int spec_to_json(const struct spec *s, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        size_t length;

        json_object_begin(&w);
        if (s->name)
                json_member_string(&w, "name", s->name);
        put_axes(&w, s);
        if (s->axes[AXIS_INSTANCE].n > 1)
                json_member_string(&w, axis_field(&axes[AXIS_INSTANCE]), spec_instances_name(INSTANCES_TWICE));
        for (size_t i = 0; i < FIELD_COUNT; i++)
                put_field(&w, s, &fields[i]);
        json_object_end(&w);
        return json_writer_steal(&w, ret, &length);
}
