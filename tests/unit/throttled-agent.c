/* SPDX-License-Identifier: MIT */

/*
 * An ipclab-agent whose receivers are servers of a known rate: in an open loop each message takes SERVICE_NS after the
 * later of when it was due and when the one before it was through. This holds whatever the transport, and however late
 * the machine lets the receiver run, as one that is behind does not wait. The most that can be carried is one message
 * every SERVICE_NS; closed loops are as fast as ever.
 *
 * The link makes it: pace_record() is what every receiver of an open loop calls for each message (agent/loop/pace.h).
 */

#include "agent/loop/pace.h"

#include <errno.h>
#include <time.h>

#define SERVICE_NS (200 * NSEC_PER_USEC) /* tests/api/test_search.py has the rate */

void __wrap_pace_record(struct worker *w, uint64_t due_ns);
void __real_pace_record(struct worker *w, uint64_t due_ns);

void __wrap_pace_record(struct worker *w, uint64_t due_ns) {
        static _Thread_local uint64_t through_ns;
        through_ns = (through_ns > due_ns ? through_ns : due_ns) + SERVICE_NS;
        const struct timespec until = {.tv_sec = (time_t) (through_ns / NSEC_PER_SEC),
                                       .tv_nsec = (long) (through_ns % NSEC_PER_SEC)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
                ;
        __real_pace_record(w, due_ns);
}
