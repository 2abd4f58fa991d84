/* SPDX-License-Identifier: MIT */

/* How long a leader waits for the last messages, on a machine that stands still meanwhile: time in which nobody ran is
 * not held against anybody. The clock is the test's own, and so is whom the leader waits for. */

#include "agent/script/agent.h"
#include "agent/script/leader.h"
#include "agent/script/peer.h"
#include "agent/script/phases.h"
#include "schema/util.h"

static uint64_t scripted_now_ns(void);
static int scripted_wait(struct agent *a, uint64_t until_ns, unsigned interest);
static int no_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns);
static int no_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, uint64_t deadline_ns);

#define util_now_ns scripted_now_ns
#define leader_wait scripted_wait
#define peer_send no_send
#define peer_receive no_receive
#include "agent/script/phases.c" /* NOLINT(bugprone-suspicious-include) */

#include "check.h"

#define PATIENCE_MS 1000u

static struct worker worker;
static struct agent agent;

/* In time that the machine runs: when it stands still, and when the worker has done its part. */
static struct {
        uint64_t now_ns, ran_ns;
        uint64_t stands_after_ns, stands_for_ns, done_after_ns;
} script;

static uint64_t scripted_now_ns(void) {
        return script.now_ns;
}

static int scripted_wait(struct agent *a, uint64_t until_ns, unsigned interest) {
        uint64_t step_ns = until_ns > script.now_ns ? until_ns - script.now_ns : 0;
        bool stands = script.stands_for_ns && script.ran_ns + step_ns > script.stands_after_ns;
        if (stands) {
                step_ns = script.stands_after_ns - script.ran_ns;
                script.now_ns += script.stands_for_ns;
                script.stands_for_ns = 0;
        }
        script.now_ns += step_ns;
        script.ran_ns += step_ns;
        if (script.ran_ns < script.done_after_ns)
                return 0;
        a->workers[0].resting = a->workers[0].sent_last = 1;
        return interest & LEADER_WORKERS ? (int) LEADER_WORKERS : 0;
}

static int no_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns) {
        (void) a, (void) kind, (void) thread, (void) value, (void) deadline_ns;
        return 0;
}

static int no_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value,
                      uint64_t deadline_ns) {
        (void) a, (void) kind, (void) thread, (void) deadline_ns;
        if (ret_value)
                *ret_value = 0;
        return 0;
}

static int (*const waits[])(struct agent *a) = {await_workers, drain, stop_duplex};

/* One worker that has ten messages before it, and patience that does not depend on who else wants to run. */
static int wait_for_it(int (*wait)(struct agent *a), uint64_t stands_for_ms, uint64_t done_after_ms) {
        memset(&agent, 0, sizeof agent);
        memset(&worker, 0, sizeof worker);
        agent.workers = &worker;
        agent.n_workers = 1;
        agent.workload = &workload_stream;
        agent.peer_role = "sender";
        agent.setup.point = (struct point){.workload = WORKLOAD_STREAM, .message_size = 1, .threads = 1};
        agent.setup.stall_ns = PATIENCE_MS * NSEC_PER_MSEC;
        worker.agent = &agent;
        worker.limit = 10;
        memset(&script, 0, sizeof script);
        script.now_ns = NSEC_PER_SEC;
        script.stands_after_ns = 100 * NSEC_PER_MSEC;
        script.stands_for_ns = stands_for_ms * NSEC_PER_MSEC;
        script.done_after_ns = done_after_ms * NSEC_PER_MSEC;
        return wait(&agent);
}

static void who_comes_in_time_is_waited_for(void) {
        for (size_t i = 0; i < ELEMENTS(waits); i++)
                CHECK(wait_for_it(waits[i], 0, PATIENCE_MS - 100) >= 0);
}

static void a_standstill_of_all_is_nobodys_fault(void) {
        for (size_t i = 0; i < ELEMENTS(waits); i++) {
                int r = wait_for_it(waits[i], 20000, 300);
                if (r < 0)
                        CHECK_FAIL("wait %zu: %s", i, agent.failure.detail);
        }
}

/* After a standstill, too; what it was charged with is little. */
static void who_never_comes_is_not(void) {
        for (size_t i = 0; i < ELEMENTS(waits) * 2; i++) {
                CHECK_INT(wait_for_it(waits[i / 2], i % 2 * 20000, UINT64_C(1) << 20), -ETIMEDOUT);
                CHECK(script.ran_ns >= (PATIENCE_MS - 100) * NSEC_PER_MSEC);
                CHECK(script.ran_ns <= (PATIENCE_MS + 100) * NSEC_PER_MSEC);
        }
}

int main(void) {
        RUN(who_comes_in_time_is_waited_for);
        RUN(a_standstill_of_all_is_nobodys_fault);
        RUN(who_never_comes_is_not);
        return check_end();
}
