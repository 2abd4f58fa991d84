/* SPDX-License-Identifier: MIT */

/*
 * The handling of a packet that was not sent or received at the first call: interruptions, full queues, packets of a
 * wrong length, a peer that is gone. The hot functions in packet.h call it in the worker's thread.
 */

#include "agent/transport/stream/packet.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define POLL_MS 100 /* interval at which a worker that waits for room checks its limit */

/* 0: the caller tries again; else its result. */
static int after_error(struct worker *w, int fd, short events, size_t length, size_t moved, const char *what) {
        int error = errno;
        struct pollfd p = {.fd = fd, .events = events};
        switch (error) {
        case EINTR:
                worker_count(&w->eintr);
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        case EAGAIN:
        case ENOBUFS:
                worker_count(&w->eagain);
                (void) poll(&p, 1, POLL_MS); /* its result is ignored, as the next call returns the error */
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        case EMSGSIZE:
                return failure_set(&w->failure, error,
                                   "a packet of %zu bytes is more than the socket's send buffer takes "
                                   "(transport_options sndbuf, net.core.wmem_max); chunk: true sends it in parts",
                                   length);
        case EPIPE:
        case ECONNRESET:
        case ECONNREFUSED:
                return failure_blame(&w->failure, w->agent->peer_role, error,
                                     "closed the channel of thread %" PRIu32 " in message %" PRIu64 ": %s", w->index,
                                     w->messages, strerrordesc_np(error));
        default:
                return failure_set(&w->failure, error, "%s failed in thread %" PRIu32 ", message %" PRIu64 ": %s", what,
                                   w->index, w->messages, strerrordesc_np(error));
        }
}

static int wrong_length(struct worker *w, size_t length, ssize_t n) {
        return failure_set(&w->failure, EBADMSG,
                           "a packet of %zd bytes where one of %zu was due, in thread %" PRIu32 ", message %" PRIu64, n,
                           length, w->index, w->messages);
}

int packet_send_again(struct worker *w, const unsigned char *packet, size_t length, size_t moved, ssize_t n) {
        while (n < 0) {
                int r = after_error(w, w->send_fd, POLLOUT, length, moved, "send");
                if (r)
                        return r;
                n = packet_write(w->send_fd, packet, length);
        }
        return (size_t) n == length ? 0 : wrong_length(w, length, n);
}

int packet_finish_send(struct worker *w, size_t from, size_t length, ssize_t n, packet_again again) {
        while (n < 0) {
                int r = after_error(w, w->send_fd, POLLOUT, length, from, "send");
                if (r)
                        return r;
                n = again(w, from, length);
        }
        return (size_t) n == length ? 0 : wrong_length(w, length, n);
}

static ssize_t read_again(struct worker *w, unsigned char *packet, size_t length) {
        return packet_read(w->receive_fd, packet, length);
}

int packet_receive_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n) {
        return packet_finish_receive(w, packet, length, moved, n, read_again);
}

int packet_finish_receive(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n,
                          packet_reader again) {
        while (n < 0) {
                int r = after_error(w, w->receive_fd, POLLIN, length, moved, "receive");
                if (r)
                        return r;
                n = again(w, packet, length);
        }
        if (n == 0)
                return failure_blame(&w->failure, w->agent->peer_role, EPIPE,
                                     "closed the channel of thread %" PRIu32 " before message %" PRIu64, w->index,
                                     w->messages);
        return (size_t) n == length ? 0 : wrong_length(w, length, n);
}
