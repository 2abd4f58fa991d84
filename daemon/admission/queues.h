/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The settings that message queues depend on. All of them belong to an IPC namespace: where the daemon may set those of
 * a run's namespace, a run has longer messages and queues than the host allows, and the host's settings do not change.
 *
 * Each has three values: the default of a run (the kernel's, or the host's where runs have no namespace of their own),
 * the most that a run can get, and what it needs.
 */

#include "daemon/host/hostfs.h"
#include "schema/limits.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* struct msg_msg and struct posix_msg_tree_node, of 48 bytes each: what the kernel counts against RLIMIT_MSGQUEUE for
 * every message that a POSIX queue can hold, beside its bytes. */
#define QUEUES_POSIX_OVERHEAD 96u

enum queue_setting {
        QUEUE_MSGMAX,      /* bytes of a System V message */
        QUEUE_MSGMNB,      /* bytes of a System V queue */
        QUEUE_MSGMNI,      /* System V queues */
        QUEUE_MSG_DEFAULT, /* messages of a POSIX queue without a given depth */
        QUEUE_MSG_MAX,     /* messages of a POSIX queue */
        QUEUE_MSGSIZE_MAX, /* bytes of a POSIX message */
        QUEUE_QUEUES_MAX,  /* POSIX queues */
        QUEUE_SETTINGS,
};

struct queue_setting_term {
        enum host_limit id;
        const char *path;           /* below /proc/sys */
        enum transport_limit limit; /* LIMIT_MSGQ_SYSV or LIMIT_MSGQ_POSIX */
        uint64_t most;              /* that a run gets */
};

extern const struct queue_setting_term queue_setting_terms[QUEUE_SETTINGS];

/* The limits of runs' queues on this machine, filled by ipcns_probe(). */
struct queue_host {
        char trouble[200];              /* why runs have no IPC namespace of their own; "" when they have */
        bool settable;                  /* and the daemon may set what is in it */
        char set_trouble[200];          /* why not */
        uint64_t fresh[QUEUE_SETTINGS]; /* in a namespace as the kernel makes it */
        uint64_t shmmax, shmall;        /* of System V segments, bytes and pages, there; 0: not known */
        uint64_t rlimit_msgqueue;       /* bytes of all POSIX queues of one agent's user; UINT64_MAX: no limit */
};

bool queues_are_used(const struct point *p);

/* host NULL: nothing is known but the settings below h. 0; -errno of reading them. */
int queues_default(struct hostfs *h, const struct queue_host *host, enum queue_setting s, uint64_t *ret);
/* The most that a run can get; no less than the default. */
int queues_reach(struct hostfs *h, const struct queue_host *host, enum queue_setting s, uint64_t *ret);

/* The settings that a point needs; 0 for those that do not matter to it. */
void queues_need(const struct spec *spec, const struct point *p, uint64_t chunk_bytes, uint64_t ret[QUEUE_SETTINGS]);
/* The values to set in its namespace: the defaults, raised where it needs more; a POSIX queue without a given depth
 * holds no more messages than RLIMIT_MSGQUEUE has room for. All 0 where nothing is to be set, or nothing can be. 0;
 * -errno. */
int queues_plan(struct hostfs *h, const struct queue_host *host, const struct spec *spec, const struct point *p,
                uint64_t chunk_bytes, uint64_t ret[QUEUE_SETTINGS]);

/* Bytes that all queues of a point hold when they are full, and what the kernel counts against RLIMIT_MSGQUEUE. */
uint64_t queues_bytes(const uint64_t settings[QUEUE_SETTINGS], const struct spec *spec, const struct point *p,
                      uint64_t chunk_bytes);
uint64_t queues_rlimit_bytes(const uint64_t settings[QUEUE_SETTINGS], const struct spec *spec, const struct point *p,
                             uint64_t chunk_bytes);
