/* SPDX-License-Identifier: MIT */
/*
 * Verifies that an agent's threads were where they were placed. The agent reports what the kernel returned, and this
 * file judges it; its numbers are untrusted, its layout is that of a received message. Called by the runner for the
 * proof in ready and for the one in report. Pages are verified in pages.c.
 */

#include "daemon/placement/verdict.h"

#include "schema/detail.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int verdict_bad(const struct verdict *v, const char *what) {
        return detail_fail(v->detail, -EBADMSG, "the agent's proof of its placement is malformed: %s", what);
}

static bool has_cpu(const int32_t *cpus, size_t n, uint32_t cpu) {
        for (size_t i = 0; i < n; i++)
                if ((uint32_t) cpus[i] == cpu)
                        return true;
        return false;
}

/* A list of CPUs as text for a message: "1,2". */
static const char *cpus_text(const int32_t *cpus, size_t n, char *ret, size_t size) {
        size_t length = 0;
        ret[0] = '\0';
        for (size_t i = 0; i < n && length + 1 < size; i++) {
                int used = snprintf(ret + length, size - length, "%s%d", i ? "," : "", cpus[i]);
                length += used > 0 ? (size_t) used : 0;
        }
        return ret;
}

/* The CPUs that a thread may use: the one that is its own, or all of them. */
struct share {
        const int32_t *cpus;
        size_t n;
        char text[64];
        char who[64]; /* for messages */
};

static struct share share_of(const struct agent_placement *given, uint32_t thread) {
        struct share s = {.cpus = given->cpus, .n = given->n_cpus, .text = ""};
        (void) snprintf(s.who, sizeof(s.who), "thread %" PRIu32, thread);
        if (!given->roam && given->n_cpus) {
                s.cpus = &given->cpus[thread % given->n_cpus];
                s.n = 1;
        }
        (void) cpus_text(s.cpus, s.n, s.text, sizeof(s.text));
        return s;
}

/* Every CPU in the list must be one of the share's. */
static int check_within(const struct verdict *v, const struct proof_list *list, const struct share *s,
                        const char *verb) {
        const uint16_t *cpus = v->proof->of.numbers + list->at;
        for (size_t i = 0; s->n && i < list->n; i++)
                if (!has_cpu(s->cpus, s->n, cpus[i]))
                        return detail_fail(v->detail, -EPERM, "%s %s CPU %u instead of %s", s->who, verb, cpus[i],
                                           s->text);
        return 0;
}

/* A thread that is not placed may run on the CPUs that its process was started with, as long as nothing else has
 * changed them: with fewer CPUs, something outside the run has set its affinity. */
static int check_free(const struct verdict *v, const struct proof_list *list, const struct share *s) {
        const struct proof_list *started = &v->proof->affinity;
        const uint16_t *got = v->proof->of.numbers + list->at, *want = v->proof->of.numbers + started->at;
        for (size_t i = 0; i < list->n && i < started->n; i++)
                if (got[i] != want[i])
                        return detail_fail(v->detail, -EPERM, "%s was %sallowed on CPU %u, its process was%s", s->who,
                                           got[i] < want[i] ? "" : "not ", got[i] < want[i] ? got[i] : want[i],
                                           got[i] < want[i] ? " not" : "");
        if (list->n != started->n)
                return detail_fail(v->detail, -EPERM, "%s was allowed on %" PRIu32 " CPUs, its process on %" PRIu32,
                                   s->who, list->n, started->n);
        return 0;
}

static int check_affinity(const struct verdict *v, const struct proof_list *list, const struct share *s) {
        int r = check_within(v, list, s, "was allowed on");
        if (r < 0)
                return r;
        if (s->n == 0)
                return check_free(v, list, s);
        if (list->n != s->n)
                return detail_fail(v->detail, -EPERM, "%s was allowed on %" PRIu32 " of its %zu CPUs (%s)", s->who,
                                   list->n, s->n, s->text);
        return 0;
}

/* A thread that is pinned to one CPU and has migrated was elsewhere, even if no reading shows it there. Without the
 * kernel's count this cannot be known. */
static int check_migrations(const struct verdict *v, uint64_t migrations, uint64_t error, const struct share *s) {
        if (error)
                v->doubts->migrations_unknown |= s->n == 1;
        else if (s->n == 1 && migrations > 0)
                return detail_fail(v->detail, -EPERM, "%s migrated %" PRIu64 " times, though pinned to CPU %s", s->who,
                                   migrations, s->text);
        return 0;
}

static int check_thread(const struct verdict *v, const struct proof_thread *thread, uint32_t index) {
        const struct share s = share_of(v->given, index);
        int r = check_affinity(v, &thread->affinity, &s);
        if (r < 0)
                return r;
        if (s.n && !has_cpu(s.cpus, s.n, thread->cpu))
                return detail_fail(v->detail, -EPERM, "%s was on CPU %" PRIu32 " instead of %s", s.who, thread->cpu,
                                   s.text);
        r = check_within(v, &thread->cpus_seen, &s, "ran on");
        return r < 0 ? r : check_migrations(v, thread->migrations, thread->migrations_error, &s);
}

/* Threads that are reported as a group, verified against the placement of one of them. Where every thread has all of
 * the CPUs, one stands for all. */
