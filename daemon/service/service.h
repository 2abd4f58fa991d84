/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The daemon as api/ sees it: submit, cancel, forget, read, subscribe. The only header of daemon/ (with records.h)
 * that api/ may include. Every function may be called from any thread.
 *
 * Changes are carried out on the daemon's main thread; the caller waits for the answer until the deadline, and then
 * gets 503 (the change may still happen: that is what Idempotency-Key is for). Reads use a read-only connection of
 * their own to the same database, so a long export never blocks the runner. Clients read only committed data.
 *
 * Functions return 0, or a negative errno with *r filled for the client (status, code, detail).
 */

#include "daemon/analysis/advice.h"
#include "daemon/analysis/findings/findings.h"
#include "daemon/analysis/findings/studies.h"
#include "daemon/analysis/statistics/segments.h"
#include "daemon/service/compare/comparison.h"
#include "daemon/service/operation.h"
#include "daemon/store/records.h"
#include "schema/facts.h"
#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct service;

/* A request with a longer body takes tens of megabytes while it is handled, so the caller has it handled between these
 * two, one at a time. An experiment of many points takes such a turn itself where its body is short. 0; negative errno
 * with *r: the others took too long. */
#define SERVICE_LARGE_BODY ((size_t) 32 * 1024)
int service_large_begin(struct service *s, struct refusal *r);
void service_large_end(struct service *s);

/* The requests of the calling thread, until its next call, are such as are answered at once: one of the few reading
 * connections is kept for them, whatever the others read meanwhile. */
void service_set_quick(bool is_quick);

/* Parses, checks against this host, commits, queues. *ret_created is false when the idempotency key (NULL: none; 1 to
 * 200 visible ASCII characters) had been seen with the same body: the id is the first one's. With another body: 422. */
int service_submit(struct service *s, const char *body, size_t length, const char *idempotency_key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r);
/* What a submission would be, with nothing stored, a well-formed idempotency key neither (component Plan of
 * api/openapi). The caller must free it. */
struct plan {
        uint64_t runs, runs_at_most;
        double seconds, seconds_at_most;
        char *skipped_json, *effective_json;
        size_t n_points;
        struct plan_points *points; /* the service's */
        size_t bytes;               /* that it takes in memory */
};
int service_plan(struct service *s, const char *body, size_t length, const char *idempotency_key, struct plan **ret,
                 struct refusal *r);
/* Calls `visit` with the JSON of each point, from the point `from` on, which are counted from 0, and stops when it
 * returns nonzero, which it returns. In the points' order, each once: earlier runs are read for them as they come, up
 * to a limit for the plan. A thread at a time. */
int service_plan_points(struct service *s, struct plan *plan, size_t from,
                        int (*visit)(void *userdata, const char *json, size_t length), void *userdata,
                        struct refusal *r);
void plan_free(struct plan *plan); /* NULL-safe */
/* More repetitions of an experiment that is queued, running or done; body: {"blocks": N} or {"repetitions": N}. And its
 * failed, cancelled and interrupted runs once more. 404, 409, 422; *ret_replayed: the key was seen with the same
 * request, and nothing was done. */
int service_extend(struct service *s, int64_t id, const char *body, size_t length, const char *idempotency_key,
                   bool *ret_replayed, struct refusal *r);
int service_retry(struct service *s, int64_t id, const char *idempotency_key, bool *ret_replayed, struct refusal *r);
int service_cancel(struct service *s, int64_t id, struct refusal *r); /* 404; 409 when it is finished */
/* 404; 409 while it runs, a baseline pins it, or it has to be exported first. */
int service_delete(struct service *s, int64_t id, struct refusal *r);

/* An exporter has stored everything up to that change elsewhere. A repetition, or a lower one, changes nothing. `store`
 * is a UUID. 409: it is another store's; 422: the store has no such change. */
int service_acknowledge_export(struct service *s, const char *store, int64_t change, struct refusal *r);
/* The change up to which everything was exported; -1: nothing was. */
int service_exported(struct service *s, int64_t *ret, struct refusal *r);

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
/* The end of that list: the id of its last experiment, 0 when it is empty, and whether there are more below it. Reads
 * no specification. */
int service_experiments_end(struct service *s, const struct experiment_query *q, int64_t *ret_last, bool *ret_more,
                            struct refusal *r);

/* Runs of an experiment by position, from `from_position` on. They are visited while the store is being read: `visit`
 * neither waits nor calls the service. */
int service_runs(struct service *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
                 int (*visit)(void *userdata, const struct run_record *run), void *userdata, struct refusal *r);

/* What the first run of an experiment that has an environment was made in, as stored, if one of the first `positions`
 * has: malloc()ed; NULL: none has. */
int service_first_environment(struct service *s, int64_t experiment_id, uint32_t positions, char **ret,
                              struct refusal *r);

