/* SPDX-License-Identifier: MIT */

/*
 * Writing JSON: a growing text, commas placed by the writer, integers exact to 64 bits. The first error sticks and
 * makes all later calls no-ops, so that callers check once, at the end.
 */

#include "schema/json/json.h"
#include "schema/json/utf8.h"
#include "schema/util.h"

#include <math.h>
#include <string.h>

void json_writer_init(struct json_writer *w) {
        *w = (struct json_writer){.text = NULL};
}

void json_writer_init_behind(struct json_writer *w, char *buffer, size_t length, size_t size) {
        *w = (struct json_writer){.text = buffer, .length = length, .size = size};
}

void json_writer_deinit(struct json_writer *w) {
        free(w->text);
        json_writer_init(w);
}

int json_writer_steal(struct json_writer *w, char **ret, size_t *ret_length) {
        if (w->error == 0 && (w->depth != 0 || !w->comma))
                w->error = -EINVAL; /* something was begun and not ended, or never begun */
        if (w->error < 0)
                return w->error;
        *ret = util_steal(&w->text);
        if (ret_length)
                *ret_length = w->length;
        json_writer_init(w);
        return 0;
}

/* Appends, and keeps the text terminated. */
static void put(struct json_writer *w, const char *s, size_t n) {
        if (w->error < 0)
                return;
        if (n >= w->size - w->length) {
                size_t need, size;
                if (__builtin_add_overflow(w->length, n + 1, &need) || __builtin_mul_overflow(need, 2, &size)) {
                        w->error = -ENOMEM;
                        return;
                }
                size = size < 256 ? 256 : size;
                char *text = realloc(w->text, size);
                if (!text) {
                        w->error = -ENOMEM;
                        return;
                }
                w->text = text;
                w->size = size;
        }
        memcpy(w->text + w->length, s, n);
        w->length += n;
        w->text[w->length] = '\0';
}

static void put_text(struct json_writer *w, const char *s) {
        put(w, s, strlen(s));
}

/* Writes the separator in front of a value or key. */
static void separate(struct json_writer *w) {
        if (w->comma)
                put(w, ",", 1);
        w->comma = true;
}

static void begin(struct json_writer *w, const char *bracket) {
        separate(w);
        put(w, bracket, 1);
        w->depth++;
        w->comma = false;
}

static void end(struct json_writer *w, const char *bracket) {
        if (w->depth == 0) {
                w->error = w->error ? w->error : -EINVAL;
                return;
        }
        w->depth--;
        put(w, bracket, 1);
        w->comma = true;
}

void json_object_begin(struct json_writer *w) {
        begin(w, "{");
}

void json_object_end(struct json_writer *w) {
        end(w, "}");
}

void json_array_begin(struct json_writer *w) {
        begin(w, "[");
}

void json_array_end(struct json_writer *w) {
        end(w, "]");
}

/* The escape for a character that cannot stand in a string as it is, or NULL. */
static const char *escape_of(unsigned char c, char buffer[8]) {
        switch (c) {
        case '"':
                return "\\\"";
        case '\\':
                return "\\\\";
        case '\n':
                return "\\n";
        case '\r':
                return "\\r";
        case '\t':
                return "\\t";
        default:
                if (c >= 0x20 && c != 0x7f)
                        return NULL;
                snprintf(buffer, 8, "\\u%04x", c);
                return buffer;
        }
}

/* Almost all strings, and all keys, are of such characters alone. */
static size_t plain_length(const char *s, size_t n) {
        size_t i = 0;
        while (i < n && s[i] >= ' ' && s[i] <= '~' && s[i] != '"' && s[i] != '\\')
                i++;
        return i;
}

static void put_quoted(struct json_writer *w, const char *s, size_t n) {
        size_t plain = plain_length(s, n); /* characters before s that are copied as they are */

        put(w, "\"", 1);
        s += plain;
        n -= plain;
        while (n > 0) {
                char buffer[8];
                size_t length = utf8_length(s, n);
                const char *instead = length == 0   ? "\xef\xbf\xbd"
                                      : length == 1 ? escape_of((unsigned char) *s, buffer)
                                                    : NULL;
                length += length == 0;
                if (instead) {
                        put(w, s - plain, plain);
                        put_text(w, instead);
                        plain = 0;
                } else
                        plain += length;
                s += length;
                n -= length;
        }
        put(w, s - plain, plain);
        put(w, "\"", 1);
}

void json_put_key(struct json_writer *w, const char *key) {
        separate(w);
        put_quoted(w, key, strlen(key));
        put(w, ":", 1);
        w->comma = false;
}

void json_put_string_n(struct json_writer *w, const char *s, size_t n) {
        separate(w);
        put_quoted(w, s, n);
}

void json_put_string(struct json_writer *w, const char *s) {
        if (s)
                json_put_string_n(w, s, strlen(s));
        else
                json_put_null(w);
}

