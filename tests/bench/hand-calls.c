/* SPDX-License-Identifier: MIT */

/* Loops of calls, and two processes that hand a byte round; see hand-calls.h. */

#include "tests/bench/hand-calls.h"

#include "schema/util.h"
#include "tests/bench/hand-two.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#define OVERHEAD_ROUNDS 201u /* as the agents do: of so many the median, each of so many hops */
#define OVERHEAD_HOPS 200u

static volatile long sink; /* so that no call is dropped */

struct task {
        const struct hand_calls *h;
        int fd;                         /* of /dev/zero; -1 */
        int there[2], back[2], gate[2]; /* pipes of two processes; the gate holds the second until it is wanted */
};

/* n times `expression`, with the file descriptor fd. Their sum, or -1. */
#define CALLS(name, expression)                                                                                        \
        static long name(int fd, uint64_t n) {                                                                         \
                struct timespec ts;                                                                                    \
                char byte;                                                                                             \
                long sum = 0;                                                                                          \
                (void) fd;                                                                                             \
                (void) ts;                                                                                             \
                (void) byte;                                                                                           \
                for (uint64_t i = 0; i < n; i++) {                                                                     \
                        long r = (expression);                                                                         \
                        if (r < 0)                                                                                     \
                                return -1;                                                                             \
                        sum += r;                                                                                      \
                }                                                                                                      \
                return sum;                                                                                            \
        }
CALLS(calls_getpid, syscall(SYS_getpid))
CALLS(calls_getpid_libc, getpid())
CALLS(calls_clock_vdso, clock_gettime(CLOCK_MONOTONIC, &ts))
CALLS(calls_clock_syscall, syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts))
CALLS(calls_read_zero, read(fd, &byte, 1))

static long (*const loops[SYSTEM_CALL_COUNT])(int fd, uint64_t n) = {
        [SYSTEM_CALL_GETPID] = calls_getpid,
        [SYSTEM_CALL_GETPID_LIBC] = calls_getpid_libc,
        [SYSTEM_CALL_CLOCK_GETTIME_VDSO] = calls_clock_vdso,
        [SYSTEM_CALL_CLOCK_GETTIME_SYSCALL] = calls_clock_syscall,
        [SYSTEM_CALL_READ_ZERO] = calls_read_zero,
};

static int call_until(const struct task *t, uint64_t until_ns, struct hand_result *ret) {
        *ret = (struct hand_result){};
        do {
                long sum = loops[t->h->call](t->fd, t->h->chunk);
                if (sum < 0)
                        return -1;
                sink = sum;
                ret->messages += t->h->chunk;
        } while ((ret->ns = util_now_ns()) < until_ns);
        return 0;
}

static int run_calls(void *userdata, int end, struct hand_result *ret) {
        const struct task *t = userdata;
        struct hand_result warm, window;
        if (end == 1)
                for (;;)
                        (void) pause(); /* until it is ended with the first */
        if (call_until(t, util_now_ns() + t->h->warmup_ns, &warm) < 0 ||
            call_until(t, warm.ns + t->h->duration_ns, &window) < 0)
                return -1;
        *ret = (struct hand_result){window.messages, window.ns - warm.ns};
        return 0;
}

/* --- switches --- */

static int by_value(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;
        return (x > y) - (x < y);
}

/* Nanoseconds of a hop in one process: through both pipes in turn, as the byte will go. */
static int measure_overhead(const struct task *t, double *ret) {
        double values[OVERHEAD_ROUNDS];
        char byte = 0;
        for (unsigned v = 0; v < OVERHEAD_ROUNDS; v++) {
                uint64_t begin = util_now_ns();
                for (unsigned i = 0; i < OVERHEAD_HOPS; i++) {
                        const int *p = i % 2 ? t->back : t->there;
                        if (write(p[1], &byte, 1) != 1 || read(p[0], &byte, 1) != 1)
                                return -1;
                }
                values[v] = (double) (util_now_ns() - begin) / OVERHEAD_HOPS;
        }
        qsort(values, OVERHEAD_ROUNDS, sizeof values[0], by_value);
        *ret = values[OVERHEAD_ROUNDS / 2];
        return 0;
}

static int answer(const struct task *t) {
        char byte;
        if (read(t->gate[0], &byte, 1) != 1)
                return -1;
        while (read(t->there[0], &byte, 1) == 1 && write(t->back[1], &byte, 1) == 1)
                ;
        return -1;
}

static int switch_until(const struct task *t, uint64_t until_ns, struct hand_result *ret) {
        char byte = 0;
        *ret = (struct hand_result){};
        do
                for (uint64_t i = 0; i < t->h->chunk; i += HAND_SWITCH_PROCESSES) {
                        if (write(t->there[1], &byte, 1) != 1 || read(t->back[0], &byte, 1) != 1)
                                return -1;
                        ret->messages += HAND_SWITCH_PROCESSES;
                }
        while ((ret->ns = util_now_ns()) < until_ns);
        return 0;
}

static int run_switches(void *userdata, int end, struct hand_result *ret) {
        const struct task *t = userdata;
        struct hand_result warm, window;
        double overhead_ns;
        if (end == 1)
                return answer(t);
        if (measure_overhead(t, &overhead_ns) < 0 || write(t->gate[1], "", 1) != 1 ||
            switch_until(t, util_now_ns() + t->h->warmup_ns, &warm) < 0 ||
            switch_until(t, warm.ns + t->h->duration_ns, &window) < 0)
                return -1;
        double ns = (double) (window.ns - warm.ns) - overhead_ns * (double) window.messages;
        if (ns < 1)
                return -1; /* the pipes alone took as long: switches have no figure */
        *ret = (struct hand_result){window.messages, (uint64_t) ns};
        return 0;
}

/* --- both --- */

static int prepare(struct task *t) {
        if (t->h->workload == WORKLOAD_CONTEXT_SWITCH)
                return pipe2(t->there, O_CLOEXEC) < 0 || pipe2(t->back, O_CLOEXEC) < 0 || pipe2(t->gate, O_CLOEXEC) < 0
                               ? -errno
                               : 0;
        if (t->h->call != SYSTEM_CALL_READ_ZERO)
                return 0;
        t->fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
        return t->fd < 0 ? -errno : 0;
}

static void give_up(struct task *t) {
        int *const pipes[] = {t->there, t->back, t->gate};
        for (size_t i = 0; i < ELEMENTS(pipes); i++)
                for (int k = 0; k < 2; k++)
                        pipes[i][k] = util_close(pipes[i][k]);
        t->fd = util_close(t->fd);
}

int hand_calls_run(const struct hand_calls *h, double *ret_rate) {
        struct task t = {.h = h, .fd = -1, .there = {-1, -1}, .back = {-1, -1}, .gate = {-1, -1}};
        const int cpus[2] = {h->cpu, h->cpu};
        struct hand_two two = {.run = h->workload == WORKLOAD_CONTEXT_SWITCH ? run_switches : run_calls,
                               .userdata = &t,
                               .cpus = cpus,
                               .clocked = 0};
        struct hand_result result;
        int r = prepare(&t);
        if (r == 0)
                r = hand_two_run(&two, &result);
        give_up(&t);
        if (r == 0)
                *ret_rate = (double) result.messages * 1e9 / (double) result.ns;
        return r;
}
