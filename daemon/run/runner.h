/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RUNNER_H
#define IPCLAB_DAEMON_RUNNER_H

/*
 * One run, from its agents' start to the last trace of them removed. The scheduler makes one at a time, gets its
 * samples and its verdict. The runner knows neither the store nor the queue.
 */

#include "daemon/run/order.h"
#include "daemon/run/runner-host.h"
#include "daemon/store/records.h"

struct runner;

struct runner_ops {
        /* Takes the sample over. */
        void (*sample)(void *userdata, struct sample_record *sample);
        /* The last call, from the event loop: nothing of the run is left. The verdict is taken over; the runner may be
         * freed. */
        void (*ended)(void *userdata, struct run_verdict *verdict);
};

/* A run that cannot even start ends through ops->ended, too. 0; -ENOMEM or the event loop's errno. */
int runner_new(struct runner **ret, const struct runner_host *host, const struct run_order *order,
               const struct runner_ops *ops, void *userdata);
/* Ends it as cancelled or interrupted; ops->ended follows. `words` go to the run's error, NULL for none. */
void runner_stop(struct runner *r, enum state as, const char *words);
/* Kills agents that are still alive. NULL-safe. */
void runner_free(struct runner *r);

#endif
