/* SPDX-License-Identifier: MIT */
/*
 * Resolves named placements to CPUs and nodes of this machine. Pure: topology in, placement or refusal out, without
 * side effects. Called by admission when a spec is posted and by the runner before each run. The object per role is in
 * explicit.c, the verification of the agents' proof in verify.c.
 */

#include "daemon/placement/placement.h"

#include "daemon/host/hostfs.h"
#include "daemon/placement/internal.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <string.h>

void run_placement_deinit(struct run_placement *p) {
        if (!p)
                return;
        for (unsigned e = 0; e < END_COUNT; e++) {
                free(p->ends[e].cpus);
                free(p->ends[e].leader_cpus);
        }
        free(p->daemon_cpus);
        *p = (struct run_placement){0};
}

int placement_set_cpus(struct agent_placement *a, const int *cpus, size_t n) {
        a->cpus = calloc(n, sizeof(a->cpus[0]));
        if (!a->cpus)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                a->cpus[i] = cpus[i];
        a->n_cpus = n;
        return 0;
}

static bool same_core(const struct topology *t, int a, int b) {
        const struct topology_cpu *x = topology_find_cpu(t, a), *y = topology_find_cpu(t, b);
        return x && y && x->n_siblings && y->n_siblings && x->siblings[0] == y->siblings[0];
}

static bool usable_memory(const struct topology_node *node) {
        return node->has_memory && node->memory_allowed;
}

/* CPUs of a node up to the first that is a sibling of an earlier one: topology order has one per core first. */
static size_t count_cores(const struct topology *t, const struct topology_node *node) {
        size_t n = 0;
        for (size_t i = 0; i < node->n_cpus; i++) {
                bool again = false;
                for (size_t k = 0; k < i && !again; k++)
                        again = same_core(t, node->cpus[i], node->cpus[k]);
                n += !again;
        }
        return n;
}

/* The node itself when it has memory, else the nearest that has: the kernel would choose the same. */
static const struct topology_node *memory_for(const struct topology *t, const struct topology_node *node) {
        const struct topology_node *best = NULL;
        if (usable_memory(node))
                return node;
        for (size_t i = 0; i < t->n_nodes; i++) {
                const struct topology_node *other = &t->nodes[i];
                if (usable_memory(other) && (!best || node->distances[i] < node->distances[best - t->nodes]))
                        best = other;
        }
        return best;
}

void placement_bind_memory(const struct topology *t, const struct topology_node *node, struct agent_placement *a) {
        const struct topology_node *from = memory_for(t, node);
        if (!t->numa || !from) /* one node, or no policies: there is nothing to bind */
                return;
        a->memory = MEMORY_BIND;
        node_set_add(&a->memory_nodes, (unsigned) from->id);
}

static size_t smaller(size_t a, size_t b) {
        return a < b ? a : b;
}

/* The first node with at least that number of CPUs and cores; one with memory is preferred. */
static const struct topology_node *pick_node(const struct topology *t, size_t cpus, size_t cores) {
        for (int memory = 1; memory >= 0; memory--)
                for (size_t i = 0; i < t->n_nodes; i++) {
                        const struct topology_node *node = &t->nodes[i];
                        if (usable_memory(node) == (bool) memory && node->n_cpus >= cpus &&
                            count_cores(t, node) >= cores)
                                return node;
                }
        return NULL;
}

static int both_ends(const struct topology *t, const struct topology_node *node, int first, int second,
                     struct run_placement *ret) {
        int r = placement_set_cpus(&ret->ends[END_FIRST], &first, 1);
        if (r == 0)
                r = placement_set_cpus(&ret->ends[END_SECOND], &second, 1);
        for (unsigned e = 0; r == 0 && e < END_COUNT; e++)
                placement_bind_memory(t, node, &ret->ends[e]);
        return r;
}

static int resolve_same_cpu(const struct topology *t, struct run_placement *ret, struct refusal *r) {
        const struct topology_node *node = pick_node(t, 1, 1);
        if (!node)
                return refuse(r, 422, "not-available", "/placement", "no node has a CPU that ipclab may use");
        return both_ends(t, node, node->cpus[0], node->cpus[0], ret);
}

/* A second usable CPU of the same core. */
static int find_sibling(const struct topology *t, const struct topology_node *node, int cpu) {
        for (size_t i = 0; i < node->n_cpus; i++)
                if (node->cpus[i] != cpu && same_core(t, node->cpus[i], cpu))
                        return node->cpus[i];
        return -1;
}

