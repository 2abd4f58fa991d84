/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_STORE_H
#define IPCLAB_DAEMON_STORE_H

/*
 * Experiments, runs and samples on disk: SQLite, WAL, synchronous=FULL. One struct store is one connection: the
 * daemon's main thread has the only one that writes, readers open their own with store_open_reader(). A function that
 * changes something is one transaction, and has committed when it returns 0. Errors are negative errnos (-EIO for what
 * SQLite reports without one; logged with SQLite's message), -ENOENT for a row that does not exist.
 */

#include "daemon/store/records.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Opens (creating and migrating as needed) DIR/ipclab.db and holds a lock on it: -EBUSY when another daemon has it,
 * -EPROTONOSUPPORT when a newer ipclab has written it. */
int store_open(struct store **ret, const char *dir);
int store_open_reader(struct store **ret, const char *dir);
void store_close(struct store *s); /* NULL-safe; the writer checkpoints */

/* Submission: experiment, points and runs in one transaction. order as from spec_shuffle(). */
struct new_experiment {
        const char *spec_json;   /* as posted, compact */
        const struct spec *spec; /* merged_json, name, repetitions */
        const struct point_list *points;
        const char *skipped_json;
        uint64_t seed;
        const uint32_t *order;
        uint64_t estimate_ns;        /* planned length of one run */
        const char *idempotency_key; /* NULL: none; -EEXIST when it is taken */
};
int store_add_experiment(struct store *s, const struct new_experiment *e, int64_t *ret_id);
/* The experiment that was posted with this key, and its body (malloc()ed); -ENOENT when the key is new. A key goes
 * with its experiment. */
int store_find_idempotency(struct store *s, const char *key, int64_t *ret_id, char **ret_spec_json);

/* The oldest experiment's next queued run (by position), or -ENOENT: nothing to do. */
int store_next_run(struct store *s, struct run_record *ret_run, struct experiment_record *ret_experiment);

/* queued -> running, attempt + 1, samples of an earlier attempt removed; the experiment becomes running with it. */
int store_start_run(struct store *s, int64_t run_id);
/* running -> done | failed | cancelled; with the last run the experiment ends (failed when any run failed, with the
 * error of the first one). Texts may be NULL. */
struct run_outcome {
        enum state state;
        const char *error;
        const char *flags_json, *agents_json, *result_json, *environment_json;
};
int store_finish_run(struct store *s, int64_t run_id, const struct run_outcome *o);
/* running -> interrupted, for a shutdown: store_recover() of the next start queues it again. The attempt does not
 * count. */
int store_interrupt_run(struct store *s, int64_t run_id);

/* At start: runs left running (a crash) or interrupted become queued again; after RUN_ATTEMPTS_MAX attempts failed.
 * *ret counts them. */
#define RUN_ATTEMPTS_MAX 3u
struct recovery {
        uint32_t requeued, given_up;
};
int store_recover(struct store *s, struct recovery *ret);

/* Queued runs become cancelled, and the experiment with them unless a run of it is running (*ret_running_run its id,
 * else 0: the caller stops it and finishes it as cancelled; after a crash store_recover() does). -EALREADY when the
 * experiment has ended. */
int store_cancel_experiment(struct store *s, int64_t id, int64_t *ret_running_run);
/* -EBUSY while running. The samples are removed later, by store_tidy(). */
int store_delete_experiment(struct store *s, int64_t id);

/* A batch in one transaction. change is assigned here. -ENOENT when a sample's run is not running: nothing is added. */
int store_add_samples(struct store *s, const struct sample_record *samples, size_t n);

/* One bounded step of housekeeping (some milliseconds): removes samples of deleted experiments, returns
 * their pages to the file system, truncates the write-ahead log. 1: there is more to do; 0: done; negative errno. */
int store_tidy(struct store *s);
/* The first of these steps alone, for when there is little time: the pages stay and are reused. As store_tidy(). */
int store_tidy_samples(struct store *s);

/* The undo journal of changed settings of the host, see tuning.h. -EEXIST: that setting has a record already. */
struct tuning_record {
        char *name;
        int64_t run_id;
        char *original, *wanted;
        char *boot_id; /* NULL: unknown, in a record of a version without this column */
};
int store_add_tuning(struct store *s, const struct tuning_record *record);
int store_first_tuning(struct store *s, struct tuning_record *ret); /* -ENOENT: the journal is empty */
int store_remove_tuning(struct store *s, const char *name);
void tuning_record_deinit(struct tuning_record *r);

/* Reads. now_ms is of CLOCK_REALTIME, for the ETA. */
const char *store_dir(const struct store *s);
int store_experiment(struct store *s, int64_t id, int64_t now_ms, struct experiment_record *ret);
int store_run(struct store *s, int64_t id, struct run_record *ret);

/* Pages: arrays that the functions below free. An experiment or run that does not exist is -ENOENT. A page ends at
 * `limit` records, or with the record whose text takes it to STORE_PAGE_BYTES: a specification may have a megabyte, and
 * a run of a thousand threads several. An empty page is the end of the list; a short one need not be. */
#define STORE_PAGE_BYTES (256u * 1024u)
int store_experiments(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                      int64_t now_ms, struct experiment_record **ret, size_t *ret_n);
int store_runs(struct store *s, int64_t experiment_id, uint32_t from_position, uint32_t limit, struct run_record **ret,
               size_t *ret_n);
int store_samples(struct store *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                  struct sample_record **ret, size_t *ret_n);
void store_experiments_free(struct experiment_record *experiments, size_t n);
/* Where a page of `limit` experiments ends, without reading their text: the last one's id, 0 when there is none; and
 * whether there are more below it. */
int store_experiments_end(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                          int64_t *ret_last, bool *ret_more);
void store_runs_free(struct run_record *runs, size_t n);
void store_samples_free(struct sample_record *samples, size_t n);

/* A point with the results of its runs, from which a row of /results is made. */
struct point_run {
        enum state state;
        char *result_json, *flags_json, *error;
};
struct point_record {
        char *point_json;
        struct point_run *runs; /* by position */
        size_t n_runs;
};
int store_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                 struct point_record **ret, size_t *ret_n);
void store_points_free(struct point_record *points, size_t n);

/* The changes after a change number, oldest first; exactly one pointer of each is set. experiment_id 0: every
 * experiment and the runs that have been started, no samples. */
struct change_record {
        struct experiment_record *experiment;
        struct run_record *run;
        struct sample_record *sample;
};
int store_changes(struct store *s, int64_t experiment_id, int64_t after_change, uint32_t limit, int64_t now_ms,
                  struct change_record **ret, size_t *ret_n);
void store_changes_free(struct change_record *changes, size_t n);
int store_last_change(struct store *s, int64_t *ret);

struct store_totals {
        uint32_t experiments_queued;
        uint64_t runs_done, runs_failed, samples, database_bytes;
};
int store_totals(struct store *s, struct store_totals *ret);

#endif
