/* SPDX-License-Identifier: MIT */

/* Samples of two made-up workers, as the daemon reads them: differences of what was counted, over the time that really
 * lay between, which come to the window's totals. */

#include "agent/base/agent.h"
#include "agent/measure/kernel-threads.h"
#include "agent/measure/sampler.h"
#include "agent/measure/stops.h"
#include "agent/proof/proof.h"
#include "agent/workload/workload.h"
#include "schema/detail.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define THREADS 2u
#define SIZE 100u

static struct agent agent;
static struct proof proof;
static struct stops stops;
static struct window window;           /* the last that was closed */
static struct worker workers[THREADS]; /* static: see test-counters.c */
static struct recorder latencies[THREADS];

struct fixture {
        struct sampler *sampler;
        int daemon;
};

static bool fixture_open(struct fixture *f, bool sampled) {
        int control[2];
        memset(&agent, 0, sizeof agent);
        memset(workers, 0, sizeof workers);
        memset(latencies, 0, sizeof latencies);
        *f = (struct fixture){.daemon = -1};
        agent.event_fd = eventfd(0, EFD_CLOEXEC);
        agent.proof = &proof;
        agent.workers = workers;
        agent.n_workers = THREADS;
        agent.workload = &workload_stream;
        agent.setup.point = (struct point){.message_size = SIZE, .threads = THREADS};
        agent.setup.interval_ns = sampled ? NSEC_PER_SEC : 0;
        for (uint32_t i = 0; i < THREADS; i++) {
                workers[i].agent = &agent;
                workers[i].index = i;
                workers[i].tid = (pid_t) syscall(SYS_gettid);
                workers[i].latency = sampled ? &latencies[i] : NULL;
        }
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
                return false;
        agent.control_fd = control[0];
        f->daemon = control[1];
        stops = (struct stops){.total_ns = 0};
        return counters_new(&agent, &perf_source_none, &agent.counters) == 0 &&
               sampler_new(&agent, &stops, &f->sampler) == 0;
}

static void fixture_close(struct fixture *f) {
        sampler_free(f->sampler);
        counters_free(agent.counters);
        util_close(agent.event_fd);
        util_close(agent.control_fd);
        util_close(f->daemon);
}
#define FIXTURE __attribute__((cleanup(fixture_close))) struct fixture

/* Messages of a worker, each with its latency. */
static void work(uint32_t thread, uint64_t messages, uint64_t latency_ns) {
        workers[thread].messages += messages;
        for (uint64_t i = 0; workers[thread].latency && i < messages; i++)
                recorder_record(workers[thread].latency, latency_ns);
}

/* Copies of the first worker's histogram before which it ends a message more: the leader was off its CPU. */
static unsigned interrupted_copies;

void __real_recorder_copy(const struct recorder *r, struct histogram *ret); /* NOLINT(bugprone-reserved-identifier) */
void __wrap_recorder_copy(const struct recorder *r, struct histogram *ret); /* NOLINT(bugprone-reserved-identifier) */
void __wrap_recorder_copy(const struct recorder *r, struct histogram *ret) {
        if (r == &latencies[0] && interrupted_copies > 0) {
                interrupted_copies--;
                work(0, 1, 20);
        }
        __real_recorder_copy(r, ret);
}

static struct message_parts parts; /* of the last packet of them */

/* The next packet that is there, but for parts. */
static bool receive(struct fixture *f, struct message *ret) {
        char detail[DETAIL_MAX];
        while (message_receive(f->daemon, ret, 0, detail) == 0) {
                if (ret->type != MESSAGE_PARTS)
                        return true;
                parts = ret->parts;
        }
        return false;
}

struct want {
        uint32_t thread, second;
        uint64_t interval_ns, messages, p50, eagain;
};