/* Samples of an experiment (run_id 0) or of one run, by change, from after_change (0: all), `limit` at most. */
int service_samples(struct service *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct sample_record *sample), void *userdata,
                    struct refusal *r);

/* A row per point, in the points' order: `limit` at most, from the point `from` on, which are counted from 0. */
int service_results(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                    int (*visit)(void *userdata, const struct result_record *row), void *userdata, struct refusal *r);

/* Pins an experiment that has finished, or moves the name to it. 422: a bad name; 404; 409: it has not finished, or no
 * run of it is done. */
int service_pin_baseline(struct service *s, const char *name, int64_t experiment_id, struct refusal *r);
int service_remove_baseline(struct service *s, const char *name, struct refusal *r); /* 404 */
int service_baseline(struct service *s, const char *name, struct baseline_record *ret, struct refusal *r);
/* Sorted by name; the caller frees each and the array. */
int service_baselines(struct service *s, struct baseline_record **ret, size_t *ret_n, struct refusal *r);

/* The findings of an experiment's runs, as far as they are done; shared, unchanging. The caller must release them. */
struct findings_record {
        int64_t experiment_id;
        struct findings *findings;
        struct study *study;     /* NULL: of none of the studies' presets */
        struct cache_item *item; /* the service's */
};
int service_findings(struct service *s, int64_t experiment_id, struct findings_record **ret, struct refusal *r);
void service_findings_release(struct service *s, struct findings_record *record); /* NULL-safe */

/* The ranking that this host's stored runs support, of those under the environment that is in force now; or that of
 * another host's, of those under the environment of its newest. Shared and unchanging; the caller must release it. */
/* A transport all of whose runs failed on the machine as it is now (failing.h). */
struct failing_transport {
        enum transport transport;
        int64_t experiment_id;
        uint32_t runs;
        char *error; /* of the last of them */
};
#define ADVICE_THREADS_NAMED_MAX 8u

struct advice_record {
        struct advice_question question;
        char *host; /* the label of the other host; NULL: this one */
        struct advice advice;
        char **texts; /* own the texts of the items: settings and versions */
        size_t n_texts;
        char *sentence;
        char *settle_json; /* a spec whose runs would settle the open items; NULL: none is open, or of another host */
        bool settles_all;  /* it is of every transport, not of what is open among the items */
        bool too_long;     /* something is open, but each run would last too long */
        uint32_t experiments; /* that were used; the others were left out: */
        uint32_t other_environment;
        uint32_t changed_environment;        /* of these: it changed between their runs, or is not known */
        bool facts[FACT_COUNT], mitigations; /* in which the environments of the rest differ from that in force */
        uint32_t unlike;                     /* with an open loop, or on a host that was set for them: */
        uint32_t open_loops, tuned;          /* of these; one may be both */
        uint32_t unreadable;                 /* what is stored of them is damaged */
        unsigned placements; /* a bit each: other placements, of which something is known otherwise as requested */
        uint32_t threads[ADVICE_THREADS_NAMED_MAX]; /* likewise other numbers of threads, the first that are met */
        size_t n_threads;
        struct failing_transport failing[TRANSPORT_COUNT]; /* the spec leaves them out; none of another host */
        size_t n_failing;
        char *environment, *state; /* the service's, as is `item` */
        struct cache_item *item;
};
/* 404: no experiment with a run that is done was taken in of a host with this label. */
int service_advice(struct service *s, const struct advice_question *q, const char *host, struct advice_record **ret,
                   struct refusal *r);
void service_advice_release(struct service *s, struct advice_record *a); /* NULL-safe */
/* Submits the spec that would settle the question; 409 when nothing is open. A key that was used with the same question
 * gives the first experiment, whatever was measured since; with anything else: 422. */
int service_settle(struct service *s, const struct advice_question *q, const char *idempotency_key, int64_t *ret_id,
                   bool *ret_created, struct refusal *r);

/* Takes an experiment of another host in, a portion at a time: no read returns it before service_import_end(). What is
 * stored is not checked here beyond what the store's tables demand. One that is freed without an end leaves nothing.
 * After an error *i may be NULL. */
struct import;
/* Takes e's members over. */
int service_import_begin(struct service *s, struct experiment_record *e, struct import **ret, struct refusal *r);
/* At most SERVICE_IMPORT_RUNS of them, by position, behind those before; takes their members over. They are stored in
 * one transaction of the main thread, so a portion ends with the run that takes their JSON to SERVICE_IMPORT_BYTES. */
#define SERVICE_IMPORT_RUNS 32u
#define SERVICE_IMPORT_BYTES ((size_t) 256 << 10)
int service_import_runs(struct import **i, struct imported_run *runs, size_t n, struct refusal *r);
/* The file is stored in parts of this many bytes; one that was taken in before migration 0022 is a single part of up to
 * 16 MiB. *ret_created is false where the same bundle was taken in meanwhile: the id is that one's. */
