/* SPDX-License-Identifier: MIT */

/*
 * The copy modes by system calls, on blocking sockets: a call may move a part of the message, and is then repeated. The
 * calls go through syscall(2), as descriptor.h explains. Notifications are read from the socket's error queue.
 */

#include "agent/transport/tcp/modes.h"
#include "agent/transport/transport.h"

LOOP_INLINE ssize_t engine_send(struct worker *w, const unsigned char *data, size_t n, int flags) {
        return syscall(SYS_sendto, w->send_fd, data, n, MSG_NOSIGNAL | flags, NULL, 0);
}

LOOP_INLINE ssize_t engine_sendmsg(struct worker *w, struct iovec *iov, unsigned n, int flags) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return syscall(SYS_sendmsg, w->send_fd, &m, MSG_NOSIGNAL | flags);
}

LOOP_INLINE ssize_t engine_receive(struct worker *w, unsigned char *data, size_t n, int flags) {
        return syscall(SYS_recvfrom, w->receive_fd, data, n, flags, NULL, NULL);
}

LOOP_INLINE int engine_receive_message(struct worker *w, unsigned char **ret) {
        return receive_whole(w, ret);
}

LOOP_INLINE ssize_t engine_send_uncopied(struct worker *w, size_t sent, int flags) {
        const struct tcp_channel *c = w->channel;
        ssize_t n = send_fields(w, sent, MSG_ZEROCOPY | flags);
        if (n > 0) {
                zerocopy_sent(c->zerocopy);
                worker_count(&w->zerocopy_sends);
        }
        return n;
}

static int engine_wait(struct worker *w, bool begun) {
        const struct tcp_channel *c = w->channel;
        return zerocopy_wait(w, c->zerocopy, begun);
}

static int engine_collect(struct worker *w, zerocopy_enough enough) {
        const struct tcp_channel *c = w->channel;
        return zerocopy_collect(w, c->zerocopy, enough);
}

static int engine_reap(struct worker *w) {
        struct tcp_channel *c = w->channel;
        return zerocopy_reap(w, c->zerocopy, &c->no_buffers_ns);
}

/* The socket itself reports notifications. */
static int engine_news(const struct worker *w) {
        (void) w;
        return -1;
}

const struct transport_loops *tcp_syscall_loops(const struct agent *a) {
        return modes_loops(a);
}
