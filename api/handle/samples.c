/* SPDX-License-Identifier: MIT */

/*
 * Samples as JSON, NDJSON or CSV. An experiment of a day has a million of them, so they are read from the store in
 * small portions while the client takes them, and never held together.
 */

#include "api/handle/handlers.h"
#include "api/handle/render/kinds.h"
#include "api/handle/render/provenance.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
#include "api/http/negotiate.h"
#include "api/http/text.h"
#include "schema/util.h"

#include <string.h>

#define PAGE_DEFAULT 1000u
#define PAGE_MAX 10000u

enum format { FORMAT_JSON, FORMAT_NDJSON, FORMAT_CSV };

struct export {
        struct service *service;
        struct provenance provenance;
        int64_t run_id;       /* as service_samples() takes it */
        int64_t after, until; /* changes */
        enum format format;
        bool histogram;
        char next[CURSOR_MAX]; /* "": this is the last page */
        struct kinds kinds;
        struct text point; /* CSV: the cells of the run whose kind is known */

        struct text *out;
        struct refusal *refusal;
        bool begun, ended;
};

static void csv_latency(struct text *t, const struct sample_record *s, const char *kind, bool histogram) {
        struct latency_summary l;
        if (!s->latency || histogram_summarize(s->latency, &l) < 0) {
                text_puts(t, histogram ? ",,,,,,,,,," : ",,,,,,,,,");
                return;
        }
        text_printf(t, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.0f,%s,%" PRIu64,
                    l.min, l.p50, l.p90, l.p99, l.p99_9, l.max, l.mean, kind, l.count);
        if (!histogram)
                return;
        _cleanup_free_ char *text = NULL;
        int k = histogram_export(s->latency, &text);
        if (k < 0)
                t->error = k;
        text_printf(t, ",%s", text ? text : "");
}

static void csv_sample(struct export *f, const struct sample_record *s, const char *kind) {
        text_printf(f->out, "%lld,%s,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64, (long long) s->run_id, s->agent,
                    s->thread, s->second, s->interval_ns, s->messages, s->bytes);
        csv_latency(f->out, s, kind, f->histogram);
        text_puts(f->out, ",");
        text_csv(f->out, s->counters_json);
        text_puts(f->out, ",");
        if (s->begin_ns)
                text_printf(f->out, "%" PRIu64, s->begin_ns);
        sample_noise_cells(&f->kinds.noise, s, f->out);
        text_append(f->out, f->point.data ? f->point.data : "", f->point.length);
        provenance_cells(&f->provenance, f->out);
}

static void json_sample(struct export *f, const struct sample_record *s, const char *kind) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        if (f->format == FORMAT_JSON)
                text_item(f->out, &f->begun);
        text_json_begin(f->out, &w);
        render_sample(&w, s, kind, &f->kinds.noise, f->histogram);
        text_json(f->out, &w);
        if (f->format == FORMAT_NDJSON)
                text_puts(f->out, "\n");
}

/* The kind of a run that is met for the first time, its noise and its point. */
static int read_kind(struct export *f, int64_t run_id) {
        int k = kinds_read(&f->kinds, f->service, run_id, f->refusal);
        if (k < 0 || f->format != FORMAT_CSV)
                return k;
        text_clear(&f->point);
        k = point_columns_cells(&f->provenance.points, &f->point, f->kinds.point_json, false);
        return k < 0 ? k : f->point.error;
}

static int visit_sample(void *userdata, const struct sample_record *s) {
        struct export *f = userdata;
        if (s->change > f->until) {
                f->ended = true;
                return 1;
        }
        const char *kind = kinds_get(&f->kinds, s->run_id);
        if (!kind) {
                int k = read_kind(f, s->run_id);
                if (k < 0)
                        return k;
                kind = kinds_get(&f->kinds, s->run_id);
        }
        if (f->format == FORMAT_CSV)
                csv_sample(f, s, kind);
        else
                json_sample(f, s, kind);
        f->after = s->change;
        return f->out->error < 0 ? f->out->error : f->out->length >= FEED_PORTION;
}

static void csv_header(struct export *f) {
        text_printf(f->out,
                    "run_id,agent,thread,second,interval_ns,messages,bytes,latency_ns_min,latency_ns_p50,"
                    "latency_ns_p90,latency_ns_p99,latency_ns_p99_9,latency_ns_max,latency_ns_mean,latency_kind,"
                    "latency_count%s,counters,begin_ns",
                    f->histogram ? ",latency_histogram" : "");
        sample_noise_header(f->out);
        point_columns_header(&f->provenance.points, f->out, false);
        provenance_header(f->out);
}

