/* SPDX-License-Identifier: MIT */

/* A worker's accounts: how two readings are subtracted, how they are shown, and what a thread that is not there gives.
 * test-counters has them together with the hardware's. */

#include "agent/base/agent.h"
#include "agent/measure/usage.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <sched.h>
#include <sys/syscall.h>

/* malloc()ed; NULL when it cannot be */
static char *shown(const struct usage *u) {
        struct json_writer w;
        char *text = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        usage_to_json(u, &w);
        json_object_end(&w);
        (void) json_writer_steal(&w, &text, NULL);
        json_writer_deinit(&w);
        return text;
}

/* Every counter is subtracted from its own and added to its own. */
static void counters_are_subtracted_one_by_one(void) {
        const size_t n = offsetof(struct usage, migrations_error) / sizeof(uint64_t);
        struct usage sum = {0}, later = {0}, earlier = {0};
        uint64_t *s = (uint64_t *) (void *) &sum, *l = (uint64_t *) (void *) &later;
        uint64_t *e = (uint64_t *) (void *) &earlier;
        CHECK_UINT(n, 17); /* all but the last two members */
        for (size_t i = 0; i < n; i++) {
                s[i] = 1000;
                l[i] = UINT64_MAX - i;
                e[i] = UINT64_MAX - 2 * i - 5;
        }
        usage_add(&sum, &later, &earlier);
        for (size_t i = 0; i < n; i++)
                CHECK_UINT(s[i], 1005 + i);
        CHECK_INT(sum.migrations_error, 0);
        CHECK(!sum.zerocopy);
}

static void what_is_unknown_once_is_unknown_in_the_sum(void) {
        const struct usage known = {0}, gone = {.migrations_error = ENOENT}, forbidden = {.migrations_error = EACCES};
        struct usage a = {0}, b = {0}, c = {0};
        usage_add(&a, &gone, &known);
        CHECK_INT(a.migrations_error, ENOENT);
        usage_add(&b, &known, &gone);
        CHECK_INT(b.migrations_error, ENOENT);
        usage_add(&c, &gone, &forbidden);
        CHECK_INT(c.migrations_error, ENOENT);
        usage_add(&c, &known, &known); /* another thread's are known: the sum's are not */
        CHECK_INT(c.migrations_error, ENOENT);
}

static void shown_with_their_sums(void) {
        const struct usage u = {.partial_sends = 1,
                                .partial_receives = 2,
                                .eagain = 3,
                                .eintr = 4,
                                .voluntary_switches = 5,
                                .involuntary_switches = 6,
                                .minor_faults = 7,
                                .major_faults = 8,
                                .cpu_ns = 1000,
                                .user_ticks = 1,
                                .system_ticks = 2,
                                .migrations = 9};
        _cleanup_free_ char *text = shown(&u);
        CHECK_STRING(text, "{\"partial_sends\":1,\"partial_receives\":2,\"eagain\":3,\"eintr\":4,\"context_switches\":"
                           "11,\"voluntary_switches\":5,\"involuntary_switches\":6,\"page_faults\":15,"
                           "\"minor_faults\":7,\"major_faults\":8,\"task_clock_ns\":1000,\"cpu_ns\":1000,"
                           "\"user_ns\":333,\"system_ns\":667,\"migrations\":9}");
}

static void nulls_have_their_reasons(void) {
        const struct usage u = {.cpu_ns = 1000, .migrations = 9, .migrations_error = ENOENT};
        _cleanup_free_ char *text = shown(&u);
        CHECK(text);
        CHECK(strstr(text, "\"cpu_ns\":1000,\"user_ns\":null,\"user_ns_reason\":\"the window was shorter than a clock "
                           "tick of CPU time\",\"system_ns\":null,\"system_ns_reason\":\"the window was shorter than a "
                           "clock tick of CPU time\""));
        CHECK(strstr(text, "\"migrations\":null,\"migrations_reason\":\"/proc/PID/task/TID/sched: No such file or "
                           "directory\"}"));
        CHECK(!strstr(text, "zerocopy") && !strstr(text, "enobufs"));
}

static void zero_copy_has_its_fraction(void) {
        const struct usage some = {.zerocopy_sends = 9, .zerocopy_completions = 8, .zerocopy_copied = 2, .enobufs = 1};
        const struct usage none = {.zerocopy = true};
        _cleanup_free_ char *text = shown(&some), *idle = shown(&none);
        CHECK(text && strstr(text, "\"zerocopy_sends\":9,\"zerocopy_completions\":8,\"zerocopy_copied\":2,\"enobufs\":"
                                   "1,\"zerocopy_copied_fraction\":0.25,"));
        CHECK(idle && strstr(idle, "\"zerocopy_copied_fraction\":null,\"zerocopy_copied_fraction_reason\":\"no send "
                                   "was notified in the window\","));
}

/* ---- this thread ---- */

static struct agent agent;
static struct worker workers[2]; /* static: see test-counters.c */

