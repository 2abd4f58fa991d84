/* SPDX-License-Identifier: MIT */

/* The ring, its buffers, and the wait for the next bytes; see multishot.h. The receiving worker owns them. */

#include "agent/transport/tcp/multishot.h"

#include "agent/loop/buffer.h"
#include "agent/proof/pages.h"
#include "agent/transport/tcp/loops.h"
#include "schema/protocol/effective.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BUFFERS SPEC_MULTISHOT_BUFFERS
#define BUFFER_BYTES SPEC_MULTISHOT_BUFFER_BYTES
#define COMPLETIONS (2 * BUFFERS) /* one for each buffer, and one that reports that none is free */
#define GROUP 0

_Static_assert((BUFFERS & (BUFFERS - 1)) == 0, "the kernel takes powers of two alone");

static void give_back(struct tcp_multishot *u, unsigned short id) {
        io_uring_buf_ring_add(u->buffers, u->memory + (size_t) id * BUFFER_BYTES, BUFFER_BYTES, id,
                              io_uring_buf_ring_mask(BUFFERS), 0);
        io_uring_buf_ring_advance(u->buffers, 1);
}

/* Prepares the receive, which the next system call submits. An entry is always free, as nothing else is submitted. */
static void arm(struct tcp_multishot *u) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
        if (!sqe)
                abort();
        io_uring_prep_recv_multishot(sqe, u->fd, NULL, 0, 0);
        sqe->flags |= IOSQE_BUFFER_SELECT | u->sqe_flags;
        sqe->buf_group = GROUP;
        u->armed = true;
}

/* The kernel completes an unsupported request at once. 0, or its errno. */
static int arm_first(struct tcp_multishot *u) {
        struct io_uring_cqe *cqe;
        arm(u);
        int r = io_uring_submit(&u->ring);
        if (r < 0)
                return r;
        return io_uring_peek_cqe(&u->ring, &cqe) == 0 && cqe->res == -EINVAL ? -EOPNOTSUPP : 0;
}

/* 0; the kernel's errno. */
static int share_buffers(struct tcp_multishot *u) {
        struct io_uring_buf_reg reg = {.ring_entries = BUFFERS, .bgid = GROUP};
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        struct io_uring_buf_ring *buffers = aligned_alloc(page, page);
        if (!buffers)
                return -ENOMEM;
        memset(buffers, 0, page);
        reg.ring_addr = (uintptr_t) buffers;
        int r = io_uring_register_buf_ring(&u->ring, &reg, 0);
        if (r < 0) {
                free(buffers);
                return r;
        }
        u->buffers = buffers;
        for (unsigned short i = 0; i < BUFFERS; i++)
                give_back(u, i);
        return 0;
}

static void register_descriptors(struct tcp_multishot *u) {
        u->files_error = -io_uring_register_files(&u->ring, &u->fd, 1);
        if (u->files_error == 0) {
                u->fd = 0;
                u->sqe_flags = IOSQE_FIXED_FILE;
        }
        (void) io_uring_register_ring_fd(&u->ring); /* since 5.18; without it each call takes a descriptor's look-up */
}

int tcp_multishot_new(struct worker *w, struct tcp_multishot **ret, const char **ret_reason) {
        struct tcp_multishot *u = calloc(1, sizeof *u);
        if (!u)
                return failure_set(&w->failure, ENOMEM, "no memory for a ring");
        u->fd = w->receive_fd;
        int r = uring_set_up(w, &u->ring, SPEC_RING_ENTRIES, COMPLETIONS, &u->setup);
        if (r < 0) {
                free(u);
                return r;
        }
        r = buffer_map(w, (size_t) BUFFERS * BUFFER_BYTES, &u->memory);
        if (r < 0) {
                (void) tcp_multishot_free(u);
                return r;
        }
        r = share_buffers(u);
        if (r == 0) {
                register_descriptors(u);
                r = arm_first(u);
        }
        *ret = r == 0 ? u : tcp_multishot_free(u);
        if (r < 0)
                *ret_reason = r == -EOPNOTSUPP ? "this kernel has no multishot receive (since 6.0)"
                              : r == -EINVAL   ? "this kernel has no rings of buffers (since 5.19)"
                                               : strerrordesc_np(-r);
        return 0;
}

