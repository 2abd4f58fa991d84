/* SPDX-License-Identifier: MIT */

/*
 * Pipe sizes (man 7 pipe, man 2 fcntl) and the three ways to send a message into a pipe, for pipe.c and fifo.c; the
 * receiver uses read(2) in all of them.
 *
 *      two-copy   write     into the kernel, and out of it
 *      one-copy   writev    the same, without packing the message's fields together first
 *      zero-copy  vmsplice  only out of the kernel
 */

#include "agent/transport/stream/pipes.h"

#include "agent/base/agent.h"
#include "agent/loop/fields.h"
#include "agent/transport/stream/descriptor.h"
#include "agent/transport/stream/splice.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

int pipes_set_size(struct agent *a, int fd) {
        uint64_t size = a->setup.options.pipe_size;
        if (size == 0)
                return 0;
        if (size > INT32_MAX)
                return failure_set(&a->failure, EINVAL, "pipe_size %" PRIu64 " is beyond what F_SETPIPE_SZ takes (%d)",
                                   size, INT32_MAX);
        if (fcntl(fd, F_SETPIPE_SZ, (int) size) >= 0)
                return 0;
        switch (errno) {
        case EPERM:
                return failure_set(&a->failure, EPERM,
                                   "pipe_size %" PRIu64
                                   " is not allowed: above fs.pipe-max-size without CAP_SYS_RESOURCE, or "
                                   "this user's pipes exceed fs.pipe-user-pages-soft",
                                   size);
        case EBUSY:
                return failure_set(&a->failure, EBUSY, "pipe_size %" PRIu64 ": the pipe holds more already", size);
        default:
                return failure_set(&a->failure, errno, "pipe_size %" PRIu64 ": %s", size, strerrordesc_np(errno));
        }
}

LOOP_INLINE ssize_t pipe_writev(const struct worker *w, const struct iovec *iov, unsigned n) {
        return syscall(SYS_writev, w->send_fd, iov, n);
}

STREAM_LOOPS(pipe, descriptor_write, "write", pipe_writev, "writev", descriptor_read, "read");

static ssize_t vmsplice_again(struct worker *w, const unsigned char *message, size_t sent) {
        struct iovec rest = {.iov_base = (void *) (uintptr_t) (message + sent), .iov_len = w->size - sent};
        return syscall(SYS_vmsplice, w->send_fd, &rest, 1, 0);
}

LOOP_INLINE int acquire_spliced(struct worker *w, unsigned char **ret) {
        *ret = splice_pool_buffer(w->channel);
        return 0;
}

LOOP_INLINE int vmsplice_send(struct worker *w, unsigned char *message) {
        ssize_t n = vmsplice_again(w, message, 0);
        if (LOOP_UNLIKELY(n != (ssize_t) w->size)) {
                int r = descriptor_finish_send(w, message, n, vmsplice_again, "vmsplice");
                if (r)
                        return r;
        }
        splice_pool_advance(w->channel);
        return 0;
}

static const struct channel vmsplice_channel = {
        .acquire = acquire_spliced,
        .send = vmsplice_send,
        .receive = pipe_receive,
        .release = loop_release_nothing,
};
TRANSPORT_LOOPS(vmsplice, vmsplice_channel);

static const struct {
        const struct transport_loops *loops;
        const char *method;
} modes[COPY_COUNT] = {
        [COPY_TWO] = {&pipe_loops, "write"},
        [COPY_ONE] = {&pipe_gathered_loops, "writev"},
        [COPY_ZERO] = {&vmsplice_loops, "vmsplice"},
};

const struct transport_loops *pipes_loops(const struct agent *a) {
        return modes[a->setup.point.copy_mode].loops;
}

/* A receiver sends nothing and needs no memory for sending. */
int pipes_attach(struct worker *w) {
        const struct point *p = &w->agent->setup.point;
        struct fields *fields = NULL;
        struct splice_pool *pool = NULL;
        int r = 0;

        if (w->send_fd < 0)
                return 0;
        if (p->copy_mode == COPY_ONE) {
                r = fields_new(w, w->size, p->fields, &fields);
                w->channel = fields;
        } else if (p->copy_mode == COPY_ZERO) {
                r = splice_pool_new(w, w->size, w->send_fd, &pool);
                w->channel = pool;
        }
        if (r < 0)
                return failure_set(&w->failure, -r, "no buffers for %s of thread %" PRIu32 ": %s",
                                   modes[p->copy_mode].method, w->index, strerrordesc_np(-r));
        return 0;
}

void pipes_detach(struct worker *w) {
        enum copy_mode mode = w->agent->setup.point.copy_mode;
        if (mode == COPY_ONE)
                (void) fields_free(w->channel);
        if (mode == COPY_ZERO)
                (void) splice_pool_free(w->channel);
        w->channel = NULL;
}

int pipes_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                const struct worker *w = &a->workers[i];
                const struct fields *f = w->channel;
                const struct splice_pool *p = w->channel;
                if (!w->channel)
                        continue;
                r = a->setup.point.copy_mode == COPY_ONE
                            ? page_list_add(list, PAGES_BUFFER, i, f->memory, f->length)
                            : page_list_add(list, PAGES_BUFFER, i, p->memory, p->count * p->stride);
        }
        return r;
}

static void widen(int fd, int *least, int *most) {
        int size = fd >= 0 ? fcntl(fd, F_GETPIPE_SZ) : -1;
        if (size < 0)
                return;
        if (*least < 0 || size < *least)
                *least = size;
        if (size > *most)
                *most = size;
}

static void put_sending(const struct agent *a, struct effective *e) {
        enum copy_mode mode = a->setup.point.copy_mode;
        const struct worker *first = &a->workers[0];

        if (first->send_fd < 0)
                return;
        effective_add_text(e, SETTING_SEND_METHOD, modes[mode].method);
        if (mode == COPY_ONE) {
                const struct fields *f = first->channel;
                effective_add_number(e, SETTING_FIELDS, f->n);
        } else if (mode == COPY_ZERO) {
                const struct splice_pool *p = first->channel;
                effective_add_number(e, SETTING_POOL_BUFFERS, p->count);
                effective_add_number(e, SETTING_POOL_BYTES, p->count * p->stride);
        }
}

void pipes_effective(const struct agent *a, struct effective *e) {
        int least = -1, most = -1;
        put_sending(a, e);
        for (uint32_t i = 0; i < a->n_workers; i++) {
                widen(a->workers[i].send_fd, &least, &most);
                widen(a->workers[i].receive_fd, &least, &most);
        }
        if (least < 0) {
                effective_add_unknown(e, SETTING_PIPE_SIZE, "F_GETPIPE_SZ failed");
                return;
        }
        effective_add_number(e, SETTING_PIPE_SIZE, (uint64_t) least);
        effective_add_number(e, SETTING_BUFFER_BYTES, (uint64_t) least);
        if (most != least)
                effective_add_number(e, SETTING_PIPE_SIZE_MAX, (uint64_t) most);
}
