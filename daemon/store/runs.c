/* SPDX-License-Identifier: MIT */

/*
 * Runs in the store: the next one, its start and end, recovery after a crash, and reading. Each change of a run's state
 * updates the counts of its experiment in the same transaction.
 */

#include "daemon/log.h"
#include "daemon/store/database/reserve.h"
#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Reading */

/* The text of a column: a copy of it, or SQLite's own. */
typedef char *column_text(struct db_query *q, int column);

static char *borrow_text(struct db_query *q, int column) {
        return (char *) (uintptr_t) db_column_peek(q, column); /* nothing writes to it */
}

static int read_row(struct db_query *q, column_text *text, struct run_record *ret) {
        struct run_record run = {
                .id = db_column_i64(q, 0),
                .change = db_column_i64(q, 1),
                .experiment_id = db_column_i64(q, 2),
                .repetition = db_column_u32(q, 3),
                .position = db_column_u32(q, 4),
                .attempt = db_column_u32(q, 6),
                .started_at = db_column_i64(q, 7),
                .finished_at = db_column_i64(q, 8),
                .error = text(q, 9),
                .flags_json = text(q, 10),
                .result_json = text(q, 11),
                .agents_json = text(q, 12),
                .environment_json = text(q, 13),
                .point_json = text(q, 14),
                .block = db_column_u32(q, 15),
                .rate = (uint64_t) db_column_i64(q, 16),
                .probes_json = text(q, 17),
        };
        int r = store_row_state(q, 5, &run.state);
        if (r == 0)
                r = q->error;
        *ret = run;
        return r;
}

int store_row_run(struct db_query *q, struct run_record *ret) {
        struct run_record run;
        int r = read_row(q, db_column_text, &run);
        if (r < 0) {
                run_record_deinit(&run);
                return r;
        }
        *ret = run;
        return 0;
}

int store_run(struct store *s, int64_t id, struct run_record *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q,
                         "SELECT " RUN_COLUMNS " FROM " RUN_TABLES
                         " WHERE runs.id = ? AND " SHOWN("runs.experiment_id"),
                         DB_INT(id));
        if (r < 0)
                return r;
        return store_row_run(&q, ret);
}

size_t store_run_bytes(const struct run_record *run) {
        const char *const texts[] = {run->point_json,  run->error,       run->flags_json,      run->agents_json,
                                     run->result_json, run->probes_json, run->environment_json};
        size_t bytes = 0;
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                bytes += texts[i] ? strlen(texts[i]) : 0;
        return bytes;
}

/* The order is that of the index of migration 0032: the rows behind the first one that fits are not read. */
#define PROBED_ON                                                                                                      \
        "SELECT id, probes FROM runs INDEXED BY runs_in_time WHERE experiment_id = ?1 AND state = 'done' "             \
        "AND id != ?2 AND probes ->> '$.cpus' = ?3 "
#define FIRST "ORDER BY started_at, position LIMIT 1"

int store_first_probes(struct store *s, int64_t experiment_id, int64_t run_id, const char *cpus, const char *compared,
                       int64_t *ret_id, char **ret_json) {
        int r = db_get_text(s->db, ret_id, ret_json, PROBED_ON "AND probes ->> '$.cpus_compared.before' IS ?4 " FIRST,
                            DB_INT(experiment_id), DB_INT(run_id), DB_TEXT(cpus), DB_TEXT(compared));
        return r != -ENOENT ? r
                            : db_get_text(s->db, ret_id, ret_json, PROBED_ON FIRST, DB_INT(experiment_id),
                                          DB_INT(run_id), DB_TEXT(cpus));
}

int store_done_runs(struct store *s, int64_t experiment_id, int64_t **ret, size_t *ret_n) {
        _cleanup_query_ struct db_query q = {0};
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0, size = 0;
        int r = db_select(s->db, &q, "SELECT id FROM runs WHERE experiment_id = ? AND state = 'done' ORDER BY " IN_TIME,
                          DB_INT(experiment_id));
        while (r >= 0 && (r = store_next_row(&q, ids, size, n)) > 0)
                ids[n++] = db_column_i64(&q, 0);
        if (r < 0)
                return r;
        *ret = util_steal(&ids);
        *ret_n = n;
        return 0;
}

