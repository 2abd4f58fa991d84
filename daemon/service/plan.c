/* SPDX-License-Identifier: MIT */

/*
 * Describes what a submission would become, without storing it: the points, the runs, their duration, the skipped
 * points, and by earlier runs of this host how many repetitions are enough and how their time is best divided.
 *
 * The submission is not kept: of each point, what is written of it takes a fraction of its memory.
 */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/findings/findings.h"
#include "daemon/analysis/statistics/order.h"
#include "daemon/result/figure.h"
#include "daemon/service/service.h"
#include "daemon/service/split.h"
#include "daemon/service/submission.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define DIFFERENCE 0.05

struct planned_point {
        size_t at; /* of its JSON in `text`, which a NUL ends */
        enum figure figure;
        uint64_t estimate_ns; /* of a run */
        bool open_loop;
};

struct plan_points {
        struct planned_point *items;
        char *text;
        uint32_t repetitions;
        double window_seconds;
        size_t n_comparisons; /* of the findings, at most; at least 1 */
        bool in_blocks;       /* runs are compared in pairs */
        struct earlier_budget budget;
};

/* Standard deviation over mean of the earlier runs' figure. */
struct variation {
        int64_t experiment_id;
        enum figure figure;
        uint32_t n;
        double value;
};

/* The figure by which the point's repetitions are planned: that of `until`, else the one that is judged first. Of an
 * open loop that is never the throughput, which was requested. */
static enum figure figure_of(const struct spec *spec, const struct point *p) {
        bool open = spec_point_rate(spec, p) > 0;
        if (spec->until.relative_ci > 0)
                return until_figure(spec->until.figure);
        if (!workload_has_transport(p->workload))
                return FIGURE_COST;
        if (p->workload == WORKLOAD_PINGPONG || (open && !spec_latency_missing(spec, p)))
                return FIGURE_LATENCY_P50;
        return open ? FIGURE_CPU_PER_MESSAGE : FIGURE_THROUGHPUT;
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
                if (r < 0 && r != -ENODATA && r != -EDOM)
                        return r;
                n += r == 0 && values[n] > 0;
        }
        if (n < EARLIER_RUNS_MIN)
                return -ENOENT;
        double mean, variance = order_variance(values, n, &mean);
        v->n = (uint32_t) n;
        v->value = sqrt(variance) / mean;
        return 0;
}

static void put_not_known(struct json_writer *w, const char *reason) {
        json_member_null(w, "enough");
        json_member_string(w, "enough_reason", reason);
}

/* The runs that are enough for all comparisons of the findings, whose errors are bounded together. */
static void put_enough(struct json_writer *w, const struct variation *v, const struct plan_points *all) {
        const uint32_t runs = compare_runs_for(v->value, DIFFERENCE, false, all->n_comparisons);
        const uint32_t most = comparison_runs_most(all->in_blocks);
        char name[64], reason[96];
        figure_name(v->figure, name, sizeof(name));
        json_member_object(w, "enough");
        if (runs <= most) {
                json_member_u64(w, "repetitions", runs);
        } else {
                (void) snprintf(reason, sizeof(reason),
                                "it would take more than the %u runs of each that take part in a comparison", most);
                json_member_null(w, "repetitions");
                json_member_string(w, "repetitions_reason", reason);
        }
        json_member_u64(w, "comparisons", all->n_comparisons);
        json_member_double(w, "difference", DIFFERENCE);
        json_member_double(w, "power", COMPARE_POWER);
        json_member_string(w, "figure", name);
        json_member_double(w, "variation", v->value);
        json_member_i64(w, "experiment_id", v->experiment_id);
        json_member_u64(w, "runs", v->n);
        json_object_end(w);
}

