/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_SHM_H
#define IPCLAB_TESTS_HAND_SHM_H

/*
 * Shared memory by hand, as hand.h has it for descriptors: two forked processes, pinned, a ring of slots and a plain
 * loop. And the two figures that no ring can exceed: a word handed to and fro, and memcpy().
 */

#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hand_shm {
        enum transport transport; /* where the memory comes from */
        enum workload workload;
        enum wait_mode wait;
        enum verify verify;
        size_t size;
        uint32_t slots;
        uint64_t warmup_ns, duration_ns; /* before and within the clock; hand.h explains why by time */
        uint64_t chunk;                  /* messages between two readings of the clock; at least 1 */
        int cpus[2];
};

/* Messages per second, by the receiver's clock (stream) or the initiator's (pingpong). 0; -errno. */
int hand_shm_run(const struct hand_shm *h, double *ret_rate);

/* Two cache lines, each written by one CPU and watched by the other: round trips per second. */
int hand_handover_run(const int cpus[2], uint64_t rounds, double *ret_rate);

/* Shared memory in pieces, `stride` bytes from one to the next. */
struct hand_pieces {
        size_t size, stride;
        uint32_t slots;
};

/* memcpy() of a piece at a time from a private buffer into the shared ones, on the first CPU: pieces per second.
 * `read_back`: after each pass over all of them the second CPU reads all lines, outside the clock. */
int hand_memcpy_run(const int cpus[2], const struct hand_pieces *p, uint64_t passes, int read_back, double *ret_rate);

#endif
