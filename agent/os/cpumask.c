/* SPDX-License-Identifier: MIT */

/* Sets of CPUs. This file makes raw system calls, as glibc's wrappers are bound to cpu_set_t's size. */

#include "agent/os/cpumask.h"

#include "schema/util.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int cpumask_from_list(const int32_t *cpus, size_t n, struct cpumask *ret) {
        struct cpumask m = {};
        for (size_t i = 0; i < n; i++) {
                if (cpus[i] < 0 || (uint32_t) cpus[i] >= CPUMASK_CPUS)
                        return -ERANGE;
                cpumask_add(&m, (unsigned) cpus[i]);
        }
        *ret = m;
        return 0;
}

void cpumask_merge(struct cpumask *into, const struct cpumask *m) {
        for (size_t i = 0; i < ELEMENTS(m->bits); i++)
                into->bits[i] |= m->bits[i];
}

bool cpumask_equal(const struct cpumask *a, const struct cpumask *b) {
        return memcmp(a, b, sizeof *a) == 0;
}

unsigned cpumask_count(const struct cpumask *m) {
        unsigned n = 0;
        for (size_t i = 0; i < ELEMENTS(m->bits); i++)
                n += (unsigned) __builtin_popcountl(m->bits[i]);
        return n;
}

int cpumask_get_affinity(pid_t tid, struct cpumask *ret) {
        struct cpumask m = {};
        if (syscall(SYS_sched_getaffinity, tid, sizeof m.bits, m.bits) < 0)
                return -errno;
        *ret = m;
        return 0;
}

int cpumask_set_affinity(pid_t tid, const struct cpumask *m) {
        return syscall(SYS_sched_setaffinity, tid, sizeof m->bits, m->bits) < 0 ? -errno : 0;
}