int store_probes(struct store *s, int64_t run_id, char **ret_json) {
        int64_t id;
        return db_get_text(s->db, &id, ret_json, "SELECT id, probes FROM runs WHERE id = ?", DB_INT(run_id));
}

/* NULL: its two probes were not compared. */
#define PROBED_CPUS                                                                                                    \
        "CASE WHEN json_valid(probes) THEN CASE WHEN probes ->> '$.compared' THEN probes ->> '$.cpus' END END"

int store_unprobed_points(struct store *s, int64_t experiment_id, uint32_t **ret, size_t *ret_n) {
        _cleanup_query_ struct db_query q = {0};
        _cleanup_free_ uint32_t *ordinals = NULL;
        size_t n = 0, size = 0;
        int r = db_select(s->db, &q,
                          "SELECT ordinal FROM points JOIN runs ON point_id = points.id "
                          "WHERE points.experiment_id = ? AND state = 'done' GROUP BY ordinal "
                          "HAVING count(" PROBED_CPUS ") < count(*) OR count(DISTINCT " PROBED_CPUS ") > 1 "
                          "ORDER BY ordinal",
                          DB_INT(experiment_id));
        while (r >= 0 && (r = store_next_row(&q, ordinals, size, n)) > 0)
                ordinals[n++] = db_column_u32(&q, 0);
        if (r < 0)
                return r;
        *ret = util_steal(&ordinals);
        *ret_n = n;
        return 0;
}

/* The done run of an experiment that ran first or last, among those for which `also` holds. It is looked up in the
 * index of migration 0032: positions are the order of the plan, and a run that is made again keeps its own. */
#define RUN_IN_TIME(also, order)                                                                                       \
        "(SELECT id FROM runs INDEXED BY runs_in_time WHERE experiment_id = ?1 AND state = 'done'" also                \
        " ORDER BY started_at " order ", position " order " LIMIT 1)"

int store_environment(struct store *s, int64_t experiment_id, bool last, char **ret) {
        int64_t run_id;
        return last ? db_get_text(s->db, &run_id, ret,
                                  "SELECT id, environment FROM runs WHERE id = " RUN_IN_TIME(
                                          " AND environment IS NOT NULL", "DESC"),
                                  DB_INT(experiment_id))
                    : db_get_text(s->db, &run_id, ret,
                                  "SELECT id, environment FROM runs WHERE id = " RUN_IN_TIME(
                                          " AND environment IS NOT NULL", "ASC"),
                                  DB_INT(experiment_id));
}

int store_first_environment(struct store *s, int64_t experiment_id, uint32_t positions, char **ret) {
        int64_t run_id;
        return db_get_text(s->db, &run_id, ret,
                           "SELECT id, environment FROM runs WHERE experiment_id = ? AND position < ? "
                           "AND environment IS NOT NULL ORDER BY position LIMIT 1",
                           DB_INT(experiment_id), DB_INT(positions));
}

int store_environments(struct store *s, int64_t experiment_id, char **ret_first, char **ret_last, int64_t *ret_at) {
        _cleanup_free_ char *first = NULL, *last = NULL;
        int64_t at = 0;
        int r = db_get_text(s->db, &at, &first,
                            "SELECT finished_at, environment FROM runs WHERE id = " RUN_IN_TIME("", "ASC"),
                            DB_INT(experiment_id));
        if (r == 0)
                r = db_get_text(s->db, &at, &last,
                                "SELECT finished_at, environment FROM runs WHERE id = " RUN_IN_TIME("", "DESC"),
                                DB_INT(experiment_id));
        if (r < 0 && r != -ENOENT)
                return r;
        *ret_first = util_steal(&first);
        *ret_last = util_steal(&last);
        *ret_at = at;
        return 0;
}

int store_runs(struct store *s, int64_t experiment_id, uint32_t from_position, uint32_t limit,
               bool (*visit)(void *userdata, const struct run_record *run), void *userdata) {
        size_t bytes = 0;
        bool on = true, any = false;
        _cleanup_transaction_ struct db_transaction t = {0};
        _cleanup_query_ struct db_query q = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_require_experiment(s->db, experiment_id);
        if (r == 0)
                r = db_select(s->db, &q,
                              "SELECT " RUN_COLUMNS " FROM " RUN_TABLES " WHERE runs.experiment_id = ? "
                              "AND position >= ? ORDER BY position LIMIT ?",
                              DB_INT(experiment_id), DB_INT(from_position), DB_INT(limit));
        while (r >= 0 && on && bytes < STORE_PAGE_BYTES && (r = db_step(&q)) > 0) {
                struct run_record run;
                r = read_row(&q, borrow_text, &run);
                if (r < 0)
                        break;
                any = true;
                bytes += store_run_bytes(&run);
                on = visit(userdata, &run);
        }
        return r < 0 && !(r == -EBADMSG && any) ? r : 0;
}