static void check_sample(struct fixture *f, const struct want *want) {
        struct message m;
        struct latency_summary s = {0};
        CHECK(receive(f, &m));
        struct message_sample got = m.sample;
        int r = m.type == MESSAGE_SAMPLE && got.latency ? histogram_summarize(got.latency, &s) : -ENODATA;
        enum message_type type = m.type;
        message_deinit(&m);
        CHECK_INT(type, MESSAGE_SAMPLE);
        CHECK_UINT(got.thread, want->thread);
        CHECK_UINT(got.second, want->second);
        if (want->interval_ns)
                CHECK_UINT(got.interval_ns, want->interval_ns);
        CHECK_UINT(got.messages, want->messages);
        CHECK_UINT(got.bytes, want->messages * SIZE);
        CHECK_UINT(s.count, want->messages);
        CHECK(r == 0 || want->messages == 0);
        if (want->messages)
                CHECK_UINT(s.p50, want->p50);
        CHECK_UINT(got.counters.usage.eagain, want->eagain);
}

static void check_thread(struct fixture *f, uint32_t thread, uint64_t messages) {
        struct message m;
        CHECK(receive(f, &m));
        enum message_type type = m.type;
        struct message_thread got = m.thread;
        message_deinit(&m);
        CHECK_INT(type, MESSAGE_THREAD);
        CHECK_UINT(got.thread, thread);
        CHECK_UINT(got.messages, messages);
        CHECK_UINT(got.bytes, messages * SIZE);
}

/* What was before the window is not in it; the last sample is as long as what was left. */
static void samples_come_to_the_window(void) {
        FIXTURE f;
        struct message none;
        uint64_t begin_ns = util_now_ns(), end_ns = begin_ns + NSEC_PER_SEC; /* later than what is taken between */
        CHECK(fixture_open(&f, true));
        work(0, 1000, 9);
        work(1, 2000, 9);
        CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
        CHECK(!receive(&f, &none)); /* nothing is sent at the beginning */
        work(0, 10, 20);
        work(1, 30, 40);
        workers[1].eagain = 3;
        CHECK_INT(sampler_take(f.sampler), 0);
        work(0, 5, 100);
        workers[0].eagain = 1;
        CHECK_INT(sampler_close(f.sampler, end_ns, &window), 0);
        const struct want first[] = {{0, 0, 0, 10, 20, 0}, {1, 0, 0, 30, 40, 3}},
                          last[] = {{0, 0, 0, 5, 100, 1}, {1, 0, 0, 0, 0, 0}};
        for (size_t i = 0; i < 2 && !check_case_failed; i++)
                check_sample(&f, &first[i]);
        for (size_t i = 0; i < 2 && !check_case_failed; i++)
                check_sample(&f, &last[i]);
        if (!check_case_failed)
                check_thread(&f, 0, 15);
        if (!check_case_failed)
                check_thread(&f, 1, 30);
        CHECK(!check_case_failed && !receive(&f, &none));
        CHECK_UINT(window.messages, 45);
        CHECK_UINT(window.window_ns, NSEC_PER_SEC);
        CHECK_UINT(window.counters.usage.eagain, 4);
}

/* Given instants are what counts, to the nanosecond, and not when the leader got round to it. */
static void intervals_are_as_given(void) {
        FIXTURE f;
        CHECK(fixture_open(&f, true));
        CHECK_INT(sampler_open(f.sampler, 1000, 1000), 0);
        work(0, 1, 7);
        CHECK_INT(sampler_close(f.sampler, 1000012346789, &window), 0);
        const struct want want[] = {{0, 0, 1000012345789, 1, 7, 0}, {1, 0, 1000012345789, 0, 0, 0}};
        for (size_t i = 0; i < 2 && !check_case_failed; i++)
                check_sample(&f, &want[i]);
        CHECK(!check_case_failed);
        CHECK_UINT(window.window_ns, 1000012345789);
        CHECK_UINT(window.messages, 1);
}

/* A second's sample is due after the last message, before the leader closes the window at that message: what is left
 * is the closing sample's, so that the samples come to the window. */
