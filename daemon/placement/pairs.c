/* SPDX-License-Identifier: MIT */
/*
 * The ends of "all-node-pairs" and "all-cpu-pairs" on this machine. Pure, as placement.c. Called by the service when a
 * spec is posted, before it is expanded into points.
 */

#include "daemon/placement/internal.h"

#include "daemon/placement/placement.h"
#include "schema/util.h"

static void bind_end(const struct topology *t, const struct topology_node *node, struct end_placement *end) {
        struct agent_placement memory = {0};
        placement_bind_memory(t, node, &memory);
        end->memory = memory.memory;
        end->memory_nodes = memory.memory_nodes;
}

static size_t list_nodes(const struct topology *t, struct end_placement *ret) {
        size_t n = 0;
        for (size_t i = 0; i < t->n_nodes; i++)
                if (t->nodes[i].n_cpus) {
                        ret[n] = (struct end_placement){.node = t->nodes[i].id, .cpu = -1};
                        bind_end(t, &t->nodes[i], &ret[n++]);
                }
        return n;
}

static size_t list_cpus(const struct topology *t, struct end_placement *ret) {
        size_t n = 0;
        for (size_t i = 0; i < t->n_cpus; i++) {
                const struct topology_cpu *cpu = &t->cpus[i];
                const struct topology_node *node = topology_find_node(t, cpu->node);
                if (!cpu->online || !cpu->allowed)
                        continue;
                ret[n] = (struct end_placement){.node = -1, .cpu = cpu->id};
                if (node)
                        bind_end(t, node, &ret[n]);
                n++;
        }
        return n;
}

int placement_expand_pairs(const struct topology *t, struct spec *spec, struct refusal *r) {
        _cleanup_free_ struct end_placement *nodes = calloc(t->n_nodes + 1, sizeof(*nodes));
        _cleanup_free_ struct end_placement *cpus = calloc(t->n_cpus + 1, sizeof(*cpus));
        if (!nodes || !cpus)
                return -ENOMEM;
        size_t n_nodes = list_nodes(t, nodes), n_cpus = list_cpus(t, cpus);
        return spec_expand_pairs(spec, nodes, n_nodes, cpus, n_cpus, r);
}
