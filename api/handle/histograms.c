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

static int visit_sample(void *userdata, const struct sample_record *s) {
        if (s->latency)
                histogram_add(userdata, s->latency);
        return 0;
}

int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r) {
        return service_samples(s, 0, run_id, 0, UINT32_MAX, visit_sample, into, r);
}

int histograms_of_row(struct service *s, const struct result_record *row, struct histogram *ret, struct refusal *r) {
        int k = 0;
        *ret = (struct histogram){0};
        for (uint32_t i = 0; k == 0 && i < row->runs; i++)
                k = histograms_add_run(s, row->run_ids[i], ret, r);
        return k;
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
