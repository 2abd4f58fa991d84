/* SPDX-License-Identifier: MIT */

/*
 * The table of results as JSON or CSV, a portion of points at a time. The columns of the CSV are known before its first
 * row: those of points from the spec's axes, the others from the table of figures and that of effective settings.
 */

#include "api/handle/handlers.h"
#include "api/handle/histograms.h"
#include "api/handle/render/provenance.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/presets.h"
#include "schema/util.h"

#include <string.h>

#define AT_A_TIME 8u /* points that are read for a portion */

struct table {
        struct service *service;
        struct provenance provenance;
        uint32_t from; /* point */
        bool begun;
        bool csv, all; /* CSV: every column, not only the usual ones */
        bool with_histogram;
        struct histogram *latency; /* of the row; NULL without */
        struct histogram_progress progress;
        struct refusal *refusal; /* of the row that failed */
        struct text *text;
};

static void table_free(void *userdata) {
        struct table *t = userdata;
        free(t->latency);
        provenance_deinit(&t->provenance);
        free(t);
}

static void result_json(struct table *t, const struct result_record *row) {
        text_item(t->text, &t->begun);
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        text_json_begin(t->text, &w);
        render_result(&w, row, t->latency, t->with_histogram);
        text_json(t->text, &w);
}

/* ---- CSV: a header and its cells, group by group ---- */

/* Among the usual columns a figure has its median alone; in another unit it has those that have a unit. */
static const struct statistic_column {
        const char *name;
        bool usual, has_unit;
} statistics[] = {{"median", true, true},         {"min", false, true},       {"max", false, true},
                  {"ci95_low", false, true},      {"ci95_high", false, true}, {"level", false, false},
                  {"widening", false, false},     {"n", false, false},        {"cov", false, false},
                  {"hodges_lehmann", false, true}};

static bool is_column(const struct table *t, size_t i, bool scaled) {
        return statistics[i].usual || (t->all && (!scaled || statistics[i].has_unit));
}

static void statistic_header(struct table *t, const char *name, bool scaled) {
        for (size_t i = 0; i < ELEMENTS(statistics); i++)
                if (is_column(t, i, scaled))
                        text_printf(t->text, ",%s_%s", name, statistics[i].name);
}

static void cell_if(struct text *out, bool known, double value) {
        if (known)
                cells_double(out, value);
        else
                text_puts(out, ",");
}

/* scaled: in another unit; NULL: in its own. */
static void statistic_cells(struct table *t, const struct statistic *s, const struct figure_scaled *scaled) {
        const struct {
                bool known;
                double value;
        } cells[] = {{true, s->median},
                     {true, s->min},
                     {true, s->max},
                     {s->has_ci95, s->ci95_low},
                     {s->has_ci95, s->ci95_high},
                     {s->has_ci95, s->level},
                     {s->widening > 0, s->widening},
                     {true, s->n},
                     {s->has_variation, s->variation},
                     {s->has_hodges_lehmann, s->hodges_lehmann}};
        _Static_assert(ELEMENTS(cells) == ELEMENTS(statistics), "a value for each name");
        for (size_t i = 0; i < ELEMENTS(cells); i++)
                if (is_column(t, i, scaled != NULL))
                        cell_if(t->text, s->n > 0 && cells[i].known,
                                scaled ? cells[i].value * scaled->factor / scaled->divisor : cells[i].value);
}

/* How much runs depend on those before them, without a row its header. */
static void autocorrelation_columns(struct table *t, const struct result_record *row) {
        char name[64];
        if (!t->all)
                return;
        if (!row) {
                text_puts(t->text, ",autocorrelation_figure,autocorrelation_lag1,autocorrelation_effective_runs,"
                                   "autocorrelation_interval_low,autocorrelation_interval_high,"
                                   "autocorrelation_interval_level");
                return;
        }
        const struct serial *s = &row->serial;
        const bool has = s->known && s->interval.has_interval;
        figure_name(row->serial_figure, name, sizeof(name));
        text_printf(t->text, ",%s", s->known ? name : "");
        cell_if(t->text, s->known, s->correlation);
        cell_if(t->text, s->known, s->effective_runs);
        cell_if(t->text, has, s->interval.low);
        cell_if(t->text, has, s->interval.high);
        cell_if(t->text, has, s->interval.level);
}

