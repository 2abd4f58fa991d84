/* SPDX-License-Identifier: MIT */

/* Walks over text, and an index of an object's members; see the header. Called where stored results are read. */

#include "schema/json/view.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

const char *json_skip_space(const char *p) {
        while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n') /* mostly there is none */
                p++;
        return p;
}

const char *json_skip_string(const char *p) {
        for (const char *end = p; (end = strchr(end + 1, '"'));) {
                const char *escape = end;
                while (escape[-1] == '\\') /* at the latest, the opening quote is none */
                        escape--;
                if ((end - escape) % 2 == 0)
                        return end + 1;
        }
        return NULL;
}

static const char *skip_scalar(const char *p) {
        const char *begin = p;
        while (*p && !strchr(",]} \t\r\n", *p))
                p++;
        return p > begin ? p : NULL;
}

/* A look at a table for each character, as most of a stored run's are skipped by this. */
const char *json_skip_plain(const char *p) {
        static const bool stops[256] = {
                ['\0'] = true, ['"'] = true, ['{'] = true, ['}'] = true, ['['] = true, [']'] = true};
        while (!stops[(unsigned char) *p])
                p++;
        return p;
}

const char *json_skip_value(const char *p) {
        size_t depth = 0;
        if (*p != '"' && *p != '{' && *p != '[')
                return skip_scalar(p);
        do {
                p = json_skip_plain(p);
                if (*p == '"') {
                        p = json_skip_string(p);
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

const char *json_skip_key(const char *p, const char **ret_end) {
        *ret_end = *p == '"' ? json_skip_string(p) : NULL;
        const char *colon = *ret_end ? json_skip_space(*ret_end) : NULL;
        return colon && *colon == ':' ? json_skip_space(colon + 1) : NULL;
}

bool json_find_member(const char *text, const char *key, const char **ret, size_t *ret_length) {
        size_t length = strlen(key);
        const char *p = json_skip_space(text);
        if (*p != '{')
                return false;
        for (p = json_skip_space(p + 1); *p == '"'; p = json_skip_space(p + 1)) {
                const char *name = p + 1, *end;
                const char *value = json_skip_key(p, &end);
                const char *behind = value ? json_skip_value(value) : NULL;
                if (!behind)
                        return false;
                if ((size_t) (end - name) == length + 1 && memcmp(name, key, length) == 0) {
                        *ret = value;
                        *ret_length = (size_t) (behind - value);
                        return true;
                }
                p = json_skip_space(behind);
                if (*p != ',')
                        return false;
        }
        return false;
}

/* Parts */

static int read_value(struct json_view *v, const char **at, struct json_part part, unsigned depth);

/* *at: behind the opening bracket; then behind the closing one. */
static int read_members(struct json_view *v, const char **at, unsigned depth) {
        const char *p = json_skip_space(*at);
        if (*p == '}') {
                *at = p + 1;
                return 0;
        }
        for (;;) {
                const char *end, *value = json_skip_key(p, &end);
                if (!value)
                        return -EBADMSG;
                struct json_part part = {.key = p + 1, .key_length = (size_t) (end - p) - 2};
                p = value;
                int r = read_value(v, &p, part, depth);
                if (r < 0)
                        return r;
                p = json_skip_space(p);
                if (*p == '}') {
                        *at = p + 1;
                        return 0;
                }
                if (*p != ',')
                        return -EBADMSG;
                p = json_skip_space(p + 1);
        }
}

static int read_value(struct json_view *v, const char **at, struct json_part part, unsigned depth) {
        const char *p = *at;
        size_t number = v->n;
        int r = 0;
        if (!util_grow(v->parts, v->n, v->size))
                return -ENOMEM;
        v->n++;
        if (*p == '{' && depth < JSON_DEPTH_MAX) {
                p++;
                r = read_members(v, &p, depth + 1);
        } else {
                p = json_skip_value(p);
                r = p ? 0 : -EBADMSG;
        }
        if (r < 0)
                return r;
        part.text = *at;
        part.length = (size_t) (p - *at);
        part.span = v->n - number;
        v->parts[number] = part;
        *at = p;
        return 0;
}

int json_view_read(struct json_view *v, const char *text) {
        const char *p = json_skip_space(text);
        v->n = 0;
        int r = read_value(v, &p, (struct json_part){0}, 0);
        return r == 0 && *json_skip_space(p) != '\0' ? -EBADMSG : r;
}

void json_view_deinit(struct json_view *v) {
        free(v->parts);
        *v = (struct json_view){0};
}

const struct json_part *json_part_get_n(const struct json_part *object, const char *key, size_t length) {
        const struct json_part *end = object ? object + object->span : NULL;
        for (const struct json_part *i = object ? object + 1 : NULL; i < end; i += i->span)
                if (i->key_length == length && memcmp(i->key, key, length) == 0)
                        return i;
        return NULL;
}

const struct json_part *json_part_get(const struct json_part *object, const char *key) {
        return json_part_get_n(object, key, strlen(key));
}

bool json_part_is(const struct json_part *part, const char *word) {
        size_t length = strlen(word);
        return part && part->length == length + 2 && part->text[0] == '"' && memcmp(part->text + 1, word, length) == 0;
}

bool json_part_double(const struct json_part *part, double *ret) {
        if (!part || !strchr("-0123456789", part->text[0]))
                return false;
        *ret = strtod(part->text, NULL);
        return true;
}

bool json_part_bool(const struct json_part *part, bool *ret) {
        if (!part || (part->text[0] != 't' && part->text[0] != 'f'))
                return false;
        *ret = part->text[0] == 't';
        return true;
}

int json_part_string(const struct json_part *part, char **ret) {
        struct json *decoded = NULL;
        const char *word;
        if (!part || part->text[0] != '"')
                return -EINVAL;
        if (!memchr(part->text, '\\', part->length)) {
                *ret = strndup(part->text + 1, part->length - 2);
                return *ret ? 0 : -ENOMEM;
        }
        int r = json_parse(part->text, part->length, &decoded, NULL);
        if (r == 0)
                r = json_as_string(decoded, &word);
        char *copy = r == 0 ? strdup(word) : NULL;
        json_free(decoded);
        if (r == 0 && !copy)
                r = -ENOMEM;
        if (r == 0)
                *ret = copy;
        return r;
}
