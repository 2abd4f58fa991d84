/* SPDX-License-Identifier: MIT */

/*
 * Named pipes in the run's directory: one per thread and direction. The first end makes the names; each end opens its
 * FIFOs by name; as soon as both have, the names are removed. The ends open without blocking, reader before writer, in
 * a fixed order, so that a dead peer cannot block the other in open(2).
 *
 *      first   mkfifo, open back for reading       "made"
 *      second  open there for reading, back for writing        "opened"
 *      first   open there for writing, unlink      "opened"
 */

#include "agent/base/agent.h"
#include "agent/base/peer.h"
#include "agent/base/wait.h"
#include "agent/transport/stream/pipes.h"
#include "agent/transport/transport.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_SIZE 32
#define ALL_THREADS 0u

enum direction { THERE, BACK };

struct fifo_names {
        uint32_t made; /* number of threads whose names may exist */
};

static void name_of(uint32_t thread, enum direction d, char name[NAME_SIZE]) {
        (void) snprintf(name, NAME_SIZE, "fifo-%" PRIu32 "-%s", thread, d == THERE ? "there" : "back");
}

static int make(struct agent *a, uint32_t thread, enum direction d) {
        char name[NAME_SIZE];
        name_of(thread, d, name);
        if (mkfifoat(a->run_dir_fd, name, 0600) < 0)
                return failure_set(&a->failure, errno, "%s cannot be made in the run's directory: %s", name,
                                   strerrordesc_np(errno));
        return 0;
}

static int open_end(struct agent *a, uint32_t thread, enum direction d, int flags, int *ret) {
        char name[NAME_SIZE];
        struct stat st;
        name_of(thread, d, name);
        _cleanup_close_ int fd = openat(a->run_dir_fd, name, flags | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return failure_set(&a->failure, errno, "%s cannot be opened: %s", name, strerrordesc_np(errno));
        if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
                return failure_set(&a->failure, EINVAL, "%s in the run's directory is no FIFO", name);
        if (fcntl(fd, F_SETFL, flags) < 0) /* from here on it blocks */
                return failure_set(&a->failure, errno, "%s: F_SETFL: %s", name, strerrordesc_np(errno));
        *ret = util_steal_fd(&fd);
        return 0;
}

static int make_all(struct agent *a) {
        struct fifo_names *names = a->transport_data;
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                names->made = i + 1;
                for (enum direction d = THERE; r == 0 && d < (enum direction) point_directions(&a->setup.point); d++)
                        r = make(a, i, d);
                if (r == 0 && point_directions(&a->setup.point) == 2)
                        r = open_end(a, i, BACK, O_RDONLY, &a->workers[i].receive_fd);
        }
        return r;
}

static void unlink_all(struct agent *a) {
        struct fifo_names *names = a->transport_data;
        char name[NAME_SIZE];
        for (uint32_t i = 0; names && i < names->made; i++)
                for (enum direction d = THERE; d <= BACK; d++) {
                        name_of(i, d, name);
                        (void) unlinkat(a->run_dir_fd, name, 0); /* the daemon removes the directory in any case */
                }
        if (names)
                names->made = 0;
}

static int open_first(struct agent *a, uint64_t deadline_ns) {
        a->transport_data = calloc(1, sizeof(struct fifo_names));
        if (!a->transport_data)
                return failure_set(&a->failure, ENOMEM, "no memory for FIFOs");
        int r = make_all(a);
        if (r == 0)
                r = peer_send_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        if (r == 0)
                r = peer_receive_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                r = open_end(a, i, THERE, O_WRONLY, &a->workers[i].send_fd);
                if (r == 0)
                        r = pipes_set_size(a, a->workers[i].send_fd);
        }
        unlink_all(a);
        if (r == 0)
                r = peer_send_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        return r;
}

static int open_second(struct agent *a, uint64_t deadline_ns) {
        int r = peer_receive_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++) {
                struct worker *w = &a->workers[i];
                r = open_end(a, i, THERE, O_RDONLY, &w->receive_fd);
                if (r == 0 && point_directions(&a->setup.point) == 2) {
                        r = open_end(a, i, BACK, O_WRONLY, &w->send_fd);
                        if (r == 0)
                                r = pipes_set_size(a, w->send_fd);
                }
        }
        if (r == 0)
                r = peer_send_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        if (r == 0)
                r = peer_receive_fds(a, ALL_THREADS, NULL, 0, deadline_ns);
        return r;
}

static int fifo_open(struct agent *a) {
        uint64_t deadline_ns = util_now_ns() + AGENT_RENDEZVOUS_NS;
        return a->end == END_FIRST ? open_first(a, deadline_ns) : open_second(a, deadline_ns);
}

static void fifo_close(struct agent *a) {
        unlink_all(a);
        free(a->transport_data);
        a->transport_data = NULL;
}

const struct transport_ops transport_fifo = {
        .transport = TRANSPORT_FIFO,
        .engine = ENGINE_SYSCALL,
        .uring = &transport_uring_pipe,
        .open = fifo_open,
        .attach = pipes_attach,
        .detach = pipes_detach,
        .close = fifo_close,
        .loops = pipes_loops,
        .effective = pipes_effective,
        .pages = pipes_pages,
};
