/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_THREAD_PROOF_H
#define IPCLAB_AGENT_THREAD_PROOF_H

/*
 * Where one thread has been, as the proof of its placement collects it (agent/proof/proof.h): a worker's, or that of a
 * process which a workload forked.
 */

#include "agent/os/cpumask.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Pages of the stack that a loop runs on. */
struct stack_range {
        uintptr_t low, high;
};

struct thread_proof {
        struct cpumask affinity;
        struct cpumask seen;   /* CPUs that the thread found itself on */
        struct cpumask looked; /* CPUs that the leader saw it, or its rings' threads, on; the leader's to write */
        unsigned cpu, node;    /* at the last look */
        int policy_error;      /* errno of get_mempolicy, 0 = the two below hold */
        enum memory_policy policy;
        struct node_set policy_nodes;
        bool has_base;
        int migrations_error;                 /* errno of task/TID/sched, 0 = the two below hold */
        uint64_t migrations_base, migrations; /* the kernel's count at the first look, and at the last */
        struct stack_range stack;
};

/* A process beside the agent's own that the workload measures with: one thread, and listed behind the workers. */
struct proof_member {
        pid_t pid;
        struct thread_proof proof;
};

#endif