static int resolve_same_core(const struct topology *t, struct run_placement *ret, struct refusal *r) {
        for (int memory = 1; memory >= 0; memory--)
                for (size_t i = 0; i < t->n_nodes; i++) {
                        const struct topology_node *node = &t->nodes[i];
                        for (size_t k = 0; usable_memory(node) == (bool) memory && k < node->n_cpus; k++) {
                                int sibling = find_sibling(t, node, node->cpus[k]);
                                if (sibling >= 0)
                                        return both_ends(t, node, node->cpus[k], sibling, ret);
                        }
                }
        return refuse_limit(r, "/placement", "CPUs per core (SMT)", "1", "2",
                            "same-core needs a core with two CPUs; here no core has more than 1 CPU that ipclab may "
                            "use (SMT is missing, switched off, or cut off by the cpuset)");
}

/* CPU of the second end's thread i, from a window of n CPUs behind those of the first end, rotated within the window.
 * The ends share no CPU when there are enough, and as few as possible otherwise. */
static int second_cpu(const struct topology_node *node, size_t n, size_t turn, size_t i) {
        return node->cpus[(n + (i + turn) % n) % node->n_cpus];
}

/* Pairs (thread i of each end) on one CPU count more than those on one core. */
static size_t pair_cost(const struct topology *t, const struct topology_node *node, size_t n, size_t turn) {
        size_t cost = 0;
        for (size_t i = 0; i < n; i++) {
                int first = node->cpus[i], second = second_cpu(node, n, turn, i);
                cost += first == second ? node->n_cpus + 1 : same_core(t, first, second);
        }
        return cost;
}

static size_t pick_turn(const struct topology *t, const struct topology_node *node, size_t n) {
        size_t best = 0, least = SIZE_MAX;
        for (size_t turn = 0; turn < n && least > 0; turn++) {
                size_t cost = pair_cost(t, node, n, turn);
                if (cost < least) {
                        least = cost;
                        best = turn;
                }
        }
        return best;
}

int placement_spread(const struct topology *t, const struct topology_node *node, uint32_t threads,
                     struct run_placement *ret) {
        size_t n = smaller(threads, node->n_cpus), turn = pick_turn(t, node, n);
        _cleanup_free_ int *second = calloc(n, sizeof(int));
        if (!second)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                second[i] = second_cpu(node, n, turn, i);
        int r = placement_set_cpus(&ret->ends[END_FIRST], node->cpus, n);
        return r < 0 ? r : placement_set_cpus(&ret->ends[END_SECOND], second, n);
}

static int resolve_same_node(const struct topology *t, const struct point *p, struct run_placement *ret,
                             struct refusal *r) {
        const struct topology_node *node = pick_node(t, 2, 2);
        if (!node)
                node = pick_node(t, 2, 1);
        if (!node && transport_terms[p->transport].cpu_per_thread) /* a server runs on any CPUs */
                node = pick_node(t, 1, 1);
        if (!node)
                return refuse_limit(r, "/placement", "CPUs per node", "1", "2",
                                    "same-node needs a node with two CPUs; here no node has more than 1 that ipclab "
                                    "may use (same-cpu puts both ends on one)");

        ret->shares_cores = node->n_cpus > 1 && count_cores(t, node) < 2;
        int x = placement_spread(t, node, p->threads, ret);
        for (unsigned e = 0; x == 0 && e < END_COUNT; e++)
                placement_bind_memory(t, node, &ret->ends[e]);
        return x;
}

/* The first two nodes with CPUs, those with memory of their own before those without; the second has other memory than
 * the first, where there is such a node. */
static size_t pick_pair(const struct topology *t, const struct topology_node *ret[END_COUNT]) {
        const struct topology_node *alike = NULL;
        size_t n = 0;
        for (int memory = 1; memory >= 0; memory--)
                for (size_t i = 0; i < t->n_nodes && n < END_COUNT; i++) {
                        const struct topology_node *node = &t->nodes[i];
                        if (!node->n_cpus || usable_memory(node) != (bool) memory)
                                continue;
                        if (n > 0 && memory_for(t, node) == memory_for(t, ret[END_FIRST]))
                                alike = alike ? alike : node;
                        else
                                ret[n++] = node;
                }
        if (n == END_SECOND && alike)
                ret[n++] = alike;
        return n;
}

