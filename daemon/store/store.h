/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiments, runs and samples on disk: SQLite, WAL, synchronous=FULL. One struct store is one connection: the
 * daemon's main thread has the only one that writes, readers open their own with store_open_beside(). A function that
 * changes something is one transaction, and has committed when it returns 0. Errors are negative errnos (-EIO for what
 * SQLite reports without one; logged with SQLite's message), -ENOENT for a row that does not exist.
 */

#include "daemon/store/records.h"
#include "schema/disputed.h"
#include "schema/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Opens (creating and migrating as needed) DIR/ipclab.db and holds a lock on it: -EBUSY when another daemon has it,
 * -EPROTONOSUPPORT when a newer ipclab has written it, -EUCLEAN when it is not the database, or not all of it, that was
 * in this directory before (identity.h; the log names what is missing and the way out). Where the file system is
 * read-only and there is a database of this version it is opened to be read, which is logged. */
int store_open(struct store **ret, const char *dir);
/* Whether it was opened to be read only: each change is -EROFS. From any thread. */
bool store_is_read_only(const struct store *s);
/* -EROFS: it was, or its file system has become read-only. From any thread. */
int store_require_writable(const struct store *s);
/* Opens such a store to be written. -EROFS: the file system is still read-only; -EBUSY: readers beside it have to be
 * closed first; any error: it stays as it is. */
int store_reopen(struct store *s);
/* A reader of the files that this process's writer has open, which must outlive it: -ESTALE when one of them was
 * removed or replaced. From any thread. */
int store_open_beside(struct store **ret, struct store *writer);
/* -ESTALE: one was removed or replaced since the writer opened them: *ret_path, the writer's; NULL: no matter which;
 * another errno: its name cannot be looked up. From any thread. */
int store_check_files(const struct store *s, const char **ret_path);
void store_close(struct store *s); /* NULL-safe; the writer checkpoints */

/* For ipclabd --adopt, --backup and --check. */
/* Makes the database that is in DIR, or an empty one, the directory's own: under a new identity, and with ids and
 * changes above all that were noted before. */
int store_adopt(const char *dir);
/* A copy of the database in DIR, which a daemon may be using, as a new file: -EEXIST when there is one, -EUCLEAN (and
 * no file) as store_open(). */
int store_backup(const char *dir, const char *to);
/* Reads the whole database in DIR, which a daemon may be using, and calls `report` for each thing that is wrong with
 * it, also that it is not the one, or not all of it, that the directory had. 0 also when there is something:
 * *ret_faults counts. */
int store_verify(const char *dir, void (*report)(const char *fault), unsigned *ret_faults);

/* The integrity of the stored data. */
struct store_integrity {
        uint32_t damaged;                       /* pages, and frames of the log, that did not match their checksum */
        uint32_t damaged_page;                  /* the first of them, from 1; 0: it is a frame of the log */
        uint32_t pages_checked, pages_to_check; /* after an unclean end; equal: all have been */
        const char *gone; /* the database or a file beside it that nothing is committed to, the store's; NULL: none */
        int gone_error;   /* -ESTALE: it was removed or replaced; else why its name cannot be looked up */
        const char *path; /* of the database; the store's */
};
void store_integrity(struct store *s, struct store_integrity *ret); /* from any thread */
const char *store_identity(const struct store *s);                  /* UUID; the store's */

/* Submission: experiment, points and runs in one transaction. order: the point of each run, every
 * point once in each repetition (run/sequence.h). */
struct new_experiment {
        const char *spec_json;   /* as posted, compact */
        const struct spec *spec; /* merged_json, name, order */
        const struct point_list *points;
        const char *skipped_json;
        const char *measures; /* of store_measures(); NULL: the store finds it, a third of the time of a long spec */
        uint64_t seed;
        uint32_t repetitions;   /* of the order */
        const char *until_json; /* NULL: there are no more than these */
        const uint32_t *order;
        uint64_t estimate_ns;        /* planned length of one run */
        const char *idempotency_key; /* NULL: none; -EEXIST when it is taken */
};
/* What a spec measures, by which experiments are compared with baselines: malloc()ed; NULL where it is no JSON. From
 * any thread, with a store of its own. */
int store_measures(struct store *s, const char *merged_json, char **ret);
int store_add_experiment(struct store *s, const struct new_experiment *e, int64_t *ret_id);
/* The same a portion at a time, of STORE_STEP_ROWS rows, each in a transaction: 1: there is more, and no read returns
 * it yet; 0: it is acknowledged, as a->id. `e` must be the same at each call. store_tidy() removes a submission
 * that is abandoned in between, or by a crash. */
#define STORE_STEP_ROWS 500u

/* With fewer free bytes nothing is stored that makes the database larger: more than a step of the reserve. */
#define STORE_ROOM_BYTES (2 * UINT64_C(1048576))
struct store_adding {
        int64_t id;
        /* the store's */
        struct store *store;
        int64_t change;
        int64_t *point_ids;
        size_t n_points, n_runs;
        bool in_portions;
};
int store_add_some(struct store *s, const struct new_experiment *e, struct store_adding *a);
void store_adding_deinit(struct store_adding *a); /* a zeroed one is fine; from any thread */
/* The experiment that was posted or given more to do with this key, and the body or the request's text (malloc()ed);
 * -ENOENT when the key is new. A key goes with its experiment. */
int store_find_idempotency(struct store *s, const char *key, int64_t *ret_id, char **ret_spec_json);

/* More runs of an existing experiment. */
struct experiment_extent {
        enum state state;
        bool searches;   /* its repetitions are those of each rate */
        bool imported;   /* of another host */
        bool cancelling; /* it was cancelled, and a run of it may still be under way */
        uint64_t seed;
        uint32_t n_points, repetitions; /* planned of each point, done or not */
        char *merged_json;
};
int store_read_extent(struct store *s, int64_t id, struct experiment_extent *ret); /* -ENOENT */
void experiment_extent_deinit(struct experiment_extent *e);
/* Its points by ordinal, malloc()ed. -EBADMSG: one cannot be read. */
int store_read_points(struct store *s, int64_t id, struct point **ret, size_t *ret_n);
/* An Idempotency-Key, as those of submissions, and the request that used it. key NULL: none was given. */
struct request_record {
        const char *key, *text;
};
/* A rate of the point with this ordinal, which gets a row of its own. */
struct searched_rate {
        uint32_t ordinal;
        uint64_t rate; /* messages per second */
};
/* Runs behind the existing ones: order as of new_experiment, their first repetition being first_repetition. An
 * experiment that had ended is queued again, behind the others. -EEXIST: the key is taken. */
struct extension {
        const uint32_t *order;
        size_t n_points;
        uint32_t first_repetition, repetitions;
        bool in_blocks;
        const struct searched_rate *rates; /* n_points of them, which are added with their first runs; NULL: none is */
        const char *until_json;            /* the decision; NULL: it is to be taken again, if at all */
};
/* A portion at a time, of STORE_STEP_ROWS rows, each in a transaction. With the first one the extension is on disk: the
 * experiment waits or runs, its runs_total has all, and the request is remembered. 1: the rest is added by calls of
 * store_extend_more(), until it returns 0; by store_recover() after a crash. */
int store_extend_some(struct store *s, int64_t id, const struct extension *x, const struct request_record *request);
/* Adds a portion of an extension of this experiment, or (0) of any. 1: it did; 0: none is under way. */
int store_extend_more(struct store *s, int64_t id);
/* The first experiment of the queue whose runs have all ended and that may get more (result/until.h). -ENOENT: there is
 * none. */
int store_undecided(struct store *s, struct experiment_record *ret);
/* Ends an experiment that gets no more runs. until_json NULL: nothing could be decided. */
int store_conclude_experiment(struct store *s, int64_t id, const char *until_json);
/* How many runs of an experiment failed, were cancelled or interrupted. */
int store_retryable(struct store *s, int64_t id, uint64_t *ret);
/* Failed, cancelled and interrupted runs are queued again, as above, STORE_STEP_ROWS of them in a call, each a
 * transaction; their attempts are counted on, and those of one block are of another one from then on. 1: there may be
 * more, and the request is not remembered yet. `begun`: the call before returned 1. -ENODATA: there is none, and it was
 * not begun. */
int store_retry_some(struct store *s, int64_t id, bool begun, const struct request_record *request);

/* Experiments of other hosts. One is stored a portion at a time, and no read returns it before store_end_import().
 * store_tidy() removes one that is abandoned in between, or by a crash. */
struct importing {
        struct store *store;
        int64_t id;
};
/* The experiment as it ended, without its runs. */
int store_begin_import(struct store *s, const struct experiment_record *e, struct importing *ret);
/* By position, which goes on; points are added with their first runs. A transaction. */
int store_import_runs(struct importing *i, const struct imported_run *runs, size_t n);
/* The file, a part at a time from 0 on; a transaction. */
int store_import_part(struct importing *i, uint32_t part, const void *data, size_t length);
/* search_json: what a search has found; NULL: the experiment is no search. -EEXIST: the bundle is there already. */
int store_end_import(struct importing *i, const struct bundle_file *file, const char *search_json);
void store_import_deinit(struct importing *i);                               /* a zeroed one is fine; from any thread */
int store_find_bundle(struct store *s, const char *sha256, int64_t *ret_id); /* -ENOENT */
/* A part of the file as it came, malloc()ed, and whether it is the last. -ENOENT: it has no such part, the experiment
 * is this host's own, or there is none. */
int store_bundle_part(struct store *s, int64_t id, uint32_t part, uint8_t **ret, size_t *ret_length, bool *ret_last);

/* The first experiment's next queued run (by position). -ENOENT: there is nothing to do; -EAGAIN: an experiment that
 * cannot be read has failed in part, and the caller must try again. */
int store_next_run(struct store *s, struct run_record *ret_run, struct experiment_record *ret_experiment);
/* How many queued experiments it has passed the last time, as what the database has of them is damaged: they can
 * neither run nor be failed. If any, the one with the lowest id. */
size_t store_left_behind(const struct store *s, int64_t *ret_first);

/* queued -> running, attempt + 1; the experiment becomes running with it. 1: STORE_STEP_ROWS samples of an earlier
 * attempt were removed instead, and the run is queued still; or it needs a damaged page, and it, or its experiment, has
 * failed: the caller must take the next run again. -EEXIST: another one is running. */
int store_start_run(struct store *s, int64_t run_id);
/* running -> done | failed | cancelled; with the last run the experiment ends (failed when any run failed, with the
 * error of the first one). Texts may be NULL. An experiment with a damaged row does not count it. 1: that needs a
 * damaged page, and the run, or its experiment, has failed for this reason instead. */
struct run_outcome {
        enum state state;
        const char *error;
        const char *flags_json, *agents_json, *result_json, *environment_json, *probes_json;
};
int store_finish_run(struct store *s, int64_t run_id, const struct run_outcome *o);
/* The probes of the experiment's done run that ran first, but for this one, on these CPUs ("[0,1]", of their JSON), of
 * which all of those (likewise) were compared; where there is no such run, of the first one on these CPUs. -ENOENT:
 * there is none. *ret_json is free()d. */
int store_first_probes(struct store *s, int64_t experiment_id, int64_t run_id, const char *cpus, const char *compared,
                       int64_t *ret_id, char **ret_json);
/* The experiment's done runs, in their order in time. *ret is free()d. */
int store_done_runs(struct store *s, int64_t experiment_id, int64_t **ret, size_t *ret_n);
/* A run's probes, NULL where it has none. -ENOENT: there is no such run. */
int store_probes(struct store *s, int64_t run_id, char **ret_json);
/* The ordinals, ascending, of an experiment's points with done runs whose probes are not of one set of CPUs, or of
 * which one has none that were compared. *ret is free()d. */
int store_unprobed_points(struct store *s, int64_t experiment_id, uint32_t **ret, size_t *ret_n);
/* running -> interrupted, for a shutdown: store_recover() of the next start queues it again. The attempt does not
 * count. 0: whichever runs; -ENOENT: none does. */
int store_interrupt_run(struct store *s, int64_t run_id);

/* At start: runs left running (a crash) or interrupted become queued again; with each RUN_ATTEMPTS_MAXth attempt
 * failed. *ret counts them, also after an error. What needs a damaged page fails, or stays as it is, and is logged. */
#define RUN_ATTEMPTS_MAX 3u
struct recovery {
        uint32_t requeued, given_up;
};
int store_recover(struct store *s, struct recovery *ret);

/* Queued runs become cancelled, and the experiment with them unless a run of it is running (*ret_running_run its id,
 * else 0: the caller stops it and finishes it as cancelled; after a crash store_recover() does). 1: there are more of
 * them than the STORE_STEP_ROWS of this call: none of them starts, and the caller calls again. -EALREADY when the
 * experiment has ended. */
int store_cancel_experiment(struct store *s, int64_t id, int64_t *ret_running_run);
/* -EBUSY while running; -EEXIST while a baseline pins it; -EPERM while it has to be exported. No read returns it any
 * more; its rows are removed later, by store_tidy(). */
int store_delete_experiment(struct store *s, int64_t id);

/* From then on an experiment is deleted only when everything of it was exported. Off in a store that was just opened.
 */
void store_keep_until_exported(struct store *s, bool keep);
/* The change up to which everything was exported; -1: nothing was. */
int store_exported(struct store *s, int64_t *ret);
/* Sets it; a lower one than is there changes nothing. -ERANGE: it is beyond *ret_newest, the newest change. */
int store_acknowledge_export(struct store *s, int64_t change, int64_t *ret_newest);
/* The newest change of an experiment and its runs, beside the change up to which the store was exported. -ENOENT. */
int store_export_of(struct store *s, int64_t id, int64_t *ret_newest, int64_t *ret_exported);

/* A baseline is pinned to another experiment when it is there already; what was compared with the earlier one is
 * removed later, by store_tidy(), and the comparisons with this one follow. -ENOENT: there is no such experiment, or
 * name; -E2BIG: there are BASELINES_MAX others. */
int store_pin_baseline(struct store *s, const char *name, int64_t experiment_id);
int store_remove_baseline(struct store *s, const char *name);
int store_baseline(struct store *s, const char *name, struct baseline_record *ret);
/* Sorted by name; those of one experiment, or (0) all. */
int store_baselines(struct store *s, int64_t experiment_id, struct baseline_record **ret, size_t *ret_n);
void store_baselines_free(struct baseline_record *baselines, size_t n);

/* A finished experiment that is to be compared with a baseline: a later one of the same spec, which was not compared
 * with it since; the first of them behind `after` (zeroed: of all). -ENOENT: there is none. */
struct pending_check {
        char *name; /* of the baseline; malloc()ed */
        int64_t baseline_id, experiment_id, finished_at, pin_change;
};
int store_pending_check(struct store *s, const struct pending_check *after, struct pending_check *ret);

/* Stores the outcome in portions: each is a transaction on the main thread, and a large experiment has 100 000 ratios.
 * The beginning removes an earlier outcome; 1: there is more of it, and the caller begins again. The check counts when
 * the last one is stored. -ENOENT: the baseline or the experiment is gone meanwhile, or is
 * another one. */
struct new_ratio {
        const char *figure, *point_json, *verdict;
        double ratio, low, high, level;
        bool has_interval; /* else low, high and level are not used */
};
struct new_check {
        bool alike;
        uint32_t undecided, faster, slower, equivalent;
        const char *error; /* NULL: it was compared */
        const char *differences_json;
};
int store_begin_check(struct store *s, const struct pending_check *p);
int store_add_ratios(struct store *s, const struct pending_check *p, const struct new_ratio *ratios, size_t n);
int store_end_check(struct store *s, const struct pending_check *p, const struct new_check *c);
/* The newest `limit` checks of a baseline, oldest first, and the series of their ratios. */
int store_history(struct store *s, const char *name, uint32_t limit, struct check_record **ret_checks,
                  size_t *ret_n_checks, struct series_record **ret_series, size_t *ret_n_series);

/* A batch in one transaction. change is assigned here. -ENOENT when a sample's run is not running: nothing is added. */
int store_add_samples(struct store *s, const struct sample_record *samples, size_t n);

/* One bounded step of housekeeping (some milliseconds): removes rows of deleted experiments, returns
 * their pages to the file system, truncates the write-ahead log. 1: there is more to do; 0: done; negative errno. */
int store_tidy(struct store *s);
/* The first of these steps alone, for when there is little time: the pages stay and are reused. As store_tidy(). */
int store_tidy_forgotten(struct store *s);

/* See db_on_long_log() and db_move_log(). */
int store_on_long_log(struct store *s, void (*grown)(void *userdata), void *userdata);
int store_move_log(struct store *s);

/* The undo journal of changed settings of the host, see tuning.h. -EEXIST: that setting has a record already. */
struct tuning_record {
        char *name;
        int64_t run_id;
        char *original, *wanted;
        char *boot_id; /* NULL: unknown, in a record of a version without this column */
};
int store_add_tuning(struct store *s, const struct tuning_record *record);
/* The record whose name comes next after this one ("": the first); -ENOENT: there is none. */
int store_next_tuning(struct store *s, const char *after, struct tuning_record *ret);
int store_remove_tuning(struct store *s, const char *name);
void tuning_record_deinit(struct tuning_record *r);

/* Reads. now_ms is of CLOCK_REALTIME, for the ETA. */
const char *store_dir(const struct store *s);
int store_experiment(struct store *s, int64_t id, int64_t now_ms, struct experiment_record *ret);
int store_run(struct store *s, int64_t id, struct run_record *ret);

/* Pages: arrays that the functions below free. An experiment or run that does not exist is -ENOENT. A page ends at
 * `limit` records, or with the record whose text takes it to STORE_PAGE_BYTES: a specification may have a megabyte, and
 * a run of a thousand threads several. That is as much as a portion of a body has (FEED_PORTION), which one page then
 * fills: a larger one would be read and held for nothing, a smaller one makes more queries. An empty page is the end of
 * the list; a short one need not be. A record that is damaged ends the page before it, and is -EBADMSG where it would
 * be the first. */
#define STORE_PAGE_BYTES (64u * 1024u)
int store_experiments(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                      int64_t now_ms, struct experiment_record **ret, size_t *ret_n);
int store_samples(struct store *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                  struct sample_record **ret, size_t *ret_n);
/* The rate in each whole second of a run: messages per second of all its threads, at both ends together. Of a long run
 * or of many threads only the first seconds are read. *ret is malloc()ed; *ret_n 0: it has none, or is gone; *ret_rows
 * are the samples that they are made of. */
int store_run_rates(struct store *s, int64_t run_id, double **ret, size_t *ret_n, size_t *ret_rows);
/* A page of runs is visited instead, within its transaction, until `visit` returns false: a run has so much text that a
 * copy of it counts. The record is the store's, lives for the call, and is not to be changed; *s is not to be used. */
int store_runs(struct store *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
               bool (*visit)(void *userdata, const struct run_record *run), void *userdata);
void store_experiments_free(struct experiment_record *experiments, size_t n);
/* Where a page of `limit` experiments ends, without reading their text: the last one's id, 0 when there is none; and
 * whether there are more below it. It ends above a damaged row, too, below which there are more. */
int store_experiments_end(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                          int64_t *ret_last, bool *ret_more);
void store_samples_free(struct sample_record *samples, size_t n);

/* A point with the results of its runs, from which a row of /results is made. */
struct point_run {
        int64_t id;
        uint32_t block; /* 0: of none, as those of a shuffled order */
        enum state state;
        char *result_json, *flags_json, *error;
};
struct point_record {
        char *point_json;
        uint64_t rate;          /* of a search; 0: the spec's */
        struct point_run *runs; /* in the order in which they ran */
        size_t n_runs;
};
int store_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                 struct point_record **ret, size_t *ret_n);
/* The same of an experiment that is being taken in. */
int store_import_points(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                        struct point_record **ret, size_t *ret_n);
/* Every experiment of this host (NULL), or of the other host with this label, that has a run that is done; malloc()ed.
 * The one that ended last comes first: bundles of a host may have come in any order. */
