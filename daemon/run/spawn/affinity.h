/* SPDX-License-Identifier: MIT */
#pragma once

/* Sets of CPUs for sched_setaffinity(2), as wide as any kernel; glibc's cpu_set_t ends at CPU 1023. */

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define AFFINITY_CPUS 8192u

struct affinity {
        unsigned long bits[AFFINITY_CPUS / (8u * sizeof(unsigned long))];
};

/* Where a thread may run (tid 0: the caller). 0 or negative errno. */
int affinity_get(pid_t tid, struct affinity *ret);
int affinity_set(pid_t tid, const struct affinity *a);
/* The initial affinity of this thread: every possible CPU, which the kernel cuts down to what the cpuset has online,
 * unless it has been confined further (taskset(1), CPUAffinity=): then its present affinity. So a CPU that comes back,
 * or is added to the cpuset, is used again. Moves the thread for a moment. 0 or negative errno. */
int affinity_initial(struct affinity *ret);
/* 0; -ERANGE when a CPU is negative or beyond AFFINITY_CPUS. */
int affinity_from_list(const int32_t *cpus, size_t n, struct affinity *ret);
