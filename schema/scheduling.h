/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A process's scheduling and seccomp mode in words: those of each agent (agent/os/scheduling.c) and the fact of the
 * environment that agents inherit them from (daemon/host/environment/inherited.c) are compared with each other.
 *
 * Source: man 7 sched, man 2 prctl (PR_GET_SECCOMP).
 */

#include <stdbool.h>
#include <stddef.h>

#define SCHEDULING_TEXT_MAX 64

/* "other, nice 0", "fifo, priority 10": as sched_getscheduler(), sched_getparam() and getpriority() have it. False, and
 * words why in ret: the policy is not known here. */
bool scheduling_text(int policy, int priority, int nice, char ret[static SCHEDULING_TEXT_MAX]);
/* "disabled", "strict", "filter"; NULL: it is not known here. */
const char *seccomp_mode_name(int mode);
