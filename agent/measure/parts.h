/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The parts of samples, ten a second, by which the daemon decides whether a run was steady: the number of messages of
 * all threads, and the median of their latencies; beside them how long the agent stood still, and what its connections
 * sent again. The sampler ends them and sends those of a second in one packet. It reads the counts and histograms that
 * the workers maintain in any case, so that a part costs the loop a few cache lines. A packet costs a run over tcp
 * more: for what was sent again the leader takes the lock of each connection, once a second, and a worker's system call
 * on it and the leader wait for each other.
 */

#include "schema/measure/histogram.h"

#include <stdint.h>

struct agent;
struct parts;
struct stops;

/* stops: of the leader's sleeps, which end before a part does; must outlive the object. 0; negative errno with
 * a->failure. */
int parts_new(struct agent *a, const struct stops *stops, struct parts **ret);
void parts_free(struct parts *p); /* NULL-safe */

/* Begins the first part, with the workers' `messages` and each thread's latencies in `copies`. */
void parts_open(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies);
/* Ends a part and begins the next. copies NULL: the histograms are read now. A full packet is sent. 0; negative errno
 * with a->failure. */
int parts_end(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies);
/* Sends the parts that have ended. Returns as parts_end(). */
int parts_send(struct parts *p);
