/* SPDX-License-Identifier: MIT */

/* Reads the counters from /proc, and the CPU time from the thread's clock, which is exact to the nanosecond. */

#include "agent/os/thread-usage.h"

#include "agent/os/procfs.h"
#include "schema/util.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

static int add_stat(struct usage *u, const char *text) {
        static const struct {
                enum stat_field field;
                size_t offset;
        } fields[] = {
                {STAT_MINFLT, offsetof(struct usage, minor_faults)},
                {STAT_MAJFLT, offsetof(struct usage, major_faults)},
                {STAT_UTIME, offsetof(struct usage, user_ticks)},
                {STAT_STIME, offsetof(struct usage, system_ticks)},
        };
        for (size_t i = 0; i < ELEMENTS(fields); i++) {
                uint64_t v;
                int r = procfs_stat_number(text, fields[i].field, &v);
                if (r < 0)
                        return r;
                *(uint64_t *) (void *) ((char *) u + fields[i].offset) += v;
        }
        return 0;
}

static int add_switches(struct usage *u, const char *text, const char *voluntary, const char *involuntary) {
        uint64_t v, i;
        int r = procfs_line_number(text, voluntary, &v);
        if (r == 0)
                r = procfs_line_number(text, involuntary, &i);
        if (r < 0)
                return r;
        u->voluntary_switches += v;
        u->involuntary_switches += i;
        return 0;
}

/* task/TID/sched has all of these counters, but exists only where the scheduler's debugging is compiled in. */
static int add_scheduling(struct usage *u, pid_t tid, char *text, size_t size) {
        uint64_t migrations;
        int r = procfs_read_task(tid, "sched", text, size);
        if (r == 0)
                r = procfs_line_number(text, "se.nr_migrations", &migrations);
        if (r == 0)
                r = add_switches(u, text, "nr_voluntary_switches", "nr_involuntary_switches");
        if (r == 0) {
                u->migrations += migrations;
                return 0;
        }
        u->migrations_error = -r;
        r = procfs_read_task(tid, "status", text, size);
        return r < 0 ? r : add_switches(u, text, "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches");
}

/* Makes the clock id from the thread id, as libc does (man 3 pthread_getcpuclockid): in a forked peer libc's cached id
 * of the main thread is another process's. */
static int cpu_time(pid_t tid, uint64_t *ret_ns) {
        clockid_t clock = (clockid_t) ((~(unsigned) tid << 3) | 6u);
        struct timespec ts;
        if (clock_gettime(clock, &ts) < 0)
                return -errno;
        *ret_ns = (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
        return 0;
}

int thread_usage_add(struct usage *u, pid_t tid) {
        char text[8192];
        uint64_t cpu_ns = 0; /* gcc cannot see that it is set */
        int r = cpu_time(tid, &cpu_ns);
        if (r < 0)
                return r;
        u->cpu_ns += cpu_ns;
        r = procfs_read_task(tid, "stat", text, sizeof text);
        if (r == 0)
                r = add_stat(u, text);
        if (r == 0)
                r = add_scheduling(u, tid, text, sizeof text);
        return r;
}
