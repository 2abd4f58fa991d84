/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_FIGURE_H
#define IPCLAB_TESTS_FIGURE_H

/* What an agent told, read by its tests. */

#include "schema/json.h"

#include <string.h>

/* The figure of an agent's JSON object; -1: it is not there. */
static double figure(const char *text, const char *key) {
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

#endif
