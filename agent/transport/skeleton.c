/* SPDX-License-Identifier: MIT */

/*
 * The start for the next transport's author: a complete small transport, over a socket pair per thread, that is built
 * and tested but has no row. Copy it into its family's folder, and replace this paragraph by a description of yours and
 * of its design. docs/adding-a-transport.md has the other steps: its row in schema/transport/table.h, its line in
 * meson.build, its loop in the bench.
 *
 * A transport only implements the transfer of a message. phases.c, sampler.c and loops.h implement start and stop,
 * counting and verification.
 */

#include "agent/base/wait.h"
#include "agent/loop/loops.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/transport.h"

#include <sys/socket.h>

/*
 * The hot functions: inline, small, everything unlikely in a function of its own. They are called in the worker's
 * thread. A transport whose messages lie in shared memory gives their place in acquire and receive, and hands them over
 * in send and release; one that copies uses w->buffer and the two ready-made functions below.
 */
static ssize_t send_again(struct worker *w, const unsigned char *message, size_t sent) {
        return send(w->send_fd, message + sent, w->size - sent, MSG_NOSIGNAL);
}

LOOP_INLINE int skeleton_send(struct worker *w, unsigned char *message) {
        ssize_t n = send_again(w, message, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, send_again, "send");
        return 0;
}

static ssize_t receive_more(struct worker *w, unsigned char *message, size_t got) {
        return recv(w->receive_fd, message + got, w->size - got, 0);
}

LOOP_INLINE int skeleton_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = receive_more(w, w->buffer, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_receive(w, w->buffer, n, receive_more, "recv");
        return 0;
}

/*
 * The cold side is descriptor.c's here, as for any stream of bytes. A transport with one of its own follows three
 * rules:
 *      - an interruption before a message's first byte, when the loop is over, returns WORKER_STOP: that is how the
 *        leader ends a receiver that waits for a message that will never come;
 *      - a message that has begun is completed, and each part is counted;
 *      - a failure names the thread, the call and the error. One that is the peer's fault is a failure_set_peer().
 */

/* This defines skeleton_loops: four roles, three verifications each, compiled from the functions above. */
LOOPS_OF_BUFFERS(skeleton, skeleton_send, skeleton_receive);

static const struct transport_loops *skeleton_loops_of(const struct agent *a) {
        (void) a; /* a transport with copy or wait modes chooses between sets of loops here */
        return &skeleton_loops;
}

/*
 * The rendezvous, in the leader's thread: the first end creates the channels and passes them on, the second receives
 * them, in the same order of threads. rendezvous.h does it for descriptors without a name. Every wait has the deadline.
 * Whatever has a name must have lost it when this returns, or lose it in close.
 */
static int skeleton_open(struct agent *a) {
        return rendezvous_sockets(a, SOCK_STREAM, util_now_ns() + AGENT_RENDEZVOUS_NS, NULL);
}

/* In the worker's thread, on its own CPU and under its own memory policy: map and touch the worker's memory here, and
 * report it from `pages`. A transport whose bytes lie in the kernel has nothing to do here. */
static int skeleton_attach(struct worker *w) {
        (void) w;
        return 0;
}

/* Reports the settings in force, with the unit in the name. A size that cannot be queried is null with NAME_reason. */
static void skeleton_effective(const struct agent *a, struct effective *e) {
        (void) a;
        (void) e;
}

const struct transport_ops transport_skeleton = {
        .transport = TRANSPORT_COUNT, /* yours: TRANSPORT_NAME */
        .engine = ENGINE_SYSCALL,
        .open = skeleton_open,
        .attach = skeleton_attach,
        .loops = skeleton_loops_of,
        .effective = skeleton_effective,
};
