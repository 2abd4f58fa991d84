/* SPDX-License-Identifier: MIT */

/* The copy modes over a scripted engine: when a thread that serves both directions goes to sleep, when it must not, and
 * which message it gives up. */

#include "agent/transport/tcp/modes.h"
#include "check.h"

#include <stdlib.h>
#include <sys/eventfd.h>

#define SIZE 4096u

static struct {
        unsigned notified_at; /* the collecting that brings what the first message waits for; 0: it waits for nothing */
        unsigned full;        /* sends that find no room */
        unsigned broken;      /* sends that go well before one that does not; 0: all do */
        unsigned collected, sleeps;
        int news_fd; /* always readable: no sleep lasts */
} script;

static ssize_t engine_send(struct worker *w, const unsigned char *data, size_t n, int flags) {
        (void) w;
        (void) data;
        (void) flags;
        return (ssize_t) n;
}

static ssize_t engine_sendmsg(struct worker *w, struct iovec *iov, unsigned n, int flags) {
        size_t all = 0;
        for (unsigned i = 0; i < n; i++)
                all += iov[i].iov_len;
        return engine_send(w, NULL, all, flags);
}

static ssize_t engine_receive(struct worker *w, unsigned char *data, size_t n, int flags) {
        (void) w;
        (void) data;
        (void) n;
        (void) flags;
        errno = EAGAIN;
        return -1;
}

static int engine_receive_message(struct worker *w, unsigned char **ret) {
        return receive_whole(w, ret);
}

static ssize_t engine_send_uncopied(struct worker *w, size_t sent, int flags) {
        if (script.broken > 0 && w->sent == script.broken) {
                errno = EPIPE;
                return -1;
        }
        if (script.full > 0) {
                script.full--;
                errno = EAGAIN;
                return -1;
        }
        return send_fields(w, sent, flags);
}

static int engine_collect(struct worker *w, zerocopy_enough enough) {
        const struct tcp_channel *c = w->channel;
        (void) enough;
        if (++script.collected == script.notified_at)
                c->zerocopy->pending[0] = 0;
        return 0;
}

static int engine_wait(struct worker *w, bool begun) {
        (void) begun;
        return failure_set(&w->failure, ENOSYS, "only streams both ways are here");
}

static int engine_reap(struct worker *w) {
        return engine_wait(w, true);
}

/* Asked for before each sleep. */
static int engine_news(const struct worker *w) {
        (void) w;
        script.sleeps++;
        return script.news_fd;
}

/* Sends messages, and receives none. */
static int send_some(uint64_t messages, bool under_way, uint64_t *ret_sent, struct failure *ret_failure) {
        static struct agent agent = {.peer_role = "server"};
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        struct tcp_channel channel = {};
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        agent.setup.point.workload = WORKLOAD_STREAM;
        agent.setup.point.direction = DIRECTION_BOTH;
        agent.setup.point.message_size = SIZE;
        agent.setup.point.copy_mode = COPY_ZERO;
        agent.setup.verify = VERIFY_NONE;
        w->agent = &agent;
        w->channel = &channel;
        w->size = SIZE;
        w->send_fd = -1;
        w->send_limit = messages;
        if (zerocopy_new(w, SIZE, SPEC_FIELDS_OF_STUDY, &channel.zerocopy) < 0)
                abort();
        channel.zerocopy->pending[0] = under_way;
        int r = modes_loops(&agent)->duplex(w);
        *ret_sent = w->sent;
        *ret_failure = w->failure;
        zerocopy_free(channel.zerocopy);
        free(w);
        return r;
}

/* Each round collects twice where the next message is not ready, before it is prepared and before the sleep. What the
 * second finds is gone from where it would have ended that sleep: there must be none. */
static void test_sleep_of_both_directions(void) {
        static const struct {
                unsigned notified_at, full, sleeps;
        } cases[] = {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {3, 0, 1}, {4, 0, 1}, {0, 1, 1}, {2, 1, 1}};
        script.news_fd = eventfd(1, EFD_CLOEXEC);
        CHECK(script.news_fd >= 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct failure failure;
                uint64_t sent;
                script.notified_at = cases[i].notified_at;
                script.full = cases[i].full;
                script.collected = script.sleeps = 0;
                CHECK_INT(send_some(1, cases[i].notified_at > 0, &sent, &failure), 0);
                CHECK_UINT(sent, 1);
                if (script.sleeps != cases[i].sleeps)
                        CHECK_FAIL("notified at collecting %u, %u full: %u sleeps, expected %u", cases[i].notified_at,
                                   cases[i].full, script.sleeps, cases[i].sleeps);
        }
        (void) close(script.news_fd);
}

/* It has received none; the third is the one that does not go. */
static void test_broken_send_names_its_message(void) {
        struct failure failure;
        uint64_t sent;
        script.broken = 2;
        CHECK_INT(send_some(4, false, &sent, &failure), -EPIPE);
        script.broken = 0;
        CHECK_UINT(sent, 2);
        CHECK_STRING(failure.detail, "peer server closed the channel of thread 0 in message 2: Broken pipe");
}

int main(void) {
        RUN(test_sleep_of_both_directions);
        RUN(test_broken_send_names_its_message);
        return check_end();
}