static int read_next(struct store *s, int64_t run_id, struct run_record *ret_run,
                     struct experiment_record *ret_experiment) {
        struct run_record run = {0};
        int r = store_run(s, run_id, &run);
        if (r < 0)
                return r;
        r = store_experiment(s, run.experiment_id, util_now_ms(), ret_experiment);
        if (r < 0) {
                run_record_deinit(&run);
                return r == -ENOENT ? -EBADMSG : r;
        }
        *ret_run = run;
        return 0;
}

#define RUNNABLE                                                                                                       \
        "state IN ('running', 'queued') AND cancel_requested_at IS NULL AND " SHOWN(                                   \
                "id") " AND EXISTS (SELECT 1 FROM runs WHERE state = 'queued' AND experiment_id = experiments.id)"

struct candidate {
        int64_t id, turn, run_id;
};

/* The first of these in the queue; one with a damaged row stays behind. */
static int first_readable(struct store *s, const int64_t *ids, size_t n, struct candidate *ret) {
        struct candidate first = {.turn = INT64_MAX};
        s->passed.n = 0;
        for (size_t i = 0; i < n; i++) {
                struct candidate c = {.id = ids[i]};
                int r = store_is_left_out(&s->queued, c.id) ? -EBADMSG : 0;
                if (r == 0)
                        r = db_get(s->db, &c.turn, "SELECT turn FROM experiments WHERE id = ? AND " RUNNABLE,
                                   DB_INT(c.id));
                if (r == 0)
                        r = db_get(s->db, &c.run_id,
                                   "SELECT id FROM runs WHERE state = 'queued' AND experiment_id = ? "
                                   "ORDER BY position LIMIT 1",
                                   DB_INT(c.id));
                if (r == -EBADMSG)
                        r = store_leave_out(&s->passed, c.id);
                else if (r == 0 && c.turn < first.turn)
                        first = c;
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        *ret = first;
        return first.id ? 0 : -ENOENT;
}

/* 1: in part, and the caller tries again. Where not even that can be written, the queue goes on without it. */
static int fail_unreadable(struct store *s, int64_t id) {
        int r = store_fail_queued(s, id, UNREADABLE);
        if (r == 0 || r == -EBADMSG)
                log_error("experiment %" PRId64 " cannot be run: " UNREADABLE "%s", id,
                          r < 0 ? "; nor can that be stored, and the queue goes on without it" : "");
        return r == -EBADMSG ? store_leave_out(&s->queued, id) : r;
}

size_t store_left_behind(const struct store *s, int64_t *ret_first) {
        if (s->passed.n > 0)
                *ret_first = s->passed.ids[0];
        return s->passed.n;
}

/* 1: as above. */
static int fail_more(struct store *s) {
        int r = s->failing ? fail_unreadable(s, s->failing) : 0;
        if (r == 0)
                s->failing = 0;
        return r;
}

/* Where a page is damaged, the experiment that needs it fails with the reason, and the next one runs. */
static int next_readable(struct store *s, struct run_record *ret_run, struct experiment_record *ret_experiment) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0;
        struct candidate c;
        int r = store_queued_ids(s->db, &ids, &n);
        while (r == 0 && (r = first_readable(s, ids, n, &c)) == 0) {
                r = read_next(s, c.run_id, ret_run, ret_experiment);
                if (r != -EBADMSG)
                        return r;
                r = fail_unreadable(s, c.id);
        }
        return r > 0 ? -EAGAIN : r;
}

