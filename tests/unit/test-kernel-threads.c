/* SPDX-License-Identifier: MIT */

/*
 * Threads that the kernel makes for rings: how what they used is summed as they come and go, and a real one's, held
 * against the kernel's other account of it.
 */

#include "agent/measure/kernel-threads.h"

#include "agent/base/agent.h"
#include "agent/measure/usage.h"
#include "agent/os/procfs.h"
#include "agent/os/thread-usage.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <dirent.h>
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS 2

static struct agent agent;
static struct worker workers[WORKERS]; /* static: aligned to cache lines */

static void make_agent(enum engine e) {
        memset(&agent, 0, sizeof agent);
        memset(workers, 0, sizeof workers);
        agent.setup.point.engine = e;
        agent.workers = workers;
        agent.n_workers = WORKERS;
        workers[0].tid = workers[1].tid = (pid_t) syscall(SYS_gettid);
}

static uint64_t sum_of(uint32_t worker) {
        return kernel_threads_usage(&agent, worker).cpu_ns;
}

static bool note(pid_t tid, uint32_t worker, uint64_t ns) {
        const struct usage t = {.cpu_ns = ns,
                                .user_ticks = 1,
                                .system_ticks = ns / 10,
                                .voluntary_switches = 2,
                                .involuntary_switches = 3,
                                .minor_faults = 4,
                                .major_faults = 5,
                                .migrations = 6};
        return kernel_threads_add(agent.kernel_threads, tid, worker, &t) == 0;
}

static void sums_never_go_back(void) {
        make_agent(ENGINE_IO_URING);
        struct kernel_threads *k = agent.kernel_threads = kernel_threads_new(WORKERS);
        CHECK(k);
        kernel_threads_begin(k);
        for (pid_t tid = 100; tid < 140; tid++)
                CHECK(note(tid, (uint32_t) tid % 2, 10));
        kernel_threads_end(k);
        CHECK_UINT(sum_of(0), 200);
        CHECK_UINT(sum_of(1), 200);

        kernel_threads_begin(k); /* in another order, one having worked, and the others having ended */
        CHECK(note(101, 1, 50) && note(100, 0, 10));
        kernel_threads_end(k);
        CHECK_UINT(sum_of(0), 200);
        CHECK_UINT(sum_of(1), 240);

        kernel_threads_begin(k); /* the numbers of new threads: one younger, the other another worker's */
        CHECK(note(100, 0, 4) && note(101, 0, 60));
        kernel_threads_end(k);
        CHECK_UINT(sum_of(0), 264);
        CHECK_UINT(sum_of(1), 240);

        kernel_threads_begin(k);
        kernel_threads_end(k);
        CHECK_UINT(sum_of(0), 264);
        CHECK_UINT(sum_of(1), 240);
        const struct usage u = kernel_threads_usage(&agent, 0);
        CHECK_UINT(u.system_ticks, 26);
        CHECK_UINT(u.user_ticks, 22); /* so many threads there were */
        CHECK_UINT(u.voluntary_switches, 2 * 22);
        CHECK_UINT(u.involuntary_switches, 3 * 22);
        CHECK_UINT(u.minor_faults, 4 * 22);
        CHECK_UINT(u.major_faults, 5 * 22);
        CHECK_UINT(u.migrations, 6 * 22);
        agent.kernel_threads = kernel_threads_free(k);
}

static void other_engines_are_not_observed(void) {
        make_agent(ENGINE_SYSCALL);
        CHECK_INT(kernel_threads_scan(&agent), 0);
        CHECK(!agent.kernel_threads);
        CHECK_UINT(sum_of(1), 0);
}

/* ---- a real one ---- */

struct scheduled {
        uint64_t ns, switches;
};

/* What all threads here that work for rings have run and been switched, as the scheduler's statistics and their status
 * have it; 0: there are none. */
static struct scheduled scheduled(pid_t *ret_master) {
        struct scheduled sum = {0, 0};
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
                pid_t tid = (pid_t) strtol(e->d_name, NULL, 10);
                uint64_t switches;
                char text[4096];
                if (procfs_read_task(tid, "comm", text, sizeof text) < 0 || strncmp(text, "iou-wrk-", 8) != 0)
                        continue;
                *ret_master = (pid_t) strtol(text + 8, NULL, 10);
                if (procfs_read_task(tid, "schedstat", text, sizeof text) == 0)
                        sum.ns += strtoull(text, NULL, 10);
                if (procfs_read_task(tid, "status", text, sizeof text) == 0 &&
                    procfs_line_number(text, "voluntary_ctxt_switches", &switches) == 0)
                        sum.switches += switches;
        }
        if (d)
                (void) closedir(d);
        return sum;
}

