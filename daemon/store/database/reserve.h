/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Space on the disk that is reserved for when it is full: a file beside the database. Starting, and cancelling and
 * deleting experiments, need some space themselves, which this file gives up a step at a time: other programs may fill
 * what one step has freed.
 */

#include <stdbool.h>

#define RESERVE_FILE "ipclab.reserve"
#define RESERVE_BYTES (16u << 20)     /* at most; a third of what the disk has for it, where that is less */
#define RESERVE_STEP_BYTES (1u << 20) /* it is of whole steps */

/* Makes it, or makes it longer, where the disk has room. 0, or a negative errno: it is as it was. */
int reserve_keep(const char *dir);
/* Gives up a step of it; false: there is none left. */
bool reserve_release(const char *dir);
