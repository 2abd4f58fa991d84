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
                double value = 0;
                enum figure_state state = figure_read(objects, f, &value);
                r = state == FIGURE_ABSENT ? -ENODATA : state == FIGURE_FEW ? -EDOM : 0;
                if (r == 0)
                        *ret = value;
        }
        json_view_deinit(&view);
        return r;
}
