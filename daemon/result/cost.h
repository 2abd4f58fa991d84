/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The cost of one call or one context switch: the figure of the workloads that move no data, from a report's exact
 * count, and its CPU time or window.
 */

#include "schema/protocol/protocol.h"

struct json_writer;

/* Members of a run's result under construction: "cost_ns" and "cost_of" ("call", "context switch"), both null for
 * workloads that move data, with "cost_ns_reason"; for a switch also "hop_ns", from which "pipe_overhead_ns" has been
 * subtracted. 0; -EBADMSG when the agent did not report the overhead; -ENOMEM. */
int result_cost_to_json(const struct point *p, const struct message_report *m, struct json_writer *w);
