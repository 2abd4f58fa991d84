/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * clone3(2), and clone(2) where a filter forbids the former: systemd's RestrictNamespaces= and many containers refuse
 * it with ENOSYS, as a filter cannot read its arguments.
 */

#include <stdint.h>
#include <sys/types.h>

/* As fork(2), with a pidfd: 0 in the child. `flags` are CLONE_NEW*. cgroup_fd -1: the caller's cgroup. The child is not
 * yet in the cgroup when *ret_joins is the descriptor and not -1: then process_join() is its first duty. -errno. */
pid_t process_clone(uint64_t flags, int cgroup_fd, int *ret_pidfd, int *ret_joins);

/* In the child. Only system calls. 0 or errno. */
int process_join(int cgroup_fd);
