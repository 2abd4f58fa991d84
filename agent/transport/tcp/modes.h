/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The copy modes, once for both engines: sending a message's fields to a socket, and the handling of a message that is
 * sent in parts or lacks buffers. The file of an engine (syscall.c, uring.c) includes this, defines the functions that
 * are declared first, and exports modes_loops(): in one unit with the loops an engine costs no call.
 */

#include "agent/transport/stream/descriptor.h"
#include "agent/transport/tcp/loops.h"

#include <sys/socket.h>

/* As the system calls of the same names, on the worker's descriptors. `flags` is MSG_DONTWAIT, or 0: wait, and for the
 * whole message where the engine can. */
static ssize_t engine_send(struct worker *w, const unsigned char *data, size_t n, int flags);
static ssize_t engine_sendmsg(struct worker *w, struct iovec *iov, unsigned n, int flags);
static ssize_t engine_receive(struct worker *w, unsigned char *data, size_t n, int flags);
/* Receives the next message, as a channel's receive: by receive_whole(), or by a better way of the engine. */
static int engine_receive_message(struct worker *w, unsigned char **ret);

/* Sends the pool's current message from byte `sent` on, and accounts for the send. Fails with ENOBUFS when buffers are
 * lacking, in both engines. */
static ssize_t engine_send_uncopied(struct worker *w, size_t sent, int flags);
/* As the functions of the same names in zerocopy.h. */
static int engine_wait(struct worker *w, bool begun);
static int engine_collect(struct worker *w, zerocopy_enough enough);
static int engine_reap(struct worker *w);
/* Returns a descriptor to poll for notifications beside the socket; -1: none. */
static int engine_news(const struct worker *w);

static ssize_t receive_more(struct worker *w, unsigned char *message, size_t got) {
        return engine_receive(w, message + got, w->size - got, 0);
}

