/* SPDX-License-Identifier: MIT */

/*
 * A stream, one way or both: one end sends as fast as the other receives. Throughput is the receiver's. Messages are
 * not timed, unless the transport stamps them with their send time.
 */

#include "agent/base/agent.h"
#include "agent/transport/transport.h"
#include "agent/workload/workload.h"

#include <errno.h>

static int stream_prepare(struct worker *w) {
        const struct agent *a = w->agent;
        const struct transport_loops *loops = a->transport->loops(a);
        if (agent_is_duplex(a))
                w->loop = loops->duplex;
        else
                w->loop = agent_sends(a) ? loops->sender : loops->receiver;
        if (!w->loop)
                return failure_set(&w->failure, EOPNOTSUPP, "transport %s has no stream",
                                   transport_name(a->setup.point.transport));
        /* in an open loop the receiver computes each message's due time */
        return a->setup.rate > 0 && !agent_is_duplex(a) && !agent_sends(a) ? worker_make_recorder(w) : 0;
}

const struct workload_ops workload_stream = {
        .workload = WORKLOAD_STREAM,
        .prepare = stream_prepare,
};
