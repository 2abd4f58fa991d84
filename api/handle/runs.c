/* SPDX-License-Identifier: MIT */

/* Runs, and the table of results over them as JSON or CSV. */

#include "api/handle/handlers.h"
#include "api/handle/histograms.h"
#include "api/handle/render.h"
#include "api/http/feed.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>

#define RUNS_MAX 1000u
#define POINT_COLUMNS_MAX 32u
#define AT_A_TIME 8u /* runs or points that are read for a portion */

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
        struct service *service;
        int64_t experiment_id;
        uint32_t from, end;    /* positions */
        char next[CURSOR_MAX]; /* "": this is the last page */
        bool begun;
        struct text *out;
};

static int visit_run(void *userdata, const struct run_record *run) {
        struct list *list = userdata;
        text_item(list->out, &list->begun);
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        render_run_briefly(&w, run);
        text_json(list->out, &w);
        list->from = run->position + 1;
        return list->out->error < 0 ? list->out->error : list->out->length >= FEED_PORTION;
}

static int fill_list(void *userdata, struct text *out, struct refusal *r) {
        struct list *list = userdata;
        list->out = out;
        while (list->from < list->end) {
                uint32_t from = list->from, some = list->end - from < AT_A_TIME ? list->end - from : AT_A_TIME;
                int k = service_runs(list->service, list->experiment_id, from, some, visit_run, list, r);
                if (k != 0)
                        return k < 0 ? k : FEED_MORE;
                if (list->from == from)
                        break;
        }
        text_list_end(out, list->begun, list->next);
        return FEED_LAST;
}

static const struct feed_source list_source = {.fill = fill_list, .free = free};

/* 404 for an experiment that is not there; its lists would just be empty. The runs of an experiment are its positions
 * from 0 on. */
static int count_runs(struct api *a, int64_t id, uint32_t *ret, struct refusal *r) {
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        int k = service_experiment(a->service, id, &e, r);
        if (k >= 0)
                *ret = e.runs_total;
        return k;
}

HANDLER(handle_runs) {
        uint32_t limit, total = 0;
        int64_t from;
        int k = request_parameter_u32(q, "limit", 1, RUNS_MAX, RUNS_MAX, &limit, r);
        if (k >= 0)
                k = request_parameter_cursor(q, 'r', &from, r);
        if (k >= 0 && from > UINT32_MAX)
                return refuse_parameter(r, "cursor", request_parameter(q, "cursor"),
                                        "the \"next\" of an earlier answer");
        if (k >= 0)
                k = count_runs(a, q->id, &total, r);
        if (k < 0)
                return k;
        struct list *list = calloc(1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        int64_t end = from + limit < total ? from + limit : total;
        *list = (struct list){
                .service = a->service, .experiment_id = q->id, .from = (uint32_t) from, .end = (uint32_t) end};
        if (end < total) {
                cursor_print(list->next, 'r', end);
                response_header(p, "Link", "<%s?limit=%u&cursor=%s>; rel=\"next\"", q->path, limit, list->next);
        }
        return feed_respond(a, q, p, "application/json", &list_source, list, r);
}

/* ---- results ---- */

struct columns {
        char *names[POINT_COLUMNS_MAX]; /* in the order they first appear */
        size_t n;
};

struct table {
        struct service *service;
        int64_t experiment_id;
        uint32_t from; /* point */
        bool begun;
        struct columns point, effective; /* CSV: the points' fields; what was in force */
        bool with_histogram;
        struct histogram *latency; /* of the row; NULL without */
        int error;
        struct refusal *refusal; /* where what went wrong with a row is said */
        struct text *text;
};

static void columns_deinit(struct columns *c) {
        for (size_t i = 0; i < c->n; i++)
                free(c->names[i]);
}

static void table_free(void *userdata) {
        struct table *t = userdata;
        columns_deinit(&t->point);
        columns_deinit(&t->effective);
        free(t->latency);
        free(t);
}

/* The latencies of all done runs of a row, merged. */
static int merge_latencies(struct table *t, const struct result_record *row) {
        if (!t->with_histogram)
                return 0;
        *t->latency = (struct histogram){0};
        int k = 0;
        for (uint32_t i = 0; k == 0 && i < row->runs; i++)
                k = histograms_add_run(t->service, row->run_ids[i], t->latency, t->refusal);
        return k;
}

static int visit_result_json(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        int k = merge_latencies(t, row);
        if (k < 0)
                return k;
        text_item(t->text, &t->begun);
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        render_result(&w, row, t->latency, t->with_histogram);
        text_json(t->text, &w);
        t->from++;
        return t->text->error < 0 ? t->text->error : t->text->length >= FEED_PORTION;
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

static void csv_figures(struct text *t, enum figure_group group, const struct result_record *row) {
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group)
                        csv_statistic(t, &row->figures[f]);
}

/* Figures that the table has already, in the units that people plot. */
static void csv_scaled(struct text *t, const struct result_record *row) {
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                const struct figure_term *term = &figure_terms[f];
                struct statistic s = row->figures[f];
                double *const values[] = {&s.median, &s.min, &s.max, &s.ci95_low, &s.ci95_high};
                if (!term->scaled)
                        continue;
                for (size_t i = 0; i < ELEMENTS(values); i++)
                        *values[i] = *values[i] * term->factor / term->divisor;
                csv_statistic(t, &s);
        }
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

static void csv_histogram(struct table *t) {
        struct latency_summary s;
        char *text = NULL;
        if (t->with_histogram)
                text_puts(t->text, ",");
        if (!t->with_histogram || histogram_summarize(t->latency, &s) < 0)
                return;
        t->error = histogram_export(t->latency, &text);
        text_puts(t->text, text ? text : "");
        free(text);
}

static int visit_result_csv(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        t->error = merge_latencies(t, row);
        if (t->error == 0)
                t->error = csv_members(t->text, &t->point, row->point_json);
        if (t->error < 0)
                return 1;
        text_printf(t->text, "%u,%u,%u", row->runs, row->runs_planned, row->runs_failed);
        csv_figures(t->text, FIGURES_RATE, row);
        text_printf(t->text, ",%s", row->latency_kind ? row->latency_kind : "");
        csv_figures(t->text, FIGURES_LATENCY, row);
        csv_figures(t->text, FIGURES_ONE_WAY, row);
        csv_scaled(t->text, row);
        const char *const words[] = {row->loop, row->steady, row->verify, row->counted_by};
        for (size_t i = 0; i < ELEMENTS(words); i++)
                text_printf(t->text, ",%s", words[i] ? words[i] : "");
        for (enum figure_group group = FIGURES_PER_UNIT; group < FIGURES_GROUPS; group++)
                csv_figures(t->text, group, row);
        text_puts(t->text, ",");
        t->error = csv_members(t->text, &t->effective, row->effective_json);
        if (t->error < 0)
                return 1;
        csv_reasons(t->text, row->reasons_json);
        text_puts(t->text, ",");
        csv_flags(t->text, row->flags_json);
        text_puts(t->text, ",");
        text_csv(t->text, row->error);
        csv_histogram(t);
        text_puts(t->text, "\r\n");
        t->from++;
        return t->text->error < 0 ? t->text->error : t->text->length >= FEED_PORTION;
}

static void csv_statistic_header(struct text *t, const char *name) {
        text_printf(t, ",%s_median,%s_min,%s_max,%s_ci95_low,%s_ci95_high", name, name, name, name, name);
}

static void csv_group_header(struct text *t, enum figure_group group) {
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                char name[64];
                if (figure_terms[f].group != group)
                        continue;
                figure_name((enum figure) f, name, sizeof(name));
                csv_statistic_header(t, name);
        }
}

