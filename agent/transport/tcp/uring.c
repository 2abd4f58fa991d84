/* SPDX-License-Identifier: MIT */

/*
 * The copy modes by io_uring (uring/uring.h, uring/zerocopy.h). As with system calls one message is one operation, and
 * one operation is under way at a time. Each has MSG_WAITALL: the ring itself continues until the whole message has
 * moved, without a system call for each part.
 *
 * Streams of short messages are the exception: a multishot receive receives them (multishot.h has its gain, and the
 * reason why other messages do not use it).
 */

#include "agent/transport/uring/uring.h"
#include "agent/transport/tcp/modes.h"
#include "agent/transport/tcp/multishot.h"
#include "agent/transport/transport.h"
#include "agent/transport/uring/attach.h"
#include "agent/transport/uring/batch.h"
#include "agent/transport/uring/zerocopy.h"
#include "schema/protocol/effective.h"

static inline int until_whole(int flags) {
        return flags & MSG_DONTWAIT ? flags : flags | MSG_WAITALL;
}

LOOP_INLINE ssize_t engine_send(struct worker *w, const unsigned char *data, size_t n, int flags) {
        return uring_send(w, data, n, MSG_NOSIGNAL | until_whole(flags));
}

LOOP_INLINE ssize_t engine_sendmsg(struct worker *w, struct iovec *iov, unsigned n, int flags) {
        struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};
        return uring_sendmsg(w, &m, (unsigned) (MSG_NOSIGNAL | until_whole(flags)));
}

LOOP_INLINE ssize_t engine_receive(struct worker *w, unsigned char *data, size_t n, int flags) {
        return uring_receive(w, data, n, until_whole(flags));
}

LOOP_INLINE int engine_receive_message(struct worker *w, unsigned char **ret) {
        const struct tcp_channel *c = w->channel;
        return c->multishot ? tcp_multishot_receive(w, c->multishot, ret) : receive_whole(w, ret);
}

static ssize_t engine_send_uncopied(struct worker *w, size_t sent, int flags) {
        const struct tcp_channel *c = w->channel;
        ssize_t n = uring_zerocopy_send(w, c->uring, c->zerocopy, sent, until_whole(flags));
        if (n < 0 && errno == ENOMEM) /* for the notification */
                errno = ENOBUFS;
        return n;
}

/* The ring's completions carry their message's number: there is always room for one more send. */
static int engine_wait(struct worker *w, bool begun) {
        const struct tcp_channel *c = w->channel;
        return begun ? 0 : uring_zerocopy_wait(w, c->uring, c->zerocopy);
}

/* Completions already lie in memory, and reading them costs no system call. */
static int engine_collect(struct worker *w, zerocopy_enough enough) {
        const struct tcp_channel *c = w->channel;
        (void) enough;
        return uring_zerocopy_collect(w, c->uring, c->zerocopy);
}

static int engine_reap(struct worker *w) {
        struct tcp_channel *c = w->channel;
        return uring_zerocopy_reap(w, c->uring, c->zerocopy, &c->no_buffers_ns);
}

static int engine_news(const struct worker *w) {
        const struct tcp_channel *c = w->channel;
        return uring_zerocopy_fd(c->uring);
}

/* A queue depth of more than one (batch.h): a message is written to the memory of its place in the queue. */

static void write_queued(struct worker *w, unsigned i, uint64_t number) {
        const struct tcp_channel *c = w->channel;
        const struct uring *u = w->engine;
        bool gathered = u->batch->fields[i] != NULL;
        unsigned char *at = gathered ? NULL : uring_batch_message(u->batch, i);
        struct fields whole; /* 64 entries, of which only the first is initialized */
        whole.n = 1;
        whole.iov[0] = (struct iovec){.iov_base = at, .iov_len = w->size};
        struct fields *f = gathered ? u->batch->fields[i] : c->fields->n > 1 ? c->fields : &whole;
        if (w->agent->setup.verify == VERIFY_CHECKSUM || w->fresh)
                fields_fill(f, pattern_key(w->index, 0, number));
        if (tcp_stamps(w->agent) && (number & c->stamp_mask) == 0)
                tcp_stamp(f, util_now_ns());
        for (unsigned k = 0; !gathered && f != &whole && k < f->n; k++) {
                memcpy(at, f->iov[k].iov_base, f->iov[k].iov_len);
                at += f->iov[k].iov_len;
        }
}