struct experiment_change {
        int64_t id, change;
};
int store_measured(struct store *s, const char *host, struct experiment_change **ret, size_t *ret_n);
/* The same experiments of this host with a failed run, `most` of the newest. */
int store_failed(struct store *s, uint32_t most, struct experiment_change **ret, size_t *ret_n);
/* The last experiment of a preset that was done here. -ENOENT: there is none. */
struct preset_last {
        int64_t experiment_id, started_at, finished_at;
};
int store_last_of_preset(struct store *s, const char *preset, struct preset_last *ret);
/* The points of an experiment, `most` of the first, that are no rates of a search. The text is the visitor's until it
 * returns; what it returns other than 0 ends the visit and is returned. *ret_n: how many were visited, also of one that
 * failed. */
typedef int (*store_point_visitor)(void *userdata, int64_t point_id, const char *point_json);
int store_visit_points(struct store *s, int64_t experiment_id, uint32_t most, store_point_visitor visit, void *userdata,
                       uint32_t *ret_n);
/* What the last failed run of a point has, of which `least` runs or more have failed and none is done, or yet to be.
 * -ENOENT: the point is another; -EBADMSG: it cannot be read. */
struct failed_point {
        uint32_t n_failed;
        char *error;
        char *environment_json; /* NULL: the run has none */
};
int store_failed_point(struct store *s, int64_t point_id, uint32_t least, struct failed_point *ret);
void failed_point_deinit(struct failed_point *p);
/* The environments of an experiment's first and last run in time that is done (malloc()ed, NULL where there is none),
 * and when that last one ended. */