static void take_this_thread(struct usage *ret) {
        memset(&agent, 0, sizeof agent);
        memset(workers, 0, sizeof workers);
        agent.workers = workers;
        agent.n_workers = 2;
        workers[1].tid = (pid_t) syscall(SYS_gettid);
        workers[1].stage = WORKER_LOOPS;
        workers[1].eagain = 3;
        workers[1].partial_sends = 4;
        memset(ret, 0xa5, sizeof *ret);
        CHECK_INT(usage_take(&agent, 1, ret), 0);
}

static void this_threads_accounts_grow(void) {
        struct usage before, after, d = {0};
        struct timespec a, b;
        take_this_thread(&before);
        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (volatile unsigned i = 0; i < 1000000; i++)
                ;
        for (unsigned i = 0; i < 5; i++) /* so long that it is not over before this thread has gone to sleep */
                (void) usleep(5000);
        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        take_this_thread(&after);
        CHECK_UINT(after.eagain, 3);
        CHECK_UINT(after.partial_sends, 4);
        usage_add(&d, &after, &before);
        CHECK(d.voluntary_switches >= 5 && d.voluntary_switches < 1000000);
        uint64_t own_ns = (uint64_t) (b.tv_sec - a.tv_sec) * NSEC_PER_SEC + (uint64_t) b.tv_nsec - (uint64_t) a.tv_nsec;
        CHECK(d.cpu_ns >= own_ns); /* the same clock, read outside of the two readings here */
        CHECK(d.migrations_error || d.migrations < 1000000);
}

/* Before its loop and behind it a thread has CPU time that is none of its messages'. */
static void only_loops_have_cpu_time(void) {
        static const struct {
                enum worker_stage stage;
                uint64_t base_ns, ended_ns, seen_ns, expected_ns; /* UINT64_MAX: more than was seen */
        } rows[] = {
                {WORKER_DUE, 0, 7, 0, 7},
                {WORKER_ENDED, 0, 7, 7, 7},
                {WORKER_LOOPS, 0, 0, 0, UINT64_MAX},
                {WORKER_ENDED, 0, 7, 9, 9},              /* the loop ended while it was counted */
                {WORKER_LOOPS, UINT64_MAX / 4, 7, 7, 7}, /* read before the loop began, and seen after it */
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                struct usage u;
                memset(&agent, 0, sizeof agent);
                memset(workers, 0, sizeof workers);
                agent.workers = workers;
                agent.n_workers = 1;
                workers[0].tid = (pid_t) syscall(SYS_gettid);
                workers[0].stage = rows[i].stage;
                workers[0].cpu_base_ns = rows[i].base_ns;
                workers[0].cpu_ns = rows[i].ended_ns;
                workers[0].cpu_seen_ns = rows[i].seen_ns;
                CHECK_INT(usage_take(&agent, 0, &u), 0);
                if (rows[i].expected_ns == UINT64_MAX ? u.cpu_ns <= rows[i].seen_ns : u.cpu_ns != rows[i].expected_ns)
                        CHECK_FAIL("row %zu has %" PRIu64 " ns", i, u.cpu_ns);
        }
}

/* More than this thread may be charged with for time that the hypervisor took away. */
#define BUSY_NS (300 * NSEC_PER_MSEC)

static void *be_busy(void *unused) {
        struct timespec ts;
        do
                (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        while (ts.tv_sec == 0 && (uint64_t) ts.tv_nsec < BUSY_NS);
        return unused;
}

/* What another thread of the process uses is not this one's, which sleeps meanwhile. */
static void another_thread_is_not_counted(void) {
        struct usage before, after, d = {0};
        pthread_t thread;
        take_this_thread(&before);
        CHECK_INT(pthread_create(&thread, NULL, be_busy, NULL), 0);
        pthread_join(thread, NULL);
        take_this_thread(&after);
        usage_add(&d, &after, &before);
        CHECK(d.cpu_ns > 0 && d.cpu_ns < BUSY_NS);
}

static void a_thread_that_is_not_there(void) {
        struct usage u = {.eagain = 42};
        memset(&agent, 0, sizeof agent);
        memset(workers, 0, sizeof workers);
        agent.workers = workers;
        workers[1].tid = 1 << 30;
        CHECK(usage_take(&agent, 1, &u) < 0);
        CHECK(strncmp(agent.failure.detail, "the counters of thread 1 cannot be read: ", 41) == 0);
        CHECK_UINT(u.eagain, 42);
}

int main(void) {
        RUN(counters_are_subtracted_one_by_one);
        RUN(what_is_unknown_once_is_unknown_in_the_sum);
        RUN(shown_with_their_sums);
        RUN(nulls_have_their_reasons);
        RUN(zero_copy_has_its_fraction);
        RUN(this_threads_accounts_grow);
        RUN(only_loops_have_cpu_time);
        RUN(another_thread_is_not_counted);
        RUN(a_thread_that_is_not_there);
        return check_end();
}
