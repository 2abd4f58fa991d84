/* SPDX-License-Identifier: MIT */

/* All counters of an agent's threads, from recorded hardware events and the kernel's accounts of this process. */

#include "agent/base/agent.h"
#include "agent/measure/counters.h"
#include "agent/measure/kernel-threads.h"
#include "check.h"
#include "schema/json/json.h"
#include "schema/protocol/protocol.h"
#include "schema/util.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define THREADS 2

/* A thread's handles count up by `step` of the thread at each read; threads from `first_without` on have none. */
struct recording {
        uint64_t reads;
        unsigned opened, closed, first_without;
        int error;
};

static void recorded_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        struct recording *r = userdata;
        bool none = tid <= 0 || r->opened / PERF_HANDLES_MAX >= r->first_without;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        ret->of[event][mode] = none ? r->error : (int) r->opened++;
}

static int recorded_read(void *userdata, int handle, struct perf_reading *ret) {
        struct recording *r = userdata;
        uint64_t turn = r->reads++ / r->opened;
        uint64_t step = (uint64_t) handle / PERF_HANDLES_MAX + 1;
        *ret = (struct perf_reading){.value = 100 * step * turn, .enabled_ns = turn, .running_ns = turn};
        return 0;
}

static void recorded_close(void *userdata, int handle) {
        (void) handle;
        ((struct recording *) userdata)->closed++;
}

/* Static: gcc 12 aligns what lies on AddressSanitizer's fake stack to 32 bytes, and a worker wants 64. */
struct fixture {
        struct agent agent;
        struct worker workers[THREADS];
        struct counters *counters;
};

static void fixture_init(struct fixture *f, const struct perf_source *source) {
        memset(f, 0, sizeof *f);
        f->agent.workers = f->workers;
        f->agent.n_workers = THREADS;
        f->agent.event_fd = eventfd(0, EFD_CLOEXEC);
        for (unsigned i = 0; i < THREADS; i++) {
                f->workers[i].thread = pthread_self();
                f->workers[i].tid = (pid_t) syscall(SYS_gettid);
                f->workers[i].stage = WORKER_LOOPS;
        }
        CHECK(counters_new(&f->agent, source, &f->counters) == 0);
}

static void fixture_deinit(struct fixture *f) {
        counters_free(f->counters);
        util_close(f->agent.event_fd);
}

/* Something that the kernel accounts for: faults, and giving the CPU away. */
static void work(void) {
        size_t length = 64u * 4096u;
        char *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED && madvise(p, length, MADV_NOHUGEPAGE) == 0);
        memset(p, 1, length);
        CHECK(munmap(p, length) == 0);
        struct timespec pause = {.tv_nsec = 5000000};
        for (int i = 0; i < 5; i++)
                nanosleep(&pause, NULL);
}

/* Both threads between two readings, as parsed JSON; numbers that are none read as -1. */
static void measure(struct fixture *f, struct json **ret) {
        struct counters_reading before[THREADS], after[THREADS];
        struct counters_totals totals = {};
        _cleanup_free_ char *text = NULL;

        for (uint32_t i = 0; i < THREADS; i++)
                CHECK(counters_read(f->counters, i, &before[i]) == 0);
        work();
        for (uint32_t i = 0; i < THREADS; i++) {
                CHECK(counters_read(f->counters, i, &after[i]) == 0);
                counters_add(&totals, &after[i], &before[i]);
        }
        CHECK(counters_to_json(&totals, &text) == 0);
        CHECK(text && json_parse(text, strlen(text), ret, NULL) == 0);
}

static int64_t number(const struct json *object, const char *name) {
        int64_t v;
        const struct json *member = json_get(object, name);
        return member && json_as_i64(member, &v) == 0 ? v : -1;
}

