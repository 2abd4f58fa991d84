/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents, as the runner starts them: every transport, workload and verification; windows by time and by
 * count; threads and odd sizes; their reports of their placement. test-agent-faults.c breaks them.
 */

#include "check.h"
#include "figure.h"
#include "pairs.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"
#include "transports.h"

#include <sys/wait.h>

static enum transport tried_transports[TRANSPORT_COUNT];
static size_t n_tried;
static const enum workload tried_workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};

static struct driver_spec short_spec(void) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.duration_ns = 60 * NSEC_PER_MSEC;
        s.warmup_ns = 10 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        return s;
}

static struct driver_spec counted_spec(uint64_t messages) {
        struct driver_spec s = short_spec();
        s.duration_ns = 0;
        s.messages = messages;
        return s;
}

/* The samples of each end, where it takes any, add up to its report, and both have a window. */
static const char *sums_fault(const struct driver *d) {
        for (enum end end = END_FIRST; d->spec.interval_ns && end < END_COUNT; end++) {
                const struct driver_end *e = &d->ends[end];
                if (e->samples == 0 || e->report.window_ns == 0)
                        return "no sample or no window";
                if (e->sampled_messages != e->report.messages)
                        return "the samples' messages are not the report's";
                if (e->sampled_bytes != e->report.bytes ||
                    e->report.bytes != e->report.messages * d->spec.point.message_size)
                        return "the samples' bytes are not the report's";
                if (e->sampled_ns != e->report.window_ns)
                        return "the samples' intervals are not the window";
        }
        return NULL;
}

static void test_every_combination_by_time(void) {
        for (size_t t = 0; t < n_tried; t++)
                for (size_t k = 0; k < ELEMENTS(tried_workloads); k++)
                        for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                                struct driver d;
                                struct driver_spec s = short_spec();
                                s.point.transport = tried_transports[t];
                                s.point.workload = tried_workloads[k];
                                s.verify = v;
                                CHECK(something_arrives(&d, &s, sums_fault));
                                CHECK(d.ends[END_SECOND].report.window_ns > 0); /* a busy machine opens it late */
                                CHECK(WIFEXITED(d.ends[END_FIRST].status) &&
                                      WEXITSTATUS(d.ends[END_FIRST].status) == 0);
                                driver_deinit(&d);
                        }
}

static void test_every_combination_by_count(void) {
        for (size_t t = 0; t < n_tried; t++)
                for (size_t k = 0; k < ELEMENTS(tried_workloads); k++)
                        for (unsigned warm = 0; warm < 2; warm++) {
                                struct driver d;
                                struct driver_spec s = counted_spec(997);
                                s.point.transport = tried_transports[t];
                                s.point.workload = tried_workloads[k];
                                s.point.threads = 1 + warm;
                                s.warmup_ns = warm * 5 * NSEC_PER_MSEC;
                                s.verify = VERIFY_CHECKSUM;
                                CHECK(run_pair(&d, &s, sums_fault));
                                CHECK_UINT(d.ends[END_FIRST].report.messages, 997 * s.point.threads);
                                CHECK_UINT(d.ends[END_SECOND].report.messages, 997 * s.point.threads);
                                driver_deinit(&d);
                        }
}

