/* SPDX-License-Identifier: MIT */

/*
 * The transports that are descriptors, with io_uring in the place of the system calls (uring.h): the channels are those
 * of the other engine, opened by its code; only the calls that move a message differ. One operation per message and,
 * unless the point has a queue depth (batch.h), one message at a time, as there: a result compares the engines, not
 * their queues.
 *
 *      pipe, fifo                      write and read, or writev (copy mode one-copy); there is no vmsplice
 *      unix-stream                     send, or sendmsg (one-copy), and recv
 *      unix-dgram, unix-seqpacket      the same, in packets
 *      file                            write and read at an offset, fsync
 */

#include "agent/transport/transport.h"
#include "agent/loop/fields.h"
#include "agent/transport/file/slots.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/packet.h"
#include "agent/transport/uring/batch.h"
#include "agent/transport/uring/uring.h"

#include <sys/socket.h>

/* Pipes and FIFOs. */

static ssize_t write_again(struct worker *w, const unsigned char *message, size_t sent) {
        return uring_write(w, message + sent, w->size - sent, URING_STREAM);
}

static ssize_t read_more(struct worker *w, unsigned char *message, size_t got) {
        return uring_read(w, message + got, w->size - got, URING_STREAM);
}

LOOP_INLINE int pipe_send(struct worker *w, unsigned char *message) {
        ssize_t n = uring_write(w, message, w->size, URING_STREAM);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, write_again, "write");
        return 0;
}

LOOP_INLINE int pipe_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = uring_read(w, w->buffer, w->size, URING_STREAM);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_receive(w, w->buffer, n, read_more, "read");
        return 0;
}

static const struct channel pipe_channel = {
        .acquire = loop_acquire_buffer, .send = pipe_send, .receive = pipe_receive, .release = loop_release_nothing};
TRANSPORT_LOOPS(pipe, pipe_channel);

static ssize_t writev_again(struct worker *w, const unsigned char *message, size_t sent) {
        struct iovec rest[SPEC_FIELDS_MAX];
        (void) message;
        unsigned n = fields_after(w->channel, sent, rest);
        return uring_writev(w, rest, n);
}

LOOP_INLINE int writev_send(struct worker *w, unsigned char *message) {
        const struct fields *f = w->channel;
        ssize_t n = uring_writev(w, f->iov, f->n);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, writev_again, "writev");
        return 0;
}

static const struct channel writev_channel = {.acquire = fields_acquire,
                                              .fill = fields_fill_message,
                                              .send = writev_send,
                                              .receive = pipe_receive,
                                              .release = loop_release_nothing};
TRANSPORT_LOOPS(writev, writev_channel);

/* Unix stream sockets. */

static ssize_t send_again(struct worker *w, const unsigned char *message, size_t sent) {
        return uring_send(w, message + sent, w->size - sent, MSG_NOSIGNAL);
}

static ssize_t receive_more(struct worker *w, unsigned char *message, size_t got) {
        return uring_receive(w, message + got, w->size - got, 0);
}

LOOP_INLINE int stream_send(struct worker *w, unsigned char *message) {
        ssize_t n = uring_send(w, message, w->size, MSG_NOSIGNAL);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, send_again, "send");
        return 0;
}

LOOP_INLINE int stream_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = uring_receive(w, w->buffer, w->size, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_receive(w, w->buffer, n, receive_more, "recv");
        return 0;
}

static const struct channel stream_channel = {.acquire = loop_acquire_buffer,
                                              .send = stream_send,
                                              .receive = stream_receive,
                                              .release = loop_release_nothing};
TRANSPORT_LOOPS(stream, stream_channel);

LOOP_INLINE ssize_t gather(struct worker *w, struct iovec *iov, unsigned n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return uring_sendmsg(w, &m, MSG_NOSIGNAL);
}

static ssize_t gather_rest(struct worker *w, const unsigned char *message, size_t sent) {
        struct iovec rest[SPEC_FIELDS_MAX];
        (void) message;
        return gather(w, rest, fields_after(w->channel, sent, rest));
}

