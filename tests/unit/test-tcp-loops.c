/* SPDX-License-Identifier: MIT */

/* Streams over TCP on a channel that brings what a script says: which stamps are believed, closed loop and open. */

#include "agent/tcp-loops.h"
#include "check.h"

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
        memset(latency, 0, sizeof *latency);
        agent.setup.point.workload = WORKLOAD_STREAM;
        agent.setup.point.direction = DIRECTION_BOTH;
        agent.setup.point.message_size = SIZE;
        agent.setup.verify = VERIFY_NONE;
        agent.setup.rate = rate;
        w->agent = &agent;
        w->channel = &channel;
        w->buffer = buffer;
        w->size = SIZE;
        w->latency = latency;
        w->limit = 3;
        w->start_ns = start_ns;
        w->pace_ns = rate > 0 ? 1e9 / rate : 0;
        stamp_ns = sent_ns;
        CHECK_INT(scripted_loops.duplex(w), expected);
        CHECK_INT(strstr(w->failure.detail, "these are not the bytes that were sent") != NULL, expected < 0);
        CHECK_UINT(w->messages, expected < 0 ? 0 : 3);
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

int main(void) {
        RUN(test_open_loop_far_behind);
        RUN(test_open_loop_bad_stamps);
        RUN(test_closed_loop);
        return check_end();
}
