/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_FORK_PEER_H
#define IPCLAB_AGENT_FORK_PEER_H

/*
 * Memory shared with a forked peer: a mapping of MAP_SHARED | MAP_ANONYMOUS has no name and no descriptor, and only a
 * process that is cloned after its creation can share it. So the program first maps it and then forks the run's other
 * agent, its peer. The forked peer is a child of the program's parent (CLONE_PARENT), which supervises both alike. It
 * sets its own CPUs and memory policy before anything else, and dies with its parent like any agent. A page that the
 * program wrote before the clone (relocations, libc's data; a dozen) stays in place until the forked peer writes to it;
 * stack, buffers and rings of the loops are created after the clone.
 */

#include <stdbool.h>
#include <stddef.h>

struct forked_memory {
        unsigned char *memory; /* NULL: the agent was started alone */
        size_t length;
        bool huge;
};

/* Still single-threaded, with the descriptors of schema/protocol/protocol.h: maps `bytes` (a decimal number) and forks
 * the peer. Returns in both processes, each with its own descriptors in place: 0 in the program, 1 in the forked peer;
 * negative errno after the reason was reported to the parent, or when the parent is gone. */
int fork_peer(const char *bytes, bool huge, struct forked_memory *ret);

#endif
