/* SPDX-License-Identifier: MIT */

/*
 * The start for the next transport's author: a complete small transport, over a socket pair per thread, that is built
 * and tested but has no row. Copy it into its family's folder, and write what yours is and why it is done so where this
 * paragraph stands. docs/adding-a-transport.md has the other steps: its row in schema/transport/table.h, its line in
 * meson.build, its loop in the bench.
 *
 * What is yours to decide is only how a message gets across. When to start and stop, what to count and what to verify
 * is decided in phases.c, sampler.c and loops.h.
 */

#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/loop/loops.h"
#include "agent/transport/transport.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define WAIT_MS 100 /* no wait is endless: the limit is looked at again */

/*
 * The hot functions: inline, small, everything unlikely in a function of its own. They are called in the worker's
 * thread. A transport whose messages lie in shared memory gives their place in acquire and receive, and hands them over
 * in send and release; one that copies uses w->buffer and the two ready-made functions below.
 */
static int skeleton_send_rest(struct worker *w, const unsigned char *message, ssize_t n);
static int skeleton_receive_rest(struct worker *w, unsigned char *message, ssize_t n);

LOOP_INLINE int skeleton_send(struct worker *w, unsigned char *message) {
        ssize_t n = send(w->send_fd, message, w->size, MSG_NOSIGNAL);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return skeleton_send_rest(w, message, n);
        return 0;
}

LOOP_INLINE int skeleton_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = recv(w->receive_fd, w->buffer, w->size, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return skeleton_receive_rest(w, w->buffer, n);
        return 0;
}

/*
 * The cold side. Three rules:
 *      - an interruption before a message's first byte, with nothing left to do, returns WORKER_STOP: that is how the
 *        leader ends a receiver that waits for a message that will never come;
 *      - a message that has begun is completed, and each part is counted;
 *      - a failure says who, where and why. One that is the peer's fault is a failure_blame().
 */
static int after_error(struct worker *w, size_t moved, const char *what) {
        int error = errno;
        if (error == EINTR || error == EAGAIN) {
                worker_count(error == EINTR ? &w->eintr : &w->eagain);
                if (error == EAGAIN)
                        (void) poll(NULL, 0, WAIT_MS);
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        }
        if (error == EPIPE || error == ECONNRESET)
                return failure_blame(&w->failure, w->agent->peer_role, error,
                                     "closed the channel: %s failed in thread %" PRIu32 ": %s", what, w->index,
                                     strerrordesc_np(error));
        return failure_set(&w->failure, error, "with peer %s, %s failed in thread %" PRIu32 ": %s", w->agent->peer_role,
                           what, w->index, strerrordesc_np(error));
}

static int skeleton_send_rest(struct worker *w, const unsigned char *message, ssize_t n) {
        for (size_t sent = 0;;) {
                if (n >= 0) {
                        sent += (size_t) n;
                        if (sent == w->size)
                                return 0;
                        worker_count(&w->partial_sends);
                } else {
                        int r = after_error(w, sent, "send");
                        if (r)
                                return r;
                }
                n = send(w->send_fd, message + sent, w->size - sent, MSG_NOSIGNAL);
        }
}

static int skeleton_receive_rest(struct worker *w, unsigned char *message, ssize_t n) {
        for (size_t got = 0;;) {
                if (n > 0) {
                        got += (size_t) n;
                        if (got == w->size)
                                return 0;
                        worker_count(&w->partial_receives);
                } else if (n == 0) {
                        return failure_blame(&w->failure, w->agent->peer_role, EPIPE,
                                             "closed the channel of thread %" PRIu32, w->index);
                } else {
                        int r = after_error(w, got, "recv");
                        if (r)
                                return r;
                }
                n = recv(w->receive_fd, message + got, w->size - got, 0);
        }
}

/* This makes skeleton_loops: four roles, three verifications each, compiled from the functions above. */
static const struct channel skeleton_channel = {
        .acquire = loop_acquire_buffer,
        .send = skeleton_send,
        .receive = skeleton_receive,
        .release = loop_release_nothing,
};
TRANSPORT_LOOPS(skeleton, skeleton_channel);

static const struct transport_loops *skeleton_loops_of(const struct agent *a) {
        (void) a; /* a transport with copy or wait modes chooses between sets of loops here */
        return &skeleton_loops;
}

/*
 * The rendezvous, in the leader's thread: the first end makes what there is to make and passes it on, the second takes
 * it, in the same order of threads. Every wait has the deadline. Whatever has a name must have lost it when this
 * returns, or lose it in close.
 */
static int offer(struct agent *a, struct worker *w, uint64_t deadline_ns) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return failure_set(&a->failure, errno, "socketpair: %s", strerrordesc_np(errno));
        int r = peer_send_fds(a, w->index, &pair[1], 1, deadline_ns);
        (void) util_close(pair[1]);
        w->send_fd = w->receive_fd = pair[0]; /* closed with the worker */
        return r;
}

static int skeleton_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                if (a->end == END_FIRST) {
                        r = offer(a, w, deadline_ns);
                        continue;
                }
                r = peer_receive_fds(a, i, &w->receive_fd, 1, deadline_ns);
                w->send_fd = w->receive_fd;
        }
        return r;
}

/* In the worker's thread, on its own CPU and under its own memory policy: map and touch here what the worker owns, and
 * report it from `pages`. Nothing to do for a transport whose bytes lie in the kernel. */
static int skeleton_attach(struct worker *w) {
        (void) w;
        return 0;
}

/* What was in force, with the unit in the name. A size that cannot be asked for is null with NAME_reason. */
static void skeleton_effective(const struct agent *a, struct json_writer *w) {
        (void) a;
        (void) w;
}

const struct transport_ops transport_skeleton = {
        .transport = TRANSPORT_COUNT, /* yours: TRANSPORT_NAME */
        .engine = ENGINE_SYSCALL,
        .open = skeleton_open,
        .attach = skeleton_attach,
        .loops = skeleton_loops_of,
        .effective = skeleton_effective,
};
