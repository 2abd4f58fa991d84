/* SPDX-License-Identifier: MIT */

/*
 * The strict check in front of cJSON, which lets pass what must not: duplicate keys, leading zeros, control
 * characters, invalid UTF-8, numbers that a double cannot hold, \u0000. Walks the text once, keeps the decoded keys
 * of the open objects, and knows at any moment where it stands, so that a fault is reported with its JSON pointer.
 */

#include "schema/json/scan.h"

#include "schema/json/utf8.h"
#include "schema/util.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define NUMBER_MAX 60 /* cJSON copies a number into 64 bytes and cuts the rest off */

/* A key of an open object: decoded bytes in the pool, where it stands in the text. */
struct key {
        size_t start, length, offset;
};

struct level {
        bool is_array;
        size_t index;     /* of the element at hand, in an array */
        size_t first_key; /* in an object: its keys are keys[first_key … n_keys - 1] while it is innermost */
        size_t last_key;  /* the member at hand; SIZE_MAX before the first */
};

struct scan {
        const char *text;
        size_t length, at;
        struct level levels[JSON_DEPTH_MAX];
        size_t depth;
        struct key *keys;
        size_t n_keys, size_keys;
        char *pool; /* never longer than the text: a decoded key is not longer than what it was decoded from */
        size_t n_pool;
        struct json_error *error;
};

static void append(char *to, size_t *n, const char *from, size_t length) {
        for (size_t i = 0; i < length; i++) {
                const char *escaped = from[i] == '~' ? "~0" : from[i] == '/' ? "~1" : NULL;
                size_t add = escaped ? 2 : 1;
                if (*n + add >= JSON_POINTER_MAX)
                        break;
                memcpy(to + *n, escaped ? escaped : from + i, add);
                *n += add;
        }
        /* a character cut in two at the end goes altogether */
        size_t start = *n;
        while (start > 0 && ((unsigned char) to[start - 1] & 0xc0) == 0x80)
                start--;
        if (start > 0 && (unsigned char) to[start - 1] >= 0xc0 && utf8_length(to + start - 1, *n - start + 1) == 0)
                *n = start - 1;
        to[*n] = '\0';
}

static void point(const struct scan *s, char pointer[JSON_POINTER_MAX]) {
        size_t n = 0;
        pointer[0] = '\0';
        for (size_t i = 0; i < s->depth; i++) {
                const struct level *l = &s->levels[i];
                if (!l->is_array && l->last_key == SIZE_MAX)
                        continue;
                if (n + 1 >= JSON_POINTER_MAX)
                        return;
                pointer[n++] = '/';
                if (l->is_array) {
                        char index[24];
                        append(pointer, &n, index, (size_t) snprintf(index, sizeof(index), "%zu", l->index));
                } else
                        append(pointer, &n, s->pool + s->keys[l->last_key].start, s->keys[l->last_key].length);
        }
}

__attribute__((format(printf, 3, 4))) static int fault(struct scan *s, size_t offset, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        if (vsnprintf(s->error->detail, sizeof(s->error->detail), format, arguments) < 0)
                s->error->detail[0] = '\0';
        va_end(arguments);
        s->error->offset = offset;
        point(s, s->error->pointer);
        return -EINVAL;
}

/* The byte at hand, or -1 at the end. */
static int peek(const struct scan *s) {
        return s->at < s->length ? (unsigned char) s->text[s->at] : -1;
}

static void skip_space(struct scan *s) {
        while (s->at < s->length && s->text[s->at] && strchr(" \t\n\r", s->text[s->at]))
                s->at++;
}

static int unexpected(struct scan *s, const char *wanted) {
        int c = peek(s);
        if (c < 0)
                return fault(s, s->at, "the text ends where %s should be", wanted);
        if (c > 0x20 && c < 0x7f)
                return fault(s, s->at, "'%c' at byte %zu where %s should be", c, s->at, wanted);
        return fault(s, s->at, "byte 0x%02x at byte %zu where %s should be", (unsigned) c, s->at, wanted);
}

/* Four hexadecimal digits at `at`, or -1. */
static int32_t hex4(const struct scan *s, size_t at) {
        int32_t v = 0;
        if (s->length - at < 4)
                return -1;
        for (size_t i = 0; i < 4; i++) {
                char c = s->text[at + i];
                int d = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
                if (d < 0)
                        return -1;
                v = v << 4 | d;
        }
        return v;
}

