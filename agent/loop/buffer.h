/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Private memory that carries a worker's messages. All of it is allocated here, so that the placement of buffers
 * applies to all of it: the policy that the set-up gives for them, else the thread's own. The thread that owns it
 * touches it first. The proof lists it as "buffer".
 */

#include "agent/base/worker.h"

/* Maps pages for `length` bytes and touches each of them; in the worker's own thread. They begin at a multiple of
 * the largest power of two within their length, up to a huge page, so that the kernel's use of larger pages, of
 * whatever size, does not depend on the address. Inaccessible pages before and after keep the buffer a mapping of its
 * own, as the proof reports page sizes by mapping. 0; negative errno with w->failure. */
int buffer_map(struct worker *w, size_t length, unsigned char **ret);
/* NULL-safe. */
void buffer_unmap(unsigned char *memory, size_t length);
