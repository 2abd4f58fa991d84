/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The loops of streams over TCP. They add two features to those of loop/loops.h.
 *
 * A message may carry its send time in its first bytes, from which the receiver, which has the same clock, computes the
 * time until the whole message was received. Only one of the short messages of an interval is stamped, by its number,
 * which both ends know. The stamp is the only part of a message that verify does not check.
 *
 * And a thread may serve both directions of its connection at once. It never waits for one of them alone: it moves
 * bytes in each direction that is ready, and sleeps only when neither is.
 */

#include "agent/loop/loops.h"
#include "agent/transport/tcp/tcp.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define TCP_LATEST_NS (100 * NSEC_PER_SEC) /* no message of a closed loop is older: the histogram's maximum */
#define TCP_POLL_NS (100 * NSEC_PER_MSEC)

/*
 * A copy mode: a channel, and the same in steps that never wait. The steps return the number of bytes moved, or a
 * negative errno without w->failure (-EAGAIN: not ready), or prepare's result.
 *
 *      prepare    makes the next message writable; 1 = not yet
 *      send_part  continues a message of which `sent` bytes are sent
 *      sent       is called when the whole message is sent
 *      idle       is called before the thread sleeps; 1 = it must not, as prepare's result has changed; may be NULL
 *      news       returns another descriptor that wakes the thread; may be NULL
 */
struct tcp_mode {
        struct channel channel;
        int (*prepare)(struct worker *w);
        ssize_t (*send_part)(struct worker *w, size_t sent);
        void (*sent)(struct worker *w);
        int (*idle)(struct worker *w);
        int (*news)(const struct worker *w);
        ssize_t (*receive_part)(struct worker *w, size_t got);
};

/* Writes a stamp that extends beyond the first field, where that is shorter than a stamp. */
void tcp_stamp_parts(struct fields *f, uint64_t ns);
/* Reports an impossible stamp. -EBADMSG with w->failure. */
int tcp_bad_stamp(struct worker *w, uint64_t number, uint64_t sent_ns, uint64_t now_ns);
/* Handles the error of a part of message `number`: 0 = the direction is not ready; negative errno with w->failure. */
int tcp_part_failed(struct worker *w, const char *what, uint64_t number, ssize_t error);
int tcp_part_ended(struct worker *w, size_t got);
/* Sleeps until a direction is ready, news_fd (-1: none) is readable, or the limits must be checked again. due_ns: the
 * next message's due time, or 0; the sleep ends shortly before it, and a call in that last time spins until it
 * (pace.h). */
void tcp_duplex_sleep(struct worker *w, bool sending, int news_fd, uint64_t due_ns);

/* Parts of modes. */

LOOP_INLINE int tcp_acquire_nothing(struct worker *w, unsigned char **ret) {
        (void) w;
        *ret = NULL; /* a message in several fields has no single address */
        return 0;
}

LOOP_INLINE void tcp_fill_fields(struct worker *w, unsigned char *message, uint64_t key) {
        (void) message;
        fields_fill(tcp_fields(w->channel), key);
}

static inline int tcp_always_ready(struct worker *w) {
        (void) w;
        return 0;
}

static inline void tcp_nothing_more(struct worker *w) {
        (void) w;
}

LOOP_INLINE void tcp_pack(const struct tcp_channel *c) {
        unsigned char *at = c->packed;
        if (c->fields->n == 1) /* a single field is sent in place */
                return;
        for (unsigned i = 0; i < c->fields->n; i++) {
                memcpy(at, c->fields->iov[i].iov_base, c->fields->iov[i].iov_len);
                at += c->fields->iov[i].iov_len;
        }
}

LOOP_INLINE void tcp_stamp(struct fields *f, uint64_t ns) {
        if (LOOP_UNLIKELY(f->iov[0].iov_len < TCP_STAMP))
                tcp_stamp_parts(f, ns);
        else
                memcpy(f->iov[0].iov_base, &ns, TCP_STAMP);
}

/* Writes the message's fields: its bytes, and its stamp, which is the current time where due_ns is 0. */
LOOP_INLINE void tcp_write(struct worker *w, enum verify verify, bool stamped, bool sourced, unsigned direction,
                           uint64_t number, uint64_t due_ns) {
        const struct tcp_channel *c = w->channel;
        struct fields *f = tcp_fields(c);
        if (loop_writes(w, verify, sourced))
                fields_fill(f, pattern_key(w->index, direction, number));
        if (stamped && (number & c->stamp_mask) == 0)
                tcp_stamp(f, due_ns ? due_ns : util_now_ns());
}

