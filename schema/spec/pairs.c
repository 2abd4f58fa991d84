/* SPDX-License-Identifier: MIT */

/*
 * "all-node-pairs" and "all-cpu-pairs" as what they stand for on a host. Called by the daemon, which knows the host,
 * between spec_parse() and spec_points().
 */

#include "schema/spec/internal.h"

#include "schema/util.h"

#include <string.h>

struct list {
        struct placement *items;
        size_t n;
};

/* One of the first `others` is of another word, or given by hand, and would be measured twice. The pairs of one word
 * are many, and differ. */
static int append(struct list *l, size_t others, const struct placement *p, size_t index, struct refusal *r) {
        for (size_t i = 0; i < others; i++) {
                const struct placement *other = &l->items[i];
                if (p->kind == PLACEMENT_EXPLICIT ? placement_same(other, p) : placement_equal(other, p)) {
                        char pointer[JSON_POINTER_MAX];
                        json_pointer_index(pointer, "/placement", index);
                        return refuse(r, 422, "duplicate-value", pointer,
                                      "this placement stands among the pairs of nodes or CPUs already; \"points\": "
                                      "\"twice\" measures every point twice");
                }
        }
        l->items[l->n++] = *p;
        return 0;
}

static int append_pairs(struct list *l, const struct placement *word, const struct end_placement *ends, size_t n,
                        size_t index, struct refusal *r) {
        const size_t others = l->n;
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++) {
                        struct placement p = *word;
                        p.kind = PLACEMENT_EXPLICIT;
                        p.roles = ROLES_ANY;
                        p.ends[END_FIRST] = ends[i];
                        p.ends[END_SECOND] = ends[j];
                        int x = append(l, others, &p, index, r);
                        if (x < 0)
                                return x;
                }
        return 0;
}

static int check_count(const char *what, size_t n, const char *pointer, struct refusal *r) {
        char value[32], limit[32];
        if (n <= SPEC_POINTS_MAX)
                return 0;
        snprintf(value, sizeof(value), "%zu", n);
        snprintf(limit, sizeof(limit), "%u", SPEC_POINTS_MAX);
        return refuse_limit(r, pointer, "points", limit, value, "%s are %s on this host, at most %s are allowed", what,
                            value, limit);
}

int spec_expand_pairs(struct spec *s, const struct end_placement *nodes, size_t n_nodes,
                      const struct end_placement *cpus, size_t n_cpus, struct refusal *r) {
        struct axis_list *list = &s->axes[AXIS_PLACEMENT];
        const struct placement *placements = list->values;
        size_t most = 0;
        bool any = false;

        for (size_t i = 0; i < list->n; i++) {
                enum placement_kind kind = placements[i].kind;
                size_t n = kind == PLACEMENT_ALL_NODE_PAIRS ? n_nodes : kind == PLACEMENT_ALL_CPU_PAIRS ? n_cpus : 1;
                char pointer[JSON_POINTER_MAX];
                json_pointer_index(pointer, "/placement", i);
                if (check_count(placement_kind_name(kind), n * n, pointer, r) < 0)
                        return -EINVAL;
                any |= placement_is_pairs(&placements[i]);
                most += n * n;
        }
        if (!any)
                return 0;
        if (check_count("the placements", most, "/placement", r) < 0)
                return -EINVAL;

        struct list l = {.items = calloc(most + 1, sizeof(*l.items))};
        int x = l.items ? 0 : -ENOMEM;
        for (size_t i = 0; x == 0 && i < list->n; i++) {
                const struct placement *p = &placements[i];
                if (p->kind == PLACEMENT_ALL_NODE_PAIRS)
                        x = append_pairs(&l, p, nodes, n_nodes, i, r);
                else if (p->kind == PLACEMENT_ALL_CPU_PAIRS)
                        x = append_pairs(&l, p, cpus, n_cpus, i, r);
                else
                        x = append(&l, l.n, p, i, r);
        }
        if (x < 0) {
                free(l.items);
                return x;
        }
        free(list->values);
        *list = (struct axis_list){.values = l.items, .n = l.n};
        return 0;
}
