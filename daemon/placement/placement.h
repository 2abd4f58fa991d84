/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Resolves the placement of a spec ("same-node", {"sender": {"node": 0}}) to CPUs and memory nodes of this machine, and
 * verifies an agent's proof against them.
 */

#include "daemon/host/topology.h"
#include "schema/protocol/protocol.h"
#include "schema/refusal.h"

struct run_placement {
        struct agent_placement ends[END_COUNT];
        int *daemon_cpus; /* the daemon's CPUs during the run; n 0: no CPU is free of workers */
        size_t n_daemon_cpus;
        /* Flags of the result: */
        bool shares_cpus;      /* an end has more threads than CPUs, or both ends together, whatever the placement */
        bool shares_cores;     /* same-node on a node of one core: the ends are SMT siblings */
        bool memory_elsewhere; /* an end's node has no memory that may be used: its pages are on another */
};

/*
 * Resolves a point's placement:
 *
 *      default     nothing pinned, no policy: where the kernel puts the threads, over every transport. The processes
 *                  of a context-switch would wait for each other across CPUs, and are placed as same-cpu
 *      same-cpu    both ends on one CPU
 *      same-core   two SMT siblings; refused where there are none
 *      same-node   CPUs of one node, of different cores where it has them; threads take as many CPUs as there are, the
 *                  ends disjoint ones when there are enough; over tcp a node of one CPU is enough where there
 *                  is no other
 *      cross-node  each end on a node of its own; refused where only one node has CPUs, or where the memory of both
 *                  ends would be on one node
 *      explicit    cpu: that one; node: the whole node, roaming, as numactl --cpunodebind, but over tcp a CPU of the
 *                  node for each thread, pinned, in topology order, the other end's last; memory as given, as numactl
 *                  --membind, --preferred, --interleave, --localalloc
 *
 * Among nodes the first that fits is taken, those with memory before those without. Named placements but default bind
 * memory to their node, or to the nearest with memory. Leaders and the daemon get CPUs without a worker, where there
 * are any, and CPUs on cores without a worker before others. A leader gets the first AGENT_CPUS_MAX of them, the
 * capacity of its message, and the daemon all. A workload with one agent fills END_FIRST alone.
 *
 * 0; -EINVAL with *r (422: what this machine lacks, pointer below /placement); -ENOMEM.
 */
int placement_resolve(const struct topology *t, const struct point *p, struct run_placement *ret, struct refusal *r);
void run_placement_deinit(struct run_placement *p);

/* Replaces "all-node-pairs" by each ordered pair of nodes with CPUs, roaming on the node, and "all-cpu-pairs" by each
 * ordered pair of usable CPUs; memory is bound to the node, or to the nearest that has some. 0; -EINVAL with
 * *r; -ENOMEM. */
int placement_expand_pairs(const struct topology *t, struct spec *spec, struct refusal *r);

/* {"cpus": […], "roam": false, "node": …, "memory": {"policy", "nodes"}, "leader_cpus": […]}: the placement of an
 * agent, with "buffer" as "memory" where the spec places buffers apart; node is null when nothing is pinned or the CPUs
 * are of several nodes. malloc()ed. */
int placement_to_json(const struct topology *t, const struct agent_placement *p, char **ret);

/* Verifies an agent's proof (see proof_report_check(), which it must have passed) against its placement: 0 when it
 * holds; -EPERM with a sentence in ret_detail[DETAIL_MAX] when CPUs or pages were elsewhere ("thread 0 ran on CPU 3
 * instead of 1"), when pages were moved, or when a memory policy was given and the proof lacks the nodes of the memory;
 * -EBADMSG with the member at fault; -ENOMEM. Pages under preferred and local may be on any node, as these policies
 * promise none, but must stay there; default promises nothing. Members of *doubts are set to true, never to false. */
struct placement_doubts {
        bool migrations_unknown; /* a thread was to stay on one CPU, and its kernel does not count migrations */
        bool pages_moved;        /* to another node, under the default policy, which permits it */
};
int placement_verify(const struct agent_placement *given, const struct point *point, enum end end,
                     const struct proof_report *proof, struct placement_doubts *doubts, char *ret_detail);