static int queued_sender(struct worker *w) {
        return uring_batch_send(w, write_queued);
}

LOOP_INLINE int queued_receive(struct worker *w, unsigned char **ret) {
        const struct tcp_channel *c = w->channel;
        return c->multishot ? tcp_multishot_receive(w, c->multishot, ret) : uring_batch_receive(w, ret);
}

static const struct tcp_mode queued_mode = {.channel = {.receive = queued_receive, .release = loop_release_nothing}};

static int queued_receiver(struct worker *w) {
        TCP_STAMPED(w, tcp_receiver(w, &queued_mode, verify, stamped));
}

static const struct transport_loops queued_loops = {.sender = queued_sender, .receiver = queued_receiver};

static const struct transport_loops *loops(const struct agent *a) {
        return point_is_queued(&a->setup.point) ? &queued_loops : modes_loops(a);
}

static int attach(struct worker *w) {
        int r = tcp_attach(w);
        struct tcp_channel *c = w->channel;
        bool receives = tcp_agent_receives(w->agent);
        if (r == 0 && receives && point_multishot_bytes(&w->agent->setup.point) > 0)
                r = tcp_multishot_new(w, &c->multishot, &c->no_multishot);
        if (r == 0 && !c->multishot && (receives || !c->zerocopy))
                r = uring_attach(w, 0, "send, sendmsg and recv take no registered buffer");
        if (r == 0 && c->zerocopy)
                r = uring_zerocopy_new(w, c->zerocopy, receives ? END_COUNT : 1, &c->uring);
        /* as until_whole(); the parts of a multishot receive are assembled and counted here */
        w->parts_unseen = r == 0 && !c->multishot && !agent_is_duplex(w->agent);
        return r;
}

static void detach(struct worker *w) {
        struct tcp_channel *c = w->channel;
        if (c) {
                c->uring = uring_zerocopy_free(c->uring);
                c->multishot = tcp_multishot_free(c->multishot);
        }
        uring_detach(w);
        tcp_detach(w);
}

/* A worker that also receives has a ring for that beside the one that sends without copying. */
static void effective(const struct agent *a, struct effective *e) {
        const char *reason;
        struct uring_facts facts = {0}, without_copying = {0};
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct tcp_channel *c = a->workers[i].channel;
                uring_facts_add_worker(&facts, &a->workers[i]);
                if (c->multishot)
                        tcp_multishot_facts(c->multishot, &facts);
                if (c->uring)
                        uring_zerocopy_facts(c->uring, &without_copying);
        }
        tcp_effective(a, e);
        uring_put(e, SETTING_IO_URING, &facts);
        if (tcp_receives_many(a, &reason))
                tcp_multishot_effective(e);
        uring_put(e, facts.rings ? SETTING_IO_URING_ZERO_COPY : SETTING_IO_URING, &without_copying);
}

static int pages(const struct agent *a, struct page_list *list) {
        int r = tcp_pages(a, list);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct tcp_channel *c = a->workers[i].channel;
                const struct uring *u = a->workers[i].engine;
                if (c->multishot)
                        r = tcp_multishot_pages(c->multishot, i, list);
                if (r == 0 && u)
                        r = uring_batch_pages(u->batch, i, list);
        }
        return r;
}

const struct transport_ops transport_uring_tcp = {
        .engine = ENGINE_IO_URING,
        .open = tcp_open,
        .attach = attach,
        .detach = detach,
        .close = tcp_close,
        .loops = loops,
        .effective = effective,
        .pages = pages,
};
