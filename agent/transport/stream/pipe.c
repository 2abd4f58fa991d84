/* SPDX-License-Identifier: MIT */

/*
 * Anonymous pipes: one per thread and direction. The first end makes them and passes the second its ends, one packet
 * per thread; then each process holds only what it uses, so that the death of either is an end of file or EPIPE at the
 * other.
 */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
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

/* Makes a thread's pipes and gives the other end's descriptors away: to read from, then (pingpong) to write to. */
static int offer(struct agent *a, struct worker *w, uint64_t deadline_ns) {
        int there[2] = {-1, -1}, back[2] = {-1, -1};
        unsigned n = point_directions(&a->setup.point);

        int r = make_pipe(a, there);
        if (r == 0 && n == 2)
                r = make_pipe(a, back);
        if (r == 0)
                r = peer_send_fds(a, w->index, (int[]){there[0], back[1]}, n, deadline_ns);
        (void) util_close(there[0]);
        (void) util_close(back[1]);
        w->send_fd = there[1];
        w->receive_fd = back[0];
        return r;
}

static int accept_offer(struct agent *a, struct worker *w, uint64_t deadline_ns) {
        int fds[2] = {-1, -1};
        int r = peer_receive_fds(a, w->index, fds, point_directions(&a->setup.point), deadline_ns);
        w->receive_fd = fds[0];
        w->send_fd = fds[1];
        return r;
}

static int pipe_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = a->end == END_FIRST ? offer(a, &a->workers[i], deadline_ns)
                                        : accept_offer(a, &a->workers[i], deadline_ns);
        return r;
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
