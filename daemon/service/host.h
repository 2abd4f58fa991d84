/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The service as the rest of the daemon sees it: main makes it, and the scheduler notifies it of changes. Everything
 * here belongs to the main thread; the functions for other threads are in daemon/service/service.h.
 */

#include "daemon/host/topology.h"
#include "daemon/service/operation.h"
#include "daemon/store/store.h"

#include <systemd/sd-event.h>

struct agent_identity;
struct build;
struct queue_host;
struct rundir_root;
struct service;

/* Calls and values that the service needs from main, on the main thread. The first two are called after the commit. */
struct service_hooks {
        void (*submitted)(void *userdata);                      /* the queue has a new run */
        void (*cancel_running)(void *userdata, int64_t run_id); /* stop this run, finish it as cancelled */
        /* Have the topology read again if the machine has changed, unless a run is under way. 0; -EBUSY: a thread holds
         * it, to be called again; negative errno, with the path in the log. NULL: it stays as it is. */
        int (*look_at_machine)(void *userdata);
        /* The path of the unix socket, if it no longer leads to it; else NULL. In any thread. NULL: not known. */
        const char *(*lost_socket)(void *userdata);
        void *userdata;
        const struct topology *topology;     /* must outlive the service */
        const struct queue_host *queues;     /* must outlive it too; NULL: not known */
        const struct agent_identity *agents; /* likewise: the user of the agents */
        const struct build *build;           /* likewise: what measures; NULL: not known */
        uint64_t memlock_bytes;              /* that an agent's sends may pin; 0: not known */
        bool rings_are_locked;               /* memory, by the kernel; false: not known, too */
        const char *root;                    /* "" or a captured tree; copied */
        bool host_tuning;                    /* `tune` is allowed */
        const char *runtime_dir;             /* where runs have their files, NULL: not known; copied */
        struct rundir_root *rundirs;         /* gives those that could not be removed; must outlive it; NULL: none */
        uint64_t run_timeout_ns;             /* no run may take longer; 0: no limit */
        /* Limits of the queue and the database when an experiment is submitted; 0: not limited. */
        uint64_t max_queued_experiments, max_queued_runs, max_database_bytes;
};

/* The calling thread becomes the service's main thread; `store` is its writing connection and stays the caller's. */
int service_new(struct service **ret, sd_event *event, struct store *store, const struct service_hooks *hooks);
/* From here on every call that waits or comes is answered with 503. To be called before api_stop(). Idempotent. */
void service_stop(struct service *s);
/* To be called after api_stop(), when no more calls come. NULL-safe; stops too. */
void service_free(struct service *s);

/* The scheduler has committed a change of this experiment: wakes its subscribers. */
void service_changed(struct service *s, int64_t experiment_id);
/* Sets the operation of the event that the main loop dispatches; the last call counts. */
void service_doing(struct service *s, enum service_operation operation);
/* The event held the main loop that long, and used so much CPU time. */
void service_dispatched(struct service *s, uint64_t ns, uint64_t cpu_ns);
/* Sets the current run; 0, 0, 0 when none runs. Housekeeping of the database waits for the latter, or for
 * service_measured(). */
void service_set_status(struct service *s, int64_t experiment_id, int64_t run_id, int64_t started_at_ms);
/* The current run is not measured any more, but its end cannot be stored yet. */
void service_measured(struct service *s);
/* Sets the problem that /health reports while a setting of the host waits for its restore; "" when none does. */
void service_set_pending_restore(struct service *s, const char *words);
