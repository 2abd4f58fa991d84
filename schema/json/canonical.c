/* SPDX-License-Identifier: MIT */

/* See the header. Called for bundles, which are known by the digest of this text. */

#include "schema/json/canonical.h"

#include "schema/util.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define DIGITS_MAX 17 /* of any double, so that it reads back the same */

static int by_name(const void *a, const void *b) {
        const struct json *const *x = a, *const *y = b;
        return strcmp(json_key(*x), json_key(*y));
}

static bool is_plain(const char *name) {
        for (; *name; name++)
                if (*name < 0x20 || *name > 0x7e || *name == '"' || *name == '\\')
                        return false;
        return true;
}

static void fail(struct json_writer *w, int error) {
        if (w->error == 0)
                w->error = error;
}

size_t json_sorted_members(struct json_writer *w, const struct json *object, const struct json ***ret) {
        size_t n = 0, size = json_length(object);
        _cleanup_free_ const struct json **members = reallocarray(NULL, size ? size : 1, sizeof(void *));
        if (!members) {
                fail(w, -ENOMEM);
                return 0;
        }
        for (const struct json *i = json_first(object); i; i = json_next(i)) {
                if (!is_plain(json_key(i))) {
                        fail(w, -EBADMSG);
                        return 0;
                }
                members[n++] = i;
        }
        qsort(members, n, sizeof(void *), by_name);
        *ret = util_steal(&members);
        return n;
}

/* Quotes and backslashes are escaped, and control characters: the former and five of these by a letter. */
static void put_string(struct json_writer *w, const char *s) {
        static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
        _cleanup_free_ char *text = malloc(6 * strlen(s) + 3);
        if (!text) {
                fail(w, -ENOMEM);
                return;
        }
        char *p = text;
        *p++ = '"';
        for (; *s; s++) {
                const char *letter = letters;
                while (*letter && *letter != *s)
                        letter += 2;
                if (*letter) {
                        *p++ = '\\';
                        *p++ = letter[1];
                } else if ((unsigned char) *s < 0x20)
                        p += snprintf(p, 7, "\\u%04x", (unsigned) *s);
                else
                        *p++ = *s;
        }
        *p++ = '"';
        *p = '\0';
        json_put_raw(w, text);
}

/* So many digits of v, without a point: v is about 0.DIGITS x 10^exponent. */
static bool take_digits(double v, int n, char digits[static DIGITS_MAX + 1], int *ret_exponent) {
        char buffer[40];
        (void) snprintf(buffer, sizeof(buffer), "%.*e", n - 1, v);
        digits[0] = buffer[0];
        (void) memcpy(digits + 1, buffer + 2, (size_t) n - 1);
        digits[n] = '\0';
        *ret_exponent = (int) strtol(strchr(buffer, 'e') + 1, NULL, 10) + 1;
        return strtod(buffer, NULL) == v;
}

/* Beside a power of two, the nearest of 16 digits may read back as another double where its neighbour does not. */
static bool take_neighbour(double v, char digits[static DIGITS_MAX + 1], int exponent) {
        char buffer[64];
        long long nearest = strtoll(digits, NULL, 10);
        for (int step = -1; step <= 1; step += 2) {
                (void) snprintf(buffer, sizeof(buffer), "%lld", nearest + step);
                if (strlen(buffer) != 16)
                        continue;
                (void) memcpy(digits, buffer, 17);
                (void) snprintf(buffer, sizeof(buffer), "0.%se%d", digits, exponent);
                if (strtod(buffer, NULL) == v)
                        return true;
        }
        return false;
}

/* The shortest digits that read back the same, and of these the nearest. 15 of them are never ambiguous, but below the
 * normal numbers, which have fewer. */
static int shortest(double v, char digits[static DIGITS_MAX + 1]) {
        int exponent, n = v < DBL_MIN ? 1 : 15;
        while (!take_digits(v, n, digits, &exponent) && n < DIGITS_MAX)
                if (n++ == 16 && take_neighbour(v, digits, exponent))
                        break;
        size_t length = strlen(digits);
        while (length > 1 && digits[length - 1] == '0')
                digits[--length] = '\0';
        return exponent;
}

/* As ECMAScript writes a number (Number::toString), to which RFC 8785 refers: plain from 10^-6 to below 10^21. */
static void put_real(struct json_writer *w, double v) {
        char digits[DIGITS_MAX + 1], text[64];
        const char *sign = v < 0 ? "-" : "";
        if (!isfinite(v)) {
                fail(w, -EBADMSG);
                return;
        }
        int exponent = shortest(fabs(v), digits), n = (int) strlen(digits);
        if (n <= exponent && exponent <= 21)
                (void) snprintf(text, sizeof(text), "%s%s%.*s", sign, digits, exponent - n, "00000000000000000000");
        else if (0 < exponent && exponent <= 21)
                (void) snprintf(text, sizeof(text), "%s%.*s.%s", sign, exponent, digits, digits + exponent);
        else if (-6 < exponent && exponent <= 0)
                (void) snprintf(text, sizeof(text), "%s0.%.*s%s", sign, -exponent, "000000", digits);
        else
                (void) snprintf(text, sizeof(text), "%s%c%s%se%+d", sign, digits[0], n > 1 ? "." : "", digits + 1,
                                exponent - 1);
        json_put_raw(w, text);
}

static void put_object(struct json_writer *w, const struct json *object) {
        _cleanup_free_ const struct json **members = NULL;
        size_t n = json_sorted_members(w, object, &members);
        json_object_begin(w);
        for (size_t i = 0; i < n; i++) {
                json_put_key(w, json_key(members[i]));
                json_put_canonical(w, members[i]);
        }
        json_object_end(w);
}

/* Depth is bounded: the tree came through json_parse(). */
void json_put_canonical(struct json_writer *w, const struct json *value) {
        int64_t integer;
        double real;
        bool yes;
        const char *s;
        if (json_type(value) == JSON_OBJECT)
                return put_object(w, value);
        if (json_type(value) == JSON_ARRAY) {
                json_array_begin(w);
                for (const struct json *i = json_first(value); i; i = json_next(i))
                        json_put_canonical(w, i);
                return json_array_end(w);
        }
        if (json_as_string(value, &s) == 0)
                put_string(w, s);
        else if (json_as_bool(value, &yes) == 0)
                json_put_bool(w, yes);
        else if (json_as_i64(value, &integer) == 0)
                json_put_i64(w, integer);
        else if (json_as_double(value, &real) == 0)
                put_real(w, real);
        else
                json_put_null(w);
}
