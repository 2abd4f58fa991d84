/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How an agent gets its counters: it sends a request for each thread; the daemon opens the events that it may open and
 * sends the descriptors (schema/protocol/protocol.h: count, counting). The daemon never has fewer privileges than its
 * agent (CAP_PERFMON in its unit; all, as root), so the agent does not try to open events itself.
 *
 * A compromised agent gains counts of its own threads by this, and no more: the daemon chooses the events, a descriptor
 * that counts cannot be made one that samples, and a thread of another process is refused.
 */

#include "schema/measure/perf.h"

#include <stdint.h>

/* The agent's side. *ret has the descriptors, and a negative errno for each event that could not be opened. 0;
 * -ETIMEDOUT, -ECONNRESET; -EBADMSG for any other message; errno. *ret is unchanged on failure. Do not send another
 * request then: the response to the first may still arrive. */
int perf_pass_request(int fd, pid_t tid, uint64_t deadline_ns, struct perf_handles *ret);

/* The daemon's side: opens by `source` the events of thread `tid`, if that is one of process `pid`, and sends the
 * response without waiting. The process must not have been reaped. 0, also when no event could be opened; negative
 * errno of message_send(). */
int perf_pass_answer(int fd, const struct perf_source *source, pid_t pid, pid_t tid);
