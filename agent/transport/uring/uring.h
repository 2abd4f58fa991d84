/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_URING_H
#define IPCLAB_AGENT_URING_H

/*
 * io_uring as the agent uses it: what knows liburing is here, but for sends without copying (uring-zerocopy.h), which
 * have their ring from here, too. Each worker has a ring of its own; each call
 * below puts one operation into it, submits it and waits for its completion in one system call, and answers as the
 * system call of the same name would: a count, or -1 with errno. So a message is still one operation, in order, and
 * what is done about parts and errors is the same for both engines.
 *
 * A signal ends a wait, not the operation. When the worker has nothing more to do the operation is cancelled, and only
 * when its completion is there, whatever it says, is the call over: nothing of it can touch the buffer afterwards.
 *
 * Source: man 7 io_uring, man 2 io_uring_enter, man 3 io_uring_submit_and_wait, man 3 io_uring_register_iowq_aff.
 */

#include "agent/loop/loops.h"

#include <liburing.h>

enum uring_end { URING_OUT, URING_IN, URING_ENDS };

/* What the kernel made of a new ring. */
struct uring_setup {
        const char *flags; /* static */
        int workers_error; /* why its own threads are not kept to this thread's CPUs; 0: they are */
};

struct uring {
        struct io_uring ring;
        int fds[URING_ENDS]; /* descriptors; or indices of registered ones, with sqe_flags */
        uint8_t sqe_flags;
        bool fixed_buffer;     /* w->buffer is registered */
        const char *no_buffer; /* why it is not to be: no operation would use it; static */
        int buffer_error;      /* why it could not be */
        int files_error;       /* why the descriptors are not */
        struct uring_setup setup;
};

/* What a result says of the rings of all threads: what only some have, none has. To be begun with zeros. */
struct uring_facts {
        unsigned rings;
        struct uring_setup setup;
        int files_error;            /* why descriptors are not registered; 0: they are */
        const char *buffers_reason; /* why memory is not; NULL: it is */
};

/* A ring for one operation at a time, and its cancellation, of this thread. What the kernel does for it in threads of
 * its own (iou-wrk-TID) stays on the CPUs that this one may be on. completions: how many there may be before they are
 * looked at; 0: a few. 0; negative errno with w->failure. */
int uring_set_up(struct worker *w, struct io_uring *ring, unsigned completions, struct uring_setup *ret);
/* Memory for the ring, of which each thread of both agents has `pages` pages in all: registered by every thread where
 * there is room for that of all of them and for their rings, else by none. 0; -ENOMEM when RLIMIT_MEMLOCK has not;
 * other negative errno. */
int uring_register(const struct worker *w, struct io_uring *ring, const struct iovec *memory, unsigned n,
                   uint64_t pages);
/* One ring more. The first one's flags, and the first reason of each kind, stand for all. */
void uring_facts_add(struct uring_facts *facts, const struct uring_setup *setup, int files_error,
                     const char *buffers_reason);
/* The same of the ring that this worker has by uring_attach(), if it has one. */
void uring_facts_add_worker(struct uring_facts *facts, const struct worker *w);
/* Member `key`: queue depth, flags, what is registered, and whether the kernel's threads stay. Nothing where there are
 * no rings.
 */
void uring_put(struct json_writer *w, const char *key, const struct uring_facts *facts);

/* In the worker's thread, which alone may use the ring: for w->send_fd, w->receive_fd and w->buffer. Fills w->engine.
 * buffers: how many ends register theirs, as uring_write() or uring_read() move it, which alone can use registered
 * memory. no_buffer: NULL where this one is among them; else why it is not, a static text. 0; negative errno with
 * w->failure. */
int uring_attach(struct worker *w, unsigned buffers, const char *no_buffer);
void uring_detach(struct worker *w);

/* The completion of the operation under way did not come with the system call that submitted it. */
int uring_await(struct worker *w, struct uring *u, int submitted);

/* An entry of the ring's queue. There always is one: an operation is over before the next. */
LOOP_INLINE struct io_uring_sqe *uring_entry(struct uring *u) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        if (LOOP_UNLIKELY(!sqe))
                abort();
        return sqe;
}

LOOP_INLINE ssize_t uring_run(struct worker *w, struct uring *u, struct io_uring_sqe *sqe) {
        struct io_uring_cqe *cqe = NULL;
        int result;

        sqe->flags |= u->sqe_flags;
        sqe->user_data = 0;
        int r = io_uring_submit_and_wait(&u->ring, 1);
        if (LOOP_UNLIKELY(r != 1 || io_uring_peek_cqe(&u->ring, &cqe) != 0)) {
                result = uring_await(w, u, r);
        } else {
                result = cqe->res;
                io_uring_cqe_seen(&u->ring, cqe);
        }
        if (LOOP_UNLIKELY(result < 0)) {
                errno = -result;
                return -1;
        }
        return result;
}

/* offset: of a file; URING_STREAM for what has none. */
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

#endif