static void nothing_is_taken_after_the_last_message(void) {
        FIXTURE f;
        CHECK(fixture_open(&f, true));
        uint64_t begin_ns = util_now_ns();
        CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
        workers[1].stage = WORKER_ENDED;
        CHECK_INT(sampler_take(f.sampler), 0); /* the first one's loop is not over */
        struct message m;
        uint64_t first_ns = 0;
        for (uint32_t i = 0; i < THREADS; i++) {
                CHECK(receive(&f, &m));
                first_ns = m.sample.interval_ns;
                message_deinit(&m);
        }
        work(0, 1, 7);
        workers[0].stage = WORKER_ENDED;
        uint64_t last_ns = util_now_ns(), rest_ns = last_ns - begin_ns - first_ns;
        CHECK_INT(sampler_part(f.sampler), 0);
        CHECK_INT(sampler_take(f.sampler), 0);
        CHECK_INT(sampler_close(f.sampler, last_ns, &window), 0);
        CHECK_UINT(window.window_ns, last_ns - begin_ns);
        CHECK_UINT(window.messages, 1);
        const struct want want[] = {{0, 0, rest_ns, 1, 7, 0}, {1, 0, rest_ns, 0, 0, 0}};
        for (size_t i = 0; i < ELEMENTS(want) && !check_case_failed; i++)
                check_sample(&f, &want[i]);
        CHECK(!check_case_failed);
        CHECK_UINT(parts.n, 1);
        CHECK_UINT(parts.list[0].interval_ns, rest_ns);
}

/* Each message of the window is in the window's histogram, and no other, whenever the leader lost its CPU. */
static void histograms_have_the_messages_of_their_counts(void) {
        FIXTURE f;
        CHECK(fixture_open(&f, true));
        interrupted_copies = 2;
        CHECK_INT(sampler_open(f.sampler, util_now_ns(), 0), 0);
        CHECK_UINT(interrupted_copies, 0);
        work(0, 10, 20);
        interrupted_copies = 3;
        CHECK_INT(sampler_take(f.sampler), 0);
        interrupted_copies = 1;
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        const struct want want[] = {{0, 0, 0, 13, 20, 0}, {1, 0, 0, 0, 0, 0}, {0, 0, 0, 1, 20, 0}, {1, 0, 0, 0, 0, 0}};
        for (size_t i = 0; i < ELEMENTS(want) && !check_case_failed; i++)
                check_sample(&f, &want[i]);
        CHECK_UINT(window.messages, 14);
}

/* By the clock, intervals lie end to end: their sum is the window. */
static void intervals_lie_end_to_end(void) {
        FIXTURE f;
        uint64_t sum = 0;
        CHECK(fixture_open(&f, true));
        uint64_t due_ns = util_now_ns(), end_ns = 0;
        CHECK_INT(sampler_open(f.sampler, due_ns, 0), 0);
        for (unsigned i = 0; i < 5; i++)
                CHECK_INT(sampler_take(f.sampler), 0);
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        for (unsigned i = 0; i < 6 * THREADS; i++) {
                struct message m;
                CHECK(receive(&f, &m));
                CHECK_INT(m.type, MESSAGE_SAMPLE);
                if (m.sample.thread == 0) {
                        CHECK(i == 0 ? m.sample.begin_ns >= due_ns : m.sample.begin_ns == end_ns);
                        CHECK_UINT(m.sample.second, (m.sample.begin_ns - due_ns) / NSEC_PER_SEC);
                        end_ns = m.sample.begin_ns + m.sample.interval_ns;
                }
                sum += m.sample.thread == 0 ? m.sample.interval_ns : 0;
                message_deinit(&m);
        }
        CHECK_UINT(sum, window.window_ns);
        CHECK(sum > 0);
}

/* A part of a second is of all threads, and the parts are the window, too. */
static void parts_are_of_all_threads(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        work(0, 7, 1);
        uint64_t begin_ns = util_now_ns() - 1;
        CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
        work(0, 10, 20);
        work(1, 30, 40);
        CHECK_INT(sampler_part(f.sampler), 0);
        CHECK_INT(sampler_part(f.sampler), 0); /* nothing moved, and nothing was timed */
        CHECK(!receive(&f, &m));               /* not before the sample is taken */
        work(1, 5, 60);
        uint64_t end_ns = util_now_ns() + NSEC_PER_SEC;
        CHECK_INT(sampler_close(f.sampler, end_ns, &window), 0);
        while (receive(&f, &m))
                message_deinit(&m);
        CHECK_UINT(parts.n, 3);
        CHECK_UINT(parts.begin_ns, begin_ns);
        CHECK_UINT(parts.list[0].interval_ns + parts.list[1].interval_ns + parts.list[2].interval_ns,
                   end_ns - begin_ns);
        const uint64_t messages[] = {40, 0, 5}, medians[] = {40, 0, 60};
        for (size_t i = 0; i < 3; i++) {
                CHECK_UINT(parts.list[i].messages, messages[i]);
                CHECK_UINT(parts.list[i].p50_ns, medians[i]);
        }
}