/* \uXXXX, s->at behind the 'u'; a pair of surrogates is one character. */
static int scan_unicode(struct scan *s, size_t begin, uint32_t *ret) {
        int32_t c = hex4(s, s->at);
        if (c < 0)
                return fault(s, begin, "\\u at byte %zu needs four hexadecimal digits", begin);
        s->at += 4;
        if (c == 0)
                return fault(s, begin, "\\u0000 at byte %zu: no string here may contain a NUL", begin);
        if (c >= 0xd800 && c <= 0xdfff) {
                int32_t low = -1;
                if (c < 0xdc00 && s->length - s->at >= 6 && s->text[s->at] == '\\' && s->text[s->at + 1] == 'u')
                        low = hex4(s, s->at + 2);
                if (low < 0xdc00 || low > 0xdfff)
                        return fault(s, begin, "\\u%04x at byte %zu is half a surrogate pair", (unsigned) c, begin);
                s->at += 6;
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
        *ret = (uint32_t) c;
        return 0;
}

/* What stands behind a backslash, decoded; s->at is on the backslash. */
static int scan_escape(struct scan *s, uint32_t *ret) {
        static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
        size_t begin = s->at++;
        int c = peek(s);
        if (c == 'u') {
                s->at++;
                return scan_unicode(s, begin, ret);
        }
        const char *letter = c > 0 ? strchr(letters, c) : NULL;
        if (!letter)
                return fault(s, begin, "the escape at byte %zu is none that JSON knows", begin);
        s->at++;
        *ret = (unsigned char) values[letter - letters];
        return 0;
}

/* A string; s->at is on its quote. Its decoded bytes go to the pool when `keep`. */
static int scan_string(struct scan *s, bool keep) {
        size_t begin = s->at++;

        for (;;) {
                char decoded[4];
                size_t n = 0;
                int c = peek(s);
                if (c < 0)
                        return fault(s, begin, "the string that begins at byte %zu has no end", begin);
                if (c == '"') {
                        s->at++;
                        return 0;
                }
                if (c < 0x20)
                        return fault(s, s->at, "control character 0x%02x at byte %zu inside a string", (unsigned) c,
                                     s->at);
                if (c == '\\') {
                        uint32_t code_point = 0;
                        int r = scan_escape(s, &code_point);
                        if (r < 0)
                                return r;
                        n = utf8_put(code_point, decoded);
                } else {
                        n = utf8_length(s->text + s->at, s->length - s->at);
                        if (n == 0)
                                return fault(s, s->at, "byte 0x%02x at byte %zu is not valid UTF-8", (unsigned) c,
                                             s->at);
                        memcpy(decoded, s->text + s->at, n);
                        s->at += n;
                }
                if (keep) {
                        memcpy(s->pool + s->n_pool, decoded, n);
                        s->n_pool += n;
                }
        }
}

static size_t skip_digits(struct scan *s) {
        size_t begin = s->at;
        while (peek(s) >= '0' && peek(s) <= '9')
                s->at++;
        return s->at - begin;
}

/* The grammar of RFC 8259, section 6; then what a double can hold. */
static int scan_number(struct scan *s) {
        size_t begin = s->at;
        bool integer = true;

        if (peek(s) == '-')
                s->at++;
        bool zero = peek(s) == '0';
        size_t digits = skip_digits(s);
        if (digits == 0)
                return unexpected(s, "a digit");
        if (zero && digits > 1)
                return fault(s, begin, "the number at byte %zu has a leading zero", begin);
        if (peek(s) == '.') {
                integer = false;
                s->at++;
                if (skip_digits(s) == 0)
                        return unexpected(s, "a digit");
        }
        if (peek(s) == 'e' || peek(s) == 'E') {
                integer = false;
                s->at++;
                if (peek(s) == '+' || peek(s) == '-')
                        s->at++;
                if (skip_digits(s) == 0)
                        return unexpected(s, "a digit");
        }

        char number[NUMBER_MAX + 1];
        size_t n = s->at - begin;
        if (n > NUMBER_MAX)
                return fault(s, begin, "the number at byte %zu has %zu characters; at most %d are read", begin, n,
                             NUMBER_MAX);
        memcpy(number, s->text + begin, n);
        number[n] = '\0';
        double v = strtod(number, NULL);
        if (!isfinite(v))
                return fault(s, begin, "%s is too large for a number", number);
        if (integer && fabs(v) > (double) JSON_INTEGER_MAX)
                return fault(s, begin, "%s is beyond 2^53 - 1, up to which an integer is exact", number);
        return 0;
}

static int scan_literal(struct scan *s) {
        static const char *const words[] = {"true", "false", "null"};
        for (size_t i = 0; i < ELEMENTS(words); i++) {
                size_t n = strlen(words[i]);
                if (s->length - s->at >= n && memcmp(s->text + s->at, words[i], n) == 0) {
                        s->at += n;
                        return 0;
                }
        }
        return unexpected(s, "a value");
}

static int push(struct scan *s, bool is_array) {
        if (s->depth == JSON_DEPTH_MAX)
                return fault(s, s->at, "more than %d levels of arrays and objects", JSON_DEPTH_MAX);
        s->levels[s->depth++] = (struct level){.is_array = is_array, .first_key = s->n_keys, .last_key = SIZE_MAX};
        s->at++;
        return 0;
}

static int compare_keys(const void *x, const void *y, void *pool) {
        const struct key *a = x, *b = y;
        size_t n = a->length < b->length ? a->length : b->length;
        int c = memcmp((char *) pool + a->start, (char *) pool + b->start, n);
        if (c != 0)
                return c;
        if (a->length != b->length)
                return a->length < b->length ? -1 : 1;
        return a->offset < b->offset ? -1 : 1; /* so that of two equal ones the later is at fault */
}

/* Closes the innermost level. An object's keys are compared here: sorting stays fast whatever was sent. */
static int pop(struct scan *s) {
        struct level *l = &s->levels[s->depth - 1];
        size_t n = s->n_keys - l->first_key;

        if (!l->is_array && n > 0) {
                struct key *keys = s->keys + l->first_key;
                size_t pool_start = keys[0].start;
                qsort_r(keys, n, sizeof(*keys), compare_keys, s->pool);
                for (size_t i = 1; i < n; i++)
                        if (keys[i].length == keys[i - 1].length &&
                            memcmp(s->pool + keys[i].start, s->pool + keys[i - 1].start, keys[i].length) == 0) {
                                l->last_key = l->first_key + i;
                                return fault(s, keys[i].offset, "the key at byte %zu stands twice in its object",
                                             keys[i].offset);
                        }
                s->n_keys = l->first_key;
                s->n_pool = pool_start;
        }
        s->depth--;
        s->at++;
        return 0;
}

/* A member's key and colon; s->at is where the key should begin. */
static int scan_key(struct scan *s) {
        struct key key = {.start = s->n_pool, .offset = s->at};

        s->levels[s->depth - 1].last_key = SIZE_MAX; /* a fault from here on is the object's */
        if (peek(s) != '"')
                return unexpected(s, "a key in double quotes");
        int r = scan_string(s, true);
        if (r < 0)
                return r;
        key.length = s->n_pool - key.start;

        if (s->n_keys == s->size_keys) {
                size_t size = s->size_keys ? s->size_keys * 2 : 16;
                struct key *keys = reallocarray(s->keys, size, sizeof(*keys));
                if (!keys)
                        return -ENOMEM;
                s->keys = keys;
                s->size_keys = size;
        }
        s->levels[s->depth - 1].last_key = s->n_keys;
        s->keys[s->n_keys++] = key;

        skip_space(s);
        if (peek(s) != ':')
                return unexpected(s, "a colon");
        s->at++;
        skip_space(s);
        return 0;
}

/* A value's first byte decides. *ret_open: an array or object has been opened and its first element comes next. */
static int scan_value(struct scan *s, bool *ret_open) {
        int c = peek(s), r;

        *ret_open = false;
        if (c == '"')
                return scan_string(s, false);
        if (c == '-' || (c >= '0' && c <= '9'))
                return scan_number(s);
        if (c != '{' && c != '[')
                return scan_literal(s);

        r = push(s, c == '[');
        if (r < 0)
                return r;
        skip_space(s);
        if (peek(s) == (c == '[' ? ']' : '}'))
                return pop(s);
        *ret_open = true;
        return c == '{' ? scan_key(s) : 0;
}

/* After a value: closes what ends here, and steps over the comma to the next element. */
static int scan_after(struct scan *s) {
        while (s->depth > 0) {
                struct level *l = &s->levels[s->depth - 1];
                skip_space(s);
                int c = peek(s);
                if (c == (l->is_array ? ']' : '}')) {
                        int r = pop(s);
                        if (r < 0)
                                return r;
                        continue;
                }
                if (c != ',')
                        return unexpected(s, l->is_array ? "a comma or ]" : "a comma or }");
                s->at++;
                skip_space(s);
                l->index++;
                return l->is_array ? 0 : scan_key(s);
        }
        return 0;
}

static int scan_text(struct scan *s) {
        skip_space(s);
        do {
                bool open;
                int r = scan_value(s, &open);
                if (r == 0 && !open)
                        r = scan_after(s);
                if (r < 0)
                        return r;
                skip_space(s);
        } while (s->depth > 0);

        if (s->at < s->length)
                return fault(s, s->at, "there is more after the value's end, from byte %zu on", s->at);
        return 0;
}

int json_scan(const char *text, size_t length, struct json_error *e) {
        struct scan s = {.text = text, .length = length, .error = e};

        s.pool = malloc(length + 1);
        if (!s.pool)
                return -ENOMEM;
        int r = scan_text(&s);
        free(s.keys);
        free(s.pool);
        return r;
}
