/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Short messages of a stream by a multishot receive of io_uring: one operation for all of them. The kernel writes the
 * received bytes, many messages or a part of one, to the next buffer of a ring that it shares with the worker, and
 * reports their number. A message within one buffer is verified there; the parts of one in two buffers are copied to
 * the worker's buffer. A buffer is returned when the next one is begun.
 *
 * Its gain over one receive for each message (tests/bench/tcp-multishot on Linux 6.18, one CPU for each end, verify
 * touch; medians with their 95 % intervals): with 8 threads, which find many messages in their turn,
 *
 *               receiver's CPU time per message     messages per second
 *        64 B   0.20 (0.17 ... 0.22)                1.00 (0.92 ... 1.25)
 *       1 KiB   0.38 (0.36 ... 0.44)                1.13 (1.09 ... 1.48)
 *       4 KiB   0.67 (0.64 ... 0.71)                1.13 (1.01 ... 1.25)
 *      16 KiB   0.99 (0.97 ... 1.03)                0.95 (0.81 ... 1.04)
 *      64 KiB   1.08 (1.03 ... 1.13)                1.00 (0.95 ... 1.10)
 *
 * A single receive of all available bytes saves as much: the gain comes from receiving ahead, for which io_uring has
 * multishot. A receiver that keeps up with the sender finds one message at a time and gains little: 0.94 (0.90 ...
 * 0.96) of the CPU time at 4 KiB, and no throughput, which the sender limits. A pingpong takes 0.94 to 0.96 of the CPU
 * time, and its rate does not differ significantly from that of single receives; nor does that of streams both ways. So
 * these, and messages longer than SPEC_MULTISHOT_MESSAGE_MAX, are received one by one.
 *
 * Source: man 3 io_uring_prep_recv_multishot, man 7 io_uring_provided_buffers.
 */

#include "agent/loop/loops.h"
#include "agent/transport/uring/uring.h"
#include "schema/spec/spec.h"

#include <liburing.h>

struct effective;
struct page_list;

/* A worker's multishot receive. */
struct tcp_multishot {
        unsigned char *at; /* received bytes that are not yet consumed */
        size_t left;
        bool armed; /* the operation is under way */
        bool holds; /* the worker holds buffer `id` */
        unsigned short id;
        uint8_t sqe_flags;
        int fd;
        uint64_t dry; /* how often the kernel found no free buffer */
        struct io_uring ring;
        struct io_uring_buf_ring *buffers;
        unsigned char *memory; /* of the buffers */
        int files_error;
        struct uring_setup setup;
};

/* In the worker's thread, which alone may use it, for w->receive_fd. 0; *ret is then NULL, with *ret_reason (static),
 * where the kernel does not support it; negative errno with w->failure. */
int tcp_multishot_new(struct worker *w, struct tcp_multishot **ret, const char **ret_reason);
struct tcp_multishot *tcp_multishot_free(struct tcp_multishot *u);

/* Waits for the next message, when the received bytes do not contain it. */
int tcp_multishot_await(struct worker *w, struct tcp_multishot *u, unsigned char **ret);

/* As a channel's receive. */
LOOP_INLINE int tcp_multishot_receive(struct worker *w, struct tcp_multishot *u, unsigned char **ret) {
        if (LOOP_UNLIKELY(u->left < w->size))
                return tcp_multishot_await(w, u, ret);
        *ret = u->at;
        u->at += w->size;
        u->left -= w->size;
        return 0;
}

/* Adds its ring (uring_facts_add()). */
void tcp_multishot_facts(const struct tcp_multishot *u, struct uring_facts *facts);
/* Adds rows: the number and size of each ring's buffers. */
void tcp_multishot_effective(struct effective *e);
/* Adds the buffers. As page_list_add(). */
int tcp_multishot_pages(const struct tcp_multishot *u, uint32_t thread, struct page_list *list);