/* Once its buffers are unregistered the operation can write to no memory, however long its cancellation takes. */
struct tcp_multishot *tcp_multishot_free(struct tcp_multishot *u) {
        if (!u)
                return NULL;
        if (u->buffers)
                (void) io_uring_unregister_buf_ring(&u->ring, GROUP);
        io_uring_queue_exit(&u->ring);
        free(u->buffers);
        buffer_unmap(u->memory, (size_t) BUFFERS * BUFFER_BYTES);
        free(u);
        return NULL;
}

/* Waits for a completion. 0; WORKER_STOP; negative errno with w->failure. */
static int await_completion(struct worker *w, struct tcp_multishot *u, size_t got, struct io_uring_cqe **ret) {
        while (io_uring_peek_cqe(&u->ring, ret) != 0) {
                if (!u->armed)
                        arm(u);
                int r = io_uring_submit_and_wait(&u->ring, 1);
                if (io_uring_peek_cqe(&u->ring, ret) == 0)
                        return 0;
                if (r < 0 && r != -EINTR && r != -EAGAIN && r != -EBUSY)
                        return failure_set(&w->failure, -r, "io_uring_enter in thread %" PRIu32 ": %s", w->index,
                                           strerrordesc_np(-r));
                if (r == -EINTR || r > 0) /* the same call has submitted an operation */
                        worker_count(&w->eintr);
                if (got == 0 && worker_over(w))
                        return WORKER_STOP;
        }
        return 0;
}

/* Takes the next buffer, after `got` bytes of a message. A completion without a buffer is no error: when it is read,
 * all bytes before it have been consumed, and their buffers are returned. */
static int next_buffer(struct worker *w, struct tcp_multishot *u, size_t got) {
        struct io_uring_cqe *cqe;
        if (u->holds)
                give_back(u, u->id);
        u->holds = false;
        for (;;) {
                int r = await_completion(w, u, got, &cqe);
                if (r)
                        return r;
                int n = cqe->res;
                unsigned flags = cqe->flags;
                io_uring_cqe_seen(&u->ring, cqe);
                u->armed = flags & IORING_CQE_F_MORE;
                if (n > 0) {
                        u->holds = true;
                        u->id = (unsigned short) (flags >> IORING_CQE_BUFFER_SHIFT);
                        u->at = u->memory + (size_t) u->id * BUFFER_BYTES;
                        u->left = (size_t) n;
                        return 0;
                }
                if (n == 0)
                        return tcp_part_ended(w, got);
                if (n == -ENOBUFS)
                        u->dry++;
                else if ((r = tcp_part_failed(w, "recv", w->messages, n)) < 0)
                        return r;
        }
}

int tcp_multishot_await(struct worker *w, struct tcp_multishot *u, unsigned char **ret) {
        for (size_t got = 0;;) {
                if (u->left == 0) {
                        int r = next_buffer(w, u, got);
                        if (r)
                                return r;
                }
                if (got == 0 && u->left >= w->size)
                        return tcp_multishot_receive(w, u, ret);
                size_t n = u->left < w->size - got ? u->left : w->size - got;
                memcpy(w->buffer + got, u->at, n);
                u->at += n;
                u->left -= n;
                got += n;
                if (got == w->size) {
                        *ret = w->buffer;
                        return 0;
                }
                worker_count(&w->partial_receives);
        }
}

void tcp_multishot_facts(const struct tcp_multishot *u, struct uring_facts *facts) {
        uring_facts_add(facts, &u->setup, u->files_error, "a multishot receive takes the buffers of a ring");
}

void tcp_multishot_effective(struct effective *e) {
        effective_add_number(e, SETTING_RECEIVE_BUFFERS, BUFFERS);
        effective_add_number(e, SETTING_RECEIVE_BUFFER_BYTES, BUFFER_BYTES);
}

int tcp_multishot_pages(const struct tcp_multishot *u, uint32_t thread, struct page_list *list) {
        return page_list_add(list, PAGES_BUFFER, thread, u->memory, (size_t) BUFFERS * BUFFER_BYTES);
}
