/* SPDX-License-Identifier: MIT */

/* Affinity by raw system call: the kernel requires a mask at least as wide as its own, and glibc's set is narrower than
 * some kernels. Used by spawn (before exec: async-signal-safe) and housekeeping. */

#include "daemon/run/spawn/affinity.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD (8u * sizeof(unsigned long))

int affinity_get(pid_t tid, struct affinity *ret) {
        struct affinity a;
        memset(&a, 0, sizeof(a));
        if (syscall(SYS_sched_getaffinity, tid, sizeof(a.bits), a.bits) < 0)
                return -errno;
        *ret = a;
        return 0;
}

int affinity_set(pid_t tid, const struct affinity *a) {
        return syscall(SYS_sched_setaffinity, tid, sizeof(a->bits), a->bits) < 0 ? -errno : 0;
}

int affinity_initial(struct affinity *ret) {
        struct affinity now, all, most;
        int r = affinity_get(0, &now);
        if (r < 0)
                return r;
        memset(&all, 0xff, sizeof(all));
        if (affinity_set(0, &all) < 0 || affinity_get(0, &most) < 0 || memcmp(&most, &now, sizeof(now)) != 0) {
                r = affinity_set(0, &now);
                *ret = now;
        } else
                *ret = all;
        return r;
}

int affinity_from_list(const int32_t *cpus, size_t n, struct affinity *ret) {
        struct affinity a;
        memset(&a, 0, sizeof(a));
        for (size_t i = 0; i < n; i++) {
                if (cpus[i] < 0 || (uint32_t) cpus[i] >= AFFINITY_CPUS)
                        return -ERANGE;
                a.bits[(uint32_t) cpus[i] / WORD] |= 1UL << ((uint32_t) cpus[i] % WORD);
        }
        *ret = a;
        return 0;
}