static int put_earlier(struct json_writer *w, struct store *store, struct plan *plan, const struct planned_point *p) {
        struct plan_points *all = plan->points;
        struct variation v = {.figure = p->figure};
        _cleanup_(point_record_deinit) struct point_record earlier = {0};
        if (all->budget.rows_left == 0) {
                static const char spent[] =
                        "the points before this one have as many earlier runs as one plan reads: plan "
                        "fewer points at once";
                put_not_known(w, spent);
                return split_put_null(w, spent);
        }
        int r = store_earlier_runs(store, all->text + p->at, plan->effective_json, EARLIER_RUNS_MIN, EARLIER_RUNS_MAX,
                                   &v.experiment_id, &earlier);
        bool any = r == 0;
        if (any)
                r = read_figures(&earlier, &v);
        if (r < 0 && r != -ENOENT)
                return r;
        earlier_budget_take(&all->budget, earlier.n_runs * EARLIER_ROWS_OF_A_RESULT);
        if (r == 0)
                put_enough(w, &v, all);
        else
                put_not_known(w,
                              "no experiment of this host has " UTIL_TEXT(
                                      EARLIER_RUNS_MIN) " done runs of this point that were measured in the same way");
        const struct split_plan split = {
                .runs = all->repetitions,
                .window_seconds = all->window_seconds,
                .overhead_seconds = (double) p->estimate_ns / (double) NSEC_PER_SEC - all->window_seconds,
                .open_loop = p->open_loop,
        };
        return split_put(w, store, &split, any ? &earlier : NULL, v.experiment_id, &all->budget);
}

static int put_point(struct json_writer *w, struct store *store, struct plan *plan, const struct planned_point *p) {
        uint32_t runs = plan->points->repetitions;
        json_object_begin(w);
        json_member_raw(w, "point", plan->points->text + p->at);
        json_member_u64(w, "runs", runs);
        json_member_double(w, "estimated_seconds", (double) p->estimate_ns * runs / (double) NSEC_PER_SEC);
        int r = put_earlier(w, store, plan, p);
        json_object_end(w);
        return r;
}

static int visit_point(struct plan *plan, struct store *store, size_t i,
                       int (*visit)(void *userdata, const char *json, size_t length), void *userdata, int *error) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_free_ char *json = NULL;
        size_t length = 0;
        *error = put_point(&w, store, plan, &plan->points->items[i]);
        if (*error == 0)
                *error = json_writer_steal(&w, &json, &length);
        return *error < 0 ? *error : visit(userdata, json, length);
}

int service_plan_points(struct service *s, struct plan *plan, size_t from,
                        int (*visit)(void *userdata, const char *json, size_t length), void *userdata,
                        struct refusal *r) {
        struct reader *reader;
        int error = service_reader_get(s, &reader, r), k = 0;
        if (error < 0)
                return error;
        for (size_t i = from; k == 0 && i < plan->n_points; i++)
                k = visit_point(plan, reader->store, i, visit, userdata, &error);
        service_reader_put(s, reader);
        return error < 0 ? service_fail(s, r, error, "planning the experiment", 0) : k;
}

/* ---- from a submission ---- */

void plan_free(struct plan *plan) {
        if (!plan)
                return;
        if (plan->points) {
                free(plan->points->items);
                free(plan->points->text);
        }
        free(plan->points);
        free(plan->skipped_json);
        free(plan->effective_json);
        free(plan);
}

UTIL_FREEP(plan, plan_free)

/* A sum of many runs' times has digits of which nothing is known. */
static double whole_microseconds(double seconds) {
        return round(seconds * 1e6) / 1e6;
}

static void count_runs(struct plan *plan, const struct submission *sub) {
        const struct spec_until *until = &sub->spec->until;
        uint32_t most = until->relative_ci > 0 ? until->max_repetitions : sub->repetitions;
        if (sub->spec->search.latency_p99_below_us > 0)
                most *= 1 + SPEC_SEARCH_RATES_MAX;
        double block = submission_block_seconds(sub), longest = block * most;
        if (until->budget_seconds > 0 && longest > until->budget_seconds)
                longest = fmax(until->budget_seconds, block * sub->repetitions);
        plan->runs = (uint64_t) plan->n_points * sub->repetitions;
        plan->seconds = whole_microseconds(block * sub->repetitions);
        plan->runs_at_most = (uint64_t) plan->n_points * most;
        plan->seconds_at_most = whole_microseconds(longest);
}

