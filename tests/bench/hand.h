/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TESTS_HAND_H
#define IPCLAB_TESTS_HAND_H

/*
 * The same transfers as an engineer would write them for the occasion: two forked processes, pinned, a plain loop, no
 * counters, no threads, and the clock not per message but per chunk of a millisecond or so. The limit that the agents
 * are checked against. One file per kind of transport.
 *
 * Their window is one of time, as the agents' is. Where the rate of the moment wanders, a window of so many messages is
 * a long one when it is slow and a short one when it is fast, and the median of such is not that of windows of one
 * length, though the loops be the same.
 */

#include "schema/terms.h"
#include "tests/bench/hand-two.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hand {
        enum workload workload;
        enum transport transport;
        enum engine engine;
        enum copy_mode copy_mode;
        enum verify verify;
        enum file_sync file_sync; /* of files */
        size_t size;
        uint64_t warmup_ns, duration_ns; /* before and within the clock; the sender goes on until it is ended */
        uint64_t chunk;                  /* messages between two readings of the clock; at least 1 */
        uint64_t pipe_size;              /* 0 = the kernel's default */
        uint64_t msgq_depth;             /* of queues; 0 = the kernel's default for a System V queue */
        enum memfd_source memfd;
        int cpus[2]; /* -1: not pinned */
};

/* Messages per second, by the receiver's clock (stream) or the initiator's (pingpong). 0; -errno. */
int hand_run(const struct hand *h, double *ret_rate);

/* The channel of the two ends: descriptors to read from and to write to. */
struct hand_channel {
        int there[2], back[2]; /* from the first end to the second, and back */
        bool numbers;          /* of System V queues, not descriptors */
};

int hand_channel_make(const struct hand *h, struct hand_channel *ret);
/* In a process of its own: closes what the other end uses, so that its death is seen. */
void hand_channel_keep(const struct hand_channel *c, int end);
void hand_channel_close(struct hand_channel *c);
void hand_channel_remove(struct hand_channel *c);
/* Files without a name, and the semaphores that go with them (hand-file.c). */
int hand_file_make(const struct hand *h, struct hand_channel *ret);
/* What two processes share that reach into each other's memory (hand-process.c). */
int hand_process_make(const struct hand *h, struct hand_channel *ret);
/* What O_DIRECT transfers are multiples of, where these files are. 0; -errno where they take none. */
int hand_file_direct_unit(uint64_t *ret);

/* Whether a packet of that size goes through a pair of Unix sockets: 0; -errno of why not. */
int hand_packet_try(enum transport transport, size_t size);

/* A transport's loops. fds, or numbers of queues: to read from and to write to, -1 where a stream has none. The end
 * with the clock leaves what it has counted; the other returns only when something has failed. 0 or -1. */
struct hand_loops {
        int (*first)(const struct hand *h, int receive_fd, int send_fd, struct hand_result *ret);
        int (*second)(const struct hand *h, int receive_fd, int send_fd, struct hand_result *ret);
};

extern const struct hand_loops hand_pipe_stream, hand_pipe_pingpong;
extern const struct hand_loops hand_gathered_stream, hand_gathered_pingpong;           /* writev */
extern const struct hand_loops hand_spliced_stream, hand_spliced_pingpong;             /* vmsplice */
extern const struct hand_loops hand_unix_plain_stream, hand_unix_plain_pingpong;       /* of streams: write */
extern const struct hand_loops hand_unix_gathered_stream, hand_unix_gathered_pingpong; /* sendmsg */
extern const struct hand_loops hand_packet_stream, hand_packet_pingpong;               /* of datagrams: send */
extern const struct hand_loops hand_packet_gathered_stream, hand_packet_gathered_pingpong;
extern const struct hand_loops hand_sysv_stream, hand_sysv_pingpong; /* message queues */
extern const struct hand_loops hand_posix_stream, hand_posix_pingpong;
extern const struct hand_loops hand_file_stream, hand_file_pingpong; /* the page cache's, and O_DIRECT's */
extern const struct hand_loops hand_synced_file_stream, hand_synced_file_pingpong; /* fsync after each message */
extern const struct hand_loops hand_vm_read_stream, hand_vm_read_pingpong;         /* process_vm_readv */
extern const struct hand_loops hand_vm_write_stream, hand_vm_write_pingpong;       /* process_vm_writev */
extern const struct hand_loops hand_memfd_fresh_stream, hand_memfd_fresh_pingpong; /* sealed memory */
extern const struct hand_loops hand_memfd_pool_stream, hand_memfd_pool_pingpong;
extern const struct hand_loops hand_uring_pipe_stream, hand_uring_pipe_pingpong; /* … and FIFOs, by io_uring */
extern const struct hand_loops hand_uring_socket_stream, hand_uring_socket_pingpong;
extern const struct hand_loops hand_uring_gathered_pipe_stream, hand_uring_gathered_pipe_pingpong;
extern const struct hand_loops hand_uring_gathered_socket_stream, hand_uring_gathered_socket_pingpong;
extern const struct hand_loops hand_uring_file_stream, hand_uring_file_pingpong;
extern const struct hand_loops hand_uring_synced_file_stream, hand_uring_synced_file_pingpong;

#endif
