/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_BUFFER_H
#define IPCLAB_AGENT_BUFFER_H

/*
 * Private memory that carries a worker's messages. All of it comes from here, so that all of it lies where the
 * placement puts buffers: under the policy that the set-up gives for them, else under the thread's own, first touched
 * by the thread that owns it. The proof lists it as "buffer".
 */

#include "agent/base/worker.h"

/* Pages for `length` bytes, every one of them touched; in the worker's own thread. From the size of a huge page on they
 * begin at a multiple of it, so that whether the kernel uses such does not depend on where they happen to lie. They are
 * a mapping of their own, as inaccessible pages lie before and behind it: the proof tells page sizes by mapping.
 * 0; negative errno with w->failure. */
int buffer_map(struct worker *w, size_t length, unsigned char **ret);
/* NULL-safe. */
void buffer_unmap(unsigned char *memory, size_t length);

#endif
