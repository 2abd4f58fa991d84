/* SPDX-License-Identifier: MIT */

/* The probe as two threads take it that share a page, as two agents do; and as one takes it that is left alone. */

#include "agent/measure/probe.h"

#include "check.h"
#include "schema/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct side {
        struct probe_order order;
        unsigned passs;
        int cpu; /* -1: anywhere */
        struct probe got[2];
        int error;
};

static void *take(void *userdata) {
        struct side *s = userdata;
        if (s->cpu >= 0) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET((size_t) s->cpu, &set);
                if (sched_setaffinity(0, sizeof set, &set) < 0)
                        s->error = -errno;
        }
        for (unsigned i = 0; i < s->passs && s->error == 0; i++) {
                s->order.pass = i;
                probe_take(&s->order, &s->got[i]);
        }
        return NULL;
}

static void *page;

static bool new_page(void) {
        free(page);
        page = aligned_alloc(PROBE_PAGE_BYTES, PROBE_PAGE_BYTES);
        if (page)
                memset(page, 0, PROBE_PAGE_BYTES);
        return page;
}

/* The first two CPUs that this process may use; false: there is one. */
static bool two_cpus(int ret[2]) {
        cpu_set_t mine;
        int n = 0;
        if (sched_getaffinity(0, sizeof mine, &mine) < 0)
                return false;
        for (size_t i = 0; i < CPU_SETSIZE && n < 2; i++)
                if (CPU_ISSET(i, &mine))
                        ret[n++] = (int) i;
        return n == 2;
}

static bool run_both(struct side sides[2]) {
        pthread_t threads[2];
        if (!new_page())
                return false;
        for (int i = 0; i < 2; i++) {
                sides[i].order = (struct probe_order){.page = page, .second = i == 1};
                if (pthread_create(&threads[i], NULL, take, &sides[i]) != 0)
                        return false;
        }
        for (int i = 0; i < 2; i++)
                if (pthread_join(threads[i], NULL) != 0)
                        return false;
        return sides[0].error == 0 && sides[1].error == 0;
}

/* Each round took some time, or none has a figure. */
static bool is_whole(const struct probe_series *s) {
        for (size_t i = 0; i < PROBE_ROUNDS; i++)
                if ((s->round_ns[i] != 0) != (s->absence == PROBE_TAKEN))
                        return false;
        return true;
}

static bool all_whole(const struct probe *p) {
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++)
                if (!is_whole(&p->series[kind]))
                        return false;
        return p->series[PROBE_GETPID].absence == PROBE_TAKEN && p->series[PROBE_MEMCPY].absence == PROBE_TAKEN &&
               p->cpu_ns > 0 && p->work_ns > 0 && p->cost_ns >= p->work_ns;
}

/* On a machine that is so busy that a CPU does not get to one of them for a while, they may not meet. */
static bool as_expected(enum probe_absence got, enum probe_absence want) {
        return got == want || got == PROBE_LATE;
}

static void two_ends(void) {
        int cpus[2];
        if (!two_cpus(cpus))
                SKIP("both ends need a CPU of their own: this process has one");
        struct side sides[2] = {{.cpu = cpus[0], .passs = 2}, {.cpu = cpus[1], .passs = 2}};
        CHECK(run_both(sides));
        for (int pass = 0; pass < 2; pass++)
                for (int i = 0; i < 2; i++) {
                        const struct probe *p = &sides[i].got[pass];
                        enum probe_absence want = i ? PROBE_AT_OTHER_END : PROBE_TAKEN;
                        CHECK(all_whole(p));
                        CHECK_UINT(p->cpu, cpus[i]);
                        CHECK_UINT(p->moved, 0);
                        CHECK(as_expected(p->series[PROBE_HAND_OVER].absence, want));
                        CHECK(as_expected(p->series[PROBE_WAKE_UP].absence, want));
                        CHECK(as_expected(p->offset.absence, want));
                        /* the threads of one process read one clock, or the kernel would not have chosen it */
                        if (p->offset.absence == PROBE_TAKEN)
                                CHECK(p->offset.low_ns < p->offset.high_ns &&
                                      p->offset.low_ns < (int64_t) NSEC_PER_MSEC &&
                                      p->offset.high_ns > -(int64_t) NSEC_PER_MSEC);
                        else
                                CHECK(p->offset.low_ns == 0 && p->offset.high_ns == 0);
                }
}

