/* SPDX-License-Identifier: MIT */

/*
 * The handling of a read or write that did not move a whole message: parts, interruptions, descriptors that are not
 * ready, a peer that is gone. The hot functions in descriptor.h call it in the worker's thread. And the limit of
 * descriptors, which the leader raises.
 */

#include "agent/transport/stream/descriptor.h"

#include "agent/base/agent.h"
#include "schema/measure/perf.h"
#include "schema/spec/spec.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>

#define POLL_MS 100 /* interval at which a worker that waits for a descriptor checks its limit */

int descriptor_reserve(struct agent *a) {
        struct rlimit limit;
        rlim_t need = point_descriptors(&a->setup.point);
        /* Where the hard limit is lower, counters are left out and reported so; the run itself fails. */
        rlim_t wanted = need + (rlim_t) a->n_workers * PERF_HANDLES_MAX;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return failure_set(&a->failure, errno, "getrlimit: %s", strerrordesc_np(errno));
        if (limit.rlim_cur >= wanted)
                return 0;
        if (limit.rlim_max < need)
                return failure_limit(&a->failure, EMFILE, HOST_NOFILE, limit.rlim_max, need,
                                     "too many descriptors for one agent");
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return failure_set(&a->failure, errno, "RLIMIT_NOFILE cannot be raised to %ju: %s",
                                   (uintmax_t) limit.rlim_cur, strerrordesc_np(errno));
        return 0;
}

int descriptor_after_error(struct worker *w, int fd, short events, size_t moved, const char *what) {
        int error = errno;
        switch (error) {
        case EINTR:
                worker_count(&w->eintr);
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        case EAGAIN: {
                worker_count(&w->eagain);
                struct pollfd p = {.fd = fd, .events = events};
                (void) poll(&p, 1, POLL_MS); /* its result is ignored, as the next call returns the error */
                return moved == 0 && worker_over(w) ? WORKER_STOP : 0;
        }
        case EPIPE:
        case ECONNRESET:
        case ECONNREFUSED:
                return failure_set_peer(&w->failure, w->agent->peer_role, error,
                                        "closed the channel of thread %" PRIu32 " in message %" PRIu64 ": %s", w->index,
                                        w->messages, strerrordesc_np(error));
        default:
                return failure_set(&w->failure, error, "%s failed in thread %" PRIu32 ", message %" PRIu64 ": %s", what,
                                   w->index, w->messages, strerrordesc_np(error));
        }
}

int descriptor_finish_send(struct worker *w, const unsigned char *message, ssize_t n, descriptor_again again,
                           const char *what) {
        size_t sent = 0;
        for (;;) {
                if (n >= 0) {
                        sent += (size_t) n;
                        if (sent == w->size)
                                return 0;
                        worker_count(&w->partial_sends);
                } else {
                        int r = descriptor_after_error(w, w->send_fd, POLLOUT, sent, what);
                        if (r)
                                return r;
                }
                n = again(w, message, sent);
        }
}

int descriptor_finish_receive(struct worker *w, unsigned char *message, ssize_t n, descriptor_more more,
                              const char *what) {
        size_t got = 0;
        for (;;) {
                if (n > 0) {
                        got += (size_t) n;
                        if (got == w->size)
                                return 0;
                        worker_count(&w->partial_receives);
                } else if (n == 0) {
                        return failure_set_peer(&w->failure, w->agent->peer_role, EPIPE,
                                                "closed the channel of thread %" PRIu32
                                                " after %zu of %zu bytes of message %" PRIu64,
                                                w->index, got, w->size, w->messages);
                } else {
                        int r = descriptor_after_error(w, w->receive_fd, POLLIN, got, what);
                        if (r)
                                return r;
                }
                n = more(w, message, got);
        }
}
