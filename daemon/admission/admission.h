/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ADMISSION_H
#define IPCLAB_DAEMON_ADMISSION_H

/*
 * Whether this host can do a point, asked when it is posted, so that nothing impossible is ever queued: limits of the
 * kernel and its settings (capacity.c reads them), CPUs and nodes (placement_resolve), privileges of the daemon.
 */

#include "daemon/admission/queues.h"
#include "daemon/host/topology.h"
#include "daemon/run/spawn.h"
#include "schema/refusal.h"
#include "schema/spec/spec.h"

/* What is read and tried once for all points of a submission: the host's settings, and rings that are set up to see
 * whether they can be. */
struct admission_session {
        struct hostfs h; /* keeps its readings */
        struct admission_probe {
                bool done, refused;
                char reason[200]; /* why it is refused */
        } uring, uring_zerocopy;
        struct {
                bool done, locked; /* the kernel counts them as locked memory */
        } rings;
};

/* root: "" or a captured tree. 0; -errno. */
int admission_session_init(struct admission_session *ret, const char *root);
void admission_session_deinit(struct admission_session *s);

struct capacity_space;

/* Whom and what a point is held against. */
struct admission_host {
        const char *root;                   /* "" or a captured tree */
        const char *runtime_dir;            /* where runs have their files; NULL: not told, and then no limit */
        const struct capacity_space *space; /* that transport file has there; NULL: the host is asked, which a captured
                                             * tree is not */
        const struct topology *topology;
        const struct queue_host *queues;     /* what runs can have of queues; NULL: what the host has */
        const struct agent_identity *agents; /* whom they run as; NULL: not told */
        uint64_t memlock_bytes;              /* that their sends and rings may lock; 0: not told, and then no limit */
        struct admission_session *session;   /* of the same root; NULL: each point has one of its own */
};

/* 0; -EINVAL with *r naming the limit and its value. */
int admission_check(const struct admission_host *host, const struct spec *spec, const struct point *p,
                    struct refusal *r);

/* The part of it that may have changed since, for the moment before a run: whether there is the memory. */
int admission_check_memory(const struct admission_host *host, const struct spec *spec, const struct point *p,
                           struct refusal *r);

/* Bytes of the pieces that a point's messages go in: the largest that its mechanism takes here as it comes, and that
 * RLIMIT_MSGQUEUE has room for, where the spec asks for chunks and the message is longer; else 0. Asked again for each
 * run, as settings change. 0; -ENODATA when the limit cannot be read; -ENOMEM. */
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
 * largest_transfer is what the mechanism takes in one piece; largest_message is what a spec may ask for, which for byte
 * streams is more, as they carry a message in many transfers, and for queues that a run has made larger when it needs
 * it, and for rings and files is what a stream of one thread has room for. `limit` ends both, but for such queues:
 * there it ends the message, and at_start the transfer; and but for messages that the spec itself ends, at 1 GiB: there
 * message_limit says so, and `limit` ends the transfer. engines, copy_modes, waits and options (of transport_options)
 * list what can be asked of the transport. kernel_allows is what the host says of io_uring; zero_copy, of tcp only,
 * whether its kernel has the operations that send without copying. A value above 2^53 - 1 (shmmax as it comes) is a
 * decimal string.
 */
int capacity_to_json(const struct admission_host *host, char **ret);

#endif