static void test_recorded(void) {
        struct recording r = {.first_without = THREADS};
        struct perf_source source = {recorded_open, recorded_read, recorded_close, &r};
        static struct fixture f;
        fixture_init(&f, &source);
        struct json *counters = NULL;
        measure(&f, &counters);
        CHECK(counters);
        CHECK_INT(number(counters, "cycles_user"), 300); /* 100 of the first thread, 200 of the second */
        CHECK_INT(number(counters, "cycles"), 600);
        CHECK_INT(number(counters, "branch_misses_kernel"), 300);
        CHECK(!json_get(counters, "reasons"));
        json_free(counters);
        fixture_deinit(&f);
        CHECK_UINT(r.closed, r.opened);
}

static void test_accounts(void) {
        struct recording r = {.error = -ENOENT};
        struct perf_source source = {recorded_open, recorded_read, recorded_close, &r};
        static struct fixture f;
        fixture_init(&f, &source);
        struct json *counters = NULL;
        measure(&f, &counters);
        CHECK(counters);
        /* the fixture's threads are both this one */
        CHECK(number(counters, "context_switches") >= 5 * THREADS);
        CHECK_INT(number(counters, "context_switches"),
                  number(counters, "voluntary_switches") + number(counters, "involuntary_switches"));
        CHECK(number(counters, "page_faults") >= 64 * THREADS);
        CHECK_INT(number(counters, "page_faults"), number(counters, "minor_faults") + number(counters, "major_faults"));
        CHECK(number(counters, "task_clock_ns") > 0);
        CHECK_INT(number(counters, "task_clock_ns"), number(counters, "cpu_ns"));
        CHECK(json_get(counters, "migrations"));
        CHECK(json_type(json_get(counters, "migrations")) != JSON_NULL || json_get(counters, "migrations_reason"));
        CHECK(json_type(json_get(counters, "cycles")) == JSON_NULL);
        CHECK_UINT(json_length(json_get(counters, "reasons")), 1);
        CHECK(json_get(json_get(counters, "reasons"), "hardware"));
        json_free(counters);
        fixture_deinit(&f);
}

/* The second thread found no descriptor left: the sum is not known, and the first is not passed off as it. */
static void test_short_of_descriptors(void) {
        struct recording r = {.first_without = 1, .error = -EMFILE};
        struct perf_source source = {recorded_open, recorded_read, recorded_close, &r};
        static struct fixture f;
        const char *reason = "";
        fixture_init(&f, &source);
        struct json *counters = NULL;
        measure(&f, &counters);
        CHECK(counters);
        CHECK(json_type(json_get(counters, "llc_misses")) == JSON_NULL);
        CHECK(json_as_string(json_get(json_get(counters, "reasons"), "hardware"), &reason) == 0);
        CHECK(strstr(reason, "RLIMIT_NOFILE"));
        CHECK(number(counters, "context_switches") > 0);
        json_free(counters);
        fixture_deinit(&f);
        CHECK_UINT(r.closed, r.opened);
}

static void note_ring(struct fixture *f, uint32_t worker, uint64_t cpu_ns) {
        const struct usage usage = {.cpu_ns = cpu_ns};
        kernel_threads_begin(f->agent.kernel_threads);
        CHECK_INT(kernel_threads_add(f->agent.kernel_threads, 1, worker, &usage), 0);
        kernel_threads_end(f->agent.kernel_threads);
}

static void check_ring(const struct counters_totals *t, int64_t cycles) {
        _cleanup_free_ char *text = NULL;
        struct json *counters = NULL;
        const char *reason = "";
        CHECK(counters_to_json(t, &text) == 0);
        CHECK(text && json_parse(text, strlen(text), &counters, NULL) == 0);
        CHECK_INT(number(counters, "cycles"), cycles);
        CHECK(number(counters, "cpu_ns") > 0);
        const struct json *reasons = json_get(counters, "reasons");
        CHECK((cycles < 0) == (reasons && json_as_string(json_get(reasons, "hardware"), &reason) == 0));
        CHECK((cycles < 0) == (strstr(reason, "iou-wrk") != NULL));
        json_free(counters);
}

