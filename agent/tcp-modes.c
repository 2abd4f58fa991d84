/* SPDX-License-Identifier: MIT */

/*
 * The three ways of a message into a TCP socket by system calls, and the one out of it. The calls go through
 * syscall(2), as descriptor.h explains.
 */

#include "agent/descriptor.h"
#include "agent/tcp-loops.h"

#include <sys/socket.h>

static ssize_t receive_part(struct worker *w, size_t got) {
        ssize_t n = syscall(SYS_recvfrom, w->receive_fd, w->buffer + got, w->size - got, MSG_DONTWAIT, NULL, NULL);
        return n < 0 ? -errno : n;
}

/* two-copy */

LOOP_INLINE ssize_t send_packed(struct worker *w, size_t sent, int flags) {
        const struct tcp_channel *c = w->channel;
        return syscall(SYS_sendto, w->send_fd, c->packed + sent, w->size - sent, MSG_NOSIGNAL | flags, NULL, 0);
}

static ssize_t packed_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_packed(w, sent, 0);
}

LOOP_INLINE int packed_send(struct worker *w, unsigned char *message) {
        tcp_pack(w->channel);
        ssize_t n = send_packed(w, 0, 0);
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
                    .receive = descriptor_receive,
                    .release = loop_release_nothing},
        .prepare = tcp_always_ready,
        .send_part = packed_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(packed, packed_mode);

/* one-copy */

LOOP_INLINE ssize_t send_fields(struct worker *w, struct iovec *iov, unsigned n, int flags) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return syscall(SYS_sendmsg, w->send_fd, &m, MSG_NOSIGNAL | flags);
}

static ssize_t send_fields_after(struct worker *w, size_t sent, int flags) {
        struct iovec rest[SPEC_FIELDS_MAX];
        return send_fields(w, rest, fields_after(tcp_fields(w->channel), sent, rest), flags);
}

static ssize_t gathered_again(struct worker *w, const unsigned char *message, size_t sent) {
        (void) message;
        return send_fields_after(w, sent, 0);
}

LOOP_INLINE int gathered_send(struct worker *w, unsigned char *message) {
        struct fields *f = tcp_fields(w->channel);
        ssize_t n = send_fields(w, f->iov, f->n, 0);
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
                    .receive = descriptor_receive,
                    .release = loop_release_nothing},
        .prepare = tcp_always_ready,
        .send_part = gathered_part,
        .sent = tcp_nothing_more,
        .receive_part = receive_part,
};
TCP_LOOPS(gathered, gathered_mode);

/* zero-copy */

LOOP_INLINE int acquire_uncopied(struct worker *w, unsigned char **ret) {
        struct tcp_channel *c = w->channel;
        *ret = NULL;
        if (zerocopy_ready(c->zerocopy))
                return 0;
        return zerocopy_wait(w, c->zerocopy, false);
}

static void uncopied_taken(struct worker *w) {
        struct tcp_channel *c = w->channel;
        zerocopy_sent(c->zerocopy);
        worker_count(&w->zerocopy_sends);
        c->no_buffers_ns = 0;
}

/* As send(2), but for sends that fail for want of buffers: those go on when there are some. */
static ssize_t uncopied_again(struct worker *w, const unsigned char *message, size_t sent) {
        struct tcp_channel *c = w->channel;
        (void) message;
        for (;;) {
                int r = zerocopy_has_room(c->zerocopy) ? 0 : zerocopy_wait(w, c->zerocopy, true);
                ssize_t n = r < 0 ? -1 : send_fields_after(w, sent, MSG_ZEROCOPY);
                if (n > 0)
                        uncopied_taken(w);
                if (r == 0 && n < 0 && errno == ENOBUFS) {
                        r = zerocopy_relieve(w, c->zerocopy, &c->no_buffers_ns);
                        if (r == 0)
                                continue;
                }
                if (r < 0)
                        errno = -r; /* the worker's failure has words already */
                return n;
        }
}

LOOP_INLINE int uncopied_send(struct worker *w, unsigned char *message) {
        struct tcp_channel *c = w->channel;
        struct fields *f = tcp_fields(c);
        ssize_t n = send_fields(w, f->iov, f->n, MSG_ZEROCOPY);
        if (n > 0)
                uncopied_taken(w);
        else if (errno == ENOBUFS)
                n = uncopied_again(w, message, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size)) {
                int r = descriptor_finish_send(w, message, n, uncopied_again, "sendmsg");
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
        int r = zerocopy_collect(w, c->zerocopy);
        return r < 0 || zerocopy_ready(c->zerocopy) ? r : 1;
}

