/* SPDX-License-Identifier: MIT */

/*
 * One process that makes system calls or vDSO calls: nanoseconds per call. A message is a call. Calls are timed in
 * batches, so that the clock's own cost is negligible: the histogram holds the means of batches, rounded to a
 * nanosecond, and the daemon computes the cost per call from the CPU time and the count, which are exact.
 *
 * glibc cached getpid() before 2.25; its row measures the C library in use.
 */

#include "agent/base/agent.h"
#include "agent/os/procfs.h"
#include "agent/workload/workload.h"
#include "schema/measure/recorder.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <string.h>
#include <sys/syscall.h>

#define BATCH_CALLS UINT64_C(10000)

#define CALL_INLINE UTIL_SPECIALIZED

/* The sum of the results keeps the calls from being optimized away; -1 is a failure of the one that can fail. */
CALL_INLINE long call_getpid(const struct worker *w) {
        (void) w;
        return syscall(SYS_getpid);
}

CALL_INLINE long call_getpid_libc(const struct worker *w) {
        (void) w;
        return getpid();
}

CALL_INLINE long call_clock_vdso(const struct worker *w) {
        struct timespec ts;
        (void) w;
        return clock_gettime(CLOCK_MONOTONIC, &ts);
}

CALL_INLINE long call_clock_syscall(const struct worker *w) {
        struct timespec ts;
        (void) w;
        return syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
}

CALL_INLINE long call_read_zero(const struct worker *w) {
        char byte;
        return syscall(SYS_read, w->receive_fd, &byte, 1);
}

CALL_INLINE int loop_calls(struct worker *w, long (*call)(const struct worker *w)) {
        uint64_t n = w->messages, limit = worker_limit(w), sink = 0;
        for (; n < limit; limit = worker_limit(w)) {
                uint64_t batch = limit - n < BATCH_CALLS ? limit - n : BATCH_CALLS, begin = util_now_ns();
                for (uint64_t i = 0; i < batch; i++) {
                        long r = call(w);
                        if (__builtin_expect(r < 0, 0))
                                return failure_set(&w->failure, errno, "%s failed: %s",
                                                   system_call_name(w->agent->setup.point.call),
                                                   strerrordesc_np(errno));
                        sink += (uint64_t) r;
                }
                if (w->latency && batch) /* never 0, but static analysis cannot derive that from an atomic limit */
                        recorder_record(w->latency, (util_now_ns() - begin + batch / 2) / batch);
                n += batch;
                __atomic_store_n(&w->messages, n, __ATOMIC_RELAXED);
        }
        w->sink = sink;
        return 0;
}

#define CALL_LOOP(name)                                                                                                \
        static int loop_##name(struct worker *w) {                                                                     \
                return loop_calls(w, call_##name);                                                                     \
        }
CALL_LOOP(getpid)
CALL_LOOP(getpid_libc)
CALL_LOOP(clock_vdso)
CALL_LOOP(clock_syscall)
CALL_LOOP(read_zero)

static const worker_loop loops[SYSTEM_CALL_COUNT] = {
        [SYSTEM_CALL_GETPID] = loop_getpid,
        [SYSTEM_CALL_GETPID_LIBC] = loop_getpid_libc,
        [SYSTEM_CALL_CLOCK_GETTIME_VDSO] = loop_clock_vdso,
        [SYSTEM_CALL_CLOCK_GETTIME_SYSCALL] = loop_clock_syscall,
        [SYSTEM_CALL_READ_ZERO] = loop_read_zero,
};

static int syscall_prepare(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        w->loop = loops[p->call];
        if (p->call == SYSTEM_CALL_READ_ZERO) {
                w->receive_fd = open("/dev/zero", O_RDONLY | O_CLOEXEC); /* closed with the worker */
                if (w->receive_fd < 0)
                        return failure_set(&w->failure, errno, "/dev/zero: %s", strerrordesc_np(errno));
        }
        return worker_make_recorder(w);
}

/* The kernel's clock source: the vDSO reads some of them itself (tsc, a hypervisor's page); with the others (hpet,
 * acpi_pm, xen) it makes the system call, and its row has that cost. */
static void put_clocksource(struct effective *e) {
        char name[64];
        int r = procfs_first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", name,
                                  sizeof name);
        if (r == 0) {
                effective_add_text(e, SETTING_CLOCKSOURCE, name);
                return;
        }
        effective_add_unknown(e, SETTING_CLOCKSOURCE, strerrordesc_np(-r));
}

static void syscall_effective(const struct agent *a, struct effective *e) {
        enum system_call call = a->setup.point.call;
        if (call == SYSTEM_CALL_CLOCK_GETTIME_VDSO || call == SYSTEM_CALL_CLOCK_GETTIME_SYSCALL)
                put_clocksource(e);
        effective_add_number(e, SETTING_BATCH_CALLS, BATCH_CALLS);
        effective_add_text(e, SETTING_GLIBC, gnu_get_libc_version());
}

const struct workload_ops workload_syscall = {
        .workload = WORKLOAD_SYSCALL,
        .one_agent = true,
        .prepare = syscall_prepare,
        .effective = syscall_effective,
};
