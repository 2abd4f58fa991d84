/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Directories, made with those above them. Those that others have written to: opened without following anything, and
 * removed however deep and wide they are, with a stack and a number of descriptors that do not grow with them.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes the directory, where it is missing, and its missing parents with mode 0755. 0 or negative errno. */
int tree_make(const char *path, mode_t mode);

/* One component below `dir`; a symbolic link or a mount is an error, whoever put it there. A descriptor that exec
 * closes; -ELOOP, -EXDEV, negative errno. */
int tree_open_below(int dir, const char *name, uint64_t flags);

/* Removes `name` of the directory `dir` with everything below it. Directories are made the caller's own on the way,
 * with permissions for nobody else, so that a process of another user that still has a descriptor of one cannot add to
 * it. Ends early when *quit becomes true. 0, also when there was nothing; -ECANCELED; -ETIMEDOUT at deadline_ns on
 * CLOCK_MONOTONIC; negative errno of the first entry that could not be removed, after all that could. Takes as long as
 * it takes: not for the main loop. */
int tree_remove(int dir, const char *name, const atomic_bool *quit, uint64_t deadline_ns);
