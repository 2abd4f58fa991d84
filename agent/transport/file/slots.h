/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The parts of transport file that its engines share: the slots of a file and the semaphores that count filled and
 * empty ones. Each engine writes and reads slots by its own calls; see file.c.
 */

#include "agent/loop/loops.h"
#include "agent/proof/pages.h"

#include <semaphore.h>
#include <stdalign.h>
#include <sys/types.h>

/* The semaphores of one direction, in memory that both ends map. Both ends write to both for every message, so one
 * shared cache line is cheaper than two. */
struct file_signals {
        alignas(WORKER_LINE) sem_t filled; /* the receiver waits for it */
        sem_t empty;                       /* the sender waits for it */
};

/* One end's state of one direction. */
struct file_way {
        struct file_signals *signals;
        off_t begin;
        uint32_t slot;
};

/* A worker's two directions; the receiver of a stream has no `out`, its sender no `in`. */
struct file_channel {
        struct file_way out, in;
        uint32_t slots;
        size_t stride; /* from one slot to the next */
};

/* Waits for a semaphore whose value is 0. 0 once it is decremented; WORKER_STOP; negative errno with w->failure. */
int file_wait(struct worker *w, sem_t *s);
/* Handles a call that moved n bytes (-1: errno), fewer than expected: 0 when the caller repeats it for the rest;
 * negative errno with w->failure. */
int file_short(struct worker *w, ssize_t n, const char *what);

LOOP_INLINE int file_take(struct worker *w, sem_t *s) {
        return sem_trywait(s) == 0 ? 0 : file_wait(w, s);
}

LOOP_INLINE off_t file_slot(const struct file_channel *c, const struct file_way *way) {
        return way->begin + (off_t) (way->slot * c->stride);
}

/* Passes the slot to the other end. The semaphore counts a few slots and cannot overflow. */
LOOP_INLINE void file_pass(const struct file_channel *c, struct file_way *way, sem_t *s) {
        way->slot = way->slot + 1 == c->slots ? 0 : way->slot + 1;
        (void) sem_post(s);
}

LOOP_INLINE int file_acquire(struct worker *w, unsigned char **ret) {
        const struct file_channel *c = w->channel;
        *ret = w->buffer;
        return file_take(w, &c->out.signals->empty);
}

/* For modes in which a message is readable as soon as it is in the page cache. */
LOOP_INLINE int file_settle_nothing(struct worker *w) {
        (void) w;
        return 0;
}

/* Defines prefix_channel_send() and prefix_channel_receive() from
 *      ssize_t put(struct worker *w, const unsigned char *data, size_t length, off_t offset)
 *      ssize_t get(struct worker *w, unsigned char *data, size_t length, off_t offset)
 *      int settle(struct worker *w)    what follows a message that is written: 0, or -1 with errno
 */
#define FILE_CHANNEL(prefix, put, get, settle)                                                                         \
        LOOP_INLINE int prefix##_send(struct worker *w, unsigned char *message) {                                      \
                struct file_channel *c = w->channel;                                                                   \
                off_t at = file_slot(c, &c->out);                                                                      \
                for (size_t done = 0; done < w->size;) {                                                               \
                        ssize_t n = put(w, message + done, w->size - done, at + (off_t) done);                         \
                        int r = LOOP_UNLIKELY(n <= 0) ? file_short(w, n, "write") : 0;                                 \
                        if (LOOP_UNLIKELY(r))                                                                          \
                                return r;                                                                              \
                        done += n > 0 ? (size_t) n : 0;                                                                \
                        if (LOOP_UNLIKELY(done < w->size))                                                             \
                                worker_count(&w->partial_sends);                                                       \
                }                                                                                                      \
                while (LOOP_UNLIKELY(settle(w) < 0)) {                                                                 \
                        int r = file_short(w, -1, "fsync");                                                            \
                        if (r)                                                                                         \
                                return r;                                                                              \
                }                                                                                                      \
                file_pass(c, &c->out, &c->out.signals->filled);                                                        \
                return 0;                                                                                              \
        }                                                                                                              \
        LOOP_INLINE int prefix##_receive(struct worker *w, unsigned char **ret) {                                      \
                struct file_channel *c = w->channel;                                                                   \
                int r = file_take(w, &c->in.signals->filled);                                                          \
                if (LOOP_UNLIKELY(r))                                                                                  \
                        return r;                                                                                      \
                off_t at = file_slot(c, &c->in);                                                                       \
                *ret = w->buffer;                                                                                      \
                for (size_t done = 0; done < w->size;) {                                                               \
                        ssize_t n = get(w, w->buffer + done, w->size - done, at + (off_t) done);                       \
                        r = LOOP_UNLIKELY(n <= 0) ? file_short(w, n, "read") : 0;                                      \
                        if (LOOP_UNLIKELY(r))                                                                          \
                                return r;                                                                              \
                        done += n > 0 ? (size_t) n : 0;                                                                \
                        if (LOOP_UNLIKELY(done < w->size))                                                             \
                                worker_count(&w->partial_receives);                                                    \
                }                                                                                                      \
                file_pass(c, &c->in, &c->in.signals->empty);                                                           \
                return 0;                                                                                              \
        }                                                                                                              \
        static const struct channel prefix##_channel = {                                                               \
                .acquire = file_acquire,                                                                               \
                .send = prefix##_send,                                                                                 \
                .receive = prefix##_receive,                                                                           \
                .release = loop_release_nothing,                                                                       \
        };                                                                                                             \
        TRANSPORT_LOOPS(prefix, prefix##_channel)

/* The time that file_open() waits for the other end. */
uint64_t file_opening_ns(const struct agent *a);

/* Parts of struct transport_ops, the same for every engine. */
int file_open(struct agent *a);
void file_detach(struct worker *w);
void file_close(struct agent *a);
void file_effective(const struct agent *a, struct effective *e);
int file_pages(const struct agent *a, struct page_list *list);
