/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_LOOPS_H
#define IPCLAB_AGENT_LOOPS_H

/*
 * The hot loops, once for every transport; rings and tcp have streams of their own beside them (ring.h, tcp-loops.h),
 * which look at the limit and count in the same way. A transport writes up to five inline functions and calls
 * TRANSPORT_LOOPS(prefix, channel): the compiler makes each role's loop from them, one per kind of verification, with
 * no indirect call and no branch on anything that is constant in it.
 *
 * Per message a loop does what the hand-written one does, and: one load of the limit, one store of the counter. A timed
 * initiator also reads the clock once and counts in the histogram, both while its message is under way.
 *
 * A message has come when its reader has done with its bytes what `verify` asks, as the other end does before it
 * answers. Memory that is read in place is only then moved from one CPU's cache to the other's, and a clock that stops
 * before that would compare it with a copy that has already been paid for.
 */

#include "agent/base/agent.h"
#include "agent/loop/pace.h"
#include "agent/loop/pattern.h"
#include "schema/measure/histogram.h"
#include "schema/util.h"

#include <errno.h>

/*
 * A transport's hot functions. Those with a result return 0, WORKER_STOP (worker_over() came true before the first byte
 * of a message) or a negative errno with w->failure set.
 *
 *      acquire    where the next message is to be written, w->size bytes. May wait (a ring that is full).
 *      fill       gives the message its bytes, by its key (pattern.h), before it is sent; NULL for one that lies in one
 *                 piece where acquire said.
 *      send       the message that acquire gave, whole.
 *      receive    the next message, whole; *ret is where it lies.
 *      release    the reader is done with the message that receive gave.
 *
 * loop_acquire_buffer and loop_release_nothing are for transports that copy through w->buffer.
 */
struct channel {
        int (*acquire)(struct worker *w, unsigned char **ret);
        void (*fill)(struct worker *w, unsigned char *message, uint64_t key);
        int (*send)(struct worker *w, unsigned char *message);
        int (*receive)(struct worker *w, unsigned char **ret);
        void (*release)(struct worker *w, unsigned char *message);
};

#define LOOP_INLINE static inline __attribute__((always_inline))
#define LOOP_UNLIKELY(x) __builtin_expect(!!(x), 0)

LOOP_INLINE int loop_acquire_buffer(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        return 0;
}

LOOP_INLINE void loop_release_nothing(struct worker *w, unsigned char *message) {
        (void) w;
        (void) message;
}

/* What the receiving side does with a message's bytes. */
LOOP_INLINE int loop_verify(struct worker *w, const unsigned char *message, enum verify verify, unsigned direction,
                            uint64_t number, uint64_t *sink) {
        if (verify == VERIFY_TOUCH)
                *sink += pattern_touch(message, w->size);
        if (verify == VERIFY_CHECKSUM &&
            LOOP_UNLIKELY(!pattern_matches(message, w->size, pattern_key(w->index, direction, number))))
                return pattern_explain(&w->failure, message, w->size, w->index, direction, number);
        return 0;
}

LOOP_INLINE void loop_fill(struct worker *w, const struct channel *c, unsigned char *message, unsigned direction,
                           uint64_t number) {
        uint64_t key = pattern_key(w->index, direction, number);
        if (c->fill)
                c->fill(w, message, key);
        else
                pattern_fill(message, w->size, key);
}

LOOP_INLINE int loop_emit(struct worker *w, const struct channel *c, enum verify verify, unsigned direction,
                          uint64_t number) {
        unsigned char *message;
        int r = c->acquire(w, &message);
        if (LOOP_UNLIKELY(r))
                return r;
        if (verify == VERIFY_CHECKSUM)
                loop_fill(w, c, message, direction, number);
        return c->send(w, message);
}

LOOP_INLINE void loop_completed(struct worker *w, uint64_t n) {
        __atomic_store_n(&w->messages, n, __ATOMIC_RELAXED);
}

LOOP_INLINE int loop_sender(struct worker *w, const struct channel *c, enum verify verify, bool paced) {
        uint64_t n = w->messages, first = n;
        while (n < worker_limit(w)) {
                int r = paced ? pace_wait(w, pace_due(w, n - first)) : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
                r = loop_emit(w, c, verify, 0, n);
                if (LOOP_UNLIKELY(r))
                        return r;
                loop_completed(w, ++n);
        }
        return 0;
}

LOOP_INLINE int loop_receiver(struct worker *w, const struct channel *c, enum verify verify, bool paced) {
        uint64_t n = w->messages, first = n, sink = 0;
        int r = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                r = c->receive(w, &message);
                if (LOOP_UNLIKELY(r))
                        break;
                r = loop_verify(w, message, verify, 0, n, &sink);
                if (LOOP_UNLIKELY(r))
                        break;
                if (paced)
                        pace_record(w, pace_due(w, n - first));
                c->release(w, message);
                loop_completed(w, ++n);
        }
        w->sink = sink;
        return r;
}

/* What an initiator takes the time of: nothing, each round trip, or each since it was due. */
enum loop_clock { LOOP_UNTIMED, LOOP_TIMED, LOOP_PACED };

/*
 * The clock of round trips is read once for each, when its message has been handed over and is on its way: there is
 * nothing else to do then, and so the reading costs the loop nothing where its peer has a CPU of its own. A round trip
 * counts from there to the same point of the next, which makes one of everything: the way there and back, the look, the
 * next one's sending. The last has no next, and is given the time that the first one's sending took.
 *
 * Not so with checksums, where bytes are made between a look and a sending that are no part of a round trip: there the
 * clock is read before the sending and after the look. The result says which it was: "round_trip" of
 * daemon/result/result.c.
 */
