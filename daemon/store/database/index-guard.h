/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * SQLite maps the index of the log (ipclab.db-shm). Once the file is cut off in place, the next access to the mapping
 * is SIGBUS, which would end the daemon. The handler puts a page of zeros there instead, and from then on this process
 * neither reads nor writes through an index, since what it would find there is wrong. The next start makes a new one
 * from the log. A thread that uses the store must not block SIGBUS. Used by pages.c and db.c.
 */

#include <stdbool.h>

/* Once per process. 0 or a negative errno. */
int index_guard_install(void);
/* Whether there was a SIGBUS. From any thread. */
bool index_guard_is_lost(void);
