/* SPDX-License-Identifier: MIT */

/* The rows of every message; see wire.h. A field that is added to a message is a row here and nothing else; an axis or
 * an option of a transport needs none. */

#include "schema/protocol/wire.h"

#include "schema/util.h"

#include <string.h>

#define AT(member) offsetof(struct message, member)
/* 0 if the member has the stated size; else the row does not compile. */
#define SIZED(member, bytes) (0 * sizeof(char[sizeof(((struct message *) NULL)->member) == (bytes) ? 1 : -1]))
#define U32(member, least, most)                                                                                       \
        { #member, WIRE_U32, AT(member) + SIZED(member, 4), least, most }
#define ENUM(member, count) U32(member, 0, (count) -1)
#define U64(member)                                                                                                    \
        { #member, WIRE_U64, AT(member) + SIZED(member, 8), 0, UINT64_MAX }
#define KIND(kind, member)                                                                                             \
        { #member, WIRE_##kind, AT(member), 0, 0 }
#define MOST(kind, member, most)                                                                                       \
        { #member, WIRE_##kind, AT(member), 0, most }

static const struct wire_field hello[] = {U32(hello.pid, 1, INT32_MAX)};

static const struct wire_field setup[] = {
        ENUM(setup.end, END_COUNT),
        KIND(POINT, setup.point),
        ENUM(setup.verify, VERIFY_COUNT),
        U64(setup.duration_ns),
        U64(setup.messages),
        U64(setup.messages_over),
        U64(setup.warmup_ns),
        U64(setup.interval_ns),
        U64(setup.stall_ns),
        KIND(RATE, setup.rate),
        U64(setup.chunk_bytes),
        KIND(OPTIONS, setup.options),
        MOST(CPUS, setup.placement.cpus, AGENT_CPUS_MAX),
        KIND(BOOL, setup.placement.roam),
        MOST(CPUS, setup.placement.leader_cpus, AGENT_CPUS_MAX),
        ENUM(setup.placement.memory, MEMORY_COUNT),
        KIND(NODES, setup.placement.memory_nodes),
        ENUM(setup.placement.buffer, MEMORY_COUNT),
        KIND(NODES, setup.placement.buffer_nodes),
        KIND(BOOL, setup.probes),
        KIND(BOOL, setup.stamp),
        KIND(BOOL, setup.fresh),
};
_Static_assert(offsetof(struct agent_placement, n_cpus) == offsetof(struct agent_placement, cpus) + sizeof(int32_t *) &&
                       offsetof(struct agent_placement, n_leader_cpus) ==
                               offsetof(struct agent_placement, leader_cpus) + sizeof(int32_t *),
               "WIRE_CPUS: the number stands behind the pointer");

static const struct wire_field count[] = {U32(count.tid, 1, INT32_MAX)};

#define COUNTING(event)                                                                                                \
        U32(counting.errors[event][PERF_USER], 0, ERRNO_MAX), U32(counting.errors[event][PERF_KERNEL], 0, ERRNO_MAX)
static const struct wire_field counting[] = {
        COUNTING(PERF_CYCLES),     COUNTING(PERF_INSTRUCTIONS), COUNTING(PERF_L1D_READ_MISSES),
        COUNTING(PERF_LLC_MISSES), COUNTING(PERF_DTLB_MISSES),  COUNTING(PERF_BRANCH_MISSES),
};
_Static_assert(ELEMENTS(counting) == PERF_HANDLES_MAX, "a row per event and mode");

static const struct wire_field probe[] = {
        U32(probe.cpu, 0, INT32_MAX),
        U32(probe.moved, 0, 1),
        U64(probe.work_ns),
        U64(probe.cpu_ns),
        U64(probe.cost_ns),
        KIND(SERIES, probe.series[PROBE_GETPID]),
        KIND(SERIES, probe.series[PROBE_MEMCPY]),
        KIND(SERIES, probe.series[PROBE_HAND_OVER]),
        KIND(SERIES, probe.series[PROBE_WAKE_UP]),
        U32(probe.offset.absence, 0, PROBE_ABSENCE_COUNT - 1),
        U64(probe.offset.low_ns),
        U64(probe.offset.high_ns),
        U32(probe.thread, 0, PROBE_OTHERS_MAX),
};
_Static_assert(PROBE_KIND_COUNT == 4, "a row per kind");

static const struct wire_field ready[] = {KIND(PROOF, ready.proof), KIND(EFFECTIVE, ready.effective)};

static const struct wire_field start[] = {U64(start.start_ns)};

static const struct wire_field alive[] = {U32(alive.phase, PHASE_WARMUP, PHASE_COUNT - 1)};

#define USAGE(member)                                                                                                  \
        { #member, WIRE_U64, AT(member) + SIZED(member, 8), 0, USAGE_COUNT_MAX }
#define BOTH_MODES(member) KIND(COUNT, member[PERF_USER]), KIND(COUNT, member[PERF_KERNEL])
#define COUNTERS(of)                                                                                                   \
        USAGE(of.usage.partial_sends), USAGE(of.usage.partial_receives), USAGE(of.usage.eagain),                       \
                USAGE(of.usage.eintr), USAGE(of.usage.zerocopy_sends), USAGE(of.usage.zerocopy_completions),           \
                USAGE(of.usage.zerocopy_copied), USAGE(of.usage.enobufs), USAGE(of.usage.voluntary_switches),          \
                USAGE(of.usage.involuntary_switches), USAGE(of.usage.minor_faults), USAGE(of.usage.major_faults),      \
                USAGE(of.usage.cpu_ns), USAGE(of.usage.user_ticks), USAGE(of.usage.system_ticks),                      \
                USAGE(of.usage.migrations), USAGE(of.usage.ring_ns), U32(of.usage.migrations_error, 0, ERRNO_MAX),     \
                KIND(BOOL, of.usage.zerocopy), KIND(BOOL, of.usage.parts_unseen),                                      \
                BOTH_MODES(of.perf.counts[PERF_CYCLES]), BOTH_MODES(of.perf.counts[PERF_INSTRUCTIONS]),                \
                BOTH_MODES(of.perf.counts[PERF_L1D_READ_MISSES]), BOTH_MODES(of.perf.counts[PERF_LLC_MISSES]),         \
                BOTH_MODES(of.perf.counts[PERF_DTLB_MISSES]), BOTH_MODES(of.perf.counts[PERF_BRANCH_MISSES]),          \
                U32(of.perf.threads, 0, UINT32_MAX)
_Static_assert(PERF_EVENT_COUNT == 6 && offsetof(struct usage, migrations_error) == 17 * sizeof(uint64_t),
               "COUNTERS has a row for each");

static const struct wire_field parts[] = {
        U64(parts.begin_ns),
        ENUM(parts.sent_again.known, SENT_AGAIN_COUNT),
        USAGE(parts.sent_again.segments),
        USAGE(parts.sent_again.spurious),
        USAGE(parts.sent_again.timeouts),
        MOST(PARTS, parts, MESSAGE_PARTS_MAX),
};

static const struct wire_field sample[] = {
        U32(sample.thread, 0, SPEC_THREADS_MAX - 1),
        U32(sample.second, 0, UINT32_MAX),
        U64(sample.begin_ns),
        U64(sample.interval_ns),
        U64(sample.messages),
        U64(sample.bytes),
        COUNTERS(sample.counters),
        KIND(LATENCY, sample),
};

static const struct wire_field thread[] = {
        U32(thread.thread, 0, SPEC_THREADS_MAX - 1),
        U64(thread.messages),
        U64(thread.bytes),
        COUNTERS(thread.counters),
};

static const struct wire_field report[] = {
        U64(report.window_ns),
        U64(report.messages),
        U64(report.bytes),
        KIND(PROOF, report.proof),
        KIND(EFFECTIVE, report.effective),
        COUNTERS(report.counters),
        U64(report.clock.cost_ns),
        U64(report.clock.quantum_ns),
};

static const struct wire_field error[] = {
        ENUM(error.fault, FAULT_PEER + 1),
        U32(error.error, 0, ERRNO_MAX),
        MOST(CHARS, error.detail, sizeof(((struct message_error *) NULL)->detail)),
};

#define LAYOUT(type, name) [type] = {#name, name, ELEMENTS(name)}
static const struct wire_layout layouts[] = {
        LAYOUT(MESSAGE_HELLO, hello),       LAYOUT(MESSAGE_SETUP, setup),   LAYOUT(MESSAGE_COUNT, count),
        LAYOUT(MESSAGE_COUNTING, counting), LAYOUT(MESSAGE_PROBE, probe),   LAYOUT(MESSAGE_READY, ready),
        LAYOUT(MESSAGE_START, start),       LAYOUT(MESSAGE_ALIVE, alive),   LAYOUT(MESSAGE_PARTS, parts),
        LAYOUT(MESSAGE_SAMPLE, sample),     LAYOUT(MESSAGE_THREAD, thread), LAYOUT(MESSAGE_REPORT, report),
        LAYOUT(MESSAGE_ERROR, error),
};

const struct wire_layout *wire_layout_of(enum message_type type) {
        return (unsigned) type < ELEMENTS(layouts) ? &layouts[type] : NULL;
}

const char *message_type_name(enum message_type type) {
        const struct wire_layout *l = wire_layout_of(type);
        return l ? l->name : NULL;
}

const char *phase_name(enum phase phase) {
        static const char *const names[PHASE_COUNT] = {[PHASE_SETUP] = "set-up",
                                                       [PHASE_WARMUP] = "warmup",
                                                       [PHASE_WINDOW] = "window",
                                                       [PHASE_DRAINING] = "draining"};
        return (unsigned) phase < PHASE_COUNT ? names[phase] : NULL;
}

void message_deinit(struct message *m) {
        const struct wire_layout *l = wire_layout_of(m->type);
        for (size_t i = 0; l && i < l->n; i++) {
                const struct wire_field *f = &l->fields[i];
                void *member = (char *) m + f->offset;
                if (f->kind == WIRE_CPUS)
                        free(*(int32_t **) member);
                if (f->kind == WIRE_EFFECTIVE)
                        free(*(struct effective **) member);
                if (f->kind == WIRE_PROOF)
                        proof_report_free(*(struct proof_report **) member);
                if (f->kind == WIRE_LATENCY) {
                        free(m->sample.latency);
                        free(m->sample.latency_v2);
                }
        }
        memset(m, 0, sizeof(*m));
}
