/* SPDX-License-Identifier: MIT */

/*
 * The cold side of loops.h, in the worker's thread: stamps across fields, impossible stamps, errors of a part, and the
 * sleep of a thread that serves both directions.
 */

#include "agent/transport/tcp/loops.h"

#include <sched.h>

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
                           "thread %" PRIu32 ", message %" PRIu64 " has the send time %" PRIu64
                           " ns, and was received at %" PRIu64 " ns: these are not the bytes that were sent",
                           w->index, number, sent_ns, now_ns);
}

int tcp_part_failed(struct worker *w, const char *what, uint64_t number, ssize_t error) {
        switch (-error) {
        case EAGAIN:
                worker_count(&w->eagain);
                return 0;
        case EINTR:
                worker_count(&w->eintr);
                return 0;
        case EPIPE:
        case ECONNRESET:
                return failure_set_peer(&w->failure, w->agent->peer_role, (int) -error,
                                        "closed the channel of thread %" PRIu32 " in message %" PRIu64 ": %s", w->index,
                                        number, strerrordesc_np((int) -error));
        default:
                return failure_set(&w->failure, (int) -error,
                                   "%s failed in thread %" PRIu32 ", message %" PRIu64 ": %s", what, w->index, number,
                                   strerrordesc_np((int) -error));
        }
}

/* Spins as pace_wait(), and returns early when a direction is ready. */
static void spin(struct pollfd p[2], uint64_t due_ns) {
        const struct timespec at_once = {};
        do {
                if (ppoll(p, 2, &at_once, NULL) != 0)
                        return;
                (void) sched_yield(); /* cannot fail */
        } while (util_now_ns() < due_ns);
}

void tcp_duplex_sleep(struct worker *w, bool sending, int news_fd, uint64_t due_ns) {
        struct pollfd p[2] = {{.fd = w->send_fd, .events = (short) (POLLIN | (sending ? POLLOUT : 0))},
                              {.fd = news_fd, .events = POLLIN}};
        struct timespec ts = {.tv_nsec = TCP_POLL_NS};
        uint64_t now_ns = util_now_ns(), left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
        if (left_ns > 0 && left_ns <= PACE_SPIN_NS) {
                spin(p, due_ns);
                return;
        }
        if (left_ns > 0 && left_ns - PACE_SPIN_NS < TCP_POLL_NS)
                ts.tv_nsec = (long) (left_ns - PACE_SPIN_NS);
        (void) ppoll(p, 2, &ts, NULL); /* its result is ignored, as the next calls return the error */
}

int tcp_part_ended(struct worker *w, size_t got) {
        return failure_set_peer(&w->failure, w->agent->peer_role, EPIPE,
                                "closed the channel of thread %" PRIu32 " after %zu of %zu bytes of message %" PRIu64,
                                w->index, got, w->size, w->messages);
}
