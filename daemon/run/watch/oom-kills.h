/* SPDX-License-Identifier: MIT */
#pragma once

/* The machine's counter of processes that the kernel has killed for lack of memory, of the machine or of a cgroup: an
 * agent's SIGKILL does not show its reason. Called by agent-link.c at an agent's start and end. */

#include <stdbool.h>
#include <stdint.h>

/* False: not known; kernels before 4.13 have no such counter. */
bool oom_kills(uint64_t *ret);
