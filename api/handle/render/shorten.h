/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shortens a run for a list or an event. A run of a thousand threads has megabytes of figures and proofs of them, and a
 * list may hold a thousand runs; GET /runs/{id} has them in full.
 */

#include "api/http/text.h"

#include <stdbool.h>
#include <stdint.h>

#define SHORTEN_THREADS_MAX 16u

/* Whether a run of the point may be too long for a list: it has more than SHORTEN_THREADS_MAX threads, or the point
 * does not show how many. Nearly no run is, and their texts need not be walked over. */
bool shorten_may_apply(const char *point_json);

/* Puts `json`, text of the daemon's own making, into *t, which is empty, without the members named "threads",
 * "threads_together", "others" and "pages" that list more than SHORTEN_THREADS_MAX threads (of pages, four ranges for
 * each), directly or by role: these are null, and NAME_reason beside them has their number and the path that has them.
 * *t stays empty where there is none of them, as in nearly every run: the text is as short as it can be. 0; -EBADMSG: a
 * value has no end; -ENOMEM. */
int shorten_put(struct text *t, const char *json, int64_t run_id);
