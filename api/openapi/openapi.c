/* SPDX-License-Identifier: MIT */

/* Writes openapi.json from the same rows that dispatch.c serves, once, at the start. */

#include "api/openapi/openapi.h"

#include "api/handle/route/routes.h"
#include "api/http/text.h"
#include "schema/facts.h"
#include "schema/figures.h"
#include "schema/json/json.h"
#include "schema/spec/axes.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <string.h>

static const char description[] =
        "What it costs to move data between two processes on this machine, by mechanism, message size, placement and "
        "concurrency. Over the unix socket whoever may open it may write; over TCP, writes need the bearer token. "
        "Bodies "
        "are application/json (the unix socket also takes for it what `curl -d` sends by itself). Every GET answers "
        "HEAD, "
        "every path OPTIONS. Counts and nanoseconds are exact integers; a figure that could not be measured is null.";

static void put_ref(struct json_writer *w, const char *kind, const char *name) {
        char ref[128];
        snprintf(ref, sizeof(ref), "#/components/%s/%s", kind, name);
        json_object_begin(w);
        json_member_string(w, "$ref", ref);
        json_object_end(w);
}

static void put_parameter(struct json_writer *w, const char *name, const char *in, const char *schema,
                          const char *words) {
        json_object_begin(w);
        json_member_string(w, "name", name);
        json_member_string(w, "in", in);
        json_member_bool(w, "required", strcmp(in, "path") == 0);
        json_member_string(w, "description", words);
        json_member_raw(w, "schema", schema);
        json_object_end(w);
}

static void put_parameters(struct json_writer *w, const struct route *route) {
        json_member_array(w, "parameters");
        if (strstr(route->pattern, "{id}"))
                put_parameter(w, "id", "path", "{\"type\": \"integer\", \"minimum\": 1}", "Its id.");
        if (strstr(route->pattern, "{name}"))
                put_parameter(w, "name", "path", "{\"$ref\": \"#/components/schemas/BaselineName\"}", "Its name.");
        if (strstr(route->pattern, "{path}"))
                put_parameter(w, "path", "path",
                              "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$\"}",
                              "Its path; may contain slashes.");
        for (const struct parameter *i = route->parameters; i && i->name; i++)
                put_parameter(w, i->name, "query", i->schema, i->description);
        if (route->keyed)
                put_parameter(
                        w, "Idempotency-Key", "header", "{\"type\": \"string\", \"pattern\": \"^[!-~]{1,200}$\"}",
                        "A key of the client's own: the same request sent again with it is not carried out a second "
                        "time; it is "
                        "answered with the experiment, and Idempotency-Replayed: true. Another request with it is "
                        "refused with 422.");
        if (route->media && strcmp(route->media->type, "text/event-stream") == 0)
                put_parameter(w, "Last-Event-ID", "header",
                              "{\"type\": \"string\", \"pattern\": \"^(0|[1-9][0-9]{0,17})$\"}",
                              "Go on after this event.");
        json_array_end(w);
}

static void put_media(struct json_writer *w, const struct media *media) {
        for (; media && media->type; media++) {
                json_member_object(w, media->type);
                json_put_key(w, "schema");
                if (media->schema)
                        put_ref(w, "schemas", media->schema);
                else
                        json_put_raw(w, "{\"type\": \"string\"}");
                json_object_end(w);
        }
}

static void put_content(struct json_writer *w, const struct media *media) {
        json_member_object(w, "content");
        put_media(w, media);
        json_object_end(w);
}

static void put_problem(struct json_writer *w, const char *status) {
        json_put_key(w, status);
        put_ref(w, "responses", strcmp(status, "503") == 0 ? "Unavailable" : "Problem");
}

/* Bad news in the shape of the good: /health. */
static void put_also(struct json_writer *w, const struct route *route) {
        static const struct media problem[] = {{"application/problem+json", "Problem"}, {0}};
        char status[8];
        snprintf(status, sizeof(status), "%d", route->also);
        json_member_object(w, status);
        json_member_string(w, "description", "The same body, which has the reason; or why there is none.");
        json_member_object(w, "content");
        put_media(w, route->media);
        put_media(w, problem);
        json_object_end(w);
        json_object_end(w);
}

static void put_responses(struct json_writer *w, const struct route *route) {
        char status[8];
        snprintf(status, sizeof(status), "%d", route->status);
        json_member_object(w, "responses");
        json_member_object(w, status);
        json_member_string(w, "description", route->summary);
        if (route->status == 201)
                json_member_raw(w, "headers",
                                "{\"Location\": {\"description\": \"Path of the experiment.\", \"schema\": {\"type\": "
                                "\"string\"}}}");
        if (route->media)
                put_content(w, route->media);
        json_object_end(w);
        if (route->method == METHOD_GET) {
                json_put_key(w, "304");
                put_ref(w, "responses", "Unchanged");
        }
        if (route->other) {
                snprintf(status, sizeof(status), "%d", route->other_status);
                json_member_object(w, status);
                json_member_string(w, "description", route->other);
                put_content(w, route->other_media);
                json_object_end(w);
        }
        if (route->also)
                put_also(w, route);
        for (const char *i = route->problems; i && *i;) {
                size_t n = strcspn(i, " ");
                snprintf(status, sizeof(status), "%.*s", (int) n, i);
                put_problem(w, status);
                i += n;
                i += strspn(i, " ");
        }
        put_problem(w, "default");
        json_object_end(w);
}