static int check_group_thread(const struct verdict *v, const struct proof_group *group, uint32_t thread) {
        struct share s = share_of(v->given, thread);
        (void) snprintf(s.who, sizeof(s.who), "one of %" PRIu32 " threads (%" PRIu32 " is one)", group->threads.n,
                        thread);
        int r = check_affinity(v, &group->affinity, &s);
        if (r == 0)
                r = check_within(v, &group->cpus, &s, "was on");
        if (r == 0)
                r = check_within(v, &group->cpus_seen, &s, "ran on");
        return r < 0 ? r : check_migrations(v, group->migrations, group->migrations_error, &s);
}

/* Every thread is reported once: one by one from the first on, or in a group. */
static int check_threads(const struct verdict *v) {
        const struct proof_arrays *of = &v->proof->of;
        bool one_each = v->given->n_cpus > 0 && !v->given->roam, reported[SPEC_THREADS_MAX] = {false};
        uint32_t total = 0;

        if (of->n_threads > SPEC_THREADS_MAX || of->n_threads + of->n_groups == 0)
                return verdict_bad(v, "threads");
        for (; total < of->n_threads; total++) {
                int r = check_thread(v, &of->threads[total], total);
                if (r < 0)
                        return r;
                reported[total] = true;
        }
        for (size_t g = 0; g < of->n_groups; g++) {
                const struct proof_group *group = &of->groups[g];
                for (size_t i = 0; i < group->threads.n; i++, total++) {
                        uint32_t thread = of->numbers[group->threads.at + i];
                        if (reported[thread])
                                return verdict_bad(v, "thread");
                        reported[thread] = true;
                        int r = i == 0 || one_each ? check_group_thread(v, group, thread) : 0;
                        if (r < 0)
                                return r;
                }
        }
        return total == v->proof->threads_total ? 0 : verdict_bad(v, "some threads are missing");
}

/* The process was started with its workers' CPUs and its leader's, and with no other. */
static int check_process(const struct verdict *v) {
        const struct agent_placement *given = v->given;
        const struct proof_list *list = &v->proof->affinity;
        const uint16_t *cpus = v->proof->of.numbers + list->at;
        for (size_t i = 0; given->n_cpus && i < list->n; i++)
                if (!has_cpu(given->cpus, given->n_cpus, cpus[i]) &&
                    !has_cpu(given->leader_cpus, given->n_leader_cpus, cpus[i]))
                        return detail_fail(v->detail, -EPERM, "the agent was started on CPU %u, which it was not given",
                                           cpus[i]);
        return 0;
}

/* A leader with CPUs of its own must be there: elsewhere it may take time from the measured threads, and the stored
 * placement would be wrong. */
static int check_leader(const struct verdict *v) {
        const struct agent_placement *given = v->given;
        const struct proof_list *list = &v->proof->leader_affinity;
        const uint16_t *cpus = v->proof->of.numbers + list->at;
        if (given->n_leader_cpus == 0)
                return 0;
        if (!has_cpu(given->leader_cpus, given->n_leader_cpus, v->proof->leader_cpu))
                return detail_fail(v->detail, -EPERM, "the leader was on CPU %" PRIu32 ", which it was not given",
                                   v->proof->leader_cpu);
        for (size_t i = 0; i < list->n; i++)
                if (!has_cpu(given->leader_cpus, given->n_leader_cpus, cpus[i]))
                        return detail_fail(v->detail, -EPERM,
                                           "the leader was allowed on CPU %u, which it was not given", cpus[i]);
        return 0;
}

static int check_policy(const struct verdict *v) {
        const struct proof_report *p = v->proof;
        enum memory_policy policy = (enum memory_policy) p->policy;
        struct node_set nodes = {0};

        if (p->policy_error) /* a kernel that does not report it can be given no policy */
                return v->given->memory == MEMORY_DEFAULT ? 0 : verdict_bad(v, "policy");
        for (size_t i = 0; i < p->policy_nodes.n; i++)
                node_set_add(&nodes, p->of.numbers[p->policy_nodes.at + i]);
        /* before 5.14 the kernel reports "local" as preferred without a node */
        bool is_local = v->given->memory == MEMORY_LOCAL && policy == MEMORY_PREFERRED && p->policy_nodes.n == 0;
        if (policy != v->given->memory && !is_local)
                return detail_fail(v->detail, -EPERM, "memory policy was %s instead of %s", memory_policy_name(policy),
                                   memory_policy_name(v->given->memory));
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(&nodes, id) != node_set_has(&v->given->memory_nodes, id))
                        return detail_fail(v->detail, -EPERM, "memory policy %s %s node %u, which was%s given",
                                           memory_policy_name(policy), node_set_has(&nodes, id) ? "had" : "lacked", id,
                                           node_set_has(&nodes, id) ? " not" : "");
        return 0;
}

int placement_verify(const struct agent_placement *given, const struct point *point, enum end end,
                     const struct proof_report *proof, struct placement_doubts *doubts, char *ret_detail) {
        const struct verdict v = {
                .given = given, .point = point, .end = end, .proof = proof, .detail = ret_detail, .doubts = doubts};
        int r = check_process(&v);
        if (r == 0)
                r = check_threads(&v);
        if (r == 0)
                r = check_leader(&v);
        if (r == 0)
                r = check_policy(&v);
        if (r == 0)
                r = placement_check_pages(&v, proof->threads_total);
        return r;
}