/* The work of the kernel's threads for a ring is in the CPU time and not in the hardware's counts: these are not given
 * as if they were of the same work. They are given for threads for which no kernel thread worked, and are unknown where
 * that is unknown. */
static void test_work_in_the_kernels_threads(void) {
        static const struct {
                uint32_t worker;
                uint64_t before_ns, after_ns;
                int64_t cycles[THREADS], sum; /* -1: null */
        } rows[] = {
                {0, 1000, 1000, {200, 400}, 600},
                {0, 1000, 1001, {-1, 400}, -1},
                {1, 0, 5000, {200, -1}, -1},
                {KERNEL_THREAD_OF_NOBODY, 1000, 1000, {200, 400}, 600},
                {KERNEL_THREAD_OF_NOBODY, 1000, 1001, {-1, -1}, -1},
        };
        for (size_t row = 0; row < ELEMENTS(rows); row++) {
                struct recording r = {.first_without = THREADS};
                struct perf_source source = {recorded_open, recorded_read, recorded_close, &r};
                struct counters_reading before[THREADS], after[THREADS];
                struct counters_totals together = {};
                static struct fixture f;
                fixture_init(&f, &source);
                f.agent.kernel_threads = kernel_threads_new(THREADS);
                CHECK(f.agent.kernel_threads);
                note_ring(&f, rows[row].worker, rows[row].before_ns);
                for (uint32_t i = 0; i < THREADS; i++)
                        CHECK(counters_read(f.counters, i, &before[i]) == 0);
                note_ring(&f, rows[row].worker, rows[row].after_ns);
                for (uint32_t i = 0; i < THREADS; i++) {
                        struct counters_totals own = {};
                        CHECK(counters_read(f.counters, i, &after[i]) == 0);
                        counters_add(&own, &after[i], &before[i]);
                        counters_add(&together, &after[i], &before[i]);
                        check_ring(&own, rows[row].cycles[i]);
                }
                check_ring(&together, rows[row].sum);
                f.agent.kernel_threads = kernel_threads_free(f.agent.kernel_threads);
                fixture_deinit(&f);
        }
}

static void dup_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) tid;
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int fd = fcntl(*(int *) userdata, F_DUPFD_CLOEXEC, 0);
                        ret->of[event][mode] = fd < 0 ? -errno : fd;
                }
}

static void dup_close(void *userdata, int handle) {
        (void) userdata;
        util_close(handle);
}

static int no_read(void *userdata, int handle, struct perf_reading *ret) {
        (void) userdata;
        (void) handle;
        *ret = (struct perf_reading){0};
        return 0;
}

