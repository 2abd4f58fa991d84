/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PROOF_H
#define IPCLAB_AGENT_PROOF_H

/*
 * Where the agent's threads and pages really are, told by the kernel and not by what was asked: affinity, CPU and node
 * of each worker, its memory policy, the node of every page of its buffer, its stack and its transport's memory. The
 * agent states, the daemon judges (daemon/placement.h). The JSON is described at struct message_ready.
 *
 * With more than 64 threads the pages are summed per kind ("threads": how many, instead of "thread"), and of threads
 * that nobody pinned only the first 64 are listed; "threads_total" says how many there are.
 *
 * Source: man 2 sched_getaffinity, getcpu, get_mempolicy, move_pages; man 5 proc (task/TID/stat, field processor;
 * task/TID/sched, se.nr_migrations).
 */

#include "agent/cpumask.h"
#include "schema/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agent;
struct worker;

struct thread_proof {
        struct cpumask affinity;
        struct cpumask seen;   /* CPUs that the thread found itself on */
        struct cpumask looked; /* CPUs that the leader saw it on; the leader's to write */
        unsigned cpu, node;    /* at the last look */
        int policy_error;      /* errno of get_mempolicy, 0 = the two below hold */
        enum memory_policy policy;
        struct node_set policy_nodes;
        bool has_base;
        int migrations_error;                 /* errno of task/TID/sched, 0 = the two below hold */
        uint64_t migrations_base, migrations; /* the kernel's count at the first look, and at the last */
        uintptr_t stack_low, stack_high;      /* pages of the stack that the loop runs on */
};

/* In the worker's thread, at rest: affinity, CPU, node, migrations, policy, stack. The first call is the base that
 * migrations are counted from: one that was away and came back between two looks at its CPU is found out. 0; negative
 * errno with w->failure. */
int proof_take(struct worker *w);

/* The leader, now and then while loops run: which CPU each worker is on. Costs the workers nothing. */
void proof_look(struct agent *a);

struct page_range {
        const char *what; /* static: "buffer", "stack", "ring" */
        uint32_t thread;
        uintptr_t low, high;
};

struct page_list {
        struct page_range *ranges;
        size_t n, size;
};

/* Adds [start, start + length), rounded out to pages. 0; -ENOMEM. */
int page_list_add(struct page_list *list, const char *what, uint32_t thread, const void *start, size_t length);

/* The whole proof, workers at rest (having taken theirs). malloc()ed JSON. 0; -ENOMEM; negative errno. */
int proof_to_json(struct agent *a, char **ret);

#endif
