/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The agent's use of io_uring: all calls of liburing are here, except those of batches (batch.h), sends without copying
 * (zerocopy.h) and multishot receives (tcp/multishot.h), whose rings are set up here, too. Each worker has a ring of
 * its own; each call below puts one operation into it, submits it and waits for its completion in one system call, and
 * returns the result of the system call of the same name: a count, or -1 with errno. So a message is still one
 * operation, in order, and parts and errors are handled alike in both engines.
 *
 * A signal ends a wait, not the operation. When the worker's loop is over the operation is cancelled, and the call
 * returns only after its completion, with any result: the operation cannot write to the buffer afterwards.
 *
 * Source: man 7 io_uring, man 2 io_uring_enter, man 3 io_uring_submit_and_wait, man 3 io_uring_register_iowq_aff.
 */

#include "agent/loop/loops.h"

#include <liburing.h>

enum uring_end { URING_OUT, URING_IN, URING_ENDS };

/* The kernel's settings of a new ring. */
struct uring_setup {
        const char *flags; /* static */
        int workers_error; /* errno of restricting its own threads to this thread's CPUs; 0: they are */
};

struct uring {
        struct io_uring ring;
        int fds[URING_ENDS]; /* descriptors; or indices of registered ones, with sqe_flags */
        uint8_t sqe_flags;
        bool fixed_buffer;     /* w->buffer is registered */
        const char *no_buffer; /* why it is not registered: no operation would use it; static */
        int buffer_error;      /* errno of registering it */
        int files_error;       /* errno of registering the descriptors */
        struct uring_setup setup;
        struct uring_batch *batch; /* of a queue depth of more than one (batch.h); NULL: messages go one by one */
};

#define URING_CANCEL_ID 1u /* user_data of a cancellation; that of an operation is 0, of a batch's more than this */

/* A result's facts on the rings of all threads: a feature counts only where all rings have it. To be initialized with
 * zeros. */
struct uring_facts {
        unsigned rings;
        uint32_t queue_depth; /* the greatest; 0 is 1 */
        struct uring_setup setup;
        int files_error;            /* errno of registering descriptors; 0: they are */
        const char *buffers_reason; /* why memory is not registered; NULL: it is */
};

/* Sets up this thread's ring for `entries` operations at a time, including a cancellation. The kernel's own threads for
 * it (iou-wrk-TID) are restricted to this thread's CPUs. completions: the most that may be unread at a time; 0: a few.
 * 0; negative errno with w->failure. */
int uring_set_up(struct worker *w, struct io_uring *ring, unsigned entries, unsigned completions,
                 struct uring_setup *ret);
/* Registers memory with the ring, `pages` pages for each thread of both agents: either every thread registers its own,
 * or none does, where RLIMIT_MEMLOCK has no room for that of all and their rings. 0; -ENOMEM in the latter case; other
 * negative errno. */
int uring_register(const struct worker *w, struct io_uring *ring, const struct iovec *memory, unsigned n,
                   uint64_t pages);
/* Adds a ring. The first ring's flags, and the first reason of each kind, apply to all. */
void uring_facts_add(struct uring_facts *facts, const struct uring_setup *setup, int files_error,
                     const char *buffers_reason);
/* Adds the group: queue depth, flags, registration, and whether the kernel's threads are restricted. Nothing where
 * no ring exists. */
void uring_put(struct effective *e, enum setting group, const struct uring_facts *facts);

/* Submits the entry, and waits for its completion: a call of its own, which is nothing beside the system call. Returns
 * what the system call of that name would: a count, or -1 with errno. */
ssize_t uring_run(struct worker *w, struct uring *u, struct io_uring_sqe *sqe);

/* An entry of the ring's queue. One is always free, as an operation completes before the next. */
LOOP_INLINE struct io_uring_sqe *uring_entry(struct uring *u) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        if (LOOP_UNLIKELY(!sqe))
                abort();
        return sqe;
}

/* offset: in a file; URING_STREAM for descriptors without offsets. */
#define URING_STREAM ((uint64_t) -1)

LOOP_INLINE ssize_t uring_write(struct worker *w, const void *data, size_t length, uint64_t offset) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        if (u->fixed_buffer)
                io_uring_prep_write_fixed(sqe, u->fds[URING_OUT], data, (unsigned) length, offset, 0);
        else
                io_uring_prep_write(sqe, u->fds[URING_OUT], data, (unsigned) length, offset);
        return uring_run(w, u, sqe);
}

LOOP_INLINE ssize_t uring_read(struct worker *w, void *data, size_t length, uint64_t offset) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        if (u->fixed_buffer)
                io_uring_prep_read_fixed(sqe, u->fds[URING_IN], data, (unsigned) length, offset, 0);
        else
                io_uring_prep_read(sqe, u->fds[URING_IN], data, (unsigned) length, offset);
        return uring_run(w, u, sqe);
}

LOOP_INLINE ssize_t uring_writev(struct worker *w, const struct iovec *iov, unsigned n) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_writev(sqe, u->fds[URING_OUT], iov, n, URING_STREAM);
        return uring_run(w, u, sqe);
}

LOOP_INLINE ssize_t uring_send(struct worker *w, const void *data, size_t length, int flags) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_send(sqe, u->fds[URING_OUT], data, length, flags);
        return uring_run(w, u, sqe);
}

LOOP_INLINE ssize_t uring_sendmsg(struct worker *w, const struct msghdr *m, unsigned flags) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_sendmsg(sqe, u->fds[URING_OUT], m, flags);
        return uring_run(w, u, sqe);
}

LOOP_INLINE ssize_t uring_receive(struct worker *w, void *data, size_t length, int flags) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_recv(sqe, u->fds[URING_IN], data, length, flags);
        return uring_run(w, u, sqe);
}

LOOP_INLINE int uring_fsync(struct worker *w) {
        struct uring *u = w->engine;
        struct io_uring_sqe *sqe = uring_entry(u);
        io_uring_prep_fsync(sqe, u->fds[URING_OUT], 0);
        return (int) uring_run(w, u, sqe);
}