#define SERVICE_BUNDLE_PART ((size_t) 256 << 10)
int service_import_end(struct import **i, const struct bundle_file *file, int64_t *ret_id, bool *ret_created,
                       struct refusal *r);
void service_import_free(struct import *i); /* NULL-safe */
/* The experiment that came as the bundle with this digest; 0: there is none. */
int service_find_bundle(struct service *s, const char *sha256, int64_t *ret_id, struct refusal *r);
/* A part of the file that an experiment came as, malloc()ed, numbered from 0, and whether it is the last. 404: there is
 * no such part, as after a deletion. */
int service_bundle_part(struct service *s, int64_t id, uint32_t part, uint8_t **ret, size_t *ret_length, bool *ret_last,
                        struct refusal *r);

/* Everything that changed after a sequence number, oldest first, at most `limit` records: the event stream.
 * experiment_id 0: every experiment, the runs that have been started, deletions and pins (and no samples). Of an
 * experiment that is deleted, its deletion alone; 404 where that is not among them, or there is no such experiment. */
int service_changes(struct service *s, int64_t experiment_id, int64_t after_change, uint32_t limit,
                    int (*visit)(void *userdata, const struct change_record *change), void *userdata,
                    struct refusal *r);
/* The newest sequence number. */
int service_last_change(struct service *s, int64_t *ret, struct refusal *r);

/* `wake` is called, on the daemon's main thread and soon after the commit, whenever something changed (experiment_id
 * 0: anywhere). It must only wake a thread. After service_unsubscribe() returns it is not called any more. */
struct subscription;
int service_subscribe(struct service *s, int64_t experiment_id, void (*wake)(void *userdata), void *userdata,
                      struct subscription **ret);
void service_unsubscribe(struct subscription *sub); /* NULL-safe */

/* JSON documents about this build and host, malloc()ed: components PresetList, with the time that each takes here and
 * its last experiment; TransportList, support and limits; Topology; Environment, taken now; HostNoise, of seconds
 * before. */
int service_presets_json(struct service *s, char **ret, struct refusal *r);
int service_transports_json(struct service *s, char **ret, struct refusal *r);
int service_topology_json(struct service *s, char **ret, struct refusal *r);
int service_environment_json(struct service *s, char **ret, struct refusal *r);
int service_noise_json(struct service *s, char **ret, struct refusal *r);

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
        struct service_hold {
                uint64_t longest_ns,
                        longest_cpu_ns; /* that one event held the main loop, and of its thread's CPU time */
        } holds[OPERATION_COUNT];
        uint64_t loop_slow;                     /* how often one held it for more than 50 ms */
        char store[40];                         /* UUID of the database */
        int64_t exported_change;                /* up to which everything was exported; -1: nothing was, or unknown */
        uint32_t damaged_pages;                 /* that did not match their checksum, since the start */
        uint32_t pages_checked, pages_to_check; /* after an unclean end; equal: there is no check under way */
};
int service_health(struct service *s, struct service_health *ret, struct refusal *r);

/* The settings that result_record.effective_json may have, in its order, from 0 on; NULL beyond the last. */
const char *service_effective_name(size_t i);

/* Answers from the cache where both experiments have finished, or computes, one comparison at a time: 503 after the
 * service's deadline. 0, or a negative errno with *r: 404; 409 across unlike environments; 422: an unknown axis, a
 * value that the experiment does not have, the same value twice, nothing in common. From any thread. The answer is
 * shared and does not change; the caller must release it. */
int service_compare(struct service *s, const struct comparison_query *q, struct comparison_answer **ret,
                    struct refusal *r);

/*
 * A baseline over time. Every later experiment of the same spec is compared with it when it has finished, across unlike
 * environments too (the purpose of a baseline; the check reports them), and the outcome is stored. The ratios of each
 * figure of each point are searched for change points: the experiments from which on the level is another. The more
 * series there are, the clearer each change has to be.
 */
#define HISTORY_LIMIT_MAX 1000u
#define HISTORY_VALUES_MIN 8 /* of a series that is searched for change points */
#define HISTORY_LEAST 3u     /* experiments between two of them */

struct history_series {
        struct series_record record;
        struct segment *segments; /* of the values; mean: of the ratios' logarithms. n_segments = 0: not searched */
        size_t n_segments;
};

struct history {
        struct baseline_record baseline;
        struct check_record *checks; /* oldest first */
        size_t n_checks;
        struct history_series *series;
        size_t n_series;
};

/* The newest `limit` checks, at most HISTORY_LIMIT_MAX. 0; negative errno with *r: 404. From any thread. */
int service_history(struct service *s, const char *name, uint32_t limit, struct history **ret, struct refusal *r);
size_t history_bytes(const struct history *h); /* in memory, within a few kilobytes */
void history_free(struct history *h);          /* NULL-safe */
