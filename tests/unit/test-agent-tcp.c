/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents over TCP: every copy mode, engine and direction with every byte checked; sizes that no field
 * divides; many connections; open loops; the sockets' state and the notifications of zero-copy sends in the report; the
 * pages that the proof has. test-agent-tcp-faults.c breaks them.
 */

#include "check.h"
#include "figure.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <unistd.h>

static const enum engine engines[] = {ENGINE_SYSCALL, ENGINE_IO_URING};
static size_t n_engines = ELEMENTS(engines);
static const char *no_rings; /* why the last of them is left out; NULL: it is not */
static const enum copy_mode modes[] = {COPY_TWO, COPY_ONE, COPY_ZERO};

/* What a worker does: a stream's three directions, and a pingpong. */
static const struct job {
        enum workload workload;
        enum data_direction direction;
} jobs[] = {
        {WORKLOAD_STREAM, DIRECTION_DOWN},
        {WORKLOAD_STREAM, DIRECTION_UP},
        {WORKLOAD_STREAM, DIRECTION_BOTH},
        {WORKLOAD_PINGPONG, DIRECTION_DOWN},
};

static struct driver_spec tcp_spec(const struct job *job, enum engine engine, enum copy_mode mode) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = TRANSPORT_TCP;
        s.point.workload = job->workload;
        s.point.direction = job->direction;
        s.point.engine = engine;
        s.point.copy_mode = mode;
        s.point.fields = SPEC_FIELDS_OF_STUDY;
        s.point.message_size = 32768;
        s.verify = VERIFY_CHECKSUM;
        s.duration_ns = 60 * NSEC_PER_MSEC;
        s.warmup_ns = 10 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.stamp = true;
        return s;
}

static struct driver_spec counted_spec(const struct job *job, enum engine engine, enum copy_mode mode, uint64_t n) {
        struct driver_spec s = tcp_spec(job, engine, mode);
        s.duration_ns = 0;
        s.messages = n;
        return s;
}

/* The ends that receive messages in this job. */
static bool receives(const struct job *job, enum end end) {
        if (job->workload == WORKLOAD_PINGPONG || job->direction == DIRECTION_BOTH)
                return true;
        return (job->direction == DIRECTION_UP) == (end == END_FIRST);
}

static bool sends(const struct job *job, enum end end) {
        if (job->workload == WORKLOAD_PINGPONG || job->direction == DIRECTION_BOTH)
                return true;
        return !receives(job, end);
}

/* Something moved, and yet nothing was timed or sent without copying where it should be: the leader was held up between
 * looking at the messages and looking at the rest, in the little that there was. */
static bool held_up(const struct driver *d, const struct job *job) {
        bool pingpong = job->workload == WORKLOAD_PINGPONG;
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const struct driver_end *e = &d->ends[end];
                bool zero = d->spec.point.copy_mode == COPY_ZERO && sends(job, end);
                if ((pingpong ? end == END_FIRST : receives(job, end)) && histogram_total(&e->latency) == 0)
                        return true;
                if (zero && figure(e->counters, "zerocopy_sends") <= 0)
                        return true;
        }
        return false;
}

static uint64_t began_ns; /* the last run of moves() */

/* So many messages at both ends, and of a job what is beside them. A busy machine may let little through for a while:
 * then it is given longer. */
static bool moves(struct driver *d, struct driver_spec *s, const struct job *job, uint64_t at_least) {
        for (;; s->duration_ns *= 4) {
                began_ns = util_now_ns();
                if (!run_well(d, s))
                        return false;
                if (d->ends[END_FIRST].report.messages >= at_least && d->ends[END_SECOND].report.messages >= at_least &&
                    !(job && held_up(d, job)))
                        return true;
                if (s->duration_ns > 5 * NSEC_PER_SEC) {
                        explain(s, "hardly anything moves");
                        return false;
                }
                driver_deinit(d);
        }
}