/* Appends the point's JSON and its NUL to the text, which has *length bytes of *size. */
static int keep_point(struct plan_points *all, const struct submission *sub, size_t i, size_t *length, size_t *size) {
        const struct point *p = &sub->points.points[i];
        _cleanup_free_ char *json = point_to_json(p);
        size_t n = json ? strlen(json) + 1 : 0;
        if (!json)
                return -ENOMEM;
        if (*length + n > *size) {
                size_t grown = *size + *size / 2 + n;
                if (!util_resize(all->text, grown))
                        return -ENOMEM;
                *size = grown;
        }
        memcpy(all->text + *length, json, n);
        all->items[i] = (struct planned_point){.at = *length,
                                               .figure = figure_of(sub->spec, p),
                                               .estimate_ns = submission_estimate(sub, i),
                                               .open_loop = spec_point_rate(sub->spec, p) > 0};
        *length += n;
        return 0;
}

_Static_assert(SPEC_RUNS_MAX / SPEC_UNTIL_REPETITIONS_LEAST <= FINDINGS_NUMBERED_MAX,
               "of more rows findings_count() counts no looks");

/* Rows without runs, of which only the number of comparisons is needed. */
static int count_comparisons(struct plan_points *all, const struct submission *sub) {
        const size_t n = sub->points.n_points;
        struct findings_input in = {.n_rows = n};
        _cleanup_free_ struct findings_row *rows = n <= FINDINGS_NUMBERED_MAX ? calloc(n + 1, sizeof(*rows)) : NULL;
        if (!rows && n <= FINDINGS_NUMBERED_MAX)
                return -ENOMEM;
        for (size_t i = 0; rows && i < n; i++) {
                const struct point *p = &sub->points.points[i];
                rows[i].point = *p;
                rows[i].watch = adaptive_watch_of(&sub->spec->until, 0);
                rows[i].open_loop = spec_point_rate(sub->spec, p) > 0;
                rows[i].one_way = p->workload == WORKLOAD_STREAM && !spec_latency_missing(sub->spec, p);
        }
        in.rows = rows;
        int r = findings_count(&in, &all->n_comparisons);
        all->n_comparisons += all->n_comparisons == 0;
        return r;
}

static int keep_points(struct plan *plan, const struct submission *sub) {
        struct plan_points *all = plan->points = calloc(1, sizeof(*all));
        size_t length = 0, size = 0;
        if (!all)
                return -ENOMEM;
        *all = (struct plan_points){.items = calloc(plan->n_points, sizeof(*all->items)),
                                    .repetitions = sub->repetitions,
                                    .window_seconds = (double) sub->spec->end.duration_ns / (double) NSEC_PER_SEC,
                                    .in_blocks = sub->spec->order == ORDER_BLOCKS,
                                    .budget = {.rows_left = EARLIER_ROWS_MAX}};
        if (!all->items)
                return -ENOMEM;
        int error = count_comparisons(all, sub);
        if (error < 0)
                return error;
        for (size_t i = 0; i < plan->n_points; i++) {
                int r = keep_point(all, sub, i, &length, &size);
                if (r < 0)
                        return r;
        }
        plan->bytes = sizeof(*plan) + plan->n_points * sizeof(*all->items) + size + strlen(plan->skipped_json) +
                      strlen(plan->effective_json);
        return 0;
}

static int plan_new(struct plan **ret, const struct submission *sub) {
        _cleanup_(plan_freep) struct plan *plan = calloc(1, sizeof(*plan));
        if (!plan)
                return -ENOMEM;
        plan->n_points = sub->points.n_points;
        plan->skipped_json = strdup(sub->skipped_json);
        plan->effective_json = strdup(sub->spec->merged_json);
        if (!plan->skipped_json || !plan->effective_json)
                return -ENOMEM;
        count_runs(plan, sub);
        int r = keep_points(plan, sub);
        if (r == 0)
                *ret = util_steal(&plan);
        return r;
}

int service_plan(struct service *s, const char *body, size_t length, const char *idempotency_key, struct plan **ret,
                 struct refusal *r) {
        _cleanup_(submission_freep) struct submission *sub = NULL;
        int error = idempotency_key ? idempotency_check(idempotency_key, r) : 0;
        if (error == 0)
                error = submission_new(s, body, length, NULL, &sub, r);
        if (error == 0)
                error = submission_prepare(s, sub, r);
        if (error < 0)
                return error;
        error = plan_new(ret, sub);
        return error < 0 ? service_fail(s, r, error, "planning the experiment", 0) : 0;
}
