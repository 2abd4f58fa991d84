/* SPDX-License-Identifier: MIT */

#include "api/handle/render/cells.h"

#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

_Static_assert(AXIS_COUNT <= ELEMENTS(((struct point_columns *) NULL)->names), "a column for each axis");

static void fail(struct text *t, int error) {
        if (t->error == 0)
                t->error = error;
}

static void put_value(struct text *t, const struct json *value) {
        const char *s;
        if (!value || json_type(value) == JSON_NULL)
                return;
        if (json_as_string(value, &s) >= 0) {
                text_csv(t, s);
                return;
        }
        _cleanup_free_ char *json = json_print(value);
        if (json)
                text_csv(t, json);
        else
                fail(t, -ENOMEM);
}

void cells_value(struct text *t, const struct json *value) {
        text_puts(t, ",");
        put_value(t, value);
}

void cells_rate(struct text *t, uint64_t rate) {
        text_puts(t, ",");
        if (rate > 0)
                text_printf(t, "%" PRIu64, rate);
}

void cells_double(struct text *t, double v) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_put_double(&w, v);
        text_puts(t, ",");
        text_json(t, &w);
}

void cells_words(struct text *t, const char *list) {
        _cleanup_(json_freep) struct json *root = NULL;
        _cleanup_(text_deinit) struct text joined = {0};
        int k = json_parse_stored(list, &root);
        text_puts(t, ",");
        for (const struct json *i = root ? json_first(root) : NULL; i; i = json_next(i)) {
                const char *word;
                if (json_as_string(i, &word) >= 0)
                        text_printf(&joined, "%s%s", joined.length > 0 ? " " : "", word);
        }
        text_csv(t, joined.data);
        if (k < 0 || joined.error < 0)
                fail(t, k < 0 ? k : joined.error);
}

/* Writes the spec's fields that decide which ones a point has. They are short, however long the spec is: a megabyte of
 * placements is not parsed for each reader. */
static void put_deciding(struct text *t, const char *merged_json) {
        const char *comma = "";
        text_puts(t, "{");
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const char *value;
                size_t length;
                if (!axes[i].decides || !json_find_member(merged_json, axis_field(&axes[i]), &value, &length))
                        continue;
                text_printf(t, "%s\"%s\":", comma, axis_field(&axes[i]));
                text_append(t, value, length);
                comma = ",";
        }
        text_puts(t, "}");
}

/* Whether a spec has another value of the axis than the standard one, or several. It has them as a list. */
static int is_chosen(const struct axis *a, const char *merged_json, bool *ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_(text_deinit) struct text standard = {0};
        const char *value;
        size_t length;
        json_array_begin(&w);
        a->value.type->write(&a->value, &w, a->value.standard);
        json_array_end(&w);
        text_json(&standard, &w);
        if (standard.error < 0)
                return standard.error;
        *ret = json_find_member(merged_json, axis_field(a), &value, &length) &&
               (length != standard.length || memcmp(value, standard.data, length) != 0);
        return 0;
}

static unsigned workloads_of(const struct spec *spec) {
        unsigned bits = 0;
        struct point p = {0};
        for (size_t i = 0; i < spec->axes[AXIS_WORKLOAD].n; i++) {
                axis_set(&axes[AXIS_WORKLOAD], spec, i, &p);
                bits |= 1u << p.workload;
        }
        return bits;
}

int point_columns_of(const char *merged_json, struct point_columns *ret) {
        _cleanup_(text_deinit) struct text deciding = {0};
        struct spec *spec = NULL;
        struct refusal r = {0};
        struct point_columns c = {0};
        if (!merged_json)
                return -EBADMSG;
        put_deciding(&deciding, merged_json);
        int k = deciding.error;
        if (k >= 0)
                k = spec_parse_stored(deciding.data, deciding.length, &spec, &r);
        if (k < 0)
                return k == -EINVAL ? -EBADMSG : k;
        unsigned met = spec_axes_met(spec);
        c.workloads = workloads_of(spec);
        spec_free(spec);
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                if (!(met >> i & 1u))
                        continue;
                bool chosen = false;
                if (!axes[i].usual && (k = is_chosen(&axes[i], merged_json, &chosen)) < 0)
                        return k;
                c.usual[c.n] = axes[i].usual || chosen;
                c.names[c.n++] = axes[i].value.name;
        }
        *ret = c;
        return 0;
}

void point_columns_keep_usual(struct point_columns *c) {
        size_t n = 0;
        for (size_t i = 0; i < c->n; i++)
                if (c->usual[i])
                        c->names[n++] = c->names[i];
        c->n = n;
}

void point_columns_header(const struct point_columns *c, struct text *t, bool leads) {
        for (size_t i = 0; i < c->n; i++)
                text_printf(t, "%s%s", leads && i == 0 ? "" : ",", c->names[i]);
}

int point_columns_cells(const struct point_columns *c, struct text *t, const char *point_json, bool leads) {
        _cleanup_(json_freep) struct json *root = NULL;
        int k = json_parse_stored(point_json, &root);
        for (size_t i = 0; k >= 0 && i < c->n; i++) {
                text_puts(t, leads && i == 0 ? "" : ",");
                put_value(t, root ? json_get(root, c->names[i]) : NULL);
        }
        return k;
}
