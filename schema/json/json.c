/* SPDX-License-Identifier: MIT */

/*
 * Reading JSON: cJSON makes the tree and has the grammar; `struct json` is its node, which no other file knows. The
 * check beside it refuses what cJSON accepts and a strict reader must not: control characters and a byte-order mark
 * between values, control characters and invalid UTF-8 in strings, \u0000 and \u with other than digits, leading
 * zeros, numbers that a double cannot hold, a thousand levels, duplicate keys. Its first pass tracks the open arrays
 * and objects, so that a fault is reported with its JSON pointer. Every room that reads JSON calls this file.
 */

#include "schema/json/json.h"

#include "schema/json/utf8.h"
#include "schema/util.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define NUMBER_MAX 60 /* cJSON copies a number into 64 bytes and cuts the rest off */

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

struct level {
        bool is_array;
        size_t index;           /* of the current element, in an array */
        size_t key, key_length; /* of the current member, as in the text, with its quotes; length 0: no key yet */
};

struct check {
        const char *text;
        size_t length, at, token; /* where it stands, and where the token there begins */
        struct level levels[JSON_DEPTH_MAX];
        size_t depth;
        size_t values, most; /* scalars, arrays and objects so far, each a node of the tree; a key is none */
        struct json_error *error;
};

/* Writes the JSON Pointer of the current token; it ends early at a key that cannot be decoded. */
static void point(const struct check *c, char pointer[JSON_POINTER_MAX]) {
        pointer[0] = '\0';
        for (size_t i = 0; i < c->depth; i++) {
                const struct level *l = &c->levels[i];
                if (l->is_array) {
                        json_pointer_index(pointer, pointer, l->index);
                } else if (l->key_length > 0) {
                        struct json *key = NULL;
                        const char *decoded;
                        if (json_parse(c->text + l->key, l->key_length, &key, NULL) < 0)
                                return;
                        if (json_as_string(key, &decoded) == 0)
                                json_pointer_key(pointer, pointer, decoded);
                        json_free(key);
                }
        }
}

__attribute__((format(printf, 2, 3))) static int fault(struct check *c, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        if (vsnprintf(c->error->detail, sizeof(c->error->detail), format, arguments) < 0)
                c->error->detail[0] = '\0';
        va_end(arguments);
        point(c, c->error->pointer);
        return -EINVAL;
}

/* The current byte, or -1 at the end. */
static int peek(const struct check *c) {
        return c->at < c->length ? (unsigned char) c->text[c->at] : -1;
}

/* The length of the escape that begins here with a backslash; 0 where \u is without its digits or stands for a NUL.
 * cJSON itself refuses other letters that JSON does not have, and unpaired surrogates. */
static size_t escape_length(const struct check *c) {
        char digits[5] = "";
        if (c->at + 1 >= c->length || c->text[c->at + 1] != 'u')
                return 2;
        memcpy(digits, c->text + c->at + 2, c->length - c->at - 2 < 4 ? c->length - c->at - 2 : 4);
        return strspn(digits, "0123456789abcdefABCDEF") == 4 && strcmp(digits, "0000") != 0 ? 6 : 0;
}

/* The object whose next string is a key; NULL: there is none. */
static struct level *without_key(struct check *c) {
        struct level *l = c->depth > 0 ? &c->levels[c->depth - 1] : NULL;
        return l && !l->is_array && l->key_length == 0 ? l : NULL;
}

/* c->at is on the opening quote. */
static int check_string(struct check *c) {
        c->at++;
        for (int byte; (byte = peek(c)) != '"';) {
                if (byte < 0)
                        return fault(c, "the string that begins at byte %zu has no end", c->token);
                if (byte < 0x20)
                        return fault(c, "control character 0x%02x at byte %zu inside a string", (unsigned) byte, c->at);
                size_t n = byte == '\\' ? escape_length(c) : utf8_length(c->text + c->at, c->length - c->at);
                if (n == 0 && byte == '\\')
                        return fault(c,
                                     "\\u at byte %zu needs four hexadecimal digits other than 0000: no string here "
                                     "contains a NUL",
                                     c->at);
                if (n == 0)
                        return fault(c, "byte 0x%02x at byte %zu is not valid UTF-8", (unsigned) byte, c->at);
                c->at += n;
        }
        c->at++;

        struct level *l = without_key(c);
        if (l) {
                l->key = c->token;
                l->key_length = c->at - c->token;
        }
        return 0;
}

static size_t skip_digits(struct check *c) {
        size_t begin = c->at;
        while (peek(c) >= '0' && peek(c) <= '9')
                c->at++;
        return c->at - begin;
}

/* The grammar of RFC 8259, section 6, as cJSON passes on whatever strtod() makes something of; then what a double can
 * hold. */