int store_environments(struct store *s, int64_t experiment_id, char **ret_first, char **ret_last, int64_t *ret_at);
void store_points_free(struct point_record *points, size_t n);
/* How long a message took in the newest done run of the same point in a closed loop. -ENOENT: there is none. */
int store_earlier_time(struct store *s, const char *point_json, double *ret_message_ns);
/* The done runs, the first `most` of them, of the same point in the newest experiment that has at least `least` of them
 * and was measured in the same way: window, warm-up, rate, verify, chunk, fresh, stamp, transport_options and tune are
 * those of merged_json. -ENOENT: there is none. */
int store_earlier_runs(struct store *s, const char *point_json, const char *merged_json, uint32_t least, uint32_t most,
                       int64_t *ret_experiment, struct point_record *ret);
void point_record_deinit(struct point_record *p);
/* The same with only those members of a result that are compared (figures.h). Points by ordinal, `limit` of
 * them at most; an empty page is their end. The rates of a search are left out. */
struct figures_run {
        enum state state;
        uint32_t block;                    /* 0: of none */
        bool noisy;                        /* has a flag noisy:… */
        uint32_t disputed[DISPUTED_COUNT]; /* 1: has that flag */
        uint64_t few;                      /* 1 << figure: a percentile of too few latencies, which counts as none */
        uint64_t requested;                /* 1 << figure: it follows from an open loop's rate, and counts as none */
        double values[FIGURE_COUNT];       /* NaN: it has none, or the figure is not compared */
};
struct figures_point {
        char *point_json;
        struct figures_run *runs; /* in the order in which they ran */
        size_t n_runs;
};
int store_figures(struct store *s, int64_t experiment_id, uint32_t from_ordinal, uint32_t limit,
                  struct figures_point **ret, size_t *ret_n);
