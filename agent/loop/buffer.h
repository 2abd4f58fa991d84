/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_BUFFER_H
#define IPCLAB_AGENT_BUFFER_H

/*
 * Private memory that carries a worker's messages. All of it comes from here, so that all of it lies where the
 * placement puts buffers: under the policy that the set-up gives for them, else under the thread's own, first touched
 * by the thread that owns it. The proof lists it as "buffer".
 */

#include "agent/base/worker.h"

/* Pages for `length` bytes, every one of them touched; in the worker's own thread. To be unmapped with munmap(2).
 * 0; negative errno with w->failure. */
int buffer_map(struct worker *w, size_t length, unsigned char **ret);

#endif
