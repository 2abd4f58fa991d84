/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The calibration probes of a run (agent/measure/probe.h), where the set-up enables them: when both ends are ready for
 * the warm-up, and again after both windows have closed. First both threads 0 take theirs, then the further threads of
 * the first end, and of the second, one after the other: those that have CPUs of their own, within PROBE_OTHERS_NS and
 * PROBE_OTHERS_MAX. A fault during a probe is treated as any other, but for two: a
 * thread that has no CPU (before the window the run cannot begin without it, after the window the run is whole, and the
 * probe is sent without figures), and memory that cannot be had, without which single figures are absent. The leader
 * takes them.
 */

#include "agent/measure/probe.h"
#include "schema/protocol/protocol.h"

#include <stdint.h>

struct agent;

/* A worker that takes a probe has these in use until it rests. When the run fails meanwhile it does not: then they must
 * last as long as the process. */
struct probes {
        struct probe_page *page; /* shared with the other end; NULL: no other end, no probes, or no memory */
        struct probe_order order;
        struct probe list[1 + PROBE_OTHERS_MAX]; /* of threads 0, 1 …, the n first */
        uint32_t n;
        uint32_t taken; /* times */
        uint32_t cpu;   /* of thread 0, the last time */
        bool given_up;  /* the worker is at one, and will not be waited for */
};

/* Shares a page of memory with the other end, if it can be had. Does nothing where probes are disabled. 0; negative
 * errno with a->failure. */
int probes_init(struct probes *p, struct agent *a);
void probes_deinit(struct probes *p); /* all workers rest */

/* Takes those of one time, in step with the other end, and sends them to the daemon. Does nothing where probes are
 * disabled. 0; negative errno with a->failure. */
int probes_take(struct probes *p, struct agent *a);