static ssize_t uncopied_part(struct worker *w, size_t sent) {
        struct tcp_channel *c = w->channel;
        if (!zerocopy_has_room(c->zerocopy))
                return -EAGAIN; /* idle collects */
        ssize_t n = send_fields_after(w, sent, MSG_ZEROCOPY | MSG_DONTWAIT);
        int error = errno;
        if (n > 0)
                uncopied_taken(w);
        if (n >= 0 || error != ENOBUFS)
                return n < 0 ? -error : n;
        int r = zerocopy_relieve(w, c->zerocopy, &c->no_buffers_ns);
        return r < 0 ? r : -EAGAIN;
}

static void uncopied_sent(struct worker *w) {
        struct tcp_channel *c = w->channel;
        zerocopy_advance(c->zerocopy);
}

static int uncopied_idle(struct worker *w) {
        struct tcp_channel *c = w->channel;
        return zerocopy_collect(w, c->zerocopy);
}

static const struct tcp_mode uncopied_mode = {
        .channel = {.acquire = acquire_uncopied,
                    .fill = tcp_fill_fields,
                    .send = uncopied_send,
                    .receive = descriptor_receive,
                    .release = loop_release_nothing},
        .prepare = uncopied_prepare,
        .send_part = uncopied_part,
        .sent = uncopied_sent,
        .idle = uncopied_idle,
        .receive_part = receive_part,
};
TCP_LOOPS(uncopied, uncopied_mode);

const struct transport_loops *tcp_syscall_loops(const struct agent *a) {
        static const struct transport_loops *const loops[COPY_COUNT] = {
                [COPY_TWO] = &packed_loops, [COPY_ONE] = &gathered_loops, [COPY_ZERO] = &uncopied_loops};
        return loops[a->setup.point.copy_mode];
}

/* The cold side of tcp-loops.h. */

void tcp_stamp_parts(struct fields *f, uint64_t ns) {
        const unsigned char *from = (const unsigned char *) &ns;
        size_t left = TCP_STAMP;
        for (unsigned i = 0; left > 0; i++) {
                size_t n = f->iov[i].iov_len < left ? f->iov[i].iov_len : left;
                memcpy(f->iov[i].iov_base, from, n);
                from += n;
                left -= n;
        }
}

int tcp_bad_stamp(struct worker *w, uint64_t number, uint64_t sent_ns, uint64_t now_ns) {
        return failure_set(&w->failure, EBADMSG,
                           "thread %" PRIu32 ", message %" PRIu64 " says that it was sent at %" PRIu64
                           " ns, and came at %" PRIu64 " ns: these are not the bytes that were sent",
                           w->index, number, sent_ns, now_ns);
}

int tcp_part_failed(struct worker *w, const char *what, ssize_t error) {
        switch (-error) {
        case EAGAIN:
                worker_count(&w->eagain);
                return 0;
        case EINTR:
                worker_count(&w->eintr);
                return 0;
        case EPIPE:
        case ECONNRESET:
                return failure_set(&w->failure, (int) -error,
                                   "peer %s closed the channel of thread %" PRIu32 " in message %" PRIu64 ": %s",
                                   w->agent->peer_role, w->index, w->messages, strerrordesc_np((int) -error));
        default:
                return failure_set(&w->failure, (int) -error,
                                   "%s failed in thread %" PRIu32 ", message %" PRIu64 ": %s", what, w->index,
                                   w->messages, strerrordesc_np((int) -error));
        }
}

void tcp_duplex_sleep(struct worker *w, bool sending, int news_fd, uint64_t due_ns) {
        struct pollfd p[2] = {{.fd = w->send_fd, .events = (short) (POLLIN | (sending ? POLLOUT : 0))},
                              {.fd = news_fd, .events = POLLIN}};
        struct timespec ts = {.tv_nsec = TCP_POLL_NS};
        uint64_t now_ns = util_now_ns();
        if (due_ns > now_ns && due_ns - now_ns < TCP_POLL_NS)
                ts.tv_nsec = (long) (due_ns - now_ns);
        (void) ppoll(p, 2, &ts, NULL); /* whatever it says, the next calls say it better */
}

int tcp_part_ended(struct worker *w, size_t got) {
        return failure_set(&w->failure, EPIPE,
                           "peer %s closed the channel of thread %" PRIu32 " after %zu of %zu bytes of message "
                           "%" PRIu64,
                           w->agent->peer_role, w->index, got, w->size, w->messages);
}