LOOP_INLINE int receive_whole(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = engine_receive(w, w->buffer, w->size, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_receive(w, w->buffer, n, receive_more, "recv");
        return 0;
}

static ssize_t receive_part(struct worker *w, size_t got) {
        ssize_t n = engine_receive(w, w->buffer + got, w->size - got, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

LOOP_INLINE int finish_send(struct worker *w, unsigned char *message, ssize_t n, descriptor_again again) {
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, again, tcp_send_method(w->agent));
        return 0;
}

/* Member initializers that all modes share. */
#define MODES_CHANNEL(how_acquire, how_send)                                                                           \
        {                                                                                                              \
                .acquire = (how_acquire), .fill = tcp_fill_fields, .send = (how_send),                                 \
                .receive = engine_receive_message, .release = loop_release_nothing                                     \
        }

/* two-copy */

LOOP_INLINE ssize_t send_packed(struct worker *w, size_t sent, int flags) {
        const struct tcp_channel *c = w->channel;
        return engine_send(w, c->packed + sent, w->size - sent, flags);
}

static ssize_t packed_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_packed(w, sent, 0);
}

LOOP_INLINE int packed_send(struct worker *w, unsigned char *message) {
        tcp_pack(w->channel);
        return finish_send(w, message, send_packed(w, 0, 0), packed_again);
}

static ssize_t packed_part(struct worker *w, size_t sent) {
        if (sent == 0)
                tcp_pack(w->channel);
        ssize_t n = send_packed(w, sent, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static const struct tcp_mode packed_mode = {
        .channel = MODES_CHANNEL(tcp_acquire_nothing, packed_send),
        .prepare = tcp_always_ready,
        .send_part = packed_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(packed, packed_mode);

/* one-copy */

LOOP_INLINE ssize_t send_fields(struct worker *w, size_t sent, int flags) {
        struct fields *f = tcp_fields(w->channel);
        if (f->n == 1) /* a single field needs no gathering, and the kernel no vector */
                return engine_send(w, (unsigned char *) f->iov->iov_base + sent, f->iov->iov_len - sent, flags);
        if (LOOP_UNLIKELY(sent > 0)) {
                struct iovec rest[SPEC_FIELDS_MAX];
                return engine_sendmsg(w, rest, fields_after(f, sent, rest), flags);
        }
        return engine_sendmsg(w, f->iov, f->n, flags);
}

static ssize_t gathered_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_fields(w, sent, 0);
}

LOOP_INLINE int gathered_send(struct worker *w, unsigned char *message) {
        return finish_send(w, message, send_fields(w, 0, 0), gathered_again);
}

static ssize_t gathered_part(struct worker *w, size_t sent) {
        ssize_t n = send_fields(w, sent, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static const struct tcp_mode gathered_mode = {
        .channel = MODES_CHANNEL(tcp_acquire_nothing, gathered_send),
        .prepare = tcp_always_ready,
        .send_part = gathered_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(gathered, gathered_mode);

/* zero-copy */

LOOP_INLINE int uncopied_acquire(struct worker *w, unsigned char **ret) {
        const struct tcp_channel *c = w->channel;
        *ret = NULL;
        return zerocopy_ready(c->zerocopy) ? 0 : engine_wait(w, false);
}

/* As send(2), except that a send without buffers (ENOBUFS) is repeated when some are free. */
LOOP_INLINE ssize_t send_uncopied(struct worker *w, size_t sent) {
        struct tcp_channel *c = w->channel;
        for (;;) {
                int r = LOOP_UNLIKELY(!zerocopy_has_room(c->zerocopy)) ? engine_wait(w, true) : 0;
                if (r == 0) {
                        ssize_t n = engine_send_uncopied(w, sent, 0);
                        if (n >= 0 || errno != ENOBUFS) {
                                c->no_buffers_ns = 0;
                                return n;
                        }
                        r = engine_reap(w);
                }
                if (r < 0) {
                        errno = -r; /* w->failure is already set */
                        return -1;
                }
        }
}

static ssize_t uncopied_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_uncopied(w, sent);
}

LOOP_INLINE int uncopied_send(struct worker *w, unsigned char *message) {
        struct tcp_channel *c = w->channel;
        int r = finish_send(w, message, send_uncopied(w, 0), uncopied_again);
        if (r == 0)
                zerocopy_advance(c->zerocopy);
        return r;
}

static int uncopied_prepare(struct worker *w) {
        const struct tcp_channel *c = w->channel;
        int r = zerocopy_ready(c->zerocopy) ? 0 : engine_collect(w, zerocopy_ready);
        return r < 0 || zerocopy_ready(c->zerocopy) ? r : 1;
}

static ssize_t uncopied_part(struct worker *w, size_t sent) {
        struct tcp_channel *c = w->channel;
        if (!zerocopy_has_room(c->zerocopy))
                return -EAGAIN; /* idle collects */
        ssize_t n = engine_send_uncopied(w, sent, MSG_DONTWAIT);
        if (n >= 0 || errno != ENOBUFS) {
                c->no_buffers_ns = 0;
                return n < 0 ? -errno : n;
        }
        int r = engine_reap(w);
        return r < 0 ? r : -EAGAIN;
}

static void uncopied_sent(struct worker *w) {
        struct tcp_channel *c = w->channel;
        zerocopy_advance(c->zerocopy);
}

/* Collects all notifications, needed or not: a remaining one would end the sleep at once. Notifications that are
 * collected here cause no wake-up, so the thread must not sleep when they complete the next message's wait. */
static int uncopied_idle(struct worker *w) {
        const struct tcp_channel *c = w->channel;
        bool ready = zerocopy_ready(c->zerocopy);
        int r = engine_collect(w, NULL);
        return r < 0 ? r : !ready && zerocopy_ready(c->zerocopy);
}

static const struct tcp_mode uncopied_mode = {
        .channel = MODES_CHANNEL(uncopied_acquire, uncopied_send),
        .prepare = uncopied_prepare,
        .send_part = uncopied_part,
        .sent = uncopied_sent,
        .idle = uncopied_idle,
        .news = engine_news,
        .receive_part = receive_part,
};
TCP_LOOPS(uncopied, uncopied_mode);

static const struct transport_loops *modes_loops(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &packed_loops, [COPY_ONE] = &gathered_loops, [COPY_ZERO] = &uncopied_loops};
        return loops[a->setup.point.copy_mode];
}
