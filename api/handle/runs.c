/* SPDX-License-Identifier: MIT */

/* Runs, and the table of results over them as JSON or CSV. */

#include "api/handle/handlers.h"
#include "api/handle/render.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>

#define RUNS_MAX 1000u
#define POINT_COLUMNS_MAX 32u

HANDLER(handle_run) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        int k = service_run(a->service, q->id, &run, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        render_run(&w, &run);
        return response_json(p, 200, &w);
}

struct list {
        struct json_writer *w;
        uint32_t left, last;
        bool more;
};

static int visit_run(void *userdata, const struct run_record *run) {
        struct list *list = userdata;
        if (list->left == 0) {
                list->more = true;
                return 1;
        }
        list->left--;
        list->last = run->position;
        render_run_briefly(list->w, run);
        return 0;
}

/* 404 for an experiment that is not there; its lists would just be empty. */
static int check_exists(struct api *a, int64_t id, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        return service_experiment(a->service, id, &e, r);
}

HANDLER(handle_runs) {
        uint32_t limit;
        int64_t from;
        int k = request_parameter_u32(q, "limit", 1, RUNS_MAX, RUNS_MAX, &limit, r);
        if (k >= 0)
                k = request_parameter_cursor(q, 'r', &from, r);
        if (k >= 0 && from > UINT32_MAX)
                return refuse_parameter(r, "cursor", request_parameter(q, "cursor"),
                                        "the \"next\" of an earlier answer");
        if (k >= 0)
                k = check_exists(a, q->id, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        struct list list = {.w = &w, .left = limit};
        json_object_begin(&w);
        json_put_key(&w, "items");
        json_array_begin(&w);
        k = service_runs(a->service, q->id, (uint32_t) from, limit + 1, visit_run, &list, r);
        if (k < 0)
                return k;
        json_array_end(&w);
        char cursor[CURSOR_MAX];
        cursor_print(cursor, 'r', (int64_t) list.last + 1);
        json_member_string(&w, "next", list.more ? cursor : NULL);
        json_object_end(&w);
        if (list.more)
                response_header(p, "Link", "<%s?limit=%u&cursor=%s>; rel=\"next\"", q->path, limit, cursor);
        return response_json(p, 200, &w);
}

/* ---- results ---- */

struct table {
        struct json_writer *w; /* JSON */
        struct text *text;     /* CSV */
        struct columns {
                char *names[POINT_COLUMNS_MAX]; /* in the order they first appear */
                size_t n;
        } point, effective; /* the points' fields; what was in force */
        int error;
};

static void columns_deinit(struct columns *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->names[i]);
}

static void table_deinit(struct table *t) {
        columns_deinit(&t->point);
        columns_deinit(&t->effective);
}

static int visit_result_json(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        render_result(t->w, row);
        return 0;
}

static int add_column(struct columns *c, const char *name) {
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->names[i], name) == 0)
                        return 0;
        if (c->n == POINT_COLUMNS_MAX)
                return -E2BIG;
        c->names[c->n] = strdup(name);
        return c->names[c->n] ? (c->n++, 0) : -ENOMEM;
}

static int add_columns(struct columns *c, const char *object) {
        struct json *root;
        int k = object ? json_parse(object, strlen(object), &root, NULL) : 0;
        if (!object || k < 0)
                return k;
        for (const struct json *i = json_first(root); i && k >= 0; i = json_next(i))
                k = add_column(c, json_key(i));
        json_free(root);
        return k;
}

/* First pass over the rows: points of different workloads have different fields, and mechanisms different settings. */
static int visit_result_columns(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        t->error = add_columns(&t->point, row->point_json);
        if (t->error >= 0)
                t->error = add_columns(&t->effective, row->effective_json);
        return t->error < 0;
}

static void csv_value(struct text *t, const struct json *value) {
        const char *s;
        if (!value || json_type(value) == JSON_NULL)
                return;
        if (json_as_string(value, &s) >= 0) {
                text_csv(t, s);
                return;
        }
        _cleanup_free_ char *json = json_print(value);
        if (json)
                text_csv(t, json);
        else if (t->error == 0)
                t->error = -ENOMEM;
}

