/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_TWIN_H
#define IPCLAB_AGENT_TWIN_H

/*
 * Memory shared by descent: a mapping of MAP_SHARED | MAP_ANONYMOUS has no name and no descriptor, and only a process
 * that is cloned after it was made can have it. So the program maps it and clones its twin before it is anything else.
 * The twin is a child of the program's parent (CLONE_PARENT), which watches and ends both alike. It sets its own CPUs
 * and memory policy before it does anything, and dies with its parent like any agent. A page that the program wrote
 * before the clone (relocations, libc's data; a dozen) stays where it was until the twin writes to it; what a loop
 * touches, stack and buffers and rings, is made after.
 */

#include <stdbool.h>
#include <stddef.h>

struct twin_memory {
        unsigned char *memory; /* NULL: the agent was started alone */
        size_t length;
        bool huge;
};

/* Still single-threaded, with the descriptors of schema/protocol/protocol.h: maps `bytes` (a decimal number) and
 * clones. Returns in both processes, each with its own descriptors in place: 0 in the first, 1 in the twin; negative
 * errno where the parent was told why, or is gone. */
int twin_begin(const char *bytes, bool huge, struct twin_memory *ret);

#endif