/* paced: a stamp is the message's due time, which may be long ago where the rate is not reached, but not before the
 * start of the loop, which both ends know. */
LOOP_INLINE int tcp_read(struct worker *w, const unsigned char *message, enum verify verify, bool stamped, bool paced,
                         unsigned direction, uint64_t number, uint64_t *sink) {
        const struct tcp_channel *c = w->channel;
        size_t from = 0;
        if (stamped && (number & c->stamp_mask) == 0) {
                uint64_t now_ns = util_now_ns(), sent_ns, oldest_ns = paced ? now_ns - w->start_ns : TCP_LATEST_NS;
                memcpy(&sent_ns, message, TCP_STAMP);
                if (LOOP_UNLIKELY(now_ns - sent_ns > oldest_ns)) /* or later than now */
                        return tcp_bad_stamp(w, number, sent_ns, now_ns);
                if (w->latency)
                        recorder_record(w->latency, now_ns - sent_ns);
                from = TCP_STAMP;
        }
        if (verify == VERIFY_TOUCH)
                *sink += pattern_touch(message, w->size);
        if (verify == VERIFY_CHECKSUM &&
            LOOP_UNLIKELY(!pattern_matches_from(message, from, w->size, pattern_key(w->index, direction, number))))
                return pattern_explain_from(&w->failure, message, from, w->size, w->index, direction, number);
        return 0;
}

LOOP_INLINE int tcp_sender(struct worker *w, const struct tcp_mode *m, enum verify verify, bool stamped, bool sourced) {
        uint64_t n = w->messages;
        while (n < worker_limit(w)) {
                unsigned char *message;
                int r = m->channel.acquire(w, &message);
                if (LOOP_UNLIKELY(r))
                        return r;
                tcp_write(w, verify, stamped, sourced, 0, n, 0);
                r = loop_send(w, &m->channel, sourced, message);
                if (LOOP_UNLIKELY(r))
                        return r;
                loop_completed(w, ++n);
        }
        return 0;
}

LOOP_INLINE int tcp_receiver(struct worker *w, const struct tcp_mode *m, enum verify verify, bool stamped) {
        uint64_t n = w->messages, sink = 0;
        int r = 0;
        while (n < worker_limit(w)) {
                unsigned char *message;
                r = m->channel.receive(w, &message);
                if (LOOP_UNLIKELY(r))
                        break;
                r = tcp_read(w, message, verify, stamped, false, 0, n, &sink);
                if (LOOP_UNLIKELY(r))
                        break;
                m->channel.release(w, message);
                loop_completed(w, ++n);
        }
        w->sink = sink;
        return r;
}

/* The positions of a worker's two streams. */
struct tcp_duplex {
        uint64_t sent, received, sink;
        uint64_t first;  /* message of this loop */
        uint64_t due_ns; /* in an open loop: the due time of the next message to send; else 0 */
        size_t out, in;  /* bytes of the message under way; out is w->size between two messages */
        bool moved;
};

LOOP_INLINE int tcp_duplex_send(struct worker *w, const struct tcp_mode *m, struct tcp_duplex *d, enum verify verify,
                                bool stamped, bool paced, bool sourced) {
        if (d->out == w->size) {
                if (d->sent >= __atomic_load_n(&w->send_limit, __ATOMIC_RELAXED)) {
                        __atomic_store_n(&w->sent_last, 1, __ATOMIC_RELEASE);
                        return 0;
                }
                if (paced && util_now_ns() < (d->due_ns = pace_due(w, d->sent - d->first)))
                        return 0;
                int r = m->prepare(w);
                if (r)
                        return r < 0 ? r : 0;
                tcp_write(w, verify, stamped, sourced, w->agent->end == END_FIRST ? 0 : 1, d->sent, d->due_ns);
                d->out = 0;
        }
        ssize_t n = m->send_part(w, d->out);
        if (n < 0)
                return tcp_part_failed(w, "send", d->sent, n);
        d->moved = true;
        d->out += (size_t) n;
        if (d->out < w->size) {
                worker_count(&w->partial_sends);
                return 0;
        }
        m->sent(w);
        if (sourced)
                loop_next_source(w);
        __atomic_store_n(&w->sent, ++d->sent, __ATOMIC_RELAXED);
        return 0;
}