static void csv_double(struct text *t, double v) {
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        json_put_double(&w, v);
        char *text = NULL;
        size_t length;
        int k = json_writer_steal(&w, &text, &length);
        if (k >= 0)
                text_append(t, text, length);
        else if (t->error == 0)
                t->error = k;
        free(text);
}

static void csv_statistic(struct text *t, const struct statistic *s) {
        const double values[] = {s->median, s->min, s->max, s->ci95_low, s->ci95_high};
        for (size_t i = 0; i < ELEMENTS(values); i++) {
                text_puts(t, ",");
                if (s->n > 0 && (i < 3 || s->has_ci95))
                        csv_double(t, values[i]);
        }
}

/* Figures that the table has already, in the units that people plot. */
static const struct scaled_column {
        struct statistic_column column;
        double factor, divisor; /* 1e-3 is no double, and would leave its trace in the last digits */
} scaled_columns[] = {
        {{"throughput_gbit_per_second", offsetof(struct result_record, throughput_bytes_per_second)}, 8, 1e9},
        {{"both_ways_gbit_per_second", offsetof(struct result_record, both_ways_bytes_per_second)}, 8, 1e9},
        {{"latency_us_mean", offsetof(struct result_record, latency_mean)}, 1, 1e3},
        {{"latency_one_way_us_mean", offsetof(struct result_record, one_way_mean)}, 1, 1e3},
};

static void csv_scaled(struct text *t, const struct result_record *row, const struct scaled_column *column) {
        struct statistic s = *statistic_of_column(row, &column->column);
        double *const values[] = {&s.median, &s.min, &s.max, &s.ci95_low, &s.ci95_high};
        for (size_t i = 0; i < ELEMENTS(values); i++)
                *values[i] = *values[i] * column->factor / column->divisor;
        csv_statistic(t, &s);
}

static void csv_flags(struct text *t, const char *flags_json) {
        struct json *flags;
        _cleanup_(text_deinit) struct text joined = {0};
        if (!flags_json || json_parse(flags_json, strlen(flags_json), &flags, NULL) < 0)
                return;
        for (const struct json *i = json_first(flags); i; i = json_next(i)) {
                const char *flag;
                if (json_as_string(i, &flag) >= 0)
                        text_printf(&joined, "%s%s", joined.length > 0 ? " " : "", flag);
        }
        json_free(flags);
        text_csv(t, joined.data);
}

/* Why cells are empty, by figure: JSON in one cell, as the samples' counters are; an empty one where there is none. */
static void csv_reasons(struct text *t, const char *reasons_json) {
        if (reasons_json && strcmp(reasons_json, "{}") != 0)
                text_csv(t, reasons_json);
}

/* The members of an object, each followed by a comma. */
static int csv_members(struct text *t, const struct columns *c, const char *object) {
        struct json *root = NULL;
        int k = object ? json_parse(object, strlen(object), &root, NULL) : 0;
        for (size_t i = 0; k >= 0 && i < c->n; i++) {
                csv_value(t, root ? json_get(root, c->names[i]) : NULL);
                text_puts(t, ",");
        }
        json_free(root);
        return k;
}

static int visit_result_csv(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        t->error = csv_members(t->text, &t->point, row->point_json);
        if (t->error < 0)
                return 1;
        text_printf(t->text, "%u,%u,%u", row->runs, row->runs_planned, row->runs_failed);
        csv_statistic(t->text, &row->throughput_bytes_per_second);
        csv_statistic(t->text, &row->messages_per_second);
        csv_statistic(t->text, &row->both_ways_bytes_per_second);
        csv_statistic(t->text, &row->cost_ns);
        csv_statistic(t->text, &row->hop_ns);
        text_printf(t->text, ",%s", row->latency_kind ? row->latency_kind : "");
        for (size_t i = 0; i < n_latency_columns; i++)
                csv_statistic(t->text, statistic_of_column(row, &latency_columns[i]));
        for (size_t i = 0; i < n_one_way_columns; i++)
                csv_statistic(t->text, statistic_of_column(row, &one_way_columns[i]));
        for (size_t i = 0; i < ELEMENTS(scaled_columns); i++)
                csv_scaled(t->text, row, &scaled_columns[i]);
        const char *const words[] = {row->loop, row->steady, row->verify, row->counted_by};
        for (size_t i = 0; i < ELEMENTS(words); i++)
                text_printf(t->text, ",%s", words[i] ? words[i] : "");
        for (size_t i = 0; i < n_counter_columns; i++)
                csv_statistic(t->text, statistic_of_column(row, &counter_columns[i]));
        text_puts(t->text, ",");
        t->error = csv_members(t->text, &t->effective, row->effective_json);
        if (t->error < 0)
                return 1;
        csv_reasons(t->text, row->reasons_json);
        text_puts(t->text, ",");
        csv_flags(t->text, row->flags_json);
        text_puts(t->text, ",");
        text_csv(t->text, row->error);
        text_puts(t->text, "\r\n");
        return 0;
}

