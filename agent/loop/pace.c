/* SPDX-License-Identifier: MIT */

/* The waits for a message's due time, in the worker's thread. */

#include "agent/loop/pace.h"

#include "schema/measure/recorder.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <sched.h>

#define SLEEP_NS (50 * NSEC_PER_MSEC) /* at most, before the limit is checked again */

int pace_wait(struct worker *w, uint64_t due_ns) {
        for (;;) {
                uint64_t now = util_now_ns();
                if (now >= due_ns)
                        return 0;
                if (worker_over(w))
                        return WORKER_STOP;
                if (due_ns - now <= PACE_SPIN_NS) {
                        (void) sched_yield(); /* cannot fail */
                        continue;
                }
                uint64_t ns = due_ns - now - PACE_SPIN_NS;
                struct timespec ts = {.tv_nsec = (long) (ns < SLEEP_NS ? ns : SLEEP_NS)};
                (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL); /* if it wakes early, the loop sleeps again */
        }
}

void pace_effective(const struct agent *a, struct effective *e) {
        if (a->setup.rate <= 0 || workload_agents(a->setup.point.workload) < END_COUNT ||
            !(agent_sends(a) || agent_is_duplex(a)))
                return;
        effective_add_number(e, SETTING_PACE_SPIN_NS, PACE_SPIN_NS);
        effective_add_text(e, SETTING_PACE_SPIN, "sched_yield");
}

void pace_record(struct worker *w, uint64_t due_ns) {
        if (!w->latency) /* nothing is sampled */
                return;
        uint64_t now = util_now_ns();
        recorder_record(w->latency, now > due_ns ? now - due_ns : 0);
}
