/* SPDX-License-Identifier: MIT */

/* The rows of the tables of axes and of the other fields, and that parser, point JSON and JSON Schema agree on each. */

#include "schema/spec/axes.h"

#include "check.h"
#include "schema/json/json.h"
#include "schema/spec/fields.h"
#include "schema/util.h"
#include "transports.h"

#include <errno.h>

#define ITEM(name) name,

static struct json *schema, *point;

static const struct json *part(const struct json *root, const char *first, const char *second) {
        const struct json *v = json_get(root, first);
        return v ? json_get(v, second) : NULL;
}

static void read_schemas(void) {
        _cleanup_free_ char *spec_text = NULL, *point_text = NULL;
        CHECK_INT(spec_schema(&spec_text), 0);
        CHECK_INT(point_schema(&point_text), 0);
        CHECK_INT(json_parse(spec_text, strlen(spec_text), &schema, NULL), 0);
        CHECK_INT(json_parse(point_text, strlen(point_text), &point, NULL), 0);
        CHECK_UINT(json_length(json_get(point, "properties")), AXIS_COUNT);
        CHECK_UINT(json_length(json_get(point, "required")), 2); /* workload and placement */
}

/* The code of the refusal of {"NAME": VALUE}; "" when it is accepted. */
static const char *refusal_of(const char *name, const char *value) {
        static struct refusal r;
        struct spec *s = NULL;
        char text[300];

        (void) snprintf(text, sizeof(text), "{\"%s\":%s}", name, value);
        memset(&r, 0, sizeof(r));
        if (spec_parse(text, strlen(text), &s, &r) < 0)
                return r.code;
        spec_free(s);
        return "";
}

static void rows_are_whole(void) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                CHECK(v->name && v->description && v->type && v->standard);
                CHECK(v->size > 0 && v->offset + v->size <= sizeof(struct point));
                CHECK(!axes[i].strict || (axes[i].applies && (v->words || v->size == sizeof(uint32_t))));
                CHECK(!axes[i].possible || (axes[i].applies && v->words));
                for (size_t j = 0; j < i; j++) {
                        CHECK(strcmp(axes[j].value.name, v->name) != 0);
                        CHECK(axes[j].value.offset != v->offset);
                }
        }
}

static void rows_of_fields_are_whole(void) {
        for (size_t i = 0; i < FIELD_COUNT; i++) {
                const struct value *v = &fields[i].value;
                CHECK(v->name && part(schema, "properties", v->name));
                CHECK(!fields[i].measured || v->type);
                CHECK(!v->type || !fields[i].describe);
                CHECK(!v->type || (v->description && v->offset + v->size <= sizeof(struct spec)));
                for (size_t j = 0; j < i; j++) {
                        CHECK(strcmp(fields[j].value.name, v->name) != 0);
                        CHECK(!v->type || fields[j].value.offset != v->offset || !fields[j].value.type);
                }
        }
        CHECK_UINT(json_length(json_get(schema, "properties")), FIELD_COUNT + AXIS_COUNT - 1);
}

/* The list of members by what they decide has the fields of the table, in its order; no incidental one is among those
 * that what is measured depends on. */
static void members_by_role_are_the_fields(void) {
#define INCIDENTAL(name) {name, true},
#define ANOTHER(name) {name, false},
        static const struct {
                const char *name;
                bool incidental;
        } members[FIELD_COUNT] = {SPEC_FIELDS(ANOTHER, INCIDENTAL, ANOTHER, ANOTHER)};
        for (size_t i = 0; i < FIELD_COUNT; i++) {
                CHECK_STRING(members[i].name, fields[i].value.name);
                CHECK(!members[i].incidental || !fields[i].measured);
        }
}

