/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Messages that a socket sends without copying them (MSG_ZEROCOPY): a pool of them, used in turn, and the account of
 * the kernel's outstanding notifications. The kernel uses a message's bytes until every send of a part of it has been
 * notified; only then is the message reused.
 *
 * The kernel numbers the sends of a socket from 0 (those that took at least a byte) and notifies ranges of numbers,
 * several sends at a time where it can, through the socket's error queue. Each range reports whether the bytes were
 * copied after all (SO_EE_CODE_ZEROCOPY_COPIED): on loopback they always are.
 *
 * The pages of messages under way are pinned, and RLIMIT_MEMLOCK bounds those of all of a user's threads together. A
 * thread that has none under way and gets no buffers can only wait for the others' notifications: it sets backpressure,
 * and the others pause, else they would reuse the freed buffers before it can. A deadline limits this.
 *
 * Source: Linux Documentation/networking/msg_zerocopy.rst; net/core/skbuff.c (msg_zerocopy_realloc,
 * mm_account_pinned_pages).
 */

#include "agent/loop/fields.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct effective;
struct worker;

#define ZEROCOPY_IDS 1024u /* the most sends without notification; a power of two */
#define ZEROCOPY_NOBODY 0xffu

struct zerocopy {
        uint32_t n; /* messages in the pool */
        uint32_t current;
        uint32_t next_id;                         /* number of the next send */
        uint64_t checked_ns;                      /* time of the last zerocopy_is_stalled() */
        uint32_t pending[SPEC_POOL_MESSAGES_MAX]; /* each message's sends that are not notified */
        struct fields *messages[SPEC_POOL_MESSAGES_MAX];
        uint8_t owner[ZEROCOPY_IDS]; /* message of send number i (modulo); ZEROCOPY_NOBODY: notified */
};

/* The contents of notifications. */
struct zerocopy_news {
        uint32_t completions; /* sends */
        uint32_t copied;      /* of these */
};

/* Makes a pool for messages of `size` bytes in n_fields fields, which the caller's thread touches first. 0; -ENOMEM;
 * -EINVAL. */
int zerocopy_new(struct worker *w, size_t size, unsigned n_fields, struct zerocopy **ret);
struct zerocopy *zerocopy_free(struct zerocopy *z);

/* Whether the account has room for the next send. */
static inline bool zerocopy_has_room(const struct zerocopy *z) {
        return z->owner[z->next_id % ZEROCOPY_IDS] == ZEROCOPY_NOBODY;
}

/* Whether the sender may write and send the current message. */
static inline bool zerocopy_ready(const struct zerocopy *z) {
        return z->pending[z->current] == 0 && zerocopy_has_room(z);
}

/* Accounts for a send that took bytes of the current message; there must be room. */
void zerocopy_sent(struct zerocopy *z);

/* Advances to the next message, after the whole current message was sent. */
static inline void zerocopy_advance(struct zerocopy *z) {
        z->current = z->current + 1 == z->n ? 0 : z->current + 1;
}

/* Accounts for the notification of sends low … high (inclusive, modulo 2^32). 0; -EPROTO when one of them was not
 * due. */
int zerocopy_notified(struct zerocopy *z, uint32_t low, uint32_t high);

/* The condition of a wait: zerocopy_ready or zerocopy_has_room. Each reading of the error queue is a system call, so a
 * wait avoids the one that finds it empty. */
typedef bool (*zerocopy_enough)(const struct zerocopy *z);

/* Reads notifications until `enough` holds, or (NULL) all that are available. 0, also when there were too few; -EPROTO;
 * the errno of recvmsg or of a notification. */
int zerocopy_read(struct zerocopy *z, int fd, zerocopy_enough enough, struct zerocopy_news *ret);

/*
 * In the worker's thread, for its socket w->send_fd; notifications are counted in w. 0; WORKER_STOP when worker_over()
 * came true before a message has begun; negative errno with w->failure.
 */
int zerocopy_wait(struct worker *w, struct zerocopy *z, bool begun); /* until ready; for a message begun: until room */
/* zerocopy_read(); pauses under backpressure when the current message has become ready. */
int zerocopy_collect(struct worker *w, struct zerocopy *z, zerocopy_enough enough);
/* After a send that failed with ENOBUFS: reaps notifications, or waits for other threads to do so, and fails with the
 * names of the limits once sends have stalled for too long. The caller stores *since_ns, and sets it to 0 after a
 * successful send. */
int zerocopy_reap(struct worker *w, struct zerocopy *z, uint64_t *since_ns);

/* The parts of this that both engines share. */
#define ZEROCOPY_RETRY_NS NSEC_PER_MSEC              /* between two tries */
#define ZEROCOPY_GIVE_WAY_NS (2 * ZEROCOPY_RETRY_NS) /* so that a waiting thread retries once in this time */
#define ZEROCOPY_NO_BUFFERS_NS (3 * NSEC_PER_SEC)    /* without a notification in between: sends have stalled */
#define ZEROCOPY_AWAY_NS (100 * NSEC_PER_MSEC) /* between two checks: after a longer time this thread did not run */

/* Whether no notification has arrived for too long; news: one has just arrived. Time in which this thread did not run
 * does not count, as the other threads may not have run either. */
bool zerocopy_is_stalled(struct zerocopy *z, uint64_t *since_ns, bool news);

/* The number of sends that are not notified. */
uint32_t zerocopy_under_way(const struct zerocopy *z);
/* Counts the threads without sends under way that wait for the others' buffers: 1 begins, -1 ends a wait. */
void zerocopy_add_backpressure(int by);
bool zerocopy_has_backpressure(void);
/* Returns -ENOBUFS with w->failure, which has the limits by name and value; optmem_max only for sends that it
 * limits. */
int zerocopy_fail_stalled(struct worker *w, const struct zerocopy *z, bool optmem);
/* Adds the rows memlock_bytes and (optmem) optmem_max_bytes, the limits behind "enobufs". */
void zerocopy_limits(bool optmem, struct effective *e);
