/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Transports that this host cannot run, as their runs have shown: all runs of a point with the default options have
 * failed in an experiment, FAILING_RUNS_LEAST of them or more, on the machine as it is now: the same boot, kernel,
 * settings, limits and build. What is known before a run is refused by the admission and has no runs. The advice does
 * not propose such runs again and again.
 */

#include "daemon/analysis/advice.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"

#define FAILING_RUNS_LEAST 3u      /* one or two may be an accident */
#define FAILING_EXPERIMENTS_MAX 32 /* the newest with a failed run: each is read */
#define FAILING_POINTS_MAX 4096u   /* that are read of these in all, those of the newest first: some milliseconds */

/* The machine's state as it is now, by its environment and this build. malloc()ed. -EBADMSG: no object; -ENOMEM. */
struct json;
int failing_state_now(struct service *s, const struct json *environment, char **ret);

/* Experiments that cannot be read, as they are damaged or of another version. */
struct failing_unreadable {
        int64_t ids[FAILING_EXPERIMENTS_MAX];
        size_t n;
};

/* Newest first, each transport once; *ret has room for TRANSPORT_COUNT. `state` is the machine's now. */
int failing_list(struct service *s, const struct advice_question *q, const char *state, struct failing_transport *ret,
                 size_t *ret_n, struct failing_unreadable *ret_unreadable, struct refusal *r);
