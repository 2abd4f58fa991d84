/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_SAMPLER_H
#define IPCLAB_AGENT_SAMPLER_H

/*
 * The window seen from the leader: snapshots of the workers' counters, and their differences as samples. A sample's
 * interval is what really lay between two snapshots, so the samples' sums are the window's totals, exactly; but for a
 * hardware counter that had to be scaled, each time by what is known of that time.
 */

#include "agent/measure/counters.h"

#include <stdint.h>

struct agent;
struct sampler;

/* What a run comes to. */
struct window {
        uint64_t window_ns, messages; /* all threads */
        struct counters_totals counters;
};

/* Memory for the snapshots. 0; negative errno with a->failure. */
int sampler_new(struct agent *a, struct sampler **ret);
void sampler_free(struct sampler *s); /* NULL-safe */

/* The window opens: at_ns 0 = now, as the counters stand; else at that instant, before which the workers rest. It was
 * to begin at due_ns at both ends, and its seconds count from there. */
int sampler_open(struct sampler *s, uint64_t due_ns, uint64_t at_ns);
/* A part of a sample is over (struct message_part): what all threads have counted since the last one. */
int sampler_part(struct sampler *s);
/* A sample of each thread since the last one, and the parts that it has. */
int sampler_take(struct sampler *s);
/* The window closes (at_ns 0 = now): the last samples, each thread's totals, and those of all in *ret. */
int sampler_close(struct sampler *s, uint64_t at_ns, struct window *ret);

#endif
