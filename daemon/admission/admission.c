/* SPDX-License-Identifier: MIT */
/*
 * Refuses points that this host cannot run. Each check compares one requested value with one limit, and its refusal
 * names both. Called by the service for every point of a posted spec; reads little, sets nothing.
 */

#include "daemon/admission/admission.h"

#include "daemon/admission/internal.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define KIB UINT64_C(1024)
/* Refuses requirements that can never be met here. One that could be set and is not fails the run, whose error names
 * the command to set it. */
static int check_require(struct admission *a) {
        size_t nodes = 0;
        if (a->p->placement.require.numa_balancing != TOGGLE_ON)
                return 0;
        if (a->t->numa_balancing < 0)
                return refuse(a->r, 422, "impossible-combination", "/placement",
                              "automatic NUMA balancing is required, and this kernel has none");
        for (size_t i = 0; i < a->t->n_nodes; i++)
                nodes += a->t->nodes[i].has_memory;
        return nodes > 1
                       ? 0
                       : admission_refuse(a, "/placement", "nodes with memory", nodes, 2,
                                          "automatic NUMA balancing is required, and has nothing to move on this host");
}

int admission_session_init(struct admission_session *ret, const char *root) {
        *ret = (struct admission_session){.uring.done = false};
        int r = hostfs_init(&ret->h, root);
        if (r == 0)
                hostfs_keep(&ret->h);
        return r;
}

void admission_session_deinit(struct admission_session *s) {
        hostfs_deinit(&s->h);
}

/* Sets up a ring and takes it down again, once in a session. NULL: the host has what the point needs. */
static const char *probe_ring(struct admission *a, struct admission_probe *probe,
                              const char *(*try)(struct hostfs *h, const struct agent_identity *agents, char *reason)) {
        if (!probe->done)
                probe->refused = try(a->h, a->agents, probe->reason) != NULL;
        probe->done = true;
        return probe->refused ? probe->reason : NULL;
}

static int check_transport(struct admission *a) {
        const struct capacity_question q = {.transport = a->p->transport, .queues = a->queues};
        char why[CAPACITY_REASON_MAX];
        const char *reason = workload_has_transport(a->p->workload) ? capacity_unavailable(a->h, &q, why) : NULL;
        return reason ? refuse(a->r, 422, "not-available", "/transport", "transport %s is not available: %s",
                               transport_name(a->p->transport), reason)
                      : 0;
}

static int check_engine(struct admission *a) {
        if (a->p->engine != ENGINE_IO_URING)
                return 0;
        const char *why = probe_ring(a, &a->session->uring, capacity_io_uring);
        if (why)
                return refuse(a->r, 422, "not-available", "/engine", "engine io_uring is not available: %s", why);
        if (a->p->copy_mode == COPY_ZERO)
                why = probe_ring(a, &a->session->uring_zerocopy, capacity_io_uring_zerocopy);
        return why ? refuse(a->r, 422, "not-available", "/copy_mode",
                            "copy_mode zero-copy is not available with engine io_uring: %s", why)
                   : 0;
}

/* The memory of a sending thread beside its buffer: the messages that tcp assembles from fields; the fields that are
 * gathered; or the pages that vmsplice leaves in a pipe, which are at most as many as it holds, and those of the
 * message before and behind them (agent/transport/stream/splice.h). */
static uint64_t sent_bytes(const struct admission *a) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), message = (a->p->message_size + page - 1) / page * page;
        uint64_t pipe = a->options.pipe_size ? admission_pipe_bytes(a->options.pipe_size) : 16 * page;
        if (transport_terms[a->p->transport].assembles_fields)
                return point_sent_bytes(a->p, page);
        if (a->p->copy_mode == COPY_ONE)
                return point_field_bytes(a->p, page);
        return point_zero_copy(a->p) == ZERO_COPY_SPLICE ? pipe + 2 * message : 0;
}

/* The memory of an end, in bytes. */
struct holding {
        uint64_t own;      /* stacks, bookkeeping and the kernel's memory for it */
        uint64_t messages; /* pages that carry messages, which may be placed apart */
};

