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

/* The other role of a run, whose counters it has, too; NULL: it has one agent. */
static const char *other_role(const struct json *result, const char *role) {
        const struct json *counters = result_member(result, "counters");
        if (!counters || json_type(counters) != JSON_OBJECT)
                return NULL;
        for (const struct json *i = json_first(counters); i; i = json_next(i))
                if (strcmp(json_key(i), role) != 0)
                        return json_key(i);
        return NULL;
}

/* Runs of earlier versions halve round trips of open loops, too. */
const struct json *result_figure_object(enum figure f, const struct json *result) {
        const struct figure_group_term *group = &figure_groups[figure_terms[f].group];
        if (figure_terms[f].group == FIGURES_ONE_WAY && result_loop_is_open(result_word(result, "loop")))
                return NULL;
        const struct json *object = group->in_run ? result_member(result, group->in_run) : result;
        if (group->end == FIGURE_OF_RUN)
                return object;
        const char *role = result_word(result, "counted_by");
        if (role && group->end == FIGURE_OF_OTHER)
                role = other_role(result, role);
        return role ? result_member(object, role) : NULL;
}

bool result_figure(enum figure f, const struct json *result, double *ret) {
        const struct json *value = result_member(result_figure_object(f, result), figure_terms[f].name);
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
