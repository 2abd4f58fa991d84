/* SPDX-License-Identifier: MIT */

/* Sets the hand-written loops up: descriptors, fork, pinning, and the receiver's time back through a shared page. */

#include "tests/bench/hand.h"

#include "schema/util.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ALARM_SECONDS 60

/* A pipe, or a FIFO whose name is gone again. */
static int make_channel(enum transport t, int ret[2]) {
        char dir[] = "/tmp/ipclab-hand-XXXXXX", path[64];
        int r = 0;

        if (t == TRANSPORT_PIPE)
                return pipe(ret) < 0 ? -errno : 0;
        if (!mkdtemp(dir))
                return -errno;
        (void) snprintf(path, sizeof path, "%s/fifo", dir);
        ret[0] = ret[1] = -1;
        if (mkfifo(path, 0600) == 0) {
                ret[0] = open(path, O_RDONLY | O_NONBLOCK);
                ret[1] = open(path, O_WRONLY);
        }
        if (ret[0] < 0 || ret[1] < 0 || fcntl(ret[0], F_SETFL, O_RDONLY) < 0)
                r = -errno;
        (void) unlink(path);
        (void) rmdir(dir);
        return r;
}

static int set_size(const struct hand *h, int fd) {
        if (h->pipe_size && fcntl(fd, F_SETPIPE_SZ, (int) h->pipe_size) < 0)
                return -errno;
        return 0;
}

/* What is written by hand: a line for each way. */
static const struct {
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        const struct hand_loops *stream, *pingpong;
} ways[] = {
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_TWO, &hand_pipe_stream, &hand_pipe_pingpong},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ONE, &hand_gathered_stream, &hand_gathered_pingpong},
        {TRANSPORT_PIPE, ENGINE_SYSCALL, COPY_ZERO, &hand_spliced_stream, &hand_spliced_pingpong},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_TWO, &hand_pipe_stream, &hand_pipe_pingpong},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ONE, &hand_gathered_stream, &hand_gathered_pingpong},
        {TRANSPORT_FIFO, ENGINE_SYSCALL, COPY_ZERO, &hand_spliced_stream, &hand_spliced_pingpong},
};

static const struct hand_loops *loops_of(const struct hand *h) {
        for (size_t i = 0; i < ELEMENTS(ways); i++)
                if (ways[i].transport == h->transport && ways[i].engine == h->engine &&
                    ways[i].copy_mode == h->copy_mode)
                        return h->workload == WORKLOAD_STREAM ? ways[i].stream : ways[i].pingpong;
        return NULL;
}

static __attribute__((noreturn)) void be_end(const struct hand *h, int end, const int there[2], const int back[2],
                                             uint64_t *result) {
        const struct hand_loops *loops = loops_of(h);
        if (h->cpus[end] >= 0) {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(h->cpus[end], &set);
                if (sched_setaffinity(0, sizeof set, &set) < 0)
                        _exit(1);
        }
        (void) alarm(ALARM_SECONDS);
        /* only what this end uses, so that the other's death is seen */
        (void) close(there[end == 0 ? 0 : 1]);
        (void) close(back[end == 0 ? 1 : 0]);
        uint64_t ns = end == 0 ? loops->first(h, back[0], there[1]) : loops->second(h, there[0], back[1]);
        result[end] = ns;
        _exit(ns ? 0 : 1);
}

static int run_ends(const struct hand *h, const int there[2], const int back[2], uint64_t *result) {
        pid_t pids[2] = {-1, -1};
        int r = 0;
        for (int end = 0; end < 2; end++) {
                pids[end] = fork();
                if (pids[end] == 0)
                        be_end(h, end, there, back, result);
                if (pids[end] < 0)
                        r = -errno;
        }
        for (int i = 0; i < 2; i++) {
                (void) util_close(there[i]);
                (void) util_close(back[i]);
        }
        for (int end = 0; end < 2; end++) {
                int status;
                if (pids[end] > 0 && (waitpid(pids[end], &status, 0) < 0 || status != 0))
                        r = r ? r : -EIO;
        }
        return r;
}

int hand_run(const struct hand *h, double *ret_rate) {
        int there[2] = {-1, -1}, back[2] = {-1, -1};
        if (!loops_of(h))
                return -EOPNOTSUPP;
        uint64_t *result = mmap(NULL, 2 * sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (result == MAP_FAILED)
                return -errno;
        int r = make_channel(h->transport, there);
        if (r == 0)
                r = make_channel(h->transport, back);
        if (r == 0)
                r = set_size(h, there[1]);
        if (r == 0)
                r = set_size(h, back[1]);
        if (r == 0)
                r = run_ends(h, there, back, result);
        uint64_t ns = result[h->workload == WORKLOAD_STREAM ? 1 : 0];
        (void) munmap(result, 2 * sizeof *result);
        if (r == 0)
                *ret_rate = (double) h->messages * 1e9 / (double) ns;
        return r;
}
