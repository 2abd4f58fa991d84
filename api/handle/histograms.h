/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_HISTOGRAMS_H
#define IPCLAB_API_HISTOGRAMS_H

/* The latencies of whole runs, put together from their samples. */

#include "daemon/service/service.h"

/* Adds all samples of a run. 0; negative errno, with *r: 404. */
int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r);

#endif
