/* SPDX-License-Identifier: MIT */

/* See the header; and GET /runs/{id}/histogram. */

#include "api/handle/histograms.h"

#include "api/handle/handlers.h"
#include "api/handle/render/provenance.h"
#include "api/handle/render/render.h"
#include "api/http/feed.h"
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

/* As many samples of a run, behind *after, which becomes that of the last one. *most is reduced by how many there were.
 */
static int add_samples(struct service *s, int64_t run_id, int64_t *after, uint32_t *most, struct histogram *into,
                       struct refusal *r) {
        struct reading reading = {.into = into, .after = *after};
        int k = service_samples(s, 0, run_id, *after, *most, visit_sample, &reading, r);
        *after = reading.after;
        *most -= reading.n;
        return k;
}

int histograms_add_run(struct service *s, int64_t run_id, struct histogram *into, struct refusal *r) {
        int64_t after = 0;
        uint32_t most = UINT32_MAX;
        return add_samples(s, run_id, &after, &most, into, r);
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
        for (uint32_t left = SAMPLES_AT_A_TIME; at->run < row->runs;) {
                if (left == 0)
                        return 1;
                int k = add_samples(s, row->run_ids[at->run], &at->after, &left, ret, r);
                if (k < 0)
                        return k;
                if (left == 0)
                        continue;
                at->run++;
                at->after = 0;
                left--; /* a run without samples takes time, too */
        }
        *at = (struct histogram_progress){0};
        return 0;
}

/* The reason is that of the run's result; a run that is not done has none. */
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

struct of_run {
        struct service *service;
        struct run_record run;
        struct provenance provenance;
        struct histogram latency;
        int64_t after; /* change of the sample that was added last */
};

static void of_run_free(void *userdata) {
        struct of_run *of = userdata;
        run_record_deinit(&of->run);
        provenance_deinit(&of->provenance);
        free(of);
}

static void put_distribution(const struct of_run *of, struct json_writer *w) {
        const struct run_record *run = &of->run;
        json_object_begin(w);
        json_member_i64(w, "run_id", run->id);
        json_member_i64(w, "experiment_id", run->experiment_id);
        json_member_raw(w, "point", run->point_json);
        json_member_string(w, "state", state_name(run->state));
        json_put_key(w, "latency_histogram");
        render_distribution(w, &of->latency, render_latency_kind(run->point_json));
        if (histogram_total(&of->latency) == 0)
                put_reason(w, run);
        json_put_key(w, "provenance");
        provenance_put(&of->provenance, w);
        json_object_end(w);
}

/* Nothing but the last portion has bytes: the others are for the time that it takes. */
static int of_run_fill(void *userdata, struct text *out, struct refusal *r) {
        struct of_run *of = userdata;
        uint32_t left = SAMPLES_AT_A_TIME;
        int k = add_samples(of->service, of->run.id, &of->after, &left, &of->latency, r);
        if (k < 0 || left == 0)
                return k < 0 ? k : FEED_MORE;
        struct json_writer w;
        text_json_begin(out, &w);
        put_distribution(of, &w);
        text_json(out, &w);
        return FEED_LAST;
}

HANDLER(handle_run_histogram) {
        static const struct feed_source source = {.fill = of_run_fill, .free = of_run_free};
        struct of_run *of = calloc(1, sizeof(*of));
        if (!of)
                return -ENOMEM;
        of->service = a->service;
        int k = service_run(a->service, q->id, &of->run, r);
        if (k == 0)
                k = provenance_load(a, of->run.experiment_id, false, &of->provenance, r);
        if (k < 0) {
                of_run_free(of);
                return k;
        }
        return feed_respond(q, p, "application/json", &source, of, r);
}
