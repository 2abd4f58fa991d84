/* SPDX-License-Identifier: MIT */

/*
 * set_mempolicy(2) and its undoing, by raw system calls. libnuma has wrappers of the same, but a constructor, too:
 * before main() it would read sysfs, and for that while replace the policy that the daemon has given to the agent. Only
 * the daemon is linked with it.
 */

#include "agent/os/policy.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int mode_of(enum memory_policy p) {
        switch (p) {
        case MEMORY_BIND:
                return MPOL_BIND;
        case MEMORY_PREFERRED:
                return MPOL_PREFERRED;
        case MEMORY_INTERLEAVE:
                return MPOL_INTERLEAVE;
        case MEMORY_LOCAL:
                return MPOL_LOCAL;
        default:
                return MPOL_DEFAULT;
        }
}

int policy_set(enum memory_policy policy, const struct node_set *nodes) {
        int mode = mode_of(policy);
        bool some = mode != MPOL_DEFAULT && mode != MPOL_LOCAL;
        long r = syscall(SYS_set_mempolicy, mode, some ? nodes->bits : NULL, some ? SPEC_NODES_MAX + 1 : 0);
        return r < 0 ? -errno : 0;
}

int policy_of_range(void *start, size_t length, enum memory_policy policy, const struct node_set *nodes) {
        int mode = mode_of(policy);
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
