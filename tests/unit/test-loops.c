/* SPDX-License-Identifier: MIT */

/* The generic loops on a scripted channel: when they stop, what they count, verify and time. */

#include "agent/loop/loops.h"

#include "agent/transport/transport.h"
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* One worker at a time; a message that is sent is the one that is received next. */
static struct {
        uint64_t acquired, sent, received, released;
        uint64_t stop_at;               /* the send or receive with this number returns WORKER_STOP */
        uint64_t fail_at;               /* … fails */
        uint64_t damage_at;             /* the message received with this number has a wrong byte */
        unsigned direction;             /* of what is received */
        uint64_t limit_at;              /* the limit becomes 0 while this message is sent or received */
        unsigned stops;                 /* so many receives return WORKER_STOP, once the limit is 0 */
        unsigned send_us, receive_us;   /* each takes so long at least */
        const unsigned char *places[8]; /* of the first messages that were sent */
        uint64_t written;               /* of these, those whose bytes are the pattern's: bits */
} script;

static unsigned char buffer[100];

static int scripted_acquire(struct worker *w, unsigned char **ret) {
        (void) w;
        script.acquired++;
        *ret = buffer;
        return 0;
}

static int act(struct worker *w, uint64_t number) {
        if (number == script.stop_at)
                return WORKER_STOP;
        if (number == script.fail_at)
                return failure_set(&w->failure, EPIPE, "scripted");
        if (number == script.limit_at)
                worker_set_limit(w, 0);
        return 0;
}

static int scripted_send(struct worker *w, unsigned char *message) {
        if (script.sent < ELEMENTS(script.places)) {
                uint64_t key = pattern_key(w->index, script.direction, script.sent);
                script.places[script.sent] = message;
                script.written |= (uint64_t) pattern_matches(message, w->size, key) << script.sent;
        }
        (void) usleep(script.send_us);
        return act(w, script.sent++);
}

static int scripted_receive(struct worker *w, unsigned char **ret) {
        if (worker_limit(w) == 0 && script.stops) {
                script.stops--;
                return WORKER_STOP;
        }
        uint64_t number = script.received++;
        (void) usleep(script.receive_us);
        pattern_fill(buffer, w->size, pattern_key(w->index, script.direction, number));
        if (number == script.damage_at)
                buffer[42] ^= 1;
        *ret = buffer;
        return act(w, number);
}

static void scripted_release(struct worker *w, unsigned char *message) {
        (void) w;
        script.released += message == buffer;
}

static const struct channel scripted_channel = {
        .acquire = scripted_acquire,
        .send = scripted_send,
        .receive = scripted_receive,
        .release = scripted_release,
};
TRANSPORT_LOOPS(scripted, scripted_channel);

static struct agent agent;

static struct worker *new_worker(enum verify verify, uint64_t limit) {
        struct worker *w = aligned_alloc(WORKER_LINE, sizeof *w);
        if (!w)
                abort();
        memset(w, 0, sizeof *w);
        agent.setup.verify = verify;
        w->agent = &agent;
        w->size = sizeof buffer;
        w->index = 3;
        w->limit = limit;
        memset(&script, 0xff, sizeof script); /* nothing ever happens */
        script.acquired = script.sent = script.received = script.released = 0;
        script.direction = script.stops = script.send_us = script.receive_us = 0;
        script.written = 0;
        return w;
}

static struct worker *new_timed_worker(enum verify verify, uint64_t limit) {
        struct worker *w = new_worker(verify, limit);
        w->latency = calloc(1, sizeof *w->latency);
        if (!w->latency)
                abort();
        return w;
}

static void free_timed_worker(struct worker *w) {
        free(w->latency);
        free(w);
}

/* What the worker has timed; valid until the next call. */
static const struct histogram *latencies(const struct worker *w) {
        static struct histogram copy;
        recorder_copy(w->latency, &copy);
        return &copy;
}

static void test_limit(void) {
        for (enum verify v = 0; v < VERIFY_COUNT; v++) {
                struct worker *w = new_worker(v, 10);
                CHECK_INT(scripted_loops.sender(w), 0);
                CHECK_UINT(w->messages, 10);
                CHECK_UINT(script.sent, 10);
                worker_set_limit(w, 25); /* goes on where it was */
                CHECK_INT(scripted_loops.sender(w), 0);
                CHECK_UINT(script.sent, 25);
                CHECK_UINT(script.acquired, 25);
                CHECK_INT(scripted_loops.sender(w), 0);
                CHECK_UINT(script.sent, 25);
                free(w);

                w = new_worker(v, 10);
                CHECK_INT(scripted_loops.receiver(w), 0);
                CHECK_UINT(w->messages, 10);
                CHECK_UINT(script.received, 10);
                CHECK_UINT(script.released, 10);
                free(w);
        }
}

#define COLD 3u
static unsigned char area[COLD][sizeof buffer];

static void next_of_area(struct worker *w) {
        w->source = w->source == area[COLD - 1] ? area[0] : w->source + sizeof buffer;
}

