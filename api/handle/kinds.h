/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_KINDS_H
#define IPCLAB_API_KINDS_H

/*
 * What the latencies of a run's samples are ("rtt" or "one_way"): a sample does not say, its run's point does.
 * Remembers the last run with its point, since samples come run by run. A visitor must not read other records while it
 * is being called, so it stops at a run that is not known, and its caller asks kinds_learn() and goes on.
 */

#include "daemon/service/service.h"

struct kinds {
        int64_t run_id;
        const char *kind;
        char *point_json;
};

/* NULL: not known yet. */
const char *kinds_get(const struct kinds *k, int64_t run_id);
int kinds_learn(struct kinds *k, struct service *service, int64_t run_id, struct refusal *r);
void kinds_deinit(struct kinds *k);

#endif
