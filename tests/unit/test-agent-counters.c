/* SPDX-License-Identifier: MIT */

/*
 * A real pair of agents and the counters that it is given, or not. What the driver opens for it instead of the
 * hardware, which few machines have, is the kernel's clock of a task.
 */

#include "check.h"
#include "pairs.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/bench/driver.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>

#define THREADS 3u

static int open_clock(pid_t tid) {
        struct perf_event_attr attr = {
                .size = sizeof attr,
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_TASK_CLOCK,
                .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
                .exclude_kernel = 1,
        };
        long fd = syscall(SYS_perf_event_open, &attr, tid, -1, -1, (unsigned long) PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

/* Two events in both modes, the others not at all. */
static void clock_open(void *userdata, pid_t tid, struct perf_handles *ret) {
        (void) userdata;
        perf_handles_fill(ret, -ENOENT); /* what is refused with EACCES the agent opens itself, if it can */
        for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++) {
                ret->of[PERF_CYCLES][mode] = open_clock(tid);
                ret->of[PERF_BRANCH_MISSES][mode] = open_clock(tid);
        }
}

static void clock_close(void *userdata, int handle) {
        (void) userdata;
        util_close(handle);
}

static const struct perf_source clock_source = {.open = clock_open, .close = clock_close};

static struct driver_spec spec_of(enum workload workload) {
        struct driver_spec s = driver_spec_default(agent_path());
        s.point.workload = workload;
        s.point.threads = THREADS;
        s.messages = 3000; /* not by time: each thread has something to count, however busy the machine is */
        s.warmup_ns = 10 * NSEC_PER_MSEC;
        s.interval_ns = 20 * NSEC_PER_MSEC;
        s.perf = &clock_source;
        return s;
}

static bool run(struct driver *d, const struct driver_spec *s) {
        int r = driver_run(d, s);
        if (r < 0)
                fprintf(stderr, "%s\n", d->trouble);
        return r == 0;
}

/* A counter in the report of one end. -1: it is not known, and *ret_reason why. */
static int64_t counted(const struct driver *d, enum end end, const char *name, char ret_reason[200]) {
        struct json *root = NULL;
        int64_t v = -1;
        const char *reason = "no reason";
        ret_reason[0] = '\0';
        if (json_parse(d->ends[end].counters, strlen(d->ends[end].counters), &root, NULL) < 0)
                return -2;
        const struct json *reasons = json_get(root, "reasons"), *why = NULL;
        if (json_as_i64(json_get(root, name), &v) < 0)
                v = -1;
        if (v < 0 && reasons)
                why = json_get(reasons, name) ? json_get(reasons, name) : json_get(reasons, "hardware");
        if (why)
                (void) json_as_string(why, &reason);
        if (v < 0)
                (void) snprintf(ret_reason, 200, "%s", reason);
        json_free(root);
        return v;
}

static void counters_are_those_given(void) {
        static const enum workload workloads[] = {WORKLOAD_STREAM, WORKLOAD_PINGPONG};
        int fd = open_clock(0);
        if (fd < 0)
                SKIP("perf_event_open: %s", strerrordesc_np(-fd));
        util_close(fd);
        for (size_t i = 0; i < ELEMENTS(workloads); i++) {
                struct driver d;
                struct driver_spec s = spec_of(workloads[i]);
                char reason[200];
                CHECK(run(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK_UINT(d.ends[end].counted, THREADS);
                        CHECK(counted(&d, end, "cycles_user", reason) > 0);
                        CHECK_INT(counted(&d, end, "cycles", reason),
                                  counted(&d, end, "cycles_user", reason) + counted(&d, end, "cycles_kernel", reason));
                        CHECK(counted(&d, end, "branch_misses", reason) > 0);
                        CHECK_INT(counted(&d, end, "llc_misses", reason), -1);
                        CHECK(strstr(reason, "no such counter"));
                }
                driver_deinit(&d);
        }
}

/* The run is as good without; a value that was not reported in time is null, with its reason. */
static void a_run_does_not_wait_for_counters(void) {
        for (unsigned late = 0; late < 2; late++) {
                struct driver d;
                struct driver_spec s = spec_of(WORKLOAD_STREAM);
                char reason[200];
                s.counters = late ? COUNTERS_GIVEN_LATE : COUNTERS_NOT_GIVEN;
                CHECK(run(&d, &s));
                for (enum end end = END_FIRST; end < END_COUNT; end++) {
                        CHECK_UINT(d.ends[end].counted, 1); /* an agent without an answer does not repeat its request */
                        CHECK_UINT(d.ends[end].report.messages, s.messages * THREADS);
                        CHECK_INT(counted(&d, end, "cycles", reason), -1);
                        CHECK(strstr(reason, "in time"));
                }
                driver_deinit(&d);
        }
}

/* Where counting would be what is measured, no counters are requested. */
static void a_switch_is_not_counted(void) {
        struct driver d;
        struct driver_spec s = spec_of(WORKLOAD_CONTEXT_SWITCH);
        char reason[200];
        s.point.message_size = 0;
        s.point.threads = 1;
        s.point.processes = 2;
        s.point.fields = 0;
        s.cpus[END_FIRST] = sched_getcpu();
        CHECK(run(&d, &s));
        CHECK_UINT(d.ends[END_FIRST].counted, 0);
        CHECK_INT(counted(&d, END_FIRST, "cycles", reason), -1);
        CHECK(strstr(reason, "context switch"));
        driver_deinit(&d);
}

int main(void) {
        RUN(counters_are_those_given);
        RUN(a_run_does_not_wait_for_counters);
        RUN(a_switch_is_not_counted);
        return check_end();
}