/* Counts a ring for its reader, and slots for the end that admission_slot_bytes() gives. Rings in huge pages lie in
 * memory that is reserved already. */
static void add_carrier(struct admission *a, unsigned e, struct holding *h) {
        struct ring_layout rings;
        if (a->options.pipe_size && point_sends(a->p, e))
                h->own += admission_pipe_bytes(a->options.pipe_size) * a->p->threads;
        if (point_sends(a->p, e))
                h->own += admission_queue_bytes(a) / point_directions(a->p);
        h->messages += admission_slot_bytes(a, e);
        if (a->options.huge_pages == TOGGLE_ON || admission_ring_bytes(a, &rings) == 0)
                return;
        if (e == END_FIRST)
                h->messages += rings.control_bytes;
        if (point_receives(a->p, e))
                h->messages += rings.ring_bytes * a->p->threads;
}

/* All threads' cold sources of an end. */
static uint64_t source_bytes(const struct admission *a, unsigned e) {
        if (!point_sends(a->p, e))
                return 0;
        uint64_t cache = a->t ? topology_last_cache(a->t) : SPEC_LAST_CACHE_DEFAULT;
        return a->p->threads * point_source_bytes(a->p, cache, (uint64_t) sysconf(_SC_PAGESIZE));
}

static struct holding end_holds(struct admission *a, unsigned e) {
        uint64_t tasks = admission_tasks(a->p) / workload_agents(a->p->workload);
        struct holding h = {.own = tasks * (a->p->working_set + CAPACITY_THREAD_BYTES),
                            .messages = tasks * a->p->message_size};
        if (!workload_has_transport(a->p->workload))
                return h;
        h.messages += a->p->threads * point_queued_bytes(a->p, point_sends(a->p, e), (uint64_t) sysconf(_SC_PAGESIZE));
        if (point_sends(a->p, e))
                h.messages += a->p->threads * sent_bytes(a) + source_bytes(a, e);
        if (point_receives(a->p, e))
                h.messages += a->p->threads * point_multishot_bytes(a->p);
        add_carrier(a, e, &h);
        return h;
}

static uint64_t memory_needed(struct admission *a) {
        uint64_t need = 0;
        for (unsigned e = 0; e < workload_agents(a->p->workload); e++) {
                const struct holding h = end_holds(a, e);
                need += h.own + h.messages;
        }
        return need;
}

static int check_memory(struct admission *a) {
        struct capacity_memory memory;
        char why[240];
        int x = capacity_memory(a->h, &memory);
        if (x < 0)
                return x == -ENOMEM ? x : 0;
        uint64_t need = memory_needed(a);
        if (need <= capacity_usable(&memory))
                return 0;
        (void) snprintf(why, sizeof(why),
                        "the buffers of all threads, in bytes, do not fit into memory, of which 1/%u stays free (to "
                        "have more: %.100s)",
                        CAPACITY_RESERVE, memory.raise);
        uint64_t cold =
                source_bytes(a, END_FIRST) + (workload_agents(a->p->workload) > 1 ? source_bytes(a, END_SECOND) : 0);
        return admission_refuse(a, need - cold <= capacity_usable(&memory) ? "/source" : "/message_size", memory.limit,
                                memory.bytes, need, why);
}

/* Bytes that must lie on these nodes: anywhere on them, or an even share on each. */
struct claim {
        const struct node_set *nodes;
        uint64_t bytes;
        bool even;
};

static unsigned nodes_in_both(const struct node_set *a, const struct node_set *b) {
        unsigned n = 0;
        for (size_t i = 0; i < ELEMENTS(a->bits); i++)
                n += (unsigned) __builtin_popcountll(a->bits[i] & b->bits[i]);
        return n;
}

/* The part of a claim that these nodes have to hold in any case. */
static uint64_t held_by(const struct claim *c, const struct node_set *nodes) {
        unsigned all = nodes_in_both(c->nodes, c->nodes), here = nodes_in_both(c->nodes, nodes);
        if (here == 0 || (here < all && !c->even))
                return 0;
        return (c->bytes * here + all - 1) / all;
}

