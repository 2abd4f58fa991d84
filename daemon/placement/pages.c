/* SPDX-License-Identifier: MIT */
/*
 * Verifies that an agent's memory was where it was placed, and stayed there. With a memory policy, the proof must have
 * the pages of each thread's stack, of its buffers and of the rings that it owns. These pages must be present, on the
 * nodes of bind and interleave, spread evenly over all of these nodes under interleave, and must not have moved.
 *
 * The policies preferred and local do not permit the kernel to move pages: they decide where a page is allocated, and
 * NUMA balancing does not touch memory whose policy was set. Only under the default policy it moves pages, which
 * promises nothing: this is reported as a doubt. Source: Linux mm/mempolicy.c (vma_policy_mof), kernel/sched/fair.c
 * (task_numa_work).
 */

#include "daemon/placement/verdict.h"

#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <string.h>

enum kind { KIND_STACK, KIND_BUFFER, KIND_RING, KIND_OTHER };
static const char *const kind_names[KIND_OTHER] = {"stack", "buffer", "ring"};

/* Interleaving is judged from this many pages, or units of pages that the kernel places together, per node; */
#define SPREAD_UNITS 4
/* …each node then has at least this part of an even share: every allocation of a task advances its turn. */
#define SPREAD_SHARE 4

/* Pages under one policy, of all ranges. */
struct spread {
        int64_t total;
        int64_t nodes[SPEC_NODES_MAX];
};

struct memory {
        const struct verdict *v;
        int64_t threads;
        bool shown[KIND_OTHER][SPEC_THREADS_MAX];
        struct spread spreads[2]; /* under `memory`; under `buffer`, where that is given */
};

/* The range under verification. */
struct range {
        const struct json *json;
        const char *what;
        enum kind kind;
        bool apart; /* the policy is that of buffers */
        int64_t total, absent, counted;
};

static bool carries_messages(const char *what) {
        return strcmp(what, "buffer") == 0 || strcmp(what, "ring") == 0 || strcmp(what, "page_cache") == 0;
}

static enum memory_policy policy_of(const struct verdict *v, bool apart) {
        return apart ? v->given->buffer : v->given->memory;
}

/* The nodes that the policy promises, NULL where it promises none. */
static const struct node_set *nodes_promised(const struct verdict *v, bool apart) {
        enum memory_policy policy = policy_of(v, apart);
        if (policy != MEMORY_BIND && policy != MEMORY_INTERLEAVE)
                return NULL;
        return apart ? &v->given->buffer_nodes : &v->given->memory_nodes;
}

/* Node ids are keys, and so text. */
static int node_from_key(const char *key, unsigned *ret) {
        char *end = NULL;
        errno = 0;
        unsigned long id = strtoul(key, &end, 10);
        if (errno || end == key || *end || key[0] < '0' || key[0] > '9' || id >= SPEC_NODES_MAX)
                return -EINVAL;
        *ret = (unsigned) id;
        return 0;
}

static int check_unknown(const struct verdict *v, const struct range *r) {
        const struct json *reason = json_get(r->json, "reason");
        const char *text = NULL;
        if (!reason || json_as_string(reason, &text) < 0 || !text[0])
                return verdict_bad(v, "pages without nodes and without a reason");
        if (policy_of(v, r->apart) != MEMORY_DEFAULT)
                return verdict_fail(v, -EPERM, "the nodes of the pages of the %s are unknown: %.200s", r->what, text);
        return 0;
}

static int count_nodes(struct memory *m, struct range *r, const struct json *nodes) {
        const struct verdict *v = m->v;
        const struct node_set *promised = nodes_promised(v, r->apart);
        for (const struct json *node = json_first(nodes); node; node = json_next(node)) {
                unsigned id = 0;
                int64_t count = 0;
                if (node_from_key(json_key(node), &id) < 0 || json_as_i64(node, &count) < 0 || count < 0)
                        return verdict_bad(v, "pages by node");
                r->counted += count;
                m->spreads[r->apart].nodes[id] += count;
                m->spreads[r->apart].total += count;
                if (count > 0 && promised && !node_set_has(promised, id))
                        return verdict_fail(v, -EPERM,
                                            "%" PRId64 " of %" PRId64 " pages of the %s were on node %u, "
                                            "which its policy does not include",
                                            count, r->total, r->what, id);
        }
        return r->counted + r->absent == r->total ? 0 : verdict_bad(v, "pages by node do not add up to the total");
}

