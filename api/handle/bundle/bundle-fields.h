/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What goes into a bundle: the table of its fields, each with the form that its value must have. A field that has no
 * row stays out, and so does a value of another form: a bundle leaves its host, and names neither the host nor those
 * who work there. Text that the host or an agent made is taken where it is PLAIN; other text becomes "withheld".
 */

#include "schema/json/json.h"

enum bundle_form {
        BUNDLE_OUT,     /* stays out, where a row for all others would take it */
        BUNDLE_COUNT,   /* whole number of at least 0, true or false, null */
        BUNDLE_NUMBER,  /* any number, true or false, null */
        BUNDLE_NUMBERS, /* these, and arrays and objects of them at any depth; no text */
        BUNDLE_PLAIN,   /* these, or text of letters, digits, spaces and _.,:;()+-%|'": no path, no address */
        BUNDLE_TEXT,    /* these, or any text */
        BUNDLE_ERROR,   /* the word that an error begins with, before its colon */
        BUNDLE_RELEASE, /* a kernel's release, without the parts that a builder named */
        BUNDLE_CMDLINE, /* a kernel's command line: only the parameters of a table, none of which names an owner */
        BUNDLE_MAKE,    /* a hypervisor of a table */
        BUNDLE_ANY,     /* a value as it is: what a person posted, or points made of it */
        BUNDLE_OBJECT,  /* the members of another table */
        BUNDLE_IN_FORCE /* the settings that the table of results knows */
};

/* With a row for NAME goes NAME_reason, where it is PLAIN. A last row named "*" is of all other names of lower-case
 * letters, digits and underscores. Of an array, each element has the form. */
struct bundle_field {
        const char *name; /* NULL: the end */
        enum bundle_form form;
        const struct bundle_field *members; /* of BUNDLE_OBJECT */
};

/* A host's label, as a person gives one: in words, and as the JSON Schema of a parameter, which has BUNDLE_LABEL_MAX -
 * 1 characters behind the first. */
#define BUNDLE_LABEL_MAX 64u
#define BUNDLE_LABEL_WORDS "1 to %u letters, digits, spaces, _ . and -, no space first"
#define BUNDLE_LABEL_SCHEMA "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9_.-][A-Za-z0-9 _.-]{0,63}$\"}"
bool bundle_is_label(const char *text);

extern const struct bundle_field bundle_experiment[], bundle_row[], bundle_run[], bundle_topology[];

/* The members of the object that have rows, canonical (schema/json/canonical.h), as the next value under
 * construction. */
void bundle_put(struct json_writer *w, const struct json *object, const struct bundle_field *fields);
