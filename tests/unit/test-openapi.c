/* SPDX-License-Identifier: MIT */

/* The description against the route table: every row stands in it, every reference leads somewhere. tests/api holds
 * real answers against its schemas. */

#include "api/handle/route/routes.h"
#include "api/openapi/openapi.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static struct json *root;

static const char *string_of(const struct json *object, const char *key) {
        const char *text = NULL;
        const struct json *v = object ? json_get(object, key) : NULL;
        return v && json_as_string(v, &text) == 0 ? text : NULL;
}

/* Down the members named; NULL where there is none. */
static const struct json *down(const struct json *from, const char *const *keys) {
        for (; from && *keys; keys++)
                from = json_type(from) == JSON_OBJECT ? json_get(from, *keys) : NULL;
        return from;
}
#define DOWN(from, ...) down(from, (const char *const[]){__VA_ARGS__, NULL})

static const struct json *operation_of(const struct route *r) {
        char method[8] = "";
        for (size_t i = 0; method_name(r->method)[i] && i + 1 < sizeof method; i++)
                method[i] = (char) (method_name(r->method)[i] | 0x20);
        return DOWN(root, "paths", r->pattern, method);
}

static void it_is_one_document(void) {
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        CHECK_INT(openapi_make(&text, &length), 0);
        CHECK_UINT(length, strlen(text));
        CHECK_INT(json_parse(text, length, &root, NULL), 0);
        CHECK_STRING(string_of(root, "openapi"), "3.1.0");
        CHECK_STRING(string_of(json_get(root, "info"), "version"), IPCLAB_VERSION);
}

static void every_row_is_an_operation(void) {
        size_t n = 0;
        for (const struct json *p = json_first(json_get(root, "paths")); p; p = json_next(p))
                n += json_length(p);
        CHECK_UINT(n, n_routes);
        for (size_t i = 0; i < n_routes; i++) {
                const struct json *operation = operation_of(&routes[i]);
                if (!operation || strcmp(string_of(operation, "operationId"), routes[i].operation) != 0)
                        CHECK_FAIL("%s is not there", routes[i].operation);
                CHECK(!json_get(operation, "security") == !routes[i].writes);
                CHECK(!json_get(operation, "requestBody") == (routes[i].body < BODY_JSON));
        }
}

/* The answer on success, the problems that each row names, and the default. */
static void answers_are_documented(void) {
        for (size_t i = 0; i < n_routes; i++) {
                const struct json *responses = DOWN(operation_of(&routes[i]), "responses");
                char status[8];
                size_t n = 2;
                (void) snprintf(status, sizeof status, "%d", routes[i].status);
                const struct json *good = DOWN(responses, status);
                CHECK(good && string_of(good, "description"));
                for (const struct media *m = routes[i].media; m && m->type; m++)
                        if (!DOWN(good, "content", m->type, "schema"))
                                CHECK_FAIL("%s has no response of %s", routes[i].operation, m->type);
                if (routes[i].also) {
                        (void) snprintf(status, sizeof status, "%d", routes[i].also);
                        const struct json *content = DOWN(responses, status, "content");
                        for (const struct media *m = routes[i].media; m && m->type; m++)
                                CHECK(DOWN(content, m->type, "schema"));
                        CHECK(DOWN(content, "application/problem+json", "schema"));
                        n++;
                }
                if (routes[i].method == METHOD_GET) {
                        CHECK_STRING(string_of(DOWN(responses, "304"), "$ref"), "#/components/responses/Unchanged");
                        n++;
                }
                if (routes[i].other) {
                        (void) snprintf(status, sizeof status, "%d", routes[i].other_status);
                        CHECK_STRING(string_of(DOWN(responses, status), "description"), routes[i].other);
                        for (const struct media *m = routes[i].other_media; m->type; m++)
                                CHECK(DOWN(responses, status, "content", m->type, "schema"));
                        n++;
                }
                CHECK(routes[i].status != 201 || DOWN(good, "headers", "Location"));
                for (const char *p = routes[i].problems; p && *p; p += p[3] ? 4 : 3, n++) {
                        (void) snprintf(status, sizeof status, "%.3s", p);
                        CHECK_STRING(string_of(DOWN(responses, status), "$ref"),
                                     strcmp(status, "503") == 0 ? "#/components/responses/Unavailable"
                                                                : "#/components/responses/Problem");
                }
                CHECK(DOWN(responses, "default"));
                CHECK(!routes[i].also == (strcmp(routes[i].operation, "getHealth") != 0));
                CHECK_UINT(json_length(responses), n);
        }
}

static const struct json *parameter_of(const struct json *operation, const char *name) {
        for (const struct json *p = json_first(json_get(operation, "parameters")); p; p = json_next(p))
                if (string_of(p, "name") && strcmp(string_of(p, "name"), name) == 0)
                        return p;
        return NULL;
}

