/* SPDX-License-Identifier: MIT */

/*
 * The JSON Schema (2020-12) of an experiment and of a point: the frame, and what the tables of axes, of the other
 * fields and of requirements have. Made when it is served: a program that made it at build time would have to be built
 * for the machine that builds, and what it wrote could grow stale. The parser decides; one table of documents is held
 * against both (tests/unit/data/spec).
 */

#include "schema/schema.h"

#include "schema/spec/axes.h"
#include "schema/spec/fields.h"
#include "schema/util.h"

#include <string.h>

#define DEFINITION "#/$defs/"

static const struct value placement_word = {
        .name = "placement_word",
        .type = &value_word,
        .words = &placement_kind_words,
        .description =
                "default: where the kernel puts the threads, nothing is pinned; but a context-switch, which is "
                "measured on one CPU, has with default the CPU and the memory of same-cpu, and its effective.cpu is "
                "that CPU; all-node-pairs and all-cpu-pairs stand for a placement for each ordered pair that the "
                "host has, a thing with itself included",
};

static void put_reference(struct json_writer *w, const char *name) {
        char reference[64];
        snprintf(reference, sizeof(reference), DEFINITION "%s", name);
        json_member_string(w, "$ref", reference);
}

/* One value, or a list. */
static void put_axis(struct json_writer *w, const struct axis *a) {
        const struct value *v = &a->value;
        json_member_object(w, v->name);
        value_put_description(v, axis_transports(a), w);
        words_put_some(w, "x-workloads", &workload_words, axis_workloads(a));
        words_put_some(w, "x-transports", &transport_words, axis_transports(a));
        json_put_key(w, "default");
        v->type->write(v, w, v->standard);
        json_member_array(w, "oneOf");
        json_object_begin(w);
        put_reference(w, v->name);
        json_object_end(w);
        json_object_begin(w);
        json_member_string(w, "type", "array");
        json_member_u64(w, "minItems", 1);
        json_member_u64(w, "maxItems", SPEC_LIST_MAX);
        json_member_bool(w, "uniqueItems", true);
        json_member_object(w, "items");
        put_reference(w, v->name);
        json_object_end(w);
        json_object_end(w);
        json_array_end(w);
        json_object_end(w);
}

static int put_value(struct json_writer *w, const struct json *member) {
        _cleanup_free_ char *text = json_print(member);
        if (!text)
                return -ENOMEM;
        json_member_raw(w, json_key(member), text);
        return 0;
}

/* frame: the properties that have no description in their rows. */
static int put_fields(struct json_writer *w, const struct json *frame, bool behind_axes) {
        int r = 0;
        for (size_t i = 0; r == 0 && i < FIELD_COUNT; i++) {
                const struct field *f = &fields[i];
                const struct json *described = json_get(frame, f->value.name);
                if (f->behind_axes != behind_axes)
                        continue;
                if (f->describe)
                        f->describe(w);
                else if (f->value.type)
                        value_describe(&f->value, 0, w);
                else if (described)
                        r = put_value(w, described);
        }
        return r;
}

static int put_properties(struct json_writer *w, const struct json *frame) {
        json_member_object(w, json_key(frame));
        int r = put_fields(w, frame, false);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (!axes[i].field)
                        put_axis(w, &axes[i]);
        if (r == 0)
                r = put_fields(w, frame, true);
        json_object_end(w);
        return r;
}

/* Without a description of its type, a value is defined in the frame. */
static void put_definition(struct json_writer *w, const struct value *v, unsigned transports) {
        if (!v->type->describe)
                return;
        json_member_object(w, v->name);
        value_put_description(v, transports, w);
        v->type->describe(v, w);
        json_object_end(w);
}

static int put_definitions(struct json_writer *w, const struct json *frame) {
        int r = 0;
        json_member_object(w, json_key(frame));
        for (const struct json *m = json_first(frame); r == 0 && m; m = json_next(m))
                r = put_value(w, m);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                put_definition(w, &axes[i].value, axis_transports(&axes[i]));
        require_define(w);
        put_definition(w, &placement_word, 0);
        json_object_end(w);
        return r;
}

int spec_schema(char **ret) {
        _cleanup_(json_freep) struct json *frame = NULL;
        int r = json_parse(schema_frame_json, strlen(schema_frame_json), &frame, NULL);
        if (r < 0)
                return r; /* only for want of memory: the build has checked the text */

        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        for (const struct json *m = json_first(frame); r == 0 && m; m = json_next(m))
                if (strcmp(json_key(m), "properties") == 0)
                        r = put_properties(&w, m);
                else if (strcmp(json_key(m), "$defs") == 0)
                        r = put_definitions(&w, m);
                else
                        r = put_value(&w, m);
        json_object_end(&w);
        return r < 0 ? r : json_writer_steal(&w, ret, NULL);
}

int point_schema(char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_string(&w, "description",
                           "One combination of the axes' values: the fields that mean something for its workload and "
                           "transport. instance is of experiments whose points stand twice.");
        json_member_string(&w, "type", "object");
        json_member_object(&w, "properties");
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                json_member_object(&w, axes[i].value.name);
                put_reference(&w, axes[i].value.name);
                json_object_end(&w);
        }
        json_object_end(&w);
        json_member_array(&w, "required");
        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (!axes[i].applies)
                        json_put_string(&w, axes[i].value.name);
        json_array_end(&w);
        json_member_bool(&w, "additionalProperties", false);
        json_object_end(&w);
        return json_writer_steal(&w, ret, NULL);
}