/* Runs 8 messages of a role, and checks the places that they were sent from and which were written. */
static void run_sourced(worker_loop loop, unsigned direction, bool cold, bool fresh, enum verify verify, bool timed) {
        struct worker *w = timed ? new_timed_worker(verify, 8) : new_worker(verify, 8);
        memset(area, 0x5a, sizeof area);
        memset(buffer, 0x5a, sizeof buffer);
        w->source = cold ? area[0] : NULL;
        w->source_next = cold ? next_of_area : NULL;
        w->fresh = fresh;
        script.direction = direction;
        CHECK_INT(loop(w), 0);
        CHECK_UINT(script.sent, 8);
        for (unsigned i = 0; i < 8; i++)
                CHECK(script.places[i] == (cold ? area[i % COLD] : buffer));
        if (loop == scripted_loops.sender || cold) /* else what was received lies there */
                CHECK_UINT(script.written, fresh || verify == VERIFY_CHECKSUM ? 0xff : 0);
        CHECK(!timed || histogram_total(latencies(w)) == 8);
        free_timed_worker(w);
}

/* A cold source's messages take turns, a fresh one's bytes are its own; and every loop that sends knows of both. */
static void test_sources(void) {
        for (unsigned i = 0; i < 4 * VERIFY_COUNT; i++) {
                bool cold = i & 1, fresh = i & 2;
                enum verify v = (enum verify)(i / 4);
                run_sourced(scripted_loops.sender, 0, cold, fresh, v, false);
                if (v == VERIFY_CHECKSUM) /* what the script receives is not what was sent */
                        continue;
                run_sourced(scripted_loops.initiator, 0, cold, fresh, v, false);
                run_sourced(scripted_loops.initiator, 0, cold, fresh, v, true);
                run_sourced(scripted_loops.responder, 1, cold, fresh, v, false);
        }
}

/* The message under way when the limit falls is finished and counted. */
static void test_stopped_in_a_message(void) {
        struct worker *w = new_worker(VERIFY_NONE, WORKER_UNLIMITED);
        script.limit_at = 7;
        CHECK_INT(scripted_loops.sender(w), 0);
        CHECK_UINT(w->messages, 8);
        free(w);
        w = new_worker(VERIFY_TOUCH, WORKER_UNLIMITED);
        script.limit_at = 7;
        script.direction = 1;
        CHECK_INT(scripted_loops.initiator(w), 0);
        CHECK_UINT(w->messages, 8);
        CHECK_UINT(script.sent, 8);
        CHECK_UINT(script.received, 8);
        free(w);
}

static void check_stopped_initiator(enum verify verify, enum loop_clock clock) {
        struct worker *w = new_worker(verify, WORKER_UNLIMITED);
        w->pace_ns = clock == LOOP_PACED ? 1 : 0;
        w->latency = clock == LOOP_UNTIMED ? NULL : calloc(1, sizeof *w->latency);
        script.limit_at = 7;
        script.stops = 3;
        script.direction = 1;
        CHECK_INT(scripted_loops.initiator(w), 0);
        CHECK_UINT(script.stops, 0);
        CHECK_UINT(script.sent, 8);
        CHECK_UINT(script.received, 8);
        CHECK_UINT(script.released, 8);
        CHECK_UINT(w->messages, 8);
        if (w->latency)
                CHECK_UINT(histogram_total(latencies(w)), 8);
        free(w->latency);
        free(w);
}

/* Told to stop while its message is under way, and got out of the read for that: it waits for the return all the same,
 * or the responder would have answered one message more than were sent. */
static void test_stopped_before_the_return(void) {
        for (enum verify v = 0; v < VERIFY_COUNT; v++)
                for (enum loop_clock clock = LOOP_UNTIMED; clock <= LOOP_PACED; clock++)
                        check_stopped_initiator(v, clock);
}

static void test_stop_and_failure(void) {
        static const struct {
                int (*loop)(struct worker *w);
                unsigned direction;
        } loops[] = {{scripted_sender, 0}, {scripted_receiver, 0}, {scripted_initiator, 1}, {scripted_responder, 0}};
        for (size_t i = 0; i < ELEMENTS(loops); i++) {
                struct worker *w = new_worker(VERIFY_CHECKSUM, 100);
                script.direction = loops[i].direction;
                script.stop_at = 5;
                CHECK_INT(loops[i].loop(w), WORKER_STOP);
                CHECK_UINT(w->messages, 5);
                free(w);
                w = new_worker(VERIFY_CHECKSUM, 100);
                script.direction = loops[i].direction;
                script.fail_at = 5;
                CHECK_INT(loops[i].loop(w), -EPIPE);
                CHECK_UINT(w->messages, 5);
                CHECK_STRING(w->failure.detail, "scripted");
                free(w);
        }
}

