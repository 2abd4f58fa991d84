/* SPDX-License-Identifier: MIT */

/* How long a leader waits for the last messages, on a machine that stands still meanwhile: time in which no process ran
 * counts against no thread. Whole runs in scripted time: the clock, the leader's waiting (agent/base/wait.h) and the
 * peer (agent/base/peer.h) are this file's, and the linker takes them instead of the agent's. */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/measure/counters.h"
#include "agent/measure/sampler.h"
#include "agent/proof/proof.h"
#include "agent/script/phases.h"
#include "agent/script/workers.h"
#include "agent/workload/workload.h"
#include "check.h"
#include "schema/util.h"

#include <sys/syscall.h>

#define STALL_MS 1000u
#define WINDOW_NS NSEC_PER_SEC

static struct worker worker;
static struct agent agent;

/* The end of the run, from the moment when the window is over: in time that the machine runs, when it stands still, and
 * when the worker has done its part. */
static struct {
        uint64_t now_ns, ran_ns;
        uint64_t stands_after_ns, stands_for_ns, done_after_ns;
} script;

uint64_t agent_now_ns(void) {
        return script.now_ns;
}

static bool is_draining(const struct agent *a) {
        return a->phase == PHASE_DRAINING;
}

/* As long as the window lasts the worker moves. */
int agent_wait(struct agent *a, uint64_t until_ns, unsigned interest) {
        uint64_t step_ns = until_ns > script.now_ns ? until_ns - script.now_ns : 0;
        if (!is_draining(a)) {
                script.now_ns += step_ns;
                worker.messages++;
                return 0;
        }
        if (script.stands_for_ns && script.ran_ns + step_ns > script.stands_after_ns) {
                step_ns = script.stands_after_ns - script.ran_ns;
                script.now_ns += script.stands_for_ns;
                script.stands_for_ns = 0;
        }
        script.now_ns += step_ns;
        script.ran_ns += step_ns;
        if (script.ran_ns < script.done_after_ns)
                return 0;
        worker.resting = worker.sent_last = 1;
        worker.messages = worker.limit;
        return interest & WAIT_WORKERS ? (int) WAIT_WORKERS : 0;
}

int agent_send(struct agent *a, const struct message *m) {
        (void) a, (void) m;
        return 0;
}

int peer_send(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t value, uint64_t deadline_ns) {
        (void) a, (void) kind, (void) thread, (void) value, (void) deadline_ns;
        return 0;
}

/* The peer sent ten messages more than have come. */
int peer_receive(struct agent *a, enum peer_kind kind, uint32_t thread, uint64_t *ret_value, uint64_t deadline_ns) {
        (void) a, (void) thread, (void) deadline_ns;
        if (ret_value)
                *ret_value = kind == PEER_SENT ? worker.messages + 10 : 0;
        return 0;
}

/* Workloads that wait for their own message, for the messages of the other end, and for both. */
static const struct {
        enum end end;
        enum data_direction direction;
} roles[] = {{END_FIRST, DIRECTION_DOWN}, {END_SECOND, DIRECTION_DOWN}, {END_FIRST, DIRECTION_BOTH}};

/* A run whose stall limit does not depend on the machine's load. */
static int run_as(size_t role, uint64_t stands_for_ms, uint64_t done_after_ms) {
        struct window window;
        struct proof proof = {.members = NULL};
        memset(&agent, 0, sizeof agent);
        memset(&worker, 0, sizeof worker);
        agent.proof = &proof;
        agent.end = roles[role].end;
        agent.event_fd = -1;
        agent.workers = &worker;
        agent.n_workers = 1;
        agent.workload = &workload_stream;
        agent.peer_role = "other";
        agent.setup.point = (struct point){
                .workload = WORKLOAD_STREAM, .direction = roles[role].direction, .message_size = 1, .threads = 1};
        agent.setup.stall_ns = STALL_MS * NSEC_PER_MSEC;
        agent.setup.duration_ns = agent.setup.interval_ns = WINDOW_NS;
        worker.agent = &agent;
        worker.tid = (pid_t) syscall(SYS_gettid);
        if (sem_init(&worker.go, 0, 0) < 0 || counters_new(&agent, &perf_source_none, &agent.counters) < 0)
                abort();
        memset(&script, 0, sizeof script);
        script.now_ns = NSEC_PER_SEC;
        script.stands_after_ns = 100 * NSEC_PER_MSEC;
        script.stands_for_ns = stands_for_ms * NSEC_PER_MSEC;
        script.done_after_ns = done_after_ms * NSEC_PER_MSEC;
        int r = phases_run(&agent, script.now_ns, &window);
        counters_free(agent.counters);
        (void) sem_destroy(&worker.go);
        return r;
}

static void an_end_that_comes_in_time_is_waited_for(void) {
        for (size_t i = 0; i < ELEMENTS(roles); i++)
                if (run_as(i, 0, STALL_MS - 100) < 0)
                        CHECK_FAIL("role %zu: %s", i, agent.failure.detail);
}

static void a_standstill_of_all_is_nobodys_fault(void) {
        for (size_t i = 0; i < ELEMENTS(roles); i++)
                if (run_as(i, 20000, 300) < 0)
                        CHECK_FAIL("role %zu: %s", i, agent.failure.detail);
}

/* After a standstill, too; little of that is charged. */
static void an_end_that_never_comes_is_not(void) {
        for (size_t i = 0; i < ELEMENTS(roles) * 2; i++) {
                CHECK_INT(run_as(i / 2, i % 2 * 20000, UINT64_C(1) << 20), -ETIMEDOUT);
                CHECK(script.ran_ns >= (STALL_MS - 100) * NSEC_PER_MSEC);
                CHECK(script.ran_ns <= (STALL_MS + 100) * NSEC_PER_MSEC);
        }
}

int main(void) {
        if (workers_init_signals() < 0) /* workers are kicked */
                return 1;
        RUN(an_end_that_comes_in_time_is_waited_for);
        RUN(a_standstill_of_all_is_nobodys_fault);
        RUN(an_end_that_never_comes_is_not);
        return check_end();
}
