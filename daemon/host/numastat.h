/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The kernel's own counts of where pages came from and what NUMA balancing did, of the whole host, for the time between
 * a run's start and its reports. Source: Documentation/admin-guide/numastat.rst, man 5 proc (vmstat).
 */

#include "schema/json/json.h"

#include <stdbool.h>
#include <stdint.h>

#define NUMASTAT_COUNTERS 11u

struct numastat {
        bool known; /* false: /proc/vmstat could not be read */
        bool has[NUMASTAT_COUNTERS];
        bool set_back[NUMASTAT_COUNTERS]; /* of a difference: less than before, so that nothing is known of the time */
        uint64_t values[NUMASTAT_COUNTERS];
};

/* Reads the counters; those that cannot be read are not known. root: "" or a captured tree. */
void numastat_take(const char *root, struct numastat *ret);
void numastat_subtract(struct numastat *ret, const struct numastat *later, const struct numastat *earlier);
/* "numa": {"of": "host", "numa_hit": 4711, …}; null with a reason for what this kernel does not count. */
void numastat_put(const struct numastat *n, struct json_writer *w);
