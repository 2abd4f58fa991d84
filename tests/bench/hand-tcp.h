/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_TCP_H
#define IPCLAB_TESTS_HAND_TCP_H

/*
 * TCP on loopback as an engineer would write it for the occasion: two forked processes, pinned, plain blocking loops
 * over the same fields in the same copy modes, no clock in a stream, threads only where there are several connections.
 * A third process reads the counters that they leave in shared memory, before and after the window.
 */

#include "schema/terms.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hand_tcp {
        bool pingpong;
        enum copy_mode mode;
        enum verify verify; /* touch or none */
        size_t size;
        unsigned fields, threads;
        double warmup, seconds;
        int cpus[2]; /* server, client; -1: not pinned */
};

struct hand_tcp_figures {
        double messages_per_second; /* received by the client; round trips */
        double p50_ns;              /* of a round trip; 0 for a stream */
};

/* 0; -errno. */
int hand_tcp_run(const struct hand_tcp *h, struct hand_tcp_figures *ret);

#endif
