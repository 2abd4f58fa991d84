/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_H
#define IPCLAB_TESTS_HAND_H

/*
 * The same transfers as an engineer would write them for the occasion: two forked processes, pinned, a plain loop, no
 * clock in it, no counters, no threads. The limit that the agents are held against. One file per kind of transport.
 */

#include "schema/terms.h"

#include <stddef.h>
#include <stdint.h>

struct hand {
        enum workload workload;
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        enum verify verify;
        size_t size;
        uint64_t warmup, messages; /* before and within the clock */
        uint64_t tail;             /* of a stream: after the clock, so that its end is not the pipe running dry */
        uint64_t pipe_size;        /* 0 = as it comes */
        int cpus[2];               /* -1: not pinned */
};

/* Messages per second, by the receiver's clock (stream) or the initiator's (pingpong). 0; -errno. */
int hand_run(const struct hand *h, double *ret_rate);

/* A transport's loops. fds: to read from and to write to, -1 where a stream has none. They return ns for `messages`,
 * or 0 when something failed. */
struct hand_loops {
        uint64_t (*first)(const struct hand *h, int receive_fd, int send_fd);
        uint64_t (*second)(const struct hand *h, int receive_fd, int send_fd);
};

extern const struct hand_loops hand_pipe_stream, hand_pipe_pingpong;
extern const struct hand_loops hand_gathered_stream, hand_gathered_pingpong; /* writev */
extern const struct hand_loops hand_spliced_stream, hand_spliced_pingpong;   /* vmsplice */

#endif
