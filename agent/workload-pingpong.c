/* SPDX-License-Identifier: MIT */

/*
 * There and back: the first end sends a message and waits for one of the same size. It times every round trip, and the
 * pair of clock reads that this takes is measured beforehand, on the CPU that will do it.
 */

#include "agent/agent.h"
#include "agent/phases.h"
#include "schema/util.h"

#include <string.h>

#define CLOCK_PAIRS 2000u

/* The shortest of many: what the pair costs when nothing comes between. At least 1, as 0 stands for "not measured". */
static uint64_t measure_clock_pair(void) {
        uint64_t best = UINT64_MAX;
        for (unsigned i = 0; i < CLOCK_PAIRS; i++) {
                uint64_t begin = util_now_ns();
                (void) util_now_ns();
                (void) util_now_ns();
                uint64_t end = util_now_ns();
                if (end - begin < best) /* three reads: begin's end, two, end's beginning */
                        best = end - begin;
        }
        best = best * 2 / 3;
        return best ? best : 1;
}

static int pingpong_prepare(struct worker *w) {
        struct agent *a = w->agent;
        const struct transport_loops *loops = a->transport->loops(a);
        w->loop = a->end == END_FIRST ? loops->initiator : loops->responder;
        if (!w->loop)
                return failure_set(&w->failure, EOPNOTSUPP, "transport %s has no pingpong",
                                   transport_name(a->setup.point.transport));
        if (a->end != END_FIRST)
                return 0;
        int r = worker_make_histogram(w);
        if (r < 0 || !w->latency)
                return r;
        if (w->index == 0)
                a->clock_cost_ns = measure_clock_pair();
        return 0;
}

const struct workload_ops workload_pingpong = {
        .workload = WORKLOAD_PINGPONG,
        .prepare = pingpong_prepare,
        .run = phases_run,
};
