/* SPDX-License-Identifier: MIT */

/* The ring for sends without copying; see zerocopy.h. The sending worker owns it. */

#include "agent/transport/uring/zerocopy.h"

#include "agent/base/agent.h"
#include "agent/transport/uring/uring.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IORING_SEND_ZC_REPORT_USAGE /* since liburing 2.4 */
#define IORING_SEND_ZC_REPORT_USAGE (1U << 3)
#define IORING_NOTIF_USAGE_ZC_COPIED (1U << 31)
#endif

#define COMPLETIONS 256u
#define LOOK_NS (100 * NSEC_PER_MSEC) /* interval at which a waiting worker checks its limit */
#define SETTLE_NS NSEC_PER_SEC

struct uring_zerocopy {
        struct io_uring ring;
        struct zerocopy *pool;
        int fd;
        uint8_t sqe_flags;
        int files_error;                          /* errno of registering the descriptor */
        uint32_t refused[SPEC_POOL_MESSAGES_MAX]; /* each message's failed sends that are not notified */
        struct uring_setup setup;
        const char *unfixed; /* NULL: the messages are registered, in the pool's order; else why not, static */
};

/* Returns NULL, or why the pool is not registered. The limit must have room for all pools, and for a message that each
 * thread sends. */
static const char *register_pool(const struct worker *w, struct uring_zerocopy *u, const struct zerocopy *z,
                                 unsigned ends) {
        struct iovec all[SPEC_POOL_MESSAGES_MAX];
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), pages = w->size / page + 2;
        for (uint32_t i = 0; i < z->n; i++) {
                all[i] = (struct iovec){.iov_base = z->messages[i]->memory, .iov_len = z->messages[i]->length};
                pages += (z->messages[i]->length + page - 1) / page;
        }
        int r = uring_register(w, &u->ring, all, z->n, ends * pages);
        return r == 0 ? NULL : r == -ENOMEM ? "RLIMIT_MEMLOCK is too small for the pool" : strerrordesc_np(-r);
}

static void settle(struct worker *w);

int uring_zerocopy_new(struct worker *w, struct zerocopy *z, unsigned ends, struct uring_zerocopy **ret) {
        struct uring_zerocopy *u = calloc(1, sizeof *u);
        if (!u)
                return failure_set(&w->failure, ENOMEM, "no memory for a ring");
        int r = uring_set_up(w, &u->ring, SPEC_RING_ENTRIES, COMPLETIONS, &u->setup);
        if (r < 0) {
                free(u);
                return r;
        }
        struct io_uring_probe *probe = io_uring_get_probe_ring(&u->ring);
        bool has_sendmsg_zc = probe && io_uring_opcode_supported(probe, IORING_OP_SENDMSG_ZC);
        io_uring_free_probe(probe);
        if (!has_sendmsg_zc) {
                (void) uring_zerocopy_free(u);
                return failure_set(&w->failure, EOPNOTSUPP,
                                   "engine io_uring: this kernel has no sendmsg_zc (since 6.1): copy_mode zero-copy "
                                   "needs it");
        }
        u->fd = w->send_fd;
        u->files_error = -io_uring_register_files(&u->ring, &u->fd, 1);
        if (u->files_error == 0) {
                u->fd = 0;
                u->sqe_flags = IOSQE_FIXED_FILE;
        }
        u->unfixed = register_pool(w, u, z, ends);
        u->pool = z;
        w->to_settle = u;
        w->settle = settle;
        *ret = u;
        return 0;
}

struct uring_zerocopy *uring_zerocopy_free(struct uring_zerocopy *u) {
        if (u)
                io_uring_queue_exit(&u->ring);
        free(u);
        return NULL;
}

/* A failed send is notified, too, and always as copied, as it sent nothing without copying. One notification of the
 * message as copied is therefore discounted for each failed send, in any order. */
static void notified(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, uint32_t message, bool copied) {
        z->pending[message]--;
        if (copied && u->refused[message] > 0) {
                u->refused[message]--;
                return;
        }
        worker_count(&w->zerocopy_completions);
        if (copied)
                worker_count(&w->zerocopy_copied);
}

/* Takes all completions. True when the send's own result is among them. */
static bool reap(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, int *ret_result) {
        struct io_uring_cqe *cqe;
        bool found = false;
        while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
                uint32_t message = (uint32_t) cqe->user_data;
                if (cqe->flags & IORING_CQE_F_NOTIF) {
                        notified(w, u, z, message, (unsigned) cqe->res & IORING_NOTIF_USAGE_ZC_COPIED);
                } else {
                        found = true;
                        *ret_result = cqe->res;
                        if (cqe->flags & IORING_CQE_F_MORE) {
                                z->pending[message]++;
                                if (cqe->res > 0)
                                        worker_count(&w->zerocopy_sends);
                                else
                                        u->refused[message]++;
                        }
                }
                io_uring_cqe_seen(&u->ring, cqe);
        }
        return found;
}

/* Submits the queued send and waits for its result; a signal ends a wait, not the send. */
static int complete(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z) {
        for (;;) {
                int result = 0, r = io_uring_submit_and_wait(&u->ring, 1);
                if (reap(w, u, z, &result))
                        return result;
                if (r == -EINTR)
                        worker_count(&w->eintr);
                else if (r < 0 && r != -EAGAIN && r != -EBUSY)
                        return r;
        }
}