int store_next_run(struct store *s, struct run_record *ret_run, struct experiment_record *ret_experiment) {
        int64_t id;
        int r = fail_more(s);
        if (r != 0)
                return r > 0 ? -EAGAIN : r;
        r = s->queued.n > 0 ? -EBADMSG
                            : db_get_one(s->db, &id,
                                         "SELECT id FROM runs WHERE state = 'queued' AND experiment_id = "
                                         "(SELECT id FROM experiments WHERE " RUNNABLE " ORDER BY turn LIMIT 1) "
                                         "ORDER BY position LIMIT 1");
        if (r != -EBADMSG)
                s->passed.n = 0;
        if (r == 0)
                r = read_next(s, id, ret_run, ret_experiment);
        return r == -EBADMSG ? next_readable(s, ret_run, ret_experiment) : r;
}

/* Starting and ending */

/* Counts a done, failed or cancelled run in its experiment. */
static int count_ended_run(struct db *db, int64_t experiment_id, enum state state, int64_t change, int64_t length_ms,
                           int64_t now) {
        int r = db_run(db,
                       "UPDATE experiments SET change = ?, runs_done = runs_done + ?, runs_failed = runs_failed + ?, "
                       "runs_cancelled = runs_cancelled + ?, measured_ms = measured_ms + ? WHERE id = ?",
                       DB_INT(change), DB_INT(state == STATE_DONE), DB_INT(state == STATE_FAILED),
                       DB_INT(state == STATE_CANCELLED), DB_INT(state == STATE_DONE ? length_ms : 0),
                       DB_INT(experiment_id));
        return r < 0 ? r : store_settle_experiment(db, experiment_id, now);
}

/* Runs that need a damaged page */

/* Reads an index alone, as the row may be damaged; the row, where the index is. */
static int find_experiment_of(struct db *db, int64_t run_id, int64_t *ret) {
        int r = db_get(db, ret,
                       "SELECT experiment_id FROM runs INDEXED BY runs_state "
                       "WHERE state IN ('queued', 'running', 'interrupted') AND id = ?",
                       DB_INT(run_id));
        return r == -EBADMSG ? db_get(db, ret, "SELECT experiment_id FROM runs WHERE id = ?", DB_INT(run_id)) : r;
}

static int fail_run(struct store *s, int64_t run_id, bool counted) {
        int64_t change, experiment_id, now = util_now_ms();
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_write(s->db, &t, 2, &change);
        if (r == 0)
                r = db_get(s->db, &experiment_id,
                           "UPDATE runs SET state = 'failed', change = ?, error = ?, finished_at = ? "
                           "WHERE id = ? AND state IN ('queued', 'running', 'interrupted') RETURNING experiment_id",
                           DB_INT(change), DB_TEXT(UNREADABLE), DB_INT(now), DB_INT(run_id));
        if (r == 0 && counted)
                r = count_ended_run(s->db, experiment_id, STATE_FAILED, change + 1, 0, now);
        return r < 0 ? r : db_commit(&t);
}

/* The run fails; if that cannot be stored, its experiment does (fail_more()), and the row of the run stays as it is. So
 * does the experiment that cannot even be found. */
static int give_up_run(struct store *s, int64_t run_id) {
        log_error("run %" PRId64 ": " UNREADABLE, run_id);
        int r = fail_run(s, run_id, true);
        if (r == -EBADMSG) /* the experiment's row is damaged */
                r = fail_run(s, run_id, false);
        if (r != -EBADMSG)
                return r;
        r = store_leave_out(&s->stuck, run_id);
        if (r == 0)
                r = find_experiment_of(s->db, run_id, &s->failing);
        return r == -EBADMSG ? 0 : r;
}

/* A portion of what an earlier attempt of a queued run has left; 1: there may be more. */
static int remove_earlier_samples(struct db *db, int64_t run_id) {
        int r = db_run(db,
                       "DELETE FROM samples WHERE change IN (SELECT change FROM samples WHERE run_id = "
                       "(SELECT id FROM runs WHERE id = ? AND state = 'queued') LIMIT ?)",
                       DB_INT(run_id), DB_INT(STORE_STEP_ROWS));
        uint64_t n = r == 0 ? db_changed_rows(db) : 0;
        if (r == 0)
                r = store_count_samples(db, -(int64_t) n);
        return r < 0 ? r : n == STORE_STEP_ROWS;
}

