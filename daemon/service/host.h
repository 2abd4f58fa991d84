/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_HOST_H
#define IPCLAB_DAEMON_SERVICE_HOST_H

/*
 * The service as the rest of the daemon sees it: made by main, told by the scheduler what happens. Everything here
 * belongs to the main thread; what other threads may call is in daemon/service/service.h.
 */

#include "daemon/host/topology.h"
#include "daemon/service/service.h"
#include "daemon/store/store.h"

#include <systemd/sd-event.h>

struct rundir_root;

/* What the service asks of its host, on the main thread. The first two come after the commit. */
struct service_hooks {
        void (*submitted)(void *userdata);                      /* there is something new in the queue */
        void (*cancel_running)(void *userdata, int64_t run_id); /* stop this run, finish it as cancelled */
        /* Have the topology read again if the machine has changed, unless a run is under way. 0; negative errno, with
         * the path in the log. NULL: it stays as it is. */
        int (*look_at_machine)(void *userdata);
        void *userdata;
        const struct topology *topology;     /* must outlive the service */
        const struct queue_host *queues;     /* must outlive it too; NULL: not told */
        const struct agent_identity *agents; /* likewise: whom agents run as */
        uint64_t memlock_bytes;              /* that an agent's sends may pin; 0: not told */
        const char *root;                    /* "" or a captured tree; copied */
        bool host_tuning;                    /* `tune` is allowed */
        const char *runtime_dir;             /* where runs have their files, NULL: not told; copied */
        struct rundir_root *rundirs;         /* what of these could not be removed; must outlive it; NULL: not told */
        uint64_t run_timeout_ns;             /* no run may take longer; 0: not told */
        /* What may wait and be stored when an experiment is submitted; 0: not limited. */
        uint64_t max_queued_experiments, max_queued_runs, max_database_bytes;
};

/* The calling thread becomes the service's main thread; `store` is its writing connection and stays the caller's. */
int service_new(struct service **ret, sd_event *event, struct store *store, const struct service_hooks *hooks);
/* From here on every call that waits or comes is answered with 503. To be called before api_stop(). Idempotent. */
void service_stop(struct service *s);
/* After api_stop(): nobody calls any more. NULL-safe; stops too. */
void service_free(struct service *s);

/* The scheduler has committed a change of this experiment: wakes its subscribers. */
void service_changed(struct service *s, int64_t experiment_id);
/* A source of the main loop took that long. */
void service_dispatched(struct service *s, uint64_t ns);
/* What is running now; 0, 0, 0 when nothing is. Housekeeping of the database waits for the latter, or for
 * service_measured(). */
void service_set_status(struct service *s, int64_t experiment_id, int64_t run_id, int64_t started_at_ms);
/* What is running is not measured any more, but its end cannot be written down yet. */
void service_measured(struct service *s);
/* Words for /health while a setting of the host is not as it was found; "" when nothing is owed. */
void service_set_owed(struct service *s, const char *words);

#endif