/* Shorter than a word, no multiple of one, a page and a bit, longer than the pipe: all bytes are checked. */
static void test_odd_sizes_and_threads(void) {
        static const struct {
                uint64_t size;
                uint32_t threads;
        } cases[] = {{1, 1}, {7, 3}, {9, 1}, {63, 2}, {4109, 4}, {65536, 2}, {65537, 1}, {300001, 2}, {4u << 20, 1}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (size_t k = 0; k < ELEMENTS(tried_workloads); k++) {
                        struct driver d;
                        struct driver_spec s = counted_spec(25);
                        s.point.workload = tried_workloads[k];
                        s.point.message_size = cases[i].size;
                        s.point.threads = cases[i].threads;
                        s.verify = VERIFY_CHECKSUM;
                        CHECK(run_pair(&d, &s, sums_fault));
                        CHECK_UINT(d.ends[END_SECOND].report.messages, 25 * cases[i].threads);
                        driver_deinit(&d);
                }
}

static void test_many_threads(void) {
        for (size_t t = 0; t < n_tried; t++) {
                struct driver d;
                struct driver_spec s = counted_spec(3);
                s.point.transport = tried_transports[t];
                s.point.workload = WORKLOAD_PINGPONG;
                s.point.threads = tried_transports[t] == TRANSPORT_PIPE ? SPEC_THREADS_MAX : 100;
                s.point.message_size = 64;
                s.warmup_ns = 0;
                s.interval_ns = NSEC_PER_SEC;
                CHECK(run_pair(&d, &s, sums_fault));
                CHECK_UINT(d.ends[END_FIRST].report.messages, 3 * s.point.threads);
                driver_deinit(&d);
        }
}

/* Without samples nothing comes but signs of life and the report. */
static void test_no_samples(void) {
        struct driver d;
        struct driver_spec s = short_spec();
        s.point.workload = WORKLOAD_PINGPONG;
        s.interval_ns = 0;
        s.duration_ns = 3 * NSEC_PER_SEC; /* in which there are five or six, unless the machine stands still */
        CHECK(run_pair(&d, &s, sums_fault));
        CHECK_UINT(d.ends[END_FIRST].samples, 0);
        CHECK(d.ends[END_FIRST].alive >= 2);
        CHECK(d.ends[END_FIRST].report.messages > 0);
        driver_deinit(&d);
}

static void test_latency_of_every_round_trip(void) {
        struct driver d;
        struct driver_spec s = counted_spec(2000);
        struct latency_summary l;
        int64_t clock_cost = 0;
        s.point.workload = WORKLOAD_PINGPONG;
        s.warmup_ns = 0;
        CHECK(run_pair(&d, &s, sums_fault));
        CHECK_UINT(histogram_total(&d.ends[END_FIRST].latency), 2000);
        CHECK_INT(histogram_summarize(&d.ends[END_FIRST].latency, &l), 0);
        /* all round trips lie within the window, one after the other */
        CHECK(d.ends[END_FIRST].latency.sum_ns <= d.ends[END_FIRST].report.window_ns);
        CHECK(l.min > 0 && l.min <= l.p50 && l.p50 <= l.max);
        CHECK_UINT(histogram_total(&d.ends[END_SECOND].latency), 0);
        CHECK(number_in(d.ends[END_FIRST].effective, "clock_cost_ns", &clock_cost) && clock_cost > 0);
        driver_deinit(&d);
}

/* Not faster than the rate, every message counted from when it was due, at the end that knows. */
static void test_open_loop(void) {
        for (size_t t = 0; t < n_tried; t++)
                for (size_t k = 0; k < ELEMENTS(tried_workloads); k++) {
                        struct driver d;
                        struct driver_spec s = counted_spec(100);
                        struct latency_summary l;
                        enum end end = tried_workloads[k] == WORKLOAD_STREAM ? END_SECOND : END_FIRST;
                        s.point.transport = tried_transports[t];
                        s.point.workload = tried_workloads[k];
                        s.verify = VERIFY_CHECKSUM;
                        s.rate = 2000;
                        CHECK(run_pair(&d, &s, sums_fault));
                        CHECK(d.ends[end].report.window_ns >= 99 * NSEC_PER_SEC / 2000);
                        CHECK_INT(histogram_summarize(&d.ends[end].latency, &l), 0);
                        CHECK_UINT(l.count, 100);
                        const char *waits = "\"pace_spin_ns\":60000,\"pace_spin\":\"sched_yield\"";
                        CHECK(strstr(d.ends[END_FIRST].effective, waits));
                        CHECK(!strstr(d.ends[END_SECOND].effective, "pace_spin"));
                        driver_deinit(&d);
                }
}

/* A million a second cannot be had from round trips over a pipe: each is later than the one before, and its latency
 * shows it. */
static void test_open_loop_counts_the_delay(void) {
        struct driver d;
        struct driver_spec s = counted_spec(4000);
        struct latency_summary l;
        s.point.workload = WORKLOAD_PINGPONG;
        s.rate = 1e6;
        CHECK(run_pair(&d, &s, sums_fault));
        CHECK_INT(histogram_summarize(&d.ends[END_FIRST].latency, &l), 0);
        uint64_t window_ns = d.ends[END_FIRST].report.window_ns, due_ns = 4000 * NSEC_PER_USEC;
        CHECK(window_ns > due_ns);
        CHECK(l.max >= (window_ns - due_ns) / 100 * 98);
        driver_deinit(&d);
}

static void test_pipe_size(void) {
        static const enum transport pipes[] = {TRANSPORT_PIPE, TRANSPORT_FIFO};
        for (size_t t = 0; t < ELEMENTS(pipes); t++) {
                struct driver d;
                struct driver_spec s = short_spec();
                int64_t size = 0;
                s.point.transport = pipes[t];
                s.point.workload = WORKLOAD_PINGPONG;
                s.options.pipe_size = 12288; /* the kernel rounds it up to a power of two pages */
                CHECK(run_pair(&d, &s, sums_fault));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK(number_in(d.ends[end].effective, "pipe_size", &size));
                        CHECK_INT(size, 16384);
                        CHECK(number_in(d.ends[end].effective_at_end, "pipe_size", &size));
                        CHECK_INT(size, 16384);
                }
                driver_deinit(&d);

                s.options.pipe_size = UINT64_C(1) << 33;
                CHECK(driver_run(&d, &s) < 0);
                CHECK(strstr(d.trouble, "not 8589934592")); /* refused by the protocol already */
                driver_deinit(&d);
        }
}