/* Experiments are of the same spec where the text of what they measure is the same, also that of an earlier version. */
static void what_is_measured_keeps_its_text(void) {
        static const char posted[] =
                "{\"transport_options\":{\"nodelay\":true},\"tune\":{\"governor\":\"performance\"},"
                "\"require\":{\"smt\":true},\"stamp\":true,\"fresh\":true,\"chunk\":true,\"rate\":0.5,"
                "\"warmup_seconds\":0.25,\"messages\":7,\"verify\":\"none\",\"points\":\"twice\","
                "\"direction\":\"both\",\"transport\":[\"tcp\",\"msgq-posix\"]}";
        static const char *const incidental[] = {SPEC_INCIDENTAL(ITEM)};
        struct spec *s = NULL;
        struct refusal r;
        struct json *merged = NULL;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        CHECK_INT(spec_parse(posted, strlen(posted), &s, &r), 0);
        CHECK_INT(json_parse(s->merged_json, strlen(s->merged_json), &merged, NULL), 0);
        json_writer_init(&w);
        json_object_begin(&w);
        for (const struct json *m = json_first(merged); m; m = json_next(m)) {
                bool measured = true;
                for (size_t i = 0; i < ELEMENTS(incidental); i++)
                        measured &= strcmp(incidental[i], json_key(m)) != 0;
                for (size_t i = 0; i < AXIS_COUNT; i++)
                        measured &= strcmp(axes[i].value.name, json_key(m)) != 0;
                _cleanup_free_ char *value = measured ? json_print(m) : NULL;
                if (value)
                        json_member_raw(&w, json_key(m), value);
        }
        json_object_end(&w);
        CHECK_STRING(w.text, "{\"points\":\"twice\",\"verify\":\"none\",\"messages\":7,\"warmup_seconds\":0.25,"
                             "\"rate\":0.5,\"chunk\":true,\"fresh\":true,\"stamp\":true,\"require\":{\"smt\":true},"
                             "\"tune\":{\"governor\":\"performance\"},\"transport_options\":{\"nodelay\":true}}");
        json_free(merged);
        spec_free(s);
}

/* What holds without the field is what the schema calls its default. */
static void defaults_are_those_of_the_schema(void) {
        struct spec *s = NULL;
        struct refusal r;
        struct json *merged = NULL;

        CHECK_INT(spec_parse("{}", 2, &s, &r), 0);
        CHECK_INT(json_parse(s->merged_json, strlen(s->merged_json), &merged, NULL), 0);
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const char *name = axes[i].value.name;
                const struct json *property = part(schema, "properties", name);
                if (axes[i].field) { /* another one makes it an axis */
                        CHECK(!property && part(schema, "properties", axes[i].field));
                        CHECK(part(point, "properties", name) && part(schema, "$defs", name));
                        CHECK_STRING(refusal_of(name, "1"), "unknown-field");
                        continue;
                }
                CHECK(property && part(point, "properties", name) && part(schema, "$defs", name));
                _cleanup_free_ char *standard = json_print(json_get(property, "default"));
                _cleanup_free_ char *used = json_print(json_first(json_get(merged, name)));
                CHECK_STRING(used, standard);
                CHECK_STRING(refusal_of(name, standard), "");
        }
        /* those of the other fields, too */
        for (const struct json *property = json_first(json_get(schema, "properties")); property;
             property = json_next(property)) {
                const struct json *written = json_get(merged, json_key(property));
                if (!written || json_type(written) == JSON_ARRAY)
                        continue;
                const struct json *given = json_get(property, "default");
                _cleanup_free_ char *used = json_print(written), *standard = given ? json_print(given) : NULL;
                bool is_end = strcmp(json_key(property), "duration_seconds") == 0; /* or messages, or bytes */
                CHECK_STRING(is_end ? "5" : standard ? standard : "none", used);
        }
        json_free(merged);
        spec_free(s);
}

static const char *described(const struct json *properties, const char *name) {
        const char *text = "";
        const struct json *description = part(properties, name, "description");
        if (description)
                (void) json_as_string(description, &text);
        return text;
}

static void check_end_of(const struct json *properties, const char *name) {
        char end[1024];
        (void) snprintf(end, sizeof(end), "; for %s", transports_with(name));
        if (!strstr(described(properties, name), end))
                CHECK_FAIL("%s is described without \"%s\"", name, end);
}

