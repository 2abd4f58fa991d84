/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PROOF_THREADS_H
#define IPCLAB_AGENT_PROOF_THREADS_H

/*
 * The part of the proof that speaks of threads: one by one, or, where that is too much for a packet, those together
 * that may be on the same CPUs. Nothing that the daemon judges by is lost in that: such threads were asked for the
 * same, and what any of them did is in what is told of all.
 */

#include <stdint.h>

struct agent;
struct json_writer;
struct proof_member;

/* The processes beside this one that the workload measures with; NULL and 0 where there are none. */
struct proof_member *proof_members(const struct agent *a, uint32_t *ret_n);

/* The agent's own threads and those processes. */
uint32_t proof_threads_total(const struct agent *a);

/* Members "threads", with the first `listed` of them, "threads_together" with the others where there are any, and
 * "threads_total". */
void proof_put_threads(struct json_writer *w, const struct agent *a, uint32_t listed);

#endif
