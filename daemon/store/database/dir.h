/* SPDX-License-Identifier: MIT */
#pragma once

/* The state directory, for the files that lie beside the database. */

#include <sys/types.h>

/* A descriptor; -errno. */
int dir_open(const char *dir);
/* A descriptor of the file of this name, to be written, which is made where there is none; flags: O_TRUNC, or 0;
 * -errno. Root gives it to the owner of the directory, which has to open it later: an administrator may adopt a
 * database as root, and the service is not root. */
int dir_create(int dir_fd, const char *name, int flags, mode_t mode);
