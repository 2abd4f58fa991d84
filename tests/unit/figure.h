/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FIGURE_H
#define IPCLAB_TESTS_FIGURE_H

/* Values from an agent's report, read by its tests. */

#include "schema/json/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The figure of an agent's JSON object; -1: it is not there. */
static inline double figure(const char *text, const char *key) {
        struct json *root;
        double v = -1;
        if (!text || json_parse(text, strlen(text), &root, NULL) < 0)
                return -1;
        const struct json *member = json_get(root, key);
        if (!member || json_as_double(member, &v) < 0)
                v = -1;
        json_free(root);
        return v;
}

/* The same of an exact one; false: it is not there. */
static inline bool number_in(const char *text, const char *key, int64_t *ret) {
        struct json *root;
        if (!text || json_parse(text, strlen(text), &root, NULL) < 0)
                return false;
        const struct json *member = json_get(root, key);
        bool found = member && json_as_i64(member, ret) == 0;
        json_free(root);
        return found;
}

/* The member's string, number or truth as text, in a buffer of the function's own; "" when it has none. */
static inline const char *text_in(const char *text, const char *key) {
        static char value[200];
        struct json *root;
        value[0] = '\0';
        if (!text || json_parse(text, strlen(text), &root, NULL) < 0)
                return value;
        const struct json *member = json_get(root, key);
        const char *word = NULL;
        int64_t number = 0;
        bool yes = false;
        if (member && json_as_string(member, &word) == 0)
                (void) snprintf(value, sizeof value, "%s", word);
        else if (member && json_as_i64(member, &number) == 0)
                (void) snprintf(value, sizeof value, "%" PRId64, number);
        else if (member && json_as_bool(member, &yes) == 0)
                (void) snprintf(value, sizeof value, "%s", yes ? "true" : "false");
        json_free(root);
        return value;
}

#endif
