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

#include "schema/detail.h"
#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Interleaving is judged from this many pages, or units of pages that the kernel places together, per node; */
#define SPREAD_UNITS 4
/* …each node then has at least this part of an even share: every allocation of a task advances its turn. */
#define SPREAD_SHARE 4

/* Pages under one policy, of all ranges. */
struct spread {
        uint64_t total;
        uint64_t nodes[SPEC_NODES_MAX];
};

struct memory {
        const struct verdict *v;
        uint32_t threads;
        bool shown[PAGE_KIND_COUNT][SPEC_THREADS_MAX];
        struct spread spreads[2]; /* under `memory`; under `buffer`, where that is given */
};

/* The pages under verification. */
struct range {
        const struct proof_pages *pages;
        const char *what;
        bool apart; /* the policy is that of buffers */
        uint64_t absent, counted;
};

static bool carries_messages(enum page_kind kind) {
        return kind == PAGES_BUFFER || kind == PAGES_RING || kind == PAGES_CACHE;
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

static int check_unknown(const struct verdict *v, const struct range *r) {
        if (policy_of(v, r->apart) == MEMORY_DEFAULT)
                return 0;
        return detail_fail(v->detail, -EPERM, "the nodes of the pages of the %s are unknown: %s", r->what,
                           strerrordesc_np((int) r->pages->error));
}

/* Every absent page has a reason. ENOENT (never touched, or swapped out) is no fault as long as other pages are
 * present; EFAULT (not mapped) is one, because the reported memory is then not the memory in use. */
static int count_pages(struct memory *m, struct range *r) {
        const struct verdict *v = m->v;
        const struct proof_count *counts = v->proof->of.counts;
        const struct proof_list *nodes = &r->pages->nodes, *absent = &r->pages->absent;
        const struct node_set *promised = nodes_promised(v, r->apart);
        uint64_t total = r->pages->total, unmapped = 0;
        for (size_t i = nodes->at; i < nodes->at + nodes->n; i++) {
                if (counts[i].pages > total - r->counted)
                        return verdict_bad(v, "pages by node do not add up to the total");
                r->counted += counts[i].pages;
                m->spreads[r->apart].nodes[counts[i].id] += counts[i].pages;
                m->spreads[r->apart].total += counts[i].pages;
                if (promised && !node_set_has(promised, (unsigned) counts[i].id))
                        return detail_fail(v->detail, -EPERM,
                                           "%" PRIu64 " of %" PRIu64 " pages of the %s were on node %" PRIu64 ", "
                                           "which its policy does not include",
                                           counts[i].pages, total, r->what, counts[i].id);
        }
        for (size_t i = absent->at; i < absent->at + absent->n; i++) {
                if (counts[i].pages > total - r->counted - r->absent)
                        return verdict_bad(v, "pages by node do not add up to the total");
                r->absent += counts[i].pages;
                if (counts[i].id == EFAULT)
                        unmapped = counts[i].pages;
        }
        if (r->counted + r->absent != total)
                return verdict_bad(v, "pages by node do not add up to the total");
        if (policy_of(v, r->apart) == MEMORY_DEFAULT)
                return 0;
        if (unmapped)
                return detail_fail(v->detail, -EPERM,
                                   "%" PRIu64 " of %" PRIu64 " pages of the %s are not mapped (EFAULT)", unmapped,
                                   total, r->what);
        if (r->counted == 0 && r->pages->kind != PAGES_CACHE) /* a file has pages once it is written */
                return detail_fail(v->detail, -EPERM, "none of the %" PRIu64 " pages of the %s is present", total,
                                   r->what);
        return 0;
}

/* The readings between start and end. */
static int check_stay(const struct verdict *v, const struct range *r) {
        const struct node_set *promised = nodes_promised(v, r->apart);
        const struct proof_list *seen = &r->pages->nodes_seen;
        for (size_t i = seen->at; promised && i < seen->at + seen->n; i++)
                if (!node_set_has(promised, v->proof->of.numbers[i]))
                        return detail_fail(v->detail, -EPERM,
                                           "pages of the %s were meanwhile on node %u"
                                           ", which its policy does not include",
                                           r->what, v->proof->of.numbers[i]);
        if (r->pages->moved > r->pages->total)
                return verdict_bad(v, "moved");
        if (r->pages->moved == 0)
                return 0;
        if (policy_of(v, r->apart) != MEMORY_DEFAULT)
                return detail_fail(v->detail, -EPERM,
                                   "%" PRIu64 " of %" PRIu64 " pages of the %s were moved to another node",
                                   r->pages->moved, r->pages->total, r->what);
        v->doubts->pages_moved = true;
        return 0;
}

/* The pages belong to one thread, or to a number of threads together; they count for each when that is all of them. */
static int mark_shown(struct memory *m, const struct proof_pages *pages) {
        bool *shown = m->shown[pages->kind];
        if (pages->together ? pages->thread < 1 || pages->thread > m->threads : pages->thread >= m->threads)
                return verdict_bad(m->v, "the thread of pages");
        if (!pages->together)
                shown[pages->thread] = true;
        for (uint32_t i = 0; pages->together && pages->thread == m->threads && i < m->threads; i++)
                shown[i] = true;
        return 0;
}

static int check_range(struct memory *m, const struct proof_pages *pages) {
        struct range r = {.pages = pages, .what = page_kind_name((enum page_kind) pages->kind)};
        r.apart = m->v->given->buffer != MEMORY_DEFAULT && carries_messages((enum page_kind) pages->kind);
        int e = mark_shown(m, pages);
        if (e == 0)
                e = pages->error ? check_unknown(m->v, &r) : count_pages(m, &r);
        return e == 0 && !pages->error ? check_stay(m->v, &r) : e;
}

static bool is_required(const struct verdict *v, enum page_kind kind) {
        bool apart = v->given->buffer != MEMORY_DEFAULT && carries_messages(kind);
        if (policy_of(v, apart) == MEMORY_DEFAULT)
                return false;
        switch (kind) {
        case PAGES_BUFFER:
                return v->point->message_size > 0 ||
                       (v->point->workload == WORKLOAD_CONTEXT_SWITCH && v->point->working_set > 0);
        case PAGES_RING:
                /* A ring belongs to its reader: in a stream to the second end, in a round trip each end has one. */
                return point_has_carrier(v->point, CARRIER_RING) &&
                       (v->end == END_SECOND || v->point->workload == WORKLOAD_PINGPONG);
        default:
                return kind == PAGES_STACK;
        }
}

static int check_shown(const struct memory *m) {
        for (enum page_kind kind = 0; kind < PAGE_KIND_COUNT; kind++)
                for (uint32_t i = 0; is_required(m->v, kind) && i < m->threads; i++)
                        if (!m->shown[kind][i])
                                return detail_fail(m->v->detail, -EPERM,
                                                   "the proof lacks the pages of the %s of thread %" PRIu32,
                                                   page_kind_name(kind), i);
        return 0;
}

/* Pages of an interleaved range may all be on its nodes and yet on one alone, when the others had no free memory. */
static int check_spread(const struct memory *m, bool apart) {
        const struct verdict *v = m->v;
        const struct node_set *nodes = nodes_promised(v, apart);
        const struct spread *s = &m->spreads[apart];
        uint64_t n = 0;
        if (policy_of(v, apart) != MEMORY_INTERLEAVE)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                n += node_set_has(nodes, id);
        if (n == 0 || s->total / v->proof->placed_together < SPREAD_UNITS * n)
                return 0;
        for (unsigned id = 0; id < SPEC_NODES_MAX; id++)
                if (node_set_has(nodes, id) && s->nodes[id] < s->total / n / SPREAD_SHARE)
                        return detail_fail(v->detail, -EPERM,
                                           "%" PRIu64 " of %" PRIu64 " pages were on node %u, interleaved over %" PRIu64
                                           " nodes",
                                           s->nodes[id], s->total, id, n);
        return 0;
}

int placement_check_pages(const struct verdict *v, uint32_t threads) {
        struct memory m = {.v = v, .threads = threads};
        for (size_t i = 0; i < v->proof->of.n_pages; i++) {
                int r = check_range(&m, &v->proof->of.pages[i]);
                if (r < 0)
                        return r;
        }
        int r = check_shown(&m);
        for (unsigned apart = 0; r == 0 && apart < ELEMENTS(m.spreads); apart++)
                r = check_spread(&m, apart);
        return r;
}