/* A field that some transports have is described with their names, as the table has them. */
static void descriptions_name_the_transports(void) {
        const struct json *properties = json_get(schema, "properties"),
                          *options = part(json_get(schema, "properties"), "transport_options", "properties");
        static const char *const some[] = {"wait", "direction", "copy_mode"};
        for (size_t i = 0; i < ELEMENTS(some); i++)
                check_end_of(properties, some[i]);
        CHECK_STRING(described(json_get(schema, "$defs"), "wait"), described(properties, "wait"));
        CHECK(!strstr(described(properties, "message_size"), "; for "));
        CHECK(!strstr(described(properties, "working_set"), "; for "));
        check_end_of(options, "pipe_size");
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++) {
                _cleanup_(json_writer_deinit) struct json_writer w = {};
                struct json *names = NULL;
                json_writer_init(&w);
                transport_option_names_put(&w, (enum transport) t);
                CHECK_INT(json_parse(w.text, w.length, &names, NULL), 0);
                for (const struct json *name = json_first(names); name; name = json_next(name)) {
                        const char *option = NULL;
                        CHECK_INT(json_as_string(name, &option), 0);
                        const char *list = strstr(described(options, option), "; for ");
                        CHECK(list && strstr(list, transport_terms[t].name));
                }
                json_free(names);
        }
}

/* Whether changing one axis' value changes where another applies: only rows behind one that decides may depend on it,
 * or points would be counted wrongly. */
static void check_dependence(const struct point *base, size_t k) {
        const struct value *v = &axes[k].value;
        for (uint64_t i = 0; i < (v->words ? v->words->n : 2); i++) {
                uint64_t number = v->words ? i : i == 0 ? v->least : v->most;
                uint32_t narrow = (uint32_t) number;
                struct point other = *base;
                memcpy((char *) &other + v->offset, v->size == sizeof(narrow) ? (void *) &narrow : (void *) &number,
                       v->size);
                for (size_t j = 0; j < AXIS_COUNT; j++)
                        if (axis_applies(&axes[j], base) != axis_applies(&axes[j], &other) &&
                            (j < k || !axes[k].decides))
                                CHECK_FAIL("%s depends on %s", axes[j].value.name, axes[k].value.name);
        }
}

static void an_axis_depends_on_deciding_axes_only(void) {
        for (unsigned w = 0; w < WORKLOAD_COUNT; w++)
                for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                        for (unsigned c = 0; c < COPY_COUNT * ENGINE_COUNT; c++)
                                for (size_t k = 0; k < AXIS_PLACEMENT && !check_case_failed; k++) {
                                        const struct point base = {.workload = (enum workload) w,
                                                                   .transport = (enum transport) t,
                                                                   .copy_mode = (enum copy_mode)(c % COPY_COUNT),
                                                                   .engine = (enum engine)(c / COPY_COUNT)};
                                        check_dependence(&base, k);
                                }
}

/* The names and the range that the schema has are those that the parser accepts. */
static void ranges_are_those_of_the_schema(void) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                const struct json *definition = axes[i].field ? NULL : part(schema, "$defs", v->name);
                int64_t least, most;
                char text[64];
                for (const struct json *w = json_get(definition, "enum") ? json_first(json_get(definition, "enum"))
                                                                         : NULL;
                     w; w = json_next(w)) {
                        _cleanup_free_ char *word = json_print(w);
                        const char *code = refusal_of(v->name, word); /* of another workload or transport, perhaps */
                        CHECK(code[0] == '\0' || strcmp(code, "wrong-combination") == 0);
                }
                if (json_as_i64(json_get(definition, "minimum"), &least) < 0 ||
                    json_as_i64(json_get(definition, "maximum"), &most) < 0)
                        continue;
                const struct {
                        int64_t value;
                        const char *code;
                } rows[] = {{least, ""}, {most, ""}, {least - 1, "limit-exceeded"}, {most + 1, "limit-exceeded"}};
                for (size_t k = 0; k < ELEMENTS(rows); k++) {
                        (void) snprintf(text, sizeof(text), "%" PRId64, rows[k].value);
                        const char *code = refusal_of(v->name, text); /* a strict one may be of another engine */
                        if (!axes[i].strict || strcmp(code, "wrong-combination") != 0)
                                CHECK_STRING(code, rows[k].code);
                }
        }
}