static const char *report_fault(const struct driver *d, const struct job *job) {
        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                const struct driver_end *e = &d->ends[end];
                if (e->report.window_ns == 0)
                        return "no window";
                if (e->sampled_messages != e->report.messages || e->sampled_bytes != e->report.bytes)
                        return "the samples do not add up to the report";
                bool timed = job->workload == WORKLOAD_PINGPONG ? end == END_FIRST : receives(job, end);
                if (histogram_total(&e->latency) > 0 && !timed)
                        return "latencies where nothing is timed";
                bool expected = d->spec.point.copy_mode == COPY_ZERO && sends(job, end);
                if (figure(e->counters, "zerocopy_sends") > 0 && !expected)
                        return "zero-copy sends where there are none";
        }
        return NULL;
}

/* By so many messages that no end has only such as were begun before its window. */
static void test_every_mode_by_time(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_every_mode_by_time);
        static const uint32_t threads[] = {1, 2, 8};
        for (size_t e = 0; e < n_engines; e++)
                for (size_t m = 0; m < ELEMENTS(modes); m++)
                        for (size_t k = 0; k < ELEMENTS(jobs) * ELEMENTS(threads); k++) {
                                if (!lanes_my_turn())
                                        continue;
                                const struct job *job = &jobs[k % ELEMENTS(jobs)];
                                struct driver d;
                                struct driver_spec s = tcp_spec(job, engines[e], modes[m]);
                                s.point.threads = threads[k / ELEMENTS(jobs)];
                                CHECK(moves(&d, &s, job, 100));
                                const char *fault = report_fault(&d, job);
                                if (fault)
                                        explain(&s, fault);
                                CHECK(!fault);
                                driver_deinit(&d);
                        }
}

/* More messages than the pool has must wait for notifications; each connection on loopback reports that the kernel has
 * copied the bytes after all. */
static void test_notifications(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_notifications);
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++) {
                if (!lanes_my_turn())
                        continue;
                const struct job *job = &jobs[k % ELEMENTS(jobs)];
                struct driver d;
                struct driver_spec s = counted_spec(job, engines[k / ELEMENTS(jobs)], COPY_ZERO, 200);
                s.point.threads = 2;
                s.warmup_ns = 0;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        const char *counters = d.ends[end].counters;
                        double completions = figure(counters, "zerocopy_completions");
                        if (!sends(job, end))
                                continue;
                        CHECK(completions > 0 && completions <= figure(counters, "zerocopy_sends"));
                        CHECK(figure(counters, "zerocopy_copied") == completions);
                        CHECK(figure(counters, "zerocopy_copied_fraction") == 1);
                }
                driver_deinit(&d);
        }
}

/* Not divisible by the fields, fewer bytes than fields, longer than a socket's buffers; no stamp, some, each. And each
 * of eight threads moves its share, however busy the machine. Each size has every job, engine and mode, in turns. */
static void test_odd_sizes_by_count(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_odd_sizes_by_count);
        static const struct {
                uint64_t size;
                uint32_t fields, threads, messages; /* more than there are in a pool of zero-copy ones */
        } cases[] = {{1, 8, 1, 40},     {7, 8, 2, 40},       {15, 64, 1, 40},     {16, 8, 1, 40},
                     {17, 3, 2, 40},    {63, 64, 1, 40},     {4095, 1, 1, 40},    {4099, 64, 2, 40},
                     {65537, 8, 1, 40}, {1000003, 7, 2, 20}, {9u << 20, 8, 1, 6}, {20000, 8, 8, 40}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                for (size_t k = 0; k < n_engines * ELEMENTS(modes); k++) {
                        if (!lanes_my_turn())
                                continue;
                        const struct job *job = &jobs[(i + k) % ELEMENTS(jobs)];
                        struct driver d;
                        struct driver_spec s = counted_spec(job, engines[k / ELEMENTS(modes)],
                                                            modes[k % ELEMENTS(modes)], cases[i].messages);
                        s.point.message_size = cases[i].size;
                        s.point.fields = cases[i].fields;
                        s.point.threads = cases[i].threads;
                        s.warmup_ns = i % 2 * 5 * NSEC_PER_MSEC;
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++)
                                CHECK_UINT(d.ends[end].report.messages, cases[i].messages * cases[i].threads);
                        driver_deinit(&d);
                }
}

