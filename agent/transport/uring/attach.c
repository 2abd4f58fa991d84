/* SPDX-License-Identifier: MIT */

#include "agent/transport/uring/attach.h"

#include "agent/base/agent.h"
#include "agent/transport/uring/batch.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Registering saves the kernel a look-up per operation. Resources that cannot be registered are used unregistered,
 * which the report states. */
static void register_with_ring(struct worker *w, struct uring *u, unsigned buffers) {
        struct iovec buffer = {.iov_base = w->buffer, .iov_len = w->size};
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);
        if (u->batch && u->batch->memory)
                buffer = (struct iovec){.iov_base = u->batch->memory, .iov_len = u->batch->length};
        u->files_error = -io_uring_register_files(&u->ring, u->fds, URING_ENDS);
        if (u->files_error == 0) {
                u->fds[URING_OUT] = URING_OUT;
                u->fds[URING_IN] = URING_IN;
                u->sqe_flags = IOSQE_FIXED_FILE;
        }
        if (!u->no_buffer) {
                u->buffer_error =
                        -uring_register(w, &u->ring, &buffer, 1, buffers * ((buffer.iov_len + page - 1) / page));
                u->fixed_buffer = u->buffer_error == 0;
        }
        (void) io_uring_register_ring_fd(&u->ring); /* since 5.18; without it each call takes a descriptor's look-up */
}

int uring_attach(struct worker *w, unsigned buffers, const char *no_buffer) {
        _cleanup_free_ struct uring *u = calloc(1, sizeof *u);
        if (!u)
                return failure_set(&w->failure, ENOMEM, "no memory for a ring");
        u->no_buffer = no_buffer;
        u->fds[URING_OUT] = w->send_fd;
        u->fds[URING_IN] = w->receive_fd;
        const struct point *p = &w->agent->setup.point;
        int r = point_is_queued(p) ? uring_batch_new(w, &u->batch) : 0;
        if (r < 0)
                return r;
        r = uring_set_up(w, &u->ring, point_ring_entries(p), 0, &u->setup);
        if (r < 0) {
                u->batch = uring_batch_free(u->batch);
                return r;
        }
        register_with_ring(w, u, buffers);
        if (u->batch && !u->batch->sends) {
                w->to_settle = u;
                w->settle = uring_batch_settle;
        }
        w->engine = util_steal(&u);
        return 0;
}

void uring_detach(struct worker *w) {
        struct uring *u = w->engine;
        if (u) {
                io_uring_queue_exit(&u->ring);
                u->batch = uring_batch_free(u->batch);
        }
        free(u);
        w->engine = NULL;
}

void uring_facts_add_worker(struct uring_facts *facts, const struct worker *w) {
        const struct uring *u = w->engine;
        if (!u)
                return;
        uring_facts_add(facts, &u->setup, u->files_error,
                        u->fixed_buffer             ? NULL
                        : u->no_buffer              ? u->no_buffer
                        : u->buffer_error == ENOMEM ? "RLIMIT_MEMLOCK"
                                                    : strerrordesc_np(u->buffer_error));
        if (u->batch)
                facts->queue_depth = w->agent->setup.point.queue_depth;
}
