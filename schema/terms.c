/* SPDX-License-Identifier: MIT */

#include "schema/terms.h"

#include "schema/util.h"

#include <string.h>

#define TRANSPORT_ROW(id, stem, ...) [TRANSPORT_##id] = {__VA_ARGS__},

const struct transport_term transport_terms[TRANSPORT_COUNT] = {TRANSPORTS(TRANSPORT_ROW)};

static const char *const workloads[WORKLOAD_COUNT] = {
        [WORKLOAD_STREAM] = "stream",
        [WORKLOAD_PINGPONG] = "pingpong",
        [WORKLOAD_SYSCALL] = "syscall",
        [WORKLOAD_CONTEXT_SWITCH] = "context-switch",
};
const char *const latency_kinds[WORKLOAD_COUNT + 1] = {
        [WORKLOAD_STREAM] = "one_way",
        [WORKLOAD_PINGPONG] = "rtt",
        [WORKLOAD_SYSCALL] = "call",
        [WORKLOAD_CONTEXT_SWITCH] = "switch", /* the mean of a round's hops: switches with the pipe's part */
};
static const char *const copy_modes[COPY_COUNT] = {
        [COPY_TWO] = "two-copy", [COPY_ONE] = "one-copy", [COPY_ZERO] = "zero-copy"};
static const char *const engines[ENGINE_COUNT] = {[ENGINE_SYSCALL] = "syscall", [ENGINE_IO_URING] = "io_uring"};
static const char *const wait_modes[WAIT_COUNT] = {
        [WAIT_BLOCK] = "block", [WAIT_SPIN] = "spin", [WAIT_HYBRID] = "hybrid"};
static const char *const sources[SOURCE_COUNT] = {[SOURCE_HOT] = "hot", [SOURCE_COLD] = "cold"};
static const char *const verifies[VERIFY_COUNT] = {
        [VERIFY_NONE] = "none", [VERIFY_TOUCH] = "touch", [VERIFY_CHECKSUM] = "checksum"};
static const char *const memory_policies[MEMORY_COUNT] = {
        [MEMORY_DEFAULT] = "default",       [MEMORY_BIND] = "bind",   [MEMORY_PREFERRED] = "preferred",
        [MEMORY_INTERLEAVE] = "interleave", [MEMORY_LOCAL] = "local",
};
static const char *const placement_kinds[PLACEMENT_COUNT] = {
        [PLACEMENT_DEFAULT] = "default",
        [PLACEMENT_SAME_CPU] = "same-cpu",
        [PLACEMENT_SAME_CORE] = "same-core",
        [PLACEMENT_SAME_NODE] = "same-node",
        [PLACEMENT_CROSS_NODE] = "cross-node",
        [PLACEMENT_ALL_NODE_PAIRS] = "all-node-pairs",
        [PLACEMENT_ALL_CPU_PAIRS] = "all-cpu-pairs",
        [PLACEMENT_EXPLICIT] = "explicit",
};

static const char *const system_calls[SYSTEM_CALL_COUNT] = {
        [SYSTEM_CALL_GETPID] = "getpid",
        [SYSTEM_CALL_GETPID_LIBC] = "getpid-libc",
        [SYSTEM_CALL_CLOCK_GETTIME_VDSO] = "clock-gettime-vdso",
        [SYSTEM_CALL_CLOCK_GETTIME_SYSCALL] = "clock-gettime-syscall",
        [SYSTEM_CALL_READ_ZERO] = "read-zero",
};
static const char *const directions[DIRECTION_COUNT] = {
        [DIRECTION_DOWN] = "down", [DIRECTION_UP] = "up", [DIRECTION_BOTH] = "both"};
static const char *const file_syncs[FILE_SYNC_COUNT] = {
        [FILE_SYNC_PAGE_CACHE] = "page-cache", [FILE_SYNC_DIRECT] = "direct", [FILE_SYNC_FSYNC] = "fsync"};
static const char *const memfd_sources[MEMFD_COUNT] = {[MEMFD_FRESH] = "fresh", [MEMFD_POOL] = "pool"};
static const char *const spec_orders[ORDER_COUNT] = {[ORDER_BLOCKS] = "blocks", [ORDER_SHUFFLED] = "shuffled"};
static const char *const instance_words[INSTANCES_COUNT] = {[INSTANCES_ONCE] = "once", [INSTANCES_TWICE] = "twice"};

static const char *const workload_meanings[WORKLOAD_COUNT] = {
        [WORKLOAD_STREAM] = "one way, as fast as it goes",
        [WORKLOAD_PINGPONG] = "there and back, one message at a time",
        [WORKLOAD_SYSCALL] = "what a system call costs; nothing is moved",
        [WORKLOAD_CONTEXT_SWITCH] = "what handing the CPU to another process costs",
};
static const char *const source_meanings[SOURCE_COUNT] = {
        [SOURCE_HOT] = "one message’s memory, in the caches", [SOURCE_COLD] = "from twice the last cache, in turn"};
static const char *const verify_meanings[VERIFY_COUNT] = {[VERIFY_NONE] = "leave the bytes alone",
                                                          [VERIFY_TOUCH] = "read a byte per cache line",
                                                          [VERIFY_CHECKSUM] = "check sequence and content"};
