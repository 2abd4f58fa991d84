/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The result of a run: figures of both ends' reports, the merged latency histogram, the second-by-second series, and
 * the flags that follow from them.
 */

#include "daemon/host/numastat.h"
#include "daemon/result/clock-offset.h"
#include "daemon/result/steadiness.h"
#include "daemon/run/order.h"

/* A run carries the requested rate when each stream has this part of the messages that were due; else it has the flag.
 */
#define RESULT_RATE_REACHED 0.97
#define RESULT_RATE_NOT_REACHED "rate_not_reached"

/* The reason why round trips have none of one way. */
#define RESULT_ONE_WAY_REASON                                                                                          \
        "none in an open loop: latency_ns counts from when a message was due, and what it waited for its sending has " \
        "no way back"

struct result {
        const struct run_order *order;
        const char *roles[END_COUNT]; /* NULL where the run has no such agent */
        const struct message_report *reports[END_COUNT];
        const struct message_thread *threads[END_COUNT]; /* as many as the point has; NULL where not known */
        struct histogram *latency;                       /* NULL until the first sample that has one */
        bool has_latency;
        bool timed[END_COUNT]; /* its samples have latencies */
        uint64_t begin_ns;     /* of the window, CLOCK_MONOTONIC; 0: no part of it has come */
        int64_t begun_ms;      /* the same by the wall clock, since the epoch */
        struct steadiness steadiness;
        const struct disturbance *beside; /* disturbances of each second; NULL: not observed */
        struct numastat numa;             /* the kernel's counts during the window */
        struct clock_offset clock_offset; /* of runs with two ends */
        char *noise_json;                 /* other use of the CPUs (run/watch/watch.h); NULL: not observed */
        int noise_error;                  /* why it is not; 0: nothing was to observe it */
};

/* Parts of one end's seconds, by which steadiness is judged. 0 or -ENOMEM. */
int result_add_parts(struct result *r, enum end end, const struct message_parts *parts);
/* A sample of one end: its latency is merged. 0 or -ENOMEM. */
int result_add_sample(struct result *r, enum end end, const struct message_sample *s);
/* When all samples have come, and before what follows: whether the run was steady. 0 or -ENOMEM. */
int result_judge(struct result *r);
/* Whether the two reports can both be true; -EBADMSG with a sentence in ret_detail[DETAIL_MAX] when not. */
int result_check(const struct result *r, char *ret_detail);
/* The run's "result" object; malloc()ed. 0; -EBADMSG when a report lacks the values
 * for a figure; -ENOMEM. */
int result_to_json(const struct result *r, char **ret);
/* Flags to a verdict. */
void result_flags(const struct result *r, struct run_verdict *v);
void result_deinit(struct result *r);
