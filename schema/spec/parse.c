/* SPDX-License-Identifier: MIT */

/*
 * The strict parser of a posted experiment. Each field has a row in the table of the axes or of the other fields. The
 * daemon calls it, and so does the fuzzer, and relies on it: what passes here has the right words, types and ranges.
 */

#include "schema/presets.h"
#include "schema/spec/axes.h"
#include "schema/spec/fields.h"
#include "schema/util.h"

#include <stdio.h>
#include <string.h>

/* Fields that are one choice: whichever of them is posted overrides what the preset has of all. */
static const char *const choices[][3] = {{"duration_seconds", "messages", "bytes"}, {"repetitions", "until"}};

static bool is_overridden(const struct parser *p, const char *field) {
        for (size_t i = 0; i < ELEMENTS(choices); i++) {
                bool is_one = false, posted = false;
                for (size_t k = 0; k < ELEMENTS(choices[i]) && choices[i][k]; k++) {
                        is_one |= strcmp(choices[i][k], field) == 0;
                        posted |= json_get(p->body, choices[i][k]) != NULL;
                }
                if (is_one && posted)
                        return true;
        }
        return false;
}

const struct json *parser_get(const struct parser *p, const char *field) {
        const struct json *v = json_get(p->body, field);
        return v || !p->preset || is_overridden(p, field) ? v : json_get(p->preset, field);
}

bool parser_is_posted(const struct parser *p, const char *field) {
        return !p->stored && json_get(p->body, field) != NULL;
}

static int check_names(struct parser *p) {
        const char *names[AXIS_COUNT + FIELD_COUNT];
        size_t n = 0;

        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (!axes[i].field)
                        names[n++] = axes[i].value.name;
        for (size_t i = 0; i < FIELD_COUNT; i++)
                names[n++] = fields[i].value.name;
        for (const struct json *m = json_first(p->body); m; m = json_next(m)) {
                size_t i = 0;
                while (i < n && strcmp(names[i], json_key(m)) != 0)
                        i++;
                if (i == n)
                        return refuse_member(m, "", names, n, p->r);
        }
        return 0;
}

/* *ret_document owns what p->preset points into. */
static int find_preset(struct parser *p, struct json **ret_document) {
        const struct json *v = json_get(p->body, "preset");
        const char *name;

        if (!v)
                return 0;
        if (json_as_string(v, &name) < 0)
                return refuse_type(v, "/preset", "the name of a preset", p->r);
        const struct preset *preset = preset_find(name);
        if (!preset)
                return refuse(p->r, 422, "unknown-value", "/preset", "there is no preset \"%.60s\"", name);
        p->spec->preset = strdup(preset->name);
        if (!p->spec->preset)
                return -ENOMEM;
        int r = json_parse(preset->json, preset->length, ret_document, NULL);
        if (r < 0)
                return r; /* only for want of memory: the build has checked the text */
        p->preset = json_get(*ret_document, "spec");
        return 0;
}

/* The values of all plain fields; those that are not given have their defaults. */
static int take_values(struct parser *p) {
        char *spec = (char *) p->spec, pointer[JSON_POINTER_MAX];
        for (size_t i = 0; i < FIELD_COUNT; i++) {
                const struct value *v = &fields[i].value;
                const struct json *given = parser_get(p, v->name);
                if (!v->type)
                        continue;
                if (v->standard)
                        memcpy(spec + v->offset, v->standard, v->size);
                json_pointer_key(pointer, "", v->name);
                int r = given ? v->type->read(v, given, pointer, spec + v->offset, p->r) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_all(struct parser *p) {
        struct window_end *e = &p->spec->end;
        int r = check_names(p);
        if (r == 0)
                r = parser_axes(p);
        if (r == 0)
                r = take_values(p);
        for (size_t i = 0; r == 0 && i < FIELD_COUNT; i++) {
                const struct json *v = fields[i].check ? parser_get(p, fields[i].value.name) : NULL;
                if (v)
                        r = fields[i].check(p, v);
        }
        if (r < 0)
                return r;
        if (!e->duration_ns && !e->messages && !e->bytes)
                e->duration_ns = 5 * NSEC_PER_SEC;
        r = parser_meanings(p);
        return r < 0 || p->stored ? r : spec_to_json(p->spec, &p->spec->merged_json);
}

static int parse_body(const struct json *root, bool stored, struct spec **ret, struct refusal *r) {
        struct spec *spec = calloc(1, sizeof(*spec));
        _cleanup_(json_freep) struct json *document = NULL;
        struct parser p = {.spec = spec, .body = root, .stored = stored, .r = r};

        if (!spec)
                return -ENOMEM;
        int x = json_type(root) == JSON_OBJECT ? find_preset(&p, &document) : refuse_type(root, "", "an object", r);
        if (x == 0)
                x = take_all(&p);
        if (x < 0)
                spec_free(spec);
        else
                *ret = spec;
        return x;
}

static int parse(const char *text, size_t length, bool stored, struct spec **ret, struct refusal *r) {
        _cleanup_(json_freep) struct json *root = NULL;
        struct json_error e = {.pointer = ""};

        if (length > SPEC_BODY_MAX) {
                char value[32];
                snprintf(value, sizeof(value), "%zu", length);
                (void) refuse_limit(r, "", "bytes of a body", "1048576", value, "the body has %s bytes, at most %u",
                                    value, SPEC_BODY_MAX);
                r->status = 413;
                return -EINVAL;
        }
        int x = (stored ? json_parse : json_parse_request)(text, length, &root, &e);
        if (x == -EINVAL)
                return refuse(r, 400, "invalid-json", e.pointer, "%s", e.detail);
        if (x < 0)
                return x;
        return parse_body(root, stored, ret, r);
}

int spec_parse(const char *text, size_t length, struct spec **ret, struct refusal *r) {
        return parse(text, length, false, ret, r);
}

int spec_parse_stored(const char *text, size_t length, struct spec **ret, struct refusal *r) {
        return parse(text, length, true, ret, r);
}

void spec_free(struct spec *s) {
        if (!s)
                return;
        free(s->name);
        free(s->preset);
        for (size_t i = 0; i < AXIS_COUNT; i++)
                free(s->axes[i].values);
        for (size_t i = 0; i < s->n_facts; i++) {
                free(s->facts[i].name);
                free(s->facts[i].text);
        }
        free(s->facts);
        free(s->merged_json);
        free(s);
}
