/* SPDX-License-Identifier: MIT */

/*
 * Walks over JSON text without making a tree of it: a list of runs is read at each look at an experiment. Called by
 * render.c.
 */

#include "api/handle/shorten.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static const struct {
        const char *name;
        size_t most; /* elements */
} lists[] = {{"threads", SHORTEN_THREADS_MAX},
             {"threads_together", SHORTEN_THREADS_MAX},
             {"pages", 4 * SHORTEN_THREADS_MAX}};

static const char *skip_space(const char *p) {
        return p + strspn(p, " \t\r\n");
}

/* Behind the string that begins here; NULL for one that has no end. */
static const char *skip_string(const char *p) {
        for (p++; *p != '"'; p++)
                if (*p == '\0' || (*p == '\\' && *++p == '\0'))
                        return NULL;
        return p + 1;
}

/* Behind the value that begins here; NULL when there is none. */
static const char *skip_value(const char *p) {
        size_t depth = 0;
        if (!strchr("\"{[", *p)) {
                size_t n = strcspn(p, ",]} \t\r\n");
                return n > 0 ? p + n : NULL;
        }
        do {
                if (*p == '"') {
                        p = skip_string(p);
                        if (!p)
                                return NULL;
                        continue;
                }
                if (*p == '\0')
                        return NULL;
                depth += *p == '{' || *p == '[';
                depth -= *p == '}' || *p == ']';
                p++;
        } while (depth > 0);
        return p;
}

/* A member or an element of a container. */
struct item {
        const char *key; /* NULL in an array */
        size_t key_length;
        const char *value, *end;
};

/* The item at p; 0 when the container ends there; negative when it is none. *next is where to go on. */
static int next_item(const char *p, bool object, struct item *ret, const char **next) {
        p = skip_space(p);
        if (*p == ',')
                p = skip_space(p + 1);
        if (*p == (object ? '}' : ']'))
                return 0;
        struct item i = {.key = NULL};
        if (object) {
                const char *end = *p == '"' ? skip_string(p) : NULL;
                const char *colon = end ? skip_space(end) : NULL;
                if (!colon || *colon != ':')
                        return -EBADMSG;
                i.key = p;
                i.key_length = (size_t) (end - p);
                p = skip_space(colon + 1);
        }
        i.value = p;
        i.end = *p ? skip_value(p) : NULL;
        if (!i.end)
                return -EBADMSG;
        *ret = i;
        *next = i.end;
        return 1;
}

/* Elements of an array; of an object that has arrays, those of its longest. */
static size_t count(const char *value) {
        struct item i;
        size_t n = 0;
        bool object = *value == '{';
        if (!object && *value != '[')
                return 0;
        for (const char *p = value + 1; next_item(p, object, &i, &p) > 0;) {
                size_t inner = object && *i.value == '[' ? count(i.value) : 0;
                n = !object ? n + 1 : inner > n ? inner : n;
        }
        return n;
}

/* How many elements are left out of a member; 0: it stays. */
static size_t left_out(const struct item *i) {
        for (size_t k = 0; i->key && k < ELEMENTS(lists); k++)
                if (i->key_length == strlen(lists[k].name) + 2 &&
                    memcmp(i->key + 1, lists[k].name, i->key_length - 2) == 0) {
                        size_t n = count(i->value);
                        return n > lists[k].most ? n : 0;
                }
        return 0;
}

static void put_reason(struct text *t, const struct item *i, size_t n, int64_t run_id) {
        text_append(t, i->key, i->key_length);
        text_puts(t, ":null,");
        text_append(t, i->key, i->key_length - 1);
        text_printf(t, "_reason\":\"%zu of them, too many for a list: GET /runs/%" PRId64 " has them\"", n, run_id);
}

static void put_value(struct text *t, const char *value, const char *end, int64_t run_id, unsigned depth);

/* The depth is bounded by what json_parse() takes, but the text is only looked at here. */
static void put_container(struct text *t, const char *value, const char *end, int64_t run_id, unsigned depth) {
        struct item i;
        bool object = *value == '{', first = true;
        text_append(t, value, 1);
        for (const char *p = value + 1; p < end && next_item(p, object, &i, &p) > 0; first = false) {
                size_t n = left_out(&i);
                if (!first)
                        text_puts(t, ",");
                if (n > 0) {
                        put_reason(t, &i, n, run_id);
                        continue;
                }
                if (object) {
                        text_append(t, i.key, i.key_length);
                        text_puts(t, ":");
                }
                put_value(t, i.value, i.end, run_id, depth + 1);
        }
        text_puts(t, object ? "}" : "]");
}

static void put_value(struct text *t, const char *value, const char *end, int64_t run_id, unsigned depth) {
        if ((*value == '{' || *value == '[') && depth < JSON_DEPTH_MAX)
                put_container(t, value, end, run_id, depth);
        else
                text_append(t, value, (size_t) (end - value));
}

void shorten_put(struct text *t, const char *json, int64_t run_id) {
        const char *begin = skip_space(json), *end = *begin ? skip_value(begin) : NULL;
        if (end)
                put_value(t, begin, end, run_id, 0);
        else if (t->error == 0)
                t->error = -EBADMSG;
}
