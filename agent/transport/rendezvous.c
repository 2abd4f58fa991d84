/* SPDX-License-Identifier: MIT */

#include "agent/transport/rendezvous.h"

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Sends the second end the descriptor that it reads from, then, where messages go both ways, the one that it writes
 * to. */
static int pass_one_way(struct agent *a, struct worker *w, uint64_t deadline_ns, int (*make)(struct agent *, int *)) {
        int there[2] = {-1, -1}, back[2] = {-1, -1};
        unsigned n = point_directions(&a->setup.point);

        int r = make(a, there);
        if (r == 0 && n == 2)
                r = make(a, back);
        if (r == 0)
                r = peer_send_fds(a, w->index, (int[]){there[0], back[1]}, n, deadline_ns);
        (void) util_close(there[0]);
        (void) util_close(back[1]);
        w->send_fd = there[1];
        w->receive_fd = back[0];
        return r;
}

static int take_one_way(struct agent *a, struct worker *w, uint64_t deadline_ns) {
        int fds[2] = {-1, -1};
        int r = peer_receive_fds(a, w->index, fds, point_directions(&a->setup.point), deadline_ns);
        w->receive_fd = fds[0];
        w->send_fd = fds[1];
        return r;
}

int rendezvous_one_way(struct agent *a, uint64_t deadline_ns, int (*make)(struct agent *a, int ret[2])) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = a->end == END_FIRST ? pass_one_way(a, &a->workers[i], deadline_ns, make)
                                        : take_one_way(a, &a->workers[i], deadline_ns);
        return r;
}

static int pass_socket(struct agent *a, struct worker *w, int type, uint64_t deadline_ns,
                       int (*prepare)(struct agent *, int)) {
        int pair[2];
        if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) < 0)
                return failure_set(&a->failure, errno, "socketpair: %s", strerrordesc_np(errno));
        w->send_fd = w->receive_fd = pair[0];
        int r = prepare ? prepare(a, pair[0]) : 0;
        if (r == 0 && prepare)
                r = prepare(a, pair[1]);
        if (r == 0)
                r = peer_send_fds(a, w->index, &pair[1], 1, deadline_ns);
        (void) util_close(pair[1]);
        return r;
}

int rendezvous_sockets(struct agent *a, int type, uint64_t deadline_ns, int (*prepare)(struct agent *a, int fd)) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                if (a->end == END_FIRST) {
                        r = pass_socket(a, w, type, deadline_ns, prepare);
                        continue;
                }
                r = peer_receive_fds(a, i, &w->receive_fd, 1, deadline_ns);
                w->send_fd = w->receive_fd;
        }
        return r;
}
