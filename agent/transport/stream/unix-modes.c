/* SPDX-License-Identifier: MIT */

/*
 * The ways to send a message through a Unix socket, for unix.c. Streams use the functions of pipes (descriptor.h),
 * datagrams and sequenced packets those of packets (packet.h).
 *
 *      two-copy   write, sendto   into the kernel, and out of it
 *      one-copy   sendmsg         the same, without packing the message's fields together first
 *
 * With io_uring (uring/transport.c) these are its operations send and sendmsg.
 */

#include "agent/loop/fields.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/packet.h"
#include "agent/transport/stream/unix-sockets.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <inttypes.h>
#include <string.h>

static const struct channel stream_channel = DESCRIPTOR_CHANNEL;
static const struct channel packet_channel = {.acquire = loop_acquire_buffer,
                                              .send = packet_send,
                                              .receive = packet_receive,
                                              .release = loop_release_nothing};
static const struct channel chunks_channel = {.acquire = loop_acquire_buffer,
                                              .send = packet_send_chunks,
                                              .receive = packet_receive_chunks,
                                              .release = loop_release_nothing};
TRANSPORT_LOOPS(stream, stream_channel);
TRANSPORT_LOOPS(packet, packet_channel);
TRANSPORT_LOOPS(chunks, chunks_channel);

/* --- messages in several fields --- */

LOOP_INLINE ssize_t gather(const struct worker *w, struct iovec *iov, unsigned n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return syscall(SYS_sendmsg, w->send_fd, &m, MSG_NOSIGNAL);
}

static ssize_t gather_rest(struct worker *w, const unsigned char *message, size_t sent) {
        struct iovec rest[SPEC_FIELDS_MAX];
        (void) message;
        return gather(w, rest, fields_after(w->channel, sent, rest));
}

LOOP_INLINE int gather_stream(struct worker *w, unsigned char *message) {
        struct fields *f = w->channel;
        ssize_t n = gather(w, f->iov, f->n);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, gather_rest, "sendmsg");
        return 0;
}

/* Sends the fields' bytes [from, from + length) as a packet. */
static ssize_t gather_part(struct worker *w, size_t from, size_t length) {
        struct iovec part[SPEC_FIELDS_MAX];
        return gather(w, part, fields_part(w->channel, from, length, part));
}

LOOP_INLINE int gather_packet(struct worker *w, unsigned char *message) {
        struct fields *f = w->channel;
        (void) message;
        ssize_t n = gather(w, f->iov, f->n);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return packet_finish_send(w, 0, w->size, n, gather_part);
        return 0;
}

LOOP_INLINE int gather_chunks(struct worker *w, unsigned char *message) {
        (void) message;
        return packet_send_parts(w, packet_chunk, gather_part);
}

#define GATHERED(how, take)                                                                                            \
        {                                                                                                              \
                .acquire = fields_acquire, .fill = fields_fill_message, .send = how, .receive = take,                  \
                .release = loop_release_nothing                                                                        \
        }
static const struct channel gathered_stream_channel = GATHERED(gather_stream, descriptor_receive);
static const struct channel gathered_packet_channel = GATHERED(gather_packet, packet_receive);
static const struct channel gathered_chunks_channel = GATHERED(gather_chunks, packet_receive_chunks);
TRANSPORT_LOOPS(gathered_stream, gathered_stream_channel);
TRANSPORT_LOOPS(gathered_packet, gathered_packet_channel);
TRANSPORT_LOOPS(gathered_chunks, gathered_chunks_channel);

/* --- the choice of loops --- */

const struct transport_loops *unix_loops(const struct agent *a) {
        bool gathers = a->setup.point.copy_mode == COPY_ONE;
        if (a->setup.point.transport == TRANSPORT_UNIX_STREAM)
                return gathers ? &gathered_stream_loops : &stream_loops;
        if (unix_chunked(a))
                return gathers ? &gathered_chunks_loops : &chunks_loops;
        return gathers ? &gathered_packet_loops : &packet_loops;
}

static bool sends(const struct agent *a) {
        return a->end == END_FIRST || a->setup.point.workload == WORKLOAD_PINGPONG;
}

int unix_attach(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        struct fields *fields = NULL;
        if (p->copy_mode != COPY_ONE || !sends(w->agent))
                return 0;
        int r = fields_new(w, w->size, p->fields, &fields);
        if (r < 0)
                return failure_set(&w->failure, -r, "no fields for sendmsg of thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        w->channel = fields;
        return 0;
}

void unix_detach(struct worker *w) {
        w->channel = fields_free(w->channel);
}

int unix_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct fields *f = a->workers[i].channel;
                if (f)
                        r = page_list_add(list, PAGES_BUFFER, i, f->memory, f->length);
        }
        return r;
}

void unix_modes_effective(const struct agent *a, struct effective *e) {
        const struct fields *f = a->workers[0].channel;
        if (!sends(a))
                return;
        effective_add_text(e, SETTING_SEND_METHOD,
                           f                                                   ? "sendmsg"
                           : a->setup.point.engine == ENGINE_IO_URING          ? "send"
                           : a->setup.point.transport == TRANSPORT_UNIX_STREAM ? "write"
                                                                               : "sendto");
        if (f)
                effective_add_number(e, SETTING_FIELDS, f->n);
}