/* The digits of v before `end`; where they begin. */
static char *digits_before(char *end, uint64_t v) {
        do
                *--end = (char) ('0' + v % 10);
        while ((v /= 10) > 0);
        return end;
}

static void put_number(struct json_writer *w, uint64_t magnitude, bool negative) {
        char buffer[24], *end = buffer + sizeof(buffer), *at = digits_before(end, magnitude);
        if (negative)
                *--at = '-';
        separate(w);
        put(w, at, (size_t) (end - at));
}

void json_put_i64(struct json_writer *w, int64_t v) {
        put_number(w, v < 0 ? -(uint64_t) v : (uint64_t) v, v < 0);
}

void json_put_u64(struct json_writer *w, uint64_t v) {
        put_number(w, v, false);
}

void json_put_u64_text(struct json_writer *w, uint64_t v) {
        char buffer[32];
        snprintf(buffer, sizeof(buffer), "\"%" PRIu64 "\"", v);
        json_put_raw(w, buffer);
}

void json_put_double(struct json_writer *w, double v) {
        char buffer[40];
        if (!isfinite(v)) {
                json_put_null(w);
                return;
        }
        for (int digits = 15; digits <= 17; digits++) {
                snprintf(buffer, sizeof(buffer), "%.*g", digits, v);
                if (strtod(buffer, NULL) == v)
                        break;
        }
        /* without an exponent it would be an integer that the reader refuses, as it may not be exact */
        if (fabs(v) > (double) JSON_INTEGER_MAX && !strpbrk(buffer, ".e"))
                strcat(buffer, "e0");
        json_put_raw(w, buffer);
}

void json_put_bool(struct json_writer *w, bool v) {
        json_put_raw(w, v ? "true" : "false");
}

void json_put_null(struct json_writer *w) {
        json_put_raw(w, "null");
}

void json_put_raw(struct json_writer *w, const char *json) {
        separate(w);
        put_text(w, json ? json : "null");
}

void json_member_string(struct json_writer *w, const char *key, const char *s) {
        json_put_key(w, key);
        json_put_string(w, s);
}

bool json_time_text(int64_t ms, char ret[static JSON_TIME_MAX]) {
        struct tm tm;
        time_t seconds = (time_t) (ms / 1000);
        if (ms <= 0 || !gmtime_r(&seconds, &tm))
                return false;
        size_t n = strftime(ret, JSON_TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
        (void) snprintf(ret + n, JSON_TIME_MAX - n, ".%03dZ", (int) (ms % 1000));
        return true;
}

void json_member_time(struct json_writer *w, const char *key, int64_t ms) {
        char text[JSON_TIME_MAX];
        json_member_string(w, key, json_time_text(ms, text) ? text : NULL);
}

void json_member_i64(struct json_writer *w, const char *key, int64_t v) {
        json_put_key(w, key);
        json_put_i64(w, v);
}

void json_member_u64(struct json_writer *w, const char *key, uint64_t v) {
        json_put_key(w, key);
        json_put_u64(w, v);
}

void json_member_u64_text(struct json_writer *w, const char *key, uint64_t v) {
        json_put_key(w, key);
        json_put_u64_text(w, v);
}

void json_member_double(struct json_writer *w, const char *key, double v) {
        json_put_key(w, key);
        json_put_double(w, v);
}

void json_member_bool(struct json_writer *w, const char *key, bool v) {
        json_put_key(w, key);
        json_put_bool(w, v);
}

void json_member_null(struct json_writer *w, const char *key) {
        json_put_key(w, key);
        json_put_null(w);
}

void json_member_unknown(struct json_writer *w, const char *key, const char *reason) {
        char name[96];
        (void) snprintf(name, sizeof(name), "%s_reason", key);
        json_member_null(w, key);
        json_member_string(w, name, reason);
}

void json_member_raw(struct json_writer *w, const char *key, const char *json) {
        json_put_key(w, key);
        json_put_raw(w, json);
}

void json_member_object(struct json_writer *w, const char *key) {
        json_put_key(w, key);
        json_object_begin(w);
}

void json_member_array(struct json_writer *w, const char *key) {
        json_put_key(w, key);
        json_array_begin(w);
}

void json_member_i64_if(struct json_writer *w, const char *key, bool known, int64_t v) {
        json_put_key(w, key);
        if (known)
                json_put_i64(w, v);
        else
                json_put_null(w);
}

void json_member_u64_if(struct json_writer *w, const char *key, bool known, uint64_t v) {
        json_put_key(w, key);
        if (known)
                json_put_u64(w, v);
        else
                json_put_null(w);
}

void json_member_double_if(struct json_writer *w, const char *key, bool known, double v) {
        json_put_key(w, key);
        if (known)
                json_put_double(w, v);
        else
                json_put_null(w);
}
