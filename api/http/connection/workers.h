/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A few threads that run handlers, so that one that waits (for a commit, for a long query) blocks no connection but its
 * own: libmicrohttpd serves all of a listener's connections in one thread.
 *
 * Slow jobs may use all threads but one, so that the others never wait for them, and where these are three or more, the
 * slow jobs of one client all of them but one. The next job is that of the client whose jobs have the fewest threads.
 */

#include <stdbool.h>

struct workers;

struct job {
        struct job *next;
        void (*run)(struct job *job); /* frees the job or hands it on */
        const void *client;           /* whose it is; only compared */
        bool slow;
};

/* Lowers the calling thread's priority below the measured threads'; without effect where that is not permitted. */
void workers_lower_priority(void);

int workers_new(struct workers **ret, unsigned n);
/* Runs what is queued, then joins the threads. NULL-safe. */
void workers_free(struct workers *w);
void workers_push(struct workers *w, struct job *job);
