/* SPDX-License-Identifier: MIT */
#pragma once

/* Growing text with a sticky error: append without checks, and check `error` once. */

#include "schema/json/json.h"

#include <stdbool.h>
#include <stddef.h>

struct text {
        char *data; /* NUL-terminated once anything was appended */
        size_t length, size;
        int error;
};

void text_deinit(struct text *t);
void text_clear(struct text *t);                /* keeps the memory */
void text_reserve(struct text *t, size_t size); /* allocates as much, if it has less */
void text_append(struct text *t, const char *data, size_t length);
void text_puts(struct text *t, const char *s);
void text_printf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Four significant digits, or all of an integral part; without an exponent or zeros at its end. */
void text_number(struct text *t, double value);
/* A CSV field (RFC 4180), quoted where it must be; NULL is an empty field. The caller puts commas and line ends. */
void text_csv(struct text *t, const char *field);
/* Character data of HTML, or the value of an attribute in quotes: no character of it begins markup. NULL is empty. */
void text_html(struct text *t, const char *s);
/* JSON as the content of an HTML script element, which no string in it can end: '<' is written as an escape, as JSON
 * has it in strings alone. */
void text_script_json(struct text *t, const char *json);

/* A JSON list in the making: before each item, and after the last. `next` is its cursor, "" for none. */
void text_item(struct text *t, bool *begun);
void text_list_end(struct text *t, bool begun, const char *next);
/* Appends what the writer has made; the writer's error when it had one, and nothing of what it made. A writer that
 * text_json_begin() has made writes at the text's end, without a copy; the text has nothing until text_json() ends
 * that, which must be. */
void text_json_begin(struct text *t, struct json_writer *w);
void text_json(struct text *t, struct json_writer *w);
