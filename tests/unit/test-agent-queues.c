/* SPDX-License-Identifier: MIT */

/*
 * Real pairs of agents over what keeps messages apart: System V and POSIX queues, Unix datagrams and sequenced packets.
 * Whole and in chunks, every byte checked; ends that are killed or stopped, and what is left then; limits that are in
 * the way. In an IPC namespace of its own, so that the machine's queues are left alone.
 */

#include "check.h"
#include "figure.h"
#include "interrupt.h"
#include "lanes.h"
#include "pairs.h"
#include "rings.h"
#include "schema/util.h"
#include "transports.h"

#include <fcntl.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static enum transport transports[TRANSPORT_COUNT], queues[TRANSPORT_COUNT];
static size_t n_transports, n_queues;
static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};

static int64_t read_number(const char *path) {
        int64_t v = -1;
        _cleanup_fclose_ FILE *f = fopen(path, "re");
        return f && fscanf(f, "%" SCNd64, &v) == 1 ? v : -1;
}

static struct driver_spec spec_of(enum transport t, enum workload k) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.transport = t;
        s.point.workload = k;
        s.verify = VERIFY_CHECKSUM;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.stall_ns = 5 * NSEC_PER_SEC; /* a busy machine is no fault */
        return s;
}

static bool is_socket(enum transport t) {
        return transport_terms[t].carrier == CARRIER_SOCKET;
}

/* Sockets by both engines in turn, where there are rings, each of them in both copy modes, whole and in chunks. */
static void test_every_byte_arrives(void) {
        IN_LANES(lanes_of_queues(), interrupt_isolate, test_every_byte_arrives);
        static const struct {
                uint64_t size, chunk, messages;
                uint32_t threads;
        } cases[] = {
                {1, 0, 500, 1},        {7, 0, 500, 3},       {4096, 0, 500, 2},     {8191, 0, 300, 1},
                {8192, 8192, 100, 1},  {1, 4096, 100, 1},    {8193, 8192, 200, 2},  {1000, 1, 5, 1},
                {10000, 7, 20, 1},     {10000, 1000, 50, 3}, {65549, 8192, 100, 2}, {65549, 5000, 50, 1},
                {4 * MIB, 8192, 5, 1},
        };
        const char *no_rings = ring_trouble();
        printf("sockets: %s\n", no_rings ? no_rings : "both engines");
        for (size_t t = 0; t < n_transports; t++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                                struct driver d;
                                struct driver_spec s = spec_of(transports[t], workloads[k]);
                                int64_t chunk = 0, chunks = 0, size = (int64_t) cases[i].size;
                                if (!lanes_my_turn())
                                        continue;
                                if (!no_rings && is_socket(transports[t]) && (i / 2 + k) % 2)
                                        s.point.engine = ENGINE_IO_URING;
                                if (transport_terms[transports[t]].copy_modes & 1u << COPY_ONE && i % 2) {
                                        s.point.copy_mode = COPY_ONE;
                                        s.point.fields = SPEC_FIELDS_OF_STUDY;
                                }
                                s.point.message_size = cases[i].size;
                                s.point.threads = cases[i].threads;
                                s.chunk_bytes = cases[i].chunk;
                                s.messages = cases[i].messages;
                                s.warmup_ns = (i % 2) * 5 * NSEC_PER_MSEC;
                                CHECK(run_well(&d, &s));
                                CHECK_UINT(d.ends[END_SECOND].report.messages, cases[i].messages * cases[i].threads);
                                bool has_chunks = number_in(d.ends[END_FIRST].effective_at_end, "chunk_bytes", &chunk);
                                CHECK_INT(has_chunks, cases[i].size > cases[i].chunk && cases[i].chunk != 0);
                                CHECK(!has_chunks || chunk == (int64_t) cases[i].chunk);
                                CHECK_INT(number_in(d.ends[END_FIRST].effective_at_end, "chunks_per_message", &chunks),
                                          has_chunks);
                                CHECK(!has_chunks || (chunks * chunk >= size && (chunks - 1) * chunk < size));
                                driver_deinit(&d);
                        }
        CHECK_NO_FAULT(interrupt_leftovers());
}