/* shared: the node that has the memory of both ends; NULL: there are no two nodes with CPUs. */
static int refuse_pair(const struct topology *t, const struct topology_node *nodes[END_COUNT], size_t n,
                       const struct topology_node *shared, struct refusal *r) {
        if (shared)
                return refuse_limit(r, "/placement", "memory nodes next to CPUs", "1", "2",
                                    "cross-node needs the memory of two nodes; that of the CPUs of node %d and of node "
                                    "%d would be on node %d",
                                    nodes[END_FIRST]->id, nodes[END_SECOND]->id, shared->id);
        if (t->n_nodes == 1)
                return refuse_limit(r, "/placement", "nodes", "1", "2",
                                    "cross-node needs two nodes; this machine has one node");
        return refuse_limit(r, "/placement", "nodes with CPUs", n ? "1" : "0", "2",
                            "cross-node needs two nodes with CPUs; of this machine's %zu nodes %zu has CPUs that "
                            "ipclab may use",
                            t->n_nodes, n);
}

static int resolve_cross_node(const struct topology *t, uint32_t threads, struct run_placement *ret,
                              struct refusal *r) {
        const struct topology_node *nodes[END_COUNT] = {NULL, NULL};
        size_t n = pick_pair(t, nodes);
        const struct topology_node *memory = n == END_COUNT ? memory_for(t, nodes[END_FIRST]) : NULL;
        const struct topology_node *shared = memory && memory == memory_for(t, nodes[END_SECOND]) ? memory : NULL;
        if (n < END_COUNT || shared)
                return refuse_pair(t, nodes, n, shared, r);
        for (unsigned e = 0; e < END_COUNT; e++) {
                int x = placement_set_cpus(&ret->ends[e], nodes[e]->cpus, smaller(threads, nodes[e]->n_cpus));
                if (x < 0)
                        return x;
                placement_bind_memory(t, nodes[e], &ret->ends[e]);
        }
        return 0;
}

static bool is_worker(const struct run_placement *p, int cpu) {
        for (unsigned e = 0; e < END_COUNT; e++)
                for (size_t i = 0; i < p->ends[e].n_cpus; i++)
                        if (p->ends[e].cpus[i] == cpu)
                                return true;
        return false;
}

static bool core_has_worker(const struct run_placement *p, const struct topology_cpu *cpu) {
        for (size_t i = 0; i < cpu->n_siblings; i++)
                if (is_worker(p, cpu->siblings[i]))
                        return true;
        return false;
}

/* Leaders and the daemon get CPUs on which no worker runs. */
static int place_leaders(const struct topology *t, struct run_placement *p) {
        _cleanup_free_ int *cpus = calloc(t->n_cpus, sizeof(int));
        size_t n = 0;

        if (!cpus)
                return -ENOMEM;
        if (p->ends[END_FIRST].n_cpus == 0 && p->ends[END_SECOND].n_cpus == 0)
                return 0;
        for (int other_cores = 1; other_cores >= 0 && n == 0; other_cores--)
                for (size_t i = 0; i < t->n_cpus; i++) {
                        const struct topology_cpu *cpu = &t->cpus[i];
                        if (cpu->online && cpu->allowed && !is_worker(p, cpu->id) &&
                            !(other_cores && core_has_worker(p, cpu)))
                                cpus[n++] = cpu->id;
                }
        if (n == 0)
                return 0;

        for (unsigned e = 0; e < END_COUNT; e++) {
                struct agent_placement *a = &p->ends[e];
                size_t most = smaller(n, AGENT_CPUS_MAX);
                a->leader_cpus = calloc(most, sizeof(a->leader_cpus[0]));
                if (!a->leader_cpus)
                        return -ENOMEM;
                for (size_t i = 0; i < most; i++)
                        a->leader_cpus[i] = cpus[i];
                a->n_leader_cpus = most;
        }
        p->daemon_cpus = util_steal(&cpus);
        p->n_daemon_cpus = n;
        return 0;
}

static bool end_may_use(const struct agent_placement *a, int cpu) {
        for (size_t i = 0; i < a->n_cpus; i++)
                if (a->cpus[i] == cpu)
                        return true;
        return a->n_cpus == 0; /* not pinned */
}

/* Whether an end has more threads than CPUs, or both ends together. An end that is not pinned has all usable CPUs. */
static bool threads_outnumber_cpus(const struct topology *t, const struct point *p, const struct run_placement *found) {
        size_t agents = workload_agents(p->workload), usable[END_COUNT] = {0, 0}, either = 0;
        for (size_t i = 0; i < t->n_cpus; i++) {
                bool any = false;
                for (unsigned e = 0; e < agents && t->cpus[i].online && t->cpus[i].allowed; e++) {
                        bool has = end_may_use(&found->ends[e], t->cpus[i].id);
                        usable[e] += has;
                        any |= has;
                }
                either += any;
        }
        for (unsigned e = 0; e < agents; e++)
                if (p->threads > usable[e])
                        return true;
        return agents * p->threads > either;
}

