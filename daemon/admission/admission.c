/* SPDX-License-Identifier: MIT */
/*
 * The host's veto on a point. Each check compares one thing asked with one limit, and its refusal names both. Called by
 * the service for every point of a posted spec; reads little, sets nothing.
 */

#include "daemon/admission/internal.h"
#include "schema/util.h"

#include <inttypes.h>
#include <string.h>

#define KIB UINT64_C(1024)
/* Leaders and main threads of both agents. */
#define EXTRA_THREADS 4u

int asked_refuse(const struct asked *a, const char *pointer, const char *limit, uint64_t limit_value, uint64_t value,
                 const char *why) {
        char limit_text[32], value_text[32];
        (void) snprintf(limit_text, sizeof(limit_text), "%" PRIu64, limit_value);
        (void) snprintf(value_text, sizeof(value_text), "%" PRIu64, value);
        return refuse_limit(a->r, pointer, limit, limit_text, value_text, "%s: %s needed, %s is %s", why, value_text,
                            limit, limit_text);
}

/* A setting that is not there does not limit. */
uint64_t asked_setting(struct asked *a, const char *path) {
        int64_t v = 0;
        return hostfs_i64(&a->h, &v, "%s", path) == 0 && v >= 0 ? (uint64_t) v : ASKED_UNLIMITED;
}

/* What can never be met here. What could be set and is not fails the run, which says how to set it. */
static int check_require(struct asked *a) {
        size_t nodes = 0;
        if (a->p->placement.require.numa_balancing != TOGGLE_ON)
                return 0;
        if (a->t->numa_balancing < 0)
                return refuse(a->r, 422, "impossible-combination", "/placement",
                              "automatic NUMA balancing is required, and this kernel has none");
        for (size_t i = 0; i < a->t->n_nodes; i++)
                nodes += a->t->nodes[i].has_memory;
        return nodes > 1 ? 0
                         : asked_refuse(a, "/placement", "nodes with memory", nodes, 2,
                                        "automatic NUMA balancing is required, and has nothing to move on this host");
}

/* Sets up a ring and takes it down again, unless it did so for another point. NULL: what is asked for is there. */
static const char *ask_ring(struct asked *a, struct admission_answer *answer,
                            const char *(*ask)(struct hostfs *h, const struct agent_identity *agents, char *reason)) {
        if (!answer->asked)
                answer->refused = ask(&a->h, a->agents, answer->reason) != NULL;
        answer->asked = true;
        return answer->refused ? answer->reason : NULL;
}

static int check_engine(struct asked *a) {
        struct admission_answers here = {.uring.asked = false}, *answers = a->answers ? a->answers : &here;
        if (a->p->engine != ENGINE_IO_URING)
                return 0;
        const char *why = ask_ring(a, &answers->uring, capacity_io_uring);
        if (why)
                return refuse(a->r, 422, "not-available", "/engine", "engine io_uring is not available: %s", why);
        if (a->p->copy_mode == COPY_ZERO)
                why = ask_ring(a, &answers->uring_zerocopy, capacity_io_uring_zerocopy);
        return why ? refuse(a->r, 422, "not-available", "/copy_mode",
                            "copy_mode zero-copy is not available with engine io_uring: %s", why)
                   : 0;
}

/* round_pipe_size(): a power of two, at least a page. */
static uint64_t round_pipe_size(uint64_t bytes) {
        uint64_t size = (uint64_t) sysconf(_SC_PAGESIZE);
        while (size < bytes && size < UINT64_C(1) << 62)
                size *= 2;
        return size;
}

/* Agents have no privilege, so both limits hold for them. The kernel rounds up before it compares. */
static int check_pipe_size(struct asked *a) {
        uint64_t bytes = a->options.pipe_size;
        if (bytes == 0)
                return 0;
        uint64_t most = asked_setting(a, "/proc/sys/fs/pipe-max-size");
        if (round_pipe_size(bytes) > most)
                return asked_refuse(a, "/transport_options/pipe_size", "fs.pipe-max-size", most, bytes,
                                    "a pipe of this size is for the privileged only (to raise it: sysctl "
                                    "fs.pipe-max-size=BYTES)");

        uint64_t pages = asked_setting(a, "/proc/sys/fs/pipe-user-pages-soft");
        uint64_t need =
                round_pipe_size(bytes) / (uint64_t) sysconf(_SC_PAGESIZE) * a->p->threads * point_directions(a->p);
        if (pages != 0 && need > pages)
                return asked_refuse(a, "/transport_options/pipe_size", "fs.pipe-user-pages-soft", pages, need,
                                    "the pipes of all threads together hold more pages than one user may (to raise it: "
                                    "sysctl fs.pipe-user-pages-soft=PAGES)");
        return 0;
}

