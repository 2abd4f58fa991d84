/* SPDX-License-Identifier: MIT */
#pragma once

/* Private to the files of the store and their tests. */

#include "daemon/store/database/db.h"
#include "daemon/store/database/identity.h"
#include "daemon/store/store.h"
#include "schema/migrations.h"

#include <pthread.h>
#include <stdatomic.h>

#define LOCK_FILE "ipclab.lock"

/* What is left out until the next start, as it needs a damaged page. */
struct left_out {
        int64_t *ids;
        size_t n, size;
        bool all; /* what there is cannot even be listed */
};

struct store {
        struct db *db;
        char *dir; /* resolved */
        char *path;
        int lock_fd;              /* -1 for a reader */
        atomic_bool read_only;    /* of the file system, when the database was opened last */
        pthread_mutex_t lock;     /* guards the next two, and db where it is read by another thread than the writer's */
        struct store *beside;     /* a reader: its writer */
        unsigned n_beside;        /* readers of this writer */
        _Atomic unsigned adding;  /* experiments that are stored in part */
        bool keep_until_exported; /* no experiment is deleted before */
        struct identity identity; /* as it was noted; of a writer */
        int identity_fd;          /* -1: not noted any more, or a reader */
        /* The check after an unclean end: the next page, 0 when all were compared; and how many there are. */
        _Atomic uint32_t scrub_next, scrub_total;
        struct left_out pins, forgotten, extensions; /* of housekeeping */
        struct left_out queued;                      /* experiments that can neither run nor fail */
        struct left_out passed;                      /* those that the queue has passed when it was last read */
        struct left_out stuck;                       /* runs that stay in their state: no other can be written */
        int64_t failing;                             /* an experiment that fails in portions; 0: none */
        uint64_t run_started_ns; /* CLOCK_MONOTONIC, of the running run, as the wall clock may be set meanwhile */
};

/* Takes the database from its user_version to n, each step in a transaction of its own. -EPROTONOSUPPORT above n. */
int store_migrate(struct db *db, const struct migration *list, size_t n);

/* By how much the block of a run that is made again grows each time: more than there are blocks without. */
#define RETRY_BLOCKS 1000000

/* In which order a point's runs are read, wherever their figures are: that in which they ran, whether they were made
 * again later, before an extension or after it, or stayed behind when the daemon stopped. Those that have not begun are
 * the last. */
#define IN_TIME "runs.started_at NULLS LAST, runs.position"

/* Reserves n consecutive change numbers inside the transaction under way. */
int store_reserve_changes(struct db *db, uint64_t n, int64_t *ret_first);
/* Begins a transaction that writes, and reserves n change numbers in it. */
int store_begin_write(struct db *db, struct db_transaction *t, uint64_t n, int64_t *ret_first);
int store_count_samples(struct db *db, int64_t difference);

/* Condition on an experiment that may get more runs once its runs have ended. */
#define UNDECIDED "(until IS NOT NULL AND json_extract(until, '$.state') = 'running')"

/* Condition on an experiment's id: it was measured here. */
#define OWN(id) id " NOT IN (SELECT experiment_id FROM bundles)"

/* Condition on an experiment's id: it was not deleted. Deleted ones are removed a portion at a time, and no read may
 * return them. */
#define SHOWN(id) id " NOT IN (SELECT experiment_id FROM forgotten)"

/* The experiment that the row `b` of baselines is pinned to; 0: the name is free again. What is stored of its checks is
 * against b.experiment_id: as long as that is another one these are removed a portion at a time, and no read may return
 * them. */
#define PINNED_TO                                                                                                      \
        "COALESCE((SELECT COALESCE(p.experiment_id, 0) FROM pin_changes p WHERE p.name = b.name), b.experiment_id)"
/* Condition on the row `b`. */
#define SETTLED PINNED_TO " = b.experiment_id"

/* Removes checks with their ratios, of a baseline, or (NULL) of an experiment, in the transaction under way: as many
 * rows as *left has. No read returns what is removed in part. Some are left where *left is 0. */
int store_remove_checks(struct db *db, const char *baseline, int64_t experiment_id, uint64_t *left);
/* Removes a portion of what is stored against an earlier pin of this name; after the last one the row is that of the
 * pin, or gone with it. */
int store_settle_baseline(struct db *db, const char *name);

/* experiments_queued, runs_done, runs_failed, samples: one row, for which no table is read from end to end. */
#define STORE_TOTALS_SQL                                                                                               \
        "SELECT (SELECT value FROM counters WHERE name = 'experiments_queued'), "                                      \
        "(SELECT value FROM counters WHERE name = 'runs_done'), "                                                      \
        "(SELECT value FROM counters WHERE name = 'runs_failed'), "                                                    \
        "(SELECT value FROM counters WHERE name = 'samples')"

/* A step of store_cancel_experiment(), in the transaction under way. 1: there are more. */
int store_cancel_some(struct db *db, int64_t id, int64_t runs_total, int64_t now);
/* What is done a portion at a time when there is time for it. */
struct leftovers {
        const char *what;
        const char *list; /* selects their ids */
        int (*step)(struct store *s, int64_t id);
};
/* A step of the first of them that is not left out. What is damaged is left out from then on, and logged. 1: there may
 * be more; 0: there are no others. */