static void csv_header(struct table *t) {
        for (size_t i = 0; i < t->point.n; i++) {
                text_csv(t->text, t->point.names[i]);
                text_puts(t->text, ",");
        }
        text_puts(t->text, "runs,runs_planned,runs_failed");
        csv_group_header(t->text, FIGURES_RATE);
        text_puts(t->text, ",latency_kind");
        csv_group_header(t->text, FIGURES_LATENCY);
        csv_group_header(t->text, FIGURES_ONE_WAY);
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].scaled)
                        csv_statistic_header(t->text, figure_terms[f].scaled);
        text_puts(t->text, ",loop,steady,verify,counted_by");
        for (enum figure_group group = FIGURES_PER_UNIT; group < FIGURES_GROUPS; group++)
                csv_group_header(t->text, group);
        for (size_t i = 0; i < t->effective.n; i++)
                text_printf(t->text, ",effective_%s", t->effective.names[i]);
        text_printf(t->text, ",reasons,flags,error%s\r\n", t->with_histogram ? ",latency_histogram" : "");
}

static int fill_rows(struct table *t, int (*visit)(void *userdata, const struct result_record *row),
                     struct refusal *r) {
        t->refusal = r;
        for (;;) {
                uint32_t from = t->from;
                int k = service_results(t->service, t->experiment_id, from, AT_A_TIME, visit, t, r);
                if (k != 0)
                        return k < 0 ? k : FEED_MORE;
                if (t->from == from)
                        return FEED_LAST;
        }
}

static int fill_csv(void *userdata, struct text *out, struct refusal *r) {
        struct table *t = userdata;
        t->text = out;
        if (!t->begun)
                csv_header(t);
        t->begun = true;
        int k = fill_rows(t, visit_result_csv, r);
        return t->error < 0 ? t->error : k;
}

static int fill_json(void *userdata, struct text *out, struct refusal *r) {
        struct table *t = userdata;
        t->text = out;
        int k = fill_rows(t, visit_result_json, r);
        if (k == FEED_LAST)
                text_list_end(out, t->begun, "");
        return k;
}

static const struct feed_source csv_source = {.fill = fill_csv, .free = table_free};
static const struct feed_source json_source = {.fill = fill_json, .free = table_free};

HANDLER(handle_results) {
        static const char *const types[] = {"application/json", "text/csv", NULL};
        uint32_t runs, histogram;
        int k = request_parameter_u32(q, "histogram", 0, 1, 0, &histogram, r);
        if (k >= 0)
                k = count_runs(a, q->id, &runs, r);
        int type = k < 0 ? k : negotiate(q, types, r);
        if (type < 0)
                return type;
        struct table *t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        *t = (struct table){.service = a->service, .experiment_id = q->id, .with_histogram = histogram > 0};
        t->latency = t->with_histogram ? malloc(sizeof(*t->latency)) : NULL;
        if (t->with_histogram && !t->latency) {
                table_free(t);
                return -ENOMEM;
        }
        response_header(p, "Vary", "Accept");
        if (type == 0)
                return feed_respond(a, q, p, "application/json", &json_source, t, r);
        k = service_results(a->service, q->id, 0, UINT32_MAX, visit_result_columns, t, r);
        if (k < 0 || t->error < 0) {
                k = k < 0 ? k : t->error;
                table_free(t);
                return k;
        }
        return feed_respond(a, q, p, "text/csv; charset=utf-8; header=present", &csv_source, t, r);
}
