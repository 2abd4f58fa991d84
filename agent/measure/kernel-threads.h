/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_AGENT_KERNEL_THREADS_H
#define IPCLAB_AGENT_KERNEL_THREADS_H

/*
 * Threads that the kernel makes in this process to work for a worker's rings (iou-wrk-TID): what they do and cost is
 * the worker's, and where they run its work is done. The leader looks for them before each reading of the counters.
 * They come and go; what one that is gone had used when it was last seen stays in the sum, which never goes back. (They
 * end when they have had nothing to do for seconds: what the last look did not see of one is next to nothing.)
 *
 * Their names have the worker's number in the first PID namespace. In another one nobody can tell whose they are where
 * there are several workers: the first has their account then, and the agent's sum is right; but each is told in
 * `ring_ns` that they worked, as it may have been for it.
 *
 * Source: Linux io_uring/io-wq.c (io_wq_worker); man 5 proc (task/TID/stat); man 7 pid_namespaces.
 */

#include "agent/measure/usage.h"

#include <stdint.h>
#include <sys/types.h>

struct agent;
struct kernel_threads;

/* Looks for them, where the engine makes any; what was seen is in a->kernel_threads, and their CPUs among those that
 * the leader saw the worker on. 0; negative errno with a->failure. */
int kernel_threads_look(struct agent *a);
/* Of the worker's threads, together, up to the last look: what usage_add_thread() tells of each. */
struct usage kernel_threads_usage(const struct agent *a, uint32_t worker);
struct kernel_threads *kernel_threads_free(struct kernel_threads *k); /* NULL-safe; returns NULL */

#define KERNEL_THREAD_OF_NOBODY UINT32_MAX /* nobody can tell for which worker it works */

/* A look in its parts: what was noted is all that there is. NULL: no memory; the same of a note: -ENOMEM. */
struct kernel_threads *kernel_threads_new(uint32_t n_workers);
void kernel_threads_begin(struct kernel_threads *k);
int kernel_threads_note(struct kernel_threads *k, pid_t tid, uint32_t worker, const struct usage *now);
void kernel_threads_end(struct kernel_threads *k);

#endif
