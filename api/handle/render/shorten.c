/* SPDX-License-Identifier: MIT */

/*
 * Walks once over JSON text, without making a tree of it, since every request for an experiment reads its runs. Called
 * by render.c.
 */

#include "api/handle/render/shorten.h"

#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
        const char *name;
        size_t most; /* elements */
} lists[] = {{"threads", SHORTEN_THREADS_MAX},
             {"threads_together", SHORTEN_THREADS_MAX},
             {"pages", 4 * SHORTEN_THREADS_MAX},
             {"others", SHORTEN_THREADS_MAX}};

/* A member or an element of a container. */
struct item {
        const char *key; /* NULL in an array */
        size_t key_length;
        const char *value, *end;
};

/* The item at p; 0 when the container ends there; negative when it is none. *next is where to go on. */
static int next_item(const char *p, bool object, struct item *ret, const char **next) {
        p = json_skip_space(p);
        if (*p == ',')
                p = json_skip_space(p + 1);
        if (*p == (object ? '}' : ']'))
                return 0;
        struct item i = {.key = NULL};
        if (object) {
                const char *end, *value = json_skip_key(p, &end);
                if (!value)
                        return -EBADMSG;
                i.key = p;
                i.key_length = (size_t) (end - p);
                p = value;
        }
        i.value = p;
        i.end = *p ? json_skip_value(p) : NULL;
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

/* How far the walk over a text has come: `copied` is behind what was written of it. */
struct walk {
        const char *p, *copied;
        int64_t run_id;
};

/* At a string: only a key's value can be left out. 0, or -EBADMSG where one of them has no end. */
static int pass_string(struct walk *walk, struct text *t) {
        const char *begin = walk->p, *end;
        struct item i = {.key = begin, .value = json_skip_key(begin, &end)};
        walk->p = end;
        if (!i.value)
                return end ? 0 : -EBADMSG;
        i.key_length = (size_t) (end - begin);
        size_t n = left_out(&i);
        if (n == 0)
                return 0;
        walk->p = json_skip_value(i.value);
        if (!walk->p)
                return -EBADMSG;
        text_append(t, walk->copied, (size_t) (begin - walk->copied));
        put_reason(t, &i, n, walk->run_id);
        walk->copied = walk->p;
        return t->error;
}

/* A quote within a scalar is no JSON. */
static int check_scalar(const char *p) {
        const char *end = *p ? json_skip_value(p) : NULL;
        return end && (*p == '"' || !memchr(p, '"', (size_t) (end - p))) ? 0 : -EBADMSG;
}

bool shorten_may_apply(const char *point_json) {
        const char *threads;
        size_t length;
        return !point_json || !json_find_member(point_json, "threads", &threads, &length) ||
               strtoul(threads, NULL, 10) > SHORTEN_THREADS_MAX;
}

int shorten_put(struct text *t, const char *json, int64_t run_id) {
        struct walk walk = {.p = json_skip_space(json), .run_id = run_id};
        size_t depth = 0;
        walk.copied = walk.p;
        if (*walk.p != '{' && *walk.p != '[')
                return check_scalar(walk.p);
        do {
                walk.p = json_skip_plain(walk.p);
                if (*walk.p == '"') {
                        int k = pass_string(&walk, t);
                        if (k < 0)
                                return k;
                        continue;
                }
                if (*walk.p == '\0')
                        return -EBADMSG;
                depth += *walk.p == '{' || *walk.p == '[';
                depth -= *walk.p == '}' || *walk.p == ']';
                walk.p++;
        } while (depth > 0);
        if (t->length > 0)
                text_append(t, walk.copied, (size_t) (walk.p - walk.copied));
        return t->error;
}
