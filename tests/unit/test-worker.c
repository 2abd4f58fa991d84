/* SPDX-License-Identifier: MIT */

/* Worker threads with loops of this file's, led by the test: they begin and rest on command, return their errors, and
 * come out of a call that they block in. */

#include "agent/base/agent.h"
#include "agent/base/worker.h"
#include "agent/os/last-cache.h"
#include "agent/script/workers.h"
#include "agent/workload/workload.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#define THREADS 3u

static struct agent agent;
static int32_t cpus[2];

/* ---- a workload whose loop is scripted ---- */

static struct {
        worker_loop loop;
        uint32_t failing; /* the thread whose preparation fails; THREADS: none */
        bool words;
        int pipe[2]; /* which stays empty */
} script;

static int prepare(struct worker *w) {
        if (w->index == script.failing)
                return script.words ? failure_set(&w->failure, ENOSPC, "no room for %u", w->index) : -ENOSPC;
        w->loop = script.loop;
        return 0;
}

static int loop_to_limit(struct worker *w) {
        while (!worker_over(w))
                worker_count(&w->messages);
        return 0;
}

static int loop_failing(struct worker *w) {
        return w->index == 1 ? -EPIPE : 0;
}

/* Only a signal gets it out of there. */
static int loop_stuck(struct worker *w) {
        char byte;
        while (!worker_over(w))
                if (read(script.pipe[0], &byte, 1) < 0 && errno == EINTR)
                        worker_count(&w->eintr);
        return 0;
}

static const struct workload_ops workload = {.workload = WORKLOAD_STREAM, .prepare = prepare};

/* ---- the test is the leader; another thread is the main one ---- */

struct crew {
        pthread_t main;
        bool started;
};

static bool crew_open(struct crew *c, worker_loop loop, size_t size) {
        *c = (struct crew){0};
        memset(&agent, 0, sizeof agent);
        agent.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        agent.workload = &workload;
        agent.setup.point = (struct point){.message_size = size, .threads = THREADS};
        script.loop = loop;
        script.failing = THREADS;
        return agent.event_fd >= 0 && workers_new(&agent) == 0;
}

static void *be_main(void *unused) {
        workers_main(&agent);
        return unused;
}

static bool crew_start(struct crew *c) {
        c->started = pthread_create(&c->main, NULL, be_main, NULL) == 0;
        return c->started;
}

static void await_rest(void) {
        while (!workers_resting(&agent)) {
                struct pollfd p = {.fd = agent.event_fd, .events = POLLIN};
                uint64_t n;
                (void) poll(&p, 1, -1);
                (void) !read(agent.event_fd, &n, sizeof n);
        }
}

static void crew_close(struct crew *c) {
        if (c->started) {
                await_rest();
                workers_quit(&agent);
                pthread_join(c->main, NULL);
        }
        workers_free(&agent);
        util_close(agent.event_fd);
}
#define CREW __attribute__((cleanup(crew_close))) struct crew

static void set_limits(uint64_t limit) {
        for (uint32_t i = 0; i < THREADS; i++)
                worker_set_limit(&agent.workers[i], limit);
}

static void new_workers_have_nothing_yet(void) {
        CREW c;
        CHECK(crew_open(&c, loop_to_limit, 1000));
        CHECK_UINT(agent.n_workers, THREADS);
        CHECK_UINT(agent.busy, THREADS); /* until each is prepared */
        CHECK(!workers_resting(&agent) && !workers_failure(&agent));
        for (uint32_t i = 0; i < THREADS; i++) {
                const struct worker *w = &agent.workers[i];
                CHECK((uintptr_t) w % WORKER_LINE == 0);
                CHECK(w->agent == &agent && w->index == i && w->size == 1000);
                CHECK(w->send_fd == -1 && w->receive_fd == -1 && !w->buffer && !w->latency);
                CHECK(w->pace_ns <= 0 && w->messages == 0);
        }
        workers_free(&agent);
        agent.setup.rate = 4;
        CHECK_INT(workers_new(&agent), 0);
        CHECK(agent.workers[2].pace_ns >= 2.5e8 && agent.workers[2].pace_ns <= 2.5e8);
        CHECK(agent.workers[0].pace_offset_ns <= 0 && agent.workers[2].pace_offset_ns > 0);
}

static void they_run_and_rest_on_command(void) {
        static const size_t sizes[] = {1, 4096, 4097, 0};
        for (size_t k = 0; k < ELEMENTS(sizes); k++) {
                CREW c;
                CHECK(crew_open(&c, loop_to_limit, sizes[k]) && crew_start(&c));
                await_rest();
                for (uint32_t i = 0; i < THREADS; i++) {
                        const struct worker *w = &agent.workers[i];
                        CHECK(!w->buffer == (sizes[k] == 0)); /* nothing is moved */
                        CHECK((uintptr_t) w->buffer % 4096 == 0 && w->buffer_length >= sizes[k]);
                        CHECK_UINT(w->messages, 0);
                        CHECK(w->tid > 0 && (i == 0 || w->tid != agent.workers[i - 1].tid));
                }
                for (uint64_t limit = 10; limit <= 1000; limit *= 10) {
                        set_limits(limit);
                        uint64_t start_ns = util_now_ns() + NSEC_PER_MSEC;
                        workers_go(&agent, start_ns);
                        await_rest();
                        for (uint32_t i = 0; i < THREADS; i++) {
                                CHECK_UINT(worker_messages(&agent.workers[i]), limit);
                                CHECK(agent.workers[i].finished_ns >= start_ns);
                        }
                }
                CHECK(!workers_failure(&agent));
        }
}

