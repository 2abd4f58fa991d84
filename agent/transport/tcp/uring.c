/* SPDX-License-Identifier: MIT */

/*
 * The copy modes by io_uring (uring.h, uring-zerocopy.h). As with system calls one message is one operation, and one
 * operation is under way at a time. Each is told to go on until the whole message has moved (MSG_WAITALL): the ring
 * does so by itself, without a system call for each part.
 *
 * But for streams of short messages: those come as a multishot receive brings them (tcp-multishot.h, which says what
 * that is worth, and why other messages do not).
 */

#include "agent/transport/uring/uring.h"
#include "agent/transport/tcp/modes.h"
#include "agent/transport/tcp/multishot.h"
#include "agent/transport/transport.h"
#include "agent/transport/uring/zerocopy.h"
#include "schema/json/json.h"

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
        if (n < 0 && errno == ENOMEM) /* of the notification */
                errno = ENOBUFS;
        return n;
}

/* The ring's completions know their message by themselves: there is always room for one more send. */
static int engine_wait(struct worker *w, bool begun) {
        const struct tcp_channel *c = w->channel;
        return begun ? 0 : uring_zerocopy_wait(w, c->uring, c->zerocopy);
}

/* What has completed lies in memory already, and costs nothing more to take. */
static int engine_collect(struct worker *w, zerocopy_enough enough) {
        const struct tcp_channel *c = w->channel;
        (void) enough;
        return uring_zerocopy_collect(w, c->uring, c->zerocopy);
}

static int engine_relieve(struct worker *w) {
        struct tcp_channel *c = w->channel;
        return uring_zerocopy_relieve(w, c->uring, c->zerocopy, &c->no_buffers_ns);
}

static int engine_news(const struct worker *w) {
        const struct tcp_channel *c = w->channel;
        return uring_zerocopy_fd(c->uring);
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
        /* as until_whole() has it; what a multishot receive brings is put together here, and counted */
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

/* Who receives, too, has a ring for that beside the one that sends without copying. */
static void effective(const struct agent *a, struct json_writer *w) {
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
        tcp_effective(a, w);
        uring_put(w, "io_uring", &facts);
        if (tcp_receives_many(a, &reason))
                tcp_multishot_effective(w);
        uring_put(w, facts.rings ? "io_uring_zero_copy" : "io_uring", &without_copying);
}

static int pages(const struct agent *a, struct page_list *list) {
        int r = tcp_pages(a, list);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct tcp_channel *c = a->workers[i].channel;
                if (c->multishot)
                        r = tcp_multishot_pages(c->multishot, i, list);
        }
        return r;
}

const struct transport_ops transport_uring_tcp = {
        .transport = TRANSPORT_TCP,
        .engine = ENGINE_IO_URING,
        .open = tcp_open,
        .attach = attach,
        .detach = detach,
        .close = tcp_close,
        .loops = modes_loops,
        .effective = effective,
        .pages = pages,
};
