/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_MACHINE_H
#define IPCLAB_DAEMON_SERVICE_MACHINE_H

/*
 * Whether the machine was in the same state in two experiments, by the calibration probes before their runs
 * (daemon/result/probes.h): each run has one value of each operation on each set of CPUs, the median of its rounds, and
 * the values of both experiments are compared as the figures of a comparison are, by exact rank-sum tests that are
 * corrected over all of them (Holm). The state differs where a test finds a difference and the ratio is further from 1
 * than the operation's tolerance.
 */

#include "daemon/result/probes.h"
#include "daemon/service/compare.h"

#define MACHINE_CPU_SETS_MAX 8u /* sets of CPUs that are compared: the first of the baseline */

/* The caller must free ret->items. 0; negative errno with *r. */
int machine_compare(struct service *s, const int64_t experiments[SIDE_COUNT], struct machine *ret, struct refusal *r);

#endif
