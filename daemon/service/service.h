/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_SERVICE_H
#define IPCLAB_DAEMON_SERVICE_H

/*
 * The daemon as api/ sees it: submit, cancel, forget, read, subscribe. The only header of daemon/ (with records.h)
 * that api/ may include. Every function may be called from any thread.
 *
 * Changes are carried out on the daemon's main thread; the caller waits for the answer until the deadline, and then
 * gets 503 (the change may still happen: that is what Idempotency-Key is for). Reads use a read-only connection of
 * their own to the same database, so a long export never holds the runner up. What is read back to the client was
 * committed before.
 *
 * Functions return 0, or a negative errno with *r filled for the client (status, code, detail).
 */

#include "daemon/store/records.h"
#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct service;

/* Parses, checks against this host, commits, queues. *ret_created is false when the idempotency key (NULL: none; 1 to
 * 200 visible ASCII characters) had been seen with the same body: the id is the first one's. With another body: 422. */
int service_submit(struct service *s, const char *body, size_t length, const char *idempotency_key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r);
int service_cancel(struct service *s, int64_t id, struct refusal *r); /* 404; 409 when it is finished */
int service_delete(struct service *s, int64_t id, struct refusal *r); /* 404; 409 while it runs */

/* One record; 404 in *r when there is none. */
int service_experiment(struct service *s, int64_t id, struct experiment_record *ret, struct refusal *r);
int service_run(struct service *s, int64_t id, struct run_record *ret, struct refusal *r);

/* Lists call `visit` per record, in order, and stop when it returns nonzero (which they return). The record is the
 * list's and lives for the call. */
struct experiment_query {
        struct experiment_filter filter;
        int64_t before_id; /* newest first, ids below this; 0 = from the newest */
        uint32_t limit;
};
int service_experiments(struct service *s, const struct experiment_query *q,
                        int (*visit)(void *userdata, const struct experiment_record *e), void *userdata,
                        struct refusal *r);
/* Where that list ends: the id of its last experiment, 0 when it is empty, and whether there are more below it. Reads
 * no specification. */
int service_experiments_end(struct service *s, const struct experiment_query *q, int64_t *ret_last, bool *ret_more,
                            struct refusal *r);

/* Runs of an experiment by position, from `from_position` on. */
int service_runs(struct service *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
                 int (*visit)(void *userdata, const struct run_record *run), void *userdata, struct refusal *r);

/* Samples of an experiment (run_id 0) or of one run, by change, from after_change (0: all), `limit` at most. */
int service_samples(struct service *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct sample_record *sample), void *userdata,
                    struct refusal *r);

/* A row per point, in the points' order: `limit` at most, from the point `from` on, which are counted from 0. */
int service_results(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                    int (*visit)(void *userdata, const struct result_record *row), void *userdata, struct refusal *r);

/* Everything that changed after a sequence number, oldest first, at most `limit` records: the event stream. Exactly one
 * of the three is non-NULL per call. experiment_id 0: every experiment and the runs that have been started (and no
 * samples). 404 when there is no such experiment (any more). */
int service_changes(struct service *s, int64_t experiment_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct experiment_record *e, const struct run_record *run,
                                 const struct sample_record *sample),
                    void *userdata, struct refusal *r);
/* The newest sequence number. */
int service_last_change(struct service *s, int64_t *ret, struct refusal *r);

/* `wake` is called, on the daemon's main thread and soon after the commit, whenever something changed (experiment_id
 * 0: anywhere). It must only wake somebody. After service_unsubscribe() returns it is not called any more. */
struct subscription;
int service_subscribe(struct service *s, int64_t experiment_id, void (*wake)(void *userdata), void *userdata,
                      struct subscription **ret);
void service_unsubscribe(struct subscription *sub); /* NULL-safe */

/* JSON documents about this build and host, malloc()ed. presets: {"items": [{"name", "title", "description", "spec"}]};
 * transports: {"items": […]}, support and limits; environment: taken now. */
int service_presets_json(struct service *s, char **ret, struct refusal *r);
int service_transports_json(struct service *s, char **ret, struct refusal *r);
int service_topology_json(struct service *s, char **ret, struct refusal *r);
int service_environment_json(struct service *s, char **ret, struct refusal *r);

struct service_health {
        bool ok;
        const char *version; /* static */
        char problem[512];   /* why not ok */
        char leftover[512];  /* a directory of a run that could not be removed, and why; "": none */
        int64_t uptime_seconds;
        int64_t running_experiment, running_run; /* 0: idle */
        int64_t running_since;                   /* ms since the epoch; 0: idle */
        uint32_t experiments_queued;
        uint64_t runs_done, runs_failed;  /* ever, of what is still stored */
        uint64_t samples, database_bytes; /* stored */
        uint64_t cpu_ns, rss_bytes;       /* of the daemon */
};
int service_health(struct service *s, struct service_health *ret, struct refusal *r);

#endif