static void put_operation(struct json_writer *w, const struct route *route) {
        char method[8];
        size_t n = 0;
        for (const char *i = method_name(route->method); *i && n + 1 < sizeof(method); i++)
                method[n++] = (char) (*i - 'A' + 'a');
        method[n] = '\0';
        json_member_object(w, method);
        json_member_string(w, "operationId", route->operation);
        json_member_string(w, "summary", route->summary);
        put_parameters(w, route);
        if (route->body >= BODY_JSON) {
                const struct media body[] = {
                        {route->body == BODY_GZIP ? "application/gzip" : "application/json", route->body_schema}, {0}};
                json_member_object(w, "requestBody");
                json_member_bool(w, "required", true);
                put_content(w, body);
                json_object_end(w);
        }
        if (route->writes)
                json_member_raw(w, "security", "[{\"token\": []}]");
        put_responses(w, route);
        json_object_end(w);
}

static bool seen_before(size_t row) {
        for (size_t i = 0; i < row; i++)
                if (strcmp(routes[i].pattern, routes[row].pattern) == 0)
                        return true;
        return false;
}

static void put_paths(struct json_writer *w) {
        json_member_object(w, "paths");
        for (size_t i = 0; i < n_routes; i++) {
                if (seen_before(i))
                        continue;
                json_member_object(w, routes[i].pattern);
                for (size_t j = i; j < n_routes; j++)
                        if (strcmp(routes[i].pattern, routes[j].pattern) == 0)
                                put_operation(w, &routes[j]);
                json_object_end(w);
        }
        json_object_end(w);
}

/* Takes a schema of the spec, whose "#/$defs/…" stand in another document here, and frees it. */
static int relocate(char *schema, char **ret) {
        static const char from[] = "\"#/$defs/", to[] = "\"#/components/schemas/ExperimentSpec/$defs/";
        struct text t = {0};
        const char *rest = schema;
        for (const char *at; (at = strstr(rest, from)); rest = at + sizeof(from) - 1) {
                text_append(&t, rest, (size_t) (at - rest));
                text_puts(&t, to);
        }
        text_puts(&t, rest);
        free(schema);
        if (t.error < 0) {
                int k = t.error;
                text_deinit(&t);
                return k;
        }
        *ret = t.data;
        return 0;
}

/* The members of a JSON object, but for those that only a document of its own has. */
static int put_members(struct json_writer *w, const char *text) {
        _cleanup_(json_freep) struct json *root = NULL;
        int k = json_parse_stored(text, &root);
        if (k < 0)
                return k;
        for (const struct json *i = json_first(root); i; i = json_next(i)) {
                const char *key = json_key(i);
                if (strcmp(key, "$schema") == 0 || strcmp(key, "$id") == 0)
                        continue;
                _cleanup_free_ char *value = json_print(i);
                if (!value)
                        return -ENOMEM;
                json_member_raw(w, key, value);
        }
        return 0;
}

/* A component that is made of the tables of the spec. */
static int put_made(struct json_writer *w, const char *name, int (*make)(char **)) {
        _cleanup_free_ char *relocated = NULL;
        char *schema;
        int k = make(&schema);
        if (k == 0)
                k = relocate(schema, &relocated);
        if (k < 0)
                return k;
        json_member_object(w, name);
        k = put_members(w, relocated);
        json_object_end(w);
        return k;
}

static void put_titles(struct json_writer *w, const char *title, const char *unit, const char *words) {
        json_member_string(w, "title", title);
        if (unit)
                json_member_string(w, "x-unit", unit);
        if (words)
                json_member_string(w, "description", words);
}

/* The figure's name in a row, within its group's object or with the group's prefix. */
static void figure_member(enum figure f, char *ret, size_t size) {
        if (figure_groups[figure_terms[f].group].in_row)
                (void) snprintf(ret, size, "%s", figure_terms[f].name);
        else
                figure_name(f, ret, size);
}

static void put_figure(struct json_writer *w, enum figure f) {
        const struct figure_term *term = &figure_terms[f];
        char name[64];
        figure_member(f, name, sizeof(name));
        json_member_object(w, name);
        put_titles(w, term->title, term->unit, term->description);
        json_member_bool(w, "x-usual", term->usual);
        words_put_some(w, "x-workloads", &workload_words, term->workloads);
        json_member_raw(w, "anyOf", "[{\"$ref\": \"#/components/schemas/Statistic\"}, {\"type\": \"null\"}]");
        json_object_end(w);
}

static void put_group(struct json_writer *w, enum figure_group group) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group)
                        put_figure(w, f);
}

static void put_names(struct json_writer *w, enum figure_group group) {
        char name[64];
        for (enum figure f = 0; f < FIGURE_COUNT; f++) {
                if (figure_terms[f].group != group)
                        continue;
                figure_member(f, name, sizeof(name));
                json_put_string(w, name);
        }
}

