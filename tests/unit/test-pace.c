/* SPDX-License-Identifier: MIT */

/* The open loop's times: when a message is due, that a late one is sent at once and pays for it, and who may stop. */

#include "agent/pace.h"
#include "schema/histogram.h"
#include "schema/util.h"
#include "tests/unit/check.h"

static struct worker worker; /* static: see test-counters.c */

static void due_times_do_not_drift(void) {
        static const struct {
                double rate;
                uint64_t n, after_ns;
        } cases[] = {{1, 0, 0},
                     {1, 86400, UINT64_C(86400000000000)},
                     {1000, 1, 1000000},
                     {3, 1, 333333333},
                     {3, 3000000, UINT64_C(1000000000000000)},
                     {1e6, UINT64_C(86400000000), UINT64_C(86400000000000)},
                     {1e9, 7, 7}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                worker.start_ns = 5000;
                worker.pace_ns = 1e9 / cases[i].rate;
                uint64_t due = pace_due(&worker, cases[i].n) - 5000;
                if (due > cases[i].after_ns + 1 || due + 1 < cases[i].after_ns)
                        CHECK_FAIL("message %" PRIu64 " at %g a second is due after %" PRIu64 " ns", cases[i].n,
                                   cases[i].rate, due);
        }
}

/* Nothing is left out: what is due already is sent, also when the loop is over by now. */
static void what_is_late_does_not_wait(void) {
        worker.messages = 5;
        worker.limit = 5;
        CHECK_INT(pace_wait(&worker, 0), 0);
        CHECK_INT(pace_wait(&worker, util_now_ns()), 0);
}

/* An hour: the test ends only because the limit is looked at before the first sleep. */
static void who_is_over_does_not_wait_either(void) {
        worker.messages = 5;
        worker.limit = 5;
        CHECK_INT(pace_wait(&worker, util_now_ns() + 3600 * NSEC_PER_SEC), WORKER_STOP);
        worker.limit = 0;
        CHECK_INT(pace_wait(&worker, UINT64_MAX), WORKER_STOP);
}

static void nobody_goes_before_the_time(void) {
        static const uint64_t ahead[] = {1, 30 * NSEC_PER_USEC, 200 * NSEC_PER_USEC, 60 * NSEC_PER_MSEC};
        worker.messages = 5;
        worker.limit = 6;
        for (size_t i = 0; i < ELEMENTS(ahead); i++) {
                uint64_t due = util_now_ns() + ahead[i];
                CHECK_INT(pace_wait(&worker, due), 0);
                CHECK(util_now_ns() >= due);
        }
}

/* The limit falls while a worker sleeps for an hour: it comes back, in the time that one sleep takes at most. */
static void *lower_limit(void *unused) {
        (void) usleep(1000);
        worker_set_limit(&worker, 0);
        return unused;
}

static void a_sleeper_looks_at_its_limit(void) {
        pthread_t thread;
        worker.messages = 5;
        worker.limit = WORKER_UNLIMITED;
        CHECK_INT(pthread_create(&thread, NULL, lower_limit, NULL), 0);
        CHECK_INT(pace_wait(&worker, util_now_ns() + 3600 * NSEC_PER_SEC), WORKER_STOP);
        pthread_join(thread, NULL);
}

/* Latency counts from when a message was due: a stall of an hour is seen, and one that came too early took no time. */
static void a_delay_is_paid_from_the_due_time(void) {
        static struct histogram h;
        uint64_t now = util_now_ns();
        memset(&h, 0, sizeof h);
        worker.latency = NULL;
        pace_record(&worker, now); /* nothing is sampled: nothing is written */
        worker.latency = &h;
        pace_record(&worker, now + 3600 * NSEC_PER_SEC);
        CHECK_UINT(h.counts[0], 1);
        pace_record(&worker, now - 50 * NSEC_PER_SEC);
        struct latency_summary s;
        CHECK_INT(histogram_summarize(&h, &s), 0);
        CHECK_UINT(s.count, 2);
        CHECK(s.max >= 49 * NSEC_PER_SEC);
        CHECK(h.sum_ns >= 50 * NSEC_PER_SEC);
        worker.latency = NULL;
}

int main(void) {
        RUN(due_times_do_not_drift);
        RUN(what_is_late_does_not_wait);
        RUN(who_is_over_does_not_wait_either);
        RUN(nobody_goes_before_the_time);
        RUN(a_sleeper_looks_at_its_limit);
        RUN(a_delay_is_paid_from_the_due_time);
        return check_end();
}