/* Messages are received many at a time, and lie wherever the buffers end: by count, and until time is up. The mode of
 * sending makes no difference to the receiver: directions and modes take turns. */
static void test_short_messages_of_streams(void) {
        if (no_rings)
                SKIP("%s", no_rings);
        IN_LANES(lanes_of_locked_pages(), NULL, test_short_messages_of_streams);
        static const uint64_t sizes[] = {1, 17, 64, 1000, 4095, 4096};
        static const uint32_t threads[] = {1, 2, 8};
        for (size_t i = 0; i < ELEMENTS(sizes); i++)
                for (size_t k = 0; k < ELEMENTS(threads) * 2; k++) {
                        if (!lanes_my_turn())
                                continue;
                        size_t turn = i + k / 2;
                        struct driver d;
                        struct driver_spec s = counted_spec(&jobs[turn % 2], ENGINE_IO_URING,
                                                            modes[(turn + k) % ELEMENTS(modes)], 2000);
                        s.point.message_size = sizes[i];
                        s.point.threads = threads[k / 2];
                        s.warmup_ns = turn % 3 * 5 * NSEC_PER_MSEC;
                        if (k % 2) {
                                s.messages = 0;
                                s.duration_ns = 30 * NSEC_PER_MSEC;
                        }
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++)
                                CHECK(k % 2 || d.ends[end].report.messages == 2000 * s.point.threads);
                        driver_deinit(&d);
                }
}

/* A message has one latency, unless it is too short to carry its time; of short ones every so manieth has. */
static void test_latency_of_messages(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_latency_of_messages);
        static const struct {
                uint64_t size, every;
        } cases[] = {{15, 0}, {16, 256}, {64, 64}, {4095, 2}, {4096, 1}, {100000, 1}};
        for (size_t k = 0; k < ELEMENTS(jobs); k++)
                for (size_t x = 0; x < ELEMENTS(cases) * n_engines; x++) {
                        if (!lanes_my_turn())
                                continue;
                        size_t i = x % ELEMENTS(cases);
                        struct driver d;
                        struct driver_spec s = counted_spec(&jobs[k], engines[x / ELEMENTS(cases)], COPY_ONE, 512);
                        bool pingpong = jobs[k].workload == WORKLOAD_PINGPONG;
                        uint64_t stamped = cases[i].every ? 512 / cases[i].every : 0;
                        s.point.message_size = cases[i].size;
                        s.warmup_ns = 0;
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                const struct driver_end *e = &d.ends[end];
                                uint64_t expected = pingpong ? (end == END_FIRST ? 512 : 0)
                                                             : (receives(&jobs[k], end) ? stamped : 0);
                                double every = figure(e->effective, "latency_every_messages");
                                CHECK_UINT(histogram_total(&e->latency), expected);
                                CHECK(histogram_total(&e->latency) == 0 || e->latency.sum_ns > 0);
                                CHECK(pingpong || every == (cases[i].every ? (double) cases[i].every : -1));
                                CHECK((strstr(e->effective, "latency_every_messages_reason") != NULL) ==
                                      (!pingpong && stamped == 0));
                        }
                        driver_deinit(&d);
                }
}

/* Without stamp no message of a closed loop carries a time: verify, which leaves a stamp out, covers all bytes then. In
 * an open loop both ways messages carry their due time all the same, as there is no other latency. */
static void test_no_stamp(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_no_stamp);
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines * ELEMENTS(modes); k++) {
                const struct job *job = &jobs[k % ELEMENTS(jobs)];
                if (!lanes_my_turn() || job->workload == WORKLOAD_PINGPONG)
                        continue;
                for (int paced = 0; paced < 2; paced++) {
                        bool latency = paced, stamped = paced && job->direction == DIRECTION_BOTH;
                        struct driver d;
                        struct driver_spec s = counted_spec(job, engines[k / ELEMENTS(jobs) % n_engines],
                                                            modes[k / ELEMENTS(jobs) / n_engines], 100);
                        s.stamp = false;
                        s.warmup_ns = 0;
                        s.rate = paced ? 5000 : 0;
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                const struct driver_end *e = &d.ends[end];
                                CHECK_UINT(histogram_total(&e->latency), latency && receives(job, end) ? 100 : 0);
                                CHECK(strstr(e->effective, stamped ? "\"stamp\":true" : "\"stamp\":false"));
                                CHECK((strstr(e->effective, "\"stamp_reason\"") != NULL) == stamped);
                                CHECK((strstr(e->effective, "\"latency_every_messages_reason\":\"stamp is off\"") !=
                                       NULL) == !latency);
                        }
                        driver_deinit(&d);
                }
        }
}