static int mark_running(struct db *db, int64_t run_id) {
        int64_t now = util_now_ms(), change, experiment_id;
        int r = store_reserve_changes(db, 2, &change);
        if (r == 0)
                r = db_get(db, &experiment_id,
                           "UPDATE runs SET state = 'running', attempt = attempt + 1, change = ?, started_at = ?, "
                           "finished_at = NULL, error = NULL, flags = '[]', result = NULL, agents = '[]', "
                           "environment = NULL WHERE id = ? AND state = 'queued' RETURNING experiment_id",
                           DB_INT(change), DB_INT(now), DB_INT(run_id));
        if (r == 0)
                r = db_run(db,
                           "UPDATE experiments SET state = 'running', change = ?, "
                           "started_at = COALESCE(started_at, ?) WHERE id = ? AND state = 'queued'",
                           DB_INT(change + 1), DB_INT(now), DB_INT(experiment_id));
        return r;
}

/* No other run is running, but for those that are in this state for ever, as their rows are damaged. */
static int require_alone(struct store *s, int64_t run_id) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0;
        int r = store_list_ids(s->db, "SELECT id FROM runs INDEXED BY runs_state WHERE state = 'running'", &ids, &n);
        for (size_t i = 0; r == 0 && i < n; i++)
                if (ids[i] != run_id && !store_is_left_out(&s->stuck, ids[i]))
                        r = -EEXIST;
        return r;
}

static int start_once(struct store *s, int64_t run_id) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int more = 0, r = store_begin_growth(s, &t);
        if (r == 0)
                r = more = remove_earlier_samples(s->db, run_id);
        if (r == 0)
                r = mark_running(s->db, run_id);
        if (r == 0)
                r = require_alone(s, run_id);
        if (r >= 0)
                r = db_commit(&t);
        if (r < 0)
                return r;
        if (!more)
                s->run_started_ns = util_now_ns();
        return more;
}

int store_start_run(struct store *s, int64_t run_id) {
        int r = start_once(s, run_id);
        if (r != -EBADMSG)
                return r;
        r = give_up_run(s, run_id);
        return r < 0 ? r : 1;
}

static int finish_once(struct store *s, int64_t run_id, const struct run_outcome *o, bool counted) {
        if (o->state != STATE_DONE && o->state != STATE_FAILED && o->state != STATE_CANCELLED)
                return -EINVAL;
        int64_t now = util_now_ms(), change, experiment_id;
        int64_t length_ms = (int64_t) ((util_now_ns() - s->run_started_ns) / NSEC_PER_MSEC);
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_write(s->db, &t, 2, &change);
        if (r == 0)
                r = db_get(s->db, &experiment_id,
                           "UPDATE runs SET state = ?, change = ?, finished_at = ?, error = ?, "
                           "flags = COALESCE(?, '[]'), agents = COALESCE(?, '[]'), result = ?, environment = ?, "
                           "probes = ? "
                           "WHERE id = ? AND state = 'running' RETURNING experiment_id",
                           DB_TEXT(state_name(o->state)), DB_INT(change), DB_INT(now), DB_TEXT(o->error),
                           DB_TEXT(o->flags_json), DB_TEXT(o->agents_json), DB_TEXT(o->result_json),
                           DB_TEXT(o->environment_json), DB_TEXT(o->probes_json), DB_INT(run_id));
        if (r == 0 && counted)
                r = count_ended_run(s->db, experiment_id, o->state, change + 1, length_ms, now);
        return r < 0 ? r : db_commit(&t);
}

int store_finish_run(struct store *s, int64_t run_id, const struct run_outcome *o) {
        int r;
        do /* what is cancelled may be deleted then; more runs would use the reserve up */
                r = finish_once(s, run_id, o, true);
        while (r == -ENOSPC && o->state == STATE_CANCELLED && reserve_release(s->dir));
        /* Where the experiment's row is damaged, what was measured is kept. */
        if (r == -EBADMSG && (r = finish_once(s, run_id, o, false)) == 0)
                log_error("run %" PRId64 " is stored, but its experiment does not count it: " UNREADABLE, run_id);
        if (r != -EBADMSG)
                return r;
        r = give_up_run(s, run_id);
        return r < 0 ? r : 1;
}

int store_interrupt_run(struct store *s, int64_t run_id) {
        int64_t change, experiment_id;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_write(s->db, &t, 1, &change);
        if (r == 0)
                r = db_get(s->db, &experiment_id,
                           "UPDATE runs SET state = 'interrupted', attempt = attempt - 1, begun = 1, change = ?, "
                           "finished_at = ?, error = 'ipclabd was stopped; the run is repeated at its next start' "
                           "WHERE ? IN (0, id) AND state = 'running' RETURNING experiment_id",
                           DB_INT(change), DB_INT(util_now_ms()), DB_INT(run_id));
        return r < 0 ? r : db_commit(&t);
}

