/* SPDX-License-Identifier: MIT */

/* See the header. The table of results, the comparison, `until` and the plan's estimate from earlier runs read results
 * through this file. */

#include "daemon/result/figure.h"

#include "schema/json/view.h"

#include <errno.h>
#include <string.h>

bool result_loop_is_open(const char *loop) {
        return loop && strcmp(loop, "open") == 0;
}

int figure_of_run(const char *result_json, enum figure f, double *ret) {
        struct json_view view = {0};
        const struct json_part *objects[FIGURES_GROUPS];
        int r = json_view_read(&view, result_json);
        if (r == 0) {
                figure_objects(view.parts, objects);
                r = json_part_double(json_part_get(objects[figure_terms[f].group], figure_terms[f].name), ret)
                            ? 0
                            : -ENODATA;
        }
        json_view_deinit(&view);
        return r;
}