#define RAISE_MEMLOCK "(to raise it: LimitMEMLOCK= in the unit, or ulimit -l)"

/* Of the rings of all threads, where they count. Agents have no privilege. */
static uint64_t locked_ring_bytes(struct asked *a) {
        struct admission_answers here = {.rings.asked = false}, *answers = a->answers ? a->answers : &here;
        if (a->p->engine != ENGINE_IO_URING)
                return 0;
        if (!answers->rings.asked)
                answers->rings.locked = capacity_rings_are_locked(&a->h);
        answers->rings.asked = true;
        return answers->rings.locked ? point_ring_pages(a->p) * (uint64_t) sysconf(_SC_PAGESIZE) * a->p->threads : 0;
}

/* mm_account_pinned_pages(): the pages of a send, wherever it begins in the first of them. They are pinned at once.
 * Those of other threads' messages are waited for. What is registered is so only where there is room for it, too. */
static int check_locked(struct asked *a) {
        if (workload_agents(a->p->workload) < END_COUNT || a->memlock_bytes == 0 || a->memlock_bytes == UINT64_MAX)
                return 0;
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), rings = locked_ring_bytes(a);
        if (rings > a->memlock_bytes)
                return asked_refuse(a, "/threads", "RLIMIT_MEMLOCK", a->memlock_bytes, rings,
                                    "the rings of all threads are locked memory, in bytes " RAISE_MEMLOCK);
        uint64_t need = (a->p->message_size / page + 2) * page + rings;
        if (point_zero_copy(a->p) != ZERO_COPY_NOTIFY || need <= a->memlock_bytes)
                return 0;
        return asked_refuse(a, "/message_size", "RLIMIT_MEMLOCK", a->memlock_bytes, need,
                            rings ? "a zero-copy send pins the pages of its whole message, beside the rings of all "
                                    "threads, in bytes " RAISE_MEMLOCK
                                  : "a zero-copy send pins the pages of its whole message, in bytes " RAISE_MEMLOCK);
}

/* Threads and processes of all agents. */
static uint64_t tasks_needed(const struct point *p) {
        return workload_has_processes(p->workload) ? p->processes
                                                   : (uint64_t) p->threads * workload_agents(p->workload);
}

static bool end_sends(const struct point *p, unsigned e) {
        if (p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH)
                return true;
        return e == (p->direction == DIRECTION_UP ? END_SECOND : END_FIRST);
}

static bool end_receives(const struct point *p, unsigned e) {
        return p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH || !end_sends(p, e);
}

/* What a sending thread holds beside its buffer: the messages that tcp assembles from fields; the fields that are
 * gathered; or the pages that vmsplice leaves in a pipe, which are at most as many as it holds, and those of the
 * message before and behind them (agent/transport/stream/splice.h). */
static uint64_t sent_bytes(const struct asked *a) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE), message = (a->p->message_size + page - 1) / page * page;
        uint64_t pipe = a->options.pipe_size ? round_pipe_size(a->options.pipe_size) : 16 * page;
        if (transport_terms[a->p->transport].assembles_fields)
                return point_sent_bytes(a->p, page);
        if (a->p->copy_mode == COPY_ONE)
                return point_field_bytes(a->p, page);
        return point_zero_copy(a->p) == ZERO_COPY_SPLICE ? pipe + 2 * message : 0;
}

/* What an end holds, in bytes. */
struct holding {
        uint64_t own;      /* stacks and bookkeeping, and what the kernel keeps for it */
        uint64_t messages; /* pages that carry messages, which may be placed apart */
};

/* Rings are of who reads them, slots of a file of who writes them. Rings in huge pages lie in what has been set apart.
 */
static void add_carrier(struct asked *a, unsigned e, struct holding *h) {
        struct ring_layout rings;
        if (a->options.pipe_size && end_sends(a->p, e))
                h->own += round_pipe_size(a->options.pipe_size) * a->p->threads;
        if (end_sends(a->p, e))
                h->own += asked_queue_bytes(a) / point_directions(a->p);
        h->messages += asked_slot_bytes(a, e);
        if (a->options.huge_pages == TOGGLE_ON || asked_ring_bytes(a, &rings) == 0)
                return;
        if (e == END_FIRST)
                h->messages += rings.control_bytes;
        if (end_receives(a->p, e))
                h->messages += rings.ring_bytes * a->p->threads;
}