/* A message that does not fit the pipe is read in parts, and that is counted. */
static void test_counters(void) {
        struct driver d;
        struct driver_spec s = counted_spec(50);
        int64_t n = 0, user = 0, system = 0;
        s.point.message_size = 1u << 20;
        CHECK(run_pair(&d, &s, sums_fault));
        CHECK(number_in(d.ends[END_SECOND].counters, "partial_receives", &n) && n >= 50);
        CHECK(number_in(d.ends[END_FIRST].counters, "partial_sends", &n) && n == 0);
        CHECK(number_in(d.ends[END_FIRST].counters, "voluntary_switches", &n) && n > 0);
        CHECK(number_in(d.ends[END_FIRST].counters, "cpu_ns", &n) && n > 0);
        if (number_in(d.ends[END_FIRST].counters, "user_ns", &user))
                CHECK(number_in(d.ends[END_FIRST].counters, "system_ns", &system) && user + system == n);
        else
                CHECK(strstr(d.ends[END_FIRST].counters, "user_ns_reason"));
        CHECK_INT(n, (int64_t) d.ends[END_FIRST].sampled_cpu_ns);
        CHECK(strstr(d.ends[END_FIRST].counters, "\"migrations\""));
        CHECK(number_in(d.ends[END_FIRST].counters, "cycles", &n) ||
              strstr(d.ends[END_FIRST].counters, "\"reasons\":{"));
        driver_deinit(&d);
}

