/* SPDX-License-Identifier: MIT */
#pragma once

/* Private to daemon/placement/. */

#include <stddef.h>
#include <stdint.h>

struct agent_placement;
struct point;
struct refusal;
struct run_placement;
struct topology;
struct topology_node;

/* Copies the CPUs into an end that has none yet. 0; -ENOMEM. n > 0. */
int placement_set_cpus(struct agent_placement *a, const int *cpus, size_t n);

/* Gives both ends CPUs of the node, one per thread as far as there are enough: first end's in topology order, then the
 * second end's, so that thread i of each end is on a core of its own where possible. 0; -ENOMEM. */
int placement_spread(const struct topology *t, const struct topology_node *node, uint32_t threads,
                     struct run_placement *ret);

/* Binds memory to the node, or to the nearest that has some. Nothing on a kernel without NUMA. */
void placement_bind_memory(const struct topology *t, const struct topology_node *node, struct agent_placement *a);

/* An object per role; see placement_resolve(). */
int placement_resolve_explicit(const struct topology *t, const struct point *p, struct run_placement *ret,
                               struct refusal *r);
