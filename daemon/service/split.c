/* SPDX-License-Identifier: MIT */

#include "daemon/service/split.h"
#include "daemon/analysis/statistics/levels.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How much longer than the earlier ones a window may be: how far seconds scatter that lie farther apart was not seen.
 */
#define LONGER_MAX 4

struct seconds {
        double *values;  /* of one run after the other */
        size_t *lengths; /* of each run with two seconds or more */
        size_t n_values, n_runs, longest;
};

static void seconds_deinit(struct seconds *s) {
        free(s->values);
        free(s->lengths);
}

static int add_run(struct seconds *s, const double *rates, size_t n) {
        if (!util_resize(s->values, s->n_values + n))
                return -ENOMEM;
        memcpy(&s->values[s->n_values], rates, n * sizeof(*rates));
        s->n_values += n;
        s->lengths[s->n_runs++] = n;
        s->longest = n > s->longest ? n : s->longest;
        return 0;
}

void earlier_budget_take(struct earlier_budget *b, size_t rows) {
        b->rows_left -= rows < b->rows_left ? rows : b->rows_left;
}

static int read_seconds(struct store *store, const struct point_record *earlier, struct earlier_budget *budget,
                        struct seconds *s) {
        s->lengths = reallocarray(NULL, earlier->n_runs + 1, sizeof(*s->lengths));
        if (!s->lengths)
                return -ENOMEM;
        int r = 0;
        for (size_t i = 0; r == 0 && i < earlier->n_runs; i++) {
                _cleanup_free_ double *rates = NULL;
                size_t n = 0, rows = 0;
                r = store_run_rates(store, earlier->runs[i].id, &rates, &n, &rows);
                earlier_budget_take(budget, rows);
                if (r == 0 && n >= 2)
                        r = add_run(s, rates, n);
        }
        return r;
}

int split_put_null(struct json_writer *w, const char *reason) {
        json_member_null(w, "split");
        json_member_string(w, "split_reason", reason);
        return 0;
}

static void put_plan(struct json_writer *w, const struct levels *l, const struct levels_plan *best,
                     const struct split_plan *plan, int64_t experiment_id) {
        json_member_object(w, "split");
        json_member_u64(w, "repetitions", best->runs);
        json_member_u64(w, "duration_seconds", best->seconds_per_run);
        json_member_double(w, "relative_error", best->relative_error);
        json_member_double(w, "relative_error_as_planned", levels_error(l, plan->runs, plan->window_seconds));
        json_member_double(w, "between_runs", sqrt(l->between) / l->mean);
        json_member_double(w, "between_seconds", sqrt(l->within) / l->mean);
        json_member_i64(w, "experiment_id", experiment_id);
        json_member_u64(w, "runs", l->n_runs);
        json_member_u64(w, "seconds", l->n_values);
        json_object_end(w);
}

int split_put(struct json_writer *w, struct store *store, const struct split_plan *plan,
              const struct point_record *earlier, int64_t experiment_id, struct earlier_budget *budget) {
        if (!(plan->window_seconds > 0))
                return split_put_null(w, "the window ends after a number of messages, not after a time");
        if (plan->open_loop)
                return split_put_null(
                        w, "messages per second of an open loop are the rate that was requested, and do not show how "
                           "its runs and their seconds scatter");
        if (!earlier)
                return split_put_null(w, "no earlier runs of this point show how its runs and their seconds scatter");
        _cleanup_(seconds_deinit) struct seconds s = {0};
        struct levels l;
        struct levels_plan best;
        int r = read_seconds(store, earlier, budget, &s);
        if (r < 0)
                return r;
        if (s.n_runs < EARLIER_RUNS_MIN || levels_of(s.values, s.lengths, s.n_runs, &l) < 0 || !(l.mean > 0))
                return split_put_null(
                        w, "fewer than " UTIL_TEXT(EARLIER_RUNS_MIN) " of the earlier runs have two whole seconds");
        const struct levels_budget time = {
                .seconds = plan->runs * (plan->window_seconds + plan->overhead_seconds),
                .overhead_seconds = plan->overhead_seconds,
                .runs_min = EARLIER_RUNS_MIN,
                .window_max = (uint32_t) s.longest * LONGER_MAX,
        };
        r = levels_plan(&l, &time, &best);
        if (r == -ERANGE)
                return split_put_null(
                        w, "the time of these runs is too short for " UTIL_TEXT(EARLIER_RUNS_MIN) " runs of a second");
        if (r == 0)
                put_plan(w, &l, &best, plan, experiment_id);
        return r;
}
