/* SPDX-License-Identifier: MIT */

/* Workloads without a transport: the loops by hand, and the one agent that the bench's driver runs for them. */

#include "tests/bench/driver.h"
#include "tests/bench/hand-calls.h"

#include "schema/util.h"
#include "tests/unit/check.h"

#include <sched.h>

static int some_cpu(void) {
        int cpu = sched_getcpu();
        return cpu < 0 ? 0 : cpu;
}

static void test_loops_by_hand(void) {
        struct hand_calls h = {.workload = WORKLOAD_SYSCALL,
                               .warmup_ns = NSEC_PER_MSEC,
                               .duration_ns = 5 * NSEC_PER_MSEC,
                               .chunk = 100,
                               .cpu = some_cpu()};
        for (enum system_call c = 0; c < SYSTEM_CALL_COUNT; c++) {
                double rate = 0;
                h.call = c;
                CHECK_INT(hand_calls_run(&h, &rate), 0);
                CHECK(rate > 0);
        }
        double rate = 0;
        h.workload = WORKLOAD_CONTEXT_SWITCH;
        int r = -EIO; /* of a machine that was slower while the pipes alone were measured than afterwards */
        for (unsigned n = 0; n < 10 && r < 0; n++)
                r = hand_calls_run(&h, &rate);
        CHECK_INT(r, 0);
        CHECK(rate > 0);
}

static void test_a_loop_that_fails_returns_its_error(void) {
        struct hand_calls h = {.workload = WORKLOAD_SYSCALL, .chunk = 1, .cpu = CPU_SETSIZE - 1};
        double rate = -1;
        CHECK_INT(hand_calls_run(&h, &rate), -EIO); /* it cannot be pinned there */
        CHECK(rate < 0);
}

static void run_alone(enum workload workload) {
        char path[512];
        (void) snprintf(path, sizeof path, "%s/agent/ipclab-agent", getenv("IPCLAB_BUILD_ROOT"));
        struct driver_spec s = driver_spec_default(path);
        struct driver d;
        s.point = (struct point){.workload = workload, .threads = 1, .processes = 2};
        s.messages = 5000;
        s.warmup_ns = NSEC_PER_MSEC;
        s.cpus[END_FIRST] = some_cpu();
        CHECK_INT(driver_run(&d, &s), 0);
        CHECK_STRING(d.trouble, "");
        CHECK_UINT(d.n_ends, 1);
        CHECK_UINT(d.ends[END_FIRST].report.messages, s.messages);
        CHECK(!d.ends[END_SECOND].ready);
        driver_deinit(&d);
}

static void test_one_agent_runs_alone(void) {
        run_alone(WORKLOAD_SYSCALL);
        run_alone(WORKLOAD_CONTEXT_SWITCH);
}

int main(void) {
        RUN(test_loops_by_hand);
        RUN(test_a_loop_that_fails_returns_its_error);
        RUN(test_one_agent_runs_alone);
        return check_end();
}