static void an_error_of_prepare_is_passed_on(void) {
        static const struct {
                uint32_t failing;
                bool words;
                const char *detail;
        } cases[] = {{0, true, "no room for 0"},
                     {2, true, "no room for 2"},
                     {1, false, "thread 1 failed: No space left on device"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CREW c;
                CHECK(crew_open(&c, loop_to_limit, 100));
                script.failing = cases[i].failing;
                script.words = cases[i].words;
                CHECK(crew_start(&c));
                await_rest();
                const struct failure *f = workers_failure(&agent);
                CHECK(f);
                CHECK_STRING(f->detail, cases[i].detail);
                CHECK_INT(f->error, ENOSPC);
        }
}

static void a_loop_that_fails_is_found(void) {
        CREW c;
        CHECK(crew_open(&c, loop_failing, 100) && crew_start(&c));
        await_rest();
        CHECK(!workers_failure(&agent));
        workers_go(&agent, 0);
        await_rest();
        const struct failure *f = workers_failure(&agent);
        CHECK(f);
        CHECK_STRING(f->detail, "thread 1 failed: Broken pipe");
        CHECK_INT(f->error, EPIPE);
}

static void cpus_that_are_none(void) {
        static const struct {
                int32_t cpu;
                const char *detail;
                int error;
        } cases[] = {{-1, "the placement's CPUs are not CPU numbers", ERANGE},
                     {8192, "the placement's CPUs are not CPU numbers", ERANGE},
                     {8191, "thread 1 cannot be pinned to CPU 8191: Invalid argument", EINVAL}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                CREW c;
                CHECK(crew_open(&c, loop_to_limit, 100));
                cpus[0] = 0;
                cpus[1] = cases[i].cpu;
                agent.setup.placement = (struct agent_placement){.cpus = cpus, .n_cpus = 2};
                CHECK(crew_start(&c));
                await_rest();
                const struct failure *f = workers_failure(&agent);
                CHECK(f);
                CHECK_STRING(f->detail, cases[i].detail);
                CHECK_INT(f->error, cases[i].error);
        }
}

/* A kick may come before the call: it is repeated until they rest, as the leader does. */
static void a_kick_gets_them_out(void) {
        CREW c;
        CHECK_INT(pipe2(script.pipe, O_CLOEXEC), 0);
        CHECK(crew_open(&c, loop_stuck, 100) && crew_start(&c));
        await_rest();
        set_limits(WORKER_UNLIMITED);
        workers_go(&agent, 0);
        set_limits(0);
        while (!workers_resting(&agent)) {
                for (uint32_t i = 0; i < THREADS; i++)
                        worker_kick(&agent.workers[i]);
                sched_yield();
        }
        CHECK(!workers_failure(&agent));
        util_close(script.pipe[0]);
        util_close(script.pipe[1]);
}

static void a_recorder_where_there_are_samples(void) {
        CREW c;
        CHECK(crew_open(&c, loop_to_limit, 100));
        struct worker *w = &agent.workers[0];
        CHECK_INT(worker_make_recorder(w), 0);
        CHECK(!w->latency);
        agent.setup.interval_ns = 1;
        CHECK_INT(worker_make_recorder(w), 0);
        CHECK(w->latency);
        struct histogram h;
        recorder_copy(w->latency, &h);
        CHECK_UINT(histogram_total(&h), 0);
}

/* Those for both ways, and those for one. */
static void the_end_closes_every_descriptor(void) {
        int both = eventfd(0, EFD_CLOEXEC), one = eventfd(0, EFD_CLOEXEC), other = eventfd(0, EFD_CLOEXEC);
        {
                CREW c;
                CHECK(crew_open(&c, loop_to_limit, 100));
                agent.workers[0].send_fd = agent.workers[0].receive_fd = both;
                agent.workers[1].send_fd = one;
                agent.workers[2].receive_fd = other;
        }
        CHECK(fcntl(both, F_GETFD) < 0 && fcntl(one, F_GETFD) < 0 && fcntl(other, F_GETFD) < 0);
        CHECK(!agent.workers && agent.n_workers == 0);
        workers_free(&agent);
}

/* Cold sources are made at 100 MB/s at the slowest. */
static void a_cold_source_has_time_to_be_made(void) {
        struct agent a = {.n_workers = THREADS,
                          .setup.point = {.message_size = 64, .threads = THREADS, .transport = TRANSPORT_PIPE}};
        uint64_t cache = last_cache_bytes(), hot = workers_prepare_ns(&a);
        a.setup.point.source = SOURCE_COLD;
        CHECK(workers_prepare_ns(&a) - hot >= THREADS * 2 * (cache ? cache : SPEC_LAST_CACHE_DEFAULT) * 10);
}

int main(void) {
        if (workers_init_signals() < 0)
                return 1;
        RUN(new_workers_have_nothing_yet);
        RUN(they_run_and_rest_on_command);
        RUN(an_error_of_prepare_is_passed_on);
        RUN(a_loop_that_fails_is_found);
        RUN(cpus_that_are_none);
        RUN(a_kick_gets_them_out);
        RUN(a_recorder_where_there_are_samples);
        RUN(the_end_closes_every_descriptor);
        RUN(a_cold_source_has_time_to_be_made);
        return check_end();
}
