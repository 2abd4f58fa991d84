/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_PLACEMENT_H
#define IPCLAB_DAEMON_PLACEMENT_H

/*
 * From what a spec asks ("same-node", {"sender": {"node": 0}}) to CPUs and memory nodes on this machine, and from an
 * agent's proof back to the question whether it was so.
 */

#include "daemon/topology.h"
#include "schema/protocol.h"
#include "schema/refusal.h"

struct run_placement {
        struct agent_placement ends[END_COUNT];
        int *daemon_cpus; /* where the daemon shall be during the run; n 0: nowhere to go */
        size_t n_daemon_cpus;
};

/* Resolves a point's placement. Leaders and daemon get CPUs that no worker has, where there are any. -EINVAL with *r
 * (422: what this machine has not); -ENOMEM. */
int placement_resolve(const struct topology *t, const struct point *p, struct run_placement *ret, struct refusal *r);
void run_placement_deinit(struct run_placement *p);
/* {"cpus": […], "node": …, "memory": {…}, "leader_cpus": […]}: what was given to an agent; malloc()ed. */
int placement_to_json(const struct topology *t, const struct agent_placement *p, char **ret);

/* Checks an agent's proof (JSON text, see agent/proof.h) against what it was given: 0 when it holds; -EPERM with a sentence in
 * ret_detail[300] when CPUs or pages were elsewhere ("thread 0 ran on CPU 3, asked 1"); -EBADMSG. */
int placement_verify(const struct agent_placement *given, const char *proof_json, char *ret_detail);

#endif
