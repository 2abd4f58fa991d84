/* SPDX-License-Identifier: MIT */
#pragma once

/* Shared by the parts of admission. Each check returns 0, -EINVAL with the refusal filled, or -ENOMEM. */

#include "daemon/admission/capacity.h"
#include "daemon/placement/placement.h"
#include "schema/limits.h"
#include "schema/transport/ring-layout.h"

#define ADMISSION_UNLIMITED UINT64_MAX

/* One point under examination: the admission context. */
struct admission {
        struct hostfs *h;
        const char *runtime_dir;
        const struct capacity_space *space;
        const struct queue_host *queues;
        const struct agent_identity *agents;
        uint64_t memlock_bytes;
        bool rings_are_locked;
        struct admission_session *session;
        const struct topology *t;
        const struct spec *spec;
        const struct point *p;
        struct transport_options options; /* those of the spec that apply to the point */
        struct refusal *r;
};

/* "WHY: VALUE needed, LIMIT is LIMIT_VALUE". */
int admission_refuse(const struct admission *a, const char *pointer, const char *limit, uint64_t limit_value,
                     uint64_t value, const char *why);
/* The same for a limit that has a row, with how to raise it. */
int admission_refuse_limit(const struct admission *a, const char *pointer, enum host_limit limit, uint64_t have,
                           uint64_t need, const char *why);
/* admission_chunk_bytes() with the host's tree open. */
int chunk_bytes_on(struct hostfs *h, const struct capacity_question *q, const struct spec *spec, const struct point *p,
                   uint64_t *ret);
/* limits.c: checks what a point needs against what the host has, as numbers. */
int check_limits(struct admission *a);
/* Threads and processes of all agents. */
uint64_t admission_tasks(const struct point *p);
/* The size of a pipe as the kernel rounds it. */
uint64_t admission_pipe_bytes(uint64_t bytes);
/* A number of /proc/sys; ADMISSION_UNLIMITED where there is none. */
uint64_t admission_setting(struct admission *a, const char *path);

/* options.c: transport_options against the host's settings. */
int check_congestion(struct admission *a);
int check_file_sync(struct admission *a);
int check_file_space(struct admission *a);
/* Bytes of the slots for messages (file-layout.h) that this end makes in memory. */
uint64_t admission_slot_bytes(const struct admission *a, unsigned e);

/* rings.c: bytes of shared memory that all rings take together; 0: the point has none, *ret is not filled. */
uint64_t admission_ring_bytes(struct admission *a, struct ring_layout *ret);
int check_rings(struct admission *a);

/* message-queues.c: checks message queues against the limits of a run's IPC namespace. */
int check_queues(struct admission *a);
uint64_t admission_queue_bytes(struct admission *a); /* of all queues when they are full */
/* Bytes of the longest messages that all queues of the point together may have by RLIMIT_MSGQUEUE, each as few of them
 * as it can be made for; 0: there is room for none. */
uint64_t admission_queue_room(struct hostfs *h, const struct queue_host *host, const struct spec *spec,
                              const struct point *p);

/* spin.c: whether an end that spins has a CPU that its peer has not. */
int check_spin(struct admission *a, const struct run_placement *placement);
