/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STORE_RESERVE_H
#define IPCLAB_DAEMON_STORE_RESERVE_H

/*
 * Space on the disk that is reserved for when it is full: a file of RESERVE_BYTES beside the database. Deleting an
 * experiment, and starting, need some space themselves; the removal of this file frees it.
 */

#include <stdbool.h>

#define RESERVE_FILE "ipclab.reserve"
#define RESERVE_BYTES (16u << 20)

/* Makes it where it is missing, and the disk has three times as much free. 0, or a negative errno: there is none. */
int reserve_keep(const char *dir);
bool reserve_release(const char *dir); /* false: there is none */

#endif
