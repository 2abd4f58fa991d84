/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_DESCRIPTOR_H
#define IPCLAB_AGENT_DESCRIPTOR_H

/*
 * Messages over byte-stream descriptors by read(2) and write(2): the hot functions of pipes, FIFOs and other blocking
 * streams. A message that moves in parts is completed, and its parts are counted; the cold side is descriptor.c.
 *
 * The calls go through syscall(2): glibc's read() and write() are cancellation points, which in a program with threads
 * costs two locked instructions each. That, and the reference that the kernel takes on a file while two threads share
 * the descriptor table (leader.c unshares it), made a write and a read of one byte 29 % more expensive than in a
 * program with one thread; without both the cost is equal within 0.5 %.
 */

#include "agent/loop/loops.h"

#include <sys/syscall.h>
#include <unistd.h>

static inline ssize_t descriptor_write(int fd, const void *data, size_t length) {
        return syscall(SYS_write, fd, data, length);
}

static inline ssize_t descriptor_read(int fd, void *data, size_t length) {
        return syscall(SYS_read, fd, data, length);
}

/* Raises the soft limit, to make room for all descriptors of the set-up's point in this process. 0; negative errno with
 * a->failure. In the leader, before anything is opened. */
int descriptor_reserve(struct agent *a);

/* Continue after a first call that returned n (-1: errno) instead of the whole message. */
int descriptor_send_rest(struct worker *w, const unsigned char *message, ssize_t n);
int descriptor_receive_rest(struct worker *w, unsigned char *message, ssize_t n);

/* The same for other calls: again() and more() make the next call, for the bytes after the first `sent` or `got`;
 * `what` is the call's name, for messages. */
typedef ssize_t (*descriptor_again)(struct worker *w, const unsigned char *message, size_t sent);
int descriptor_finish_send(struct worker *w, const unsigned char *message, ssize_t n, descriptor_again again,
                           const char *what);
typedef ssize_t (*descriptor_more)(struct worker *w, unsigned char *message, size_t got);
int descriptor_finish_receive(struct worker *w, unsigned char *message, ssize_t n, descriptor_more more,
                              const char *what);

LOOP_INLINE int descriptor_send(struct worker *w, unsigned char *message) {
        ssize_t n = descriptor_write(w->send_fd, message, w->size);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_send_rest(w, message, n);
        return 0;
}

LOOP_INLINE int descriptor_receive(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = descriptor_read(w->receive_fd, w->buffer, w->size);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_receive_rest(w, w->buffer, n);
        return 0;
}

#define DESCRIPTOR_CHANNEL                                                                                             \
        {                                                                                                              \
                .acquire = loop_acquire_buffer, .send = descriptor_send, .receive = descriptor_receive,                \
                .release = loop_release_nothing                                                                        \
        }

#endif