static void test_every_verification_by_time(void) {
        IN_LANES(lanes_of_queues(), interrupt_isolate, test_every_verification_by_time);
        for (size_t t = 0; t < n_queues; t++)
                for (size_t k = 0; k < ELEMENTS(workloads); k++)
                        for (enum verify v = VERIFY_NONE; v < VERIFY_COUNT; v++) {
                                struct driver d;
                                struct driver_spec s = spec_of(queues[t], workloads[k]);
                                if (!lanes_my_turn())
                                        continue;
                                s.verify = v;
                                s.duration_ns = 200 * NSEC_PER_MSEC;
                                s.warmup_ns = 10 * NSEC_PER_MSEC;
                                CHECK(something_arrives(&d, &s, NULL));
                                driver_deinit(&d);
                        }
}

/* In an open loop the last message is not there before its time, and each has one latency, at the end that knows when
 * it was due; also of messages in pieces. */
static void test_rate(void) {
        for (size_t i = 0; i < n_transports * ELEMENTS(workloads) * 2; i++) {
                enum workload k = workloads[i / 2 % ELEMENTS(workloads)];
                enum end timed = k == WORKLOAD_STREAM ? END_SECOND : END_FIRST;
                struct driver d;
                struct driver_spec s = spec_of(transports[i / 2 / ELEMENTS(workloads)], k);
                s.point.threads = 2;
                s.chunk_bytes = i % 2 ? 1000 : 0;
                s.messages = 30;
                s.rate = 1000;
                CHECK(run_well(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK_UINT(d.ends[end].report.messages, 60);
                        CHECK_UINT(histogram_total(&d.ends[end].latency), end == timed ? 60 : 0);
                }
                CHECK(d.ends[timed].report.window_ns >= 59 * NSEC_PER_SEC / 2000);
                driver_deinit(&d);
        }
}

/* A receiver that stands still fills the queue; nothing is lost. */
static void test_receiver_that_stands_still(void) {
        for (size_t t = 0; t < n_transports; t++) {
                struct driver d;
                struct driver_spec s = spec_of(transports[t], WORKLOAD_STREAM);
                s.point.message_size = 20000;
                s.chunk_bytes = 3000;
                s.duration_ns = 250 * NSEC_PER_MSEC;
                CHECK_INT(driver_open(&d, &s), 0);
                CHECK_INT(driver_start(&d), 0);
                stop_and_continue(d.ends[END_SECOND].pid, 10);
                CHECK_INT(driver_collect(&d, util_now_ns() + 60 * NSEC_PER_SEC), 0);
                CHECK_INT(driver_close(&d), 0);
                driver_deinit(&d);
        }
}

static void test_depth(void) {
        for (size_t t = 0; t < n_queues; t++)
                for (uint64_t depth = 1; depth <= 4; depth += 3) {
                        struct driver d;
                        struct driver_spec s = spec_of(queues[t], WORKLOAD_PINGPONG);
                        int64_t n = 0;
                        s.messages = 200;
                        s.point.message_size = 1000;
                        s.options.msgq_depth = depth;
                        CHECK(run_well(&d, &s));
                        for (enum end end = END_FIRST; end < END_COUNT; end++) {
                                CHECK(number_in(d.ends[end].effective, "queue_messages", &n));
                                CHECK_UINT(n, depth);
                        }
                        driver_deinit(&d);
                }
}

static void test_many_threads(void) {
        for (size_t t = 0; t < n_queues; t++) {
                struct driver d;
                struct driver_spec s = spec_of(queues[t], WORKLOAD_PINGPONG);
                s.messages = 3;
                s.point.threads = 40;
                s.point.message_size = 64;
                s.interval_ns = NSEC_PER_SEC;
                CHECK(run_well(&d, &s));
                CHECK_UINT(d.ends[END_FIRST].report.messages, 3 * s.point.threads);
                driver_deinit(&d);
        }
        CHECK_NO_FAULT(interrupt_leftovers());
}

static void expect_refusal(const struct driver_spec *s, const char *words) {
        struct driver d;
        int r = driver_run(&d, s);
        if (r == 0 || !strstr(d.trouble, words))
                CHECK_FAIL("%d, \"%s\"; expected words: %s", r, d.trouble, words);
        driver_deinit(&d);
        CHECK_NO_FAULT(interrupt_leftovers());
}

/* What is beyond the namespace's limits is refused before anything is sent: System V would wait for ever. */
static void test_limits_are_named(void) {
        struct driver_spec s = spec_of(TRANSPORT_MSGQ_SYSV, WORKLOAD_STREAM);
        char words[80];
        s.messages = 1;
        s.point.message_size = (uint64_t) read_number("/proc/sys/kernel/msgmax") + 1;
        (void) snprintf(words, sizeof words, "kernel.msgmax is %" PRIu64, s.point.message_size - 1);
        expect_refusal(&s, words);
        s.point.message_size = 4096;
        s.options.msgq_depth = (uint64_t) read_number("/proc/sys/kernel/msgmnb") / 4096 + 1;
        if (geteuid() != 0) /* a user with CAP_SYS_RESOURCE, as this test may be, is not bound by it */
                expect_refusal(&s, "kernel.msgmnb is less");

        s = spec_of(TRANSPORT_MSGQ_POSIX, WORKLOAD_STREAM);
        s.messages = 1;
        s.point.message_size = 16 * MIB + 1;
        (void) snprintf(words, sizeof words, "fs.mqueue.msgsize_max is %" PRId64,
                        read_number("/proc/sys/fs/mqueue/msgsize_max"));
        expect_refusal(&s, words);

        struct rlimit before, few;
        s.point.message_size = 4096;
        CHECK_INT(getrlimit(RLIMIT_MSGQUEUE, &before), 0);
        few = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
        CHECK_INT(setrlimit(RLIMIT_MSGQUEUE, &few), 0);
        expect_refusal(&s, "RLIMIT_MSGQUEUE, which is 4096 and counts all queues of the user");
        CHECK_INT(setrlimit(RLIMIT_MSGQUEUE, &before), 0);
}

static bool leftovers_are(const char *beginning) {
        const char *leftovers = interrupt_leftovers();
        return leftovers && strncmp(leftovers, beginning, strlen(beginning)) == 0;
}

/* What interrupt.h searches for is found where it is. */
static void test_leftovers_are_found(void) {
        CHECK_NO_FAULT(interrupt_leftovers());
        int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
        CHECK(id >= 0 && leftovers_are("1 System V queues"));
        CHECK_INT(msgctl(id, IPC_RMID, NULL), 0);
        id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
        CHECK(id >= 0 && leftovers_are("1 System V segments"));
        CHECK_INT(shmctl(id, IPC_RMID, NULL), 0);
        int fd = shm_open("/left", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && leftovers_are("1 objects in /dev/shm"));
        util_close(fd);
        CHECK_INT(shm_unlink("/left"), 0);
        mqd_t queue = mq_open("/left", O_CREAT | O_RDWR, 0600, NULL);
        CHECK(queue >= 0 && leftovers_are("1 POSIX queues"));
        (void) mq_close(queue);
        CHECK_INT(mq_unlink("/left"), 0);
        CHECK_NO_FAULT(interrupt_leftovers());
}

/* The end that is left removes what both had, and the next run goes well. Of whole messages: test-agent-table.c. */
static void interrupt_ends(int signal) {
        for (size_t i = 0; i < n_transports * ELEMENTS(workloads); i++)
                for (enum end victim = END_FIRST; victim < END_COUNT; victim++) {
                        if (!lanes_my_turn())
                                continue;
                        struct driver d;
                        struct driver_spec s =
                                spec_of(transports[i / ELEMENTS(workloads)], workloads[i % ELEMENTS(workloads)]);
                        interrupt_by_time(&s, signal);
                        s.point.threads = 2;
                        s.chunk_bytes = 1000;
                        s.verify = interrupt_verify(i, victim);
                        CHECK_NO_FAULT(interrupt_check(&d, &s, victim, signal));
                        driver_deinit(&d);
                }
}

static void test_killed_end(void) {
        IN_LANES(lanes_of_queues(), interrupt_isolate, test_killed_end);
        interrupt_ends(SIGKILL);
}

static void test_stopped_end(void) {
        IN_LANES(lanes_of_queues(), interrupt_isolate, test_stopped_end);
        interrupt_ends(SIGSTOP);
}

static bool keeps_messages_apart(const struct transport_term *t) {
        return t->delivery == DELIVERY_WHOLE;
}

static bool is_queue(const struct transport_term *t) {
        return t->carrier == CARRIER_QUEUE;
}

int main(void) {
        n_transports = transports_where(keeps_messages_apart, transports);
        n_queues = transports_where(is_queue, queues);
        const char *isolation_trouble = interrupt_isolate();
        if (isolation_trouble) {
                printf("skipped: %s\n", isolation_trouble);
                return 77;
        }
        RUN(test_every_byte_arrives);
        RUN(test_every_verification_by_time);
        RUN(test_rate);
        RUN(test_receiver_that_stands_still);
        RUN(test_depth);
        RUN(test_many_threads);
        RUN(test_limits_are_named);
        RUN(test_leftovers_are_found);
        RUN(test_killed_end);
        RUN(test_stopped_end);
        return check_end();
}
