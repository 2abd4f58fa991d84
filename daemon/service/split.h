/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Into how many runs of how many seconds the time of a point's runs is best divided, by the seconds of its earlier runs
 * (analysis/statistics/levels.h).
 */

#include "daemon/store/store.h"
#include "schema/json/json.h"

#define EARLIER_RUNS_MIN 6 /* fewer show too little of the scatter; an interval needs as many */

#define EARLIER_RUNS_MAX 60 /* of a point that are read: more show little more */

/* What one plan may still read of earlier runs, in rows of samples: 250 000 take a second, and all that 16 384 points
 * can have would take ten minutes. */
struct earlier_budget {
        size_t rows_left;
};
#define EARLIER_ROWS_MAX 250000
#define EARLIER_ROWS_OF_A_RESULT 20 /* reading the result of one run costs as much as reading this many rows */
void earlier_budget_take(struct earlier_budget *b, size_t rows);

/* The time of a point's runs as planned. */
struct split_plan {
        uint32_t runs;
        double window_seconds;   /* 0: it ends by messages, and cannot be divided by time */
        double overhead_seconds; /* of each run, beside its window */
        bool open_loop;          /* its seconds have the requested rate */
};

/* Writes the members "split", and "split_reason" where that is null. earlier: of experiment_id, NULL where there are
 * none. 0; negative errno of the store, or -ENOMEM. */
int split_put(struct json_writer *w, struct store *store, const struct split_plan *plan,
              const struct point_record *earlier, int64_t experiment_id, struct earlier_budget *budget);
/* The same without any, for this reason. */
int split_put_null(struct json_writer *w, const char *reason);
