/* SPDX-License-Identifier: MIT */

/* Sets the hand-written loops up: fork, pinning, and the receiver's time back through a shared page. */

#include "tests/bench/hand.h"

#include "schema/util.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define ALARM_SECONDS 60

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
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_TWO, &hand_unix_plain_stream, &hand_unix_plain_pingpong},
        {TRANSPORT_UNIX_STREAM, ENGINE_SYSCALL, COPY_ONE, &hand_unix_gathered_stream, &hand_unix_gathered_pingpong},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_TWO, &hand_packet_stream, &hand_packet_pingpong},
        {TRANSPORT_UNIX_DGRAM, ENGINE_SYSCALL, COPY_ONE, &hand_packet_gathered_stream, &hand_packet_gathered_pingpong},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_TWO, &hand_packet_stream, &hand_packet_pingpong},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_SYSCALL, COPY_ONE, &hand_packet_gathered_stream,
         &hand_packet_gathered_pingpong},
        {TRANSPORT_MSGQ_SYSV, ENGINE_SYSCALL, COPY_TWO, &hand_sysv_stream, &hand_sysv_pingpong},
        {TRANSPORT_MSGQ_POSIX, ENGINE_SYSCALL, COPY_TWO, &hand_posix_stream, &hand_posix_pingpong},
        {TRANSPORT_FILE, ENGINE_SYSCALL, COPY_TWO, &hand_file_stream, &hand_file_pingpong},
        {TRANSPORT_PIPE, ENGINE_IO_URING, COPY_TWO, &hand_uring_pipe_stream, &hand_uring_pipe_pingpong},
        {TRANSPORT_FIFO, ENGINE_IO_URING, COPY_TWO, &hand_uring_pipe_stream, &hand_uring_pipe_pingpong},
        {TRANSPORT_UNIX_STREAM, ENGINE_IO_URING, COPY_TWO, &hand_uring_socket_stream, &hand_uring_socket_pingpong},
        {TRANSPORT_UNIX_DGRAM, ENGINE_IO_URING, COPY_TWO, &hand_uring_socket_stream, &hand_uring_socket_pingpong},
        {TRANSPORT_UNIX_SEQPACKET, ENGINE_IO_URING, COPY_TWO, &hand_uring_socket_stream, &hand_uring_socket_pingpong},
        {TRANSPORT_FILE, ENGINE_IO_URING, COPY_TWO, &hand_uring_file_stream, &hand_uring_file_pingpong},
};

static const struct hand_loops *loops_of(const struct hand *h) {
        for (size_t i = 0; i < ELEMENTS(ways); i++)
                if (ways[i].transport == h->transport && ways[i].engine == h->engine &&
                    ways[i].copy_mode == h->copy_mode)
                        return h->workload == WORKLOAD_STREAM ? ways[i].stream : ways[i].pingpong;
        return NULL;
}

static __attribute__((noreturn)) void be_end(const struct hand *h, int end, const struct hand_channel *c,
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
        hand_channel_keep(c, end);
        uint64_t ns = end == 0 ? loops->first(h, c->back[0], c->there[1]) : loops->second(h, c->there[0], c->back[1]);
        result[end] = ns;
        _exit(ns ? 0 : 1);
}

static int run_ends(const struct hand *h, struct hand_channel *c, uint64_t *result) {
        pid_t pids[2] = {-1, -1};
        int r = 0;
        for (int end = 0; end < 2; end++) {
                pids[end] = fork();
                if (pids[end] == 0)
                        be_end(h, end, c, result);
                if (pids[end] < 0)
                        r = -errno;
        }
        hand_channel_close(c);
        for (int end = 0; end < 2; end++) {
                int status;
                if (pids[end] > 0 && (waitpid(pids[end], &status, 0) < 0 || status != 0))
                        r = r ? r : -EIO;
        }
        return r;
}

int hand_run(const struct hand *h, double *ret_rate) {
        struct hand_channel channel;
        if (!loops_of(h))
                return -EOPNOTSUPP;
        uint64_t *result = mmap(NULL, 2 * sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (result == MAP_FAILED)
                return -errno;
        int r = hand_channel_make(h, &channel);
        if (r == 0)
                r = run_ends(h, &channel, result);
        hand_channel_remove(&channel);
        uint64_t ns = result[h->workload == WORKLOAD_STREAM ? 1 : 0];
        (void) munmap(result, 2 * sizeof *result);
        if (r == 0)
                *ret_rate = (double) h->messages * 1e9 / (double) ns;
        return r;
}