/* A point has the members of the axes that apply to it, and holds what is absent of the others. */
static void a_point_has_what_applies(void) {
        static const char *const texts[] = {
                "{\"transport\":\"tcp\",\"fields\":3}",
                "{\"transport\":\"shm-posix\",\"fields\":3,\"threads\":2}",
                "{\"workload\":\"syscall\",\"threads\":4,\"processes\":5}",
                "{\"workload\":\"context-switch\",\"processes\":5,\"message_size\":7}",
        };
        for (size_t k = 0; k < ELEMENTS(texts); k++) {
                struct spec *s = NULL;
                struct refusal r;
                struct point_list list;
                struct json *shown = NULL;
                CHECK_INT(spec_parse(texts[k], strlen(texts[k]), &s, &r), 0);
                CHECK_INT(spec_points(s, &list, &r), 0);
                CHECK_UINT(list.n_points, 1);
                _cleanup_free_ char *text = point_to_json(&list.points[0]);
                CHECK_INT(json_parse(text, strlen(text), &shown, NULL), 0);
                for (size_t i = 0; i < AXIS_COUNT; i++) {
                        bool applies = axis_applies(&axes[i], &list.points[0]);
                        struct point folded = list.points[0];
                        CHECK_INT(json_get(shown, axes[i].value.name) != NULL, applies);
                        axis_clear(&axes[i], &folded);
                        CHECK(applies || memcmp(axis_of(&axes[i], &folded), axis_of(&axes[i], &list.points[0]),
                                                axes[i].value.size) == 0);
                }
                json_free(shown);
                point_list_deinit(&list);
                spec_free(s);
        }
}

/* Points that were stored before there was an axis have its standard value; no other member may be missing. */
static void a_point_from_before_an_axis(void) {
        static const char text[] =
                "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":4096,\"threads\":1,"
                "\"copy_mode\":\"two-copy\",\"engine\":\"io_uring\",\"placement\":\"default\"}";
        struct point p;
        CHECK_INT(point_from_json(text, strlen(text), &p), 0);
        CHECK_UINT(p.queue_depth, 1);
        _cleanup_free_ char *now = point_to_json(&p);
        CHECK(strstr(now, "\"queue_depth\":1,\"source\":\"hot\""));
        static const char without_engine[] = "{\"workload\":\"stream\",\"transport\":\"pipe\",\"message_size\":4096,"
                                             "\"threads\":1,\"copy_mode\":\"two-copy\",\"placement\":\"default\"}";
        CHECK_INT(point_from_json(without_engine, strlen(without_engine), &p), -EINVAL);
}

/* An experiment whose points stand twice has each as instance 1 and 2, side by side; others have no such member. */
static void points_that_stand_twice(void) {
        static const char text[] = "{\"points\":\"twice\",\"transport\":[\"pipe\",\"fifo\"]}";
        struct spec *s = NULL, *stored = NULL;
        struct refusal r;
        struct point_list list;
        CHECK_INT(spec_parse(text, strlen(text), &s, &r), 0);
        CHECK(strstr(s->merged_json, "\"points\":\"twice\"") && !strstr(s->merged_json, "instance"));
        CHECK_INT(spec_parse_stored(s->merged_json, strlen(s->merged_json), &stored, &r), 0);
        CHECK(spec_axes_met(stored) >> AXIS_INSTANCE & 1u);
        CHECK_INT(spec_points(stored, &list, &r), 0);
        CHECK_UINT(list.n_points, 4);
        for (size_t i = 0; i < list.n_points; i++) {
                struct point again;
                _cleanup_free_ char *shown = point_to_json(&list.points[i]);
                CHECK_INT(list.points[i].transport, i < 2 ? TRANSPORT_PIPE : TRANSPORT_FIFO);
                CHECK_UINT(list.points[i].instance, i % 2 + 1);
                CHECK(strstr(shown, i % 2 ? "\"instance\":2" : "\"instance\":1"));
                CHECK_INT(point_from_json(shown, strlen(shown), &again), 0);
                CHECK_UINT(again.instance, i % 2 + 1);
        }
        point_list_deinit(&list);
        spec_free(stored);
        spec_free(s);
        CHECK_INT(spec_parse("{}", 2, &s, &r), 0);
        CHECK(!(spec_axes_met(s) >> AXIS_INSTANCE & 1u) && !strstr(s->merged_json, "points"));
        spec_free(s);
}

int main(void) {
        RUN(read_schemas);
        RUN(rows_are_whole);
        RUN(rows_of_fields_are_whole);
        RUN(members_by_role_are_the_fields);
        RUN(what_is_measured_keeps_its_text);
        RUN(defaults_are_those_of_the_schema);
        RUN(descriptions_name_the_transports);
        RUN(an_axis_depends_on_deciding_axes_only);
        RUN(ranges_are_those_of_the_schema);
        RUN(a_point_has_what_applies);
        RUN(a_point_from_before_an_axis);
        RUN(points_that_stand_twice);
        json_free(point);
        json_free(schema);
        return check_end();
}
