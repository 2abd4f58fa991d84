/* SPDX-License-Identifier: MIT */

/* A round of real agents; see agents.h. */

#include "tests/bench/agents.h"

#include "schema/util.h"

#include <string.h>

#define SAMPLE_NS (NSEC_PER_SEC / 3) /* between two samples */

/* Messages per second; of a ring of processes, switches, less what the pipes cost, as the daemon has it. 0: that is
 * nothing. */
static double rate_of(const struct driver_end *e, const struct point *p) {
        double messages = (double) e->report.messages, ns = (double) e->report.window_ns;
        if (p->workload == WORKLOAD_CONTEXT_SWITCH) {
                messages *= p->processes;
                const struct effective_row *overhead = effective_find(e->report.effective, SETTING_PIPE_OVERHEAD_NS);
                ns -= overhead ? overhead->real * messages : 0;
        }
        return ns > 0 ? messages * 1e9 / ns : 0;
}

static struct agents_figures figures_of(const struct driver *d, const struct point *p) {
        const struct driver_end *first = &d->ends[END_FIRST];
        struct agents_figures f = {
                .rate = rate_of(&d->ends[p->workload == WORKLOAD_STREAM ? END_SECOND : END_FIRST], p),
                .clock_ns = (double) first->report.clock.cost_ns};
        struct latency_summary l;
        if (histogram_summarize(&first->latency, &l) == 0)
                f.p50_ns = (double) l.p50;
        return f;
}

static uint64_t interval_of(enum agents_burden burden, uint64_t duration_ns) {
        if (burden == AGENTS_SAMPLED)
                return duration_ns < SAMPLE_NS ? duration_ns : SAMPLE_NS;
        return burden == AGENTS_BARE ? 0 : 2 * duration_ns;
}

int agents_run(const struct bench *b, const struct bench_row *row, const struct window *w, enum agents_burden burden,
               struct agents_figures *ret) {
        struct driver d;
        struct driver_spec s = driver_spec_default(b->options.agent);
        s.point = row->point;
        s.point.threads = 1;
        s.point.fields = s.point.copy_mode == COPY_ONE ? SPEC_FIELDS_OF_STUDY : 0;
        s.verify = b->options.verify;
        s.options = row->options;
        s.duration_ns = w->duration_ns;
        s.warmup_ns = w->warmup_ns;
        s.interval_ns = interval_of(burden, w->duration_ns);
        memcpy(s.cpus, row->cpus, sizeof s.cpus);

        int r = driver_run(&d, &s);
        if (r == 0)
                *ret = figures_of(&d, &row->point);
        else
                fprintf(stderr, "%s: agents: %s\n", b->options.program, d.trouble);
        driver_deinit(&d);
        if (r == 0 && row->point.workload == WORKLOAD_CONTEXT_SWITCH && ret->rate <= 0) {
                fprintf(stderr, "%s: agents: nothing is left when the pipes' cost is subtracted\n", b->options.program);
                r = -ERANGE;
        }
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