static int check_number(struct check *c) {
        size_t missing = 0;
        bool integer = true;

        if (peek(c) == '-')
                c->at++;
        bool zero = peek(c) == '0';
        size_t digits = skip_digits(c);
        missing += digits == 0;
        if (peek(c) == '.') {
                integer = false;
                c->at++;
                missing += skip_digits(c) == 0;
        }
        if (peek(c) == 'e' || peek(c) == 'E') {
                integer = false;
                c->at++;
                if (peek(c) == '+' || peek(c) == '-')
                        c->at++;
                missing += skip_digits(c) == 0;
        }
        if (missing > 0)
                return fault(c, "the number at byte %zu lacks a digit", c->token);
        if (zero && digits > 1)
                return fault(c, "the number at byte %zu has a leading zero", c->token);

        char number[NUMBER_MAX + 1];
        size_t n = c->at - c->token;
        if (n > NUMBER_MAX)
                return fault(c, "the number at byte %zu has %zu characters; at most %d are read", c->token, n,
                             NUMBER_MAX);
        memcpy(number, c->text + c->token, n);
        number[n] = '\0';
        if (integer && n <= 15) /* below 2^53 in any case */
                return 0;
        double v = strtod(number, NULL);
        if (!isfinite(v))
                return fault(c, "%s is too large for a number", number);
        if (integer && fabs(v) > (double) JSON_INTEGER_MAX)
                return fault(c, "%s is beyond 2^53 - 1, up to which an integer is exact", number);
        return 0;
}

static int check_bracket(struct check *c, int byte) {
        if (byte == '[' || byte == '{') {
                if (c->depth == JSON_DEPTH_MAX)
                        return fault(c, "more than %d levels of arrays and objects", JSON_DEPTH_MAX);
                c->levels[c->depth++] = (struct level){.is_array = byte == '['};
        } else if (c->depth > 0) { /* cJSON refuses one too many */
                bool is_array = c->levels[c->depth - 1].is_array;
                if (is_array != (byte == ']'))
                        return fault(c, "'%c' at byte %zu closes an %s", byte, c->at, is_array ? "array" : "object");
                c->depth--;
        }
        c->at++;
        return 0;
}

/* Whether a value begins with this byte: of true, false and null, with a letter that follows none. */
static bool begins_value(struct check *c, int byte) {
        if (byte == '"')
                return !without_key(c);
        if (byte == 't' || byte == 'f' || byte == 'n')
                return c->at == 0 || !islower((unsigned char) c->text[c->at - 1]);
        return byte == '-' || (byte >= '0' && byte <= '9') || byte == '[' || byte == '{';
}

/* It is the text as a whole that has too many. */
static int refuse_values(struct check *c) {
        c->error->pointer[0] = '\0';
        (void) snprintf(c->error->detail, sizeof(c->error->detail),
                        "there are more than %zu values, the most of a request", c->most);
        return -E2BIG;
}

