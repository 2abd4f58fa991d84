/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface between the comparison of probes, their past and their JSON. */

#include "daemon/result/probes.h"

struct probe_verdict {
        bool within;          /* the two probes of the run could be compared */
        int64_t reference_id; /* of the run that it was compared with; 0: none */
        struct probe_change changes[2 * PROBE_CHANGES_MAX];
        size_t n, n_since; /* the first n_since are since that run, the others between the run's own two */
        char cpus_within[PROBE_ALL_CPUS_MAX], cpus_since[PROBE_ALL_CPUS_MAX]; /* what was compared, as JSON */
};

/* 0; -ENOMEM. */
int run_probes_to_json(const struct run_probes *p, const struct probe_verdict *v, char **ret);

/* time: PROBE_BEFORE or PROBE_AFTER its run. */
void probe_past_add(struct probe_past *past, const struct probe_sitting *s, unsigned time);
/* Sets the habit of a change between the two by what the past has of its figure. */
void probe_past_judge(const struct probe_past *past, const struct probe_sitting *earlier,
                      const struct probe_sitting *later, struct probe_change *change);