static int fill(void *userdata, struct text *out, struct refusal *r) {
        struct export *f = userdata;
        f->out = out;
        f->refusal = r;
        if (f->format == FORMAT_CSV && !f->begun)
                csv_header(f);
        f->begun |= f->format == FORMAT_CSV;
        int k = service_samples(f->service, f->provenance.experiment_id, f->run_id, f->after, UINT32_MAX, visit_sample,
                                f, r);
        if (k != 0 && !f->ended)
                return k < 0 ? k : FEED_MORE;
        if (f->format == FORMAT_JSON)
                provenance_list_end(&f->provenance, out, f->begun, f->next);
        return FEED_LAST;
}

static void export_free(void *userdata) {
        struct export *f = userdata;
        provenance_deinit(&f->provenance);
        kinds_deinit(&f->kinds);
        text_deinit(&f->point);
        free(f);
}

static const struct feed_source source = {.fill = fill, .free = export_free};

/* ---- the page ---- */

struct page {
        uint32_t left;
        int64_t last;
        bool more;
};

static int visit_page(void *userdata, const struct sample_record *s) {
        struct page *page = userdata;
        if (page->left == 0) {
                page->more = true;
                return 1;
        }
        page->left--;
        page->last = s->change;
        return 0;
}

/* Determines the end of the page, which the headers name. */
static int measure_page(struct export *f, uint32_t limit, struct refusal *r) {
        struct page page = {.left = limit, .last = f->after};
        int k = service_samples(f->service, f->provenance.experiment_id, f->run_id, f->after, limit + 1, visit_page,
                                &page, r);
        if (k < 0)
                return k;
        f->until = page.last;
        if (page.more)
                cursor_print(f->next, 's', page.last);
        return 0;
}

static int prepare(struct api *a, const struct request *q, int64_t experiment_id, struct export *f, uint32_t *ret_limit,
                   struct refusal *r) {
        static const char *const types[] = {"application/json", "application/x-ndjson", "text/csv", NULL};
        const char *histogram = request_parameter(q, "histogram");
        if (histogram && strcmp(histogram, "0") != 0 && strcmp(histogram, "1") != 0)
                return refuse_parameter(r, "histogram", histogram, "0 or 1");
        f->histogram = histogram && *histogram == '1';
        int k = request_parameter_cursor(q, 's', &f->after, r);
        int format = k < 0 ? k : negotiate(q, types, r);
        if (format < 0)
                return format;
        f->format = (enum format) format;
        k = request_parameter_u32(q, "limit", 1, PAGE_MAX, f->format == FORMAT_JSON ? PAGE_DEFAULT : 0, ret_limit, r);
        if (k < 0)
                return k;
        f->until = INT64_MAX;
        return provenance_load(a, experiment_id, f->format == FORMAT_CSV, &f->provenance, r);
}

static int respond_samples(struct api *a, const struct request *q, int64_t experiment_id, int64_t run_id,
                           struct response *p, struct refusal *r) {
        static const char *const types[] = {"application/json", "application/x-ndjson", CSV_TYPE};
        struct export *f = calloc(1, sizeof(*f));
        uint32_t limit;
        if (!f)
                return -ENOMEM;
        f->service = a->service;
        f->run_id = run_id;
        int k = prepare(a, q, experiment_id, f, &limit, r);
        response_vary(p, "Accept");
        bool known = k >= 0 && provenance_tag(&f->provenance, q, p, types[f->format]);
        if (k >= 0 && !known && limit > 0)
                k = measure_page(f, limit, r);
        if (k < 0 || known) {
                export_free(f);
                return k < 0 ? k : 0;
        }
        if (f->next[0])
                response_header(p, "Link", "<%s?limit=%u&cursor=%s%s>; rel=\"next\"", q->path, limit, f->next,
                                f->histogram ? "&histogram=1" : "");
        return feed_respond(q, p, types[f->format], &source, f, r);
}

HANDLER(handle_experiment_samples) {
        return respond_samples(a, q, q->id, 0, p, r);
}

HANDLER(handle_run_samples) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        int k = service_run(a->service, q->id, &run, r);
        return k < 0 ? k : respond_samples(a, q, run.experiment_id, q->id, p, r);
}
