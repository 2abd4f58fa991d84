/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The hot loops, once for every transport; rings and tcp have streams of their own beside them (ring.h, streams.h),
 * which look at the limit and count in the same way. A transport writes up to five inline functions and calls
 * TRANSPORT_LOOPS(prefix, channel): the compiler makes each role's loops from them, with no indirect call and, in those
 * that are measured most, no branch on anything that is constant in a run.
 *
 * Per message a loop adds two operations to the hand-written one: a load of the limit and a store of the counter. A
 * timed initiator also reads the clock once and records in the histogram, both while its message is under way.
 *
 * A message is complete when its reader has verified its bytes as `verify` requires, which the other end does before it
 * answers. Memory that is read in place moves from one CPU's cache to the other's only then; a clock that stopped
 * earlier would compare it with a copy whose cost is already included.
 */

#include "agent/base/agent.h"
#include "agent/loop/pace.h"
#include "agent/loop/pattern.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"

#include <errno.h>

/*
 * A transport's hot functions. Those with a result return 0, WORKER_STOP (worker_over() came true before the first byte
 * of a message) or a negative errno with w->failure set.
 *
 *      acquire    returns the place of the next message, w->size bytes. May wait (while a ring is full).
 *      fill       writes the message's bytes, by its key (pattern.h), before it is sent; NULL for one that lies in one
 *                 piece at the place that acquire returned.
 *      send       sends the whole message that acquire returned.
 *      receive    receives the next whole message; *ret is its place.
 *      release    frees the message that receive returned, after its reader is done with it.
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

#define LOOP_INLINE UTIL_SPECIALIZED
#define LOOP_UNLIKELY(x) __builtin_expect(!!(x), 0)

LOOP_INLINE int loop_acquire_buffer(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        return 0;
}

LOOP_INLINE void loop_release_nothing(struct worker *w, unsigned char *message) {
        (void) w;
        (void) message;
}

/* Verifies a received message. */
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

/* Whether messages come from a cold source, or are written anew each time (source.h). */
LOOP_INLINE bool loop_is_sourced(const struct worker *w) {
        return w->source_next || w->fresh;
}

/* Whether the loop writes a message before it sends it. */
LOOP_INLINE bool loop_writes(const struct worker *w, enum verify verify, bool sourced) {
        return verify == VERIFY_CHECKSUM || (sourced && w->fresh);
}

LOOP_INLINE void loop_next_source(struct worker *w) {
        if (w->source_next)
                w->source_next(w);
}

LOOP_INLINE int loop_acquire(struct worker *w, const struct channel *c, bool sourced, unsigned char **ret) {
        int r = c->acquire(w, ret);
        if (sourced && w->source)
                *ret = w->source;
        return r;
}

LOOP_INLINE int loop_send(struct worker *w, const struct channel *c, bool sourced, unsigned char *message) {
        int r = c->send(w, message);
        if (sourced && r == 0)
                loop_next_source(w);
        return r;
}

LOOP_INLINE int loop_emit(struct worker *w, const struct channel *c, enum verify verify, unsigned direction,
                          uint64_t number, bool sourced) {
        unsigned char *message;
        int r = loop_acquire(w, c, sourced, &message);
        if (LOOP_UNLIKELY(r))
                return r;
        if (loop_writes(w, verify, sourced))
                loop_fill(w, c, message, direction, number);
        return loop_send(w, c, sourced, message);
}

LOOP_INLINE void loop_completed(struct worker *w, uint64_t n) {
        __atomic_store_n(&w->messages, n, __ATOMIC_RELAXED);
}

