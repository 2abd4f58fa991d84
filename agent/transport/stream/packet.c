/* SPDX-License-Identifier: MIT */

/*
 * The handling of a packet that was not sent or received at the first call: interruptions, full queues, packets of a
 * wrong length, a peer that is gone. The hot functions in packet.h call it in the worker's thread.
 */

#include "agent/transport/stream/packet.h"

#include "agent/transport/stream/descriptor.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

/* As descriptor_after_error(). */
static int after_error(struct worker *w, int fd, short events, size_t length, size_t moved, const char *what) {
        if (errno == EMSGSIZE)
                return failure_set(&w->failure, EMSGSIZE,
                                   "a packet of %zu bytes is more than the socket's send buffer takes "
                                   "(transport_options sndbuf, net.core.wmem_max); chunk: true sends it in parts",
                                   length);
        if (errno == ENOBUFS) /* the kernel has no memory for the packet at the moment */
                errno = EAGAIN;
        return descriptor_after_error(w, fd, events, moved, what);
}

static int wrong_length(struct worker *w, size_t length, ssize_t n) {
        return failure_set(&w->failure, EBADMSG,
                           "a packet of %zd bytes where one of %zu was due, in thread %" PRIu32 ", message %" PRIu64, n,
                           length, w->index, w->messages);
}

int packet_finish_send(struct worker *w, const unsigned char *message, size_t from, size_t length, ssize_t n,
                       packet_again again) {
        while (n < 0) {
                int r = after_error(w, w->send_fd, POLLOUT, length, from, "send");
                if (r)
                        return r;
                n = again(w, message, from, length);
        }
        return (size_t) n == length ? 0 : wrong_length(w, length, n);
}

int packet_finish_receive(struct worker *w, unsigned char *packet, size_t length, size_t from, ssize_t n,
                          packet_more more) {
        while (n < 0) {
                int r = after_error(w, w->receive_fd, POLLIN, length, from, "receive");
                if (r)
                        return r;
                n = more(w, packet, length);
        }
        if (n == 0)
                return failure_set_peer(&w->failure, w->agent->peer_role, EPIPE,
                                        "closed the channel of thread %" PRIu32 " before message %" PRIu64, w->index,
                                        w->messages);
        return (size_t) n == length ? 0 : wrong_length(w, length, n);
}
