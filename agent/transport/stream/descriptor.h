/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages over byte-stream descriptors: the hot functions of pipes, FIFOs and other blocking streams, for both
 * engines. A message that moves in parts is completed, and its parts are counted; the cold side is descriptor.c.
 *
 * The system calls go through syscall(2): glibc's read() and write() are cancellation points, which in a program with
 * threads costs two locked instructions each. That, and the reference that the kernel takes on a file while two threads
 * share the descriptor table (leader.c unshares it), made a write and a read of one byte 29 % more expensive than in a
 * program with one thread; without both the cost is equal within 0.5 %.
 */

#include "agent/loop/fields.h"
#include "agent/loop/loops.h"

#include <sys/syscall.h>
#include <unistd.h>

LOOP_INLINE ssize_t descriptor_write(struct worker *w, const void *data, size_t length) {
        return syscall(SYS_write, w->send_fd, data, length);
}

LOOP_INLINE ssize_t descriptor_read(struct worker *w, void *data, size_t length) {
        return syscall(SYS_read, w->receive_fd, data, length);
}

/* Raises the soft limit, to make room for all descriptors of the set-up's point in this process. 0; negative errno with
 * a->failure. In the leader, before anything is opened. */
int descriptor_reserve(struct agent *a);

/* Complete a message after a first call that returned n (-1: errno) instead of all its bytes. again() and more() make
 * the next call, for the bytes after the first `sent` or `got`; `what` is the call's name, for messages. */
typedef ssize_t (*descriptor_again)(struct worker *w, const unsigned char *message, size_t sent);
int descriptor_finish_send(struct worker *w, const unsigned char *message, ssize_t n, descriptor_again again,
                           const char *what);
typedef ssize_t (*descriptor_more)(struct worker *w, unsigned char *message, size_t got);
int descriptor_finish_receive(struct worker *w, unsigned char *message, ssize_t n, descriptor_more more,
                              const char *what);
/* Handles errno of a call that moved nothing, after `moved` bytes of the message: waits up to a limit of time for
 * `events` where the descriptor was not ready. 0: the caller tries again; else its result. */
int descriptor_after_error(struct worker *w, int fd, short events, size_t moved, const char *what);

/*
 * The loops of a stream are made from an engine's three calls, each of which moves bytes and returns their number, or
 * -1 with errno; `NAME_name` is its name in messages.
 *
 *      put(w, data, length)    sends bytes that lie in one place
 *      gather(w, iov, n)       sends the bytes of n places
 *      get(w, data, length)    receives
 *
 * STREAM_LOOPS defines `static const struct transport_loops prefix_loops`, of messages in one piece, and
 * prefix_gathered_loops, of messages in several fields: w->channel is their struct fields.
 */
#define STREAM_SEND(prefix, put, put_name)                                                                             \
        static inline ssize_t prefix##_again(struct worker *w, const unsigned char *message, size_t sent) {            \
                return put(w, message + sent, w->size - sent);                                                         \
        }                                                                                                              \
        LOOP_INLINE int prefix##_send(struct worker *w, unsigned char *message) {                                      \
                ssize_t n = put(w, message, w->size);                                                                  \
                if (LOOP_UNLIKELY(n != (ssize_t) w->size))                                                             \
                        return descriptor_finish_send(w, message, n, prefix##_again, put_name);                        \
                return 0;                                                                                              \
        }
#define STREAM_GATHER(prefix, gather, gather_name)                                                                     \
        static inline ssize_t prefix##_gather_again(struct worker *w, const unsigned char *message, size_t sent) {     \
                struct iovec rest[SPEC_FIELDS_MAX];                                                                    \
                (void) message;                                                                                        \
                unsigned n = fields_after(w->channel, sent, rest);                                                     \
                return gather(w, rest, n);                                                                             \
        }                                                                                                              \
        LOOP_INLINE int prefix##_gather(struct worker *w, unsigned char *message) {                                    \
                struct fields *f = w->channel;                                                                         \
                ssize_t n = gather(w, f->iov, f->n);                                                                   \
                if (LOOP_UNLIKELY(n != (ssize_t) w->size))                                                             \
                        return descriptor_finish_send(w, message, n, prefix##_gather_again, gather_name);              \
                return 0;                                                                                              \
        }
#define STREAM_RECEIVE(prefix, get, get_name)                                                                          \
        static inline ssize_t prefix##_more(struct worker *w, unsigned char *message, size_t got) {                    \
                return get(w, message + got, w->size - got);                                                           \
        }                                                                                                              \
        LOOP_INLINE int prefix##_receive(struct worker *w, unsigned char **ret) {                                      \
                *ret = w->buffer;                                                                                      \
                ssize_t n = get(w, w->buffer, w->size);                                                                \
                if (LOOP_UNLIKELY(n != (ssize_t) w->size))                                                             \
                        return descriptor_finish_receive(w, w->buffer, n, prefix##_more, get_name);                    \
                return 0;                                                                                              \
        }
#define STREAM_LOOPS(prefix, put, put_name, gather, gather_name, get, get_name)                                        \
        STREAM_SEND(prefix, put, put_name)                                                                             \
        STREAM_GATHER(prefix, gather, gather_name)                                                                     \
        STREAM_RECEIVE(prefix, get, get_name)                                                                          \
        LOOPS_OF_BUFFERS(prefix, prefix##_send, prefix##_receive);                                                     \
        LOOPS_OF_FIELDS(prefix##_gathered, prefix##_gather, prefix##_receive)