/* In an open loop no more messages come than the schedule has had since before the run, each with its latency. */
static void test_rate_by_time(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_rate_by_time);
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++) {
                if (!lanes_my_turn())
                        continue;
                const struct job *job = &jobs[k % ELEMENTS(jobs)];
                struct driver d;
                struct driver_spec s = tcp_spec(job, engines[k / ELEMENTS(jobs)], modes[k % ELEMENTS(modes)]);
                bool pingpong = job->workload == WORKLOAD_PINGPONG;
                s.rate = 1000;
                s.duration_ns = 200 * NSEC_PER_MSEC;
                CHECK(moves(&d, &s, job, 10));
                double due = s.rate * (double) (util_now_ns() - began_ns) / 1e9;
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        const struct driver_end *e = &d.ends[end];
                        bool timed = pingpong ? end == END_FIRST : receives(job, end);
                        CHECK((double) e->report.messages <= due);
                        CHECK(timed || histogram_total(&e->latency) == 0);
                }
                driver_deinit(&d);
        }
}

/* Every mode of both engines keeps to the schedule: the last of 100 messages is not there before its time, and each has
 * one latency, at the end that knows when it was due; both ways each end has a schedule of its own. */
static void test_rate_by_count(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_rate_by_count);
        for (size_t e = 0; e < n_engines; e++)
                for (size_t m = 0; m < ELEMENTS(modes); m++)
                        for (size_t k = 0; k < ELEMENTS(jobs); k++) {
                                if (!lanes_my_turn())
                                        continue;
                                bool pingpong = jobs[k].workload == WORKLOAD_PINGPONG;
                                struct driver d;
                                struct driver_spec s = counted_spec(&jobs[k], engines[e], modes[m], 100);
                                s.warmup_ns = 0;
                                s.rate = 2000;
                                CHECK(run_well(&d, &s));
                                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                        const struct driver_end *x = &d.ends[end];
                                        bool timed = pingpong ? end == END_FIRST : receives(&jobs[k], end);
                                        bool waits = pingpong ? end == END_FIRST : sends(&jobs[k], end);
                                        CHECK_INT(figure(x->effective, "pace_spin_ns") > 0, waits);
                                        CHECK_UINT(x->report.messages, 100);
                                        CHECK_UINT(histogram_total(&x->latency), timed ? 100 : 0);
                                        if (timed)
                                                CHECK(x->report.window_ns >= 99 * NSEC_PER_SEC / 2000);
                                }
                                driver_deinit(&d);
                        }
}

/* Pages by what and where the proof has them; -1: some are on no node. */
static int64_t proven_pages(const char *proof, const char *what) {
        struct json *root;
        int64_t sum = 0;
        if (!proof || json_parse(proof, strlen(proof), &root, NULL) < 0)
                return -1;
        const struct json *list = json_get(root, "pages");
        for (const struct json *row = list ? json_first(list) : NULL; row; row = json_next(row)) {
                const char *name;
                int64_t total, absent;
                if (json_as_string(json_get(row, "what"), &name) < 0 || strcmp(name, what) != 0)
                        continue;
                if (json_as_i64(json_get(row, "total"), &total) < 0 ||
                    json_as_i64(json_get(row, "absent"), &absent) < 0 || absent != 0)
                        sum = INT64_MIN / 2;
                sum += total;
        }
        json_free(root);
        return sum < 0 ? -1 : sum;
}

