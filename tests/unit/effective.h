/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_EFFECTIVE_H
#define IPCLAB_TESTS_EFFECTIVE_H

/* Settings in force from and to the text that a stored run has of them. */

#include "schema/json/json.h"
#include "schema/protocol/effective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void effective_freep(struct effective **e) {
        free(*e);
}
#define EFFECTIVE __attribute__((cleanup(effective_freep))) struct effective

static inline void effective_take(struct effective *e, const char *key, const struct json *value) {
        const char *text = "";
        size_t length = strlen(key);
        bool yes = false;
        double real = 0;
        int64_t number = 0;
        enum setting s = 0;
        bool reason = length > 7 && strcmp(key + length - 7, "_reason") == 0;
        if (reason)
                length -= 7;
        while (s < SETTING_COUNT &&
               (strncmp(setting_terms[s].name, key, length) != 0 || setting_terms[s].name[length] != '\0'))
                s++;
        if (s == SETTING_COUNT) {
                fprintf(stderr, "%s is no setting\n", key);
                abort();
        }
        if (json_type(value) == JSON_NULL)
                effective_add_null(e, s);
        else if (json_as_string(value, &text) == 0)
                (reason ? effective_add_reason : effective_add_text)(e, s, text);
        else if (json_as_bool(value, &yes) == 0)
                effective_add_bool(e, s, yes);
        else if (setting_terms[s].kind == EFFECTIVE_REAL && json_as_double(value, &real) == 0)
                effective_add_real(e, s, real);
        else if (json_as_i64(value, &number) == 0)
                effective_add_number(e, s, (uint64_t) number);
}

/* The settings in a text that has no groups of them. */
static inline struct effective *effective_of(const char *text) {
        struct effective *e = effective_new();
        struct json *root = NULL;
        if (!e || json_parse(text, strlen(text), &root, NULL) < 0)
                abort();
        for (const struct json *i = json_first(root); i; i = json_next(i))
                effective_take(e, json_key(i), i);
        json_free(root);
        return e;
}

static inline char *effective_text(const struct effective *e) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        effective_put(e, &w);
        (void) json_writer_steal(&w, &text, NULL); /* NULL where there is no memory */
        json_writer_deinit(&w);
        return text;
}

#endif