static void csv_statistic_header(struct text *t, const char *name) {
        text_printf(t, ",%s_median,%s_min,%s_max,%s_ci95_low,%s_ci95_high", name, name, name, name, name);
}

static void csv_latency_header(struct text *t, const char *latency, const struct statistic_column *columns, size_t n) {
        for (size_t i = 0; i < n; i++) {
                char name[40];
                snprintf(name, sizeof(name), "%s_%s", latency, columns[i].name);
                csv_statistic_header(t, name);
        }
}

static void csv_header(struct table *t) {
        for (size_t i = 0; i < t->point.n; i++) {
                text_csv(t->text, t->point.names[i]);
                text_puts(t->text, ",");
        }
        text_puts(t->text, "runs,runs_planned,runs_failed");
        csv_statistic_header(t->text, "throughput_bytes_per_second");
        csv_statistic_header(t->text, "messages_per_second");
        csv_statistic_header(t->text, "both_ways_bytes_per_second");
        csv_statistic_header(t->text, "cost_ns");
        csv_statistic_header(t->text, "hop_ns");
        text_puts(t->text, ",latency_kind");
        csv_latency_header(t->text, "latency_ns", latency_columns, n_latency_columns);
        csv_latency_header(t->text, "latency_one_way_ns", one_way_columns, n_one_way_columns);
        for (size_t i = 0; i < ELEMENTS(scaled_columns); i++)
                csv_statistic_header(t->text, scaled_columns[i].column.name);
        text_puts(t->text, ",loop,steady,verify,counted_by");
        for (size_t i = 0; i < n_counter_columns; i++)
                csv_statistic_header(t->text, counter_columns[i].name);
        for (size_t i = 0; i < t->effective.n; i++)
                text_printf(t->text, ",effective_%s", t->effective.names[i]);
        text_puts(t->text, ",reasons,flags,error\r\n");
}

static int results_csv(struct api *a, const struct request *q, struct response *p, struct refusal *r) {
        _cleanup_(text_deinit) struct text text = {0};
        _cleanup_(table_deinit) struct table t = {.text = &text};
        int k = service_results(a->service, q->id, visit_result_columns, &t, r);
        if (k >= 0 && t.error >= 0) {
                csv_header(&t);
                k = service_results(a->service, q->id, visit_result_csv, &t, r);
        }
        if (k >= 0)
                k = t.error < 0 ? t.error : text.error;
        if (k < 0)
                return k;
        response_body(p, 200, "text/csv; charset=utf-8; header=present", util_steal(&text.data), text.length);
        return 0;
}

static int results_json(struct api *a, const struct request *q, struct response *p, struct refusal *r) {
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        struct table t = {.w = &w};
        json_object_begin(&w);
        json_put_key(&w, "items");
        json_array_begin(&w);
        int k = service_results(a->service, q->id, visit_result_json, &t, r);
        if (k < 0)
                return k;
        json_array_end(&w);
        json_member_null(&w, "next");
        json_object_end(&w);
        return response_json(p, 200, &w);
}

HANDLER(handle_results) {
        static const char *const types[] = {"application/json", "text/csv", NULL};
        int k = check_exists(a, q->id, r);
        int type = k < 0 ? k : negotiate(q, types, r);
        if (type < 0)
                return type;
        response_header(p, "Vary", "Accept");
        return type == 0 ? results_json(a, q, p, r) : results_csv(a, q, p, r);
}
