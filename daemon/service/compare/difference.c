/* SPDX-License-Identifier: MIT */

#include "daemon/service/compare/difference.h"

#include "daemon/result/figure.h"
#include "schema/facts.h"
#include "schema/json/json.h"
#include "schema/spec/axes.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Members of an environment that differ from reading to reading. */
static const char *const passing[] = {
        "uptime_seconds", "load", "memory_available_bytes", "memory_free_bytes", "cpus", "nodes", "vmstat", "reasons",
};
#define ITEM(name) name,
/* Members of a spec, beside its axes, that are not compared. */
static const char *const incidental[] = {SPEC_INCIDENTAL(ITEM)};
#undef ITEM

static bool is_one_of(const char *name, const char *const *names, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(name, names[i]) == 0)
                        return true;
        return false;
}

/* Whether a difference in this member of an environment makes figures incomparable: the fact's own row has it so, it is
 * a mitigation, or a CPU came or went. */
static bool matters(const char *prefix, const char *key) {
        for (enum fact_name i = 0; i < FACT_COUNT; i++)
                if (strcmp(fact_rows[i].name, key) == 0)
                        return fact_rows[i].comparable;
        return strcmp(prefix, "mitigations") == 0 || is_one_of(key, passing, ELEMENTS(passing));
}

void difference_list_deinit(struct difference_list *list) {
        for (size_t i = 0; i < list->n; i++) {
                free(list->items[i].key);
                for (size_t side = 0; side < SIDE_COUNT; side++)
                        free(list->items[i].values[side]);
        }
        free(list->items);
        *list = (struct difference_list){0};
}

/* Takes the values over. */
static int append(struct difference_list *list, const char *prefix, const char *key, char *values[SIDE_COUNT],
                  bool unlike) {
        struct difference d = {.unlike = unlike};
        if (asprintf(&d.key, "%s%s%s", prefix, *prefix ? "." : "", key) < 0)
                return -ENOMEM;
        if (!util_resize(list->items, list->n + 1)) {
                free(d.key);
                return -ENOMEM;
        }
        for (size_t side = 0; side < SIDE_COUNT; side++)
                d.values[side] = util_steal(&values[side]);
        list->items[list->n++] = d;
        return 0;
}

static int compare_values(const char *prefix, const char *key, const struct json *a, const struct json *b,
                          struct difference_list *list) {
        const struct json *const sides[SIDE_COUNT] = {a, b};
        char *texts[SIDE_COUNT] = {NULL};
        bool known = true;
        int r = 0;
        for (size_t side = 0; r == 0 && side < SIDE_COUNT; side++) {
                known = known && sides[side] && json_type(sides[side]) != JSON_NULL;
                texts[side] = sides[side] ? json_print(sides[side]) : NULL;
                if (sides[side] && !texts[side])
                        r = -ENOMEM;
        }
        bool same = a && b && r == 0 && strcmp(texts[SIDE_BASELINE], texts[SIDE_CANDIDATE]) == 0;
        if (r == 0 && !same)
                r = append(list, prefix, key, texts, known && matters(prefix, key));
        free(texts[SIDE_BASELINE]);
        free(texts[SIDE_CANDIDATE]);
        return r;
}

/* The members of one side after the other; those of both once. */
static int compare_members(const char *prefix, const struct json *a, const struct json *b, const char *const *skip,
                           size_t n_skip, struct difference_list *list) {
        int r = 0;
        for (const struct json *i = json_first(a); r == 0 && i; i = json_next(i)) {
                const struct json *other = json_get(b, json_key(i));
                if (is_one_of(json_key(i), skip, n_skip))
                        continue;
                if (other && json_type(i) == JSON_OBJECT && json_type(other) == JSON_OBJECT && !*prefix)
                        r = compare_members(json_key(i), i, other, NULL, 0, list);
                else
                        r = compare_values(prefix, json_key(i), i, other, list);
        }
        for (const struct json *i = json_first(b); r == 0 && i; i = json_next(i))
                if (!json_get(a, json_key(i)) && !is_one_of(json_key(i), skip, n_skip))
                        r = compare_values(prefix, json_key(i), NULL, i, list);
        return r;
}

static int parse_object(const char *text, struct json **ret) {
        int r = json_parse_stored(text, ret);
        return r == 0 && json_type(*ret) != JSON_OBJECT ? -EBADMSG : r; /* the caller frees it */
}