/* Messages that an end keeps: the buffer, and what it sends from. */
static uint64_t stored_messages(const struct driver_spec *s, const struct job *job, enum end end) {
        if (!sends(job, end))
                return 1;
        if (s->point.copy_mode == COPY_ZERO)
                return 1 + point_pool_messages(s->point.message_size);
        return s->point.copy_mode == COPY_TWO && receives(job, end) ? 3 : 2;
}

/* All that messages lie in is proven to be where it is, of every thread, listed each or (from 65 threads on) together.
 */
static void test_proof_has_every_page(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_proof_has_every_page);
        static const uint32_t threads[] = {1, 3, 64, 65};
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        for (size_t t = 0; t < ELEMENTS(threads); t++)
                for (size_t k = 0; k < ELEMENTS(jobs) * ELEMENTS(modes) * n_engines; k++) {
                        if (!lanes_my_turn())
                                continue;
                        const struct job *job = &jobs[k % ELEMENTS(jobs)];
                        struct driver d;
                        struct driver_spec s =
                                counted_spec(job, engines[k / ELEMENTS(jobs) / ELEMENTS(modes)],
                                             modes[k / ELEMENTS(jobs) % ELEMENTS(modes)], threads[t] > 3 ? 2 : 20);
                        s.point.threads = threads[t];
                        s.point.message_size = 2 * page;
                        s.point.fields = 2; /* of a page each, and a line apart: of two pages each */
                        s.warmup_ns = 0;
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                uint64_t n = stored_messages(&s, job, end), whole = 1;
                                if (sends(job, end))
                                        whole = s.point.copy_mode == COPY_TWO && receives(job, end) ? 2 : 1;
                                uint64_t expected = threads[t] * (whole * 2 + (n - whole) * 4);
                                CHECK_INT(proven_pages(d.ends[end].proof, "buffer"), expected);
                        }
                        driver_deinit(&d);
                }
}

/* So are the buffers that short messages come in. */
static void test_proof_has_buffers_of_many(void) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        if (no_rings)
                SKIP("%s", no_rings);
        for (size_t k = 0; k < 2; k++) {
                struct driver d;
                struct driver_spec s = counted_spec(&jobs[k], ENGINE_IO_URING, COPY_TWO, 200);
                s.point.threads = 2;
                s.point.message_size = page > SPEC_MULTISHOT_MESSAGE_MAX ? SPEC_MULTISHOT_MESSAGE_MAX : page;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        bool many = strstr(d.ends[end].effective_at_end, "recv multishot") != NULL;
                        if (receives(&jobs[k], end))
                                CHECK_INT(proven_pages(d.ends[end].proof, "buffer"),
                                          2 * (1 + (many ? point_multishot_bytes(&s.point) / page : 0)));
                }
                driver_deinit(&d);
        }
}

static void test_every_verification(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_every_verification);
        for (size_t m = 0; m < ELEMENTS(modes); m++)
                for (size_t k = 0; k < VERIFY_COUNT * n_engines; k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s = tcp_spec(&jobs[m], engines[k / VERIFY_COUNT], modes[m]);
                        s.verify = (enum verify)(k % VERIFY_COUNT);
                        s.point.message_size = 300;
                        CHECK(moves(&d, &s, NULL, 1));
                        driver_deinit(&d);
                }
}

