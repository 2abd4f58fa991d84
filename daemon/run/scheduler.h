/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SCHEDULER_H
#define IPCLAB_DAEMON_SCHEDULER_H

/*
 * One run after the other: takes the next from the store, has it run, writes down what came of it. On the main thread.
 */

#include "daemon/run/runner.h"
#include "daemon/service/host.h"
#include "daemon/store/store.h"

struct scheduler;

struct scheduler_options {
        sd_event *event;
        struct store *store;
        const struct runner_host *host; /* must outlive the scheduler, as the store must */
        const char *root;               /* "" or a captured tree; must outlive it too */
        uint64_t run_timeout_ns;
        bool host_tuning;
        /* After scheduler_stop(), when nothing runs any more and the bookkeeping is done. */
        void (*stopped)(void *userdata);
        void *userdata;
};

/* Also settles with the store what an earlier daemon left running. 0 or negative errno. */
int scheduler_new(struct scheduler **ret, const struct scheduler_options *o);
/* The service is made with the scheduler's hooks, so it comes second. NULL takes it away again. */
void scheduler_set_service(struct scheduler *s, struct service *service);
/* NULL-safe. */
void scheduler_free(struct scheduler *s);

/* There may be something to do. */
void scheduler_kick(struct scheduler *s);
/* Reads the topology again if the machine has changed, as before each run: for who is about to tell of it, or to hold
 * something against it. Nothing while a run is under way, whose picture stays. 0; negative errno with the path in the
 * log. */
int scheduler_look_at_machine(struct scheduler *s);
/* Ends this run as cancelled, if it is the one that runs. */
void scheduler_cancel_run(struct scheduler *s, int64_t run_id);
/* No new runs; the running one is interrupted. o->stopped follows. */
void scheduler_stop(struct scheduler *s);

#endif
