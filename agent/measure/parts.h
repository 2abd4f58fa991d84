/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_PARTS_H
#define IPCLAB_AGENT_PARTS_H

/*
 * The parts of samples, ten a second, by which the daemon judges whether a run was steady: how many messages all
 * threads moved, and the median of their latencies. The sampler ends them and sends those of a second in one packet. It
 * reads counts and histograms that the workers keep anyway, so that a part costs the loop a few cache lines.
 */

#include "schema/measure/histogram.h"

#include <stdint.h>

struct agent;
struct parts;

/* Medians are taken of at most so many threads: copying a histogram takes microseconds. */
#define PARTS_TIMED_THREADS 64u

/* 0; negative errno with a->failure. */
int parts_new(struct agent *a, struct parts **ret);
void parts_free(struct parts *p); /* NULL-safe */

/* The first part begins, when the workers have moved `messages`, and each thread's latencies are those of `copies`. */
void parts_open(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies);
/* One ends, and the next one begins. copies NULL: the histograms are read now. A full packet is sent. 0; negative
 * errno with a->failure. */
int parts_end(struct parts *p, uint64_t at_ns, uint64_t messages, const struct histogram *copies);
/* Sends what has ended. The same. */
int parts_send(struct parts *p);

#endif
