/* SPDX-License-Identifier: MIT */

/*
 * A pingpong: the first end sends a message and waits for one of the same size. It times every round trip.
 */

#include "agent/base/agent.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"

#include <errno.h>

static int pingpong_prepare(struct worker *w) {
        const struct agent *a = w->agent;
        const struct transport_loops *loops = a->transport->loops(a);
        w->loop = a->end == END_FIRST ? loops->initiator : loops->responder;
        if (!w->loop)
                return failure_set(&w->failure, EOPNOTSUPP, "transport %s has no pingpong",
                                   transport_name(a->setup.point.transport));
        if (a->end != END_FIRST)
                return 0;
        return worker_make_recorder(w);
}

const struct workload_ops workload_pingpong = {
        .workload = WORKLOAD_PINGPONG,
        .prepare = pingpong_prepare,
};
