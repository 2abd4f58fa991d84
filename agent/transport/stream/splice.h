/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages into a pipe by vmsplice(2): the pipe takes references to the sender's pages, and only the reader copies.
 *
 * The pages stay the sender's (no SPLICE_F_GIFT: a gifted page may become page cache, and its giver must never write to
 * it again), so the reader gets anything that the sender writes to them before it has read them. No call reports when
 * they have been read; but the pipe's size determines it:
 *
 *      A pipe has C slots, and vmsplice fills one with each page, or part of a page, of a message; a message begins at
 * a page's begin, so that it takes p = ceil(size / page) slots, however many calls it goes in. Slots are filled and
 *      emptied in order. Once a slot has been filled, at most C - 1 before it can still be full: all that lie C or more
 *      before it have been emptied, which read(2) does to a slot after it has copied the last byte out of it.
 *
 *      B buffers are used in turn. Buffer b is written for message m after messages 0 ... m - 1 have been sent, mp
 * slots in all, of which the first mp - C are empty. It was last used for message m - B, whose last slot is number (m -
 * B + 1) p - 1. That is among the first mp - C when (B - 1) p >= C: B = ceil(C / p) + 1.
 *
 * A pool of this size needs no waiting and no messages from the reader. C is the pipe's effective size in pages, which
 * does not change while the channel is open.
 *
 * Source: man 2 vmsplice; Linux fs/splice.c (vmsplice_to_pipe, iter_to_pipe), fs/pipe.c (pipe_read).
 */

#include <stddef.h>
#include <stdint.h>

struct worker;

struct splice_pool {
        unsigned char *memory;
        size_t size;   /* of a message */
        size_t stride; /* from one buffer to the next, whole pages */
        size_t count, next;
};

/* Returns the number of buffers of `size` bytes for a pipe of pipe_size bytes. */
size_t splice_buffers(size_t size, size_t pipe_size, size_t page);

/* Makes a pool for messages of `size` bytes into this pipe, in the worker's own thread. 0; -ENOMEM; errno of fcntl(2);
 * what buffer_map() returns. */
int splice_pool_new(struct worker *w, size_t size, int pipe_fd, struct splice_pool **ret);
struct splice_pool *splice_pool_free(struct splice_pool *p);

static inline unsigned char *splice_pool_buffer(const struct splice_pool *p) {
        return p->memory + p->next * p->stride;
}

/* To be called once the whole message in the current buffer is in the pipe. */
static inline void splice_pool_advance(struct splice_pool *p) {
        p->next = p->next + 1 == p->count ? 0 : p->next + 1;
}
