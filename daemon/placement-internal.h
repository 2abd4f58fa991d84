/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PLACEMENT_INTERNAL_H
#define IPCLAB_DAEMON_PLACEMENT_INTERNAL_H

/* What the files of placement share; nobody else includes it. */

#include "daemon/placement.h"

/* Copies the CPUs into an end that has none yet. 0; -ENOMEM. n > 0. */
int placement_set_cpus(struct agent_placement *a, const int *cpus, size_t n);

/* Binds memory to the node, or to the nearest that has some. Nothing on a kernel without NUMA. */
void placement_bind_memory(const struct topology *t, const struct topology_node *node, struct agent_placement *a);

/* An object per role; see placement_resolve(). */
int placement_resolve_explicit(const struct topology *t, const struct point *p, struct run_placement *ret,
                               struct refusal *r);

#endif