/* What is in one piece is sent without a message header, by io_uring from registered memory where it can be had. */
static void test_method_of_sending(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_method_of_sending);
        static const struct {
                enum engine engine;
                enum copy_mode mode;
                const char *one, *several;
        } cases[] = {
                {ENGINE_SYSCALL, COPY_TWO, "send", "send"},
                {ENGINE_SYSCALL, COPY_ONE, "send", "sendmsg"},
                {ENGINE_SYSCALL, COPY_ZERO, "send MSG_ZEROCOPY", "sendmsg MSG_ZEROCOPY"},
                {ENGINE_IO_URING, COPY_TWO, "send", "send"},
                {ENGINE_IO_URING, COPY_ONE, "send", "sendmsg"},
                {ENGINE_IO_URING, COPY_ZERO, "send_zc", "sendmsg_zc"},
        };
        static const struct {
                uint64_t size;
                uint32_t fields;
                bool one;
        } messages[] = {{40000, 1, true}, {1, 8, true}, {40000, 2, false}};
        for (size_t k = 0; k < ELEMENTS(cases) * ELEMENTS(messages); k++) {
                if (!lanes_my_turn())
                        continue;
                size_t c = k / ELEMENTS(messages), m = k % ELEMENTS(messages);
                if (no_rings && cases[c].engine == ENGINE_IO_URING)
                        continue;
                struct driver d;
                struct driver_spec s = counted_spec(&jobs[0], cases[c].engine, cases[c].mode, 100);
                char wanted[64];
                s.point.message_size = messages[m].size;
                s.point.fields = messages[m].fields;
                (void) snprintf(wanted, sizeof wanted, "\"send_method\":\"%s\"",
                                messages[m].one ? cases[c].one : cases[c].several);
                CHECK(run_well(&d, &s));
                const char *effective = d.ends[END_FIRST].effective_at_end;
                CHECK(strstr(effective, wanted));
                if (strcmp(cases[c].one, "send_zc") == 0 && messages[m].one) /* several pieces only since 6.15 */
                        CHECK(strstr(effective, "\"registered_buffers\":true") ||
                              strstr(effective, "\"registered_buffers_reason\":\"RLIMIT_MEMLOCK"));
                driver_deinit(&d);
        }
}

/* Short messages of a stream that goes one way come many at a time, where the kernel can; all others one by one. */
static void test_method_of_receiving(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_method_of_receiving);
        static const uint64_t sizes[] = {1, 64, SPEC_MULTISHOT_MESSAGE_MAX, SPEC_MULTISHOT_MESSAGE_MAX + 1};
        for (size_t k = 0; k < ELEMENTS(jobs) * n_engines * ELEMENTS(sizes); k++) {
                if (!lanes_my_turn())
                        continue;
                const struct job *job = &jobs[k % ELEMENTS(jobs)];
                struct driver d;
                struct driver_spec s =
                        counted_spec(job, engines[k / ELEMENTS(jobs) % n_engines], modes[k % ELEMENTS(modes)], 100);
                s.point.message_size = sizes[k / ELEMENTS(jobs) / n_engines];
                bool many = s.point.engine == ENGINE_IO_URING && s.point.message_size <= SPEC_MULTISHOT_MESSAGE_MAX &&
                            job->workload == WORKLOAD_STREAM && job->direction != DIRECTION_BOTH;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        const char *effective = d.ends[end].effective_at_end;
                        bool cannot = strstr(effective, "\"receive_method_reason\":\"this kernel has no ") != NULL;
                        bool multishot = many && !cannot;
                        CHECK_INT(strstr(effective, "\"receive_method\":\"recv multishot\"") != NULL,
                                  multishot && receives(job, end));
                        bool waits = s.point.engine == ENGINE_IO_URING &&
                                     (job->workload == WORKLOAD_PINGPONG || job->direction != DIRECTION_BOTH);
                        CHECK_INT(strstr(effective, "\"receive_method\":\"recv\"") != NULL,
                                  !multishot && !waits && receives(job, end));
                        CHECK_INT(strstr(effective, "\"receive_method\":\"recv MSG_WAITALL\"") != NULL,
                                  !multishot && waits && receives(job, end));
                        /* in how many parts a message arrived is not known to a receiver that waits for the whole */
                        const char *counted = d.ends[end].counters;
                        CHECK_INT(strstr(counted, "\"partial_receives\":null,\"partial_receives_reason\":") != NULL,
                                  waits && !(multishot && receives(job, end)));
                        CHECK_INT(strstr(counted, "\"partial_sends\":null,\"partial_sends_reason\":") != NULL,
                                  waits && !(multishot && receives(job, end)));
                        CHECK_INT(strstr(effective, "receive_buffers") != NULL, multishot && receives(job, end));
                        CHECK(many || !cannot);
                }
                driver_deinit(&d);
        }
}

/* A report names the rings that are there: an end that sends without copying has one for that, an end that receives
 * another, and an end that does both has both. */
