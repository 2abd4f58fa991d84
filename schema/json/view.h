/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON text read in place, without a tree of it: for few values of a large document that the store has. The text must
 * have passed json_parse() once, or have come from the writer: of a text that is no JSON, no more is found out than
 * that a string, an array or an object has no end. The functions never read beyond the NUL that ends the text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Behind the string whose opening quote is at p, and behind the value that begins at p; NULL where they have no end. */
const char *json_skip_string(const char *p);
const char *json_skip_value(const char *p);
const char *json_skip_space(const char *p);
/* The next character that begins or ends a string, an object or an array; or the NUL. */
const char *json_skip_plain(const char *p);
/* Where the value of the member at p begins, behind its key, which ends at *ret_end, and the colon; NULL: there is no
 * member. *ret_end is NULL where no string begins at p, or it has no end. */
const char *json_skip_key(const char *p, const char **ret_end);

/* The text of a member of the object that `text` is; false: it has none. For one small member: json_view_read() indexes
 * all of them. */
bool json_find_member(const char *text, const char *key, const char **ret, size_t *ret_length);

/* A value. Behind an object's part stand those of its members, and of their members if they are objects. */
struct json_part {
        const char *key, *text; /* the key without its quotes, as in the text; NULL: the root */
        size_t key_length, length;
        size_t span; /* parts, with this one */
};

/* The parts of a text, which must outlive them. One view may read many texts, one after another. */
struct json_view {
        struct json_part *parts; /* the first is the root */
        size_t n, size;
};

/* 0; -EBADMSG: the text is no JSON; -ENOMEM. */
int json_view_read(struct json_view *v, const char *text);
void json_view_deinit(struct json_view *v);

/* A member of an object; NULL where there is none, or no object. The key has no character that needs an escape. */
const struct json_part *json_part_get(const struct json_part *object, const char *key);
const struct json_part *json_part_get_n(const struct json_part *object, const char *key, size_t length);
/* Whether it is a string, and this one. */
bool json_part_is(const struct json_part *part, const char *word);
/* Values as json_as_double(), json_as_bool() and json_as_string() have them. NULL has none. False: it is of another
 * type, and *ret is left alone. */
bool json_part_double(const struct json_part *part, double *ret);
bool json_part_bool(const struct json_part *part, bool *ret);
/* malloc()ed. 0; -EINVAL: it is no string; -ENOMEM. */
int json_part_string(const struct json_part *part, char **ret);