/* Every absent page has a reason. ENOENT (never touched, or swapped out) is no fault as long as other pages are
 * present; EFAULT (not mapped) is one, because the reported memory is then not the memory in use. */
static int check_absent(const struct verdict *v, const struct range *r) {
        int64_t sum = 0, unmapped = 0;
        const struct json *errors = json_get(r->json, "absent_errors");
        for (const struct json *e = errors ? json_first(errors) : NULL; e; e = json_next(e)) {
                int64_t count = 0;
                if (json_as_i64(e, &count) < 0 || count <= 0)
                        return verdict_bad(v, "absent_errors");
                sum += count;
                unmapped = strcmp(json_key(e), "EFAULT") == 0 ? count : unmapped;
        }
        if (sum != r->absent)
                return verdict_bad(v, "absent_errors do not add up to absent");
        if (policy_of(v, r->apart) == MEMORY_DEFAULT)
                return 0;
        if (unmapped)
                return verdict_fail(v, -EPERM, "%" PRId64 " of %" PRId64 " pages of the %s are not mapped (EFAULT)",
                                    unmapped, r->total, r->what);
        if (r->counted == 0 && strcmp(r->what, "page_cache") != 0) /* a file has pages once it is written */
                return verdict_fail(v, -EPERM, "none of the %" PRId64 " pages of the %s is present", r->total, r->what);
        return 0;
}

/* The readings between start and end. */
static int check_stay(const struct verdict *v, const struct range *r) {
        const struct node_set *promised = nodes_promised(v, r->apart);
        const struct json *seen = json_get(r->json, "nodes_seen");
        int64_t moved = -1;

        if (!seen || json_type(seen) != JSON_ARRAY)
                return verdict_bad(v, "nodes_seen");
        for (const struct json *node = json_first(seen); node; node = json_next(node)) {
                int64_t id = -1;
                if (json_as_i64(node, &id) < 0 || id < 0 || id >= SPEC_NODES_MAX)
                        return verdict_bad(v, "nodes_seen");
                if (promised && !node_set_has(promised, (unsigned) id))
                        return verdict_fail(v, -EPERM,
                                            "pages of the %s were meanwhile on node %" PRId64
                                            ", which its policy does not include",
                                            r->what, id);
        }
        if (verdict_number(r->json, "moved", &moved) < 0 || moved < 0 || moved > r->total)
                return verdict_bad(v, "moved");
        if (moved == 0)
                return 0;
        if (policy_of(v, r->apart) != MEMORY_DEFAULT)
                return verdict_fail(v, -EPERM, "%" PRId64 " of %" PRId64 " pages of the %s were moved to another node",
                                    moved, r->total, r->what);
        v->doubts->pages_moved = true;
        return 0;
}

static int check_counted(struct memory *m, struct range *r, const struct json *nodes) {
        const struct verdict *v = m->v;
        if (verdict_number(r->json, "total", &r->total) < 0 || r->total < 0 ||
            verdict_number(r->json, "absent", &r->absent) < 0 || r->absent < 0)
                return verdict_bad(v, "total and absent pages");
        int e = count_nodes(m, r, nodes);
        if (e == 0)
                e = check_absent(v, r);
        if (e == 0)
                e = check_stay(v, r);
        return e;
}

/* The range belongs to one thread, or to a number of threads together; it counts for each when that is all of them. */
static int mark_shown(struct memory *m, const struct range *r) {
        int64_t thread = -1, together = 0;
        if (verdict_number(r->json, "thread", &thread) == 0) {
                if (thread < 0 || thread >= m->threads || thread >= SPEC_THREADS_MAX)
                        return verdict_bad(m->v, "the thread of pages");
        } else if (verdict_number(r->json, "threads", &together) < 0 || together < 1 || together > m->threads) {
                return verdict_bad(m->v, "the thread of pages");
        }
        if (r->kind == KIND_OTHER)
                return 0;
        if (thread >= 0)
                m->shown[r->kind][thread] = true;
        for (int64_t i = 0; together == m->threads && i < m->threads && i < SPEC_THREADS_MAX; i++)
                m->shown[r->kind][i] = true;
        return 0;
}