LOOP_INLINE int loop_sender(struct worker *w, const struct channel *c, enum verify verify, bool paced, bool sourced) {
        uint64_t n = w->messages, first = n;
        while (n < worker_limit(w)) {
                int r = paced ? pace_wait(w, pace_due(w, n - first)) : 0;
                if (LOOP_UNLIKELY(r))
                        return r;
                r = loop_emit(w, c, verify, 0, n, sourced);
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

/* An initiator times nothing, each round trip, or each round trip from its due time. */
enum loop_clock { LOOP_UNTIMED, LOOP_TIMED, LOOP_PACED };

/*
 * The loop reads the clock once for each round trip, right after its send: the loop waits then, so that the reading
 * costs nothing where the peer has a CPU of its own. A round trip counts from there to the same point of the next,
 * which includes each step once: the way there and back, the verification, the next one's send. The last one has no
 * next, and adds the duration of the first send.
 *
 * With checksums, or fresh messages, the loop writes a message's bytes between a verification and a send, which is no
 * part of a round trip: it then reads the clock before the send and after the verification. The result names the
 * method: "round_trip" of daemon/result/result.c.
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
                recorder_record(w->latency, now_ns - t->sent_ns);
        t->sent_ns = now_ns;
}

/* Records the last round trip. */
LOOP_INLINE void loop_timer_end(struct worker *w, const struct loop_timer *t) {
        if (t->sent_ns > 0)
                recorder_record(w->latency, util_now_ns() - t->sent_ns + t->first_send_ns);
}

LOOP_INLINE int loop_initiator(struct worker *w, const struct channel *c, enum verify verify, enum loop_clock clock,
                               bool sourced) {
        const bool writes = loop_writes(w, verify, sourced);
        const bool chained = clock == LOOP_TIMED && !writes, apart = clock == LOOP_TIMED && writes;
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
                r = loop_acquire(w, c, sourced, &message);
                if (LOOP_UNLIKELY(r))
                        break;
                if (writes)
                        loop_fill(w, c, message, 0, n);
                uint64_t sending_ns = apart ? util_now_ns() : 0;
                r = loop_send(w, c, sourced, message);
                if (LOOP_UNLIKELY(r))
                        break;
                if (chained)
                        loop_timer_sent(w, &timer);
                do /* a message is under way, so a stop waits for its return */
                        r = c->receive(w, &message);
                while (LOOP_UNLIKELY(r == WORKER_STOP));
                if (LOOP_UNLIKELY(r))
                        break;
                r = loop_verify(w, message, verify, 1, n, &sink);
                if (LOOP_UNLIKELY(r))
                        break;
                if (apart)
                        recorder_record(w->latency, util_now_ns() - sending_ns);
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

LOOP_INLINE int loop_responder(struct worker *w, const struct channel *c, enum verify verify, bool sourced) {
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
                r = loop_emit(w, c, verify, 1, n, sourced);
                if (LOOP_UNLIKELY(r))
                        break;
                loop_completed(w, ++n);
        }
        w->sink = sink;
        return r;
}

/*
 * A role has a loop for each kind of what is measured most, in which everything is a constant: messages that are sent
 * as they are, and read as `none` or `touch` require. All the rest shares one loop, which branches on it: an open loop
 * waits for each message's time, and writing, comparing or cold messages cost a multiple of those branches.
 */
LOOP_INLINE bool loop_reads_plainly(const struct worker *w) {
        return w->pace_ns == 0 && w->agent->setup.verify != VERIFY_CHECKSUM;
}

LOOP_INLINE bool loop_writes_plainly(const struct worker *w) {
        return loop_reads_plainly(w) && !loop_is_sourced(w);
}

LOOP_INLINE enum loop_clock loop_clock_of(const struct worker *w) {
        return w->pace_ns > 0 ? LOOP_PACED : w->latency ? LOOP_TIMED : LOOP_UNTIMED;
}

/* Returns the call's result, with `verify` a constant in each of its two copies. */
#define LOOP_VERIFIED(w, call)                                                                                         \
        do {                                                                                                           \
                if ((w)->agent->setup.verify == VERIFY_TOUCH) {                                                        \
                        const enum verify verify = VERIFY_TOUCH;                                                       \
                        return call;                                                                                   \
                }                                                                                                      \
                const enum verify verify = VERIFY_NONE;                                                                \
                return call;                                                                                           \
        } while (0)

/* Define prefix_initiator(), prefix_responder() and prefix_receiver(), of a static const struct channel. */
#define LOOP_INITIATOR(prefix, channel)                                                                                \
        static int prefix##_initiator(struct worker *w) {                                                              \
                if (!loop_writes_plainly(w))                                                                           \
                        return loop_initiator(w, &(channel), w->agent->setup.verify, loop_clock_of(w),                 \
                                              loop_is_sourced(w));                                                     \
                if (w->latency)                                                                                        \
                        LOOP_VERIFIED(w, loop_initiator(w, &(channel), verify, LOOP_TIMED, false));                    \
                LOOP_VERIFIED(w, loop_initiator(w, &(channel), verify, LOOP_UNTIMED, false));                          \
        }
#define LOOP_RESPONDER(prefix, channel)                                                                                \
        static int prefix##_responder(struct worker *w) {                                                              \
                if (!loop_writes_plainly(w))                                                                           \
                        return loop_responder(w, &(channel), w->agent->setup.verify, loop_is_sourced(w));              \
                LOOP_VERIFIED(w, loop_responder(w, &(channel), verify, false));                                        \
        }
#define LOOP_RECEIVER(prefix, channel)                                                                                 \
        static int prefix##_receiver(struct worker *w) {                                                               \
                if (!loop_reads_plainly(w))                                                                            \
                        return loop_receiver(w, &(channel), w->agent->setup.verify, w->pace_ns > 0);                   \
                LOOP_VERIFIED(w, loop_receiver(w, &(channel), verify, false));                                         \
        }

/* Defines prefix_sender(), … and `static const struct transport_loops prefix_loops`. `channel` is a static const
 * struct channel, so that its functions are constants to the compiler. */
#define TRANSPORT_LOOPS(prefix, channel)                                                                               \
        static int prefix##_sender(struct worker *w) {                                                                 \
                return loop_writes_plainly(w) ? loop_sender(w, &(channel), VERIFY_NONE, false, false)                  \
                                              : loop_sender(w, &(channel), w->agent->setup.verify, w->pace_ns > 0,     \
                                                            loop_is_sourced(w));                                       \
        }                                                                                                              \
        LOOP_RECEIVER(prefix, channel)                                                                                 \
        LOOP_INITIATOR(prefix, channel)                                                                                \
        LOOP_RESPONDER(prefix, channel)                                                                                \
        static const struct transport_loops prefix##_loops = {                                                         \
                .sender = prefix##_sender,                                                                             \
                .receiver = prefix##_receiver,                                                                         \
                .initiator = prefix##_initiator,                                                                       \
                .responder = prefix##_responder,                                                                       \
        }

/* The same of a channel that copies through w->buffer. */
#define LOOPS_OF_BUFFERS(prefix, how_send, how_receive)                                                                \
        static const struct channel prefix##_channel = {.acquire = loop_acquire_buffer,                                \
                                                        .send = (how_send),                                            \
                                                        .receive = (how_receive),                                      \
                                                        .release = loop_release_nothing};                              \
        TRANSPORT_LOOPS(prefix, prefix##_channel)