/* The object that a row has for a group, or null. */
static void put_group_object(struct json_writer *w, enum figure_group group) {
        const struct figure_group_term *term = &figure_groups[group];
        json_member_object(w, term->in_row);
        put_titles(w, term->title, NULL, term->description);
        json_member_raw(w, "type", "[\"object\", \"null\"]");
        json_member_object(w, "properties");
        json_member_object(w, "kind");
        json_member_array(w, "enum");
        for (const char *const *kind = term->kinds; *kind; kind++)
                json_put_string(w, *kind);
        json_array_end(w);
        json_object_end(w);
        put_group(w, group);
        json_object_end(w);
        json_member_array(w, "required");
        json_put_string(w, "kind");
        put_names(w, group);
        json_array_end(w);
        json_member_bool(w, "additionalProperties", false);
        json_object_end(w);
}

/* The figures of a row of results, in the order of their table: each with its title and its unit. */
static void put_figures(struct json_writer *w) {
        json_member_object(w, "ResultFigures");
        json_member_string(
                w, "description",
                "The figures of a point, each a statistic over its runs. x-unit: what its numbers count; "
                "x-usual: whether the CSV has it without columns=all; x-workloads: the only ones that can have "
                "it.");
        json_member_string(w, "type", "object");
        json_member_object(w, "properties");
        for (enum figure_group group = 0; group < FIGURES_GROUPS; group++)
                if (figure_groups[group].in_row)
                        put_group_object(w, group);
                else
                        put_group(w, group);
        json_object_end(w);
        json_member_array(w, "required");
        for (enum figure_group group = 0; group < FIGURES_GROUPS; group++)
                if (figure_groups[group].in_row)
                        json_put_string(w, figure_groups[group].in_row);
                else
                        put_names(w, group);
        json_array_end(w);
        json_object_end(w);
}

/* What is known of a host before it does anything, each null for a reason. */
static void put_facts(struct json_writer *w) {
        json_member_object(w, "HostFacts");
        json_member_string(w, "type", "object");
        json_member_object(w, "properties");
        for (enum fact_name i = 0; i < FACT_COUNT; i++) {
                const struct fact_row *row = &fact_rows[i];
                json_member_object(w, row->name);
                if (row->description)
                        json_member_string(w, "description", row->description);
                json_member_raw(w, "type",
                                row->form == FACT_NUMBER ? "[\"integer\", \"null\"]" : "[\"string\", \"null\"]");
                json_object_end(w);
        }
        json_object_end(w);
        json_member_array(w, "required");
        for (enum fact_name i = 0; i < FACT_COUNT; i++)
                json_put_string(w, fact_rows[i].name);
        json_array_end(w);
        json_object_end(w);
}

static int put_components(struct json_writer *w) {
        json_member_object(w, "components");
        json_member_object(w, "schemas");
        int k = put_members(w, openapi_components_json);
        if (k == 0)
                k = put_made(w, "Point", point_schema);
        if (k == 0)
                k = put_made(w, "ExperimentSpec", spec_schema);
        if (k < 0)
                return k;
        json_member_object(w, "AxisName");
        axes_put_enum(w);
        json_object_end(w);
        put_figures(w);
        put_facts(w);
        json_object_end(w);
        json_member_raw(
                w, "responses",
                "{\"Unchanged\": {\"description\": \"If-None-Match has the ETag of what would be sent, which the "
                "client "
                "has already. A stream of what may still change has none.\"}, "
                "\"Problem\": {\"description\": \"Why not (RFC 9457).\", \"content\": {\"application/problem+json\": "
                "{\"schema\": {\"$ref\": \"#/components/schemas/Problem\"}}}}, "
                "\"Unavailable\": {\"description\": \"Not now: so much is on its way to other clients, or is waited "
                "for, that this is refused; or the daemon is stopping.\", \"headers\": {\"Retry-After\": "
                "{\"description\": \"Seconds.\", \"schema\": {\"type\": \"integer\"}}}, \"content\": "
                "{\"application/problem+json\": {\"schema\": {\"$ref\": \"#/components/schemas/Problem\"}}}}}");
        json_member_raw(
                w, "securitySchemes",
                "{\"token\": {\"type\": \"http\", \"scheme\": \"bearer\", \"description\": \"The token of the daemon's "
                "token file; over TCP only.\"}}");
        json_object_end(w);
        return 0;
}

int openapi_make(char **ret, size_t *ret_length) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        json_member_string(&w, "openapi", "3.1.0");
        json_member_object(&w, "info");
        json_member_string(&w, "title", "ipclab");
        json_member_string(&w, "version", IPCLAB_VERSION);
        json_member_string(&w, "description", description);
        json_member_raw(&w, "license", "{\"name\": \"MIT\", \"identifier\": \"MIT\"}");
        json_object_end(&w);
        json_member_raw(&w, "servers", "[{\"url\": \"/\"}]");
        put_paths(&w);
        int k = put_components(&w);
        if (k < 0)
                return k;
        json_object_end(&w);
        return json_writer_steal(&w, ret, ret_length);
}
