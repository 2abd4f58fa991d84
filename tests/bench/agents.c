/* SPDX-License-Identifier: MIT */

/* A round of real agents; see agents.h. */

#include "tests/bench/agents.h"

#include "schema/json.h"
#include "schema/util.h"

#include <string.h>

static double clock_cost_ns(const char *effective) {
        struct json *root = NULL;
        int64_t ns = 0;
        if (effective && json_parse(effective, strlen(effective), &root, NULL) == 0)
                (void) json_as_i64(json_get(root, "clock_cost_ns"), &ns); /* stays 0: it is not there */
        json_free(root);
        return (double) ns;
}

static struct agents_figures figures_of(const struct driver *d, enum workload workload) {
        const struct driver_end *first = &d->ends[END_FIRST];
        const struct message_report *report = &d->ends[workload == WORKLOAD_STREAM ? END_SECOND : END_FIRST].report;
        struct agents_figures f = {.rate = (double) report->messages * 1e9 / (double) report->window_ns,
                                   .clock_ns = clock_cost_ns(first->effective)};
        struct latency_summary l;
        if (histogram_summarize(&first->latency, &l) == 0)
                f.p50_ns = (double) l.p50;
        return f;
}

int agents_run(const struct bench *b, const struct bench_row *row, const struct window *w, enum agents_burden burden,
               struct agents_figures *ret) {
        struct driver d;
        struct driver_spec s = driver_spec_default(b->options.agent);
        s.point = row->point;
        s.point.threads = 1;
        s.point.fields = s.point.copy_mode == COPY_ONE ? SPEC_FIELDS_STANDARD : 0;
        s.verify = b->options.verify;
        s.options = row->options;
        s.duration_ns = w->duration_ns;
        s.warmup_ns = w->warmup_ns;
        s.interval_ns = burden == AGENTS_BARE ? 0 : burden == AGENTS_TIMED ? 2 * s.duration_ns : s.duration_ns / 3;
        memcpy(s.cpus, row->cpus, sizeof s.cpus);

        int r = driver_run(&d, &s);
        if (r == 0)
                *ret = figures_of(&d, row->point.workload);
        else
                fprintf(stderr, "%s: agents: %s\n", b->options.program, d.trouble);
        driver_deinit(&d);
        return r;
}

int agents_probe(const struct bench *b, const struct bench_row *row, double *ret_rate) {
        struct window w = bench_window(row, 0);
        struct agents_figures f;
        w.duration_ns /= 2;
        int r = agents_run(b, row, &w, AGENTS_BARE, &f);
        if (r == 0)
                *ret_rate = f.rate;
        return r;
}
