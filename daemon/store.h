/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STORE_H
#define IPCLAB_DAEMON_STORE_H

/*
 * Experiments, runs and samples on disk: SQLite, WAL, synchronous=FULL. One struct store is one connection: the daemon's main
 * thread has the only one that writes, readers open their own with store_open_reader(). A function that changes
 * something is one transaction, and has committed when it returns 0. Errors are negative errnos (-EIO for what SQLite
 * reports without one; logged with SQLite's words), -ENOENT for a row that is not there.
 */

#include "daemon/records.h"
#include "schema/spec.h"

struct store;

/* Opens (creating and migrating as needed) DIR/ipclab.db and holds a lock on it: -EBUSY when another daemon has it,
 * -EPROTONOSUPPORT when a newer ipclab wrote it. */
int store_open(struct store **ret, const char *dir);
int store_open_reader(struct store **ret, const char *dir);
void store_close(struct store *s); /* NULL-safe; the writer checkpoints */

/* Submission: experiment, points and runs in one transaction. order as from spec_shuffle(). */
struct new_experiment {
        const char *spec_json;   /* as posted */
        const struct spec *spec; /* merged_json, name, repetitions */
        const struct point_list *points;
        const char *skipped_json;
        uint64_t seed;
        const uint32_t *order;
        uint64_t estimate_ns;        /* planned length of one run */
        const char *idempotency_key; /* NULL: none */
        const char *idempotency_hash;
};
int store_add_experiment(struct store *s, const struct new_experiment *e, int64_t *ret_id);
/* -ENOENT when the key is new; *ret_hash is malloc()ed. */
int store_find_idempotency(struct store *s, const char *key, int64_t *ret_id, char **ret_hash);

/* The oldest experiment's next queued run (by position), or -ENOENT: nothing to do. */
int store_next_run(struct store *s, struct run_record *ret_run, struct experiment_record *ret_experiment);

/* queued -> running, attempt + 1, samples of an earlier attempt removed; the experiment becomes running with it. */
int store_start_run(struct store *s, int64_t run_id);
/* running -> done | failed | cancelled; with the last run the experiment ends (failed when any run failed, with the
 * first one's words). Texts may be NULL. */
struct run_outcome {
        enum state state;
        const char *error;
        const char *flags_json, *agents_json, *result_json, *environment_json;
};
int store_finish_run(struct store *s, int64_t run_id, const struct run_outcome *o);
/* running -> interrupted, for a shutdown: store_recover() of the next start queues it again. The attempt does not
 * count when the daemon was told to stop. */
int store_interrupt_run(struct store *s, int64_t run_id);

/* At start: runs left running (a crash) or interrupted become queued again; after RUN_ATTEMPTS_MAX attempts failed.
 * Counts what it did. */
#define RUN_ATTEMPTS_MAX 3u
struct recovery {
        uint32_t requeued, given_up;
};
int store_recover(struct store *s, struct recovery *ret);

/* Queued runs become cancelled, and the experiment with them unless a run of it is running (*ret_running_run its id,
 * else 0: the caller stops it and finishes it as cancelled). -EALREADY when the experiment has ended. */
int store_cancel_experiment(struct store *s, int64_t id, int64_t *ret_running_run);
int store_delete_experiment(struct store *s, int64_t id); /* -EBUSY while running */

/* A batch in one transaction. change is assigned here. */
int store_add_samples(struct store *s, const struct sample_record *samples, size_t n);

/* Reads: as the service functions of the same name; `now_ms` for the ETA. */
int store_experiment(struct store *s, int64_t id, struct experiment_record *ret);
int store_run(struct store *s, int64_t id, struct run_record *ret);

#endif