int store_step_leftovers(struct store *s, const struct leftovers *l, struct left_out *out);
/* Why an experiment that needs a damaged page fails. */
#define UNREADABLE "what the database has of it is damaged: a page does not match its checksum (GET /health names it)"
/* 0 or -ENOMEM. */
int store_leave_out(struct left_out *out, int64_t id);
bool store_is_left_out(const struct left_out *out, int64_t id);
/* A step of its end for this reason, to which the outcome of a run that is running belongs: a portion of an extension
 * under way is added (dropped, where the disk has no room), or STORE_STEP_ROWS of its queued runs fail. Reads no text
 * of the experiment. What of its runs and its extension is damaged stays as it is, and the experiment ends without. 1:
 * there are more. */
int store_fail_queued(struct store *s, int64_t id, const char *error);
int store_list_ids(struct db *db, const char *sql, int64_t **ret, size_t *ret_n);
/* The ids of the queued and running experiments, of an index alone: their rows may be damaged. */
int store_queued_ids(struct db *db, int64_t **ret, size_t *ret_n);
/* Inserts a portion of the runs of an extension under way, in the transaction under way. 1: it did; 0: there is no such
 * extension. */
int store_continue_extension(struct db *db, int64_t id);
/* A step of the end of an extension whose other runs are not wanted, in the transaction under way: whole repetitions
 * are left. The caller sees to it that no run of it begins meanwhile. 1: there are more; 0: there is no such extension.
 */
int store_drop_extension(struct db *db, int64_t id);
/* Ends the experiment when none of its runs is queued or running, and it gets no more. */
int store_settle_experiment(struct db *db, int64_t id, int64_t now_ms);
int store_require_experiment(struct db *db, int64_t id); /* 0 or -ENOENT */
/* Before a write that makes the database larger. -ENOSPC: the disk is full, or nearly. */
int store_require_room(struct store *s);
/* store_require_room(), and a transaction for that write. */
int store_begin_growth(struct store *s, struct db_transaction *t);
/* -EPERM: experiments are kept until they are exported, and this one has changed since. */
int store_require_exported(struct store *s, int64_t id);
/* Queued. block 0: it is of none. */
int store_insert_run(struct db *db, int64_t experiment_id, int64_t change, int64_t point_id, size_t repetition,
                     size_t block, size_t position);

/* What a search finds a new experiment by, besides its name. */
int store_insert_search_text(struct db *db, int64_t id, const char *spec_json);

/* The queued and running experiments, in the order in which they run; none where a row of them is damaged. */
struct backlog {
        struct backlog_entry {
                int64_t id;
                int64_t queue_position; /* 0: it is running */
                int64_t eta_ms;
        } * entries;
        size_t n;
};
int store_read_backlog(struct db *db, int64_t now_ms, struct backlog *ret);
void backlog_deinit(struct backlog *b);

/* A record from the row of a select over these columns; nothing to free after an error. */
#define EXPERIMENT_TABLES "experiments JOIN specs ON specs.experiment_id = experiments.id"
#define EXPERIMENT_COLUMNS                                                                                             \
        "id, change, state, seed, created_at, started_at, finished_at, runs_total, runs_done, runs_failed, "           \
        "runs_cancelled, version, name, error, skipped, merged, spec, measured_ms, until, "                            \
        "(SELECT json_group_array('slower_than_baseline:' || c.name) FROM baseline_checks c "                          \
        "JOIN baselines b ON b.name = c.name AND " SETTLED                                                             \
        " WHERE c.experiment_id = experiments.id AND c.finished_at IS NOT NULL AND c.slower > 0), searches, "          \
        "(SELECT json_object('host', host, 'sha256', sha256, 'taken_at', taken_at) FROM bundles "                      \
        "WHERE bundles.experiment_id = experiments.id)"
int store_row_experiment(struct db_query *q, const struct backlog *b, struct experiment_record *ret);

#define RUN_COLUMNS                                                                                                    \
        "runs.id, runs.change, runs.experiment_id, runs.repetition, runs.position, runs.state, runs.attempt, "         \
        "runs.started_at, runs.finished_at, runs.error, runs.flags, runs.result, runs.agents, runs.environment, "      \
        "points.point, runs.block, points.rate, runs.probes"
#define RUN_TABLES "runs JOIN points ON points.id = runs.point_id"
int store_row_run(struct db_query *q, struct run_record *ret);

#define SAMPLE_COLUMNS                                                                                                 \
        "change, experiment_id, run_id, thread, second, interval_ns, messages, bytes, latency_sum, agent, counters, "  \
        "latency, begin_ns"
int store_row_sample(struct db_query *q, struct sample_record *ret);
int store_row_state(struct db_query *q, int column, enum state *ret);

/* Bytes of a record's text, which limit a page. */
size_t store_experiment_bytes(const struct experiment_record *e);
size_t store_run_bytes(const struct run_record *run);

/* Defines a function that frees a list of records. */
#define STORE_LIST_FREE(function, type)                                                                                \
        void function(struct type *items, size_t n) {                                                                  \
                for (size_t i = 0; i < n; i++)                                                                         \
                        type##_deinit(&items[i]);                                                                      \
                free(items);                                                                                           \
        }

/* Steps to the next row, with room for what is read of it as element n. 1: there is one; 0: no more; negative errno. */
#define store_next_row(q, array, size, n)                                                                              \
        __extension__({                                                                                                \
                int _step = db_step(q);                                                                                \
                _step > 0 && !util_grow(array, n, size) ? -ENOMEM : _step;                                             \
        })