/* After a crash or a stop */

struct leftover {
        int64_t id, experiment_id;
        enum state state;
        uint32_t attempt;
        bool cancel;
};

static int find_leftover(struct db *db, int64_t run_id, struct leftover *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(db, &q,
                         "SELECT runs.id, experiment_id, runs.state, attempt, cancel_requested_at IS NOT NULL "
                         "FROM runs JOIN experiments ON experiments.id = experiment_id WHERE runs.id = ?",
                         DB_INT(run_id));
        if (r < 0)
                return r;
        *ret = (struct leftover){
                .id = db_column_i64(&q, 0),
                .experiment_id = db_column_i64(&q, 1),
                .attempt = db_column_u32(&q, 3),
                .cancel = db_column_i64(&q, 4) != 0,
        };
        return store_row_state(&q, 2, &ret->state);
}

static int end_leftover(struct db *db, const struct leftover *l, enum state state, const char *error) {
        int64_t change, now = util_now_ms();
        int r = store_reserve_changes(db, 2, &change);
        if (r == 0)
                r = db_run(db, "UPDATE runs SET state = ?, change = ?, error = ?, finished_at = ? WHERE id = ?",
                           DB_TEXT(state_name(state)), DB_INT(change), DB_TEXT(error), DB_INT(now), DB_INT(l->id));
        return r < 0 ? r : count_ended_run(db, l->experiment_id, state, change + 1, 0, now);
}

static int requeue_leftover(struct db *db, const struct leftover *l) {
        int64_t change;
        int r = store_reserve_changes(db, 1, &change);
        if (r == 0)
                r = db_run(db,
                           "UPDATE runs SET state = 'queued', change = ?, error = NULL, started_at = NULL, "
                           "finished_at = NULL WHERE id = ?",
                           DB_INT(change), DB_INT(l->id));
        return r;
}

static int recover_leftover(struct db *db, const struct leftover *l, struct recovery *counts) {
        if (l->cancel)
                return end_leftover(db, l, STATE_CANCELLED, NULL);
        if (l->state == STATE_RUNNING && l->attempt % RUN_ATTEMPTS_MAX == 0) {
                char error[160];
                snprintf(error, sizeof(error),
                         "ipclabd ended without notice (crash, kill or power cut) during attempt %u; a run is tried %u "
                         "times by itself",
                         l->attempt, RUN_ATTEMPTS_MAX);
                counts->given_up++;
                return end_leftover(db, l, STATE_FAILED, error);
        }
        counts->requeued++;
        return requeue_leftover(db, l);
}

/* A block of which runs have ended goes on later, perhaps in another boot: the rest of it is a block of its own, as
 * comparisons pair the runs of a block because the machine was the same for all of them. */
static int split_block(struct db *db, int64_t id) {
        static const char rest[] = "SELECT id FROM runs WHERE experiment_id = ? AND state = 'queued' AND block = "
                                   "(SELECT block FROM runs WHERE experiment_id = ? AND state = 'queued' "
                                   "ORDER BY position LIMIT 1) AND EXISTS (SELECT 1 FROM runs AS ended WHERE "
                                   "ended.experiment_id = runs.experiment_id AND ended.block = runs.block AND "
                                   "ended.state IN ('done', 'failed')) ORDER BY position LIMIT 1";
        int64_t first, block, change, n;
        int r = db_get(db, &first, rest, DB_INT(id), DB_INT(id));
        if (r == 0)
                r = db_get(db, &block, "SELECT block FROM runs WHERE id = ?", DB_INT(first));
        if (r == 0)
                r = db_get(db, &n,
                           "SELECT max(position) - min(position) + 1 FROM runs WHERE experiment_id = ? AND "
                           "state = 'queued' AND block = ?",
                           DB_INT(id), DB_INT(block));
        if (r == 0)
                r = store_reserve_changes(db, (uint64_t) n, &change);
        if (r == 0)
                r = db_run(db,
                           "UPDATE runs SET block = block + ?, change = ? + position - (SELECT position FROM runs "
                           "WHERE id = ?) WHERE experiment_id = ? AND state = 'queued' AND block = ?",
                           DB_INT(RETRY_BLOCKS), DB_INT(change), DB_INT(first), DB_INT(id), DB_INT(block));
        return r == -ENOENT ? 0 : r;
}