LOOP_INLINE int gathered_stream_send(struct worker *w, unsigned char *message) {
        struct fields *f = w->channel;
        ssize_t n = gather(w, f->iov, f->n);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, gather_rest, "sendmsg");
        return 0;
}

static const struct channel gathered_stream_channel = {.acquire = fields_acquire,
                                                       .fill = fields_fill_message,
                                                       .send = gathered_stream_send,
                                                       .receive = stream_receive,
                                                       .release = loop_release_nothing};
TRANSPORT_LOOPS(gathered_stream, gathered_stream_channel);

/* Datagrams and sequenced packets, a message in one of them or in several. */

static ssize_t send_part(struct worker *w, size_t from, size_t length) {
        return uring_send(w, (w->source ? w->source : w->buffer) + from, length, MSG_NOSIGNAL);
}

/* Sends the fields' bytes [from, from + length) as a packet. */
static ssize_t gather_part(struct worker *w, size_t from, size_t length) {
        struct iovec part[SPEC_FIELDS_MAX];
        return gather(w, part, fields_part(w->channel, from, length, part));
}

static ssize_t read_packet(struct worker *w, unsigned char *packet, size_t length) {
        return uring_receive(w, packet, length, MSG_TRUNC); /* the packet's own length, also when it is too long */
}

/* The chunk at `moved`; without chunks, the message. */
LOOP_INLINE size_t chunk_of(const struct worker *w, size_t moved) {
        return w->agent->setup.chunk_bytes ? packet_chunk(w, moved) : w->size;
}

LOOP_INLINE int packet_send_all(struct worker *w, unsigned char *message) {
        (void) message;
        return packet_send_parts(w, chunk_of, send_part);
}

LOOP_INLINE int gathered_send_all(struct worker *w, unsigned char *message) {
        (void) message;
        return packet_send_parts(w, chunk_of, gather_part);
}

