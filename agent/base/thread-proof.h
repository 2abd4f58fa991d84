/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The placement of one thread as the proof collects it (agent/proof/proof.h): of a worker, or of a process that a
 * workload forked.
 */

#include "agent/os/cpumask.h"
#include "agent/os/scheduling.h"
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
        struct cpumask initial; /* the affinity when the thread was ready; the leader writes these */
        struct cpumask changed; /* another one that it observed since then, though it may be restored */
        bool has_initial, has_changed;
        struct scheduling scheduling;  /* when the thread was ready; the leader writes these, too */
        struct scheduling rescheduled; /* another one that it observed since then */
        bool has_scheduling, is_rescheduled;
        struct cpumask seen;     /* CPUs that the thread itself found */
        struct cpumask observed; /* CPUs where the leader observed it or its rings' threads; the leader writes it */
        unsigned cpu, node;      /* at the last observation */
        int policy_error;        /* errno of get_mempolicy, 0 = the two below hold */
        enum memory_policy policy;
        struct node_set policy_nodes;
        bool has_base;
        int migrations_error;                 /* errno of task/TID/sched, 0 = the two below hold */
        uint64_t migrations_base, migrations; /* the kernel's count at the first observation, and at the last */
        struct stack_range stack;
};

/* A process with one thread that the workload forked to measure with; the proof lists it after the workers. */
struct proof_member {
        pid_t pid;
        struct thread_proof proof;
};
