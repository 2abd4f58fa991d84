/* SPDX-License-Identifier: MIT */

/*
 * The three ways of a message into a TCP socket by io_uring (uring.h, uring-zerocopy.h), and the one out of it. As with
 * system calls one message is one operation, and one operation is under way at a time. Each is told to
 * go on until the whole message has moved (MSG_WAITALL): the ring does so by itself, without a system call for each
 * part. A multishot receive would bring the same parts in buffers of its own choice, from which they had to be put
 * together.
 */

#include "agent/descriptor.h"
#include "agent/tcp-loops.h"
#include "agent/uring-zerocopy.h"
#include "agent/uring.h"
#include "schema/json.h"

#include <sys/socket.h>

static ssize_t receive_more(struct worker *w, unsigned char *message, size_t got) {
        return uring_receive(w, message + got, w->size - got, MSG_WAITALL);
}

LOOP_INLINE int receive_whole(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        ssize_t n = uring_receive(w, w->buffer, w->size, MSG_WAITALL);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_receive(w, w->buffer, n, receive_more);
        return 0;
}

static ssize_t receive_part(struct worker *w, size_t got) {
        ssize_t n = uring_receive(w, w->buffer + got, w->size - got, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

/* two-copy */

LOOP_INLINE ssize_t send_packed(struct worker *w, size_t sent, int flags) {
        const struct tcp_channel *c = w->channel;
        return uring_send(w, c->packed + sent, w->size - sent, MSG_NOSIGNAL | flags);
}

static ssize_t packed_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_packed(w, sent, MSG_WAITALL);
}

LOOP_INLINE int packed_send(struct worker *w, unsigned char *message) {
        tcp_pack(w->channel);
        ssize_t n = send_packed(w, 0, MSG_WAITALL);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, packed_again, "send");
        return 0;
}

static ssize_t packed_part(struct worker *w, size_t sent) {
        if (sent == 0)
                tcp_pack(w->channel);
        ssize_t n = send_packed(w, sent, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static const struct tcp_mode packed_mode = {
        .channel = {.acquire = tcp_acquire_nothing,
                    .fill = tcp_fill_fields,
                    .send = packed_send,
                    .receive = receive_whole,
                    .release = loop_release_nothing},
        .prepare = tcp_always_ready,
        .send_part = packed_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(packed, packed_mode);

/* one-copy */

LOOP_INLINE ssize_t send_fields(struct worker *w, struct iovec *iov, unsigned n, int flags) {
        struct uring *u = w->engine;
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_sendmsg(sqe, u->fds[URING_OUT], &m, (unsigned) (MSG_NOSIGNAL | flags));
        return uring_run(w, u, sqe);
}

static ssize_t send_fields_after(struct worker *w, size_t sent, int flags) {
        struct iovec rest[SPEC_FIELDS_MAX];
        return send_fields(w, rest, fields_after(tcp_fields(w->channel), sent, rest), flags);
}

static ssize_t gathered_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_fields_after(w, sent, MSG_WAITALL);
}

LOOP_INLINE int gathered_send(struct worker *w, unsigned char *message) {
        struct fields *f = tcp_fields(w->channel);
        ssize_t n = send_fields(w, f->iov, f->n, MSG_WAITALL);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size))
                return descriptor_finish_send(w, message, n, gathered_again, "sendmsg");
        return 0;
}

static ssize_t gathered_part(struct worker *w, size_t sent) {
        ssize_t n = send_fields_after(w, sent, MSG_DONTWAIT);
        return n < 0 ? -errno : n;
}