static void two_ends_on_one_cpu(void) {
        int cpus[2] = {0, 0};
        (void) two_cpus(cpus);
        struct side sides[2] = {{.cpu = cpus[0], .passs = 2}, {.cpu = cpus[0], .passs = 2}};
        CHECK(run_both(sides));
        for (int pass = 0; pass < 2; pass++)
                for (int i = 0; i < 2; i++) {
                        const struct probe *p = &sides[i].got[pass];
                        CHECK(all_whole(p));
                        CHECK(as_expected(p->series[PROBE_HAND_OVER].absence, PROBE_SAME_CPU));
                        CHECK(as_expected(p->offset.absence, PROBE_SAME_CPU));
                        CHECK(as_expected(p->series[PROBE_WAKE_UP].absence, i ? PROBE_AT_OTHER_END : PROBE_TAKEN));
                }
}

static void one_end(void) {
        struct side side = {.passs = 2, .cpu = -1};
        take(&side);
        CHECK_INT(side.error, 0);
        for (int pass = 0; pass < 2; pass++) {
                CHECK(all_whole(&side.got[pass]));
                CHECK_INT(side.got[pass].series[PROBE_HAND_OVER].absence, PROBE_ONE_END);
                CHECK_INT(side.got[pass].series[PROBE_WAKE_UP].absence, PROBE_ONE_END);
                CHECK_INT(side.got[pass].offset.absence, PROBE_ONE_END);
        }
}

/* Beside the threads 0, for which it leaves what is of both ends. */
static void a_further_thread(void) {
        struct probe p;
        probe_take(&(struct probe_order){.thread = 3}, &p);
        CHECK(all_whole(&p));
        CHECK_UINT(p.thread, 3);
        CHECK_INT(p.series[PROBE_HAND_OVER].absence, PROBE_OTHER_THREAD);
        CHECK_INT(p.series[PROBE_WAKE_UP].absence, PROBE_OTHER_THREAD);
        CHECK_INT(p.offset.absence, PROBE_OTHER_THREAD);
}

/* Those with CPUs of their own. */
static void how_many_take_one(void) {
        CHECK_UINT(probe_others(1, 4, false), 0);
        CHECK_UINT(probe_others(4, 4, false), 3);
        CHECK_UINT(probe_others(3, 4, false), 2);
        CHECK_UINT(probe_others(9, 4, false), 3);
        CHECK_UINT(probe_others(9, 1, false), 0);
        CHECK_UINT(probe_others(9, 0, false), 0);
        CHECK_UINT(probe_others(9, 4, true), 0);
        CHECK_UINT(probe_others(1024, 1024, false), 1023);
}

/* The other end never comes: what is its own is known all the same, and nothing hangs. */
static void an_end_alone(void) {
        for (int second = 0; second < 2; second++) {
                struct side side = {.passs = 1, .cpu = -1};
                CHECK(new_page());
                side.order = (struct probe_order){.page = page, .second = second};
                take(&side);
                CHECK_INT(side.error, 0);
                CHECK(all_whole(&side.got[0]));
                CHECK_INT(side.got[0].series[PROBE_HAND_OVER].absence, PROBE_LATE);
                CHECK_INT(side.got[0].series[PROBE_WAKE_UP].absence, PROBE_LATE);
                CHECK_INT(side.got[0].offset.absence, PROBE_LATE);
        }
}

/* A thread that takes a probe, for another one to move. */
struct mover {
        struct side *side;
        pthread_t thread;
        bool done; /* atomic: the probe is over */
};

