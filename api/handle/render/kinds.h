/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What a run's samples do not carry themselves: the kind of their latencies, a word of the table of figures, which the
 * run's point determines, and the noise of their seconds, which its result has once it has ended. The struct caches the
 * last run, since samples are listed run by run.
 */

#include "api/handle/render/sample-noise.h"
#include "daemon/service/service.h"

struct kinds {
        int64_t run_id;
        const char *kind;
        char *point_json;
        struct sample_noise noise;
};

/* NULL: not known yet, see kinds_read(). */
const char *kinds_get(const struct kinds *k, int64_t run_id);
/* Reads the run, which may be gone: 0; -errno, and the refusal. */
int kinds_read(struct kinds *k, struct service *service, int64_t run_id, struct refusal *r);
void kinds_deinit(struct kinds *k);
