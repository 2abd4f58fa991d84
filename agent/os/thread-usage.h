/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the kernel counts of each thread: CPU time, context switches, faults, migrations.
 *
 * Source: man 5 proc (task/TID/stat, status, sched), man 3 pthread_getcpuclockid.
 */

#include "schema/measure/counters.h"

#include <sys/types.h>

/* *u += the kernel's counters of a thread of this process since its start: CPU time, switches, faults, migrations. 0 or
 * negative errno. */
int thread_usage_add(struct usage *u, pid_t tid);