static void stop(uint64_t end_ns, uint64_t ns) {
        stops.total_ns += ns;
        stops.last_end_ns = end_ns;
        stops.last_ns = ns;
}

/* A window by a number of messages ends at the last one, of which a leader that was stopped learns later: the stop is
 * in it as far as it began before, and not at all where it did not. */
static void a_stop_after_the_last_message_is_in_no_part(void) {
        static const uint64_t begun_before_ns[] = {0, 300, 1000}, want[] = {0, 300, 1000};
        for (size_t i = 0; i < ELEMENTS(want); i++) {
                FIXTURE f;
                struct message m;
                CHECK(fixture_open(&f, true));
                const uint64_t begin_ns = util_now_ns() - 3 * NSEC_PER_SEC, last_ns = begin_ns + NSEC_PER_SEC;
                CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
                stop(last_ns + 1000 - begun_before_ns[i], 1000);
                CHECK_INT(sampler_close(f.sampler, last_ns, &window), 0);
                parts.n = 0;
                while (receive(&f, &m))
                        message_deinit(&m);
                CHECK_UINT(parts.n, 1);
                CHECK_UINT(parts.list[0].stopped_ns, want[i]);
        }
}

/* Each has the stop that it ended with, and none is longer than it. */
static void parts_have_their_stops(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        stops.total_ns = 70; /* in the warm-up */
        uint64_t begin_ns = util_now_ns() - 3 * NSEC_PER_SEC;
        CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
        stops.total_ns += NSEC_PER_SEC;
        CHECK_INT(sampler_part(f.sampler), 0);
        CHECK_INT(sampler_part(f.sampler), 0);
        stops.total_ns += 9 * NSEC_PER_SEC;
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        while (receive(&f, &m))
                message_deinit(&m);
        CHECK_UINT(parts.n, 3);
        CHECK_UINT(parts.list[0].stopped_ns, NSEC_PER_SEC);
        CHECK_UINT(parts.list[1].stopped_ns, 0);
        CHECK_UINT(parts.list[2].stopped_ns, parts.list[2].interval_ns);
}

static bool stay_on(const struct cpumask *m) {
        return cpumask_set_affinity(0, m) == 0;
}

/* As taskset does it, between two parts of one second; what is put back before a part is not. */
static void an_affinity_that_is_put_back_within_a_second_is_observed(void) {
        for (unsigned parts_between = 0; parts_between < 2; parts_between++) {
                FIXTURE f;
                struct message m;
                struct cpumask before = {}, one = {};
                unsigned cpu = 0;
                CHECK(fixture_open(&f, true));
                CHECK_INT(cpumask_get_affinity(0, &before), 0);
                CHECK_INT(syscall(SYS_getcpu, &cpu, NULL, NULL), 0);
                cpumask_add(&one, cpu);
                if (cpumask_equal(&before, &one))
                        SKIP("there is one CPU");
                workers[1].proof.initial = before;
                workers[1].proof.has_initial = true;
                CHECK_INT(sampler_open(f.sampler, util_now_ns(), 0), 0);
                CHECK_INT(sampler_part(f.sampler), 0);
                CHECK(stay_on(&one));
                if (parts_between)
                        CHECK_INT(sampler_part(f.sampler), 0);
                CHECK(stay_on(&before));
                CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
                while (receive(&f, &m))
                        message_deinit(&m);
                CHECK(workers[1].proof.has_changed == (parts_between > 0));
                CHECK(!workers[0].proof.has_changed); /* it is not known what it was */
        }
}

