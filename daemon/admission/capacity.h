/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads the largest transfer and message of each transport on this host, and the setting that limits them. It sets
 * nothing: admission refuses messages that do not fit, GET /transports shows the limits (capacity_to_json() in
 * daemon/admission/admission.h).
 *
 * The two figures differ. A transfer is the most that the mechanism takes in one piece: a queue's longest message, a
 * full pipe, a segment. A message is the most that a spec may request: byte streams carry it in many transfers, queues
 * and datagrams in one; memory and files have slots for more than one message each, and there it is the longest message
 * of a stream of one thread with default options.
 */

#include "daemon/admission/queues.h"
#include "daemon/host/hostfs.h"
#include "daemon/run/spawn/spawn.h"
#include "schema/refusal.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* Memory of a thread beside its buffers: its stack's touched pages, its histogram and its samples. */
#define CAPACITY_THREAD_BYTES (UINT64_C(256) * 1024)

#define CAPACITY_LIMIT_MAX 96u
#define CAPACITY_CGROUP_MAX 400u
#define CAPACITY_REASON_MAX 200u
#define CAPACITY_PTRACE_SCOPE_MAX 1 /* of kernel.yama.ptrace_scope, for transports that reach into their peer */

/* Available memory. */
struct capacity_memory {
        uint64_t bytes;
        char limit[CAPACITY_LIMIT_MAX]; /* that bytes come from */
        const char *raise;              /* how a person raises it; static */
};

struct capacity {
        bool known;
        char reason[160];                           /* why not known */
        uint64_t largest_transfer, largest_message; /* bytes */
        char limit[CAPACITY_LIMIT_MAX];             /* the setting's name: "kernel.msgmax" */
        uint64_t value;                             /* its current value; for most the same as largest_transfer */
        uint64_t reach; /* largest_transfer of runs that have the setting raised for them; 0: it cannot be */
        const char *reach_limit;
        uint64_t reach_value;    /* the value of that limit */
        const char *reach_raise; /* how a person raises that; static */
        const char *raise;       /* how a person raises it; static */
        bool by_memory;          /* largest_message is limited by none of these but memory */
        struct capacity_memory memory;
};

/* A file system. */
struct capacity_space {
        uint64_t free_bytes;
        bool in_memory; /* a tmpfs */
};

struct capacity_question {
        enum transport transport;
        const struct transport_options *options; /* NULL: none; "sndbuf" decides how long a datagram is */
        const char *runtime_dir;                 /* where runs have their files; NULL: not known */
        const struct queue_host *queues;         /* the limits of runs' queues; NULL: the host's */
        const struct capacity_space *space;      /* that it lies in; NULL: read from the host, unless its tree is a
                                                  * captured one */
};

/* 0; -ENOMEM. A limit that cannot be read is no error: `known` is false then. */
int capacity_read(struct hostfs *h, const struct capacity_question *q, struct capacity *ret);

/* The least of the host's available memory and of the rest of each limit of the cgroup and those above it. -ENOENT:
 * neither is known; other errno of reading /proc/meminfo. */
int capacity_memory(struct hostfs *h, struct capacity_memory *ret);

/* The part of it that runs may use. A sixteenth stays free for the daemon, its answers and the host's other programs,
 * as the kernel kills a process when the last page is taken. */
#define CAPACITY_RESERVE 16u
static inline uint64_t capacity_usable(const struct capacity_memory *m) {
        return m->bytes - m->bytes / CAPACITY_RESERVE;
}

/* The cgroup (v2) of the daemon, which that of each run is below of, by its path below /sys/fs/cgroup, "" for the root.
 * false: it has none that can be seen. And the one above it; false: there is none. */
bool capacity_cgroup(struct hostfs *h, char ret_path[CAPACITY_CGROUP_MAX]);
bool capacity_cgroup_above(char path[CAPACITY_CGROUP_MAX]);

/* For a transport that has slots for messages (rings, files): the longest message of a stream of one thread whose
 * default number of slots fits into `bytes`; 0: none. */
uint64_t capacity_largest_in_slots(enum transport t, uint64_t bytes);

/* Whether files in the runtime directory are in memory, where their pages count. false where that is not known. */
bool capacity_file_is_in_memory(const struct hostfs *h, const struct capacity_question *q);

/* Why this host cannot have the transport at all, in ret_reason[CAPACITY_REASON_MAX] or static; or NULL. */
const char *capacity_unavailable(struct hostfs *h, const struct capacity_question *q, char *ret_reason);

/* Whether programs without privilege may use io_uring here. A real set-up is tried on this machine; of a captured tree
 * only the settings are known. agents: their user, as a setting may permit it to one group; NULL: not known. Returns
 * NULL when they may; else why not, in ret_reason[CAPACITY_REASON_MAX]. */
const char *capacity_io_uring(struct hostfs *h, const struct agent_identity *agents, char *ret_reason);

/* The same for sends over tcp that do not copy, which only newer kernels have: their operations are probed. */
const char *capacity_io_uring_zerocopy(struct hostfs *h, const struct agent_identity *agents, char *ret_reason);
/* The same from the kernel's list of its operations; NULL: it gives none. */
struct io_uring_probe;
const char *capacity_zerocopy_of(const struct io_uring_probe *probe, char *ret_reason);

/* Whether the kernel counts rings themselves against RLIMIT_MEMLOCK: those before 5.12 did, and newer ones do again.
 * false where that cannot be found out: of a captured tree (root is not ""), and with CAP_IPC_LOCK. Only while the
 * process has one thread: for a moment its limit is 0. */
bool capacity_rings_are_locked(const char *root);

/* A message of that size: 0, or -EINVAL with *r naming the limit. A limit that is not known refuses nothing. Not
 * for those that have slots: how many, options decide (rings.c, check_file_space()). */
int capacity_check_message(struct hostfs *h, const struct capacity_question *q, uint64_t message_size,
                           struct refusal *r);
