/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_USAGE_H
#define IPCLAB_AGENT_USAGE_H

/*
 * What a worker did and cost, beside its messages: parts, interruptions, context switches, faults, CPU time,
 * migrations. These are the kernel's own accounts, kept for every thread anyway and read from outside, so that the loop
 * is not disturbed; the perf events of the same names would count the same, at a price (schema/measure/perf.h). What
 * the kernel's threads for the worker's rings (kernel-threads.h) used, waited and were moved is the worker's.
 *
 * Source: man 5 proc (task/TID/stat, status, sched), man 3 pthread_getcpuclockid.
 */

#include "schema/measure/counters.h"

#include <stdint.h>
#include <sys/types.h>

struct agent;

/* The counters of a worker since its thread began, with its rings' threads as kernel_threads_look() saw them last. 0;
 * negative errno with a->failure. */
int usage_take(struct agent *a, uint32_t thread, struct usage *ret);
/* *u += what the kernel accounted to a thread of this process since it began: CPU time, switches, faults,
 * migrations. 0 or negative errno. */
int usage_add_thread(struct usage *u, pid_t tid);

#endif
