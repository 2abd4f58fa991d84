/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PROOF_H
#define IPCLAB_AGENT_PROOF_H

/*
 * Where the agent's threads and pages really are, told by the kernel and not by what was asked: affinity, CPU and node
 * of each worker, its memory policy, the node of every page of its buffer, its stack and its transport's memory
 * (pages.h), and the same of processes that a workload forks. The agent states, the daemon judges
 * (daemon/placement/placement.h). The JSON is described at struct message_ready.
 *
 * A packet has a limit, and what does not fit is told of many at once, never left out. With more than 64 threads, or
 * where rows of each are too long, pages are summed per kind ("threads": how many, instead of "thread"). Threads that
 * may be on the same CPUs are told of together ("threads_together"): behind the first 64 where nobody pinned them, else
 * where a row of each is too long.
 *
 * Source: man 2 sched_getaffinity, getcpu, get_mempolicy, move_pages; man 5 proc (task/TID/stat, field processor;
 * task/TID/sched, se.nr_migrations).
 */

#include "agent/base/thread-proof.h"
#include "agent/proof/page-sizes.h"
#include "agent/proof/pages.h"

#include <stdint.h>

struct agent;
struct worker;

/* An agent's, at a->proof: the pages that are looked at, and what workload and transport add to it. */
struct proof {
        struct page_list pages;
        struct page_sizes sizes; /* of the last proof_to_json() */
        /* Processes that the workload forked; they are listed behind the workers. NULL: none. */
        struct proof_member *(*members)(const struct agent *a, uint32_t *ret_n);
        /* Pages beside the workers' buffers and stacks. May be NULL. 0; negative errno. */
        int (*list_pages)(const struct agent *a, struct page_list *list);
        /* A member was found without memory. Negative errno with a->failure; 0 where all live. May be NULL. */
        int (*missing)(struct agent *a);
};

/* Has pages of the caller's own in the part of the stack below its frame that a loop is going to use, and tells where
 * it is. What lies there from before is given back: a forked process, as a twin is, has pages of its ancestor's there,
 * and keeps those that the ancestor was the first to write to. Only what a signal handler may do, too. */
void proof_take_stack(struct stack_range *ret);

/* In the worker's thread, at rest: affinity, CPU, node, migrations, policy, stack. The first call is the base that
 * migrations are counted from: one that was away and came back between two looks at its CPU is found out. 0; negative
 * errno with w->failure. */
int proof_take(struct worker *w);

/* The leader, now and then while loops run: which CPU each worker is on, and where some of the pages are. Costs the
 * workers nothing. */
void proof_look(struct agent *a);

/* The whole proof, workers at rest (having taken theirs), in the leader's thread. The first call lists the pages that
 * all later looks are at. malloc()ed JSON. 0; -ENOMEM; -EMSGSIZE with a->failure; negative errno. */
int proof_to_json(struct agent *a, char **ret);

#endif
