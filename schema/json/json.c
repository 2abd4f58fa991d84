/* SPDX-License-Identifier: MIT */

/*
 * Reading JSON: cJSON makes the tree, check.c refuses what cJSON accepts and JSON does not. The only file that knows
 * cJSON; `struct json` is its node. Called by every room that reads JSON.
 */

#include "schema/json/json.h"

#include "schema/json/check.h"
#include "schema/util.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static const cJSON *node(const struct json *v) {
        return (const cJSON *) (const void *) v;
}

static const struct json *value(const cJSON *n) {
        return (const struct json *) (const void *) n;
}

/* cJSON gives the same NULL for a text that is no JSON and for want of memory. */
static _Thread_local bool memory_ran_out;

static void *allocate(size_t size) {
        void *p = malloc(size);
        memory_ran_out |= !p;
        return p;
}

__attribute__((constructor)) static void set_hooks(void) {
        cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
}

/* cJSON stops behind the value. */
static int check_end(const char *text, size_t length, size_t at, struct json_error *e) {
        while (at < length && text[at] && strchr(" \t\n\r", text[at]))
                at++;
        if (at == length)
                return 0;
        e->pointer[0] = '\0';
        (void) snprintf(e->detail, sizeof(e->detail), "there is more after the value's end, from byte %zu on", at);
        return -EINVAL;
}

int json_parse(const char *text, size_t length, struct json **ret, struct json_error *ret_error) {
        struct json_error e = {.pointer = ""};
        const char *end = text;
        size_t at, stop;
        int r = json_check_text(text, length, &at, &e);

        memory_ran_out = false;
        cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);
        stop = (size_t) (end - text);
        if (!root && memory_ran_out)
                r = -ENOMEM;
        else if (!root && (r == 0 || stop + 1 < at)) /* the earlier of two faults */
                r = json_check_stopped(text, length, stop, &e);
        else if (root && stop < at)
                r = check_end(text, length, stop, &e);
        if (r == 0)
                r = json_check_keys(value(root), &e);
        if (r < 0) {
                cJSON_Delete(root);
                if (r == -EINVAL && ret_error)
                        *ret_error = e;
                return r;
        }
        *ret = (struct json *) (void *) root;
        return 0;
}

int json_parse_written(const char *text, size_t length, struct json **ret) {
        const char *end;
        memory_ran_out = false;
        cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);
        if (!root)
                return memory_ran_out ? -ENOMEM : -EBADMSG;
        *ret = (struct json *) (void *) root;
        return 0;
}

void json_free(struct json *root) {
        cJSON_Delete((cJSON *) (void *) root);
}

enum json_type json_type(const struct json *v) {
        const cJSON *n = node(v);
        if (cJSON_IsObject(n))
                return JSON_OBJECT;
        if (cJSON_IsArray(n))
                return JSON_ARRAY;
        if (cJSON_IsString(n))
                return JSON_STRING;
        if (cJSON_IsBool(n))
                return JSON_BOOL;
        if (cJSON_IsNumber(n)) /* 4096.0 is an integer, as in JSON Schema */
                return fabs(n->valuedouble) <= (double) JSON_INTEGER_MAX && trunc(n->valuedouble) == n->valuedouble
                               ? JSON_INTEGER
                               : JSON_REAL;
        return JSON_NULL;
}

const struct json *json_get(const struct json *object, const char *key) {
        return cJSON_IsObject(node(object)) ? value(cJSON_GetObjectItemCaseSensitive(node(object), key)) : NULL;
}

const struct json *json_first(const struct json *container) {
        return value(node(container)->child);
}

const struct json *json_next(const struct json *child) {
        return value(node(child)->next);
}

const char *json_key(const struct json *child) {
        return node(child)->string;
}

size_t json_length(const struct json *container) {
        size_t n = 0;
        for (const struct json *c = json_first(container); c; c = json_next(c))
                n++;
        return n;
}

int json_as_string(const struct json *v, const char **ret) {
        if (!v || !cJSON_IsString(node(v)))
                return -EINVAL;
        *ret = node(v)->valuestring;
        return 0;
}

int json_as_bool(const struct json *v, bool *ret) {
        if (!v || !cJSON_IsBool(node(v)))
                return -EINVAL;
        *ret = cJSON_IsTrue(node(v));
        return 0;
}

int json_as_i64(const struct json *v, int64_t *ret) {
        if (!v || !cJSON_IsNumber(node(v)))
                return -EINVAL;
        if (json_type(v) != JSON_INTEGER)
                return trunc(node(v)->valuedouble) == node(v)->valuedouble ? -ERANGE : -EINVAL;
        *ret = (int64_t) node(v)->valuedouble;
        return 0;
}

int json_as_double(const struct json *v, double *ret) {
        if (!v || !cJSON_IsNumber(node(v)))
                return -EINVAL;
        *ret = node(v)->valuedouble;
        return 0;
}

int json_as_u64_text(const struct json *v, uint64_t *ret) {
        const char *s;
        if (json_as_string(v, &s) < 0)
                return -EINVAL;

        /* one form per number: no sign, no space, no leading zero */
        size_t n = strspn(s, "0123456789");
        if (n == 0 || s[n] != '\0' || (s[0] == '0' && n > 1))
                return -EINVAL;
        errno = 0;
        unsigned long long parsed = strtoull(s, NULL, 10);
        if (errno == ERANGE)
                return -ERANGE;
        *ret = parsed;
        return 0;
}

/* Depth is bounded: the tree came through json_parse(). */
static void print(struct json_writer *w, const struct json *v) {
        switch (json_type(v)) {
        case JSON_NULL:
                return json_put_null(w);
        case JSON_BOOL:
                return json_put_bool(w, cJSON_IsTrue(node(v)));
        case JSON_INTEGER:
                return json_put_i64(w, (int64_t) node(v)->valuedouble);
        case JSON_REAL:
                return json_put_double(w, node(v)->valuedouble);
        case JSON_STRING:
                return json_put_string(w, node(v)->valuestring);
        case JSON_ARRAY:
                json_array_begin(w);
                for (const struct json *c = json_first(v); c; c = json_next(c))
                        print(w, c);
                return json_array_end(w);
        case JSON_OBJECT:
                json_object_begin(w);
                for (const struct json *c = json_first(v); c; c = json_next(c)) {
                        json_put_key(w, json_key(c));
                        print(w, c);
                }
                return json_object_end(w);
        }
}

char *json_print(const struct json *v) {
        struct json_writer w;
        char *text = NULL;
        size_t length;

        json_writer_init(&w);
        print(&w, v);
        (void) json_writer_steal(&w, &text, &length); /* NULL on failure, as promised */
        json_writer_deinit(&w);
        return text;
}
