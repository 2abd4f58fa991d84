/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PROOF_THREADS_H
#define IPCLAB_AGENT_PROOF_THREADS_H

/*
 * The proof's rows of threads: one for each, or, where these exceed a packet, one for all threads with the same
 * affinity. The daemon's checks lose nothing by that: such threads have the same requested placement, and their row
 * includes the observations of each.
 */

#include "agent/os/cpumask.h"
#include "schema/protocol/proof-report.h"

#include <stdint.h>

struct agent;
struct proof_member;

/* The processes that the workload forked to measure with; NULL and 0 where none exist. */
struct proof_member *proof_members(const struct agent *a, uint32_t *ret_n);

/* The number of the agent's own threads and those processes. */
uint32_t proof_threads_total(const struct agent *a);

/* Adds rows of the first `listed` threads, and of all others in groups, and sets the total. */
void proof_report_threads(struct proof_report *p, const struct agent *a, uint32_t listed);

/* The numbers of a set, which it adds to the report. */
struct proof_list proof_list_of_cpus(struct proof_report *p, const struct cpumask *m);
struct proof_list proof_list_of_nodes(struct proof_report *p, const struct node_set *s);

#endif
