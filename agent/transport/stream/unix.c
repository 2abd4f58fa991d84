/* SPDX-License-Identifier: MIT */

/*
 * Unix domain sockets: a connected pair per thread, which serves both directions. The first end makes the pairs and
 * passes the second its halves. The send buffer limits datagrams and sequenced packets. Streams use the functions of
 * pipes (descriptor.h), datagrams and sequenced packets those of packets (packet.h).
 *
 *      two-copy   write, sendto   into the kernel, and out of it
 *      one-copy   sendmsg         the same, without packing the message's fields together first
 *
 * With io_uring (uring/transport.c) these are its operations send and sendmsg.
 *
 * Source: man 7 unix, man 7 socket. The kernel doubles the value of SO_SNDBUF and cuts it at net.core.wmem_max without
 * an error: a cut value is refused here.
 */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/loop/fields.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/packet.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#define PACKET_RESERVE                                                                                                 \
        32u /* bytes of a send buffer that a packet cannot use: net/unix/af_unix.c, unix_dgram_sendmsg() */

static int socket_type(const struct agent *a) {
        switch (a->setup.point.transport) {
        case TRANSPORT_UNIX_DGRAM:
                return SOCK_DGRAM;
        case TRANSPORT_UNIX_SEQPACKET:
                return SOCK_SEQPACKET;
        default:
                return SOCK_STREAM;
        }
}

/* Whether this run sends a message in several packets. */
static bool is_chunked(const struct agent *a) {
        return a->setup.point.transport != TRANSPORT_UNIX_STREAM && a->setup.chunk_bytes &&
               a->setup.chunk_bytes < a->setup.point.message_size;
}

static int set_send_buffer(struct agent *a, int fd, const char *name, uint64_t bytes) {
        int want = bytes <= INT32_MAX / 2 ? (int) bytes : INT32_MAX / 2, got = 0;
        socklen_t length = sizeof(got);
        if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want)) < 0 ||
            getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &got, &length) < 0)
                return failure_set(&a->failure, errno, "%s %" PRIu64 ": %s", name, bytes, strerrordesc_np(errno));
        if ((uint64_t) got < 2 * bytes)
                return failure_limit(&a->failure, EPERM, HOST_WMEM_MAX, (uint64_t) got / 2, bytes, name);
        return 0;
}

/* Sets the options' sizes, or else a send buffer that holds the largest packet of this run. */
static int set_buffers(struct agent *a, int fd) {
        const struct transport_options *o = &a->setup.options;
        int r = 0, have = 0;
        socklen_t length = sizeof(have);

        if (o->sndbuf)
                r = set_send_buffer(a, fd, "sndbuf", o->sndbuf);
        if (r < 0 || o->sndbuf || socket_type(a) == SOCK_STREAM)
                return r;
        uint64_t packet = is_chunked(a) ? a->setup.chunk_bytes : a->setup.point.message_size;
        if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &have, &length) < 0)
                return failure_set(&a->failure, errno, "SO_SNDBUF: %s", strerrordesc_np(errno));
        if (packet + PACKET_RESERVE <= (uint64_t) have)
                return 0;
        return set_send_buffer(a, fd, "a send buffer for this packet, half of it and 16 bytes",
                               (packet + PACKET_RESERVE + 1) / 2);
}

static int unix_open(struct agent *a) {
        return rendezvous_sockets(a, socket_type(a), util_now_ns() + AGENT_RENDEZVOUS_NS, set_buffers);
}

LOOP_INLINE ssize_t gather(const struct worker *w, struct iovec *iov, unsigned n) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return syscall(SYS_sendmsg, w->send_fd, &m, MSG_NOSIGNAL);
}

STREAM_LOOPS(stream, descriptor_write, "write", gather, "sendmsg", descriptor_read, "read");
PACKET_LOOPS(packet, false, packet_write, gather, packet_read);
PACKET_LOOPS(chunks, true, packet_write, gather, packet_read);

static const struct transport_loops *unix_loops(const struct agent *a) {
        bool gathers = a->setup.point.copy_mode == COPY_ONE;
        if (a->setup.point.transport == TRANSPORT_UNIX_STREAM)
                return gathers ? &stream_gathered_loops : &stream_loops;
        if (is_chunked(a))
                return gathers ? &chunks_gathered_loops : &chunks_loops;
        return gathers ? &packet_gathered_loops : &packet_loops;
}

static bool sends(const struct agent *a) {
        return a->end == END_FIRST || a->setup.point.workload == WORKLOAD_PINGPONG;
}

static int unix_attach(struct worker *w) {
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

static void unix_detach(struct worker *w) {
        w->channel = fields_free(w->channel);
}

static int unix_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct fields *f = a->workers[i].channel;
                if (f)
                        r = page_list_add(list, PAGES_BUFFER, i, f->memory, f->length);
        }
        return r;
}

/* The sending of an end that sends. */
static void put_sending(const struct agent *a, struct effective *e) {
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

static void unix_effective(const struct agent *a, struct effective *e) {
        int size = 0; /* as the kernel counts: twice the value of SO_SNDBUF */
        socklen_t length = sizeof(size);
        put_sending(a, e);
        if (getsockopt(a->workers[0].send_fd, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0) {
                effective_add_number(e, SETTING_SNDBUF_BYTES, (uint64_t) size);
                effective_add_number(e, SETTING_BUFFER_BYTES, (uint64_t) size / 2);
        } else {
                effective_add_unknown(e, SETTING_SNDBUF_BYTES, strerrordesc_np(errno));
        }
        if (is_chunked(a))
                transport_put_chunks(a, e);
}

#define UNIX_OPS(t, uring_ops)                                                                                         \
        {                                                                                                              \
                .transport = t, .engine = ENGINE_SYSCALL, .uring = &uring_ops, .open = unix_open,                      \
                .attach = unix_attach, .detach = unix_detach, .loops = unix_loops, .effective = unix_effective,        \
                .pages = unix_pages                                                                                    \
        }
const struct transport_ops transport_unix_stream = UNIX_OPS(TRANSPORT_UNIX_STREAM, transport_uring_stream);
const struct transport_ops transport_unix_dgram = UNIX_OPS(TRANSPORT_UNIX_DGRAM, transport_uring_packet);
const struct transport_ops transport_unix_seqpacket = UNIX_OPS(TRANSPORT_UNIX_SEQPACKET, transport_uring_packet);
