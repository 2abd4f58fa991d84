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
#include "agent/transport/uring/attach.h"
#include "agent/transport/uring/batch.h"
#include "agent/transport/uring/uring.h"

#include <sys/socket.h>

LOOP_INLINE ssize_t pipe_write(struct worker *w, const void *data, size_t length) {
        return uring_write(w, data, length, URING_STREAM);
}

LOOP_INLINE ssize_t pipe_read(struct worker *w, void *data, size_t length) {
        return uring_read(w, data, length, URING_STREAM);
}

STREAM_LOOPS(pipe, pipe_write, "write", uring_writev, "writev", pipe_read, "read");

LOOP_INLINE ssize_t unix_send(struct worker *w, const void *data, size_t length) {
        return uring_send(w, data, length, MSG_NOSIGNAL);
}

LOOP_INLINE ssize_t unix_gather(struct worker *w, struct iovec *iov, unsigned n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return uring_sendmsg(w, &m, MSG_NOSIGNAL);
}

LOOP_INLINE ssize_t unix_receive(struct worker *w, void *data, size_t length) {
        return uring_receive(w, data, length, 0);
}

LOOP_INLINE ssize_t unix_receive_packet(struct worker *w, void *data, size_t length) {
        return uring_receive(w, data, length, MSG_TRUNC); /* the packet's own length, also when it is too long */
}

STREAM_LOOPS(stream, unix_send, "send", unix_gather, "sendmsg", unix_receive, "recv");
PACKET_LOOPS(packet, w->agent->setup.chunk_bytes > 0, unix_send, unix_gather, unix_receive_packet);

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
                [COPY_TWO] = &pipe_loops, [COPY_ONE] = &pipe_gathered_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *stream_loops_of(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &stream_loops, [COPY_ONE] = &stream_gathered_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *packet_loops_of(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &packet_loops, [COPY_ONE] = &packet_gathered_loops, [COPY_ZERO] = &no_loops};
        return point_is_queued(&a->setup.point) ? &uring_batch_loops : loops[a->setup.point.copy_mode];
}

static const struct transport_loops *file_loops_of(const struct agent *a) {
        return a->setup.options.file_sync == FILE_SYNC_FSYNC ? &synced_loops : &cached_loops;
}

#define URING_OPS(loops_of)                                                                                            \
        {                                                                                                              \
                .engine = ENGINE_IO_URING, .open = engine_open, .attach = engine_attach, .detach = engine_detach,      \
                .close = engine_close, .loops = loops_of, .effective = engine_effective, .pages = engine_pages         \
        }
const struct transport_ops transport_uring_pipe = URING_OPS(pipe_loops_of);
const struct transport_ops transport_uring_stream = URING_OPS(stream_loops_of);
const struct transport_ops transport_uring_packet = URING_OPS(packet_loops_of);
const struct transport_ops transport_uring_file = URING_OPS(file_loops_of);
