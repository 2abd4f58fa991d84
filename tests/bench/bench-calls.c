/* SPDX-License-Identifier: MIT */

/* System calls and context switches, agents beside loops by hand; see bench-calls.h. */

#include "tests/bench/bench-calls.h"

#include "schema/util.h"
#include "tests/bench/agents.h"
#include "tests/bench/hand-calls.h"

#include <limits.h>
#include <string.h>

#define PROMISE 0.97

enum { BY_HAND, BY_AGENTS };

struct work {
        const struct bench *b;
        const struct bench_row *row;
        struct window window;
};

static int calls_once(void *userdata, unsigned which, double *ret_rate) {
        const struct work *w = userdata;
        struct agents_figures f;
        int r;
        if (which == BY_HAND) {
                struct hand_calls h = {.workload = w->row->point.workload,
                                       .call = w->row->point.call,
                                       .warmup_ns = w->window.warmup_ns,
                                       .duration_ns = w->window.duration_ns,
                                       .chunk = w->window.chunk,
                                       .cpu = w->row->cpus[0]};
                r = hand_calls_run(&h, ret_rate);
                if (r < 0)
                        fprintf(stderr, "%s: hand-written loop: %s\n", w->b->options.program, strerrordesc_np(-r));
                return r;
        }
        r = agents_run(w->b, w->row, &w->window, AGENTS_SAMPLED, &f);
        if (r == 0)
                *ret_rate = f.rate;
        return r;
}

static int calls_row(struct bench *b, const struct bench_row *row) {
        static struct match m;
        struct work w = {.b = b, .row = row};
        double rate;
        m = (struct match){
                .once = calls_once,
                .userdata = &w,
                .n = 2,
                .judgements = {{.of = BY_AGENTS, .to = BY_HAND, .also_of = NOWHERE, .limit = PROMISE, .note = ""}},
                .n_judgements = 1,
        };
        int r = agents_probe(b, row, &rate);
        if (r < 0)
                return r;
        w.window = bench_window(row, rate);
        r = bench_compare(b, row, &m);
        if (r == 0)
                printf("%-21s %.1f ns by hand, %.1f ns by agents\n",
                       row->point.workload == WORKLOAD_SYSCALL ? "  a call:" : "  a switch:",
                       1e9 / series_median(&m.series[BY_HAND]), 1e9 / series_median(&m.series[BY_AGENTS]));
        return r;
}

static const struct bench_part part_calls = {.name = BENCH_CALLS,
                                             .heading = "calls per second, and switches per second between two "
                                                        "processes without a working set, less what their pipes cost "
                                                        "without a switch",
                                             .to = "hand",
                                             .of = "agents",
                                             .also = "",
                                             .run = calls_row};

/* These have no transport and no size: options that name one exclude them. */
static bool is_wanted(const struct bench_options *o, enum workload w) {
        return o->transport < 0 && bench_options_want(o, part_calls.name, TRANSPORT_PIPE, w, o->size) && o->size == 0;
}

static void add(struct bench *b, const struct point *p) {
        struct bench_row *row = bench_add(b, &part_calls, p);
        row->cpus[1] = row->cpus[0];
}

void bench_calls_add(struct bench *b) {
        struct point p = {.workload = WORKLOAD_SYSCALL};
        for (enum system_call c = 0; is_wanted(&b->options, p.workload) && c < SYSTEM_CALL_COUNT; c++) {
                p.call = c;
                add(b, &p);
        }
        p = (struct point){.workload = WORKLOAD_CONTEXT_SWITCH, .processes = HAND_SWITCH_PROCESSES};
        if (!is_wanted(&b->options, p.workload))
                return;
        if (b->options.cpus[0] < 0)
                printf("context-switch: no row: all its processes are to be on one CPU, and --cpus gives none\n");
        else
                add(b, &p);
}
