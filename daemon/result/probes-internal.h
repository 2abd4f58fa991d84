/* SPDX-License-Identifier: MIT */
#pragma once

/* The interface between the comparison of probes and their JSON. */

#include "daemon/result/probes.h"

struct probe_verdict {
        bool within;          /* the two probes of the run could be compared */
        int64_t reference_id; /* of the run that it was compared with; 0: none */
        struct probe_change changes[2 * PROBE_CHANGES_MAX];
        size_t n, n_within; /* the first n_within are between the run's own two */
        char cpus_within[PROBE_ALL_CPUS_MAX], cpus_since[PROBE_ALL_CPUS_MAX]; /* what was compared, as JSON */
};

/* 0; -ENOMEM. */
int run_probes_to_json(const struct run_probes *p, const struct probe_verdict *v, char **ret);
