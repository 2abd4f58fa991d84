/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_SHORTEN_H
#define IPCLAB_API_SHORTEN_H

/*
 * What a list or an event leaves out of a run. A run of a thousand threads has megabytes to say of each of them, twice
 * of where it was, and a list may hold a thousand runs; who wants to know asks for the one run.
 */

#include "api/http/text.h"

#include <stdint.h>

#define SHORTEN_THREADS_MAX 16u

/* Appends `json`, text of the daemon's own making, but for the members named "threads", "threads_together" and "pages"
 * that list more than SHORTEN_THREADS_MAX threads (of pages, four ranges for each), directly or by role: these are
 * null, and NAME_reason beside them says how many there are and where. */
void shorten_put(struct text *t, const char *json, int64_t run_id);

#endif
