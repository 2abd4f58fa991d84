/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ENVIRONMENT_H
#define IPCLAB_DAEMON_ENVIRONMENT_H

/*
 * The host's fingerprint, taken before and after each run: what it is (kernel, CPU model, clock source, mitigations,
 * virtualisation), how it is set (governor, THP, NUMA balancing, limits), and what it is doing (load, steal, interrupts,
 * foreign CPU time, throttling). From the two together come the noise flags of the run: labels, never deletions.
 * Read below a settable root.
 */

#include "daemon/placement.h"
#include "daemon/topology.h"

struct environment;

int environment_take(const char *root, const struct topology *t, struct environment **ret);
void environment_free(struct environment *e);
int environment_to_json(const struct environment *e, char **ret); /* malloc()ed; unreadable values are null with a reason */

/* Flags of a run between two snapshots, as "noisy:steal", "noisy:frequency", "noisy:load", "environment-changed"…, appended to a JSON
 * array under construction. own_cpu_ns is what the run's agents and the daemon used on the measured CPUs. */
struct json_writer;
void environment_flags(const struct environment *before, const struct environment *after,
                       const struct run_placement *placement, uint64_t own_cpu_ns, struct json_writer *flags);

/* A spec's preconditions: 0, or -EPERM with a sentence that names the setting, its value and how to set it. */
struct spec_require;
int environment_check(const char *root, const struct spec_require *require, char *ret_detail /* [300] */);

#endif