LOOP_INLINE int tcp_duplex_receive(struct worker *w, const struct tcp_mode *m, struct tcp_duplex *d, enum verify verify,
                                   bool stamped, bool paced) {
        if (d->received >= worker_limit(w))
                return 0;
        ssize_t n = m->receive_part(w, d->in);
        if (n < 0)
                return tcp_part_failed(w, "receive", d->received, n);
        if (n == 0)
                return tcp_part_ended(w, d->in);
        d->moved = true;
        d->in += (size_t) n;
        if (d->in < w->size) {
                worker_count(&w->partial_receives);
                return 0;
        }
        d->in = 0;
        int r = tcp_read(w, w->buffer, verify, stamped, paced, w->agent->end == END_FIRST ? 1 : 0, d->received,
                         &d->sink);
        if (LOOP_UNLIKELY(r))
                return r;
        loop_completed(w, ++d->received);
        return 0;
}

LOOP_INLINE int tcp_duplex(struct worker *w, const struct tcp_mode *m, enum verify verify, bool stamped, bool paced,
                           bool sourced) {
        struct tcp_duplex d = {.sent = w->sent, .first = w->sent, .received = w->messages, .out = w->size};
        int r = 0;
        while (r == 0) {
                d.moved = false;
                r = tcp_duplex_send(w, m, &d, verify, stamped, paced, sourced);
                if (LOOP_UNLIKELY(r))
                        break;
                r = tcp_duplex_receive(w, m, &d, verify, stamped, paced);
                if (LOOP_UNLIKELY(r) || d.moved)
                        continue;
                if (__atomic_load_n(&w->sent_last, __ATOMIC_RELAXED) && d.received >= worker_limit(w))
                        break;
                int news = m->idle ? m->idle(w) : 0;
                if (news == 0)
                        tcp_duplex_sleep(w, d.out < w->size, m->news ? m->news(w) : -1, d.due_ns);
                r = news < 0 ? news : 0;
        }
        w->sink = d.sink;
        return r;
}

/* Returns the call's result, with `stamped` and `verify` constants in each of its copies. */
#define TCP_STAMPED(w, call)                                                                                           \
        do {                                                                                                           \
                if (tcp_stamps((w)->agent)) {                                                                          \
                        const bool stamped = true;                                                                     \
                        LOOP_VERIFIED(w, call);                                                                        \
                }                                                                                                      \
                const bool stamped = false;                                                                            \
                LOOP_VERIFIED(w, call);                                                                                \
        } while (0)

/* Defines `static const struct transport_loops prefix_loops` for a static const struct tcp_mode. */
#define TCP_LOOPS(prefix, mode)                                                                                        \
        static int prefix##_sender(struct worker *w) {                                                                 \
                enum verify verify = w->agent->setup.verify;                                                           \
                bool stamped = tcp_stamps(w->agent), sourced = loop_is_sourced(w);                                     \
                if (w->pace_ns > 0)                                                                                    \
                        return loop_sender(w, &(mode).channel, verify, true, sourced);                                 \
                if (!loop_writes_plainly(w))                                                                           \
                        return tcp_sender(w, &(mode), verify, stamped, sourced);                                       \
                return stamped ? tcp_sender(w, &(mode), VERIFY_NONE, true, false)                                      \
                               : tcp_sender(w, &(mode), VERIFY_NONE, false, false);                                    \
        }                                                                                                              \
        static int prefix##_receiver(struct worker *w) {                                                               \
                if (w->pace_ns > 0)                                                                                    \
                        return loop_receiver(w, &(mode).channel, w->agent->setup.verify, true);                        \
                if (!loop_reads_plainly(w))                                                                            \
                        return tcp_receiver(w, &(mode), w->agent->setup.verify, tcp_stamps(w->agent));                 \
                TCP_STAMPED(w, tcp_receiver(w, &(mode), verify, stamped));                                             \
        }                                                                                                              \
        static int prefix##_duplex(struct worker *w) {                                                                 \
                if (!loop_writes_plainly(w)) /* where paced, a stamp is the due time */                                \
                        return tcp_duplex(w, &(mode), w->agent->setup.verify, tcp_stamps(w->agent), w->pace_ns > 0,    \
                                          loop_is_sourced(w));                                                         \
                TCP_STAMPED(w, tcp_duplex(w, &(mode), verify, stamped, false, false));                                 \
        }                                                                                                              \
        LOOP_INITIATOR(prefix, (mode).channel)                                                                         \
        LOOP_RESPONDER(prefix, (mode).channel)                                                                         \
        static const struct transport_loops prefix##_loops = {                                                         \
                .sender = prefix##_sender,                                                                             \
                .receiver = prefix##_receiver,                                                                         \
                .initiator = prefix##_initiator,                                                                       \
                .responder = prefix##_responder,                                                                       \
                .duplex = prefix##_duplex,                                                                             \
        }
