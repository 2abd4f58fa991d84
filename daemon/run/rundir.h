/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RUNDIR_H
#define IPCLAB_DAEMON_RUNDIR_H

/*
 * RUNTIME_DIR/runs/run-ID: where a run's agents may make files and FIFOs. It belongs to the agents' user, who may put
 * anything there, so nothing in it is followed.
 */

#include <stdint.h>
#include <sys/types.h>

struct rundir_root; /* RUNTIME_DIR/runs */

/* Makes RUNTIME_DIR/runs as needed and empties it: what a dead daemon left. 0; -EBUSY while another
 * daemon uses it; negative errno; logged. */
int rundir_root_new(struct rundir_root **ret, const char *runtime_dir);
/* Removes it. NULL-safe. */
void rundir_root_free(struct rundir_root *root);

/* A new, empty directory of this user, mode 0700, and an O_PATH descriptor of it. (uid_t) -1: the daemon's own. */
int rundir_new(struct rundir_root *root, int64_t run_id, uid_t uid, gid_t gid, int *ret_fd);
/* With all that is in it. 0 or negative errno, logged. */
int rundir_remove(struct rundir_root *root, int64_t run_id);

#endif
