/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_POLICY_H
#define IPCLAB_AGENT_POLICY_H

/*
 * A memory policy for some pages only: what is touched between policy_enter() and policy_leave() lies where the given
 * one says, whatever the thread has otherwise. Source: man 2 set_mempolicy.
 */

#include "schema/spec/spec.h"

#include <stddef.h>

struct policy_saved {
        bool changed;
        int mode;
        unsigned long nodes[SPEC_NODES_MAX / 8 / sizeof(unsigned long)];
};

/* MEMORY_DEFAULT: nothing is changed. 0 or negative errno. */
int policy_enter(enum memory_policy policy, const struct node_set *nodes, struct policy_saved *ret);
int policy_leave(const struct policy_saved *saved);

/* For pages of this range, not touched yet, for good: mbind(2). MEMORY_DEFAULT: as the thread's. 0 or negative errno.
 */
int policy_of_range(void *start, size_t length, enum memory_policy policy, const struct node_set *nodes);

/* For the calling thread from now on. 0 or negative errno. */
int policy_set(enum memory_policy policy, const struct node_set *nodes);

#endif