/* Sends once. A single piece needs no message header, which saves the kernel its copy. */
static int send_once(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, struct msghdr *m, int flags) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        bool one = m->msg_iovlen == 1;
        if (!sqe)
                return -EBUSY; /* impossible: one is under way at a time */
        if (one)
                io_uring_prep_send_zc(sqe, u->fd, m->msg_iov->iov_base, m->msg_iov->iov_len, flags | MSG_NOSIGNAL, 0);
        else
                io_uring_prep_sendmsg_zc(sqe, u->fd, m, (unsigned) (flags | MSG_NOSIGNAL));
        sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
        sqe->flags |= u->sqe_flags;
        sqe->user_data = z->current;
        if (!u->unfixed) {
                sqe->ioprio |= IORING_RECVSEND_FIXED_BUF;
                sqe->buf_index = (uint16_t) z->current;
        }
        return complete(w, u, z);
}

ssize_t uring_zerocopy_send(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, size_t sent, int flags) {
        struct iovec rest[SPEC_FIELDS_MAX];
        struct msghdr m = {.msg_iov = rest};
        m.msg_iovlen = fields_after(z->messages[z->current], sent, rest);
        int n = send_once(w, u, z, &m, flags);
        if (n == -EINVAL && m.msg_iovlen > 1 && !u->unfixed) {
                u->unfixed = "this kernel sends registered memory in one piece only";
                n = io_uring_unregister_buffers(&u->ring); /* the sends need the limit that it uses */
                if (n == 0)
                        n = send_once(w, u, z, &m, flags);
        }
        if (n >= 0)
                return n;
        errno = -n;
        return -1;
}

static int collect(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z) {
        int unused;
        int r = io_uring_get_events(&u->ring); /* flushes completions that the kernel has deferred */
        (void) reap(w, u, z, &unused);
        if (r < 0 && r != -EINTR)
                return failure_set(&w->failure, -r, "the zero-copy notifications of thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        return 0;
}

static int await(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, uint64_t ns) {
        struct __kernel_timespec ts = {.tv_nsec = (long long) ns};
        struct io_uring_cqe *cqe;
        int unused, r = io_uring_wait_cqe_timeout(&u->ring, &cqe, &ts);
        (void) reap(w, u, z, &unused);
        if (r < 0 && r != -ETIME && r != -EINTR && r != -EAGAIN)
                return failure_set(&w->failure, -r, "the zero-copy notifications of thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        return 0;
}

/* The kernel unpins a send's pages only when its thread takes the notification. A resting thread would otherwise hold
 * them indefinitely. */
static void settle(struct worker *w) {
        struct uring_zerocopy *u = w->to_settle;
        uint64_t deadline_ns = util_now_ns() + SETTLE_NS;
        int r = collect(w, u, u->pool);
        while (r == 0 && zerocopy_under_way(u->pool) > 0 && util_now_ns() < deadline_ns)
                r = await(w, u, u->pool, ZEROCOPY_RETRY_NS);
}

/* As in tcp/zerocopy.c; but it must wait in the ring, as completed notifications otherwise stay pending and keep their
 * pages pinned. */
static int give_way(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z) {
        uint64_t now_ns = util_now_ns(), until_ns = now_ns + ZEROCOPY_GIVE_WAY_NS;
        int r = 0;
        if (!zerocopy_has_backpressure())
                return 0;
        for (; r == 0 && now_ns < until_ns; now_ns = util_now_ns())
                r = await(w, u, z, until_ns - now_ns);
        return r;
}

int uring_zerocopy_collect(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z) {
        bool ready = zerocopy_ready(z);
        int r = collect(w, u, z);
        return r == 0 && !ready && zerocopy_ready(z) ? give_way(w, u, z) : r;
}

int uring_zerocopy_wait(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z) {
        int r = collect(w, u, z);
        while (r == 0 && !zerocopy_ready(z)) {
                if (worker_over(w))
                        return WORKER_STOP;
                r = await(w, u, z, LOOK_NS);
        }
        return r < 0 ? r : give_way(w, u, z);
}

int uring_zerocopy_reap(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, uint64_t *since_ns) {
        uint64_t before = w->zerocopy_completions;
        int waits = zerocopy_under_way(z) == 0;
        worker_count(&w->enobufs);
        zerocopy_add_backpressure(waits);
        int r = await(w, u, z, ZEROCOPY_RETRY_NS);
        zerocopy_add_backpressure(-waits);
        if (r < 0)
                return r;
        bool news = w->zerocopy_completions != before;
        if (zerocopy_is_stalled(z, since_ns, news)) /* the kernel does not charge such sends to the socket */
                return zerocopy_fail_stalled(w, z, false);
        return news ? give_way(w, u, z) : 0;
}

int uring_zerocopy_fd(const struct uring_zerocopy *u) {
        return u->ring.ring_fd;
}

void uring_zerocopy_facts(const struct uring_zerocopy *u, struct uring_facts *facts) {
        uring_facts_add(facts, &u->setup, u->files_error, u->unfixed);
}
