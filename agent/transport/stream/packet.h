/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages over descriptors that keep boundaries (datagrams, sequenced packets): the hot functions. A send moves a
 * packet or nothing, so there are no partial ones to complete; a packet of another length than was sent is a failure.
 * Where the spec enables chunks, a message is several packets, and has moved when the last one has. The cold side is
 * packet.c.
 */

#include "agent/loop/fields.h"
#include "agent/loop/loops.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

LOOP_INLINE ssize_t packet_write(struct worker *w, const void *data, size_t length) {
        return syscall(SYS_sendto, w->send_fd, data, length, MSG_NOSIGNAL, NULL, 0);
}

/* MSG_TRUNC: the packet's true length, also when it is longer than the room for it. */
LOOP_INLINE ssize_t packet_read(struct worker *w, void *data, size_t length) {
        return syscall(SYS_recvfrom, w->receive_fd, data, length, MSG_TRUNC, NULL, NULL);
}

/* Continue after a first call that returned n (-1: errno) for a packet of `length` bytes, `from` bytes into the
 * message; again() makes the next call. 0 once the packet has moved; WORKER_STOP only when `from` is 0. */
typedef ssize_t (*packet_again)(struct worker *w, const unsigned char *message, size_t from, size_t length);
int packet_finish_send(struct worker *w, const unsigned char *message, size_t from, size_t length, ssize_t n,
                       packet_again again);
typedef ssize_t (*packet_more)(struct worker *w, void *packet, size_t length);
int packet_finish_receive(struct worker *w, unsigned char *packet, size_t length, size_t from, ssize_t n,
                          packet_more more);

/* The length of the packet that begins `from` bytes into the message. */
LOOP_INLINE size_t packet_length(const struct worker *w, size_t from, bool chunked) {
        size_t chunk = (size_t) w->agent->setup.chunk_bytes;
        return chunked && w->size - from > chunk ? chunk : w->size - from;
}

LOOP_INLINE int packet_send_all(struct worker *w, unsigned char *message, bool chunked, packet_again part) {
        size_t moved = 0;
        do {
                size_t length = packet_length(w, moved, chunked);
                ssize_t n = part(w, message, moved, length);
                int r = LOOP_UNLIKELY(n != (ssize_t) length) ? packet_finish_send(w, message, moved, length, n, part)
                                                             : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
                moved += length;
        } while (chunked && moved < w->size);
        return 0;
}

LOOP_INLINE int packet_receive_all(struct worker *w, unsigned char **ret, bool chunked, packet_more get) {
        size_t moved = 0;
        *ret = w->buffer;
        do {
                size_t length = packet_length(w, moved, chunked);
                ssize_t n = get(w, w->buffer + moved, length);
                int r = LOOP_UNLIKELY(n != (ssize_t) length)
                                ? packet_finish_receive(w, w->buffer + moved, length, moved, n, get)
                                : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
                moved += length;
        } while (chunked && moved < w->size);
        return 0;
}

/* As STREAM_LOOPS (descriptor.h), of packets; `chunked`, which may use w: whether the message is sent in several. */
#define PACKET_SEND(prefix, chunked, put)                                                                              \
        static inline ssize_t prefix##_part(struct worker *w, const unsigned char *message, size_t from,               \
                                            size_t length) {                                                           \
                return put(w, message + from, length);                                                                 \
        }                                                                                                              \
        LOOP_INLINE int prefix##_send(struct worker *w, unsigned char *message) {                                      \
                return packet_send_all(w, message, chunked, prefix##_part);                                            \
        }
#define PACKET_GATHER(prefix, chunked, gather)                                                                         \
        static inline ssize_t prefix##_gather_part(struct worker *w, const unsigned char *message, size_t from,        \
                                                   size_t length) {                                                    \
                struct iovec part[SPEC_FIELDS_MAX];                                                                    \
                struct fields *f = w->channel;                                                                         \
                (void) message;                                                                                        \
                if (from == 0 && length == w->size)                                                                    \
                        return gather(w, f->iov, f->n);                                                                \
                unsigned n = fields_part(f, from, length, part);                                                       \
                return gather(w, part, n);                                                                             \
        }                                                                                                              \
        LOOP_INLINE int prefix##_gather(struct worker *w, unsigned char *message) {                                    \
                return packet_send_all(w, message, chunked, prefix##_gather_part);                                     \
        }
#define PACKET_RECEIVE(prefix, chunked, get)                                                                           \
        LOOP_INLINE int prefix##_receive(struct worker *w, unsigned char **ret) {                                      \
                return packet_receive_all(w, ret, chunked, get);                                                       \
        }
#define PACKET_LOOPS(prefix, chunked, put, gather, get)                                                                \
        PACKET_SEND(prefix, chunked, put)                                                                              \
        PACKET_GATHER(prefix, chunked, gather)                                                                         \
        PACKET_RECEIVE(prefix, chunked, get)                                                                           \
        LOOPS_OF_BUFFERS(prefix, prefix##_send, prefix##_receive);                                                     \
        LOOPS_OF_FIELDS(prefix##_gathered, prefix##_gather, prefix##_receive)
