/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What agents inherit from the daemon, and so from whoever started it, and what each of their turns and system calls
 * costs by: facts of the environment. Each agent's own is in its "effective", and is the same.
 */

#define INHERITED_REASON_MAX 160

/* As scheduling_text() has it, of the threads that move data: run/spawn/spawn-child.c raises an agent's priority where
 * it may, and agent/main.c lowers it to nice 0 for them. 0; -errno with words in ret. */
int inherited_scheduling(char ret[static INHERITED_REASON_MAX]);
/* The same of the seccomp mode: a filter runs at each system call. */
int inherited_seccomp(char ret[static INHERITED_REASON_MAX]);