static const char *const system_call_meanings[SYSTEM_CALL_COUNT] = {
        [SYSTEM_CALL_GETPID] = "as a system call",
        [SYSTEM_CALL_GETPID_LIBC] = "as the C library has it",
        [SYSTEM_CALL_CLOCK_GETTIME_VDSO] = "without entering the kernel, where that works",
        [SYSTEM_CALL_CLOCK_GETTIME_SYSCALL] = "as a system call",
        [SYSTEM_CALL_READ_ZERO] = "one byte of /dev/zero",
};
static const char *const placement_meanings[PLACEMENT_EXPLICIT] = {
        [PLACEMENT_DEFAULT] = "where the scheduler puts them", [PLACEMENT_SAME_CPU] = "both ends share a CPU",
        [PLACEMENT_SAME_CORE] = "two threads of a core",       [PLACEMENT_SAME_NODE] = "two CPUs of a NUMA node",
        [PLACEMENT_CROSS_NODE] = "each end on its own node",   [PLACEMENT_ALL_NODE_PAIRS] = "each NUMA node with each",
        [PLACEMENT_ALL_CPU_PAIRS] = "each CPU with each",
};

static const char *lookup(const char *const *names, size_t n, unsigned value) {
        return value < n ? names[value] : NULL;
}

int vocabulary_find(const struct vocabulary *words, const char *name) {
        for (unsigned i = 0; i < words->n; i++)
                if (strcmp(words->name(i), name) == 0)
                        return (int) i;
        return -EINVAL;
}

/* One vocabulary: its words, their names, and their meanings, if there are any. */
#define VOCABULARY(word, type, table, n, meanings)                                                                     \
        const char *word##_name(enum type v) {                                                                         \
                return lookup(table, n, (unsigned) v);                                                                 \
        }                                                                                                              \
        static const char *word##_at(unsigned i) {                                                                     \
                return lookup(table, n, i);                                                                            \
        }                                                                                                              \
        const struct vocabulary word##_words = {word##_at, n, meanings};

VOCABULARY(workload, workload, workloads, WORKLOAD_COUNT, workload_meanings)
VOCABULARY(copy_mode, copy_mode, copy_modes, COPY_COUNT, NULL)
VOCABULARY(engine, engine, engines, ENGINE_COUNT, NULL)
VOCABULARY(wait_mode, wait_mode, wait_modes, WAIT_COUNT, NULL)
VOCABULARY(source, source, sources, SOURCE_COUNT, source_meanings)
VOCABULARY(verify, verify, verifies, VERIFY_COUNT, verify_meanings)
VOCABULARY(memory_policy, memory_policy, memory_policies, MEMORY_COUNT, NULL)
VOCABULARY(system_call, system_call, system_calls, SYSTEM_CALL_COUNT, system_call_meanings)
VOCABULARY(direction, data_direction, directions, DIRECTION_COUNT, NULL)
VOCABULARY(file_sync, file_sync, file_syncs, FILE_SYNC_COUNT, NULL)
VOCABULARY(memfd_source, memfd_source, memfd_sources, MEMFD_COUNT, NULL)
VOCABULARY(spec_order, spec_order, spec_orders, ORDER_COUNT, NULL)
VOCABULARY(spec_instances, spec_instances, instance_words, INSTANCES_COUNT, NULL)

const char *placement_kind_name(enum placement_kind v) {
        return lookup(placement_kinds, PLACEMENT_COUNT, (unsigned) v);
}

/* "explicit" is shown and never read: an explicit placement is an object. */
static const char *placement_kind_at(unsigned i) {
        return lookup(placement_kinds, PLACEMENT_EXPLICIT, i);
}

const struct vocabulary placement_kind_words = {placement_kind_at, PLACEMENT_EXPLICIT, placement_meanings};

static const char *transport_at(unsigned i) {
        return i < TRANSPORT_COUNT ? transport_terms[i].name : NULL;
}

const struct vocabulary transport_words = {transport_at, TRANSPORT_COUNT, NULL};

const char *transport_name(enum transport v) {
        return transport_at((unsigned) v);
}

bool workload_has_transport(enum workload w) {
        return w == WORKLOAD_STREAM || w == WORKLOAD_PINGPONG;
}

bool point_has_copy_mode(enum workload w, enum transport t) {
        return workload_has_transport(w) && transport_terms[t].copy_modes != 0;
}

bool point_has_engine(enum workload w, enum transport t) {
        return workload_has_transport(w) && transport_terms[t].has_engine;
}

bool point_has_wait(enum workload w, enum transport t) {
        return workload_has_transport(w) && transport_terms[t].has_wait;
}

bool point_has_direction(enum workload w, enum transport t) {
        return w == WORKLOAD_STREAM && transport_terms[t].has_direction;
}

bool workload_has_processes(enum workload w) {
        return w == WORKLOAD_CONTEXT_SWITCH;
}

static const char *const roles[ROLES_COUNT][END_COUNT] = {
        [ROLES_STREAM] = {"sender", "receiver"},
        [ROLES_PINGPONG] = {"initiator", "responder"},
        [ROLES_TCP] = {"server", "client"},
};

enum role_pair role_pair_of(enum workload w, enum transport t) {
        if (!workload_has_transport(w))
                return ROLES_PINGPONG;
        if (transport_terms[t].has_roles)
                return ROLES_TCP;
        return w == WORKLOAD_STREAM ? ROLES_STREAM : ROLES_PINGPONG;
}

const char *role_pair_name(enum role_pair pair, enum end end) {
        return (unsigned) pair < ROLES_COUNT && (unsigned) end < END_COUNT ? roles[pair][end] : NULL;
}

const char *role_name(enum workload w, enum transport t, enum end end) {
        return role_pair_name(role_pair_of(w, t), end);
}

int role_from_name(const char *name, enum end *ret) {
        for (unsigned i = 0; i < ROLES_COUNT; i++)
                for (unsigned end = 0; end < END_COUNT; end++)
                        if (strcmp(roles[i][end], name) == 0) {
                                *ret = (enum end) end;
                                return 0;
                        }
        return -EINVAL;
}

unsigned workload_agents(enum workload w) {
        return workload_has_transport(w) ? 2 : 1;
}
