/* SPDX-License-Identifier: MIT */

/* One way: the first end sends as fast as the second takes. Nothing is timed per message; throughput is the receiver's.
 */

#include "agent/agent.h"
#include "agent/phases.h"

#include <errno.h>

static int stream_prepare(struct worker *w) {
        const struct agent *a = w->agent;
        const struct transport_loops *loops = a->transport->loops(a);
        w->loop = a->end == END_FIRST ? loops->sender : loops->receiver;
        if (!w->loop)
                return failure_set(&w->failure, EOPNOTSUPP, "transport %s has no stream",
                                   transport_name(a->setup.point.transport));
        return 0;
}

const struct workload_ops workload_stream = {
        .workload = WORKLOAD_STREAM,
        .prepare = stream_prepare,
        .run = phases_run,
};