/* A leader that was stopped takes no parts, and one that is late in sending them has room for more than a second's. */
static void parts_that_fill_a_packet_are_sent(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        CHECK_INT(sampler_open(f.sampler, util_now_ns(), 0), 0);
        for (unsigned i = 0; i < MESSAGE_PARTS_MAX; i++) {
                work(0, 1, 5);
                CHECK_INT(sampler_part(f.sampler), 0);
        }
        parts.n = 0;
        CHECK(!receive(&f, &m));
        CHECK_UINT(parts.n, MESSAGE_PARTS_MAX);
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        while (receive(&f, &m))
                message_deinit(&m);
        CHECK_UINT(parts.n, 1);
}

/* After a stop the second is the one that it is, and not the next number. */
static void seconds_are_counted_by_time(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        uint64_t due_ns = util_now_ns() - 5 * NSEC_PER_SEC / 2;
        CHECK_INT(sampler_open(f.sampler, due_ns, due_ns), 0);
        CHECK_INT(sampler_take(f.sampler), 0);
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        const uint32_t seconds[] = {0, 0, 2, 2};
        for (size_t i = 0; i < 2 * THREADS; i++) {
                CHECK(receive(&f, &m));
                CHECK_INT(m.type, MESSAGE_SAMPLE);
                CHECK_UINT(m.sample.second, seconds[i]);
                message_deinit(&m);
        }
        while (receive(&f, &m))
                message_deinit(&m);
}

/* Another window of the same run, after a warm-up that counts, begins from nothing. */
static void a_window_can_be_opened_again(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        CHECK_INT(sampler_open(f.sampler, 1000, 1000), 0);
        work(0, 100, 5);
        CHECK_INT(sampler_take(f.sampler), 0);
        while (receive(&f, &m))
                message_deinit(&m);
        CHECK_INT(sampler_open(f.sampler, 2000, 2000), 0);
        work(0, 3, 6);
        CHECK_INT(sampler_close(f.sampler, 2500, &window), 0);
        const struct want want[] = {{0, 0, 500, 3, 6, 0}, {1, 0, 500, 0, 0, 0}};
        for (size_t i = 0; i < 2 && !check_case_failed; i++)
                check_sample(&f, &want[i]);
        CHECK(!check_case_failed);
        CHECK_UINT(window.messages, 3);
        CHECK_UINT(window.window_ns, 500);
}

/* What a reading of the connections has in common with a worker that it waits for. */
static const char *count_a_reading(const struct agent *a, struct message_sent_again *ret) {
        a->workers[0].eagain++;
        *ret = (struct message_sent_again){.known = SENT_AGAIN_TIMEOUTS};
        return NULL;
}

/* It may wait for a worker that is in a system call, so it follows the counters at both ends of the window: of its two
 * readings one is in their window. */
static void connections_are_read_after_the_counters(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        agent.sent_again = count_a_reading;
        CHECK_INT(sampler_open(f.sampler, util_now_ns(), 0), 0);
        CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
        while (receive(&f, &m))
                message_deinit(&m);
        CHECK_UINT(workers[0].eagain, 2);
        CHECK_UINT(window.counters.usage.eagain, 1);
}

static struct message_sent_again connections; /* as they are read next */

static const char *read_connections(const struct agent *a, struct message_sent_again *ret) {
        (void) a;
        *ret = connections;
        return NULL;
}

#define NONE SENT_AGAIN_UNKNOWN
#define MOST SENT_AGAIN_SEGMENTS
#define ALL SENT_AGAIN_TIMEOUTS

