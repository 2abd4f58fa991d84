/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_JSON_CHECK_H
#define IPCLAB_SCHEMA_JSON_CHECK_H

/* The checks for what cJSON accepts and json_parse() must not: of the text before cJSON parses it, and of its tree
 * after. */

#include "schema/json/json.h"

/* Strings, numbers, brackets and stray bytes. 0; -EINVAL with *e filled. *ret_at: how far the text is free of such
 * faults. */
int json_check_text(const char *text, size_t length, size_t *ret_at, struct json_error *e);

/* The fault at which cJSON stopped, about `at` bytes into a text that json_check_text() has passed so far: -EINVAL with
 * *e filled. */
int json_check_stopped(const char *text, size_t length, size_t at, struct json_error *e);

/* That no object has a key twice. 0; -EINVAL with *e filled; -ENOMEM. */
int json_check_keys(const struct json *root, struct json_error *e);

#endif
