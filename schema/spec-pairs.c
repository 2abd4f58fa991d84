/* SPDX-License-Identifier: MIT */

/*
 * "all-node-pairs" and "all-cpu-pairs" as what they stand for on a host. Called by the daemon, which knows the host,
 * between spec_parse() and spec_points().
 */

#include "schema/spec-internal.h"

#include "schema/util.h"

#include <string.h>

struct list {
        struct placement *items;
        size_t n;
};

/* One that stands already is another's: a pair that was given by hand, too, would be measured twice. */
static int append(struct list *l, const struct placement *p, size_t index, struct refusal *r) {
        for (size_t i = 0; i < l->n; i++) {
                struct placement other = l->items[i];
                if (other.kind == PLACEMENT_EXPLICIT && p->kind == PLACEMENT_EXPLICIT)
                        other.roles = p->roles;
                if (placement_equal(&other, p)) {
                        char pointer[JSON_POINTER_MAX];
                        pointer_index(pointer, "/placement", index);
                        return refuse(r, 422, "duplicate-value", pointer,
                                      "this placement stands among the pairs of nodes or CPUs already");
                }
        }
        l->items[l->n++] = *p;
        return 0;
}

static int append_pairs(struct list *l, const struct placement *word, const struct end_placement *ends, size_t n,
                        size_t index, struct refusal *r) {
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++) {
                        struct placement p = *word;
                        p.kind = PLACEMENT_EXPLICIT;
                        p.roles = ROLES_ANY;
                        p.ends[END_FIRST] = ends[i];
                        p.ends[END_SECOND] = ends[j];
                        int x = append(l, &p, index, r);
                        if (x < 0)
                                return x;
                }
        return 0;
}

static int check_count(const char *word, size_t n, size_t index, struct refusal *r) {
        char pointer[JSON_POINTER_MAX], value[32], limit[32];
        if (n * n <= SPEC_POINTS_MAX)
                return 0;
        pointer_index(pointer, "/placement", index);
        snprintf(value, sizeof(value), "%zu", n * n);
        snprintf(limit, sizeof(limit), "%u", SPEC_POINTS_MAX);
        return refuse_limit(r, pointer, "points", limit, value, "%s are %s pairs on this host, at most %s are allowed",
                            word, value, limit);
}

int spec_expand_pairs(struct spec *s, const struct end_placement *nodes, size_t n_nodes,
                      const struct end_placement *cpus, size_t n_cpus, struct refusal *r) {
        size_t most = 0;
        bool any = false;

        for (size_t i = 0; i < s->n_placements; i++) {
                enum placement_kind kind = s->placements[i].kind;
                size_t n = kind == PLACEMENT_ALL_NODE_PAIRS ? n_nodes : kind == PLACEMENT_ALL_CPU_PAIRS ? n_cpus : 1;
                if (check_count(placement_kind_name(kind), n, i, r) < 0)
                        return -EINVAL;
                any |= placement_is_pairs(&s->placements[i]);
                most += n * n;
        }
        if (!any)
                return 0;

        struct list l = {.items = calloc(most + 1, sizeof(*l.items))};
        int x = l.items ? 0 : -ENOMEM;
        for (size_t i = 0; x == 0 && i < s->n_placements; i++) {
                const struct placement *p = &s->placements[i];
                if (p->kind == PLACEMENT_ALL_NODE_PAIRS)
                        x = append_pairs(&l, p, nodes, n_nodes, i, r);
                else if (p->kind == PLACEMENT_ALL_CPU_PAIRS)
                        x = append_pairs(&l, p, cpus, n_cpus, i, r);
                else
                        x = append(&l, p, i, r);
        }
        if (x < 0) {
                free(l.items);
                return x;
        }
        free(s->placements);
        s->placements = l.items;
        s->n_placements = l.n;
        return 0;
}
