/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RESULT_H
#define IPCLAB_DAEMON_RESULT_H

/*
 * What a run amounts to: figures of both ends' reports, the merged latency histogram, the second-by-second series, and
 * the flags that follow from them.
 */

#include "daemon/host/numastat.h"
#include "daemon/run/runner.h"

/* Why a run, or all of a point, has no figure of both ways, nor of one of them. */
#define RESULT_BOTH_WAYS_REASON "of pingpong only"
/* Why round trips have none of one way. */
#define RESULT_ONE_WAY_REASON                                                                                          \
        "none in an open loop: latency_ns counts from when a message was due, and what it waited for its sending has " \
        "no way back"

struct result_series {
        double *rates; /* messages per second, by second of the window */
        size_t n, size;
};

struct result {
        const struct run_order *order;
        const char *roles[END_COUNT]; /* NULL where the run has no such agent */
        const struct message_report *reports[END_COUNT];
        const struct message_thread *threads[END_COUNT]; /* as many as the point has; NULL where not known */
        struct histogram *latency;                       /* NULL until the first sample that has one */
        bool has_latency;
        struct result_series series;
        struct numastat numa; /* what the kernel counted meanwhile */
        char *noise_json;     /* what else used the CPUs (run/watch.h); NULL: not observed */
};

/* A sample of one end: latency is merged, and the receiving end's rate goes to the series. 0 or -ENOMEM. */
int result_add_sample(struct result *r, enum end end, const struct message_sample *s);
/* Whether the two reports can both be true; -EBADMSG with a sentence in ret_detail[300] when not. */
int result_check(const struct result *r, char *ret_detail);
/* The run's "result" object; malloc()ed. 0; -EBADMSG when a report lacks what a figure
 * is made of; -ENOMEM. */
int result_to_json(const struct result *r, char **ret);
/* Flags to a verdict. */
void result_flags(const struct result *r, struct run_verdict *v);
void result_deinit(struct result *r);

#endif
