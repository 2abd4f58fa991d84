/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The actual placement of the agent's threads and pages, as the kernel reports it and not as it was requested:
 * affinity, CPU and node of each worker, its memory policy, the node of every page of its buffer, its stack and its
 * transport's memory (pages.h), and the same of processes that a workload forks. The agent reports these facts, and the
 * daemon checks them (daemon/placement/placement.h). The rows are described at struct proof_report.
 *
 * The stored text has a limit, and rows that do not fit are merged, never omitted. With more than 64 threads, or where
 * a row for each is too long, pages are summed per kind ("threads": their number, instead of "thread"). Threads with
 * the same affinity are merged in "threads_together": after the first 64 where threads are not pinned, else where a row
 * for each is too long.
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

/* An agent's, at a->proof: the pages that are checked, and the callbacks by which workload and transport extend it. */
struct proof {
        struct page_list pages;
        struct page_sizes sizes; /* of the last proof_collect() */
        /* Processes that the workload forked; they are listed after the workers. NULL: none. */
        struct proof_member *(*members)(const struct agent *a, uint32_t *ret_n);
        /* Adds pages beside the workers' buffers and stacks. May be NULL. 0; negative errno. */
        int (*list_pages)(const struct agent *a, struct page_list *list);
        uint32_t looked; /* by proof_observe_rights(): the thread or member that is next */
        /* Called when a member has no memory. Negative errno with a->failure; 0 where all live. May be NULL. */
        int (*missing)(struct agent *a);
};

/* Gives the caller pages of its own in the part of the stack below its frame that a loop will use, and returns that
 * range. It first discards the pages there: a forked process, such as a forked peer, would otherwise continue to use
 * pages that its ancestor placed. Async-signal-safe. */
void proof_take_stack(struct stack_range *ret);

/* In the worker's thread, at rest: affinity, CPU, node, migrations, policy, stack. Migrations count from the first
 * call: the count reveals a thread that left its CPU and returned between two observations. 0; negative errno with
 * w->failure. */
int proof_take(struct worker *w);

/* The leader calls these while loops run, and the workers take no part in it. Ten times a second: looks whether another
 * process has changed the affinity or the scheduling of a thread; more than 64 threads have their turns, each about
 * once a second, and less often where the leader is late. What is put back between two looks is not noticed. */
void proof_observe_rights(struct agent *a);
/* Once a second: observes each worker's CPU and the nodes of a sample of the pages. */
void proof_observe(struct agent *a);

/* Collects the whole proof, in the leader's thread, with the workers at rest after proof_take(). The first call lists
 * the pages for all later checks. *ret is for proof_report_free(). 0; -ENOMEM; -EMSGSIZE, or -EPERM where a thread's
 * scheduling was changed from outside since then, with a->failure; negative errno. */
int proof_collect(struct agent *a, struct proof_report **ret);
