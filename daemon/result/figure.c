/* SPDX-License-Identifier: MIT */

/* See the header. The table of results, the comparison, `until` and what earlier runs tell of a point read runs through
 * this file. */

#include "daemon/result/figure.h"

#include <errno.h>
#include <string.h>

const struct json *result_member(const struct json *object, const char *key) {
        return object && json_type(object) == JSON_OBJECT ? json_get(object, key) : NULL;
}

const char *result_word(const struct json *object, const char *key) {
        const struct json *member = result_member(object, key);
        const char *s;
        return member && json_as_string(member, &s) == 0 ? s : NULL;
}

bool result_loop_is_open(const char *loop) {
        return loop && strcmp(loop, "open") == 0;
}

bool result_figure(enum figure f, const struct json *result, double *ret) {
        const struct json *value = result_member(figure_object(f, result), figure_terms[f].name);
        return value && json_as_double(value, ret) == 0;
}

int figure_of_run(const char *result_json, enum figure f, double *ret) {
        struct json *result;
        int r = json_parse(result_json, strlen(result_json), &result, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        r = result_figure(f, result, ret) ? 0 : -ENODATA;
        json_free(result);
        return r;
}
