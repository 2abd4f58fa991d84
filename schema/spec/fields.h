/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of a spec's fields beside the axes, in the order of the JSON Schema. A plain field is its row, a member of
 * struct spec, its place in SPEC_FIELDS, and what uses it.
 */

#include "schema/spec/parser.h"

#define FIELD_ONE(name) +1u
#define FIELD_COUNT (0u SPEC_FIELDS(FIELD_ONE, FIELD_ONE, FIELD_ONE, FIELD_ONE))

struct field {
        /* A member of struct spec. Without a type, `check` reads the field, `write` writes it, and `describe` or
         * the frame describes it. */
        struct value value;
        /* Called where the field is given, when the values of all rows have been read. 0; -EINVAL with *r; -ENOMEM. */
        int (*check)(struct parser *p, const struct json *v);
        /* Writes the member, if there is one. NULL: its value is written where `written` says so, and without that
         * where it is not all zero bytes. */
        void (*write)(struct json_writer *w, const struct spec *s);
        bool (*written)(const struct spec *s);
        /* The property of the JSON Schema. NULL: the value's type has it, or the frame. */
        void (*describe)(struct json_writer *w);
        bool measured; /* what is measured depends on it: an experiment that differs in it from a preset is no answer to
                          what the preset has (spec_unlike_setting()) */
        bool behind_axes; /* in the JSON Schema */
};

extern const struct field fields[FIELD_COUNT];