static bool is_of_study(const struct table *t, const char *study) {
        return study && preset_is_of(t->provenance.preset, study);
}

/* Shown are the usual figures that some workload of the experiment has, and those of the study that it is. */
static bool is_shown(const struct table *t, enum figure f) {
        const struct figure_term *term = &figure_terms[f];
        bool had = !term->workloads || term->workloads & t->provenance.points.workloads;
        return t->all || (term->usual && had) || is_of_study(t, term->usual_in);
}

static void figures_header(struct table *t, enum figure_group group) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++) {
                char name[64];
                if (figure_terms[f].group != group || !is_shown(t, f))
                        continue;
                figure_name(f, name, sizeof(name));
                statistic_header(t, name, false);
        }
}

static void figures_cells(struct table *t, enum figure_group group, const struct result_record *row) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                if (figure_terms[f].group == group && is_shown(t, f))
                        statistic_cells(t, &row->figures[f], NULL);
}

/* Figures in the units that studies have published: all of them, or those of the study that the experiment is. Without
 * a row, their header. */
static void scaled_columns(struct table *t, const struct result_record *row) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++)
                for (size_t i = 0; i < ELEMENTS(figure_terms[f].scaled); i++) {
                        const struct figure_scaled *s = &figure_terms[f].scaled[i];
                        if (!s->name || !(t->all || is_of_study(t, s->usual_in)))
                                continue;
                        if (row)
                                statistic_cells(t, &row->figures[f], s);
                        else
                                statistic_header(t, s->name, true);
                }
}

static void csv_header(struct table *t) {
        struct text *out = t->text;
        point_columns_header(&t->provenance.points, out, true);
        text_puts(out, t->provenance.searched ? ",rate" : "");
        text_printf(out, ",runs%s,runs_failed", t->all ? ",runs_planned" : "");
        figures_header(t, FIGURES_RATE);
        text_puts(out, ",latency_kind");
        figures_header(t, FIGURES_LATENCY);
        figures_header(t, FIGURES_ONE_WAY);
        scaled_columns(t, NULL);
        text_puts(out, t->all ? ",loop,steady,verify,counted_by" : "");
        autocorrelation_columns(t, NULL);
        for (enum figure_group group = FIGURES_PER_UNIT; group < FIGURES_GROUPS; group++)
                figures_header(t, group);
        const char *name;
        for (size_t i = 0; t->all && (name = service_effective_name(i)); i++)
                text_printf(out, ",effective_%s", name);
        text_puts(out, t->all ? ",reasons,flag_runs" : "");
        text_printf(out, ",flags,error%s", t->with_histogram ? ",latency_histogram" : "");
        provenance_header(out);
}

static int effective_cells(struct text *out, const char *effective_json) {
        const char *name;
        _cleanup_(json_freep) struct json *root = NULL;
        int k = json_parse_stored(effective_json, &root);
        for (size_t i = 0; k >= 0 && (name = service_effective_name(i)); i++)
                cells_value(out, root ? json_get(root, name) : NULL);
        return k;
}

/* Why cells are empty, by figure, or in how many runs each flag is: JSON in one cell, as the samples' counters are; an
 * empty one where there is none. */
static void object_cell(struct text *out, const char *object_json) {
        text_puts(out, ",");
        if (object_json && strcmp(object_json, "{}") != 0)
                text_csv(out, object_json);
}

static int histogram_cell(struct table *t) {
        struct latency_summary s;
        _cleanup_free_ char *text = NULL;
        int k = 0;
        if (!t->with_histogram)
                return 0;
        text_puts(t->text, ",");
        if (histogram_summarize(t->latency, &s) >= 0)
                k = histogram_export(t->latency, &text);
        text_puts(t->text, text ? text : "");
        return k;
}

