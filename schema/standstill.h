/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Deadlines on a machine that may stand still (a paused virtual machine, a suspended host, an overloaded one): time in
 * which the waiting process did not run does not count against the process that it waits for, which did not run either.
 * A waiter compares the time at which it woke with the time at which its wait was due to end.
 */

#include "schema/util.h"

#include <stdbool.h>
#include <stdint.h>

#define STANDSTILL_NS (50 * NSEC_PER_MSEC) /* a wake-up may be so late on a machine that runs */

/* Whether a wait that was due to end at due_ns, and ended at now_ns, ended so late that its process did not run. */
static inline bool standstill_between(uint64_t due_ns, uint64_t now_ns) {
        return now_ns > due_ns && now_ns - due_ns > STANDSTILL_NS;
}

/* How much of such a wait, begun at from_ns, counts. */
static inline uint64_t standstill_counted_ns(uint64_t from_ns, uint64_t due_ns, uint64_t now_ns) {
        uint64_t end_ns = standstill_between(due_ns, now_ns) ? due_ns + STANDSTILL_NS : now_ns;
        return end_ns > from_ns ? end_ns - from_ns : 0;
}
