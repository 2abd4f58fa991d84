/* SPDX-License-Identifier: MIT */
#pragma once

/* An experiment as the comparison needs it: its points, and of each done run the figures that are compared. */

#include "daemon/service/internal.h"
#include "schema/disputed.h"
#include "schema/figures.h"

struct compared_point {
        char *point_json;
        uint64_t hash;       /* of its text */
        struct point *point; /* if requested; NULL: a version with other axes wrote it, and its text is
                                all that is known */
        uint32_t runs, runs_failed, runs_noisy;
        uint32_t runs_disputed[DISPUTED_COUNT]; /* of the done ones, those with that flag */
        double *values; /* runs × n_figures (figures_compared()), in their order in time; NaN: the run has no such
                           figure */
        size_t n_figures;
        uint64_t few;       /* 1 << figure: a run has too few latencies for it, and none in `values` */
        uint64_t requested; /* 1 << figure: it follows from the rate that was requested, and none is in `values` */
        uint32_t *blocks;   /* of each run, from 1; 0: it is in none */
};

struct compared {
        struct experiment_record e;
        char *environment_json; /* of the first done run; NULL: none is done */
        struct compared_point *points;
        size_t n;
};

/* with_points: their texts are parsed, which takes a kilobyte each. 0; negative errno with *r: 404. */
int compared_load(struct service *s, int64_t experiment_id, bool with_points, struct compared *ret, struct refusal *r);
/* The environment of the last done run; NULL: none is done. */
int compared_last_environment(struct service *s, int64_t experiment_id, char **ret, struct refusal *r);
/* The runs whose environment is known to have changed (store_changed_runs()), and that of one of them. */
int compared_changed_runs(struct service *s, int64_t experiment_id, struct changed_run **ret, size_t *ret_n,
                          struct refusal *r);
int compared_run_environment(struct service *s, int64_t run_id, char **ret, struct refusal *r);
void compared_deinit(struct compared *st);
