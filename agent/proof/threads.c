/* SPDX-License-Identifier: MIT */

/* Tells of threads in JSON; see proof-threads.h. In the leader's thread, all others at rest. */

#include "agent/proof/threads.h"

#include "agent/base/agent.h"
#include "agent/proof/proof.h"
#include "schema/json/json.h"
#include "schema/util.h"

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

/* Thread i of all: the agent's own, then the processes beside it. */
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

static void put_migrations(struct json_writer *w, uint64_t migrations, int error) {
        if (error == 0) {
                json_member_u64(w, "migrations", migrations);
                return;
        }
        char reason[128];
        (void) snprintf(reason, sizeof reason, "/proc/PID/sched: %s", strerrordesc_np(error));
        json_member_null(w, "migrations");
        json_member_string(w, "migrations_reason", reason);
}

static struct cpumask cpus_seen(const struct thread_proof *p) {
        struct cpumask seen = p->seen;
        cpumask_merge(&seen, &p->looked);
        return seen;
}

static void put_mask(struct json_writer *w, const char *key, const struct cpumask *m) {
        json_put_key(w, key);
        cpumask_put(w, m);
}

static void put_thread(struct json_writer *w, const struct agent *a, uint32_t i) {
        pid_t tid;
        const struct thread_proof *p = nth(a, i, &tid);
        const struct cpumask seen = cpus_seen(p);
        json_object_begin(w);
        json_member_u64(w, "thread", i);
        json_member_i64(w, "tid", tid);
        put_mask(w, "affinity", &p->affinity);
        json_member_u64(w, "cpu", p->cpu);
        json_member_u64(w, "node", p->node);
        put_mask(w, "cpus_seen", &seen);
        put_migrations(w, p->migrations - p->migrations_base, p->migrations_error);
        json_object_end(w);
}

/* What threads did that may be on the same CPUs. */
struct company {
        struct cpumask cpus, seen;
        struct node_set nodes;
        uint64_t migrations;
        int migrations_error;
};

static void join(struct company *c, const struct thread_proof *p) {
        const struct cpumask seen = cpus_seen(p);
        cpumask_add(&c->cpus, p->cpu);
        cpumask_merge(&c->seen, &seen);
        if (p->node < SPEC_NODES_MAX)
                node_set_add(&c->nodes, p->node);
        c->migrations += p->migrations - p->migrations_base;
        c->migrations_error = p->migrations_error ? p->migrations_error : c->migrations_error;
}

static bool is_alike(const struct agent *a, uint32_t i, uint32_t k) {
        pid_t tid;
        return cpumask_equal(&nth(a, i, &tid)->affinity, &nth(a, k, &tid)->affinity);
}

/* From the first of them on. */
static void put_company(struct json_writer *w, const struct agent *a, uint32_t first, uint32_t total) {
        struct company c = {.migrations = 0};
        pid_t tid;
        json_object_begin(w);
        json_put_key(w, "threads");
        json_array_begin(w);
        for (uint32_t i = first; i < total; i++)
                if (is_alike(a, first, i)) {
                        json_put_u64(w, i);
                        join(&c, nth(a, i, &tid));
                }
        json_array_end(w);
        put_mask(w, "affinity", &nth(a, first, &tid)->affinity);
        put_mask(w, "cpus", &c.cpus);
        json_put_key(w, "nodes");
        json_array_begin(w);
        for (unsigned n = 0; n < SPEC_NODES_MAX; n++)
                if (node_set_has(&c.nodes, n))
                        json_put_u64(w, n);
        json_array_end(w);
        put_mask(w, "cpus_seen", &c.seen);
        put_migrations(w, c.migrations, c.migrations_error);
        json_object_end(w);
}

void proof_put_threads(struct json_writer *w, const struct agent *a, uint32_t listed) {
        uint32_t total = proof_threads_total(a);
        json_put_key(w, "threads");
        json_array_begin(w);
        for (uint32_t i = 0; i < listed; i++)
                put_thread(w, a, i);
        json_array_end(w);
        if (listed < total) {
                json_put_key(w, "threads_together");
                json_array_begin(w);
                for (uint32_t i = listed; i < total; i++) {
                        uint32_t before = listed;
                        while (before < i && !is_alike(a, before, i))
                                before++;
                        if (before == i)
                                put_company(w, a, i, total);
                }
                json_array_end(w);
        }
        json_member_u64(w, "threads_total", total);
}