void store_figures_free(struct figures_point *points, size_t n);
/* Visits the flags of each done run at some rate of a search, with the ordinal of its closed loop's point. */
int store_rate_flags(struct store *s, int64_t experiment_id,
                     void (*visit)(void *userdata, uint32_t ordinal, const char *flags_json), void *userdata);

/* The environment of an experiment's first done run in time, or of its last; malloc()ed. -ENOENT: none is done, or
 * there is no such experiment. */
int store_environment(struct store *s, int64_t experiment_id, bool last, char **ret);
/* That of the first run by position, below `positions`, that has one, done or not. -ENOENT: none has. */
int store_first_environment(struct store *s, int64_t experiment_id, uint32_t positions, char **ret);
/* The done runs with flags environment-…: for each list of flags that there is, the first run by position that has it,
 * in that order. */
struct changed_run {
        int64_t id;
        char *flags_json;
};
int store_changed_runs(struct store *s, int64_t experiment_id, struct changed_run **ret, size_t *ret_n);
void store_changed_runs_free(struct changed_run *runs, size_t n);
/* The environment of a run; malloc()ed. -ENOENT: it has none, or there is no such run. */
int store_run_environment(struct store *s, int64_t run_id, char **ret);

/* The changes after a change number, oldest first; exactly one pointer of each is set. experiment_id 0: every
 * experiment, the runs that have been started, deletions and pins; no samples. Of an experiment that is deleted, its
 * deletion alone; -ENOENT where that is not among them, or there is no such experiment. */
int store_changes(struct store *s, int64_t experiment_id, int64_t after_change, uint32_t limit, int64_t now_ms,
                  struct change_record **ret, size_t *ret_n);
void store_changes_free(struct change_record *changes, size_t n);
int store_last_change(struct store *s, int64_t *ret);

/* The number of waiting experiments and runs, and the bytes of the database and its log. An experiment with a damaged
 * row counts, too. */
struct store_backlog {
        uint64_t experiments, runs, bytes;
};
int store_backlog(struct store *s, struct store_backlog *ret);

struct store_totals {
        uint32_t experiments_queued;
        uint64_t runs_done, runs_failed, samples, database_bytes;
};
int store_totals(struct store *s, struct store_totals *ret);
