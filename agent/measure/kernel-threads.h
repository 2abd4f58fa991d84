/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Threads that the kernel creates in this process to serve a worker's rings (iou-wrk-TID): their cost is added to the
 * worker's, and their CPUs to those where it ran. The leader scans for them before each reading of the counters. The
 * last reading of a thread that has ended stays in the sum, which never decreases. (They end after seconds without
 * work, so that the time after the last reading is negligible.)
 *
 * Their names contain the worker's TID in the initial PID namespace. In another namespace, with several workers, their
 * worker is unknown: worker 0 then has their counters, so that the agent's sum is right, and `ring_ns` of each worker
 * includes their time, as they may have worked for it.
 *
 * Source: Linux io_uring/io-wq.c (io_wq_worker); man 5 proc (task/TID/stat); man 7 pid_namespaces.
 */

#include "schema/measure/counters.h"

#include <stdint.h>
#include <sys/types.h>

struct agent;
struct kernel_threads;

/* Scans for them, where the engine has any, into a->kernel_threads, and adds their CPUs to those where the leader
 * observed the worker. 0; negative errno with a->failure. */
int kernel_threads_scan(struct agent *a);
/* The sum of thread_usage_add() over the worker's kernel threads, up to the last scan. */
struct usage kernel_threads_usage(const struct agent *a, uint32_t worker);
struct kernel_threads *kernel_threads_free(struct kernel_threads *k); /* NULL-safe; returns NULL */

#define KERNEL_THREAD_OF_NOBODY UINT32_MAX /* the worker that it serves is unknown */

/* The steps of a scan: kernel_threads_add() is called for every thread found. NULL or -ENOMEM: no memory. */
struct kernel_threads *kernel_threads_new(uint32_t n_workers);
void kernel_threads_begin(struct kernel_threads *k);
int kernel_threads_add(struct kernel_threads *k, pid_t tid, uint32_t worker, const struct usage *now);
void kernel_threads_end(struct kernel_threads *k);
