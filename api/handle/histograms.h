/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_HISTOGRAMS_H
#define IPCLAB_API_HISTOGRAMS_H

/* The latencies of whole runs, put together from their samples. */

#include "daemon/service/service.h"

/* Adds all samples of a run. 0; negative errno, with *r: 404. */
int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r);
/* Makes *ret that of all done runs of a row of results. 0; negative errno, with *r. */
int histograms_of_row(struct service *s, const struct result_record *row, struct histogram *ret, struct refusal *r);

#endif
