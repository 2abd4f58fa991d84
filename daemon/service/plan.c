/* SPDX-License-Identifier: MIT */

/*
 * Describes what a submission would become, without storing it: the points, the runs, their duration, the skipped
 * points, and by earlier runs of this host how many repetitions are enough and how their time is best divided.
 */

#include "daemon/analysis/compare.h"
#include "daemon/result/figure.h"
#include "daemon/service/service.h"
#include "daemon/service/split.h"
#include "daemon/service/submission.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>

#define DIFFERENCE 0.05

/* Standard deviation over mean of the earlier runs' figure. */
struct variation {
        int64_t experiment_id;
        enum figure figure;
        uint32_t n;
        double value;
};

static double variation_of(const double *values, size_t n) {
        double mean = 0, squares = 0;
        for (size_t i = 0; i < n; i++)
                mean += values[i] / (double) n;
        for (size_t i = 0; i < n; i++)
                squares += (values[i] - mean) * (values[i] - mean);
        return sqrt(squares / (double) (n - 1)) / mean;
}

/* -ENOENT: too few of the runs have the figure. */
static int read_figures(const struct point_record *p, struct variation *v) {
        _cleanup_free_ double *values = reallocarray(NULL, p->n_runs + 1, sizeof(*values));
        if (!values)
                return -ENOMEM;
        size_t n = 0;
        for (size_t i = 0; i < p->n_runs; i++) {
                int r = p->runs[i].result_json ? figure_of_run(p->runs[i].result_json, v->figure, &values[n])
                                               : -ENODATA;
                if (r < 0 && r != -ENODATA)
                        return r;
                n += r == 0 && values[n] > 0;
        }
        if (n < EARLIER_RUNS_MIN)
                return -ENOENT;
        v->n = (uint32_t) n;
        v->value = variation_of(values, n);
        return 0;
}

static void put_not_known(struct json_writer *w, const char *reason) {
        json_member_null(w, "enough");
        json_member_string(w, "enough_reason", reason);
}

/* Of n_comparisons in all, whose errors are bounded together. */
static void put_enough(struct json_writer *w, const struct variation *v, size_t n_comparisons) {
        json_put_key(w, "enough");
        json_object_begin(w);
        json_member_u64(w, "repetitions", compare_runs_for(v->value, DIFFERENCE, false, n_comparisons));
        json_member_u64(w, "comparisons", n_comparisons);
        json_member_double(w, "difference", DIFFERENCE);
        json_member_double(w, "power", COMPARE_POWER);
        json_member_string(w, "figure", figure_terms[v->figure].name);
        json_member_double(w, "variation", v->value);
        json_member_i64(w, "experiment_id", v->experiment_id);
        json_member_u64(w, "runs", v->n);
        json_object_end(w);
}

static int put_earlier(struct json_writer *w, struct store *store, const struct submission *sub, const struct point *p,
                       const char *point_json, struct earlier_budget *budget) {
        struct variation v = {.figure = workload_has_transport(p->workload) ? FIGURE_THROUGHPUT : FIGURE_COST};
        _cleanup_(point_record_deinit) struct point_record earlier = {0};
        if (budget->rows_left == 0) {
                static const char spent[] =
                        "the points before this one have as many earlier runs as one plan reads: plan "
                        "fewer points at once";
                put_not_known(w, spent);
                return split_put_null(w, spent);
        }
        int r = store_earlier_runs(store, point_json, sub->spec->merged_json, EARLIER_RUNS_MIN, EARLIER_RUNS_MAX,
                                   &v.experiment_id, &earlier);
        bool any = r == 0;
        if (any)
                r = read_figures(&earlier, &v);
        if (r < 0 && r != -ENOENT)
                return r;
        earlier_budget_take(budget, earlier.n_runs * EARLIER_ROWS_OF_A_RESULT);
        if (r == 0)
                put_enough(w, &v, sub->points.n_points > 2 ? sub->points.n_points - 1 : 1);
        else
                put_not_known(w,
                              "no experiment of this host has " UTIL_TEXT(
                                      EARLIER_RUNS_MIN) " done runs of this point that were measured in the same way");
        double window = (double) sub->spec->end.duration_ns / (double) NSEC_PER_SEC;
        const struct split_plan plan = {
                .runs = sub->repetitions,
                .window_seconds = window,
                .overhead_seconds = (double) submission_estimate(sub->spec, p) / (double) NSEC_PER_SEC - window,
        };
        return split_put(w, store, &plan, any ? &earlier : NULL, v.experiment_id, budget);
}

static int put_point(struct json_writer *w, struct store *store, const struct submission *sub, const struct point *p,
                     struct earlier_budget *budget) {
        _cleanup_free_ char *json = point_to_json(p);
        if (!json)
                return -ENOMEM;
        double seconds = (double) submission_estimate(sub->spec, p) * sub->repetitions / (double) NSEC_PER_SEC;
        json_object_begin(w);
        json_member_raw(w, "point", json);
        json_member_u64(w, "runs", sub->repetitions);
        json_member_double(w, "estimated_seconds", seconds);
        int r = put_earlier(w, store, sub, p, json, budget);
        json_object_end(w);
        return r;
}

static int put_plan(struct json_writer *w, struct store *store, const struct submission *sub) {
        const struct point_list *list = &sub->points;
        const struct spec_until *until = &sub->spec->until;
        uint32_t most = until->relative_ci > 0 ? until->max_repetitions : sub->repetitions;
        if (sub->spec->search.latency_p99_below_us > 0)
                most *= 1 + SPEC_SEARCH_RATES_MAX;
        double block = submission_block_seconds(sub), longest = block * most;
        if (until->budget_seconds > 0 && longest > until->budget_seconds)
                longest = fmax(until->budget_seconds, block * sub->repetitions);
        json_object_begin(w);
        json_member_u64(w, "runs", (uint64_t) list->n_points * sub->repetitions);
        json_member_double(w, "estimated_seconds", block * sub->repetitions);
        json_member_u64(w, "runs_at_most", (uint64_t) list->n_points * most);
        json_member_double(w, "estimated_seconds_at_most", longest);
        json_put_key(w, "points");
        json_array_begin(w);
        struct earlier_budget budget = {.rows_left = EARLIER_ROWS_MAX};
        int r = 0;
        for (size_t i = 0; r == 0 && i < list->n_points; i++)
                r = put_point(w, store, sub, &list->points[i], &budget);
        json_array_end(w);
        json_member_raw(w, "skipped", sub->skipped_json);
        json_member_raw(w, "effective_spec", sub->spec->merged_json);
        json_object_end(w);
        return r;
}

int service_plan(struct service *s, const char *body, size_t length, const char *idempotency_key, char **ret,
                 struct refusal *r) {
        _cleanup_(submission_freep) struct submission *sub = NULL;
        struct reader *reader;
        int error = idempotency_key ? idempotency_check(idempotency_key, r) : 0;
        if (error == 0)
                error = submission_new(s, body, length, NULL, &sub, r);
        if (error == 0)
                error = submission_prepare(s, sub, r);
        if (error == 0)
                error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        error = put_plan(&w, reader->store, sub);
        service_reader_put(s, reader);
        if (error == 0)
                error = json_writer_steal(&w, ret, NULL);
        return error < 0 ? service_fail(s, r, error, "planning the experiment", 0) : 0;
}
