/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A memory policy for some pages only: it replaces the thread's own for pages that are first touched between
 * policy_enter() and policy_leave(). Source: man 2 set_mempolicy.
 */

#include "schema/spec/spec.h"

#include <stddef.h>

struct policy_saved {
        bool changed;
        int mode;
        unsigned long nodes[SPEC_NODES_MAX / 8 / sizeof(unsigned long)];
};

/* Begins and ends such a section. MEMORY_DEFAULT: the thread's policy is unchanged. 0 or negative errno. */
int policy_enter(enum memory_policy policy, const struct node_set *nodes, struct policy_saved *ret);
int policy_leave(const struct policy_saved *saved);

/* Sets the policy of this range, whose pages are not touched yet, permanently: mbind(2). MEMORY_DEFAULT: the thread's.
 * 0 or negative errno. */
int policy_of_range(void *start, size_t length, enum memory_policy policy, const struct node_set *nodes);

/* Sets the calling thread's policy from now on. 0 or negative errno. */
int policy_set(enum memory_policy policy, const struct node_set *nodes);
