/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_CALLS_H
#define IPCLAB_TESTS_HAND_CALLS_H

/* System calls and context switches by hand, as hand.h has it for transports: a plain loop on one CPU. */

#include "schema/terms.h"

#include <stdint.h>

struct hand_calls {
        enum workload workload;          /* syscall or context-switch */
        enum system_call call;           /* of syscall */
        uint64_t warmup_ns, duration_ns; /* before and within the clock */
        uint64_t chunk;                  /* calls between two readings of the clock; at least 1 */
        int cpu;                         /* -1: not pinned, which a context switch has to be */
};

#define HAND_SWITCH_PROCESSES 2u /* without a working set */

/* Calls per second; or switches per second, after lmbench's lat_ctx: a byte goes round two processes on one CPU, and
 * what writing and reading it costs one process alone is measured beforehand and subtracted. 0; -errno. */
int hand_calls_run(const struct hand_calls *h, double *ret_rate);

#endif