static const struct tcp_mode gathered_mode = {
        .channel = {.acquire = tcp_acquire_nothing,
                    .fill = tcp_fill_fields,
                    .send = gathered_send,
                    .receive = receive_whole,
                    .release = loop_release_nothing},
        .prepare = tcp_always_ready,
        .send_part = gathered_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(gathered, gathered_mode);

/* zero-copy */

LOOP_INLINE int uncopied_acquire(struct worker *w, unsigned char **ret) {
        struct tcp_channel *c = w->channel;
        *ret = NULL;
        if (zerocopy_ready(c->zerocopy))
                return 0;
        return uring_zerocopy_wait(w, c->uring, c->zerocopy);
}

static bool for_want_of_buffers(ssize_t n) {
        return n < 0 && (errno == ENOBUFS || errno == ENOMEM);
}

/* As send(2), but for sends that fail for want of buffers: those go on when there are some. */
static ssize_t uncopied_again(struct worker *w, const unsigned char *message, size_t sent) {
        struct tcp_channel *c = w->channel;
        (void) message;
        for (;;) {
                ssize_t n = uring_zerocopy_send(w, c->uring, c->zerocopy, sent, MSG_WAITALL);
                if (!for_want_of_buffers(n)) {
                        c->no_buffers_ns = 0;
                        return n;
                }
                int r = uring_zerocopy_relieve(w, c->uring, c->zerocopy, &c->no_buffers_ns);
                if (r < 0) {
                        errno = -r; /* the worker's failure has words already */
                        return -1;
                }
        }
}

LOOP_INLINE int uncopied_send(struct worker *w, unsigned char *message) {
        struct tcp_channel *c = w->channel;
        ssize_t n = uncopied_again(w, message, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size)) {
                int r = descriptor_finish_send(w, message, n, uncopied_again, "sendmsg_zc");
                if (r)
                        return r;
        }
        zerocopy_advance(c->zerocopy);
        return 0;
}

static int uncopied_prepare(struct worker *w) {
        struct tcp_channel *c = w->channel;
        if (zerocopy_ready(c->zerocopy))
                return 0;
        int r = uring_zerocopy_collect(w, c->uring, c->zerocopy);
        return r < 0 || zerocopy_ready(c->zerocopy) ? r : 1;
}

static ssize_t uncopied_part(struct worker *w, size_t sent) {
        struct tcp_channel *c = w->channel;
        ssize_t n = uring_zerocopy_send(w, c->uring, c->zerocopy, sent, MSG_DONTWAIT);
        if (!for_want_of_buffers(n)) {
                c->no_buffers_ns = 0;
                return n < 0 ? -errno : n;
        }
        int r = uring_zerocopy_relieve(w, c->uring, c->zerocopy, &c->no_buffers_ns);
        return r < 0 ? r : -EAGAIN;
}

static void uncopied_sent(struct worker *w) {
        struct tcp_channel *c = w->channel;
        zerocopy_advance(c->zerocopy);
}

static int uncopied_idle(struct worker *w) {
        struct tcp_channel *c = w->channel;
        return uring_zerocopy_collect(w, c->uring, c->zerocopy);
}

static int uncopied_news(const struct worker *w) {
        const struct tcp_channel *c = w->channel;
        return uring_zerocopy_fd(c->uring);
}

static const struct tcp_mode uncopied_mode = {
        .channel = {.acquire = uncopied_acquire,
                    .fill = tcp_fill_fields,
                    .send = uncopied_send,
                    .receive = receive_whole,
                    .release = loop_release_nothing},
        .prepare = uncopied_prepare,
        .send_part = uncopied_part,
        .sent = uncopied_sent,
        .idle = uncopied_idle,
        .news = uncopied_news,
        .receive_part = receive_part,
};
TCP_LOOPS(uncopied, uncopied_mode);

static const struct transport_loops *uring_loops(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &packed_loops, [COPY_ONE] = &gathered_loops, [COPY_ZERO] = &uncopied_loops};
        return loops[a->setup.point.copy_mode];
}

static int attach(struct worker *w) {
        int r = tcp_attach(w);
        struct tcp_channel *c = w->channel;
        if (r == 0)
                r = uring_attach(w);
        if (r == 0 && c->zerocopy)
                r = uring_zerocopy_new(w, c->zerocopy, &c->uring);
        return r;
}

static void detach(struct worker *w) {
        struct tcp_channel *c = w->channel;
        if (c)
                c->uring = uring_zerocopy_free(c->uring);
        uring_detach(w);
        tcp_detach(w);
}

static void effective(const struct agent *a, struct json_writer *w) {
        const struct tcp_channel *c = a->workers[0].channel;
        tcp_effective(a, w);
        uring_effective(&a->workers[0], w);
        if (c->uring)
                uring_zerocopy_effective(c->uring, w);
}

const struct transport_ops transport_uring_tcp = {
        .transport = TRANSPORT_TCP,
        .engine = ENGINE_IO_URING,
        .open = tcp_open,
        .attach = attach,
        .detach = detach,
        .close = tcp_close,
        .loops = uring_loops,
        .effective = effective,
        .pages = tcp_pages,
};