static int result_csv(struct table *t, const struct result_record *row) {
        struct text *out = t->text;
        int k = point_columns_cells(&t->provenance.points, out, row->point_json, true);
        if (t->provenance.searched)
                cells_rate(out, row->rate);
        text_printf(out, ",%u", row->runs);
        if (t->all)
                text_printf(out, ",%u", row->runs_planned);
        text_printf(out, ",%u", row->runs_failed);
        figures_cells(t, FIGURES_RATE, row);
        text_printf(out, ",%s", row->latency_kind ? row->latency_kind : "");
        figures_cells(t, FIGURES_LATENCY, row);
        figures_cells(t, FIGURES_ONE_WAY, row);
        scaled_columns(t, row);
        const char *const words[] = {row->loop, row->steady, row->verify, row->counted_by};
        for (size_t i = 0; t->all && i < ELEMENTS(words); i++)
                text_printf(out, ",%s", words[i] ? words[i] : "");
        autocorrelation_columns(t, row);
        for (enum figure_group group = FIGURES_PER_UNIT; group < FIGURES_GROUPS; group++)
                figures_cells(t, group, row);
        if (k >= 0 && t->all)
                k = effective_cells(out, row->effective_json);
        if (t->all) {
                object_cell(out, row->reasons_json);
                object_cell(out, row->flag_runs_json);
        }
        cells_words(out, row->flags_json);
        text_puts(out, ",");
        text_csv(out, row->error);
        if (k >= 0)
                k = histogram_cell(t);
        provenance_cells(&t->provenance, out);
        return k;
}

/* ---- the body ---- */

static int visit_result(void *userdata, const struct result_record *row) {
        struct table *t = userdata;
        int k = t->with_histogram ? histograms_add_some(t->service, row, &t->progress, t->latency, t->refusal) : 0;
        if (k != 0)
                return k;
        if (t->csv)
                k = result_csv(t, row);
        else
                result_json(t, row);
        t->from++;
        if (k >= 0)
                k = t->text->error;
        return k < 0 ? k : t->text->length >= FEED_PORTION;
}

static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct table *t = userdata;
        uint32_t from;
        t->text = out;
        t->refusal = r;
        if (t->csv && !t->begun)
                csv_header(t);
        t->begun |= t->csv;
        do {
                from = t->from;
                int k = service_results(t->service, t->provenance.experiment_id, from, AT_A_TIME, visit_result, t, r);
                if (k != 0)
                        return k < 0 ? k : FEED_MORE;
        } while (t->from != from);
        if (!t->csv)
                provenance_list_end(&t->provenance, out, t->begun, "");
        return FEED_LAST;
}

static const struct feed_source source = {.fill = fill, .free = table_free};

static int prepare(struct api *a, const struct request *q, struct table *t, struct refusal *r) {
        static const char *const types[] = {"application/json", "text/csv", NULL};
        const char *columns = request_parameter(q, "columns");
        if (columns && strcmp(columns, "usual") != 0 && strcmp(columns, "all") != 0)
                return refuse_parameter(r, "columns", columns, "usual or all");
        t->all = columns && strcmp(columns, "all") == 0;
        uint32_t histogram;
        int type = request_parameter_u32(q, "histogram", 0, 1, 0, &histogram, r);
        if (type >= 0)
                type = negotiate(q, types, r);
        if (type < 0)
                return type;
        t->csv = type == 1;
        t->with_histogram = histogram > 0;
        t->latency = t->with_histogram ? malloc(sizeof(*t->latency)) : NULL;
        if (t->with_histogram && !t->latency)
                return -ENOMEM;
        int k = provenance_load(a, q->id, t->csv, &t->provenance, r);
        if (k >= 0 && !t->all)
                point_columns_keep_usual(&t->provenance.points);
        return k;
}

HANDLER(handle_results) {
        struct table *t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->service = a->service;
        int k = prepare(a, q, t, r);
        if (k < 0) {
                table_free(t);
                return k;
        }
        const char *type = t->csv ? CSV_TYPE : "application/json";
        response_vary(p, "Accept");
        if (provenance_tag(&t->provenance, q, p, type)) {
                table_free(t);
                return 0;
        }
        return feed_respond(q, p, type, &source, t, r);
}
