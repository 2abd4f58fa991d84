/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_LOOPS_H
#define IPCLAB_TESTS_HAND_LOOPS_H

/*
 * The four loops, once, for all that is written by hand: what goes round is plain, and how a message is sent and
 * received is inlined from the file that knows it. HAND_LOOPS(prefix, way) defines hand_prefix_stream and
 * hand_prefix_pingpong.
 */

#include "agent/loop/pattern.h"
#include "schema/util.h"
#include "tests/bench/hand.h"

#include <sys/mman.h>

#define HAND_CHUNK_NS_MAX (10 * NSEC_PER_MSEC)

#define HAND_INLINE UTIL_SPECIALIZED

static volatile uint64_t hand_sink; /* so that the reads are not dropped */

/* One end while it runs. */
struct hand_end {
        const struct hand *h;
        int in, out;
        size_t size;
        unsigned char *buffer;  /* page aligned */
        unsigned char *message; /* that was received: the buffer, unless the way puts it elsewhere */
        void *own;              /* the way's */
};

/* How a message goes. Results: 0 or -1. */
struct hand_way {
        int (*open)(struct hand_end *e); /* NULL: nothing to prepare */
        unsigned char *(*next)(struct hand_end *e);
        void (*fill)(struct hand_end *e, unsigned char *message, uint64_t key); /* NULL: lies in one piece */
        int (*send)(struct hand_end *e, unsigned char *message);
        int (*receive)(struct hand_end *e);
        int (*release)(struct hand_end *e); /* NULL: nothing to do when a message has been read */
};

static inline unsigned char *hand_memory(size_t size) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                return NULL;
        memset(p, 0x5a, size);
        return p;
}

static inline int hand_begin(struct hand_end *e, const struct hand_way *way) {
        e->size = e->h->size;
        e->buffer = e->message = hand_memory(e->size);
        return e->buffer && (!way->open || way->open(e) == 0) ? 0 : -1;
}

HAND_INLINE unsigned char *hand_next_buffer(struct hand_end *e) {
        return e->buffer;
}

HAND_INLINE int hand_emit(struct hand_end *e, const struct hand_way *way, unsigned direction, uint64_t number) {
        unsigned char *p = way->next(e);
        if (e->h->verify == VERIFY_CHECKSUM) {
                uint64_t key = pattern_key(0, direction, number);
                if (way->fill)
                        way->fill(e, p, key);
                else
                        pattern_fill(p, e->size, key);
        }
        return way->send(e, p);
}

HAND_INLINE int hand_take(struct hand_end *e, const struct hand_way *way, unsigned direction, uint64_t number) {
        if (way->receive(e) < 0)
                return -1;
        if (e->h->verify == VERIFY_TOUCH)
                hand_sink = pattern_touch(e->message, e->size);
        if (e->h->verify == VERIFY_CHECKSUM && !pattern_matches(e->message, e->size, pattern_key(0, direction, number)))
                return -1;
        return way->release ? way->release(e) : 0;
}

/* Until a call fails, or the process is ended with the receiver. */
HAND_INLINE int hand_sender(struct hand_end *e, const struct hand_way *way, struct hand_result *ret) {
        (void) ret;
        if (hand_begin(e, way) < 0)
                return -1;
        for (uint64_t i = 0;; i++)
                if (hand_emit(e, way, 0, i) < 0)
                        return -1;
}

HAND_INLINE int hand_responder(struct hand_end *e, const struct hand_way *way, struct hand_result *ret) {
        (void) ret;
        if (hand_begin(e, way) < 0)
                return -1;
        for (uint64_t i = 0;; i++)
                if (hand_take(e, way, 0, i) < 0 || hand_emit(e, way, 1, i) < 0)
                        return -1;
}

/* Chunk by chunk from message `from` until the time has come: how many were done and what time it was, or -1. Chunks
 * become shorter when they take long, as on a busy machine: a window must not end seconds late. */
HAND_INLINE int hand_until(struct hand_end *e, const struct hand_way *way, bool there_and_back, uint64_t from,
                           uint64_t until_ns, struct hand_result *ret) {
        uint64_t i = from, chunk = e->h->chunk, began_ns = util_now_ns();
        for (;;) {
                for (uint64_t last = i + chunk; i < last; i++) {
                        if (there_and_back && hand_emit(e, way, 0, i) < 0)
                                return -1;
                        if (hand_take(e, way, there_and_back ? 1 : 0, i) < 0)
                                return -1;
                }
                ret->ns = util_now_ns();
                if (ret->ns >= until_ns)
                        break;
                if (ret->ns - began_ns > HAND_CHUNK_NS_MAX && chunk > 1)
                        chunk /= 2;
                began_ns = ret->ns;
        }
        ret->messages = i - from;
        return 0;
}

HAND_INLINE int hand_clocked(struct hand_end *e, const struct hand_way *way, bool there_and_back,
                             struct hand_result *ret) {
        struct hand_result warm, window;
        if (hand_begin(e, way) < 0 ||
            hand_until(e, way, there_and_back, 0, util_now_ns() + e->h->warmup_ns, &warm) < 0 ||
            hand_until(e, way, there_and_back, warm.messages, warm.ns + e->h->duration_ns, &window) < 0)
                return -1;
        *ret = (struct hand_result){window.messages, window.ns - warm.ns};
        return 0;
}

HAND_INLINE int hand_receiver(struct hand_end *e, const struct hand_way *way, struct hand_result *ret) {
        return hand_clocked(e, way, false, ret);
}

HAND_INLINE int hand_initiator(struct hand_end *e, const struct hand_way *way, struct hand_result *ret) {
        return hand_clocked(e, way, true, ret);
}

#define HAND_LOOP(prefix, role, way)                                                                                   \
        static int prefix##_##role(const struct hand *h, int receive_fd, int send_fd, struct hand_result *ret) {       \
                struct hand_end e = {.h = h, .in = receive_fd, .out = send_fd};                                        \
                return hand_##role(&e, &(way), ret);                                                                   \
        }

/* `way` is a static const struct hand_way, so that its functions are constants to the compiler. */
#define HAND_LOOPS(prefix, way)                                                                                        \
        HAND_LOOP(prefix, sender, way)                                                                                 \
        HAND_LOOP(prefix, receiver, way)                                                                               \
        HAND_LOOP(prefix, initiator, way)                                                                              \
        HAND_LOOP(prefix, responder, way)                                                                              \
        const struct hand_loops hand_##prefix##_stream = {.first = prefix##_sender, .second = prefix##_receiver};      \
        const struct hand_loops hand_##prefix##_pingpong = {.first = prefix##_initiator, .second = prefix##_responder}

#endif
