/* SPDX-License-Identifier: MIT */

/* Pipe sizes (man 7 pipe, man 2 fcntl), for pipe.c and fifo.c. */

#include "agent/transport/stream/pipes.h"

#include "agent/base/agent.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
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

static void widen(int fd, int *least, int *most) {
        int size = fd >= 0 ? fcntl(fd, F_GETPIPE_SZ) : -1;
        if (size < 0)
                return;
        if (*least < 0 || size < *least)
                *least = size;
        if (size > *most)
                *most = size;
}

void pipes_effective(const struct agent *a, struct effective *e) {
        int least = -1, most = -1;
        pipes_modes_effective(a, e);
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
