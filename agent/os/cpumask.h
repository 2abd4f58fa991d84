/* SPDX-License-Identifier: MIT */
#pragma once

/* A set of CPUs in the format of the kernel's affinity calls; wider than glibc's cpu_set_t, which ends at CPU 1023. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CPUMASK_CPUS 8192u /* the most that Linux can be built for */
#define CPUMASK_WORD (8u * sizeof(unsigned long))

struct cpumask {
        unsigned long bits[CPUMASK_CPUS / (8u * sizeof(unsigned long))];
};

static inline void cpumask_add(struct cpumask *m, unsigned cpu) {
        if (cpu < CPUMASK_CPUS)
                m->bits[cpu / CPUMASK_WORD] |= 1UL << (cpu % CPUMASK_WORD);
}

static inline bool cpumask_has(const struct cpumask *m, unsigned cpu) {
        return cpu < CPUMASK_CPUS && (m->bits[cpu / CPUMASK_WORD] >> (cpu % CPUMASK_WORD) & 1);
}

/* Makes a set of a list's CPUs. 0; -ERANGE when one is negative or beyond CPUMASK_CPUS. */
int cpumask_from_list(const int32_t *cpus, size_t n, struct cpumask *ret);
void cpumask_merge(struct cpumask *into, const struct cpumask *m);
bool cpumask_equal(const struct cpumask *a, const struct cpumask *b);
unsigned cpumask_count(const struct cpumask *m);

/* Affinity of a thread (tid 0: the caller). 0 or negative errno; man 2 sched_setaffinity. */
int cpumask_get_affinity(pid_t tid, struct cpumask *ret);
int cpumask_set_affinity(pid_t tid, const struct cpumask *m);
