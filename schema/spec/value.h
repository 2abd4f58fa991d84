/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A value that a spec may give: a row with its name, its type, its range, and where it lies in the struct that holds
 * it. Reading, writing and the JSON Schema all follow the row. The axes (axes.h), the other fields (fields.h), the
 * transport_options, `require` and `tune` are tables of such rows.
 */

#include "schema/json/json.h"
#include "schema/refusal.h"
#include "schema/terms.h"

struct value_type;

struct value {
        const char *name;
        const char *description; /* for the JSON Schema, which adds the transports that the value is for */
        const struct value_type *type;
        size_t offset, size;   /* in the struct that holds it */
        uint64_t least, most;  /* of a number; characters of a name */
        uint64_t least_posted; /* of a number of which earlier versions stored less; 0: least */
        const char *unit;      /* of a number, in sentences; may be NULL */
        const struct vocabulary *words;
        const struct value_table *members; /* of an object */
        const void *standard;              /* what holds where the field is not given; NULL: there is no such value */
};

/* The rest of a row after its description: its type, offset and size. */
#define VALUE(type_of_value, holder, member)                                                                           \
        &type_of_value, .offset = offsetof(holder, member), .size = sizeof(((holder *) NULL)->member)

struct value_type {
        /* Into the value itself, not the struct that holds it. 0; -EINVAL with *r. */
        int (*read)(const struct value *v, const struct json *json, const char *pointer, void *ret, struct refusal *r);
        void (*write)(const struct value *v, struct json_writer *w, const void *value);
        bool (*equal)(const struct value *v, const void *a, const void *b);
        /* The members of its JSON Schema, into an open object. */
        void (*describe)(const struct value *v, struct json_writer *w);
};

extern const struct value_type value_number;       /* uint32_t or uint64_t */
extern const struct value_type value_power_of_two; /* uint64_t */
extern const struct value_type value_real;         /* double; its range is in millionths */
extern const struct value_type value_seconds;      /* uint64_t, in nanoseconds, as its range is */
extern const struct value_type value_word;         /* an enum */
extern const struct value_type value_toggle;       /* enum toggle */
extern const struct value_type value_flag;         /* bool */
extern const struct value_type value_object;       /* a struct whose members a table has */
extern const struct value_type value_name;         /* char [most + 1]: a-z, 0-9, _ and - */

/* For a type that differs from value_name in how it is read. */
bool value_same_bytes(const struct value *v, const void *a, const void *b);
void value_name_write(const struct value *v, struct json_writer *w, const void *value);
void value_name_describe(const struct value *v, struct json_writer *w);

/* Rows that together are one object of optional members. Each row begins with a struct value. A member that is not
 * given is all zero bytes. */
struct value_table {
        const void *rows;
        size_t n, stride;
        unsigned (*transports)(size_t i); /* that have a use for row i, as bits; NULL: all */
};

#define VALUE_ROWS(table) .rows = (table), .n = ELEMENTS(table), .stride = sizeof((table)[0])

/* NULL where none has the name. */
const struct value *value_find(const struct value_table *t, const char *name);
const struct value *value_at(const struct value_table *t, size_t i);
bool value_is_given(const struct value *v, const void *holder);
void value_drop(const struct value *v, void *holder);

/* *holder is zeroed before. 0; -EINVAL with *r: no object, an unknown member, a bad value. */
int values_read(const struct value_table *t, const struct json *object, const char *pointer, void *holder,
                struct refusal *r);
/* Gives those that are not given their standard value, where they have one. */
void values_fill(const struct value_table *t, void *holder);
/* Write those that are given, as members of an open object; and as an object. */
void values_put(const struct value_table *t, struct json_writer *w, const void *holder);
void values_write(const struct value_table *t, struct json_writer *w, const void *holder);
bool values_any(const struct value_table *t, const void *holder);
bool values_equal(const struct value_table *t, const void *a, const void *b);
/* "type", "additionalProperties" and "properties" of such an object, into an open one. more: adds properties that are
 * no rows of the table; may be NULL. */
void values_describe(const struct value_table *t, void (*more)(struct json_writer *w), struct json_writer *w);

/* The property of a JSON Schema that a value is, into the open object of the properties. */
void value_describe(const struct value *v, unsigned transports, struct json_writer *w);

/* Member "description" of its JSON Schema. transports: those that it is for, as bits, which the text names unless they
 * are all or none. */
void value_put_description(const struct value *v, unsigned transports, struct json_writer *w);

#define WORDS_LIST_MAX 200u
/* "pipe, fifo and tcp": the words that the bits stand for. */
void words_list(char list[WORDS_LIST_MAX], const struct vocabulary *words, unsigned bits);
/* Writes an array of the words that bits has, unless it has all or none. */
void words_put_some(struct json_writer *w, const char *key, const struct vocabulary *words, unsigned bits);

/* Whether bytes from elsewhere are a value that a spec may give: of a number, word, toggle or name. 0; -EINVAL with a
 * sentence. */
int value_check(const struct value *v, const void *value, char *ret_detail, size_t size);

/* Helpers for other readers of a spec. `what` names the field in the sentence. 0; -EINVAL with *r. */
int read_integer(const struct json *json, const char *pointer, const char *what, uint64_t least, uint64_t most,
                 uint64_t *ret, struct refusal *r);
int read_word(const struct json *json, const char *pointer, const char *what, const struct vocabulary *words,
              unsigned *ret, struct refusal *r);
int refuse_type(const struct json *json, const char *pointer, const char *wanted, struct refusal *r);
/* The one of `n` names that `word` was probably meant to be, or NULL when none is close. */
const char *suggest(const char *word, const char *const *names, size_t n);
/* Refuses an unknown member, and suggests the one of `names` that was probably meant. */
int refuse_member(const struct json *member, const char *parent, const char *const *names, size_t n, struct refusal *r);
