/* SPDX-License-Identifier: MIT */

/* A run; and an experiment's runs as JSON or CSV. */

#include "api/handle/handlers.h"
#include "api/handle/render/provenance.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <string.h>

/* A run has some 26 kB of JSON, and a page that nobody gave a limit should cost a few ms. */
#define RUNS_DEFAULT 50u
#define RUNS_MAX 1000u
#define AT_A_TIME 8u /* runs that are read for a portion */

HANDLER(handle_run) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        int k = service_run(a->service, q->id, &run, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        render_run(&w, &run);
        return response_json(p, 200, &w);
}

struct list {
        struct service *service;
        struct provenance provenance;
        uint32_t from, end;    /* positions */
        char next[CURSOR_MAX]; /* "": this is the last page */
        bool csv, begun;
        struct text *out;
};

static void list_free(void *userdata) {
        struct list *list = userdata;
        provenance_deinit(&list->provenance);
        free(list);
}

static void run_json(struct list *list, const struct run_record *run) {
        text_item(list->out, &list->begun);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        text_json_begin(list->out, &w);
        render_run_briefly(&w, run);
        text_json(list->out, &w);
}

/* A figure of each row of the table, whose columns have the names that they have in the results. */
static void csv_header(struct list *list) {
        text_puts(list->out, "id,position,repetition,attempt,state,started_at,finished_at");
        point_columns_header(&list->provenance.points, list->out, false);
        text_puts(list->out, list->provenance.searched ? ",rate,window_ns" : ",window_ns");
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                char name[64];
                figure_name((enum figure) f, name, sizeof(name));
                text_printf(list->out, ",%s", name);
        }
        text_puts(list->out, ",flags,error");
        provenance_header(list->out);
}

static void csv_number(struct text *t, const struct json_part *part) {
        double number;
        text_puts(t, ",");
        if (json_part_double(part, &number))
                text_append(t, part->text, part->length);
}

static int csv_figures(struct text *t, const char *result_json) {
        _cleanup_(json_view_deinit) struct json_view view = {0};
        const struct json_part *objects[FIGURES_GROUPS];
        int k = json_view_read(&view, result_json ? result_json : "null");
        if (k < 0)
                return k;
        csv_number(t, json_part_get(view.parts, "window_ns"));
        figure_objects(view.parts, objects);
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                csv_number(t, json_part_get(objects[figure_terms[f].group], figure_terms[f].name));
        return 0;
}

static int run_csv(struct list *list, const struct run_record *run) {
        struct text *t = list->out;
        char started[JSON_TIME_MAX], finished[JSON_TIME_MAX];
        text_printf(t, "%" PRId64 ",%u,%u,%u,%s,%s,%s", run->id, run->position, run->repetition, run->attempt,
                    state_name(run->state), json_time_text(run->started_at, started) ? started : "",
                    json_time_text(run->finished_at, finished) ? finished : "");
        int k = point_columns_cells(&list->provenance.points, t, run->point_json, false);
        if (list->provenance.searched)
                cells_rate(t, run->rate);
        if (k >= 0)
                k = csv_figures(t, run->result_json);
        cells_words(t, run->flags_json);
        text_puts(t, ",");
        text_csv(t, run->error);
        provenance_cells(&list->provenance, t);
        return k;
}

static int visit_run(void *userdata, const struct run_record *run) {
        struct list *list = userdata;
        int k = 0;
        if (list->csv)
                k = run_csv(list, run);
        else
                run_json(list, run);
        list->from = run->position + 1;
        if (k >= 0)
                k = list->out->error;
        return k < 0 ? k : list->out->length >= FEED_PORTION;
}

static int fill_list(void *userdata, struct text *out, struct refusal *r) {
        struct list *list = userdata;
        list->out = out;
        if (list->csv && !list->begun)
                csv_header(list);
        list->begun |= list->csv;
        while (list->from < list->end) {
                uint32_t from = list->from, some = list->end - from < AT_A_TIME ? list->end - from : AT_A_TIME;
                int k = service_runs(list->service, list->provenance.experiment_id, from, some, visit_run, list, r);
                if (k != 0)
                        return k < 0 ? k : FEED_MORE;
                if (list->from == from)
                        break;
        }
        if (!list->csv)
                provenance_list_end(&list->provenance, out, list->begun, list->next);
        return FEED_LAST;
}

static const struct feed_source list_source = {.fill = fill_list, .free = list_free};

/* The runs of an experiment are its positions from 0 on. Without a limit a CSV has all of them. */
static int prepare(struct api *a, const struct request *q, struct list *list, uint32_t *ret_limit, struct refusal *r) {
        static const char *const types[] = {"application/json", "text/csv", NULL};
        int64_t from;
        int type = negotiate(q, types, r);
        if (type < 0)
                return type;
        list->csv = type == 1;
        int k = request_parameter_u32(q, "limit", 1, RUNS_MAX, list->csv ? UINT32_MAX : RUNS_DEFAULT, ret_limit, r);
        if (k >= 0)
                k = request_parameter_cursor(q, 'r', &from, r);
        if (k >= 0)
                k = provenance_load(a, q->id, list->csv, &list->provenance, r);
        if (k < 0)
                return k;
        uint32_t total = list->provenance.runs_total;
        if (from > total) /* nothing follows, as behind the last */
                from = total;
        int64_t end = from + *ret_limit < total ? from + *ret_limit : total;
        list->from = (uint32_t) from;
        list->end = (uint32_t) end;
        if (end < total)
                cursor_print(list->next, 'r', end);
        return 0;
}

HANDLER(handle_runs) {
        struct list *list = calloc(1, sizeof(*list));
        uint32_t limit;
        if (!list)
                return -ENOMEM;
        list->service = a->service;
        int k = prepare(a, q, list, &limit, r);
        if (k < 0) {
                list_free(list);
                return k;
        }
        response_vary(p, "Accept");
        if (list->next[0])
                response_header(p, "Link", "<%s?limit=%u&cursor=%s>; rel=\"next\"", q->path, limit, list->next);
        const char *type = list->csv ? CSV_TYPE : "application/json";
        if (provenance_tag(&list->provenance, q, p, type)) {
                list_free(list);
                return 0;
        }
        return feed_respond(q, p, type, &list_source, list, r);
}