/* Each thread's window adds up to the report's, whatever was sampled; also of more than a packet has room for. */
static void test_totals_per_thread(void) {
        static const struct {
                uint32_t threads;
                uint64_t interval_ns;
        } cases[] = {{1, 0}, {3, 20 * NSEC_PER_MSEC}, {300, 0}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct driver d;
                struct driver_spec s = counted_spec(5);
                s.point.threads = cases[i].threads;
                s.interval_ns = cases[i].interval_ns;
                CHECK(run_pair(&d, &s, sums_fault));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        const struct driver_end *e = &d.ends[end];
                        int64_t cpu = -1;
                        CHECK_UINT(e->threads, cases[i].threads);
                        CHECK_UINT(e->threads_messages, 5 * cases[i].threads);
                        CHECK_UINT(e->threads_bytes, e->report.bytes);
                        CHECK(number_in(e->counters, "cpu_ns", &cpu));
                        CHECK_INT(cpu, (int64_t) e->threads_cpu_ns);
                }
                driver_deinit(&d);
        }
}

static bool list_is(const struct json *list, int64_t only) {
        int64_t v;
        return list && json_length(list) == 1 && json_as_i64(json_first(list), &v) == 0 && v == only;
}

/* The CPU of thread 0 in the proof's `member` is exactly this one. */
static bool proof_has(const char *proof, const char *member, int cpu) {
        struct json *root;
        if (json_parse(proof, strlen(proof), &root, NULL) < 0)
                return false;
        const struct json *threads = json_get(root, "threads"), *thread = threads ? json_first(threads) : NULL;
        bool is = thread && list_is(json_get(thread, member), cpu) && list_is(json_get(root, "affinity"), cpu);
        json_free(root);
        return is;
}

static void test_proof(void) {
        int cpus[2];
        if (allowed_cpus(cpus) < 2)
                SKIP("one CPU only: there is no wrong one");
        struct driver d;
        struct driver_spec s = short_spec();
        s.cpus[0] = cpus[0];
        s.cpus[1] = cpus[1];
        CHECK(run_pair(&d, &s, sums_fault));
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                CHECK(proof_has(d.ends[end].proof, "affinity", cpus[end]));
                CHECK(proof_has(d.ends[end].proof_at_end, "affinity", cpus[end]));
                CHECK(proof_has(d.ends[end].proof_at_end, "cpus_seen", cpus[end]));
                CHECK(strstr(d.ends[end].proof, "\"what\":\"buffer\""));
                CHECK(strstr(d.ends[end].proof, "\"what\":\"stack\""));
        }
        driver_deinit(&d);
}

/* An agent on another CPU than the set-up names reports the real one. */
static void test_proof_of_a_wrong_placement(void) {
        int cpus[2];
        if (allowed_cpus(cpus) < 2)
                SKIP("one CPU only: there is no wrong one");
        struct driver d;
        struct driver_spec s = short_spec();
        s.cpus[0] = s.real_cpus[0] = s.cpus[1] = cpus[0];
        s.real_cpus[1] = cpus[1];
        s.lie = true;
        CHECK(run_pair(&d, &s, sums_fault));
        CHECK(proof_has(d.ends[END_FIRST].proof_at_end, "cpus_seen", cpus[0]));
        CHECK(proof_has(d.ends[END_SECOND].proof, "affinity", cpus[1]));
        CHECK(proof_has(d.ends[END_SECOND].proof_at_end, "cpus_seen", cpus[1]));
        driver_deinit(&d);
}

static bool is_pipe_or_socket(const struct transport_term *t) {
        return t->carrier == CARRIER_PIPE || t->carrier == CARRIER_SOCKET;
}

int main(void) {
        n_tried = transports_where(is_pipe_or_socket, tried_transports);
        RUN(test_every_combination_by_time);
        RUN(test_every_combination_by_count);
        RUN(test_odd_sizes_and_threads);
        RUN(test_many_threads);
        RUN(test_no_samples);
        RUN(test_latency_of_every_round_trip);
        RUN(test_open_loop);
        RUN(test_open_loop_counts_the_delay);
        RUN(test_pipe_size);
        RUN(test_counters);
        RUN(test_totals_per_thread);
        RUN(test_proof);
        RUN(test_proof_of_a_wrong_placement);
        return check_end();
}
