/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A queue depth of more than one: a worker of a stream has that many messages under way at once. They are submitted
 * together, each linked to the next (IOSQE_IO_LINK), as the order of unlinked operations on one descriptor is
 * undefined, and that of a stream's bytes is not. The kernel begins each when the one before it is complete, without a
 * system call between them; the next batch follows when all operations of this one are complete. Each message has
 * memory of its own.
 *
 * A link breaks when an operation moves less than requested, or nothing: the kernel then cancels the following ones.
 * That message is completed on its own, as with a depth of one, and the cancelled ones are in the next batch.
 * Operations on stream sockets have MSG_WAITALL and continue until a message is whole, since a short send breaks no
 * link.
 *
 * Source: man 3 io_uring_sqe_set_flags (IOSQE_IO_LINK), man 3 io_uring_prep_cancel64, man 3 io_uring_prep_send.
 */

#include "agent/transport/uring/uring.h"
#include "schema/spec/spec.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct fields;
struct page_list;
struct transport_loops;

/* A worker's batch, beside its ring. */
struct uring_batch {
        unsigned n;            /* operations of the batch */
        unsigned reaped;       /* completed operations of the batch */
        unsigned taken;        /* of a receiver: messages that the loop has consumed */
        unsigned at;           /* the message that is completed on its own */
        bool sends;            /* else it receives */
        unsigned char *memory; /* of the messages, `stride` apart; NULL where fields are gathered */
        size_t stride, length; /* length of memory */
        struct fields *fields[SPEC_QUEUE_DEPTH_MAX]; /* of one-copy, for each message */
        struct msghdr headers[SPEC_QUEUE_DEPTH_MAX];
        int results[SPEC_QUEUE_DEPTH_MAX];
};

/* Allocates the point's queue_depth messages, in the worker's thread. 0; negative errno with w->failure. */
int uring_batch_new(struct worker *w, struct uring_batch **ret);
/* To be called after the ring is closed, which may still write to it. NULL-safe. */
struct uring_batch *uring_batch_free(struct uring_batch *b);

/* The address of message i of the next batch, where messages are in one piece. */
static inline unsigned char *uring_batch_message(const struct uring_batch *b, unsigned i) {
        return b->memory + i * b->stride;
}

/* A sender's loop, as a worker_loop. write() writes the bytes of message i of the batch, which is message `number` of
 * the stream; NULL: they stay unchanged. */
typedef void (*uring_batch_writer)(struct worker *w, unsigned i, uint64_t number);
int uring_batch_send(struct worker *w, uring_batch_writer write);
/* As a channel's receive. */
int uring_batch_receive(struct worker *w, unsigned char **ret);

/* A receiver's worker->settle, whose argument is its struct uring. */
void uring_batch_settle(struct worker *w);

/* The loops of streams whose messages consist of their pattern alone. */
extern const struct transport_loops uring_batch_loops;

/* Whether the kernel completes a socket's messages by itself, in an unknown number of parts. */
bool uring_batch_hides_parts(const struct worker *w);
/* Adds its memory. NULL-safe. As page_list_add(). */
int uring_batch_pages(const struct uring_batch *b, uint32_t thread, struct page_list *list);