static int recover_run(struct store *s, int64_t run_id, struct recovery *counts) {
        struct recovery now = *counts; /* counts only if the transaction commits */
        struct leftover l;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = find_leftover(s->db, run_id, &l);
        if (r == 0)
                r = recover_leftover(s->db, &l, &now);
        if (r == 0)
                r = db_commit(&t);
        if (r == 0)
                *counts = now;
        return r;
}

/* Reads the rows, where the index is damaged. */
static int list_leftovers(struct db *db, int64_t **ret, size_t *ret_n) {
        int r = store_list_ids(
                db, "SELECT id FROM runs INDEXED BY runs_state WHERE state IN ('running', 'interrupted')", ret, ret_n);
        return r != -EBADMSG
                       ? r
                       : store_list_ids(db, "SELECT id FROM runs NOT INDEXED WHERE state IN ('running', 'interrupted')",
                                        ret, ret_n);
}

static int recover_runs(struct store *s, struct recovery *counts) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0;
        int r = list_leftovers(s->db, &ids, &n);
        if (r == -EBADMSG) {
                log_error("runs that an earlier daemon left behind cannot be listed: " UNREADABLE);
                r = 0;
        }
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = recover_run(s, ids[i], counts);
                if (r == -EBADMSG)
                        r = give_up_run(s, ids[i]);
                while (r == 0 && (r = fail_more(s)) > 0)
                        r = 0;
        }
        return r;
}

static int requeue_experiment(struct db *db, int64_t id) {
        int64_t change;
        int r = split_block(db, id);
        if (r == 0)
                r = store_reserve_changes(db, 1, &change);
        return r < 0 ? r
                     : db_run(db, "UPDATE experiments SET state = 'queued', change = ? WHERE id = ?", DB_INT(change),
                              DB_INT(id));
}

/* What is left of an extension by then, as the disk has no room for it, is dropped. 1: there is more. */
static int end_cancellation(struct db *db, int64_t id, int64_t runs_total) {
        int r = store_drop_extension(db, id);
        return r != 0 ? r : store_cancel_some(db, id, runs_total, util_now_ms());
}

/* Ends a cancellation that was under way, a portion at a time. Another one with runs in the queue is queued again, as
 * nothing is running now. 1: there is more. */
static int recover_experiment(struct store *s, int64_t id) {
        int64_t total;
        _cleanup_transaction_ struct db_transaction t = {0};
        int more = 0, r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_get(s->db, &total,
                           "SELECT runs_total FROM experiments WHERE id = ? AND cancel_requested_at IS NOT NULL",
                           DB_INT(id));
        if (r == 0)
                r = more = end_cancellation(s->db, id, total);
        else if (r == -ENOENT &&
                 (r = db_get(s->db, &id, "SELECT id FROM experiments WHERE id = ? AND state = 'running'",
                             DB_INT(id))) == 0)
                r = requeue_experiment(s->db, id);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = db_commit(&t);
        return r < 0 ? r : more;
}

static int recover_experiments(struct store *s) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0;
        int r = store_queued_ids(s->db, &ids, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                do
                        r = recover_experiment(s, ids[i]);
                while (r > 0);
                if (r == -EBADMSG) {
                        log_error("experiment %" PRId64 ": " UNREADABLE, ids[i]);
                        r = 0;
                }
        }
        return r;
}

/* Each step is a transaction of its own: what is damaged ends none but its own. */
static int recover_once(struct store *s, struct recovery *counts) {
        int r = recover_runs(s, counts);
        while (r == 0 && (r = store_extend_more(s, 0)) > 0)
                r = 0;
        if (r == -ENOSPC) /* housekeeping adds the others as soon as there is room */
                r = 0;
        return r == 0 ? recover_experiments(s) : r;
}

int store_recover(struct store *s, struct recovery *ret) {
        int r;
        *ret = (struct recovery){0};
        do
                r = recover_once(s, ret);
        while (r == -ENOSPC && reserve_release(s->dir));
        return r;
}
