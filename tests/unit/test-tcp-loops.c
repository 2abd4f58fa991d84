/* SPDX-License-Identifier: MIT */

/* Streams over TCP on a scripted channel: which stamps are believed, closed loop and open; and how a thread of both
 * directions sleeps until a message is due. */

#include "agent/transport/tcp/loops.h"
#include "check.h"

#include <sched.h>
#include <stdlib.h>

#define SIZE 4096u
#define AGE_NS (200 * NSEC_PER_SEC) /* more than a histogram holds */

static uint64_t stamp_ns; /* of every message that comes */

static int nothing_to_send(struct worker *w) {
        (void) w;
        return 1;
}

static ssize_t send_never(struct worker *w, size_t sent) {
        (void) w;
        (void) sent;
        return -EAGAIN;
}

static ssize_t receive_stamped(struct worker *w, size_t got) {
        if (got == 0)
                memcpy(w->buffer, &stamp_ns, TCP_STAMP);
        return (ssize_t) (w->size - got);
}

static int send_message(struct worker *w, unsigned char *message) {
        (void) message;
        return failure_set(&w->failure, ENOSYS, "only streams both ways are here");
}

static int receive_message(struct worker *w, unsigned char **ret) {
        *ret = w->buffer;
        return send_message(w, *ret);
}

static const struct tcp_mode scripted_mode = {
        .channel = {.acquire = tcp_acquire_nothing,
                    .fill = tcp_fill_fields,
                    .send = send_message,
                    .receive = receive_message,
                    .release = loop_release_nothing},
        .prepare = nothing_to_send,
        .send_part = send_never,
        .sent = tcp_nothing_more,
        .receive_part = receive_stamped,
};
TCP_LOOPS(scripted, scripted_mode);

/* Three messages of that stamp, in a loop that began then. */
static void receive_three(double rate, uint64_t start_ns, uint64_t sent_ns, int expected, struct histogram *latency) {
        static unsigned char buffer[SIZE];
        static struct agent agent;
        struct tcp_channel channel = {};
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        struct recorder recorder = {0};
        agent.setup.point.workload = WORKLOAD_STREAM;
        agent.setup.point.transport = TRANSPORT_TCP;
        agent.setup.point.direction = DIRECTION_BOTH;
        agent.setup.point.message_size = SIZE;
        agent.setup.verify = VERIFY_NONE;
        agent.setup.rate = rate;
        agent.setup.stamp = true;
        w->agent = &agent;
        w->channel = &channel;
        w->buffer = buffer;
        w->size = SIZE;
        w->latency = &recorder;
        w->limit = 3;
        w->start_ns = start_ns;
        w->pace_ns = rate > 0 ? 1e9 / rate : 0;
        stamp_ns = sent_ns;
        CHECK_INT(scripted_loops.duplex(w), expected);
        CHECK_INT(strstr(w->failure.detail, "these are not the bytes that were sent") != NULL, expected < 0);
        CHECK_UINT(w->messages, expected < 0 ? 0 : 3);
        recorder_copy(&recorder, latency);
        free(w);
}

/* A rate that is not met puts the sender behind its schedule without bound: that is a latency, and no fault. */
static void test_open_loop_far_behind(void) {
        struct histogram h;
        struct latency_summary s;
        uint64_t start_ns = util_now_ns() - AGE_NS;
        receive_three(1000, start_ns, start_ns, 0, &h);
        CHECK_UINT(histogram_total(&h), 3);
        CHECK_INT(histogram_summarize(&h, &s), 0);
        CHECK(s.p50 >= histogram_bucket_lowest(histogram_index(AGE_NS))); /* as far as it goes */
}

static void test_open_loop_bad_stamps(void) {
        struct histogram h;
        uint64_t start_ns = util_now_ns() - AGE_NS;
        receive_three(1000, start_ns, start_ns - 1, -EBADMSG, &h);
        receive_three(1000, start_ns, util_now_ns() + AGE_NS, -EBADMSG, &h);
        CHECK_UINT(histogram_total(&h), 0);
}

/* A closed loop's stamp is when the message was sent, whenever the loop began. */
static void test_closed_loop(void) {
        struct histogram h;
        uint64_t start_ns = util_now_ns() - AGE_NS;
        receive_three(0, start_ns, start_ns, -EBADMSG, &h);
        receive_three(0, start_ns, util_now_ns() + AGE_NS, -EBADMSG, &h);
        receive_three(0, start_ns, util_now_ns() - NSEC_PER_SEC, 0, &h);
        CHECK_UINT(histogram_total(&h), 3);
}

/* Stand in for the C library's: nothing is waited for. */
static struct {
        int answer;
        uint64_t due_ns;
        unsigned polls, yields;
        uint64_t longest_ns; /* of the requests before the message was due */
} naps;

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *signals) {
        uint64_t ns = timeout ? (uint64_t) timeout->tv_sec * NSEC_PER_SEC + (uint64_t) timeout->tv_nsec : UINT64_MAX;
        (void) fds;
        (void) n;
        (void) signals;
        naps.polls++;
        if (util_now_ns() < naps.due_ns && ns > naps.longest_ns)
                naps.longest_ns = ns;
        return naps.answer;
}

int sched_yield(void) {
        naps.yields++;
        return 0;
}

static void nap(uint64_t ahead_ns, int answer) {
        static struct worker w = {.send_fd = -1};
        memset(&naps, 0, sizeof naps);
        naps.answer = answer;
        naps.due_ns = util_now_ns() + ahead_ns;
        tcp_duplex_sleep(&w, false, -1, naps.due_ns);
}

/* Until shortly before the time; but limits are checked now and then. */
static void test_sleep_until_due(void) {
        for (unsigned tries = 0; tries < 100; tries++) { /* a busy machine may take its time in between */
                uint64_t begin_ns = util_now_ns();
                nap(TCP_POLL_NS / 2, 0);
                if (util_now_ns() + PACE_SPIN_NS >= naps.due_ns)
                        continue;
                CHECK_UINT(naps.polls, 1);
                CHECK(naps.longest_ns > 0 && begin_ns + naps.longest_ns <= naps.due_ns - PACE_SPIN_NS);
                nap(3600 * NSEC_PER_SEC, 0);
                CHECK_UINT(naps.polls, 1);
                CHECK_UINT(naps.longest_ns, TCP_POLL_NS);
                return;
        }
        CHECK_FAIL("each of so many calls took %llu ms", (unsigned long long) (TCP_POLL_NS / 2 / NSEC_PER_MSEC));
}

/* A sleep would end late by as much as is left: the time is awaited, and the CPU given to others meanwhile. */
static void test_spin_until_due(void) {
        unsigned yields = 0;
        for (unsigned i = 0; i < 100; i++) {
                nap(PACE_SPIN_NS / 2, 0);
                CHECK_UINT(naps.longest_ns, 0);
                CHECK(util_now_ns() >= naps.due_ns);
                yields += naps.yields;
        }
        CHECK(yields > 0);
}

static void test_what_moves_ends_the_spin(void) {
        nap(PACE_SPIN_NS / 2, 1);
        CHECK_UINT(naps.polls, 1);
        CHECK_UINT(naps.yields, 0);
}

int main(void) {
        RUN(test_open_loop_far_behind);
        RUN(test_open_loop_bad_stamps);
        RUN(test_closed_loop);
        RUN(test_sleep_until_due);
        RUN(test_spin_until_due);
        RUN(test_what_moves_ends_the_spin);
        return check_end();
}
