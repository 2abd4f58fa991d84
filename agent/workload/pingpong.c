/* SPDX-License-Identifier: MIT */

/*
 * There and back: the first end sends a message and waits for one of the same size. It times every round trip, and
 * the reading of the clock that this takes is measured beforehand, on the CPU that will do it.
 */

#include "agent/base/agent.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"
#include "schema/util.h"

#include <string.h>

#define CLOCK_TRIALS 500u
#define CLOCK_READS 8u

/* The shortest of many, when nothing comes between. At least 1, as 0 stands for "not measured". */
static uint64_t measure_clock(void) {
        uint64_t best = UINT64_MAX;
        for (unsigned i = 0; i < CLOCK_TRIALS; i++) {
                uint64_t begin = util_now_ns();
                for (unsigned k = 1; k < CLOCK_READS; k++)
                        (void) util_now_ns();
                uint64_t end = util_now_ns(); /* from the first's end to here: CLOCK_READS of them */
                if (end - begin < best)
                        best = end - begin;
        }
        best = (best + CLOCK_READS / 2) / CLOCK_READS;
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
                a->clock_cost_ns = measure_clock();
        return 0;
}

const struct workload_ops workload_pingpong = {
        .workload = WORKLOAD_PINGPONG,
        .prepare = pingpong_prepare,
};
