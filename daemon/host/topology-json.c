/* SPDX-License-Identifier: MIT */
/* The topology as GET /topology shows it: everything that was read, with null for what is unknown. */

#include "daemon/host/topology.h"

#include "schema/json/json.h"
#include "schema/util.h"

static void put_ids(struct json_writer *w, const char *key, const int *ids, size_t n) {
        json_member_array(w, key);
        for (size_t i = 0; i < n; i++)
                json_put_i64(w, ids[i]);
        json_array_end(w);
}

static void put_node(struct json_writer *w, const struct topology *t, const struct topology_node *node) {
        json_object_begin(w);
        json_member_i64(w, "id", node->id);
        json_member_array(w, "cpus");
        for (size_t i = 0; i < t->n_cpus; i++)
                if (t->cpus[i].node == node->id)
                        json_put_i64(w, t->cpus[i].id);
        json_array_end(w);
        put_ids(w, "usable_cpus", node->cpus, node->n_cpus);
        json_member_bool(w, "has_memory", node->has_memory);
        json_member_bool(w, "memory_allowed", node->memory_allowed);
        json_member_u64(w, "memory_bytes", node->memory_bytes);
        json_member_u64(w, "memory_free_bytes", node->memory_free_bytes);
        json_member_array(w, "distances");
        for (size_t i = 0; i < t->n_nodes; i++)
                json_put_u64(w, node->distances[i]);
        json_array_end(w);
        json_object_end(w);
}

static void put_cpu(struct json_writer *w, const struct topology_cpu *cpu) {
        json_object_begin(w);
        json_member_i64(w, "id", cpu->id);
        json_member_bool(w, "online", cpu->online);
        json_member_bool(w, "allowed", cpu->allowed);
        json_member_i64_if(w, "node", cpu->node >= 0, cpu->node);
        json_member_i64_if(w, "package", cpu->package >= 0, cpu->package);
        json_member_i64_if(w, "core", cpu->core >= 0, cpu->core);
        put_ids(w, "siblings", cpu->siblings, cpu->n_siblings);
        json_object_end(w);
}

static void put_cache(struct json_writer *w, const struct topology_cache *c) {
        json_object_begin(w);
        json_member_i64(w, "level", c->level);
        json_member_string(w, "type", c->type);
        json_member_u64_if(w, "size_bytes", c->size_bytes, c->size_bytes);
        json_member_u64_if(w, "line_bytes", c->line_bytes, c->line_bytes);
        put_ids(w, "cpus", c->cpus, c->n_cpus);
        json_object_end(w);
}

static size_t count_packages(const struct topology *t) {
        size_t n = 0;
        for (size_t i = 0; i < t->n_cpus; i++) {
                bool seen = t->cpus[i].package < 0;
                for (size_t k = 0; k < i && !seen; k++)
                        seen = t->cpus[k].package == t->cpus[i].package;
                n += !seen;
        }
        return n;
}

static void put_head(struct json_writer *w, const struct topology *t) {
        bool smt = false;
        for (size_t i = 0; i < t->n_cpus; i++)
                smt |= t->cpus[i].n_siblings > 1;
        json_member_bool(w, "numa", t->numa);
        json_member_bool(w, "smt", smt);
        json_member_u64(w, "packages", count_packages(t));
        json_member_i64_if(w, "numa_balancing", t->numa_balancing >= 0, t->numa_balancing);
        if (t->numa_balancing < 0)
                json_member_string(w, "numa_balancing_reason", "this kernel has no automatic NUMA balancing");
}

int topology_to_json(const struct topology *t, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};

        json_object_begin(&w);
        put_head(&w, t);
        json_member_array(&w, "nodes");
        for (size_t i = 0; i < t->n_nodes; i++)
                put_node(&w, t, &t->nodes[i]);
        json_array_end(&w);
        json_member_array(&w, "cpus");
        for (size_t i = 0; i < t->n_cpus; i++)
                put_cpu(&w, &t->cpus[i]);
        json_array_end(&w);
        json_member_array(&w, "caches");
        for (size_t i = 0; i < t->n_caches; i++)
                put_cache(&w, &t->caches[i]);
        json_array_end(&w);
        json_object_end(&w);

        size_t length = 0;
        return json_writer_steal(&w, ret, &length);
}
