/* SPDX-License-Identifier: MIT */

/* Unix sockets by hand: write(2), send(2) or sendmsg(2), and read(2) or recv(2), in a process with one thread. */

#include "tests/bench/hand-gather.h"

#include <sys/socket.h>
#include <unistd.h>

HAND_INLINE int receive_packet(struct hand_end *e) {
        return recv(e->in, e->buffer, e->size, 0) == (ssize_t) e->size ? 0 : -1;
}

HAND_INLINE int send_packet(struct hand_end *e, unsigned char *message) {
        return send(e->out, message, e->size, MSG_NOSIGNAL) == (ssize_t) e->size ? 0 : -1;
}

HAND_INLINE ssize_t send_fields(struct hand_end *e) {
        struct gathered *g = e->own;
        struct msghdr m = {.msg_iov = g->iov, .msg_iovlen = (size_t) g->n};
        return sendmsg(e->out, &m, MSG_NOSIGNAL);
}

HAND_INLINE int gather_stream(struct hand_end *e, unsigned char *message) {
        (void) message;
        ssize_t n = send_fields(e);
        if (n < 0)
                return -1;
        return (size_t) n == e->size ? 0 : send_gathered_rest(e, (size_t) n);
}

HAND_INLINE int gather_packet(struct hand_end *e, unsigned char *message) {
        (void) message;
        return send_fields(e) == (ssize_t) e->size ? 0 : -1;
}

static const struct hand_way unix_way = {.next = hand_next_buffer, .send = send_stream, .receive = receive_stream};
static const struct hand_way packet_way = {.next = hand_next_buffer, .send = send_packet, .receive = receive_packet};
static const struct hand_way unix_gathered_way = {.open = open_gathered,
                                                  .next = hand_next_buffer,
                                                  .fill = fill_gathered,
                                                  .send = gather_stream,
                                                  .receive = receive_stream};
static const struct hand_way packet_gathered_way = {.open = open_gathered,
                                                    .next = hand_next_buffer,
                                                    .fill = fill_gathered,
                                                    .send = gather_packet,
                                                    .receive = receive_packet};
HAND_LOOPS(unix_plain, unix_way);
HAND_LOOPS(packet, packet_way);
HAND_LOOPS(unix_gathered, unix_gathered_way);
HAND_LOOPS(packet_gathered, packet_gathered_way);
