/* SPDX-License-Identifier: MIT */

/*
 * Unix domain sockets: a connected pair per thread, which serves both directions. The first end makes the pairs and
 * passes the second its halves. The send buffer limits datagrams and sequenced packets. unix-modes.c sends and receives
 * messages.
 *
 * Source: man 7 unix, man 7 socket. The kernel doubles the value of SO_SNDBUF and cuts it at net.core.wmem_max without
 * an error: a cut value is refused here.
 */

#include "agent/base/agent.h"
#include "agent/base/wait.h"
#include "agent/transport/rendezvous.h"
#include "agent/transport/stream/unix-sockets.h"
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

bool unix_chunked(const struct agent *a) {
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
        uint64_t packet = unix_chunked(a) ? a->setup.chunk_bytes : a->setup.point.message_size;
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

static void unix_effective(const struct agent *a, struct effective *e) {
        int size = 0; /* as the kernel counts: twice the value of SO_SNDBUF */
        socklen_t length = sizeof(size);
        unix_modes_effective(a, e);
        if (getsockopt(a->workers[0].send_fd, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0) {
                effective_add_number(e, SETTING_SNDBUF_BYTES, (uint64_t) size);
                effective_add_number(e, SETTING_BUFFER_BYTES, (uint64_t) size / 2);
        } else {
                effective_add_unknown(e, SETTING_SNDBUF_BYTES, strerrordesc_np(errno));
        }
        if (unix_chunked(a))
                transport_put_chunks(a, e);
}

#define UNIX_OPS(t, uring_ops)                                                                                         \
        {                                                                                                              \
                .transport = t, .engine = ENGINE_SYSCALL, .uring = &uring_ops, .open = unix_open,                      \
                .attach = unix_attach, .detach = unix_detach, .loops = unix_loops, .effective = unix_effective,        \
                .pages = unix_pages                                                                                    \
        }
const struct transport_ops transport_unix_stream = UNIX_OPS(TRANSPORT_UNIX_STREAM, transport_uring_unix_stream);
const struct transport_ops transport_unix_dgram = UNIX_OPS(TRANSPORT_UNIX_DGRAM, transport_uring_unix_dgram);
const struct transport_ops transport_unix_seqpacket =
        UNIX_OPS(TRANSPORT_UNIX_SEQPACKET, transport_uring_unix_seqpacket);
