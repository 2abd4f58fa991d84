/* SPDX-License-Identifier: MIT */

/*
 * The open loop's times: when a message is due, for one thread and for many, that a late one is sent at once and its
 * delay counts, when a thread may stop, and that a thread that waits leaves the CPU to the other end.
 */

#include "agent/loop/pace.h"

#include "agent/base/agent.h"
#include "agent/script/workers.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <sched.h>

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

/* Each of N threads has an Nth of the rate. Theirs together is one message every 1 / rate, not N at once every N /
 * rate; both ends make it of the same set-up. */
static void threads_take_turns(void) {
        static const uint32_t threads[] = {1, 2, 3, 7, 64, 1024};
        for (size_t i = 0; i < ELEMENTS(threads); i++) {
                struct agent agent = {};
                agent.setup.point.threads = threads[i];
                agent.setup.rate = 3000.0 / threads[i];
                CHECK_INT(workers_new(&agent), 0);
                for (uint64_t n = 0; n < UINT64_C(10) * threads[i]; n++) {
                        struct worker *w = &agent.workers[n % threads[i]];
                        w->start_ns = 5000;
                        uint64_t due = pace_due(w, n / threads[i]) - 5000, want = n * NSEC_PER_SEC / 3000;
                        if (due > want + 1 || due + 1 < want)
                                CHECK_FAIL("message %" PRIu64 " of %" PRIu32 " threads is due after %" PRIu64 " ns", n,
                                           threads[i], due);
                }
                workers_free(&agent);
        }
}

/* Nothing is left out: what is due already is sent, also when the loop is over by now. */
static void what_is_late_does_not_wait(void) {
        worker.messages = 5;
        worker.limit = 5;
        CHECK_INT(pace_wait(&worker, 0), 0);
        CHECK_INT(pace_wait(&worker, util_now_ns()), 0);
}

/* An hour: the test ends only because the limit is checked before the first sleep. */
static void a_thread_at_its_limit_does_not_wait(void) {
        worker.messages = 5;
        worker.limit = 5;
        CHECK_INT(pace_wait(&worker, util_now_ns() + 3600 * NSEC_PER_SEC), WORKER_STOP);
        worker.limit = 0;
        CHECK_INT(pace_wait(&worker, UINT64_MAX), WORKER_STOP);
}

static void no_message_goes_before_its_time(void) {
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

static void a_sleeper_checks_its_limit(void) {
        pthread_t thread;
        worker.messages = 5;
        worker.limit = WORKER_UNLIMITED;
        CHECK_INT(pthread_create(&thread, NULL, lower_limit, NULL), 0);
        CHECK_INT(pace_wait(&worker, util_now_ns() + 3600 * NSEC_PER_SEC), WORKER_STOP);
        pthread_join(thread, NULL);
}

struct neighbour {
        unsigned turns, over; /* atomic */
};

/* Wants its CPU for a moment only, and always. */
static void *take_turns(void *userdata) {
        struct neighbour *n = userdata;
        while (!__atomic_load_n(&n->over, __ATOMIC_ACQUIRE)) {
                __atomic_add_fetch(&n->turns, 1, __ATOMIC_ACQ_REL);
                sched_yield();
        }
        return NULL;
}

static int stay_on_this_cpu(cpu_set_t *ret_before) {
        cpu_set_t one;
        int cpu = sched_getcpu();
        if (cpu < 0 || sched_getaffinity(0, sizeof *ret_before, ret_before) < 0)
                return -errno;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return sched_setaffinity(0, sizeof one, &one) < 0 ? -errno : 0;
}

/* The other end, on the same CPU, has its turn within each wait that is too short to sleep, not once in a time slice:
 * all the waits together are hardly longer than one. */
static void a_short_wait_leaves_the_cpu_to_others(void) {
        enum { WAITS = 200 };
        struct neighbour neighbour = {};
        unsigned with_turns = 0;
        pthread_t thread;
        cpu_set_t before;
        CHECK_INT(stay_on_this_cpu(&before), 0);
        CHECK_INT(pthread_create(&thread, NULL, take_turns, &neighbour), 0); /* inherits the one CPU */
        while (__atomic_load_n(&neighbour.turns, __ATOMIC_ACQUIRE) == 0)
                sched_yield();
        worker.messages = 5;
        worker.limit = 6;
        for (unsigned i = 0; i < WAITS; i++) {
                unsigned turns = __atomic_load_n(&neighbour.turns, __ATOMIC_ACQUIRE);
                CHECK_INT(pace_wait(&worker, util_now_ns() + 50 * NSEC_PER_USEC), 0);
                with_turns += __atomic_load_n(&neighbour.turns, __ATOMIC_ACQUIRE) != turns;
        }
        __atomic_store_n(&neighbour.over, 1, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        CHECK_INT(sched_setaffinity(0, sizeof before, &before), 0);
        if (with_turns < WAITS / 10) /* by time slices it has one or two; and others may want this CPU, too */
                CHECK_FAIL("the other had a turn in %u of %d waits", with_turns, WAITS);
}

/* Latency counts from when a message was due: a stall of an hour is seen, and one that came too early took no time. */
static void a_delay_is_paid_from_the_due_time(void) {
        static struct recorder recorder;
        static struct histogram h;
        uint64_t now = util_now_ns();
        worker.latency = NULL;
        pace_record(&worker, now); /* nothing is sampled: nothing is written */
        worker.latency = &recorder;
        pace_record(&worker, now + 3600 * NSEC_PER_SEC);
        recorder_copy(&recorder, &h);
        CHECK_UINT(h.counts[0], 1);
        pace_record(&worker, now - 50 * NSEC_PER_SEC);
        struct latency_summary s;
        recorder_copy(&recorder, &h);
        CHECK_INT(histogram_summarize(&h, &s), 0);
        CHECK_UINT(s.count, 2);
        CHECK(s.max >= 49 * NSEC_PER_SEC);
        CHECK(h.sum_ns >= 50 * NSEC_PER_SEC);
        worker.latency = NULL;
}

int main(void) {
        RUN(due_times_do_not_drift);
        RUN(threads_take_turns);
        RUN(what_is_late_does_not_wait);
        RUN(a_thread_at_its_limit_does_not_wait);
        RUN(no_message_goes_before_its_time);
        RUN(a_sleeper_checks_its_limit);
        RUN(a_short_wait_leaves_the_cpu_to_others);
        RUN(a_delay_is_paid_from_the_due_time);
        return check_end();
}
