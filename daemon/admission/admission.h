/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Checks a posted point against this host, so that no impossible one is ever queued: limits of the
 * kernel and its settings (capacity.c reads them), CPUs and nodes (placement_resolve), privileges of the daemon.
 */

#include "daemon/admission/capacity.h"
#include "daemon/host/topology.h"

/* Readings and probes that one submission needs once for all of its points: the host's settings, and rings that are set
 * up to see whether they can be. */
struct admission_session {
        struct hostfs h; /* keeps its readings */
        struct admission_probe {
                bool done, refused;
                char reason[CAPACITY_REASON_MAX]; /* why it is refused */
        } uring, uring_zerocopy;
};

/* root: "" or a captured tree. 0; -errno. */
int admission_session_init(struct admission_session *ret, const char *root);
void admission_session_deinit(struct admission_session *s);

/* The host that a point is checked against. */
struct admission_host {
        const char *root;                   /* "" or a captured tree */
        const char *runtime_dir;            /* where runs have their files; NULL: not known, no limit */
        const struct capacity_space *space; /* that transport file has there; NULL: read from the host, unless its tree
                                             * is a captured one */
        const struct topology *topology;
        const struct queue_host *queues;     /* the limits of runs' queues; NULL: the host's */
        const struct agent_identity *agents; /* the user of the agents; NULL: not known */
        uint64_t memlock_bytes;              /* that their sends and rings may lock; 0: not known, no limit */
        bool rings_are_locked;               /* capacity_rings_are_locked(); false: not known, too */
        struct admission_session *session;   /* of the same root; NULL: each point has one of its own */
};

/* 0; -EINVAL with *r naming the limit and its value. */
int admission_check(const struct admission_host *host, const struct spec *spec, const struct point *p,
                    struct refusal *r);

/* Checks the memory again, which may have changed since: called right before a run. */
int admission_check_memory(const struct admission_host *host, const struct spec *spec, const struct point *p,
                           struct refusal *r);

/* Bytes of the pieces that a point's messages are sent in: the largest that its mechanism takes here by default, and
 * that RLIMIT_MSGQUEUE has room for, where the spec has `chunk` and the message is longer; else 0. Called again for
 * each run, as settings change. 0; -ENODATA when the limit cannot be read; -ENOMEM. */
int admission_chunk_bytes(const struct admission_host *host, const struct spec *spec, const struct point *p,
                          uint64_t *ret);

/*
 * GET /transports, malloc()ed:
 *
 *      {"items": [{"name", "title", "available", "reason", "workloads": […],
 *                  "engines": {"syscall": {"available", "reason"},
 *                              "io_uring": {"available", "reason", "kernel_allows", "kernel_reason",
 *                                           "zero_copy", "zero_copy_reason"}},
 *                  "copy_modes": […], "waits": […], "options": […], "message_bound",
 *                  "capacity": {"largest_message", "largest_transfer", "limit": {"name", "value", "raise"},
 *                               "at_start": likewise or null, "message_limit": likewise or null, "reason"}}],
 *       "next": null}
 *
 * largest_transfer is the most that the mechanism takes in one piece. largest_message is the most that a spec may
 * request: more for byte streams, which carry a message in many transfers, and for queues that are made larger for a
 * run that needs it; for rings and files it is the room of a stream of one thread. `limit` limits both, with two
 * exceptions: for such queues it limits the message, and at_start the transfer; for messages that the spec itself
 * limits, at 1 GiB, message_limit is set and `limit` limits the transfer. engines, copy_modes, waits and options (of
 * transport_options) list the valid values for the transport. kernel_allows is whether the host permits io_uring;
 * zero_copy, of tcp only, whether its kernel has the operations that send without copying. A value above 2^53 - 1 (the
 * default of shmmax) is a decimal string.
 */
int capacity_to_json(const struct admission_host *host, char **ret);
