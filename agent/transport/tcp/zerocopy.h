/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_ZEROCOPY_H
#define IPCLAB_AGENT_ZEROCOPY_H

/*
 * Messages that a socket sends without copying them (MSG_ZEROCOPY): a pool of them, used in turn, and the account of
 * which of the kernel's notifications are still due. A message's bytes are the kernel's until every send that took
 * part of it has been notified; only then is it given out again.
 *
 * The kernel numbers the sends of a socket from 0 (those that took at least a byte) and notifies ranges of numbers,
 * several sends at a time where it can, through the socket's error queue. Each range says whether the bytes were copied
 * after all (SO_EE_CODE_ZEROCOPY_COPIED): on loopback they always are.
 *
 * The pages of messages under way are pinned, and RLIMIT_MEMLOCK bounds those of all of a user's threads together. A
 * thread that has none under way and gets no buffers has nothing to wait for but the others: it says so, and these give
 * way, else they would take what they get back before it can. That goes on until a deadline.
 *
 * Source: Linux Documentation/networking/msg_zerocopy.rst; net/core/skbuff.c (msg_zerocopy_realloc,
 * mm_account_pinned_pages).
 */

#include "agent/loop/fields.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stdint.h>

struct json_writer;
struct worker;

#define ZEROCOPY_IDS 1024u /* sends that may await their notification at once; a power of two */
#define ZEROCOPY_NOBODY 0xffu

struct zerocopy {
        uint32_t n; /* messages in the pool */
        uint32_t current;
        uint32_t next_id;                         /* number of the next send */
        uint64_t looked_ns;                       /* when relief was last looked for */
        uint32_t pending[SPEC_POOL_MESSAGES_MAX]; /* sends of each message that are not notified */
        struct fields *messages[SPEC_POOL_MESSAGES_MAX];
        uint8_t owner[ZEROCOPY_IDS]; /* whose send number i (modulo) was; ZEROCOPY_NOBODY: notified */
};

/* What a notification amounts to. */
struct zerocopy_news {
        uint32_t completions; /* sends */
        uint32_t copied;      /* of these */
};

/* A pool for messages of `size` bytes in n_fields fields, first touched by the caller. 0; -ENOMEM; -EINVAL. */
int zerocopy_new(struct worker *w, size_t size, unsigned n_fields, struct zerocopy **ret);
struct zerocopy *zerocopy_free(struct zerocopy *z);

/* Whether the next send can be accounted for. */
static inline bool zerocopy_has_room(const struct zerocopy *z) {
        return z->owner[z->next_id % ZEROCOPY_IDS] == ZEROCOPY_NOBODY;
}

/* Whether the current message is the sender's to write and to send. */
static inline bool zerocopy_ready(const struct zerocopy *z) {
        return z->pending[z->current] == 0 && zerocopy_has_room(z);
}

/* A send took bytes of the current message; there must be room. */
void zerocopy_sent(struct zerocopy *z);

/* The whole current message has been sent: on to the next one. */
static inline void zerocopy_advance(struct zerocopy *z) {
        z->current = z->current + 1 == z->n ? 0 : z->current + 1;
}

/* Sends low … high (inclusive, modulo 2^32) are notified. 0; -EPROTO when one of them was not due. */
int zerocopy_notified(struct zerocopy *z, uint32_t low, uint32_t high);

/* What is waited for: zerocopy_ready, zerocopy_has_room. Each reading of the error queue is a system call, and the one
 * that finds it empty is one too many. */
typedef bool (*zerocopy_enough)(const struct zerocopy *z);

/* Reads notifications until there are `enough`, or (NULL) all that are there. 0, also when there were too few; -EPROTO;
 * the errno of recvmsg or of a notification. */
int zerocopy_read(struct zerocopy *z, int fd, zerocopy_enough enough, struct zerocopy_news *ret);

/*
 * In the worker's thread, for its socket w->send_fd; notifications are counted in w. 0; WORKER_STOP when worker_over()
 * came true before a message has begun; negative errno with w->failure.
 */
int zerocopy_wait(struct worker *w, struct zerocopy *z, bool begun); /* until ready; of a message begun: until room */
/* zerocopy_read(); gives way when the current message has become ready. */
int zerocopy_collect(struct worker *w, struct zerocopy *z, zerocopy_enough enough);
/* After a send that failed with ENOBUFS: waits for notifications, or for other threads', at most until the limits that
 * are to blame (they are named) have been in the way for too long. since_ns: 0 at the first failure in a row, kept by
 * the caller. */
int zerocopy_relieve(struct worker *w, struct zerocopy *z, uint64_t *since_ns);

/* What both engines have of that. */
#define ZEROCOPY_RELIEF_NS NSEC_PER_MSEC              /* between two tries */
#define ZEROCOPY_GIVE_WAY_NS (2 * ZEROCOPY_RELIEF_NS) /* so that who waits tries once, whenever it began */
#define ZEROCOPY_NO_BUFFERS_NS (3 * NSEC_PER_SEC)     /* without a notification in between: it never gets better */
#define ZEROCOPY_AWAY_NS (100 * NSEC_PER_MSEC)        /* between two looks: by more, and this thread did not run */

/* A look for relief, with or without news. Whether there has been none for too long, in time that there was: where the
 * machine stands still nobody gives anything back. */
bool zerocopy_is_hopeless(struct zerocopy *z, uint64_t *since_ns, bool news);

/* Sends that are not notified. */
uint32_t zerocopy_under_way(const struct zerocopy *z);
/* A thread with none under way begins (1), ends (-1) a wait for the others. */
void zerocopy_starve(int by);
bool zerocopy_somebody_starves(void);
/* -ENOBUFS with w->failure: the limits by name and value; optmem_max only of sends that it bounds. */
int zerocopy_no_relief(struct worker *w, const struct zerocopy *z, bool optmem);
/* Members "memlock_bytes" and (optmem) "optmem_max_bytes": what "enobufs" is to be read with. */
void zerocopy_limits(bool optmem, struct json_writer *w);

#endif
