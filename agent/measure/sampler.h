/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The window seen from the leader: snapshots of the workers' counters, and their differences as samples. A sample's
 * interval is the exact time between two snapshots, so the samples add up to the window's totals exactly; except for a
 * hardware counter that was scaled, for each sample by that sample's counting time.
 */

#include "agent/measure/counters.h"

#include <stdint.h>

struct agent;
struct sampler;
struct stops;

/* A run's totals. */
struct window {
        uint64_t window_ns, messages; /* all threads */
        struct counters_totals counters;
        int64_t stopped_ns; /* how long the agent stood still in it (stops.h); negative errno: it is not known */
};

/* Allocates the snapshots. stops: as in parts.h. 0; negative errno with a->failure. */
int sampler_new(struct agent *a, const struct stops *stops, struct sampler **ret);
void sampler_free(struct sampler *s); /* NULL-safe */

/* Opens the window: at_ns 0 = now, with the current counters; else at that instant, before which the workers rest. Both
 * ends scheduled it for due_ns, from which its seconds count. */
int sampler_open(struct sampler *s, uint64_t due_ns, uint64_t at_ns);
/* Ends a part of a sample (struct message_part): the counts of all threads since the last one. Nothing where the
 * workers' loops ended: the window may have, too, and the rest is sampler_close()'s. */
int sampler_part(struct sampler *s);
/* Takes a sample of each thread since the last one, and sends its parts; nothing where the workers' loops ended. */
int sampler_take(struct sampler *s);
/* Closes the window (at_ns 0 = now): sends the last samples and each thread's totals; *ret has the sums of all. */
int sampler_close(struct sampler *s, uint64_t at_ns, struct window *ret);
