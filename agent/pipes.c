/* SPDX-License-Identifier: MIT */

/* Pipe sizes (man 7 pipe, man 2 fcntl) and descriptor limits, for transport-pipe.c and transport-fifo.c. */

#include "agent/pipes.h"

#include "agent/agent.h"
#include "schema/json.h"
#include "schema/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

#define DESCRIPTORS_SPARE 64u /* control, peer, eventfd, /proc files, stdio */

int pipes_reserve_descriptors(struct agent *a, uint32_t n) {
        struct rlimit limit;
        rlim_t need = (rlim_t) n + DESCRIPTORS_SPARE;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return failure_set(&a->failure, errno, "getrlimit: %s", strerrordesc_np(errno));
        if (limit.rlim_cur >= need)
                return 0;
        if (limit.rlim_max < need)
                return failure_set(&a->failure, EMFILE,
                                   "%" PRIu32 " threads need %ju descriptors; the hard limit RLIMIT_NOFILE is %ju",
                                   a->n_workers, (uintmax_t) need, (uintmax_t) limit.rlim_max);
        limit.rlim_cur = need;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return failure_set(&a->failure, errno, "RLIMIT_NOFILE cannot be raised to %ju: %s", (uintmax_t) need,
                                   strerrordesc_np(errno));
        return 0;
}

unsigned pipes_directions(const struct agent *a) {
        return a->setup.point.workload == WORKLOAD_PINGPONG ? 2 : 1;
}

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

void pipes_effective(const struct agent *a, struct json_writer *w) {
        int least = -1, most = -1;
        pipes_modes_effective(a, w);
        for (uint32_t i = 0; i < a->n_workers; i++) {
                widen(a->workers[i].send_fd, &least, &most);
                widen(a->workers[i].receive_fd, &least, &most);
        }
        if (least < 0) {
                json_member_null(w, "pipe_size");
                json_member_string(w, "pipe_size_reason", "F_GETPIPE_SZ failed");
                return;
        }
        json_member_i64(w, "pipe_size", least);
        if (most != least)
                json_member_i64(w, "pipe_size_max", most);
}
