/* SPDX-License-Identifier: MIT */
#pragma once

/* Keeps the daemon's own threads off the CPUs under measurement, wherever the machine has others. */

#include "daemon/run/spawn/affinity.h"

/* Moves every thread of this process to the given CPUs. Threads that start later inherit from their maker. 0; negative
 * errno of the first that could not be moved (the others were). */
int housekeeping_move(const struct affinity *to);
