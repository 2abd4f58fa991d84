/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The closed vocabularies of ipclab: every word that a spec, the protocol or a result may use, with what each
 * transport can do. Plain data; no room keeps a second list.
 */

#include "schema/transport/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum workload { WORKLOAD_STREAM, WORKLOAD_PINGPONG, WORKLOAD_SYSCALL, WORKLOAD_CONTEXT_SWITCH, WORKLOAD_COUNT };

enum copy_mode { COPY_TWO, COPY_ONE, COPY_ZERO, COPY_COUNT };
enum engine { ENGINE_SYSCALL, ENGINE_IO_URING, ENGINE_COUNT };
enum wait_mode { WAIT_BLOCK, WAIT_SPIN, WAIT_HYBRID, WAIT_COUNT };
/* Where a sender's bytes come from: one message's memory, or many messages' that no cache holds. */
enum source { SOURCE_HOT, SOURCE_COLD, SOURCE_COUNT };
enum verify { VERIFY_NONE, VERIFY_TOUCH, VERIFY_CHECKSUM, VERIFY_COUNT };

/* The call that `workload: syscall` measures. */
enum system_call {
        SYSTEM_CALL_GETPID,             /* syscall(SYS_getpid): into the kernel each time */
        SYSTEM_CALL_GETPID_LIBC,        /* getpid() as the C library has it, cached or not */
        SYSTEM_CALL_CLOCK_GETTIME_VDSO, /* clock_gettime(CLOCK_MONOTONIC), without a system call where the vDSO can */
        SYSTEM_CALL_CLOCK_GETTIME_SYSCALL, /* the same by syscall(SYS_clock_gettime) */
        SYSTEM_CALL_READ_ZERO,             /* read() of one byte from /dev/zero */
        SYSTEM_CALL_COUNT,
};
/* Which way a stream over tcp goes: from server to client, the other way, or both at once. */
enum data_direction { DIRECTION_DOWN, DIRECTION_UP, DIRECTION_BOTH, DIRECTION_COUNT };
/* How a message that is written to a plain file reaches its reader. */
enum file_sync { FILE_SYNC_PAGE_CACHE, FILE_SYNC_DIRECT, FILE_SYNC_FSYNC, FILE_SYNC_COUNT };
/* The source of the memory of a message over memfd. */
enum memfd_source { MEMFD_FRESH, MEMFD_POOL, MEMFD_COUNT };
/* The order of an experiment's runs. */
enum spec_order { ORDER_BLOCKS, ORDER_SHUFFLED, ORDER_COUNT };
enum spec_instances { INSTANCES_ONCE, INSTANCES_TWICE, INSTANCES_COUNT };
/* A setting that a spec need not mention. */
enum toggle { TOGGLE_UNSET, TOGGLE_ON, TOGGLE_OFF };

/* Numbered as the kernel's modes, MPOL_DEFAULT to MPOL_LOCAL: man 2 set_mempolicy. */
enum memory_policy { MEMORY_DEFAULT, MEMORY_PREFERRED, MEMORY_BIND, MEMORY_INTERLEAVE, MEMORY_LOCAL, MEMORY_COUNT };
enum placement_kind {
        PLACEMENT_DEFAULT,
        PLACEMENT_SAME_CPU,
        PLACEMENT_SAME_CORE,
        PLACEMENT_SAME_NODE,
        PLACEMENT_CROSS_NODE,
        PLACEMENT_ALL_NODE_PAIRS, /* these two stand for many explicit ones, and for no point: spec_expand_pairs() */
        PLACEMENT_ALL_CPU_PAIRS,
        PLACEMENT_EXPLICIT, /* an object per role; has no word of its own */
        PLACEMENT_COUNT,
};

/* The two ends of a run. Every role maps to one of them: first = sender, initiator, server; second = receiver,
 * responder, client. */
enum end { END_FIRST, END_SECOND, END_COUNT };

/* The words of an enum: name(i) for i below n, NULL beyond. */
struct vocabulary {
        const char *(*name)(unsigned i);
        unsigned n;
        const char *const *meanings; /* of each in a few words, for a form; NULL: the field's description has them */
};

extern const struct vocabulary workload_words, transport_words, copy_mode_words, engine_words, wait_mode_words,
        verify_words, memory_policy_words, system_call_words, direction_words, file_sync_words, memfd_source_words,
        spec_order_words, spec_instances_words, source_words;
extern const struct vocabulary placement_kind_words; /* without "explicit" */

/* The value that a word stands for; -EINVAL: it is none of these. */
int vocabulary_find(const struct vocabulary *words, const char *name);

/* Names; a value out of range is a programming error and gives NULL. */
const char *workload_name(enum workload v);
const char *transport_name(enum transport v);
const char *copy_mode_name(enum copy_mode v);
const char *engine_name(enum engine v);
const char *wait_mode_name(enum wait_mode v);
const char *source_name(enum source v);
const char *verify_name(enum verify v);
const char *memory_policy_name(enum memory_policy v);
const char *placement_kind_name(enum placement_kind v); /* "explicit" for PLACEMENT_EXPLICIT */
const char *system_call_name(enum system_call v);
const char *direction_name(enum data_direction v);
const char *file_sync_name(enum file_sync v);
const char *memfd_source_name(enum memfd_source v);
const char *spec_order_name(enum spec_order v);
const char *spec_instances_name(enum spec_instances v);

/* What a latency is of, by workload; NULL behind the last. */
extern const char *const latency_kinds[WORKLOAD_COUNT + 1];

/* Which fields of a point mean something for this workload over this transport; of the others see schema/spec/axes.c.
 */
bool workload_has_transport(enum workload w); /* and with it message_size and threads */
bool point_has_copy_mode(enum workload w, enum transport t);
bool point_has_engine(enum workload w, enum transport t);
bool point_has_wait(enum workload w, enum transport t);
bool point_has_direction(enum workload w, enum transport t);
bool workload_has_processes(enum workload w); /* and with them working_set */

/* The role words come in pairs, one for each end. */
enum role_pair {
        ROLES_STREAM,   /* sender, receiver */
        ROLES_PINGPONG, /* initiator, responder; the one agent of a workload without a transport is an initiator */
        ROLES_TCP,      /* server, client */
        ROLES_COUNT,
        ROLES_ANY = ROLES_COUNT, /* of a placement that came out of "all-cpu-pairs": it fits every workload */
};
enum role_pair role_pair_of(enum workload w, enum transport t);
const char *role_pair_name(enum role_pair pair, enum end end);

/* role_pair_name() of the pair that this workload over this transport has. */
const char *role_name(enum workload w, enum transport t, enum end end);
/* Which end a role word names; 0 or -EINVAL. */
int role_from_name(const char *name, enum end *ret);
/* How many agents a run of this workload has: 2, or 1 (syscall, context-switch). */
unsigned workload_agents(enum workload w);
