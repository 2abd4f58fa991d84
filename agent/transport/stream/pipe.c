/* SPDX-License-Identifier: MIT */

/* Anonymous pipes: one per thread and direction. */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/stream/pipes.h"
#include "agent/transport/transport.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

static int make_pipe(struct agent *a, int ret[2]) {
        if (pipe2(ret, O_CLOEXEC) < 0)
                return failure_set(&a->failure, errno, "pipe: %s", strerrordesc_np(errno));
        int r = pipes_set_size(a, ret[1]);
        if (r < 0) {
                ret[0] = util_close(ret[0]);
                ret[1] = util_close(ret[1]);
        }
        return r;
}

static int pipe_open(struct agent *a) {
        return rendezvous_one_way(a, util_now_ns() + AGENT_RENDEZVOUS_NS, make_pipe);
}

const struct transport_ops transport_pipe = {
        .transport = TRANSPORT_PIPE,
        .engine = ENGINE_SYSCALL,
        .uring = &transport_uring_pipe,
        .open = pipe_open,
        .attach = pipes_attach,
        .detach = pipes_detach,
        .loops = pipes_loops,
        .effective = pipes_effective,
        .pages = pipes_pages,
};