LOOP_INLINE int packet_receive_all(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        for (size_t moved = 0, length; moved < w->size; moved += length) {
                length = chunk_of(w, moved);
                ssize_t n = uring_receive(w, w->buffer + moved, length, MSG_TRUNC);
                int r = LOOP_UNLIKELY(n != (ssize_t) length)
                                ? packet_finish_receive(w, w->buffer + moved, length, moved, n, read_packet)
                                : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

static const struct channel packet_channel = {.acquire = loop_acquire_buffer,
                                              .send = packet_send_all,
                                              .receive = packet_receive_all,
                                              .release = loop_release_nothing};
static const struct channel gathered_packet_channel = {.acquire = fields_acquire,
                                                       .fill = fields_fill_message,
                                                       .send = gathered_send_all,
                                                       .receive = packet_receive_all,
                                                       .release = loop_release_nothing};
TRANSPORT_LOOPS(packet, packet_channel);
TRANSPORT_LOOPS(gathered_packet, gathered_packet_channel);

/* Files. */

LOOP_INLINE ssize_t put(struct worker *w, const unsigned char *data, size_t length, off_t offset) {
        return uring_write(w, data, length, (uint64_t) offset);
}

LOOP_INLINE ssize_t get(struct worker *w, unsigned char *data, size_t length, off_t offset) {
        return uring_read(w, data, length, (uint64_t) offset);
}

FILE_CHANNEL(cached, put, get, file_settle_nothing);
FILE_CHANNEL(synced, put, get, uring_fsync);

/* The ops of the other engine, except for the loops. */

static const struct transport_ops *base_of(const struct agent *a) {
        return transport_find(a->setup.point.transport, ENGINE_SYSCALL);
}

static int engine_open(struct agent *a) {
        return base_of(a)->open(a);
}

/* The reason why no operation of the worker uses registered memory; NULL where it reads or writes its buffer.
 * *ret_buffers: how many ends do. */
static const char *no_buffer(const struct worker *w, unsigned *ret_buffers) {
        const struct point *p = &w->agent->setup.point;
        bool writes = p->copy_mode == COPY_TWO || p->workload == WORKLOAD_PINGPONG;
        if (w->source) {
                *ret_buffers = 0;
                return "messages of a cold source lie outside of the buffer";
        }
        switch (transport_terms[p->transport].carrier) {
        case CARRIER_FILE:
                *ret_buffers = END_COUNT;
                return NULL;
        case CARRIER_PIPE:
                *ret_buffers = writes ? END_COUNT : 1;
                return w->receive_fd >= 0 || writes ? NULL : "writev takes no registered buffer";
        default:
                *ret_buffers = 0;
                return "send, sendmsg and recv take no registered buffer";
        }
}

static int engine_attach(struct worker *w) {
        const struct transport_ops *base = base_of(w->agent);
        int r = base->attach ? base->attach(w) : 0;
        unsigned buffers = 0;
        const char *why = no_buffer(w, &buffers);
        if (r == 0)
                r = uring_attach(w, buffers, why);
        w->parts_unseen = r == 0 && point_is_queued(&w->agent->setup.point) && uring_batch_hides_parts(w);
        return r;
}

static void engine_detach(struct worker *w) {
        const struct transport_ops *base = base_of(w->agent);
        uring_detach(w);
        if (base->detach)
                base->detach(w);
}

static void engine_close(struct agent *a) {
        const struct transport_ops *base = base_of(a);
        if (base->close)
                base->close(a);
}

static void engine_effective(const struct agent *a, struct effective *e) {
        const struct transport_ops *base = base_of(a);
        struct uring_facts facts = {0};
        if (base->effective)
                base->effective(a, e);
        for (uint32_t i = 0; i < a->n_workers; i++)
                uring_facts_add_worker(&facts, &a->workers[i]);
        uring_put(e, SETTING_IO_URING, &facts);
}

static int engine_pages(const struct agent *a, struct page_list *list) {
        const struct transport_ops *base = base_of(a);
        int r = base->pages ? base->pages(a, list) : 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct uring *u = a->workers[i].engine;
                r = u ? uring_batch_pages(u->batch, i, list) : 0;
        }
        return r;
}

static const struct transport_loops no_loops = {.sender = NULL}; /* for combinations that schema/ refuses */

static const struct transport_loops *pipe_loops_of(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &pipe_loops, [COPY_ONE] = &writev_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *stream_loops_of(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &stream_loops, [COPY_ONE] = &gathered_stream_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *packet_loops_of(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &packet_loops, [COPY_ONE] = &gathered_packet_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *file_loops_of(const struct agent *a) {
        return a->setup.options.file_sync == FILE_SYNC_FSYNC ? &synced_loops : &cached_loops;
}

#define URING_OPS(t, loops_of)                                                                                         \
        {                                                                                                              \
                .transport = t, .engine = ENGINE_IO_URING, .open = engine_open, .attach = engine_attach,               \
                .detach = engine_detach, .close = engine_close, .loops = loops_of, .effective = engine_effective,      \
                .pages = engine_pages                                                                                  \
        }
const struct transport_ops transport_uring_pipe = URING_OPS(TRANSPORT_PIPE, pipe_loops_of);
const struct transport_ops transport_uring_fifo = URING_OPS(TRANSPORT_FIFO, pipe_loops_of);
const struct transport_ops transport_uring_unix_stream = URING_OPS(TRANSPORT_UNIX_STREAM, stream_loops_of);
const struct transport_ops transport_uring_unix_dgram = URING_OPS(TRANSPORT_UNIX_DGRAM, packet_loops_of);
const struct transport_ops transport_uring_unix_seqpacket = URING_OPS(TRANSPORT_UNIX_SEQPACKET, packet_loops_of);
const struct transport_ops transport_uring_file = URING_OPS(TRANSPORT_FILE, file_loops_of);
