/* SPDX-License-Identifier: MIT */

/*
 * set_mempolicy(2) and the restoring of the previous policy, by raw system calls. libnuma wraps these calls, but its
 * constructor reads sysfs before main() and meanwhile replaces the policy that the daemon has set for the agent. Only
 * the daemon is linked with it.
 */

#include "agent/os/policy.h"

#include <assert.h>
#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static_assert(MEMORY_DEFAULT == (int) MPOL_DEFAULT && MEMORY_PREFERRED == (int) MPOL_PREFERRED &&
                      MEMORY_BIND == (int) MPOL_BIND && MEMORY_INTERLEAVE == (int) MPOL_INTERLEAVE &&
                      MEMORY_LOCAL == (int) MPOL_LOCAL,
              "a memory policy is the kernel's mode");

int policy_set(enum memory_policy policy, const struct node_set *nodes) {
        int mode = (int) policy;
        bool some = mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
        long r = syscall(SYS_set_mempolicy, mode, some ? nodes->bits : NULL, some ? SPEC_NODES_MAX + 1 : 0);
        return r < 0 ? -errno : 0;
}

int policy_of_range(void *start, size_t length, enum memory_policy policy, const struct node_set *nodes) {
        int mode = (int) policy;
        bool some = mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
        if (policy == MEMORY_DEFAULT)
                return 0;
        long r = syscall(SYS_mbind, start, length, mode, some ? nodes->bits : NULL, some ? SPEC_NODES_MAX + 1 : 0, 0);
        return r < 0 ? -errno : 0;
}

int policy_enter(enum memory_policy policy, const struct node_set *nodes, struct policy_saved *ret) {
        memset(ret, 0, sizeof *ret);
        if (policy == MEMORY_DEFAULT)
                return 0;
        if (syscall(SYS_get_mempolicy, &ret->mode, ret->nodes, (unsigned long) SPEC_NODES_MAX, NULL, 0UL) < 0)
                return -errno;
        ret->changed = true;
        return policy_set(policy, nodes);
}

int policy_leave(const struct policy_saved *saved) {
        if (!saved->changed)
                return 0;
        int mode = saved->mode & ~MPOL_MODE_FLAGS;
        bool some = mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
        long r = syscall(SYS_set_mempolicy, saved->mode, some ? saved->nodes : NULL, some ? SPEC_NODES_MAX + 1 : 0);
        return r < 0 ? -errno : 0;
}
