/* SPDX-License-Identifier: MIT */

/* See the header; and GET /runs/{id}/histogram. */

#include "api/handle/histograms.h"

#include "api/handle/handlers.h"
#include "api/handle/provenance.h"
#include "api/handle/render.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define SAMPLES_AT_A_TIME 4096u

struct reading {
        struct histogram *into;
        int64_t after; /* change of the last one */
        uint32_t n;
};

static int visit_sample(void *userdata, const struct sample_record *s) {
        struct reading *reading = userdata;
        if (s->latency)
                histogram_add(reading->into, s->latency);
        reading->after = s->change;
        reading->n++;
        return 0;
}

int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r) {
        return service_samples(s, 0, run_id, 0, UINT32_MAX, visit_sample, &(struct reading){.into = into}, r);
}

int histograms_of_row(struct service *s, const struct result_record *row, struct histogram *ret, struct refusal *r) {
        int k = 0;
        *ret = (struct histogram){0};
        for (uint32_t i = 0; k == 0 && i < row->runs; i++)
                k = histograms_add_run(s, row->run_ids[i], ret, r);
        return k;
}

static void progress_begin(struct histogram_progress *ret, const struct result_record *row) {
        *ret = (struct histogram_progress){.runs = row->runs};
        if (row->runs > 0) {
                ret->first = row->run_ids[0];
                ret->last = row->run_ids[row->runs - 1];
        }
}

int histograms_add_some(struct service *s, const struct result_record *row, struct histogram_progress *at,
                        struct histogram *ret, struct refusal *r) {
        struct histogram_progress now;
        progress_begin(&now, row);
        if (at->runs == 0) {
                *at = now;
                *ret = (struct histogram){0};
        } else if (at->runs != now.runs || at->first != now.first || at->last != now.last) {
                *at = (struct histogram_progress){0};
                return histograms_of_row(s, row, ret, r);
        }
        for (uint32_t n = 0; at->run < row->runs;) {
                if (n >= SAMPLES_AT_A_TIME)
                        return 1;
                struct reading reading = {.into = ret, .after = at->after};
                uint32_t most = SAMPLES_AT_A_TIME - n;
                int k = service_samples(s, 0, row->run_ids[at->run], at->after, most, visit_sample, &reading, r);
                if (k < 0)
                        return k;
                at->after = reading.after;
                if (reading.n < most) {
                        at->run++;
                        at->after = 0;
                }
                n += reading.n + 1; /* a run without samples takes time, too */
        }
        *at = (struct histogram_progress){0};
        return 0;
}

/* As the run's result has it; one that is not done has no result. */
static void put_reason(struct json_writer *w, const struct run_record *run) {
        const char *reason = NULL;
        size_t length = 0;
        bool found = run->result_json && json_find_member(run->result_json, "latency_reason", &reason, &length);
        _cleanup_free_ char *text = found ? strndup(reason, length) : NULL;
        if (found && !text && w->error == 0)
                w->error = -ENOMEM;
        if (text)
                json_member_raw(w, "latency_histogram_reason", text);
        else
                json_member_string(w, "latency_histogram_reason", "no latency of this run is stored");
}

HANDLER(handle_run_histogram) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        _cleanup_free_ struct histogram *h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        _cleanup_(provenance_deinit) struct provenance provenance = {0};
        int k = service_run(a->service, q->id, &run, r);
        if (k == 0)
                k = provenance_load(a, run.experiment_id, false, &provenance, r);
        if (k == 0)
                k = histograms_add_run(a->service, q->id, h, r);
        if (k < 0)
                return k;
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_writer_init(&w);
        json_object_begin(&w);
        json_member_i64(&w, "run_id", run.id);
        json_member_i64(&w, "experiment_id", run.experiment_id);
        json_member_raw(&w, "point", run.point_json);
        json_member_string(&w, "state", state_name(run.state));
        json_put_key(&w, "latency_histogram");
        render_distribution(&w, h, render_latency_kind(run.point_json));
        if (histogram_total(h) == 0)
                put_reason(&w, &run);
        json_put_key(&w, "provenance");
        provenance_put(&provenance, &w);
        json_object_end(&w);
        return response_json(p, 200, &w);
}
