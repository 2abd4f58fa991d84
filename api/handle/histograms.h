/* SPDX-License-Identifier: MIT */
#pragma once

/* The latencies of whole runs, put together from their samples. */

#include "daemon/service/service.h"

/* Adds all samples of a run. 0; negative errno, with *r: 404. */
int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r);
/* How far a row is that is put together in steps; zeros at its beginning. */
struct histogram_progress {
        uint32_t runs, run;  /* done ones of the row; the one that is read */
        int64_t first, last; /* their ids: others are another row's, or have ended meanwhile */
        int64_t after;       /* change of the run's sample that was added last */
};
/* The same in steps of a fraction of a second: 1 while there are more. A row whose runs are others than those it began
 * with is put together at once, as it would have no end while runs end faster than they are read. */
int histograms_add_some(struct service *s, const struct result_record *row, struct histogram_progress *at,
                        struct histogram *ret, struct refusal *r);
/* Makes *ret that of all done runs of a row of results. 0; negative errno, with *r. */
int histograms_of_row(struct service *s, const struct result_record *row, struct histogram *ret, struct refusal *r);
