/* SPDX-License-Identifier: MIT */

/*
 * Nanoseconds per call and per context switch. A call never waits: its cost is the CPU time of the threads that made
 * the calls, in which other programs' turns on the CPU have no share, as they have in the window. A window has
 * `messages` calls, or rounds of a ring of processes, each of as many hops as there are processes; a hop is a switch
 * and what the pipe and the walk over the working set cost without one, which the agent measured beforehand. Called by
 * result.c.
 */

#include "daemon/result/cost.h"

#include "schema/json/json.h"

#include <errno.h>
#include <math.h>

static int overhead_of(const struct message_report *m, double *ret) {
        const struct effective_row *row = effective_find(m->effective, SETTING_PIPE_OVERHEAD_NS);
        if (!row || row->kind != EFFECTIVE_REAL)
                return -EBADMSG;
        *ret = row->real;
        return 0;
}

int result_cost_to_json(const struct point *p, const struct message_report *m, struct json_writer *w) {
        double messages = m->messages ? (double) m->messages : INFINITY, overhead = 0;
        double each = (double) m->window_ns / messages;
        int r;
        switch (p->workload) {
        case WORKLOAD_SYSCALL:
                json_member_double(w, "cost_ns", (double) m->counters.usage.cpu_ns / messages);
                json_member_string(w, "cost_of", "call");
                return 0;
        case WORKLOAD_CONTEXT_SWITCH:
                r = overhead_of(m, &overhead);
                if (r < 0)
                        return r;
                json_member_double(w, "cost_ns", each / p->processes - overhead);
                json_member_string(w, "cost_of", "context switch");
                json_member_double(w, "hop_ns", each / p->processes);
                json_member_double(w, "pipe_overhead_ns", overhead);
                return 0;
        default:
                json_member_unknown(w, "cost_ns", figure_terms[FIGURE_COST].absent);
                json_member_null(w, "cost_of");
                return 0;
        }
}
