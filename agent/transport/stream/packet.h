/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PACKET_H
#define IPCLAB_AGENT_PACKET_H

/*
 * Messages over descriptors that keep boundaries (datagrams, sequenced packets): the hot functions. A send moves a
 * packet or nothing, so there are no partial ones to complete; a packet of another length than was sent is a failure.
 * Where the spec enables chunks, a message is several packets, and has moved when the last one has. The cold side is
 * packet.c.
 */

#include "agent/loop/loops.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline ssize_t packet_write(int fd, const void *data, size_t length) {
        return syscall(SYS_sendto, fd, data, length, MSG_NOSIGNAL, NULL, 0);
}

/* MSG_TRUNC: the packet's true length, also when it is longer than the room for it. */
static inline ssize_t packet_read(int fd, void *data, size_t length) {
        return syscall(SYS_recvfrom, fd, data, length, MSG_TRUNC, NULL, NULL);
}

/* For other calls: again() makes the next one, for the message's bytes [from, from + length). As packet_send_again(),
 * `from` bytes into the message. */
typedef ssize_t (*packet_again)(struct worker *w, size_t from, size_t length);
int packet_finish_send(struct worker *w, size_t from, size_t length, ssize_t n, packet_again again);

/* Continue after a first call that returned n (-1: errno) for a packet of `length` bytes, `moved` bytes into the
 * message. 0 once the packet has moved; WORKER_STOP only when moved is 0. */
int packet_send_again(struct worker *w, const unsigned char *packet, size_t length, size_t moved, ssize_t n);
int packet_receive_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n);
typedef ssize_t (*packet_reader)(struct worker *w, unsigned char *packet, size_t length);
int packet_finish_receive(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n,
                          packet_reader again);

LOOP_INLINE int packet_send_one(struct worker *w, const unsigned char *packet, size_t length, size_t moved) {
        ssize_t n = packet_write(w->send_fd, packet, length);
        if (LOOP_UNLIKELY(n != (ssize_t) length))
                return packet_send_again(w, packet, length, moved, n);
        return 0;
}

LOOP_INLINE int packet_receive_one(struct worker *w, unsigned char *packet, size_t length, size_t moved) {
        ssize_t n = packet_read(w->receive_fd, packet, length);
        if (LOOP_UNLIKELY(n != (ssize_t) length))
                return packet_receive_again(w, packet, length, moved, n);
        return 0;
}

LOOP_INLINE int packet_send(struct worker *w, unsigned char *message) {
        return packet_send_one(w, message, w->size, 0);
}

LOOP_INLINE int packet_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        return packet_receive_one(w, w->buffer, w->size, 0);
}

LOOP_INLINE size_t packet_chunk(const struct worker *w, size_t moved) {
        size_t chunk = (size_t) w->agent->setup.chunk_bytes;
        return w->size - moved < chunk ? w->size - moved : chunk;
}

LOOP_INLINE int packet_send_chunks(struct worker *w, unsigned char *message) {
        for (size_t moved = 0, n; moved < w->size; moved += n) {
                n = packet_chunk(w, moved);
                int r = packet_send_one(w, message + moved, n, moved);
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

/* The same with another call: part() sends the chunk(w, moved) bytes after the first `moved` ones. */
typedef size_t (*packet_chunks)(const struct worker *w, size_t moved);
LOOP_INLINE int packet_send_parts(struct worker *w, packet_chunks chunk, packet_again part) {
        for (size_t moved = 0, length; moved < w->size; moved += length) {
                length = chunk(w, moved);
                ssize_t n = part(w, moved, length);
                int r = LOOP_UNLIKELY(n != (ssize_t) length) ? packet_finish_send(w, moved, length, n, part) : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

LOOP_INLINE int packet_receive_chunks(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        for (size_t moved = 0, n; moved < w->size; moved += n) {
                n = packet_chunk(w, moved);
                int r = packet_receive_one(w, w->buffer + moved, n, moved);
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

#endif