static void parameters_are_documented(void) {
        for (size_t i = 0; i < n_routes; i++) {
                const struct json *operation = operation_of(&routes[i]), *p;
                size_t n = 0;
                bool required = false;
                for (const struct parameter *k = routes[i].parameters; k && k->name; k++, n++) {
                        p = parameter_of(operation, k->name);
                        CHECK(p && strcmp(string_of(p, "in"), "query") == 0 && json_get(p, "schema"));
                }
                static const char *const in_path[] = {"id", "name", "path"};
                for (size_t k = 0; k < ELEMENTS(in_path); k++) {
                        char braced[16];
                        (void) snprintf(braced, sizeof braced, "{%s}", in_path[k]);
                        p = parameter_of(operation, in_path[k]);
                        CHECK(!p == !strstr(routes[i].pattern, braced));
                        n += p != NULL;
                        CHECK(!p || (json_as_bool(json_get(p, "required"), &required) == 0 && required));
                }
                p = parameter_of(operation, "Idempotency-Key");
                CHECK(!p == !routes[i].keyed);
                n += p != NULL;
                p = parameter_of(operation, "Last-Event-ID");
                CHECK(!p == (!routes[i].media || strcmp(routes[i].media->type, "text/event-stream") != 0));
                n += p != NULL;
                CHECK_UINT(json_length(json_get(operation, "parameters")), n);
        }
}

/* A member of an object or an element of a list, by one word of a pointer. */
static const struct json *step(const struct json *from, const char *word, size_t length) {
        char key[128];
        (void) snprintf(key, sizeof key, "%.*s", (int) length, word);
        return json_type(from) == JSON_OBJECT ? json_get(from, key) : NULL;
}

static bool leads_somewhere(const char *ref) {
        const struct json *at = root;
        if (strncmp(ref, "#/", 2) != 0)
                return false;
        for (const char *word = ref + 2; at && *word;) {
                size_t n = strcspn(word, "/");
                at = step(at, word, n);
                word += n + (word[n] == '/');
        }
        return at != NULL;
}

static const char *dangling(const struct json *v, unsigned *count) {
        if (json_type(v) != JSON_OBJECT && json_type(v) != JSON_ARRAY)
                return NULL;
        for (const struct json *i = json_first(v); i; i = json_next(i)) {
                const char *ref = NULL;
                if (json_type(v) == JSON_OBJECT && strcmp(json_key(i), "$ref") == 0 && json_as_string(i, &ref) == 0) {
                        (*count)++;
                        if (!leads_somewhere(ref))
                                return ref;
                }
                const char *below = dangling(i, count);
                if (below)
                        return below;
        }
        return NULL;
}

static void every_reference_leads_somewhere(void) {
        unsigned count = 0;
        const char *ref = dangling(root, &count);
        if (ref)
                CHECK_FAIL("%s leads nowhere", ref);
        CHECK(count > n_routes);
}

/* What a run has per message, byte or second, its row has a statistic of. */
static void rows_have_the_figures_of_runs(void) {
        const struct json *figures = DOWN(root, "components", "schemas", "ResultFigures", "properties");
        const struct json *members = DOWN(root, "components", "schemas", "RunResult", "properties");
        size_t n = 0;
        for (const struct json *m = json_first(members); m; m = json_next(m)) {
                const char *per = strstr(json_key(m), "_per_"), *reason = strstr(json_key(m), "_reason");
                if (!per || reason)
                        continue;
                n++;
                const struct json *figure = json_get(figures, json_key(m));
                if (!figure || !string_of(figure, "title") || !string_of(figure, "x-unit"))
                        CHECK_FAIL("a row has no %s", json_key(m));
        }
        CHECK(n > 10);
}

/* The experiment's schema is a component like others: without what only a document of its own has. */
static void the_specs_schema_is_a_component(void) {
        const struct json *spec = DOWN(root, "components", "schemas", "ExperimentSpec");
        CHECK(spec && json_get(spec, "properties") && json_get(spec, "$defs"));
        CHECK(!json_get(spec, "$schema") && !json_get(spec, "$id"));
        CHECK_STRING(string_of(DOWN(root, "paths", "/experiments", "post", "requestBody", "content", "application/json",
                                    "schema"),
                               "$ref"),
                     "#/components/schemas/ExperimentSpec");
}

int main(void) {
        RUN(it_is_one_document);
        if (!root)
                return check_end();
        RUN(every_row_is_an_operation);
        RUN(answers_are_documented);
        RUN(parameters_are_documented);
        RUN(every_reference_leads_somewhere);
        RUN(rows_have_the_figures_of_runs);
        RUN(the_specs_schema_is_a_component);
        json_free(root);
        return check_end();
}
