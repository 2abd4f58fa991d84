/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_DISTURBANCE_JSON_H
#define IPCLAB_TESTS_DISTURBANCE_JSON_H

/* What a run's result says of its disturbances. */

#include "daemon/host/disturbance/disturbance.h"
#include "schema/json/json.h"
#include "tests/unit/check.h"

/* *ret: malloc()ed. */
static inline void json_of(const struct disturbance *d, char **ret) {
        struct json_writer j;
        json_writer_init(&j);
        json_object_begin(&j);
        disturbance_put(d, &j);
        json_object_end(&j);
        CHECK_INT(json_writer_steal(&j, ret, NULL), 0);
        json_writer_deinit(&j);
}

#endif
