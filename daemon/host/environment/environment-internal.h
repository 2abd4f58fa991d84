/* SPDX-License-Identifier: MIT */
#pragma once

/* The members of a snapshot; shared by the files that take it, show it and compare two. */

#include "daemon/host/environment/environment.h"
#include "daemon/host/hostfs.h"

/* One setting or property of the host. Two snapshots that differ in one: "environment-changed:KEY". */
struct fact {
        const char *key; /* static */
        bool is_number;
        char *text; /* NULL: unreadable, or a number */
        int64_t number;
        char reason[160]; /* why there is no value; "" when there is one */
        bool changed;     /* it was another at some moment since (environment_observe()), whatever it is now */
};

bool fact_equal(const struct fact *a, const struct fact *b);

struct mitigation {
        char *name, *text;
};

/* A CPU's counters since boot. */
struct cpu_state {
        int id;
        uint64_t user_ns, system_ns, idle_ns, iowait_ns, irq_ns, softirq_ns, steal_ns; /* user with nice and guest */
        bool has_interrupts, has_frequency, has_throttles;
        uint64_t interrupts, device_interrupts; /* as in struct interrupt_counts */
        uint64_t throttles;                     /* core and package */
        uint64_t frequency_khz;                 /* now */
};

struct node_state {
        int id;
        bool known;
        uint64_t hit, miss, foreign, interleave_hit, local, other; /* pages, numastat(8) */
};

struct counter_state {
        const char *key; /* static, as in /proc/vmstat */
        bool known;
        uint64_t value;
};

#define ENVIRONMENT_VMSTAT_MAX 8

struct environment {
        struct fact *facts;
        size_t n_facts;
        struct mitigation *mitigations;
        size_t n_mitigations;
        char mitigations_reason[160];

        uint64_t uptime_ns; /* when it was taken, on the clock of /proc/uptime (10 ms) */
        double load[3];
        uint64_t memory_total_bytes, memory_available_bytes, memory_free_bytes;
        struct cpu_state *cpus; /* online ones of the topology, ascending */
        size_t n_cpus;
        char interrupts_reason[160], frequency_reason[160], throttles_reason[160];
        struct node_state *nodes;
        size_t n_nodes;
        struct counter_state vmstat[ENVIRONMENT_VMSTAT_MAX];
        size_t n_vmstat;
};

/* "cannot read /proc/x: No such file or directory", for what failed last. */
void environment_reason(const struct hostfs *h, int error, char *ret /* [160] */);

/* Each fills its part. Only what the kernel always has is an error (-errno, logged); all else becomes a reason. */
int environment_take_facts(struct hostfs *h, bool this_machine, const struct topology *t, struct environment *e);
int environment_take_state(struct hostfs *h, const struct topology *t, struct environment *e);
