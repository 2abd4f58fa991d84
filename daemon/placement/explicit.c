/* SPDX-License-Identifier: MIT */
/*
 * {"sender": {"node": 0, "cpu": 3, "memory": {"policy": "bind", "nodes": [0]}}, …}: each part is checked
 * against the topology by itself, so that a refusal names the one thing that this machine lacks. With a node and no cpu
 * the threads roam on the node, as with numactl; only those of tcp are pinned to a CPU each, as in a server.
 */

#include "daemon/placement/internal.h"

#include "daemon/host/hostfs.h"
#include "daemon/placement/placement.h"
#include "schema/util.h"

#include <string.h>

#define LIST_MAX 64 /* as refusal.limit_value */

struct end_context {
        const struct topology *t;
        const struct end_placement *requested;
        const char *role;
        bool pinned; /* each thread on one of the node's CPUs */
        struct agent_placement *given;
        struct refusal *r;
};

/* ids that `wanted` accepts, as "0-3,8". */
static void format_cpus(const struct topology *t, bool (*wanted)(const struct topology_cpu *, int), int node,
                        char *ret /* [LIST_MAX] */) {
        int *ids = calloc(t->n_cpus, sizeof(int));
        size_t n = 0;
        ret[0] = '\0';
        for (size_t i = 0; ids && i < t->n_cpus; i++)
                if (wanted(&t->cpus[i], node))
                        ids[n++] = t->cpus[i].id;
        hostfs_format_list(ids, n, ret, LIST_MAX);
        free(ids);
}

static bool cpu_is_present(const struct topology_cpu *cpu, int node) {
        (void) cpu;
        (void) node;
        return true;
}

static bool cpu_is_online(const struct topology_cpu *cpu, int node) {
        (void) node;
        return cpu->online;
}

static bool cpu_is_allowed(const struct topology_cpu *cpu, int node) {
        (void) node;
        return cpu->online && cpu->allowed;
}

static bool cpu_is_of_node(const struct topology_cpu *cpu, int node) {
        return cpu->node == node;
}

static bool node_is_online(const struct topology_node *node) {
        (void) node;
        return true;
}

static bool node_has_cpus(const struct topology_node *node) {
        return node->n_cpus > 0;
}

static bool node_has_memory(const struct topology_node *node) {
        return node->has_memory;
}

static bool node_is_allowed(const struct topology_node *node) {
        return node->has_memory && node->memory_allowed;
}

static void format_nodes(const struct topology *t, bool (*wanted)(const struct topology_node *),
                         char *ret /* [LIST_MAX] */) {
        int *ids = calloc(t->n_nodes, sizeof(int));
        size_t n = 0;
        ret[0] = '\0';
        for (size_t i = 0; ids && i < t->n_nodes; i++)
                if (wanted(&t->nodes[i]))
                        ids[n++] = t->nodes[i].id;
        hostfs_format_list(ids, n, ret, LIST_MAX);
        free(ids);
}

static int refuse_cpu(const struct end_context *c, const char *limit, bool (*wanted)(const struct topology_cpu *, int),
                      int node, const char *why) {
        char pointer[128], value[16], list[LIST_MAX];
        (void) snprintf(pointer, sizeof(pointer), "/placement/%s/cpu", c->role);
        (void) snprintf(value, sizeof(value), "%d", c->requested->cpu);
        format_cpus(c->t, wanted, node, list);
        return refuse_set(c->r, pointer, limit, list, value, "CPU %s %s; %s: %s", value, why, limit, list);
}

static int refuse_node(const struct end_context *c, const char *field, int node, const char *limit,
                       bool (*wanted)(const struct topology_node *), const char *why) {
        char pointer[128], value[16], list[LIST_MAX];
        (void) snprintf(pointer, sizeof(pointer), "/placement/%s/%s", c->role, field);
        (void) snprintf(value, sizeof(value), "%d", node);
        format_nodes(c->t, wanted, list);
        return refuse_set(c->r, pointer, limit, list, value, "node %s %s; %s: %s", value, why, limit,
                          list[0] ? list : "none");
}

static int take_cpu(const struct end_context *c) {
        const struct topology_cpu *cpu = topology_find_cpu(c->t, c->requested->cpu);
        if (!cpu)
                return refuse_cpu(c, "CPUs present", cpu_is_present, -1, "does not exist");
        if (!cpu->online)
                return refuse_cpu(c, "CPUs online", cpu_is_online, -1, "is offline");
        if (!cpu->allowed)
                return refuse_cpu(c, "CPUs allowed", cpu_is_allowed, -1, "is outside the cpuset of ipclabd");
        if (c->requested->node >= 0 && cpu->node != c->requested->node) {
                char limit[32];
                (void) snprintf(limit, sizeof(limit), "CPUs of node %d", c->requested->node);
                return refuse_cpu(c, limit, cpu_is_of_node, c->requested->node, "is not on that node");
        }
        return placement_set_cpus(c->given, &cpu->id, 1);
}

static int take_node(const struct end_context *c, const struct topology_node *node) {
        if (node->n_cpus == 0) {
                char list[LIST_MAX];
                format_cpus(c->t, cpu_is_of_node, node->id, list);
                return refuse_node(c, "node", node->id, "nodes with CPUs", node_has_cpus,
                                   list[0] ? "has no CPU inside the cpuset of ipclabd" : "has no CPUs");
        }
        if (c->pinned) /* pin_ends() does it, which knows both ends */
                return 0;
        if (node->n_cpus > AGENT_CPUS_MAX)
                return refuse(c->r, 422, "limit-exceeded", "/placement",
                              "node %d has %zu CPUs, an agent can have at most %u", node->id, node->n_cpus,
                              AGENT_CPUS_MAX);
        c->given->roam = true;
        return placement_set_cpus(c->given, node->cpus, node->n_cpus);
}