struct loop_timer {
        uint64_t begin_ns, sent_ns; /* sent_ns 0: nothing is sent yet */
        uint64_t first_send_ns;
};

LOOP_INLINE void loop_timer_sent(struct worker *w, struct loop_timer *t) {
        uint64_t now_ns = util_now_ns();
        if (LOOP_UNLIKELY(t->sent_ns == 0))
                t->first_send_ns = now_ns - t->begin_ns;
        else
                histogram_record(w->latency, now_ns - t->sent_ns);
        t->sent_ns = now_ns;
}

/* The last message is back. */
LOOP_INLINE void loop_timer_end(struct worker *w, const struct loop_timer *t) {
        if (t->sent_ns > 0)
                histogram_record(w->latency, util_now_ns() - t->sent_ns + t->first_send_ns);
}

LOOP_INLINE int loop_initiator(struct worker *w, const struct channel *c, enum verify verify, enum loop_clock clock) {
        const bool chained = clock == LOOP_TIMED && verify != VERIFY_CHECKSUM;
        const bool apart = clock == LOOP_TIMED && verify == VERIFY_CHECKSUM;
        uint64_t n = w->messages, first = n, sink = 0;
        struct loop_timer timer = {.begin_ns = chained ? util_now_ns() : 0};
        int r = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                if (clock == LOOP_PACED) {
                        r = pace_wait(w, pace_due(w, n - first));
                        if (LOOP_UNLIKELY(r))
                                break;
                }
                r = c->acquire(w, &message);
                if (LOOP_UNLIKELY(r))
                        break;
                if (verify == VERIFY_CHECKSUM)
                        loop_fill(w, c, message, 0, n);
                uint64_t sending_ns = apart ? util_now_ns() : 0;
                r = c->send(w, message);
                if (LOOP_UNLIKELY(r))
                        break;
                if (chained)
                        loop_timer_sent(w, &timer);
                do /* a message is under way: whoever wants to stop waits for its return */
                        r = c->receive(w, &message);
                while (LOOP_UNLIKELY(r == WORKER_STOP));
                if (LOOP_UNLIKELY(r))
                        break;
                r = loop_verify(w, message, verify, 1, n, &sink);
                if (LOOP_UNLIKELY(r))
                        break;
                if (apart)
                        histogram_record(w->latency, util_now_ns() - sending_ns);
                if (clock == LOOP_PACED)
                        pace_record(w, pace_due(w, n - first));
                c->release(w, message);
                loop_completed(w, ++n);
        }
        if (chained && r >= 0)
                loop_timer_end(w, &timer);
        w->sink = sink;
        return r;
}

LOOP_INLINE int loop_responder(struct worker *w, const struct channel *c, enum verify verify) {
        uint64_t n = w->messages, sink = 0;
        int r = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                r = c->receive(w, &message);
                if (LOOP_UNLIKELY(r))
                        break;
                r = loop_verify(w, message, verify, 0, n, &sink);
                if (LOOP_UNLIKELY(r))
                        break;
                c->release(w, message);
                r = loop_emit(w, c, verify, 1, n);
                if (LOOP_UNLIKELY(r))
                        break;
                loop_completed(w, ++n);
        }
        w->sink = sink;
        return r;
}

/* Returns the call, with `verify` a constant in each of its three copies. */
#define LOOP_VERIFIED(w, call)                                                                                         \
        do {                                                                                                           \
                if ((w)->agent->setup.verify == VERIFY_CHECKSUM) {                                                     \
                        const enum verify verify = VERIFY_CHECKSUM;                                                    \
                        return call;                                                                                   \
                }                                                                                                      \
                if ((w)->agent->setup.verify == VERIFY_TOUCH) {                                                        \
                        const enum verify verify = VERIFY_TOUCH;                                                       \
                        return call;                                                                                   \
                }                                                                                                      \
                const enum verify verify = VERIFY_NONE;                                                                \
                return call;                                                                                           \
        } while (0)

/* Defines prefix_sender(), … and `static const struct transport_loops prefix_loops`. `channel` is a static const
 * struct channel, so that its functions are constants to the compiler. */
#define TRANSPORT_LOOPS(prefix, channel)                                                                               \
        static int prefix##_sender(struct worker *w) {                                                                 \
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_sender(w, &(channel), verify, true));                                    \
                bool check = w->agent->setup.verify == VERIFY_CHECKSUM;                                                \
                return check ? loop_sender(w, &(channel), VERIFY_CHECKSUM, false)                                      \
                             : loop_sender(w, &(channel), VERIFY_NONE, false);                                         \
        }                                                                                                              \
        static int prefix##_receiver(struct worker *w) {                                                               \
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_receiver(w, &(channel), verify, true));                                  \
                LOOP_VERIFIED(w, loop_receiver(w, &(channel), verify, false));                                         \
        }                                                                                                              \
        static int prefix##_initiator(struct worker *w) {                                                              \
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_initiator(w, &(channel), verify, LOOP_PACED));                           \
                if (w->latency)                                                                                        \
                        LOOP_VERIFIED(w, loop_initiator(w, &(channel), verify, LOOP_TIMED));                           \
                LOOP_VERIFIED(w, loop_initiator(w, &(channel), verify, LOOP_UNTIMED));                                 \
        }                                                                                                              \
        static int prefix##_responder(struct worker *w) {                                                              \
                LOOP_VERIFIED(w, loop_responder(w, &(channel), verify));                                               \
        }                                                                                                              \
        static const struct transport_loops prefix##_loops = {                                                         \
                .sender = prefix##_sender,                                                                             \
                .receiver = prefix##_receiver,                                                                         \
                .initiator = prefix##_initiator,                                                                       \
                .responder = prefix##_responder,                                                                       \
        }

#endif