/* A build's version is compared apart, and two builds of one are alike until their figures show that they are not. */
static int difference_builds(const struct json *a, const struct json *b, struct difference_list *list) {
        int r = 0;
        if (!a || !b || json_type(a) != JSON_OBJECT || json_type(b) != JSON_OBJECT)
                return 0;
        size_t first = list->n;
        for (enum build_fact i = 0; r == 0 && i < BUILD_COUNT; i++) {
                const char *name = build_rows[i].name;
                const struct json *x = json_get(a, name), *y = json_get(b, name);
                r = i != BUILD_VERSION && (x || y) ? compare_values("build", name, x, y, list) : 0;
        }
        for (size_t i = first; i < list->n; i++)
                list->items[i].unlike = false;
        return r;
}

int difference_environments(const char *baseline, const char *candidate, struct difference_list *list) {
        _cleanup_(json_freep) struct json *a = NULL, *b = NULL;
        if (!baseline || !candidate)
                return 0;
        int r = parse_object(baseline, &a);
        if (r == 0)
                r = parse_object(candidate, &b);
        if (r < 0)
                return r;
        r = difference_builds(json_get(a, "build"), json_get(b, "build"), list);
        if (r < 0)
                return r;
        const struct json *before = json_get(a, "before"), *other = json_get(b, "before");
        if (!before || !other || json_type(before) != JSON_OBJECT || json_type(other) != JSON_OBJECT)
                return 0;
        return compare_members("", before, other, passing, ELEMENTS(passing), list);
}

bool difference_listed(const struct difference_list *list, const char *key) {
        size_t n = strlen(key);
        for (size_t i = 0; i < list->n; i++)
                if (strncmp(list->items[i].key, key, n) == 0 && strchr(".", list->items[i].key[n]))
                        return true;
        return false;
}

/* Appends a fact that was another at a moment for which there is no value. */
static int append_passing_change(const char *key, const struct json *usual, struct difference_list *list) {
        char *values[SIDE_COUNT] = {[SIDE_BASELINE] = usual ? json_print(usual) : NULL};
        if (usual && !values[SIDE_BASELINE])
                return -ENOMEM;
        int r = append(list, "", key, values, matters("", key));
        free(values[SIDE_BASELINE]);
        return r;
}

int difference_flagged(const char *key, const char *first, const char *run, struct difference_list *list) {
        static const char *const sittings[] = {"before", "after"};
        _cleanup_(json_freep) struct json *a = NULL, *b = NULL;
        int r = parse_object(first, &a);
        if (r == 0)
                r = parse_object(run, &b);
        if (r < 0)
                return r;
        if (strcmp(key, "build") == 0)
                return difference_builds(json_get(a, "build"), json_get(b, "build"), list);
        if (is_one_of(key, passing, ELEMENTS(passing))) /* its values are of a moment: a CPU came or went */
                return append_passing_change(key, NULL, list);
        const struct json *usual = json_get(json_get(a, "before"), key);
        size_t n = list->n;
        for (size_t i = 0; r == 0 && list->n == n && i < ELEMENTS(sittings); i++) {
                const struct json *snapshot = json_get(b, sittings[i]), *value = json_get(snapshot, key);
                if (!usual || !value)
                        continue;
                if (json_type(usual) == JSON_OBJECT && json_type(value) == JSON_OBJECT)
                        r = compare_members(key, usual, value, NULL, 0, list);
                else
                        r = compare_values("", key, usual, value, list);
        }
        return r < 0 || list->n > n ? r : append_passing_change(key, usual, list);
}

int difference_specs(const char *baseline, const char *candidate, struct difference_list *list) {
        _cleanup_(json_freep) struct json *a = NULL, *b = NULL;
        const char *skip[ELEMENTS(incidental) + AXIS_COUNT];
        for (size_t i = 0; i < ELEMENTS(incidental); i++)
                skip[i] = incidental[i];
        for (size_t i = 0; i < AXIS_COUNT; i++)
                skip[ELEMENTS(incidental) + i] = axes[i].value.name;
        int r = parse_object(baseline, &a);
        if (r == 0)
                r = parse_object(candidate, &b);
        size_t first = list->n;
        if (r == 0)
                r = compare_members("", a, b, skip, ELEMENTS(skip), list);
        for (size_t i = first; i < list->n; i++)
                list->items[i].unlike = false;
        return r;
}

int difference_texts(const char *key, const char *baseline, const char *candidate, bool unlike,
                     struct difference_list *list) {
        const char *const texts[SIDE_COUNT] = {baseline, candidate};
        char *values[SIDE_COUNT] = {NULL};
        int r = 0;
        if (strcmp(baseline, candidate) == 0)
                return 0;
        for (size_t side = 0; r == 0 && side < SIDE_COUNT; side++) {
                _cleanup_(json_writer_deinit) struct json_writer w = {};
                json_put_string(&w, texts[side]);
                r = json_writer_steal(&w, &values[side], NULL);
        }
        if (r == 0)
                r = append(list, "", key, values, unlike);
        free(values[SIDE_BASELINE]);
        free(values[SIDE_CANDIDATE]);
        return r;
}