/* Up to `end`, or the end of the token there. */
static int check_until(struct check *c, size_t end) {
        int r = 0;
        while (r == 0 && c->at < end) {
                int byte = peek(c);
                c->token = c->at;
                if (begins_value(c, byte) && ++c->values > c->most)
                        return refuse_values(c);
                if (byte == '"')
                        r = check_string(c);
                else if (byte == '-' || (byte >= '0' && byte <= '9'))
                        r = check_number(c);
                else if (byte == '[' || byte == '{' || byte == ']' || byte == '}')
                        r = check_bracket(c, byte);
                else if (byte >= 0x7f || (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r'))
                        return fault(c, "byte 0x%02x at byte %zu stands outside of a string", (unsigned) byte, c->at);
                else {
                        if (byte == ',' && c->depth > 0) {
                                c->levels[c->depth - 1].index++;
                                c->levels[c->depth - 1].key_length = 0;
                        }
                        c->at++;
                }
        }
        return r;
}

/* Strings, numbers, brackets, stray bytes and how many values there are. 0; -EINVAL with *e filled; -E2BIG, too, as
 * soon as there are more than `most`. *ret_at: how far the text is free of such faults. */
static int check_text(const char *text, size_t length, size_t most, size_t *ret_at, struct json_error *e) {
        struct check c = {.text = text, .length = length, .most = most, .error = e};
        int r = check_until(&c, length);
        *ret_at = r < 0 ? c.token : length;
        if (r == 0 && c.depth > 0)
                r = fault(&c, "the text ends inside an %s", c.levels[c.depth - 1].is_array ? "array" : "object");
        return r;
}

/* The fault at which cJSON stopped, about `at` bytes into a text that check_text() has passed so far: -EINVAL with *e
 * filled. */
static int check_stopped(const char *text, size_t length, size_t at, struct json_error *e) {
        struct check c = {.text = text, .length = length, .most = SIZE_MAX, .error = e};
        int r = check_until(&c, at);
        if (r < 0)
                return r;
        if (c.at > at && text[c.at - 1] == '"')
                return fault(&c,
                             "the string near byte %zu has an escape that JSON does not have, or half a surrogate pair",
                             at);
        if (c.depth == 0)
                return fault(&c,
                             "there is no JSON value at byte %zu: an object, an array, a string, a number, true, false "
                             "or null",
                             at);
        if (c.levels[c.depth - 1].is_array)
                return fault(&c, "the array is malformed near byte %zu; its form is [value, ...]", at);
        return fault(&c, "the object is malformed near byte %zu; its form is {\"key\": value, ...}", at);
}

/* The keys of the current object, and its JSON Pointer. */
struct keys {
        const char **names;
        size_t size;
        size_t depth;
        struct {
                const struct json *value;
                size_t index;
        } path[JSON_DEPTH_MAX];
        struct json_error *error;
};

static int compare_names(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static int duplicate(const struct keys *k, const char *name) {
        char *pointer = k->error->pointer;
        pointer[0] = '\0';
        for (size_t i = 0; i < k->depth; i++)
                if (json_key(k->path[i].value))
                        json_pointer_key(pointer, pointer, json_key(k->path[i].value));
                else
                        json_pointer_index(pointer, pointer, k->path[i].index);
        json_pointer_key(pointer, pointer, name);
        (void) snprintf(k->error->detail, sizeof(k->error->detail), "the key \"%.60s\" stands twice in its object",
                        name);
        return -EINVAL;
}

/* Sorting stays fast however many there are. */
static int check_object(struct keys *k, const struct json *object) {
        size_t n = json_length(object), i = 0;
        if (n > k->size && !util_resize(k->names, n))
                return -ENOMEM;
        k->size = n > k->size ? n : k->size;
        for (const struct json *m = json_first(object); m; m = json_next(m))
                k->names[i++] = json_key(m);
        if (n > 1)
                qsort(k->names, n, sizeof(*k->names), compare_names);
        for (i = 1; i < n; i++)
                if (strcmp(k->names[i - 1], k->names[i]) == 0)
                        return duplicate(k, k->names[i]);
        return 0;
}

/* No deeper than check_text() allows. */
static int check_value(struct keys *k, const struct json *v) {
        enum json_type type = json_type(v);
        int r = type == JSON_OBJECT ? check_object(k, v) : 0;
        size_t i = 0;

        if (type != JSON_OBJECT && type != JSON_ARRAY)
                return 0;
        k->depth++;
        for (const struct json *child = json_first(v); r == 0 && child; child = json_next(child), i++) {
                k->path[k->depth - 1].value = child;
                k->path[k->depth - 1].index = i;
                r = check_value(k, child);
        }
        k->depth--;
        return r;
}

/* That no object has a key twice. 0; -EINVAL with *e filled; -ENOMEM. */
static int check_keys(const struct json *root, struct json_error *e) {
        struct keys k = {.error = e};
        int r = check_value(&k, root);
        free(k.names);
        return r;
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

static int parse(const char *text, size_t length, size_t most, struct json **ret, struct json_error *ret_error) {
        struct json_error e = {.pointer = ""};
        const char *end = text;
        size_t at, stop;
        int r = check_text(text, length, most, &at, &e);

        if (r == -E2BIG) { /* before a tree is made of them */
                if (ret_error)
                        *ret_error = e;
                return -EINVAL;
        }
        memory_ran_out = false;
        cJSON *root = cJSON_ParseWithLengthOpts(text, length, &end, 0);
        stop = (size_t) (end - text);
        if (!root && memory_ran_out)
                r = -ENOMEM;
        else if (!root && (r == 0 || stop + 1 < at)) /* the earlier of two faults */
                r = check_stopped(text, length, stop, &e);
        else if (root && stop < at)
                r = check_end(text, length, stop, &e);
        if (r == 0)
                r = check_keys(value(root), &e);
        if (r < 0) {
                cJSON_Delete(root);
                if (r == -EINVAL && ret_error)
                        *ret_error = e;
                return r;
        }
        *ret = (struct json *) (void *) root;
        return 0;
}

int json_parse(const char *text, size_t length, struct json **ret, struct json_error *ret_error) {
        return parse(text, length, SIZE_MAX, ret, ret_error);
}

int json_parse_request(const char *text, size_t length, struct json **ret, struct json_error *ret_error) {
        return parse(text, length, JSON_REQUEST_VALUES_MAX, ret, ret_error);
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

int json_parse_stored(const char *text, struct json **ret) {
        int r = text ? json_parse(text, strlen(text), ret, NULL) : 0;
        return r == -EINVAL ? -EBADMSG : r;
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
