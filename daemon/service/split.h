/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_SPLIT_H
#define IPCLAB_DAEMON_SERVICE_SPLIT_H

/*
 * Into how many runs of how many seconds the time of a point's runs is best divided, by the seconds of its earlier runs
 * (analysis/levels.h).
 */

#include "daemon/store/store.h"
#include "schema/json/json.h"

#define EARLIER_RUNS_MIN 6 /* fewer say too little of the scatter; an interval needs as many */

/* The time of a point's runs as planned. */
struct split_plan {
        uint32_t runs;
        double window_seconds;   /* 0: it ends by messages, and cannot be divided by time */
        double overhead_seconds; /* of each run, beside its window */
};

/* Writes the members "split", and "split_reason" where that is null. earlier: of experiment_id, NULL where there are
 * none. 0; negative errno of the store, or -ENOMEM. */
int split_put(struct json_writer *w, struct store *store, const struct split_plan *plan,
              const struct point_record *earlier, int64_t experiment_id);

#endif