/* Every receiver checks the bytes, of the right direction, when they are to be checked; and only then. */
static void test_verification(void) {
        static const struct {
                int (*loop)(struct worker *w);
                unsigned direction;
        } loops[] = {{scripted_receiver, 0}, {scripted_initiator, 1}, {scripted_responder, 0}};
        for (size_t i = 0; i < ELEMENTS(loops); i++)
                for (enum verify v = 0; v < VERIFY_COUNT; v++) {
                        struct worker *w = new_worker(v, 100);
                        script.direction = loops[i].direction;
                        script.damage_at = 31;
                        CHECK_INT(loops[i].loop(w), v == VERIFY_CHECKSUM ? -EBADMSG : 0);
                        CHECK_UINT(w->messages, v == VERIFY_CHECKSUM ? 31 : 100);
                        if (v == VERIFY_CHECKSUM)
                                CHECK(strstr(w->failure.detail, "thread 3, message 31, offset 42"));
                        free(w);

                        w = new_worker(v, 100);
                        script.direction = !loops[i].direction;
                        CHECK_INT(loops[i].loop(w), v == VERIFY_CHECKSUM ? -EBADMSG : 0);
                        free(w);
                }
}

static void test_touch_reads(void) {
        struct worker *w = new_worker(VERIFY_TOUCH, 1);
        CHECK_INT(scripted_loops.receiver(w), 0);
        CHECK_UINT(w->sink, (uint64_t) buffer[0] + buffer[64]);
        free(w);
}

static void test_timing(void) {
        struct worker *w = new_worker(VERIFY_NONE, 100);
        static struct recorder recorder;
        uint64_t begin = util_now_ns();
        CHECK_INT(scripted_loops.initiator(w), 0); /* no recorder: not timed */
        w->latency = &recorder;
        worker_set_limit(w, 300);
        CHECK_INT(scripted_loops.initiator(w), 0);
        const struct histogram *h = latencies(w);
        CHECK_UINT(histogram_total(h), 200);
        CHECK(h->sum_ns > 0 && h->sum_ns <= util_now_ns() - begin);
        free(w);
}

/* Each round trip has one sending and one return in it, the first and the last, too; and together they are the loop. */
static void test_every_time_is_whole(void) {
        for (enum verify v = 0; v < VERIFY_COUNT; v++)
                for (uint64_t n = 1; n <= 3; n++) {
                        struct worker *w = new_timed_worker(v, n);
                        script.direction = 1;
                        script.send_us = 2000;
                        script.receive_us = 1000;
                        uint64_t begin = util_now_ns();
                        CHECK_INT(scripted_loops.initiator(w), 0);
                        uint64_t whole_ns = util_now_ns() - begin;
                        const struct histogram *h = latencies(w);
                        CHECK_UINT(histogram_total(h), n);
                        CHECK(h->sum_ns >= n * 3 * NSEC_PER_MSEC && h->sum_ns <= whole_ns);
                        for (uint32_t i = 0; histogram_bucket_highest(i) < 3 * NSEC_PER_MSEC; i++)
                                if (h->counts[i])
                                        CHECK_FAIL("verify %s, of %" PRIu64 ": one of %" PRIu64 " ns", verify_name(v),
                                                   n, histogram_bucket_middle(i));
                        free_timed_worker(w);
                }
}

/* Told to stop before the next sending: the last that came back is timed all the same. */
static void test_stopped_before_a_sending(void) {
        for (enum verify v = 0; v < VERIFY_COUNT; v++) {
                struct worker *w = new_timed_worker(v, 100);
                script.direction = 1;
                script.stop_at = 5;
                CHECK_INT(scripted_loops.initiator(w), WORKER_STOP);
                CHECK_UINT(w->messages, 5);
                CHECK_UINT(histogram_total(latencies(w)), 5);
                free_timed_worker(w);
        }
}

/* The time of a message ends when its bytes have been checked: one that is found wrong then is in no histogram. */
static void test_timing_ends_after_the_check(void) {
        static const struct {
                int (*loop)(struct worker *w);
                unsigned direction;
                double pace_ns;
        } loops[] = {{scripted_initiator, 1, 0}, {scripted_initiator, 1, 1}, {scripted_receiver, 0, 1}};
        for (size_t i = 0; i < ELEMENTS(loops); i++) {
                struct worker *w = new_timed_worker(VERIFY_CHECKSUM, 100);
                w->pace_ns = loops[i].pace_ns;
                script.direction = loops[i].direction;
                script.damage_at = 31;
                CHECK_INT(loops[i].loop(w), -EBADMSG);
                CHECK_UINT(histogram_total(latencies(w)), 31);
                free_timed_worker(w);
        }
}

int main(void) {
        RUN(test_limit);
        RUN(test_sources);
        RUN(test_stopped_in_a_message);
        RUN(test_stopped_before_the_return);
        RUN(test_stop_and_failure);
        RUN(test_verification);
        RUN(test_touch_reads);
        RUN(test_timing);
        RUN(test_every_time_is_whole);
        RUN(test_stopped_before_a_sending);
        RUN(test_timing_ends_after_the_check);
        return check_end();
}
