/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The host's fingerprint, taken before and after each run: its facts (kernel, CPU model, clock source, mitigations,
 * virtualisation), its settings (governor, THP, NUMA balancing, limits), and its activity (load, steal,
 * interrupts, foreign CPU time, throttling). From the two together come the noise flags of the run: labels, never
 * deletions. Read below a settable root.
 */

#include "daemon/host/topology.h"
#include "daemon/placement/placement.h"

struct environment;

/* root: "" or a captured tree. 0; -ENOMEM; -errno with the path in the log when a file that every kernel has cannot be
 * read
 * (/proc/stat, uptime, loadavg, meminfo). All else that is missing is null with its reason. */
int environment_take(const char *root, const struct topology *t, struct environment **ret);
void environment_free(struct environment *e);

/* Reads again what may change during a run (THP and its sizes, sysctls, clock source, each CPU's governor, frequencies
 * and idle states, turbo, preemption, NTP, the cgroups' CPU limits, and where there are at most 64 device interrupts
 * their routes), and marks in `before` what has changed: environment_flags() then has it, even if it is restored. No
 * event reports a change in sysfs, so this must be called every second. 0; -ENOMEM; -errno when the root cannot be
 * opened. */
int environment_observe(const char *root, const struct topology *t, struct environment *before);

/* malloc()ed. Facts by name ("kernel_release", "cpu_model", "cpufreq_governor", "numa_balancing", "mitigations": {…}),
 * then "uptime_seconds", "load", "memory_*_bytes", "cpus" (counters since boot), "nodes" (numastat), "vmstat", and
 * "reasons": for each null, by its name, why. */
int environment_to_json(const struct environment *e, char **ret);
/* Facts and mitigations of the "before" of a run's stored environment, {"before": {…}, …}. 0; -EBADMSG; -ENOMEM. */
int environment_parse_before(const char *document, struct environment **ret);

/*
 * Flags of a run between two snapshots, appended to a JSON array under construction (thresholds in noise.c):
 *
 *      noisy:steal, noisy:interrupts, noisy:throttled  on the measured CPUs; the other noisy:… see disturbance.h
 *      environment-changed:KEY                         a fact that is another one afterwards, or that
 *                                                      environment_observe() saw as another; "cpus": one came or went
 *      placement:shared-cpus, placement:shared-cores, placement:memory-elsewhere
 *                                                      flags of placement_resolve() (struct run_placement)
 *
 * Where an end is not pinned every CPU is a measured one. Flags that the run has already (found) are not listed again.
 */
struct json_writer;
struct flags_found {
        const char *const *flags;
        size_t n;
        bool one_end; /* the workload has no second agent, which is not pinned either */
};
void environment_flags(const struct environment *before, const struct environment *after,
                       const struct run_placement *placement, const struct flags_found *found,
                       struct json_writer *flags);

/* "environment-differs:KEY", appended likewise: what is another than at the beginning of the experiment's first run
 * (environment_parse_before()), so that a change between two runs is known of each run after it, even if it is undone
 * later. A fact that the version of that run did not have is left out. */
void environment_differs(const struct environment *first, const struct environment *e, struct json_writer *flags);

/* A spec's preconditions: 0, or -EPERM with a sentence that names the setting, its value and how to set it; other errno
 * when the root cannot be opened. */
struct spec_require;
int environment_check(const char *root, const struct spec_require *require, char *ret_detail /* [DETAIL_MAX] */);
/* The facts that a spec requires, against this snapshot and this build: 0, or -EPERM with a sentence as above. */
struct build;
struct spec;
int environment_check_facts(const struct environment *e, const struct build *b, const struct spec *spec,
                            char *ret_detail /* [DETAIL_MAX] */);
