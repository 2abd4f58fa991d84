/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages that io_uring sends without copying them, from a pool as in zerocopy.h: by sendmsg_zc bytes in several
 * fields, by send_zc bytes, or a rest, in one. The ring is separate from that of uring.h: a send has two completions,
 * the second of which, the notification that the kernel is done with the bytes, arrives at any later time and must not
 * be confused with that of another operation. A failed send may have a notification too, which IORING_CQE_F_MORE
 * announces; it is awaited, and counts neither as a send nor as notified.
 *
 * The pool's messages are registered with the ring where RLIMIT_MEMLOCK has room for those of all threads; but kernels
 * support registered memory in several pieces only since 6.15. Else the kernel looks up the pages for each send, and
 * the report has the reason.
 *
 * Source: man 3 io_uring_prep_sendmsg_zc, io_uring_prep_send_zc; Linux io_uring/net.c (io_sendmsg_zc),
 * io_uring/notif.c.
 */

#include "agent/base/worker.h"
#include "agent/transport/tcp/zerocopy.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct uring_facts;
struct uring_zerocopy;

/* In the worker's thread, for sends to w->send_fd; the pool must outlive it. ends: how many of the two agents send in
 * this way. 0; negative errno with w->failure. */
int uring_zerocopy_new(struct worker *w, struct zerocopy *z, unsigned ends, struct uring_zerocopy **ret);
struct uring_zerocopy *uring_zerocopy_free(struct uring_zerocopy *u);

/* Sends the current message from byte `sent` on, as sendmsg(2) or send(2). Counts the notifications that arrived
 * meanwhile. */
ssize_t uring_zerocopy_send(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, size_t sent, int flags);
/* As the functions of the same names in tcp/zerocopy.h. */
int uring_zerocopy_wait(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z);
int uring_zerocopy_collect(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z);
int uring_zerocopy_reap(struct worker *w, struct uring_zerocopy *u, struct zerocopy *z, uint64_t *since_ns);

/* Returns a descriptor to poll for notifications. */
int uring_zerocopy_fd(const struct uring_zerocopy *u);
/* Adds it (uring_facts_add()); the buffers are the pool's messages. */
void uring_zerocopy_facts(const struct uring_zerocopy *u, struct uring_facts *facts);
