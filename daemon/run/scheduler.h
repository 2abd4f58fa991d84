/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Executes one run after the other: takes the next from the store, runs it and stores its outcome. Main thread only.
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

/* Also ends in the store the runs that an earlier daemon left running. 0 or negative errno. */
int scheduler_new(struct scheduler **ret, const struct scheduler_options *o);
/* The service is made with the scheduler's hooks, so it comes second. NULL takes it away again. */
void scheduler_set_service(struct scheduler *s, struct service *service);
/* NULL-safe. */
void scheduler_free(struct scheduler *s);

/* To be called when the queue may have a new run. */
void scheduler_kick(struct scheduler *s);
/* Reads the topology again if the machine has changed, as before each run; for callers that are about to report it or
 * to check a spec against it. Does nothing during a run, whose topology stays. 0; negative errno, path logged. */
int scheduler_look_at_machine(struct scheduler *s);
/* Ends this run as cancelled, if it is the one that runs. */
void scheduler_cancel_run(struct scheduler *s, int64_t run_id);
/* Starts no new runs; the running one is interrupted. o->stopped follows. */
void scheduler_stop(struct scheduler *s);