static bool has_memory_elsewhere(const struct topology *t, const struct run_placement *found) {
        for (unsigned e = 0; e < END_COUNT; e++)
                for (size_t i = 0; i < found->ends[e].n_cpus; i++) {
                        const struct topology_cpu *cpu = topology_find_cpu(t, found->ends[e].cpus[i]);
                        const struct topology_node *node = cpu ? topology_find_node(t, cpu->node) : NULL;
                        if (node && !usable_memory(node))
                                return true;
                }
        return false;
}

static int resolve_kind(const struct topology *t, const struct point *p, struct run_placement *ret, struct refusal *r) {
        switch (p->placement.kind) {
        case PLACEMENT_DEFAULT: /* processes that wait for each other on many CPUs would measure wake-ups */
                return p->workload == WORKLOAD_CONTEXT_SWITCH ? resolve_same_cpu(t, ret, r) : 0;
        case PLACEMENT_SAME_CPU:
                return resolve_same_cpu(t, ret, r);
        case PLACEMENT_SAME_CORE:
                return resolve_same_core(t, ret, r);
        case PLACEMENT_SAME_NODE:
                return resolve_same_node(t, p, ret, r);
        case PLACEMENT_CROSS_NODE:
                return resolve_cross_node(t, p->threads, ret, r);
        case PLACEMENT_EXPLICIT:
                return placement_resolve_explicit(t, p, ret, r);
        default:
                return refuse(r, 422, "unknown-value", "/placement", "no such placement");
        }
}

int placement_resolve(const struct topology *t, const struct point *p, struct run_placement *ret, struct refusal *r) {
        _cleanup_(run_placement_deinit) struct run_placement found = {0};

        int x = resolve_kind(t, p, &found, r);
        if (x < 0)
                return x;
        if (workload_agents(p->workload) < END_COUNT) {
                free(found.ends[END_SECOND].cpus);
                found.ends[END_SECOND] = (struct agent_placement){0};
        }
        if (p->workload == WORKLOAD_CONTEXT_SWITCH && found.ends[END_FIRST].n_cpus != 1)
                return refuse(r, 422, "wrong-combination", "/placement",
                              "a context switch is measured on one CPU, and this placement has %zu: use same-cpu, or "
                              "an object that names the initiator's cpu",
                              found.ends[END_FIRST].n_cpus);
        found.memory_elsewhere = has_memory_elsewhere(t, &found);
        found.shares_cpus = threads_outnumber_cpus(t, p, &found);
        x = place_leaders(t, &found);
        if (x < 0)
                return x;
        *ret = found;
        found = (struct run_placement){0};
        return 0;
}

/* The node of all CPUs; -1 when they are of several nodes. */
static int common_node(const struct topology *t, const struct agent_placement *a) {
        int node = -1;
        for (size_t i = 0; i < a->n_cpus; i++) {
                const struct topology_cpu *cpu = topology_find_cpu(t, a->cpus[i]);
                if (!cpu || (i > 0 && cpu->node != node))
                        return -1;
                node = cpu->node;
        }
        return node;
}

static void put_cpus(struct json_writer *w, const char *key, const int32_t *cpus, size_t n) {
        json_member_array(w, key);
        for (size_t i = 0; i < n; i++)
                json_put_i64(w, cpus[i]);
        json_array_end(w);
}

static void put_memory(struct json_writer *w, const char *key, enum memory_policy policy,
                       const struct node_set *nodes) {
        json_member_object(w, key);
        json_member_string(w, "policy", memory_policy_name(policy));
        json_member_array(w, "nodes");
        for (unsigned i = 0; i < SPEC_NODES_MAX; i++)
                if (node_set_has(nodes, i))
                        json_put_u64(w, i);
        json_array_end(w);
        json_object_end(w);
}

int placement_to_json(const struct topology *t, const struct agent_placement *a, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        int node = common_node(t, a);

        json_object_begin(&w);
        put_cpus(&w, "cpus", a->cpus, a->n_cpus);
        json_member_bool(&w, "roam", a->roam);
        json_member_i64_if(&w, "node", node >= 0, node);
        put_memory(&w, "memory", a->memory, &a->memory_nodes);
        if (a->buffer != MEMORY_DEFAULT)
                put_memory(&w, "buffer", a->buffer, &a->buffer_nodes);
        put_cpus(&w, "leader_cpus", a->leader_cpus, a->n_leader_cpus);
        json_object_end(&w);

        size_t length = 0;
        return json_writer_steal(&w, ret, &length);
}
