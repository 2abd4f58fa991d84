/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The workers' threads (agent/base/worker.h): their creation, start, rest and end. The main thread runs worker 0 and
 * starts the others; the leader commands them.
 */

#include <stdint.h>

struct agent;

/* Installs the kick's handler and ignores SIGPIPE; before any thread starts. 0 or negative errno. */
int workers_init_signals(void);

/* Allocates the workers of the agent's set-up: no thread, no buffer yet. 0; negative errno with a->failure. */
int workers_new(struct agent *a);
/* Frees them. The threads must have ended. */
void workers_free(struct agent *a);

/* The main thread's part: starts the other workers, is worker 0, joins the others. Returns after all have received
 * WORKER_QUIT. */
void workers_main(struct agent *a);

/* For how long the other end, and this end's leader, wait until all workers have prepared themselves: ns. */
uint64_t workers_prepare_ns(const struct agent *a);

/* The leader's part. workers_go() begins the loops at start_ns with each worker's current limit. */
void workers_go(struct agent *a, uint64_t start_ns);
/* That worker takes a->probe by a->probe_order; the others rest. */
void workers_probe(struct agent *a, uint32_t thread);
void workers_quit(struct agent *a);
