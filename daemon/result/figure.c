/* SPDX-License-Identifier: MIT */

/* See figure.h. Called for the table of results, for `until`, and for what earlier runs tell of a point. */

#include "daemon/result/figure.h"

#include "schema/json/json.h"

#include <errno.h>
#include <string.h>

static const struct json *member_of(const struct json *object, const char *key) {
        return object && json_type(object) == JSON_OBJECT ? json_get(object, key) : NULL;
}

/* Runs of earlier versions halve round trips of open loops, too. */
static bool is_open(const struct json *result) {
        const struct json *loop = member_of(result, "loop");
        const char *word;
        return loop && json_as_string(loop, &word) == 0 && strcmp(word, "open") == 0;
}

const struct json *figure_object(enum figure f, const struct json *result) {
        const struct figure_group_term *group = &figure_groups[figure_terms[f].group];
        if (figure_terms[f].group == FIGURES_ONE_WAY && is_open(result))
                return NULL;
        const struct json *object = group->in_run ? member_of(result, group->in_run) : result;
        if (!group->by_role)
                return object;
        const struct json *counted_by = member_of(result, "counted_by");
        const char *role;
        return counted_by && json_as_string(counted_by, &role) == 0 ? member_of(object, role) : NULL;
}

int figure_of_run(const char *result_json, enum figure f, double *ret) {
        struct json *result;
        int r = json_parse(result_json, strlen(result_json), &result, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        const struct json *value = member_of(figure_object(f, result), figure_terms[f].name);
        r = value && json_as_double(value, ret) == 0 ? 0 : -ENODATA;
        json_free(result);
        return r;
}