static struct holding end_holds(struct asked *a, unsigned e) {
        uint64_t tasks = tasks_needed(a->p) / workload_agents(a->p->workload);
        struct holding h = {.own = tasks * (a->p->working_set + CAPACITY_THREAD_BYTES),
                            .messages = tasks * a->p->message_size};
        if (!workload_has_transport(a->p->workload))
                return h;
        if (end_sends(a->p, e))
                h.messages += a->p->threads * sent_bytes(a);
        if (end_receives(a->p, e))
                h.messages += a->p->threads * point_multishot_bytes(a->p);
        add_carrier(a, e, &h);
        return h;
}

static uint64_t memory_needed(struct asked *a) {
        uint64_t need = 0;
        for (unsigned e = 0; e < workload_agents(a->p->workload); e++) {
                const struct holding h = end_holds(a, e);
                need += h.own + h.messages;
        }
        return need;
}

static int check_memory(struct asked *a) {
        struct capacity_memory memory;
        char why[200];
        int x = capacity_memory(&a->h, &memory);
        if (x < 0)
                return x == -ENOMEM ? x : 0;
        uint64_t need = memory_needed(a);
        if (need <= memory.bytes)
                return 0;
        (void) snprintf(why, sizeof(why),
                        "the buffers of all threads, in bytes, do not fit into memory (to have more: %.100s)",
                        memory.raise);
        return asked_refuse(a, "/message_size", memory.limit, memory.bytes, need, why);
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

/* What of a claim these nodes have to hold in any case. */
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

static size_t list_claims(struct asked *a, const struct run_placement *p, struct claim ret[2 * END_COUNT]) {
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
static int check_nodes(struct asked *a, const struct claim *all, size_t n, const struct node_set *nodes,
                       const char *limit, const char *why) {
        uint64_t have = 0, need = 0;
        for (size_t i = 0; i < n; i++)
                need += held_by(&all[i], nodes);
        for (size_t i = 0; i < a->t->n_nodes; i++)
                if (node_set_has(nodes, (unsigned) a->t->nodes[i].id))
                        have += a->t->nodes[i].memory_bytes;
        return need > have ? asked_refuse(a, "/message_size", limit, have, need, why) : 0;
}

/* Interleaved pages whose node is full go elsewhere, to nodes that were not asked for, too; and what is left is not
 * even any more (placement-pages.c). */
static int check_each_node(struct asked *a, const struct claim *all, size_t n, const struct node_set *nodes) {
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
static int check_node_memory(struct asked *a, const struct run_placement *p) {
        struct claim all[2 * END_COUNT];
        size_t n = list_claims(a, p, all);
        int x = 0;
        for (size_t i = 0; x == 0 && i < n; i++)
                x = all[i].even ? check_each_node(a, all, n, all[i].nodes)
                                : check_nodes(a, all, n, all[i].nodes, "memory of the bound nodes",
                                              "what the placement binds, in bytes, does not fit into its nodes");
        return x;
}

/* "Max open files   1024   1048576   files": the hard limit (agents raise the soft one themselves). */
static uint64_t hard_limit(const char *limits, const char *name) {
        const char *at = strstr(limits, name);
        if (!at)
                return ASKED_UNLIMITED;
        at += strlen(name);
        at += strspn(at, " ");
        at += strcspn(at, " \n"); /* soft */
        at += strspn(at, " ");
        char *end = NULL;
        uint64_t v = strtoull(at, &end, 10);
        return end == at ? ASKED_UNLIMITED : v; /* "unlimited" */
}

/* The least of the daemon's own group and those above it. */
static uint64_t cgroup_pids_max(struct asked *a) {
        char group[CAPACITY_CGROUP_MAX];
        uint64_t least = ASKED_UNLIMITED;
        for (bool more = capacity_cgroup(&a->h, group); more; more = capacity_cgroup_above(group)) {
                int64_t v = 0;
                if (hostfs_i64(&a->h, &v, "/sys/fs/cgroup%s/pids.max", group) == 0 && v >= 0 && (uint64_t) v < least)
                        least = (uint64_t) v;
        }
        return least;
}

static int check_threads(struct asked *a) {
        _cleanup_free_ char *limits = NULL;
        uint64_t threads = tasks_needed(a->p) + EXTRA_THREADS;
        const char *pointer = workload_has_processes(a->p->workload) ? "/processes" : "/threads";

        int x = hostfs_text(&a->h, &limits, "/proc/self/limits");
        if (x == -ENOMEM)
                return x;
        const struct {
                const char *name;
                uint64_t value;
        } all[] = {
                {"RLIMIT_NPROC", limits ? hard_limit(limits, "Max processes") : ASKED_UNLIMITED},
                {"kernel.pid_max", asked_setting(a, "/proc/sys/kernel/pid_max")},
                {"kernel.threads-max", asked_setting(a, "/proc/sys/kernel/threads-max")},
                {"pids.max of the cgroup", cgroup_pids_max(a)},
        };
        for (size_t i = 0; i < ELEMENTS(all); i++)
                if (threads > all[i].value)
                        return asked_refuse(a, pointer, all[i].name, all[i].value, threads,
                                            "too many threads for this host");

        uint64_t files = point_descriptors(a->p),
                 most = limits ? hard_limit(limits, "Max open files") : ASKED_UNLIMITED;
        return files > most
                       ? asked_refuse(a, pointer, "RLIMIT_NOFILE", most, files, "too many descriptors for one agent")
                       : 0;
}

static int check_placement(struct asked *a) {
        _cleanup_(run_placement_deinit) struct run_placement placement = {0};
        int x = placement_resolve(a->t, a->p, &placement, a->r);
        if (x == 0)
                x = check_spin(a, &placement);
        return x < 0 ? x : check_node_memory(a, &placement);
}

static struct capacity_question question(const char *runtime_dir, const struct queue_host *queues,
                                         const struct spec *spec, const struct point *p) {
        return (struct capacity_question){
                .transport = p->transport, .options = &spec->options, .runtime_dir = runtime_dir, .queues = queues};
}

static bool may_be_chunked(const struct spec *spec, const struct point *p) {
        return spec->chunk && transport_terms[p->transport].delivery == DELIVERY_WHOLE;
}

static int check_message(struct asked *a) {
        const struct capacity_question q = question(a->runtime_dir, a->queues, a->spec, a->p);
        if (workload_agents(a->p->workload) < END_COUNT || may_be_chunked(a->spec, a->p) ||
            transport_terms[a->p->transport].delivery == DELIVERY_SLOTS)
                return 0; /* slots for messages are counted by check_rings() and check_file_space() */
        return capacity_check_message(&a->h, &q, a->p->message_size, a->r);
}

int admission_check(const struct admission_host *host, const struct spec *spec, const struct point *p,
                    struct refusal *r) {
        static int (*const checks[])(struct asked *) = {
                check_require,    check_engine,  check_socket_options, check_file_sync, check_message,
                check_file_space, check_queues,  check_rings,          check_pipe_size, check_placement,
                check_memory,     check_threads, check_connections,    check_locked,
        };
        struct asked a = {.t = host->topology,
                          .runtime_dir = host->runtime_dir,
                          .space = host->space,
                          .queues = host->queues,
                          .agents = host->agents,
                          .memlock_bytes = host->memlock_bytes,
                          .answers = host->answers,
                          .spec = spec,
                          .p = p,
                          .options = options_for_point(&spec->options, p),
                          .r = r};

        int x = hostfs_init(&a.h, host->root);
        for (size_t i = 0; x == 0 && i < ELEMENTS(checks); i++)
                x = checks[i](&a);
        hostfs_deinit(&a.h);
        return x;
}

int asked_chunk_bytes(struct hostfs *h, const struct capacity_question *q, const struct spec *spec,
                      const struct point *p, uint64_t *ret) {
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
        uint64_t most = c.largest_transfer, room = asked_queue_room(h, q->queues, spec, p);
        if (room > 0 && room < most) /* where there is none, check_queues() refuses */
                most = room;
        *ret = p->message_size > most ? most : 0;
        return 0;
}

int admission_chunk_bytes(const struct admission_host *host, const struct spec *spec, const struct point *p,
                          uint64_t *ret) {
        const struct capacity_question q = question(host->runtime_dir, host->queues, spec, p);
        struct hostfs h;
        int x = hostfs_init(&h, host->root);
        if (x == 0)
                x = asked_chunk_bytes(&h, &q, spec, p, ret);
        hostfs_deinit(&h);
        return x;
}
