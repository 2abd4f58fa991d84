/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PLACEMENT_H
#define IPCLAB_DAEMON_PLACEMENT_H

/*
 * From what a spec asks ("same-node", {"sender": {"node": 0}}) to CPUs and memory nodes on this machine, and from an
 * agent's proof back to the question whether it was so.
 */

#include "daemon/host/topology.h"
#include "schema/protocol/protocol.h"
#include "schema/refusal.h"

struct run_placement {
        struct agent_placement ends[END_COUNT];
        int *daemon_cpus; /* where the daemon shall be during the run; n 0: nowhere to go */
        size_t n_daemon_cpus;
        /* What is to be known of it, flagged in the result: */
        bool shares_cpus;      /* an end has more threads than CPUs, or both ends together, whatever the placement */
        bool shares_cores;     /* same-node on a node of one core: the ends are SMT siblings */
        bool memory_elsewhere; /* an end's node has no memory that may be used: its pages are on another */
};

/*
 * Resolves a point's placement:
 *
 *      default     nothing pinned, no policy: where the kernel puts the threads, whatever the transport; but the
 *                  processes of a context-switch, which would wait for each other across CPUs, as same-cpu
 *      same-cpu    both ends on one CPU
 *      same-core   two SMT siblings; refused where there are none
 *      same-node   CPUs of one node, of different cores where it has them; threads take as many CPUs as there are, the
 *                  ends disjoint ones when there are enough; over tcp a node of one CPU will do where there is no other
 *      cross-node  each end on a node of its own; refused where only one node has CPUs, or where the memory of both
 *                  ends would be one node's
 *      explicit    cpu: that one; node: the whole node, roaming, as numactl --cpunodebind, but over tcp a CPU of the
 *                  node for each thread, pinned, in topology order, the other end's last; memory as given, as numactl
 *                  --membind, --preferred, --interleave, --localalloc
 *
 * Among nodes the first that fits is taken, those with memory before those without. Named placements but default bind
 * memory to their node, or to the nearest with memory. Leaders and daemon get CPUs that no worker has, where there are
 * any, those on cores without a worker before the others; a leader the first AGENT_CPUS_MAX of them, which is what its
 * message holds, the daemon all. A workload with one agent fills END_FIRST alone.
 *
 * 0; -EINVAL with *r (422: what this machine has not, pointer below /placement); -ENOMEM.
 */
int placement_resolve(const struct topology *t, const struct point *p, struct run_placement *ret, struct refusal *r);
void run_placement_deinit(struct run_placement *p);

/* Replaces "all-node-pairs" by each ordered pair of nodes with CPUs, roaming on the node, and "all-cpu-pairs" by each
 * ordered pair of CPUs that may be used; memory bound to the node, or to the nearest that has some. 0; -EINVAL with
 * *r; -ENOMEM. */
int placement_expand_pairs(const struct topology *t, struct spec *spec, struct refusal *r);

/* {"cpus": […], "roam": false, "node": …, "memory": {"policy", "nodes"}, "leader_cpus": […]}: what was given to an
 * agent, with "buffer" as "memory" where the spec places buffers apart; node is null when nothing is pinned or the CPUs
 * are of several nodes. malloc()ed. */
int placement_to_json(const struct topology *t, const struct agent_placement *p, char **ret);

/* Checks an agent's proof (see struct message_ready) against what it was given: 0 when it holds; -EPERM with
 * a sentence in ret_detail[300] when CPUs or pages were elsewhere ("thread 0 ran on CPU 3, asked 1"), when pages were
 * moved, or when a memory policy was given and the proof does not show where the memory is; -EBADMSG with the member at
 * fault; -ENOMEM. Pages of preferred and local may be anywhere, as these policies promise no node, but must stay there;
 * of default nothing is asked. In *doubts things become true, never false. */
#define PLACEMENT_DETAIL_MAX 300
struct placement_doubts {
        bool migrations_unknown; /* a thread was to stay on one CPU, and its kernel does not tell whether it was away */
        bool pages_moved;        /* to another node, under the default policy, which permits it */
};
int placement_verify(const struct agent_placement *given, const struct point *point, enum end end,
                     const struct json *proof, struct placement_doubts *doubts, char *ret_detail);

#endif
