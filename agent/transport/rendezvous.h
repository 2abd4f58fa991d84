/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Creates the channels of descriptors without a name, in the leader's thread: the first end makes those of a thread and
 * sends the second end its descriptors, one packet per thread in the order of the threads. Each process then holds only
 * the descriptors that it uses, so that the death of either is an end of file, EPIPE or ECONNRESET at the other. The
 * workers own the descriptors, which are closed with them. 0; negative errno with a->failure.
 */

#include <stdint.h>

struct agent;

/* Makes one channel per thread and direction. make() opens one, as a descriptor to read from and one to write to; 0 or
 * negative errno with a->failure and nothing open. */
int rendezvous_one_way(struct agent *a, uint64_t deadline_ns, int (*make)(struct agent *a, int ret[2]));

/* Makes a socket pair (AF_UNIX, `type`) per thread. prepare() sets up each socket before it is passed; may be NULL. */
int rendezvous_sockets(struct agent *a, int type, uint64_t deadline_ns, int (*prepare)(struct agent *a, int fd));
