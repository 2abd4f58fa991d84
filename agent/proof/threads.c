/* SPDX-License-Identifier: MIT */

/* Reports the threads; see threads.h. In the leader's thread, with all others at rest. */

#include "agent/proof/threads.h"

#include "agent/base/agent.h"
#include "agent/proof/proof.h"

#include <string.h>

struct proof_member *proof_members(const struct agent *a, uint32_t *ret_n) {
        *ret_n = 0;
        return a->proof->members ? a->proof->members(a, ret_n) : NULL;
}

uint32_t proof_threads_total(const struct agent *a) {
        uint32_t n_members;
        (void) proof_members(a, &n_members);
        return a->n_workers + n_members;
}

/* Thread i of all: the agent's own threads, then the forked processes. */
static const struct thread_proof *nth(const struct agent *a, uint32_t i, pid_t *ret_tid) {
        uint32_t n_members;
        const struct proof_member *members = proof_members(a, &n_members);
        if (i < a->n_workers) {
                *ret_tid = a->workers[i].tid;
                return &a->workers[i].proof;
        }
        *ret_tid = members[i - a->n_workers].pid;
        return &members[i - a->n_workers].proof;
}

/* That of the end; or another one that it had meanwhile, which is wrong whatever the end's is. */
static const struct cpumask *affinity_of(const struct thread_proof *p) {
        return p->has_changed ? &p->changed : &p->affinity;
}

static struct cpumask cpus_seen(const struct thread_proof *p) {
        struct cpumask seen = p->seen;
        cpumask_merge(&seen, &p->observed);
        return seen;
}

struct proof_list proof_list_of_cpus(struct proof_report *p, const struct cpumask *m) {
        struct proof_list list = proof_report_numbers(p);
        for (unsigned cpu = 0; cpu < CPUMASK_CPUS; cpu++)
                if (cpumask_has(m, cpu))
                        proof_report_add_number(p, &list, cpu);
        return list;
}

struct proof_list proof_list_of_nodes(struct proof_report *p, const struct node_set *s) {
        struct proof_list list = proof_report_numbers(p);
        for (unsigned node = 0; node < SPEC_NODES_MAX; node++)
                if (node_set_has(s, node))
                        proof_report_add_number(p, &list, node);
        return list;
}

static void report_thread(struct proof_report *p, const struct agent *a, uint32_t i) {
        pid_t tid;
        const struct thread_proof *t = nth(a, i, &tid);
        const struct cpumask seen = cpus_seen(t);
        struct proof_thread *row = proof_report_add_thread(p);
        if (!row)
                return;
        row->tid = tid;
        row->cpu = t->cpu;
        row->node = t->node;
        row->migrations = t->migrations - t->migrations_base;
        row->migrations_error = (uint32_t) t->migrations_error;
        row->affinity = proof_list_of_cpus(p, affinity_of(t));
        row->cpus_seen = proof_list_of_cpus(p, &seen);
}

static bool is_alike(const struct agent *a, uint32_t i, uint32_t k) {
        pid_t tid;
        return cpumask_equal(affinity_of(nth(a, i, &tid)), affinity_of(nth(a, k, &tid)));
}

/* Adds the row of all threads from `first` on with its affinity. */
static void report_group(struct proof_report *p, const struct agent *a, uint32_t first, uint32_t total) {
        struct proof_group *row = proof_report_add_group(p);
        struct cpumask cpus = {}, seen = {};
        struct node_set nodes = {};
        pid_t tid;
        if (!row)
                return;
        row->threads = proof_report_numbers(p);
        for (uint32_t i = first; i < total; i++)
                if (is_alike(a, first, i)) {
                        const struct thread_proof *t = nth(a, i, &tid);
                        const struct cpumask all = cpus_seen(t);
                        proof_report_add_number(p, &row->threads, i);
                        cpumask_add(&cpus, t->cpu);
                        cpumask_merge(&seen, &all);
                        node_set_add(&nodes, t->node);
                        row->migrations += t->migrations - t->migrations_base;
                        if (t->migrations_error)
                                row->migrations_error = (uint64_t) t->migrations_error;
                }
        row->affinity = proof_list_of_cpus(p, affinity_of(nth(a, first, &tid)));
        row->cpus = proof_list_of_cpus(p, &cpus);
        row->nodes = proof_list_of_nodes(p, &nodes);
        row->cpus_seen = proof_list_of_cpus(p, &seen);
}

void proof_report_threads(struct proof_report *p, const struct agent *a, uint32_t listed) {
        uint32_t total = proof_threads_total(a);
        for (uint32_t i = 0; i < listed; i++)
                report_thread(p, a, i);
        for (uint32_t i = listed; i < total; i++) {
                uint32_t before = listed;
                while (before < i && !is_alike(a, before, i))
                        before++;
                if (before == i)
                        report_group(p, a, i, total);
        }
        p->threads_total = total;
}
