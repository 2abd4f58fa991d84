/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_CAPACITY_H
#define IPCLAB_DAEMON_CAPACITY_H

/*
 * What each transport can take on this host, and which setting decides it. Reads, and never sets: admission refuses
 * what does not fit, GET /transports shows it (capacity_to_json() in daemon/admission/admission.h).
 *
 * Two figures are kept apart. A transfer is what the mechanism takes in one piece: a queue's longest message, a full
 * pipe, a segment. A message is what a spec may ask for: byte streams carry it in many transfers, queues and datagrams
 * in one, and memory and files have slots for more than one message each: there it is what a stream of one thread can
 * have as the options come.
 */

#include "daemon/admission/queues.h"
#include "daemon/host/hostfs.h"
#include "daemon/run/spawn.h"
#include "schema/refusal.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* Beside the buffers a thread costs its stack's touched pages, its histogram and its samples. */
#define CAPACITY_THREAD_BYTES (UINT64_C(256) * 1024)

#define CAPACITY_LIMIT_MAX 96u
#define CAPACITY_CGROUP_MAX 400u
#define CAPACITY_REASON_MAX 200u
#define CAPACITY_PTRACE_SCOPE_MAX 1 /* of kernel.yama.ptrace_scope, for transports that reach into their peer */

/* What may be had of memory. */
struct capacity_memory {
        uint64_t bytes;
        char limit[CAPACITY_LIMIT_MAX]; /* what decides */
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
        uint64_t reach_value;    /* what ends that */
        const char *reach_raise; /* how a person raises that; static */
        const char *raise;       /* how a person raises it; static */
        bool by_memory;          /* what ends largest_message is none of these but memory */
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
        const char *runtime_dir;                 /* where runs have their files; NULL: not told */
        const struct queue_host *queues;         /* what runs can have of queues; NULL: what the host has */
        const struct capacity_space *space;      /* that it lies in; NULL: the host is asked, which a captured tree is
                                                  * not */
};

/* 0; -errno only when nothing could be looked at (memory). */
int capacity_read(struct hostfs *h, const struct capacity_question *q, struct capacity *ret);

/* What the host has available, and what the cgroup and those above it leave of theirs: the least. -ENOENT: nobody
 * tells; other errno of reading /proc/meminfo. */
int capacity_memory(struct hostfs *h, struct capacity_memory *ret);

/* The cgroup (v2) of the daemon, which that of each run is below of, by its path below /sys/fs/cgroup, "" for the root.
 * false: it has none that can be seen. And the one above it; false: there is none. */
bool capacity_cgroup(struct hostfs *h, char ret_path[CAPACITY_CGROUP_MAX]);
bool capacity_cgroup_above(char path[CAPACITY_CGROUP_MAX]);

/* Of a transport that has slots for messages (rings, files): the longest message of a stream of one thread whose slots,
 * as many as come by default, fit into so many bytes; 0: none. */
uint64_t capacity_largest_in_slots(enum transport t, uint64_t bytes);

/* Whether files in the runtime directory are in memory, where their pages count. false where nobody tells. */
bool capacity_file_is_in_memory(const struct hostfs *h, const struct capacity_question *q);

/* Why this host cannot have the transport at all, in ret_reason[CAPACITY_REASON_MAX] or static; or NULL. */
const char *capacity_unavailable(struct hostfs *h, const struct capacity_question *q, char *ret_reason);

/* Whether programs without privilege may use io_uring here. A real set-up is tried on this machine; of a captured tree
 * only the settings are known. agents: whom they run as, as a setting may let one group have it; NULL: not told. NULL
 * when they may; else why not, in ret_reason[200]. */
const char *capacity_io_uring(struct hostfs *h, const struct agent_identity *agents, char *ret_reason);

/* The same for sends over tcp that do not copy, which younger kernels have only: their operations are asked for. */
const char *capacity_io_uring_zerocopy(struct hostfs *h, const struct agent_identity *agents, char *ret_reason);
/* By the kernel's list of its operations; NULL: there is none. */
struct io_uring_probe;
const char *capacity_zerocopy_of(const struct io_uring_probe *probe, char *ret_reason);

/* Whether the kernel counts rings themselves against RLIMIT_MEMLOCK: those before 5.12 did, and newer ones do again.
 * false where that cannot be found out: of a captured tree, and with CAP_IPC_LOCK. Main thread: for a moment the limit
 * is 0. */
bool capacity_rings_are_locked(struct hostfs *h);

/* A message of so many bytes: 0, or -EINVAL with *r naming the limit. A limit that is not known refuses nothing. Not
 * for those that have slots: how many, options decide (admission-rings.c, check_file_space()). */
int capacity_check_message(struct hostfs *h, const struct capacity_question *q, uint64_t message_size,
                           struct refusal *r);

#endif
