/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON as ipclab reads and writes it.
 *
 * Reading is strict (RFC 8259 and more): valid UTF-8, no duplicate keys, no trailing bytes, at most
 * JSON_DEPTH_MAX levels, integers only within +-(2^53 - 1) so that none is rounded. The tree behind `struct json`
 * is cJSON's; json.c is the only file that uses it. Larger integers are sent as decimal strings.
 *
 * Writing is a sticky-error builder with exact 64-bit integers: call without checks, and check the result once, in
 * json_writer_steal().
 */

#include "schema/util.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 32
#define JSON_POINTER_MAX 256
#define JSON_REQUEST_VALUES_MAX 262144u /* of which a parsed tree takes 20 MiB */
#define JSON_INTEGER_MAX INT64_C(9007199254740991)

struct json; /* one value of a parsed tree; a child belongs to its root */

struct json_error {
        char pointer[JSON_POINTER_MAX]; /* RFC 6901 pointer of the value at fault; "" for the whole text */
        char detail[256];               /* a sentence for a person */
};

enum json_type { JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_REAL, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

/* Parses `length` bytes of `text`. Returns 0 and a root that json_free() frees; -EINVAL with *ret_error filled
 * (when not NULL) on a text that is not strictly JSON; -ENOMEM. */
int json_parse(const char *text, size_t length, struct json **ret, struct json_error *ret_error);
/* The same for a client's text, with at most JSON_REQUEST_VALUES_MAX values, scalars as well as arrays and objects. A
 * text with more is refused before a tree of it is made, whatever else is wrong with it behind them. */
int json_parse_request(const char *text, size_t length, struct json **ret, struct json_error *ret_error);
/* The same for a text that a json_writer made: an integer beyond JSON_INTEGER_MAX, as a clock's nanoseconds are after
 * 104 days, is the nearest double. 0; -EBADMSG: it is damaged; -ENOMEM. */
int json_parse_written(const char *text, size_t length, struct json **ret);
/* Parses a text of the store; NULL, or -EBADMSG where it is damaged; -ENOMEM. Without a text *ret stays as it is. */
int json_parse_stored(const char *text, struct json **ret);
void json_free(struct json *root); /* NULL-safe; roots only */
UTIL_FREEP(json, json_free)

enum json_type json_type(const struct json *value);

/* Objects and arrays. Keys are case-sensitive. NULL when there is no such member. */
const struct json *json_get(const struct json *object, const char *key);
const struct json *json_first(const struct json *container); /* first child or NULL */
const struct json *json_next(const struct json *child);
const char *json_key(const struct json *child); /* member name inside its object, else NULL */
size_t json_length(const struct json *container);

/* Values. Return 0, or -EINVAL (wrong type), -ERANGE (does not fit); *ret is written only on success. */
int json_as_string(const struct json *value, const char **ret);
int json_as_bool(const struct json *value, bool *ret);
int json_as_i64(const struct json *value, int64_t *ret);
int json_as_double(const struct json *value, double *ret);     /* integers too */
int json_as_u64_text(const struct json *value, uint64_t *ret); /* decimal string "18446744073709551615" */

/* The value as compact JSON text, malloc()ed; NULL when memory ran out. */
char *json_print(const struct json *value);

/* Appends "/key" or "/index" to a pointer, which may be the same array as `parent`. */
void json_pointer_key(char pointer[JSON_POINTER_MAX], const char *parent, const char *key);
void json_pointer_index(char pointer[JSON_POINTER_MAX], const char *parent, size_t index);

/* Writer. Commas are placed by the writer. */
struct json_writer {
        char *text;
        size_t length, size;
        int error; /* first error, 0 so far */
        uint32_t depth;
        bool comma;
};

void json_writer_init(struct json_writer *w); /* zeros, as a declaration with = {} has them */
/* Goes on behind what a malloc()ed buffer has, which it owns from here on: json_writer_steal() returns all of it. NULL,
 * 0, 0: there is none yet. */
void json_writer_init_behind(struct json_writer *w, char *buffer, size_t length, size_t size);
void json_writer_deinit(struct json_writer *w); /* safe after steal */
/* Returns 0 and hands the NUL-terminated text over (free() it), or the first error. ret_length may be NULL. */
int json_writer_steal(struct json_writer *w, char **ret, size_t *ret_length);

void json_object_begin(struct json_writer *w);
void json_object_end(struct json_writer *w);
void json_array_begin(struct json_writer *w);
void json_array_end(struct json_writer *w);
void json_put_key(struct json_writer *w, const char *key);
void json_put_string(struct json_writer *w, const char *s); /* NULL writes null; invalid UTF-8 becomes U+FFFD */
void json_put_string_n(struct json_writer *w, const char *s, size_t n);
void json_put_i64(struct json_writer *w, int64_t v);
void json_put_u64(struct json_writer *w, uint64_t v);
void json_put_u64_text(struct json_writer *w, uint64_t v); /* as a decimal string */
void json_put_double(struct json_writer *w, double v);     /* shortest that reads back the same; NaN and inf: null */
void json_put_bool(struct json_writer *w, bool v);
void json_put_null(struct json_writer *w);
void json_put_raw(struct json_writer *w, const char *json); /* text that is JSON already; NULL writes null */

/* Member in one call: key, then value. */
void json_member_string(struct json_writer *w, const char *key, const char *s);
/* Milliseconds since the epoch as RFC 3339 has it, in UTC; null for 0 and less, which is "not yet". As text: false, and
 * nothing written. */
void json_member_time(struct json_writer *w, const char *key, int64_t ms);
#define JSON_TIME_MAX 40
bool json_time_text(int64_t ms, char ret[static JSON_TIME_MAX]);
void json_member_i64(struct json_writer *w, const char *key, int64_t v);
void json_member_u64(struct json_writer *w, const char *key, uint64_t v);
void json_member_u64_text(struct json_writer *w, const char *key, uint64_t v);
void json_member_double(struct json_writer *w, const char *key, double v);
void json_member_bool(struct json_writer *w, const char *key, bool v);
void json_member_null(struct json_writer *w, const char *key);
/* What is not known: null, and the reason as the member KEY_reason. */
void json_member_unknown(struct json_writer *w, const char *key, const char *reason);
void json_member_raw(struct json_writer *w, const char *key, const char *json);
void json_member_object(struct json_writer *w, const char *key); /* begins it */
void json_member_array(struct json_writer *w, const char *key);
/* null where it is not known. */
void json_member_i64_if(struct json_writer *w, const char *key, bool known, int64_t v);
void json_member_u64_if(struct json_writer *w, const char *key, bool known, uint64_t v);
void json_member_double_if(struct json_writer *w, const char *key, bool known, double v);
