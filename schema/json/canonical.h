/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one text of a JSON value, of which a digest can be taken: no white space, the members of an object in the order
 * of their names' bytes, each string with the fewest escapes, each number in its shortest form.
 *
 * Source: RFC 8785. Its order is that of UTF-16 units, which is the order of bytes for the names that are written here:
 * printable ASCII without quotes and backslashes. Another name is an error of the writer, -EBADMSG. Integers are exact
 * up to JSON_INTEGER_MAX, where RFC 8785 has the same digits.
 */

#include "schema/json/json.h"

/* The members of an object, sorted: their number, and in *ret an array of them that the caller frees. On failure 0, and
 * the writer has the error: -ENOMEM; -EBADMSG, a name as above. */
size_t json_sorted_members(struct json_writer *w, const struct json *object, const struct json ***ret);

/* The value as the next one under construction. */
void json_put_canonical(struct json_writer *w, const struct json *value);
