/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The common parts of System V and POSIX message queues: messages that are sent whole or, where the set-up enables it,
 * in chunks; memory with room for a queue's header before a page-aligned message, and for a receive of a whole packet
 * where the last chunk is shorter. A queue moves a packet or nothing. The cold side is queues.c.
 */

#include "agent/loop/loops.h"

#include <stddef.h>

struct effective;
struct page_list;

/* A worker's state, in w->channel. */
struct queue {
        int send_id, receive_id; /* of System V queues; POSIX queues are w->send_fd and w->receive_fd */
        unsigned char *message;  /* page aligned, with room for a header before it and for whole packets */
        size_t packet;           /* the longest that goes in one piece: a chunk, or the message */
        unsigned char *memory;
        size_t length; /* of memory */
};

/* One system call. Returns the packet's length, or -1 with errno. */
typedef ssize_t (*queue_call)(struct worker *w, unsigned char *packet, size_t length);

/* Continue after a call that returned n instead of the packet's length, `moved` bytes into the message. 0 once the
 * packet has moved; WORKER_STOP only when moved is 0. */
int queue_send_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n, queue_call send);
int queue_receive_again(struct worker *w, unsigned char *packet, size_t length, size_t moved, ssize_t n,
                        queue_call receive);

LOOP_INLINE int queue_acquire(struct worker *w, unsigned char **ret) {
        const struct queue *q = w->channel;
        *ret = q->message;
        return 0;
}

LOOP_INLINE int queue_send_packet(struct worker *w, unsigned char *packet, size_t length, size_t moved,
                                  queue_call send) {
        ssize_t n = send(w, packet, length);
        if (LOOP_UNLIKELY(n != (ssize_t) length))
                return queue_send_again(w, packet, length, moved, n, send);
        return 0;
}

LOOP_INLINE int queue_receive_packet(struct worker *w, unsigned char *packet, size_t length, size_t moved,
                                     queue_call receive) {
        ssize_t n = receive(w, packet, length);
        if (LOOP_UNLIKELY(n != (ssize_t) length))
                return queue_receive_again(w, packet, length, moved, n, receive);
        return 0;
}

LOOP_INLINE int queue_receive_whole(struct worker *w, unsigned char **ret, queue_call receive) {
        const struct queue *q = w->channel;
        *ret = q->message;
        return queue_receive_packet(w, q->message, w->size, 0, receive);
}

LOOP_INLINE size_t queue_chunk(const struct worker *w, size_t moved) {
        const struct queue *q = w->channel;
        return w->size - moved < q->packet ? w->size - moved : q->packet;
}

LOOP_INLINE int queue_send_chunks(struct worker *w, unsigned char *message, queue_call send) {
        for (size_t moved = 0, n; moved < w->size; moved += n) {
                n = queue_chunk(w, moved);
                int r = queue_send_packet(w, message + moved, n, moved, send);
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

LOOP_INLINE int queue_receive_chunks(struct worker *w, unsigned char **ret, queue_call receive) {
        const struct queue *q = w->channel;
        *ret = q->message;
        for (size_t moved = 0, n; moved < w->size; moved += n) {
                n = queue_chunk(w, moved);
                int r = queue_receive_packet(w, q->message + moved, n, moved, receive);
                if (LOOP_UNLIKELY(r))
                        return r;
        }
        return 0;
}

/* The length of this run's longest packet in bytes. */
size_t queues_packet(const struct agent *a);
bool queues_chunked(const struct agent *a);

/* The loops of a kind of queue from its calls for a whole message and for a chunk; name_loops() is for the ops. */
#define QUEUE_LOOPS(name, send_whole, receive_whole, send_chunk, receive_chunk)                                        \
        LOOP_INLINE int name##_whole_send(struct worker *w, unsigned char *message) {                                  \
                return queue_send_packet(w, message, w->size, 0, send_whole);                                          \
        }                                                                                                              \
        LOOP_INLINE int name##_whole_receive(struct worker *w, unsigned char **ret) {                                  \
                return queue_receive_whole(w, ret, receive_whole);                                                     \
        }                                                                                                              \
        LOOP_INLINE int name##_chunks_send(struct worker *w, unsigned char *message) {                                 \
                return queue_send_chunks(w, message, send_chunk);                                                      \
        }                                                                                                              \
        LOOP_INLINE int name##_chunks_receive(struct worker *w, unsigned char **ret) {                                 \
                return queue_receive_chunks(w, ret, receive_chunk);                                                    \
        }                                                                                                              \
        static const struct channel name##_whole_channel = {.acquire = queue_acquire,                                  \
                                                            .send = name##_whole_send,                                 \
                                                            .receive = name##_whole_receive,                           \
                                                            .release = loop_release_nothing};                          \
        static const struct channel name##_chunks_channel = {.acquire = queue_acquire,                                 \
                                                             .send = name##_chunks_send,                               \
                                                             .receive = name##_chunks_receive,                         \
                                                             .release = loop_release_nothing};                         \
        TRANSPORT_LOOPS(name##_whole, name##_whole_channel);                                                           \
        TRANSPORT_LOOPS(name##_chunks, name##_chunks_channel);                                                         \
        static const struct transport_loops *name##_loops(const struct agent *a) {                                     \
                return queues_chunked(a) ? &name##_chunks_loops : &name##_whole_loops;                                 \
        }

/* attach, detach and pages of struct transport_ops. */
int queues_attach(struct worker *w);
void queues_detach(struct worker *w);
int queues_pages(const struct agent *a, struct page_list *list);
/* Adds chunk_bytes and chunks_per_message, where messages are sent in chunks. */
void queues_effective(const struct agent *a, struct effective *e);