static void test_rings(void) {
        IN_LANES(lanes_of_locked_pages(), NULL, test_rings);
        for (size_t m = 0; m < ELEMENTS(modes); m++)
                for (size_t k = 0; k < ELEMENTS(jobs) * n_engines; k++) {
                        if (!lanes_my_turn())
                                continue;
                        const struct job *job = &jobs[k % ELEMENTS(jobs)];
                        struct driver d;
                        struct driver_spec s = counted_spec(job, engines[k / ELEMENTS(jobs)], modes[m], 20);
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                const char *effective = d.ends[end].effective_at_end;
                                bool uring = s.point.engine == ENGINE_IO_URING;
                                bool zero = uring && modes[m] == COPY_ZERO && sends(job, end);
                                bool both = zero && receives(job, end);
                                CHECK_INT(strstr(effective, "\"io_uring\":{") != NULL, uring);
                                CHECK_INT(strstr(effective, "\"io_uring_zero_copy\":{") != NULL, both);
                                CHECK_INT(strstr(effective, "recv take no registered buffer") != NULL,
                                          uring && (!zero || both));
                        }
                        driver_deinit(&d);
                }
}

static bool is(const char *text, const char *key, const char *printed) {
        struct json *root;
        if (!text || json_parse(text, strlen(text), &root, NULL) < 0)
                return false;
        _cleanup_free_ char *value = json_get(root, key) ? json_print(json_get(root, key)) : NULL;
        bool same = value && strcmp(value, printed) == 0;
        json_free(root);
        if (!same)
                fprintf(stderr, "%s is %s, expected %s\n", key, value ? value : "not there", printed);
        return same;
}

/* Every connection of both ends has the requested options, read back from the sockets, before and after the run. */
static void test_socket_options(void) {
        for (size_t e = 0; e < n_engines; e++)
                for (enum toggle nodelay = TOGGLE_UNSET; nodelay <= TOGGLE_OFF; nodelay++) {
                        struct driver d;
                        struct driver_spec s = counted_spec(&jobs[0], engines[e], COPY_ONE, 50);
                        bool may_poll = geteuid() == 0; /* CAP_NET_ADMIN: to poll longer than net.core.busy_read */
                        s.point.threads = 3;
                        s.options.nodelay = nodelay;
                        s.options.sndbuf = 40000;
                        s.options.rcvbuf = 50000;
                        s.options.busy_poll = may_poll ? 7 : 0;
                        (void) snprintf(s.options.congestion, sizeof s.options.congestion, "reno");
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                const char *reports[] = {d.ends[end].effective, d.ends[end].effective_at_end};
                                for (size_t i = 0; i < ELEMENTS(reports); i++) {
                                        CHECK(is(reports[i], "nodelay", nodelay == TOGGLE_OFF ? "false" : "true"));
                                        CHECK(is(reports[i], "sndbuf_bytes", "80000"));
                                        CHECK(is(reports[i], "rcvbuf_bytes", "100000"));
                                        CHECK(!may_poll || is(reports[i], "busy_poll_us", "7"));
                                        CHECK(is(reports[i], "congestion", "\"reno\""));
                                        CHECK(!strstr(reports[i], "bytes_max")); /* the same on all of them */
                                }
                        }
                        driver_deinit(&d);
                }
}

/* Cases that need a ring are left out below; one of them gives the reason. */
static void test_rings_that_are_not_to_be_had(void) {
        SKIP("%s: nothing is done by io_uring", no_rings);
}

int main(void) {
        no_rings = ring_trouble();
        if (no_rings) {
                n_engines--;
                RUN(test_rings_that_are_not_to_be_had);
        }
        RUN(test_every_mode_by_time);
        RUN(test_notifications);
        RUN(test_odd_sizes_by_count);
        RUN(test_short_messages_of_streams);
        RUN(test_latency_of_messages);
        RUN(test_no_stamp);
        RUN(test_rate_by_time);
        RUN(test_rate_by_count);
        RUN(test_every_verification);
        RUN(test_method_of_sending);
        RUN(test_method_of_receiving);
        RUN(test_rings);
        RUN(test_socket_options);
        RUN(test_proof_has_every_page);
        RUN(test_proof_has_buffers_of_many);
        return check_end();
}
