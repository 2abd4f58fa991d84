/* SPDX-License-Identifier: MIT */

/* See the header; and GET /runs/{id}/histogram. */

#include "api/handle/histograms.h"

#include "api/handle/handlers.h"
#include "api/handle/render.h"
#include "schema/util.h"

static int visit_sample(void *userdata, const struct sample_record *s) {
        if (s->latency)
                histogram_add(userdata, s->latency);
        return 0;
}

int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r) {
        return service_samples(s, 0, run_id, 0, UINT32_MAX, visit_sample, into, r);
}

HANDLER(handle_run_histogram) {
        _cleanup_(run_record_deinit) struct run_record run = {0};
        _cleanup_free_ struct histogram *h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        int k = service_run(a->service, q->id, &run, r);
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
        json_object_end(&w);
        return response_json(p, 200, &w);
}
