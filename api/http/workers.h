/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_WORKERS_H
#define IPCLAB_API_WORKERS_H

/*
 * A few threads that run handlers, so that one that waits (for a commit, for a long query) holds up no connection but
 * its own: libmicrohttpd serves all of a listener's connections in one thread.
 */

struct workers;

struct job {
        struct job *next;
        void (*run)(struct job *job); /* frees the job or knows who does */
};

/* The calling thread runs below what is measured from here on. Where that may not be it stays as it is. */
void workers_lower_priority(void);

int workers_new(struct workers **ret, unsigned n);
/* Runs what is queued, then joins the threads. NULL-safe. */
void workers_free(struct workers *w);
void workers_push(struct workers *w, struct job *job);

#endif