static int check_range(struct memory *m, const struct json *json) {
        const struct json *what = json_get(json, "what"), *nodes = json_get(json, "nodes");
        struct range r = {.json = json};
        if (!what || json_as_string(what, &r.what) < 0 || !nodes)
                return verdict_bad(m->v, "pages");
        while (r.kind < KIND_OTHER && strcmp(r.what, kind_names[r.kind]) != 0)
                r.kind++;
        r.apart = m->v->given->buffer != MEMORY_DEFAULT && carries_messages(r.what);
        int e = mark_shown(m, &r);
        if (e < 0)
                return e;
        return json_type(nodes) == JSON_NULL     ? check_unknown(m->v, &r)
               : json_type(nodes) == JSON_OBJECT ? check_counted(m, &r, nodes)
                                                 : verdict_bad(m->v, "pages by node");
}

/* A ring belongs to its reader: in a stream to the second end, in a round trip each end has one. */
static bool owns_rings(const struct verdict *v) {
        return transport_terms[v->point->transport].carrier == CARRIER_RING &&
               workload_has_transport(v->point->workload) &&
               (v->end == END_SECOND || v->point->workload == WORKLOAD_PINGPONG);
}

static bool is_required(const struct verdict *v, enum kind kind) {
        bool apart = v->given->buffer != MEMORY_DEFAULT && carries_messages(kind_names[kind]);
        if (policy_of(v, apart) == MEMORY_DEFAULT)
                return false;
        switch (kind) {
        case KIND_BUFFER:
                return v->point->message_size > 0 ||
                       (v->point->workload == WORKLOAD_CONTEXT_SWITCH && v->point->working_set > 0);
        case KIND_RING:
                return owns_rings(v);
        default:
                return true;
        }
}

static int check_shown(const struct memory *m) {
        for (enum kind kind = 0; kind < KIND_OTHER; kind++)
                for (int64_t i = 0; is_required(m->v, kind) && i < m->threads && i < SPEC_THREADS_MAX; i++)
                        if (!m->shown[kind][i])
                                return verdict_fail(m->v, -EPERM,
                                                    "the proof lacks the pages of the %s of thread %" PRId64,
                                                    kind_names[kind], i);
        return 0;
}

/* Pages of an interleaved range may all be on its nodes and yet on one alone, when the others had no free memory. */
static int check_spread(const struct memory *m, bool apart, int64_t together) {
        const struct verdict *v = m->v;
        const struct node_set *nodes = nodes_promised(v, apart);
        const struct spread *s = &m->spreads[apart];
        int64_t n = 0;
        if (policy_of(v, apart) != MEMORY_INTERLEAVE)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                n += node_set_has(nodes, id);
        if (n == 0 || s->total / together < SPREAD_UNITS * n)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(nodes, id) && s->nodes[id] < s->total / n / SPREAD_SHARE)
                        return verdict_fail(v, -EPERM,
                                            "%" PRId64 " of %" PRId64
                                            " pages were on node %u, interleaved over %" PRId64 " nodes",
                                            s->nodes[id], s->total, id, n);
        return 0;
}

int placement_check_pages(const struct verdict *v, const struct json *root, int64_t threads) {
        const struct json *pages = json_get(root, "pages");
        struct memory m = {.v = v, .threads = threads};
        int64_t together = 0;

        if (!pages || json_type(pages) != JSON_ARRAY)
                return verdict_bad(v, "pages");
        if (verdict_number(root, "pages_placed_together", &together) < 0 || together < 1)
                return verdict_bad(v, "pages_placed_together");
        for (const struct json *range = json_first(pages); range; range = json_next(range)) {
                int r = check_range(&m, range);
                if (r < 0)
                        return r;
        }
        int r = check_shown(&m);
        for (unsigned apart = 0; r == 0 && apart < ELEMENTS(m.spreads); apart++)
                r = check_spread(&m, apart, together);
        return r;
}