static int check_memory_node(const struct end_context *c, const char *member, int id) {
        const struct topology_node *node = topology_find_node(c->t, id);
        char field[32];
        (void) snprintf(field, sizeof(field), "%s/nodes", member);
        if (!node)
                return refuse_node(c, field, id, "nodes online", node_is_online, "does not exist");
        if (!node->has_memory)
                return refuse_node(c, field, id, "nodes with memory", node_has_memory, "has no memory");
        if (!node->memory_allowed)
                return refuse_node(c, field, id, "memory nodes allowed", node_is_allowed,
                                   "is outside the cpuset of ipclabd");
        return 0;
}

static int check_memory(const struct end_context *c, const char *member, enum memory_policy policy,
                        const struct node_set *nodes) {
        char pointer[128];
        (void) snprintf(pointer, sizeof(pointer), "/placement/%s/%s", c->role, member);
        if (policy != MEMORY_DEFAULT && !c->t->numa)
                return refuse_set(c->r, pointer, "kernel NUMA support", "none", memory_policy_name(policy),
                                  "this kernel has no NUMA support, so it knows no memory policy but default");
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(nodes, id)) {
                        int x = check_memory_node(c, member, (int) id);
                        if (x < 0)
                                return x;
                }
        return 0;
}

static int take_memory(const struct end_context *c) {
        int x = check_memory(c, "memory", c->requested->memory, &c->requested->memory_nodes);
        if (x == 0)
                x = check_memory(c, "buffer", c->requested->buffer, &c->requested->buffer_nodes);
        if (x < 0)
                return x;
        c->given->buffer = c->requested->buffer;
        c->given->buffer_nodes = c->requested->buffer_nodes;
        c->given->memory = c->requested->memory;
        c->given->memory_nodes = c->requested->memory_nodes;
        return 0;
}

static int resolve_end(const struct end_context *c) {
        const struct topology_node *node = NULL;
        if (c->requested->node >= 0) {
                node = topology_find_node(c->t, c->requested->node);
                if (!node)
                        return refuse_node(c, "node", c->requested->node, "nodes online", node_is_online,
                                           "does not exist");
        }
        int x = 0;
        if (c->requested->cpu >= 0)
                x = take_cpu(c);
        else if (node)
                x = take_node(c, node);
        return x < 0 ? x : take_memory(c);
}

static bool is_pinned(const struct point *p) {
        return workload_has_transport(p->workload) && transport_terms[p->transport].cpu_per_thread;
}

/* The node to whose CPUs an end's threads are still to be pinned; NULL: none. */
static const struct topology_node *node_to_pin_to(const struct topology *t, const struct point *p, enum end end) {
        const struct end_placement *requested = &p->placement.ends[end];
        return is_pinned(p) && requested->cpu < 0 && requested->node >= 0 ? topology_find_node(t, requested->node)
                                                                          : NULL;
}

/* CPUs of the node in topology order, one per thread; CPUs of the other end come last. */
static int pin_threads(const struct topology_node *node, uint32_t threads, const struct agent_placement *other,
                       struct agent_placement *ret) {
        size_t n = 0, wanted = threads < node->n_cpus ? threads : node->n_cpus;
        _cleanup_free_ int *cpus = calloc(wanted, sizeof(int));
        if (!cpus)
                return -ENOMEM;
        for (int others = 0; others <= 1; others++)
                for (size_t i = 0; i < node->n_cpus && n < wanted; i++) {
                        bool taken = false;
                        for (size_t k = 0; k < other->n_cpus && !taken; k++)
                                taken = other->cpus[k] == node->cpus[i];
                        if (taken == (bool) others)
                                cpus[n++] = node->cpus[i];
                }
        return placement_set_cpus(ret, cpus, n);
}

static int pin_ends(const struct topology *t, const struct point *p, struct run_placement *ret) {
        const struct topology_node *nodes[END_COUNT] = {node_to_pin_to(t, p, END_FIRST),
                                                        node_to_pin_to(t, p, END_SECOND)};
        if (nodes[END_FIRST] && nodes[END_FIRST] == nodes[END_SECOND])
                return placement_spread(t, nodes[END_FIRST], p->threads, ret);
        for (unsigned e = 0; e < END_COUNT; e++) {
                int x = nodes[e] ? pin_threads(nodes[e], p->threads, &ret->ends[!e], &ret->ends[e]) : 0;
                if (x < 0)
                        return x;
        }
        return 0;
}

int placement_resolve_explicit(const struct topology *t, const struct point *p, struct run_placement *ret,
                               struct refusal *r) {
        for (unsigned e = 0; e < workload_agents(p->workload); e++) {
                const struct end_context c = {
                        .t = t,
                        .requested = &p->placement.ends[e],
                        .role = role_name(p->workload, p->transport, (enum end) e),
                        .pinned = is_pinned(p),
                        .given = &ret->ends[e],
                        .r = r,
                };
                int x = resolve_end(&c);
                if (x < 0)
                        return x;
        }
        return pin_ends(t, p, ret);
}