static void add_claim(struct claim *all, size_t *n, enum memory_policy policy, const struct node_set *nodes,
                      uint64_t bytes) {
        if (policy == MEMORY_BIND || policy == MEMORY_INTERLEAVE)
                all[(*n)++] = (struct claim){.nodes = nodes, .bytes = bytes, .even = policy == MEMORY_INTERLEAVE};
}

static size_t list_claims(struct admission *a, const struct run_placement *p, struct claim ret[2 * END_COUNT]) {
        size_t n = 0;
        for (unsigned e = 0; e < workload_agents(a->p->workload); e++) {
                const struct agent_placement *end = &p->ends[e];
                struct holding h = end_holds(a, e);
                if (end->buffer == MEMORY_DEFAULT) {
                        h.own += h.messages;
                        h.messages = 0;
                }
                add_claim(ret, &n, end->memory, &end->memory_nodes, h.own);
                add_claim(ret, &n, end->buffer, &end->buffer_nodes, h.messages);
        }
        return n;
}

/* All that has to lie on these nodes, against all that they have. */
static int check_nodes(struct admission *a, const struct claim *all, size_t n, const struct node_set *nodes,
                       const char *limit, const char *why) {
        uint64_t have = 0, need = 0;
        for (size_t i = 0; i < n; i++)
                need += held_by(&all[i], nodes);
        for (size_t i = 0; i < a->t->n_nodes; i++)
                if (node_set_has(nodes, (unsigned) a->t->nodes[i].id))
                        have += a->t->nodes[i].memory_bytes;
        return need > have ? admission_refuse(a, "/message_size", limit, have, need, why) : 0;
}

/* Interleaved pages whose node is full go to other nodes, also to ones that were not requested, and the shares are then
 * no longer even (daemon/placement/pages.c). */
static int check_each_node(struct admission *a, const struct claim *all, size_t n, const struct node_set *nodes) {
        int x = 0;
        for (unsigned id = 0; x == 0 && id < SPEC_NODES_MAX; id++) {
                struct node_set one = {0};
                char limit[40];
                if (!node_set_has(nodes, id))
                        continue;
                node_set_add(&one, id);
                (void) snprintf(limit, sizeof(limit), "memory of node %u", id);
                x = check_nodes(a, all, n, &one, limit,
                                "an even share of what the placement interleaves, in bytes, does not fit into the "
                                "node");
        }
        return x;
}

/* Bound pages cannot go elsewhere: what nodes have in all is the least that must suffice for all that is bound to them
 * or to some of them. */
static int check_node_memory(struct admission *a, const struct run_placement *p) {
        struct claim all[2 * END_COUNT];
        size_t n = list_claims(a, p, all);
        int x = 0;
        for (size_t i = 0; x == 0 && i < n; i++)
                x = all[i].even ? check_each_node(a, all, n, all[i].nodes)
                                : check_nodes(a, all, n, all[i].nodes, "memory of the bound nodes",
                                              "what the placement binds, in bytes, does not fit into its nodes");
        return x;
}

static int check_placement(struct admission *a) {
        _cleanup_(run_placement_deinit) struct run_placement placement = {0};
        int x = placement_resolve(a->t, a->p, &placement, a->r);
        if (x == 0)
                x = check_spin(a, &placement);
        return x < 0 ? x : check_node_memory(a, &placement);
}

static struct capacity_question question(const char *runtime_dir, const struct queue_host *queues,
                                         const struct transport_options *options, const struct point *p) {
        return (struct capacity_question){
                .transport = p->transport, .options = options, .runtime_dir = runtime_dir, .queues = queues};
}

static bool may_be_chunked(const struct spec *spec, const struct point *p) {
        return spec->chunk && transport_terms[p->transport].delivery == DELIVERY_WHOLE;
}