/* Events may take every descriptor, but for the few that reading the accounts needs. */
static void test_descriptors_left(void) {
        struct rlimit old, few;
        static struct fixture f;
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct perf_source source = {dup_open, no_read, dup_close, &fd};
        CHECK(fd >= 0 && getrlimit(RLIMIT_NOFILE, &old) == 0);
        few = (struct rlimit){.rlim_cur = 12, .rlim_max = old.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
        fixture_init(&f, &source);
        struct json *counters = NULL;
        measure(&f, &counters);
        CHECK(counters);
        CHECK(json_type(json_get(counters, "cycles")) == JSON_NULL);
        CHECK(number(counters, "page_faults") > 0);
        json_free(counters);
        fixture_deinit(&f);
        CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
        util_close(fd);
}

static int64_t usage_number(const struct usage *u, const char *name) {
        struct json_writer w;
        _cleanup_free_ char *text = NULL;
        struct json *root = NULL;
        json_writer_init(&w);
        json_object_begin(&w);
        usage_to_json(u, &w);
        json_object_end(&w);
        int r = json_writer_steal(&w, &text, NULL);
        json_writer_deinit(&w);
        if (r < 0 || json_parse(text, strlen(text), &root, NULL) < 0)
                return -2;
        int64_t v = number(root, name);
        json_free(root);
        return v;
}

/* A second in which nothing was sent still has what came back: the seconds add up to the window. */
static void test_zerocopy_without_a_send(void) {
        struct usage none = {0}, late = {.zerocopy_completions = 3, .zerocopy_copied = 2}, refused = {.enobufs = 4};
        struct usage idle = {.zerocopy = true};
        CHECK_INT(usage_number(&none, "zerocopy_sends"), -1);
        CHECK_INT(usage_number(&none, "enobufs"), -1);
        CHECK_INT(usage_number(&late, "zerocopy_sends"), 0);
        CHECK_INT(usage_number(&late, "zerocopy_completions"), 3);
        CHECK_INT(usage_number(&late, "zerocopy_copied"), 2);
        CHECK_INT(usage_number(&refused, "enobufs"), 4);
        CHECK_INT(usage_number(&idle, "zerocopy_completions"), 0);
        usage_add(&none, &idle, &idle);
        CHECK_INT(usage_number(&none, "zerocopy_sends"), 0);
}

/* As the worker's transport has it. */
static void test_senders_are_notified(void) {
        static struct fixture f;
        struct counters_reading r;
        fixture_init(&f, &perf_source_none);
        for (unsigned notified = 0; notified < 2; notified++) {
                f.workers[0].is_notified = f.workers[0].parts_unseen = notified;
                CHECK(counters_read(f.counters, 0, &r) == 0);
                CHECK_INT(r.usage.zerocopy, notified);
                CHECK_INT(r.usage.parts_unseen, notified);
        }
        fixture_deinit(&f);
}

static void test_source(void) {
        struct agent a = {.setup = {.point = {.workload = WORKLOAD_STREAM}}};
        struct perf_source source = counters_source(&a);
        CHECK(source.userdata == &a && source.read == perf_source_kernel.read);
        a.setup.point.workload = WORKLOAD_CONTEXT_SWITCH;
        source = counters_source(&a);
        CHECK(source.open == perf_source_none.open);
}

/* A daemon that may not look into this process answers in the place of the real one. */
static void *answer_refused(void *userdata) {
        struct message m;
        int fd = *(int *) userdata;
        struct message answer = {.type = MESSAGE_COUNTING};
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++)
                        answer.counting.errors[event][mode] = event == PERF_CYCLES ? ENOENT : EACCES;
        if (message_receive(fd, &m, util_now_ns() + 60 * NSEC_PER_SEC, NULL) == 0)
                (void) message_send(fd, &answer, 0);
        return NULL;
}

static void test_what_the_daemon_may_not_open(void) {
        struct agent a = {.setup = {.point = {.workload = WORKLOAD_STREAM}}};
        struct perf_source source = counters_source(&a);
        struct perf_handles got, own;
        pthread_t daemon;
        int pair[2];
        CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        CHECK_INT(pthread_create(&daemon, NULL, answer_refused, &pair[1]), 0);
        a.control_fd = pair[0];
        perf_source_kernel.open(NULL, gettid(), &own);
        source.open(source.userdata, gettid(), &got);
        (void) pthread_join(daemon, NULL);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                        int here = own.of[event][mode], answered = got.of[event][mode];
                        CHECK_INT(answered >= 0 ? 0 : answered, event == PERF_CYCLES ? -ENOENT : here >= 0 ? 0 : here);
                }
        perf_handles_close(&own, &perf_source_kernel, -EBADF);
        perf_handles_close(&got, &perf_source_kernel, -EBADF);
        util_close(pair[0]);
        util_close(pair[1]);
}

int main(void) {
        RUN(test_recorded);
        RUN(test_accounts);
        RUN(test_short_of_descriptors);
        RUN(test_work_in_the_kernels_threads);
        RUN(test_descriptors_left);
        RUN(test_zerocopy_without_a_send);
        RUN(test_senders_are_notified);
        RUN(test_source);
        RUN(test_what_the_daemon_may_not_open);
        return check_end();
}
