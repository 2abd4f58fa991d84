/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_PERF_PASS_H
#define IPCLAB_SCHEMA_PERF_PASS_H

/*
 * How an agent comes by its counters: it asks for a thread, the daemon opens what it may and passes the descriptors
 * (schema/protocol/protocol.h: count, counting). The daemon may more (CAP_PERFMON in its unit; all, as root), and never
 * less: an agent that tried for itself first would have a second way that only some machines take.
 *
 * What an agent gets by this, should it have gone wrong: counts of its own threads. Which events is not its choice, a
 * descriptor that counts cannot be made one that samples, and a thread that is not its own is refused.
 */

#include "schema/measure/perf.h"

#include <stdint.h>

/* The agent's side. What cannot be had is in *ret, in words of perf.h. 0; -ETIMEDOUT, -ECONNRESET; -EBADMSG when the
 * daemon says something else; errno: nothing is known then, and *ret is as it was. After a failure do not ask again:
 * the answer may still come. */
int perf_pass_ask(int fd, pid_t tid, uint64_t deadline_ns, struct perf_handles *ret);

/* The daemon's side: opens by `source` the events of thread `tid`, if that is one of process `pid`, and answers without
 * waiting. The process must not have been reaped. 0, also when there was nothing to give; negative errno of
 * message_send(). */
int perf_pass_answer(int fd, const struct perf_source *source, pid_t pid, pid_t tid);

#endif
