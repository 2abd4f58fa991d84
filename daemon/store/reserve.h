/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STORE_RESERVE_H
#define IPCLAB_DAEMON_STORE_RESERVE_H

/*
 * Room on the disk that is kept for when it is full: a file of RESERVE_BYTES beside the database. To delete an
 * experiment, and to start, takes some room itself; it is had by giving this up.
 */

#include <stdbool.h>

#define RESERVE_FILE "ipclab.reserve"
#define RESERVE_BYTES (16u << 20)

/* Makes it where it is missing, and the disk has three times as much free. 0, or a negative errno: there is none. */
int reserve_keep(const char *dir);
bool reserve_release(const char *dir); /* false: there is none */

#endif