/* A message in pieces would be several operations, and a run could end between them. */
static int check_queue_depth(struct admission *a) {
        const struct capacity_question q = question(a->runtime_dir, a->queues, &a->options, a->p);
        uint64_t chunk = 0;
        if (!point_is_queued(a->p) || chunk_bytes_on(a->h, &q, a->spec, a->p, &chunk) < 0 || chunk == 0)
                return 0;
        return refuse(a->r, 422, "impossible-combination", "/queue_depth",
                      "queue_depth %" PRIu32 " needs messages that go whole, and one of %" PRIu64
                      " bytes goes in pieces of %" PRIu64,
                      a->p->queue_depth, a->p->message_size, chunk);
}

static int check_message(struct admission *a) {
        const struct capacity_question q = question(a->runtime_dir, a->queues, &a->options, a->p);
        if (workload_agents(a->p->workload) < END_COUNT || may_be_chunked(a->spec, a->p) ||
            transport_terms[a->p->transport].delivery == DELIVERY_SLOTS)
                return 0; /* slots for messages are counted by check_rings() and check_file_space() */
        return capacity_check_message(a->h, &q, a->p->message_size, a->r);
}

static int run_checks(const struct admission_host *host, const struct spec *spec, const struct point *p,
                      struct refusal *r, int (*const checks[])(struct admission *), size_t n) {
        struct admission_session own;
        struct admission a = {.t = host->topology,
                              .runtime_dir = host->runtime_dir,
                              .space = host->space,
                              .queues = host->queues,
                              .agents = host->agents,
                              .memlock_bytes = host->memlock_bytes,
                              .rings_are_locked = host->rings_are_locked,
                              .session = host->session ? host->session : &own,
                              .spec = spec,
                              .p = p,
                              .options = options_for_point(&spec->options, p),
                              .r = r};

        int x = host->session ? 0 : admission_session_init(&own, host->root);
        a.h = &a.session->h;
        for (size_t i = 0; x == 0 && i < n; i++)
                x = checks[i](&a);
        if (!host->session)
                admission_session_deinit(&own);
        return x;
}

int admission_check(const struct admission_host *host, const struct spec *spec, const struct point *p,
                    struct refusal *r) {
        static int (*const checks[])(struct admission *) = {
                check_require,   check_transport, check_engine,      check_congestion, check_limits,
                check_file_sync, check_message,   check_queue_depth, check_file_space, check_queues,
                check_rings,     check_placement, check_memory,
        };
        return run_checks(host, spec, p, r, checks, ELEMENTS(checks));
}

int admission_check_memory(const struct admission_host *host, const struct spec *spec, const struct point *p,
                           struct refusal *r) {
        static int (*const checks[])(struct admission *) = {check_memory};
        return run_checks(host, spec, p, r, checks, ELEMENTS(checks));
}

int chunk_bytes_on(struct hostfs *h, const struct capacity_question *q, const struct spec *spec, const struct point *p,
                   uint64_t *ret) {
        struct capacity c = {.known = false};
        if (workload_agents(p->workload) < END_COUNT || !may_be_chunked(spec, p)) {
                *ret = 0;
                return 0;
        }
        int x = capacity_read(h, q, &c);
        if (x == 0 && !c.known)
                x = -ENODATA;
        if (x < 0)
                return x;
        uint64_t most = c.largest_transfer, room = admission_queue_room(h, q->queues, spec, p);
        if (room > 0 && room < most) /* where there is none, check_queues() refuses */
                most = room;
        uint64_t buffer = queues_are_used(p) && !spec->options.msgq_depth ? spec->options.buffer_bytes : 0;
        if (buffer > 0 && buffer < most)
                most = buffer;
        *ret = p->message_size > most ? most : 0;
        return 0;
}

int admission_chunk_bytes(const struct admission_host *host, const struct spec *spec, const struct point *p,
                          uint64_t *ret) {
        const struct transport_options options = options_for_point(&spec->options, p);
        const struct capacity_question q = question(host->runtime_dir, host->queues, &options, p);
        struct hostfs h;
        int x = hostfs_init(&h, host->root);
        if (x == 0)
                x = chunk_bytes_on(&h, &q, spec, p, ret);
        hostfs_deinit(&h);
        return x;
}
