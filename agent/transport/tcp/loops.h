/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_TCP_LOOPS_H
#define IPCLAB_AGENT_TCP_LOOPS_H

/*
 * The loops of streams over TCP. They are those of loops.h, and two things more.
 *
 * A message may carry the time of its sending in its first bytes, from which the receiver, who has the same clock,
 * knows how long it took until all of it was there. Of short messages only every so manieth is stamped, by its number,
 * which both ends know. The stamp is the only part of a message that is not as verify wants it.
 *
 * And a thread may serve both directions of its connection at once. It never waits for one of them alone: whichever
 * way something can move, it does, and only when nothing can the thread sleeps.
 */

#include "agent/loop/loops.h"
#include "agent/transport/tcp/tcp.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define TCP_LATEST_NS (100 * NSEC_PER_SEC) /* no message of a closed loop is older: what a histogram holds */
#define TCP_POLL_NS (100 * NSEC_PER_MSEC)

/*
 * A copy mode: a channel, and the same in steps that never wait. They return the bytes that moved, or a negative errno
 * without words (-EAGAIN: not now), or what prepare returns.
 *
 *      prepare    makes the next message ready to be written; 1 = not yet
 *      send_part  goes on with a message of which `sent` bytes have gone
 *      sent       the whole message has gone
 *      idle       before the thread sleeps; 1 = it must not, as what prepare said has changed; may be NULL
 *      news       a descriptor beside the socket that wakes it; may be NULL
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

/* Beyond the first field, where that is shorter than a stamp. */
void tcp_stamp_parts(struct fields *f, uint64_t ns);
/* A stamp that cannot be true. -EBADMSG with w->failure. */
int tcp_bad_stamp(struct worker *w, uint64_t number, uint64_t sent_ns, uint64_t now_ns);
/* What a part of message `number` that did not move means: 0 = nothing could move just now; negative errno with
 * w->failure. */
int tcp_part_failed(struct worker *w, const char *what, uint64_t number, ssize_t error);
int tcp_part_ended(struct worker *w, size_t got);
/* Until something can move, there is news (-1: no such descriptor), or the limits should be looked at again. Where a
 * message will be due (else 0): until shortly before it, and when called then, until it is due, spinning (pace.h). */
void tcp_duplex_sleep(struct worker *w, bool sending, int news_fd, uint64_t due_ns);

/* Parts of modes. */

LOOP_INLINE int tcp_acquire_nothing(struct worker *w, unsigned char **ret) {
        (void) w;
        *ret = NULL; /* a message in several places has no address */
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
        if (c->fields->n == 1) /* it lies there */
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

/* The fields of the message are ready to be written: its bytes, and its stamp, which is now where due_ns is 0. */
LOOP_INLINE void tcp_write(struct worker *w, enum verify verify, bool stamped, unsigned direction, uint64_t number,
                           uint64_t due_ns) {
        const struct tcp_channel *c = w->channel;
        struct fields *f = tcp_fields(c);
        if (verify == VERIFY_CHECKSUM)
                fields_fill(f, pattern_key(w->index, direction, number));
        if (stamped && (number & c->stamp_mask) == 0)
                tcp_stamp(f, due_ns ? due_ns : util_now_ns());
}

/* paced: a stamp is when the message was due, which nothing keeps from being long ago where the rate is not met; only
 * not before the loop began, of which both ends know when. */
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
                        histogram_record(w->latency, now_ns - sent_ns);
                from = TCP_STAMP;
        }
        if (verify == VERIFY_TOUCH)
                *sink += pattern_touch(message, w->size);
        if (verify == VERIFY_CHECKSUM &&
            LOOP_UNLIKELY(!pattern_matches_from(message, from, w->size, pattern_key(w->index, direction, number))))
                return pattern_explain_from(&w->failure, message, from, w->size, w->index, direction, number);
        return 0;
}

LOOP_INLINE int tcp_sender(struct worker *w, const struct tcp_mode *m, enum verify verify, bool stamped) {
        uint64_t n = w->messages;
        while (n < worker_limit(w)) {
                unsigned char *message;
                int r = m->channel.acquire(w, &message);
                if (LOOP_UNLIKELY(r))
                        return r;
                tcp_write(w, verify, stamped, 0, n, 0);
                r = m->channel.send(w, message);
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

/* Where a worker's two streams are. */
struct tcp_duplex {
        uint64_t sent, received, sink;
        uint64_t first;  /* message of this loop */
        uint64_t due_ns; /* in an open loop: when the next message is to be sent; else 0 */
        size_t out, in;  /* bytes of the message under way; out is w->size between two messages */
        bool moved;
};

LOOP_INLINE int tcp_duplex_send(struct worker *w, const struct tcp_mode *m, struct tcp_duplex *d, enum verify verify,
                                bool stamped, bool paced) {
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
                tcp_write(w, verify, stamped, w->agent->end == END_FIRST ? 0 : 1, d->sent, d->due_ns);
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

LOOP_INLINE int tcp_duplex(struct worker *w, const struct tcp_mode *m, enum verify verify, bool stamped, bool paced) {
        struct tcp_duplex d = {.sent = w->sent, .first = w->sent, .received = w->messages, .out = w->size};
        int r = 0;
        while (r == 0) {
                d.moved = false;
                r = tcp_duplex_send(w, m, &d, verify, stamped, paced);
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

/* Returns the call, with `stamped` a constant in each of its copies. */
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
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_sender(w, &(mode).channel, verify, true));                               \
                TCP_STAMPED(w, tcp_sender(w, &(mode), verify, stamped));                                               \
        }                                                                                                              \
        static int prefix##_receiver(struct worker *w) {                                                               \
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_receiver(w, &(mode).channel, verify, true));                             \
                TCP_STAMPED(w, tcp_receiver(w, &(mode), verify, stamped));                                             \
        }                                                                                                              \
        static int prefix##_duplex(struct worker *w) {                                                                 \
                if (w->pace_ns > 0) /* a stamp says when the message was due */                                        \
                        TCP_STAMPED(w, tcp_duplex(w, &(mode), verify, stamped, true));                                 \
                TCP_STAMPED(w, tcp_duplex(w, &(mode), verify, stamped, false));                                        \
        }                                                                                                              \
        static int prefix##_initiator(struct worker *w) {                                                              \
                if (w->pace_ns > 0)                                                                                    \
                        LOOP_VERIFIED(w, loop_initiator(w, &(mode).channel, verify, LOOP_PACED));                      \
                if (w->latency)                                                                                        \
                        LOOP_VERIFIED(w, loop_initiator(w, &(mode).channel, verify, LOOP_TIMED));                      \
                LOOP_VERIFIED(w, loop_initiator(w, &(mode).channel, verify, LOOP_UNTIMED));                            \
        }                                                                                                              \
        static int prefix##_responder(struct worker *w) {                                                              \
                LOOP_VERIFIED(w, loop_responder(w, &(mode).channel, verify));                                          \
        }                                                                                                              \
        static const struct transport_loops prefix##_loops = {                                                         \
                .sender = prefix##_sender,                                                                             \
                .receiver = prefix##_receiver,                                                                         \
                .initiator = prefix##_initiator,                                                                       \
                .responder = prefix##_responder,                                                                       \
                .duplex = prefix##_duplex,                                                                             \
        }

#endif