static void *take_moved(void *userdata) {
        struct mover *m = userdata;
        take(m->side);
        __atomic_store_n(&m->done, true, __ATOMIC_SEQ_CST);
        return NULL;
}

static bool put_on(const struct mover *m, int cpu) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t) cpu, &set);
        return pthread_setaffinity_np(m->thread, sizeof set, &set) == 0;
}

/* Until it has run for so long, in all; false: its probe was over before. */
static bool has_run(struct mover *m, uint64_t ns) {
        clockid_t clock;
        struct timespec t = {0};
        if (pthread_getcpuclockid(m->thread, &clock) != 0)
                return false;
        while (!__atomic_load_n(&m->done, __ATOMIC_SEQ_CST)) {
                if (clock_gettime(clock, &t) == 0 && (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec >= ns)
                        return true;
                (void) usleep(100);
        }
        return false;
}

/* It begins and ends on one CPU, and runs on another for some rounds in between. */
static void a_thread_that_moves_and_returns(void) {
        int cpus[2];
        if (!two_cpus(cpus))
                SKIP("one CPU");
        for (unsigned i = 0; i < 50; i++) {
                struct side side = {.passs = 1, .cpu = cpus[0]};
                struct mover m = {.side = &side};
                CHECK_INT(pthread_create(&m.thread, NULL, take_moved, &m), 0);
                bool went = has_run(&m, NSEC_PER_MSEC) && put_on(&m, cpus[1]);
                bool returned = went && has_run(&m, 7 * NSEC_PER_MSEC) && put_on(&m, cpus[0]);
                returned = returned && !__atomic_load_n(&m.done, __ATOMIC_SEQ_CST);
                CHECK_INT(pthread_join(m.thread, NULL), 0);
                CHECK_INT(side.error, 0);
                if (!returned || side.got[0].cpu != (uint32_t) cpus[0])
                        continue;
                CHECK_UINT(side.got[0].moved, 1);
                return;
        }
        SKIP("this machine is too busy to move a thread within its probe");
}

enum { WHOLE, GIVEN_UP, WRONG };

/* In a child, which its parent stops. */
static int take_alone(int began) {
        struct probe p;
        if (write(began, "", 1) != 1)
                return WRONG;
        probe_take(&(struct probe_order){.page = NULL}, &p);
        if (all_whole(&p))
                return WHOLE;
        for (size_t kind = 0; kind < PROBE_KIND_COUNT; kind++) {
                bool own = kind == PROBE_GETPID || kind == PROBE_MEMCPY;
                if (!is_whole(&p.series[kind]) || p.series[kind].absence != (own ? PROBE_STARVED : PROBE_ONE_END))
                        return WRONG;
        }
        return GIVEN_UP;
}

/* A stop of more than a second in the midst of its own operations, which take some 30 ms. */
static void a_cpu_that_others_have(void) {
        int outcome = WHOLE;
        for (unsigned i = 0; i < 20 && outcome == WHOLE; i++) {
                int began[2], status = 0;
                char byte;
                CHECK_INT(pipe2(began, O_CLOEXEC), 0);
                pid_t pid = fork();
                if (pid == 0)
                        _exit(take_alone(began[1]));
                CHECK(pid > 0 && read(began[0], &byte, 1) == 1);
                (void) usleep(5000);
                (void) kill(pid, SIGSTOP);
                (void) usleep(1200000);
                (void) kill(pid, SIGCONT);
                CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
                outcome = WEXITSTATUS(status);
                (void) close(began[0]);
                (void) close(began[1]);
        }
        CHECK_INT(outcome, GIVEN_UP);
}

int main(void) {
        RUN(a_cpu_that_others_have);
        RUN(one_end);
        RUN(two_ends);
        RUN(two_ends_on_one_cpu);
        RUN(an_end_alone);
        RUN(a_further_thread);
        RUN(how_many_take_one);
        RUN(a_thread_that_moves_and_returns);
        free(page);
        return check_end();
}
