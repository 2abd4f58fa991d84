/* SPDX-License-Identifier: MIT */
#pragma once

/* A page of store_runs() as a list of copies: what the tests of the store and of the scheduler share. */

#include "daemon/store/store.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct listed_runs {
        struct run_record *items;
        size_t n, size;
        int error;
};

static inline char *listed_text(struct listed_runs *runs, const char *text) {
        char *copy = text ? strdup(text) : NULL;
        if (text && !copy)
                runs->error = -ENOMEM;
        return copy;
}

static inline bool list_run(void *userdata, const struct run_record *run) {
        struct listed_runs *runs = userdata;
        if (!util_grow(runs->items, runs->n, runs->size)) {
                runs->error = -ENOMEM;
                return false;
        }
        struct run_record copy = *run;
        char **texts[] = {&copy.point_json,  &copy.error,       &copy.flags_json,      &copy.agents_json,
                          &copy.result_json, &copy.probes_json, &copy.environment_json};
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                *texts[i] = listed_text(runs, *texts[i]);
        runs->items[runs->n++] = copy;
        return runs->error == 0;
}

static inline void listed_runs_free(struct run_record *runs, size_t n) {
        for (size_t i = 0; i < n; i++)
                run_record_deinit(&runs[i]);
        free(runs);
}

static inline int listed_runs(struct store *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
                              struct run_record **ret, size_t *ret_n) {
        struct listed_runs runs = {0};
        int r = store_runs(s, experiment_id, from_position, limit, list_run, &runs);
        r = r < 0 ? r : runs.error;
        if (r < 0) {
                listed_runs_free(runs.items, runs.n);
                return r;
        }
        *ret = runs.items;
        *ret_n = runs.n;
        return 0;
}