/* A reading may fail between two that do not, a count of 32 bits begins anew, and that of timeouts has 16. */
static void what_was_sent_again_is_known_of_two_readings(void) {
        static const struct {
                struct message_sent_again before, now, want;
        } cases[] = {
                {{ALL, 10, 4, 2}, {ALL, 15, 6, 2}, {ALL, 5, 2, 0}},
                {{ALL, 10, 4, 2}, {NONE, 0, 0, 0}, {NONE, 0, 0, 0}},
                {{NONE, 0, 0, 0}, {ALL, 15, 6, 2}, {NONE, 0, 0, 0}},
                {{ALL, 10, 4, 2}, {ALL, 9, 6, 2}, {NONE, 0, 0, 0}},
                {{ALL, 10, 4, 2}, {ALL, 15, 3, 2}, {NONE, 0, 0, 0}},
                {{ALL, 10, 4, 2}, {ALL, 15, 6, 1}, {MOST, 5, 2, 0}},
                {{MOST, 10, 4, 9}, {MOST, 15, 6, 9}, {MOST, 5, 2, 0}},
                {{ALL, 10, 4, 2}, {MOST, 15, 6, 0}, {MOST, 5, 2, 0}},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FIXTURE f;
                struct message m;
                const struct message_sent_again *got = &parts.sent_again, *want = &cases[i].want;
                CHECK(fixture_open(&f, true));
                agent.sent_again = read_connections;
                connections = cases[i].before;
                CHECK_INT(sampler_open(f.sampler, util_now_ns(), 0), 0);
                connections = cases[i].now;
                CHECK_INT(sampler_close(f.sampler, 0, &window), 0);
                parts = (struct message_parts){0};
                while (receive(&f, &m))
                        message_deinit(&m);
                if (parts.n != 1 || got->known != want->known || got->segments != want->segments ||
                    got->spurious != want->spurious || got->timeouts != want->timeouts)
                        CHECK_FAIL("case %zu", i);
        }
}

/* To measure what sampling costs there are none, and the threads' totals all the same. */
static void without_samples_the_totals_are_there(void) {
        FIXTURE f;
        CHECK(fixture_open(&f, false));
        work(1, 7, 0);
        uint64_t begin_ns = util_now_ns();
        CHECK_INT(sampler_open(f.sampler, begin_ns, begin_ns), 0);
        work(0, 10, 0);
        CHECK_INT(sampler_take(f.sampler), 0);
        work(1, 20, 0);
        CHECK_INT(sampler_close(f.sampler, begin_ns + NSEC_PER_SEC, &window), 0);
        check_thread(&f, 0, 10);
        if (!check_case_failed)
                check_thread(&f, 1, 20);
        CHECK(!check_case_failed);
        CHECK_UINT(window.messages, 30);
        CHECK_UINT(window.window_ns, NSEC_PER_SEC);
}

static void a_thread_that_is_gone_fails_the_run(void) {
        FIXTURE f;
        struct message m;
        CHECK(fixture_open(&f, true));
        CHECK_INT(sampler_open(f.sampler, 0, 0), 0);
        workers[1].tid = 1 << 30;
        CHECK(sampler_take(f.sampler) < 0);
        CHECK(strncmp(agent.failure.detail, "the counters of thread 1 cannot be read: ", 41) == 0);
        CHECK(!receive(&f, &m)); /* a sample of half the threads is none */
        CHECK(sampler_close(f.sampler, 0, &window) < 0);
        CHECK(sampler_open(f.sampler, 0, 0) < 0);
        sampler_free(NULL);
}

/* Each reading of the counters begins with it: what they use is in the counters (kernel-threads.h). */
static void kernels_threads_are_observed(void) {
        FIXTURE f;
        CHECK(fixture_open(&f, false));
        agent.setup.point.engine = ENGINE_IO_URING;
        int r = sampler_open(f.sampler, 0, 0);
        bool looked = agent.kernel_threads;
        agent.kernel_threads = kernel_threads_free(agent.kernel_threads);
        CHECK_INT(r, 0);
        CHECK(looked);
}

int main(void) {
        RUN(samples_come_to_the_window);
        RUN(intervals_are_as_given);
        RUN(nothing_is_taken_after_the_last_message);
        RUN(histograms_have_the_messages_of_their_counts);
        RUN(intervals_lie_end_to_end);
        RUN(parts_are_of_all_threads);
        RUN(parts_have_their_stops);
        RUN(a_stop_after_the_last_message_is_in_no_part);
        RUN(an_affinity_that_is_put_back_within_a_second_is_observed);
        RUN(parts_that_fill_a_packet_are_sent);
        RUN(seconds_are_counted_by_time);
        RUN(a_window_can_be_opened_again);
        RUN(connections_are_read_after_the_counters);
        RUN(what_was_sent_again_is_known_of_two_readings);
        RUN(without_samples_the_totals_are_there);
        RUN(a_thread_that_is_gone_fails_the_run);
        RUN(kernels_threads_are_observed);
        return check_end();
}
