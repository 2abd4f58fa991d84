/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * RUNTIME_DIR/runs/run-ID: where a run's agents may make files and FIFOs. It belongs to the agents' user, who may put
 * anything there, so nothing in it is followed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rundir_root; /* RUNTIME_DIR/runs */

/* Makes RUNTIME_DIR/runs as needed. Directories that a dead daemon left in it are moved aside and removed in the
 * background; a failed removal is not an error. 0; -EBUSY while another daemon uses it; -EPERM: it is another user's;
 * negative errno; logged. */
int rundir_root_new(struct rundir_root **ret, const char *runtime_dir);
/* Waits for removals for some seconds. RUNTIME_DIR/runs itself stays, unless RUNTIME_DIR is another user's. NULL-safe.
 */
void rundir_root_free(struct rundir_root *root);

/* A new, empty directory of this user, mode 0700, and an O_PATH descriptor of it. (uid_t) -1: the daemon's own.
 * RUNTIME_DIR and RUNTIME_DIR/runs are made anew where they were removed. */
int rundir_new(struct rundir_root *root, int64_t run_id, uid_t uid, gid_t gid, int *ret_fd);
/* Its name is free when this returns; its content, however large, is removed in the background. 0 or negative
 * errno, logged. */
int rundir_remove(struct rundir_root *root, int64_t run_id);

/* What was made in the directory of one run, until rundir_unwatch(): names, and among them directories, in which more
 * could be made unseen. It counts all that ever were, as a file that is removed may still have its bytes. */
struct rundir_made {
        unsigned names, directories;
};

/* Begins to count for a directory of rundir_new(). The descriptor becomes readable when there is something to be taken
 * with rundir_take_made(), and is the root's. Negative errno: the kernel cannot watch directories, or no more. */
int rundir_watch(struct rundir_root *root, int run_dir_fd);
/* Adds what was made since, at most some hundred names at once. UINT_MAX names: more than the kernel could note. */
void rundir_take_made(struct rundir_root *root, struct rundir_made *made);
void rundir_unwatch(struct rundir_root *root);

/* Whether nothing is being removed; waits for that until the deadline on CLOCK_MONOTONIC, 0: does not wait. */
bool rundir_settle(struct rundir_root *root, uint64_t deadline_ns);
/* How many directories could not be removed since the start; if any, one of them and the reason in `words`. In any
 * thread. */
unsigned rundir_left(struct rundir_root *root, char *words, size_t size);