struct ring_user {
        pid_t tid;
        int error; /* of what it did */
        sem_t did, leave;
};

/* A write that is to be done by a thread of the kernel's. */
static int write_elsewhere(struct io_uring *ring, int fd) {
        static char data[1 << 20];
        struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
        struct io_uring_cqe *cqe;
        if (!sqe)
                return -EBUSY;
        io_uring_prep_write(sqe, fd, data, sizeof data, 0);
        sqe->flags |= IOSQE_ASYNC;
        int r = io_uring_submit_and_wait(ring, 1);
        if (r >= 0)
                r = io_uring_wait_cqe(ring, &cqe);
        if (r < 0)
                return r;
        r = cqe->res;
        io_uring_cqe_seen(ring, cqe);
        return r < 0 ? r : 0;
}

static int use_ring(void) {
        struct io_uring ring;
        _cleanup_close_ int fd = memfd_create("written", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : io_uring_queue_init(4, &ring, 0);
        if (r < 0)
                return r;
        for (unsigned n = 0; r == 0 && n < 20; n++)
                r = write_elsewhere(&ring, fd);
        io_uring_queue_exit(&ring);
        return r;
}

static void wait_for(sem_t *s) {
        while (sem_wait(s) < 0)
                ;
}

static void *user_main(void *userdata) {
        struct ring_user *u = userdata;
        u->tid = (pid_t) syscall(SYS_gettid);
        u->error = -use_ring();
        (void) sem_post(&u->did);
        wait_for(&u->leave);
        return NULL;
}

/* The second worker made the ring; but where its number is another for the kernel, the first has what they use. */
static void what_they_use_is_their_workers(void) {
        struct ring_user u = {.error = 0};
        struct usage usage = {0}, own = {0};
        pthread_t thread;
        pid_t master = 0;
        make_agent(ENGINE_IO_URING);
        (void) sem_init(&u.did, 0, 0);
        (void) sem_init(&u.leave, 0, 0);
        CHECK_INT(kernel_threads_scan(&agent), 0);
        CHECK_UINT(sum_of(0) + sum_of(1), 0);
        CHECK_INT(pthread_create(&thread, NULL, user_main, &u), 0);
        wait_for(&u.did);
        workers[1].tid = u.tid;
        workers[1].stage = WORKER_LOOPS;
        struct scheduled least = scheduled(&master);
        int looked = kernel_threads_scan(&agent), alone = thread_usage_add(&own, u.tid);
        int used = usage_take(&agent, 1, &usage);
        uint64_t first_ns = sum_of(0), second_ns = sum_of(1);
        uint64_t first_switches = kernel_threads_usage(&agent, 0).voluntary_switches;
        uint64_t second_switches = kernel_threads_usage(&agent, 1).voluntary_switches;
        (void) sem_post(&u.leave);
        pthread_join(thread, NULL);
        while (scheduled(&(pid_t){0}).ns > 0) /* they end with the thread, or soon after */
                (void) poll(NULL, 0, 1);
        int again = kernel_threads_scan(&agent);
        uint64_t sum_ns = sum_of(0) + sum_of(1);
        agent.kernel_threads = kernel_threads_free(agent.kernel_threads);

        if (u.error == ENOSYS || u.error == EPERM || u.error == ENOMEM)
                SKIP("io_uring_setup: %s", strerrordesc_np(u.error));
        CHECK_INT(u.error, 0);
        CHECK_INT(looked, 0);
        CHECK_INT(alone, 0);
        CHECK_INT(used, 0);
        CHECK_INT(again, 0);
        if (least.ns == 0)
                SKIP("this kernel shows no thread that works for a ring, or no schedstat");
        CHECK(first_ns + second_ns >= least.ns);
        CHECK(first_switches + second_switches >= least.switches);
        CHECK_UINT(master == u.tid ? first_ns : second_ns, 0);
        CHECK(usage.cpu_ns >= own.cpu_ns + second_ns);
        CHECK(usage.voluntary_switches >= own.voluntary_switches + second_switches);
        CHECK_UINT(sum_ns, first_ns + second_ns);
}

int main(void) {
        RUN(sums_never_go_back);
        RUN(other_engines_are_not_observed);
        RUN(what_they_use_is_their_workers);
        return check_end();
}
