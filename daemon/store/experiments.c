/* SPDX-License-Identifier: MIT */

/*
 * Experiments in the store: accepting one with its points and runs in a single transaction, cancelling, deleting,
 * reading, and the time at which each will end.
 */

#include "daemon/store/database/reserve.h"
#include "daemon/store/internal.h"
#include "daemon/store/search-text.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Accepting */

#define PATH_OF(name) ", '$." name "'"
#define MEASURES(merged) "CASE WHEN json_valid(" merged ") THEN json_remove(" merged SPEC_INCIDENTAL(PATH_OF) ") END"

int store_measures(struct store *s, const char *merged_json, char **ret) {
        int64_t none;
        return db_get_text(s->db, &none, ret, "SELECT NULL, " MEASURES("?1"), DB_TEXT(merged_json));
}

int store_insert_search_text(struct db *db, int64_t id, const char *spec_json) {
        _cleanup_free_ char *text = search_text(spec_json);
        return text ? db_run(db, "INSERT INTO search_texts (experiment_id, text) VALUES (?, ?)", DB_INT(id),
                             DB_TEXT(text))
                    : -ENOMEM;
}

static int insert_experiment(struct db *db, const struct new_experiment *e, int64_t change, uint64_t n_runs,
                             int64_t *ret_id) {
        int r = db_run(db,
                       "INSERT INTO experiments (change, turn, state, seed, estimate_ns, created_at, runs_total, "
                       "idempotency_key, version, name, until, searches, preset) "
                       "VALUES (?1, ?1, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                       DB_INT(change), DB_INT(e->seed), DB_INT(e->estimate_ns), DB_INT(util_now_ms()), DB_INT(n_runs),
                       DB_TEXT(e->idempotency_key), DB_TEXT(IPCLAB_VERSION), DB_TEXT(e->spec->name),
                       DB_TEXT(e->until_json), DB_INT(e->spec->search.latency_p99_below_us > 0),
                       DB_TEXT(e->spec->preset));
        if (r < 0)
                return r;
        *ret_id = db_last_id(db);
        r = db_run(db,
                   "INSERT INTO specs (experiment_id, skipped, merged, spec, measures) VALUES (?, ?, ?3, ?, "
                   "COALESCE(?, " MEASURES("?3") "))",
                   DB_INT(*ret_id), DB_TEXT(e->skipped_json), DB_TEXT(e->spec->merged_json), DB_TEXT(e->spec_json),
                   DB_TEXT(e->measures));
        return r < 0 ? r : store_insert_search_text(db, *ret_id, e->spec_json);
}

int store_insert_run(struct db *db, int64_t experiment_id, int64_t change, int64_t point_id, size_t repetition,
                     size_t block, size_t position) {
        return db_run(db,
                      "INSERT INTO runs (change, experiment_id, point_id, repetition, block, position, state) "
                      "VALUES (?, ?, ?, ?, ?, ?, 'queued')",
                      DB_INT(change), DB_INT(experiment_id), DB_INT(point_id), DB_INT(repetition),
                      block > 0 ? DB_INT(block) : DB_NULL(), DB_INT(position));
}

/* Among the submissions a constraint finds it. */
static int check_key(struct db *db, const char *key) {
        int64_t id;
        int r = key ? db_get(db, &id, "SELECT experiment_id FROM requests WHERE key = ?", DB_TEXT(key)) : -ENOENT;
        return r == -ENOENT ? 0 : r < 0 ? r : -EEXIST;
}

static int insert_point(struct db *db, const struct new_experiment *e, struct store_adding *a) {
        _cleanup_free_ char *json = point_to_json(&e->points->points[a->n_points]);
        if (!json)
                return -ENOMEM;
        int r = db_run(db, "INSERT INTO points (experiment_id, ordinal, point) VALUES (?, ?, ?)", DB_INT(a->id),
                       DB_INT(a->n_points), DB_TEXT(json));
        if (r == 0)
                a->point_ids[a->n_points++] = db_last_id(db);
        return r;
}

static int insert_run(struct db *db, const struct new_experiment *e, struct store_adding *a) {
        size_t n_points = e->points->n_points, i = a->n_runs;
        if (e->order[i] >= n_points)
                return -EINVAL;
        size_t repetition = i / n_points + 1;
        int r = store_insert_run(db, a->id, a->change + 1 + (int64_t) i, a->point_ids[e->order[i]], repetition,
                                 e->spec->order == ORDER_BLOCKS ? repetition : 0, i);
        a->n_runs += r == 0;
        return r;
}

/* Inserts as many rows as a step may have; 1: there are more. */
static int insert_rows(struct db *db, const struct new_experiment *e, struct store_adding *a) {
        uint64_t total = (uint64_t) e->points->n_points * e->repetitions;
        int r = 0;
        for (unsigned n = 0; r == 0 && n < STORE_STEP_ROWS && a->n_runs < total; n++)
                r = a->n_points < e->points->n_points ? insert_point(db, e, a) : insert_run(db, e, a);
        return r < 0 ? r : a->n_runs < total;
}

/* An experiment is among the forgotten until it is whole, so that a crash leaves it to be removed. */
static int begin_adding(struct store *s, const struct new_experiment *e, struct store_adding *a) {
        uint64_t n_runs = (uint64_t) e->points->n_points * e->repetitions;
        a->in_portions = e->points->n_points + n_runs > STORE_STEP_ROWS;
        struct new_experiment first = *e;
        if (a->in_portions)
                first.idempotency_key = NULL; /* the key must not find it yet */
        int r = store_reserve_changes(s->db, n_runs + 1, &a->change);
        if (r == 0)
                r = insert_experiment(s->db, &first, a->change, n_runs, &a->id);
        if (r == 0 && a->in_portions)
                r = db_run(s->db, "INSERT INTO forgotten (experiment_id) VALUES (?)", DB_INT(a->id));
        return r;
}

/* Takes a new change number: streams may have sent others since it was begun. */
static int end_adding(struct store *s, const struct new_experiment *e, const struct store_adding *a) {
        int64_t change;
        int r = store_reserve_changes(s->db, 1, &change);
        if (r == 0)
                r = db_run(s->db, "DELETE FROM forgotten WHERE experiment_id = ?", DB_INT(a->id));
        if (r == 0)
                r = db_run(s->db, "UPDATE experiments SET change = ?, idempotency_key = ? WHERE id = ?", DB_INT(change),
                           DB_TEXT(e->idempotency_key), DB_INT(a->id));
        return r;
}

void store_adding_deinit(struct store_adding *a) {
        if (a->store)
                a->store->adding--;
        free(a->point_ids);
        *a = (struct store_adding){0};
}

static int add_some(struct store *s, const struct new_experiment *e, struct store_adding *a) {
        struct store_adding next = *a; /* counts only if the transaction commits */
        _cleanup_transaction_ struct db_transaction t = {0};
        int more = 0, r = db_begin_write(s->db, &t);
        if (r == 0 && !next.id)
                r = check_key(s->db, e->idempotency_key);
        if (r == 0 && !next.id)
                r = begin_adding(s, e, &next);
        if (r == 0)
                r = more = insert_rows(s->db, e, &next);
        if (more == 0 && r == 0 && next.in_portions)
                r = end_adding(s, e, &next);
        if (r >= 0)
                r = db_commit(&t);
        if (r < 0)
                return r;
        *a = next;
        return more;
}

int store_add_some(struct store *s, const struct new_experiment *e, struct store_adding *a) {
        if (e->points->n_points == 0 || e->repetitions == 0)
                return -EINVAL;
        int r = store_require_room(s);
        if (r < 0)
                return r;
        if (!a->point_ids) {
                a->point_ids = calloc(e->points->n_points, sizeof(*a->point_ids));
                if (!a->point_ids)
                        return -ENOMEM;
                a->store = s;
                s->adding++;
        }
        return add_some(s, e, a);
}

int store_add_experiment(struct store *s, const struct new_experiment *e, int64_t *ret_id) {
        _cleanup_(store_adding_deinit) struct store_adding a = {0};
        int r;
        do
                r = store_add_some(s, e, &a);
        while (r > 0);
        if (r == 0)
                *ret_id = a.id;
        return r;
}

int store_find_idempotency(struct store *s, const char *key, int64_t *ret_id, char **ret_spec_json) {
        return db_get_text(s->db, ret_id, ret_spec_json,
                           "SELECT id, spec FROM " EXPERIMENT_TABLES " WHERE idempotency_key = ?1 "
                           "UNION ALL SELECT experiment_id, request FROM requests WHERE key = ?1",
                           DB_TEXT(key));
}

/* Ending */

int store_settle_experiment(struct db *db, int64_t id, int64_t now_ms) {
        return db_run(db,
                      "UPDATE experiments SET finished_at = ?, "
                      "until = CASE WHEN cancel_requested_at IS NOT NULL OR runs_cancelled > 0 "
                      "             THEN json_set(until, '$.state', 'cancelled') ELSE until END, "
                      "state = CASE WHEN cancel_requested_at IS NOT NULL OR runs_cancelled > 0 THEN 'cancelled' "
                      "             WHEN runs_failed > 0 THEN 'failed' ELSE 'done' END, "
                      "error = CASE WHEN cancel_requested_at IS NULL AND runs_cancelled = 0 THEN "
                      "             (SELECT error FROM runs WHERE experiment_id = experiments.id AND state = 'failed' "
                      "              ORDER BY position LIMIT 1) END "
                      "WHERE id = ? AND state IN ('queued', 'running') "
                      "AND runs_done + runs_failed + runs_cancelled = runs_total "
                      "AND (cancel_requested_at IS NOT NULL OR runs_cancelled > 0 OR NOT " UNDECIDED ")",
                      DB_INT(now_ms), DB_INT(id));
}

struct cancellable {
        enum state state;
        int64_t runs_total;
};

static int read_cancellable(struct db *db, int64_t id, struct cancellable *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(db, &q, "SELECT state, runs_total FROM experiments WHERE id = ? AND " SHOWN("id"), DB_INT(id));
        if (r < 0)
                return r;
        ret->runs_total = db_column_i64(&q, 1);
        return store_row_state(&q, 0, &ret->state);
}

/* STORE_STEP_ROWS of them; *ret_n counts. error NULL: they are cancelled; else they have failed. */
static int end_queued_runs(struct db *db, int64_t id, int64_t runs_total, const char *error, int64_t now,
                           uint64_t *ret_n) {
        int64_t change;
        int r = store_reserve_changes(db, (uint64_t) runs_total + 1, &change);
        if (r < 0)
                return r;
        r = db_run(db,
                   "UPDATE runs SET state = ?, error = ?, finished_at = ?, change = ? + position WHERE id IN "
                   "(SELECT id FROM runs WHERE experiment_id = ? AND state = 'queued' ORDER BY position LIMIT ?)",
                   DB_TEXT(state_name(error ? STATE_FAILED : STATE_CANCELLED)), DB_TEXT(error), DB_INT(now),
                   DB_INT(change), DB_INT(id), DB_INT(STORE_STEP_ROWS));
        if (r < 0)
                return r;
        *ret_n = db_changed_rows(db);
        return db_run(db,
                      "UPDATE experiments SET change = ?1, runs_failed = runs_failed + ?2, "
                      "runs_cancelled = runs_cancelled + ?3, "
                      "until = CASE WHEN ?2 > 0 THEN json_set(until, '$.state', 'failed') ELSE until END, "
                      "cancel_requested_at = COALESCE(cancel_requested_at, ?4) WHERE id = ?5",
                      DB_INT(change + runs_total), DB_INT(error ? *ret_n : 0), DB_INT(error ? 0 : *ret_n),
                      error ? DB_NULL() : DB_INT(now), DB_INT(id));
}

static int end_some(struct db *db, int64_t id, int64_t runs_total, const char *error, int64_t now) {
        uint64_t n = 0;
        int r = end_queued_runs(db, id, runs_total, error, now, &n);
        if (r == 0)
                r = store_settle_experiment(db, id, now);
        return r < 0 ? r : n == STORE_STEP_ROWS;
}

int store_cancel_some(struct db *db, int64_t id, int64_t runs_total, int64_t now) {
        return end_some(db, id, runs_total, NULL, now);
}

static bool has_ended(const struct cancellable *c) {
        return c->state != STATE_QUEUED && c->state != STATE_RUNNING;
}

static int fail_some(struct store *s, int64_t id, const char *error) {
        _cleanup_transaction_ struct db_transaction t = {0};
        struct cancellable c;
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = read_cancellable(s->db, id, &c);
        if (r < 0 || has_ended(&c))
                return r;
        r = end_some(s->db, id, c.runs_total, error, util_now_ms());
        if (r < 0)
                return r;
        int more = r;
        r = db_commit(&t);
        return r < 0 ? r : more;
}

/* Whether a run of it has an outcome to come: one that is in this state for ever has none. */
static bool has_running(struct store *s, int64_t id) {
        int64_t run;
        int r = db_get(s->db, &run, "SELECT id FROM runs WHERE state = 'running' AND experiment_id = ?", DB_INT(id));
        return r == 0 && !store_is_left_out(&s->stuck, run);
}

/* Runs of it that cannot be read, or were still to be inserted, count as failed ones. With the outcome of one that is
 * running it ends. */
static int fail_whole(struct store *s, int64_t id, const char *error) {
        int64_t change;
        bool ends = !has_running(s, id);
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_write(s->db, &t, 1, &change);
        if (r == 0)
                r = db_run(s->db,
                           "UPDATE experiments SET state = CASE WHEN ?1 THEN 'failed' ELSE state END, error = ?2, "
                           "finished_at = CASE WHEN ?1 THEN ?3 END, change = ?4, "
                           "runs_failed = runs_total - runs_done - runs_cancelled - NOT ?1, "
                           "until = json_set(until, '$.state', 'failed') "
                           "WHERE id = ?5 AND state IN ('queued', 'running')",
                           DB_INT(ends), DB_TEXT(error), DB_INT(util_now_ms()), DB_INT(change), DB_INT(id));
        return r < 0 ? r : db_commit(&t);
}

/* What ends is whole, and where the disk has no room for that, has fewer repetitions. 1: there is more to be done. */
static int end_extension(struct store *s, int64_t id, bool cancels) {
        int more, r = store_extend_more(s, id);
        if (r != -ENOSPC)
                return r;
        _cleanup_transaction_ struct db_transaction t = {0};
        r = db_begin_write(s->db, &t);
        if (r < 0)
                return r;
        more = store_drop_extension(s->db, id);
        if (more > 0 && cancels) /* none of its runs begins any more */
                r = db_run(s->db,
                           "UPDATE experiments SET cancel_requested_at = COALESCE(cancel_requested_at, ?) WHERE id = ?",
                           DB_INT(util_now_ms()), DB_INT(id));
        if (more < 0 || r < 0)
                return more < 0 ? more : r;
        r = db_commit(&t);
        return r < 0 ? r : more;
}

int store_fail_queued(struct store *s, int64_t id, const char *error) {
        int r = end_extension(s, id, false);
        if (r == 0 || r == -EBADMSG)
                r = fail_some(s, id, error);
        return r == 0 || r == -EBADMSG ? fail_whole(s, id, error) : r;
}

static int cancel_once(struct store *s, int64_t id, int64_t *ret_running_run) {
        int64_t now = util_now_ms(), running = 0;
        _cleanup_transaction_ struct db_transaction t = {0};
        struct cancellable c;
        int more, r = end_extension(s, id, true);
        if (r == -EBADMSG) /* without the rest of it the experiment fails */
                r = store_fail_queued(s, id, UNREADABLE);
        if (r > 0)
                *ret_running_run = 0;
        if (r != 0)
                return r;
        r = db_begin_write(s->db, &t);
        if (r == 0)
                r = read_cancellable(s->db, id, &c);
        if (r < 0)
                return r;
        if (has_ended(&c))
                return -EALREADY;
        more = store_cancel_some(s->db, id, c.runs_total, now);
        if (more < 0)
                return more;
        r = db_get(s->db, &running, "SELECT id FROM runs WHERE state = 'running' AND experiment_id = ?", DB_INT(id));
        if (r < 0 && r != -ENOENT)
                return r;
        r = db_commit(&t);
        if (r < 0)
                return r;
        *ret_running_run = running;
        return more;
}

int store_cancel_experiment(struct store *s, int64_t id, int64_t *ret_running_run) {
        int r;
        do
                r = cancel_once(s, id, ret_running_run);
        while (r == -ENOSPC && reserve_release(s->dir));
        return r;
}

static int delete_once(struct store *s, int64_t id) {
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        struct cancellable c;
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = read_cancellable(s->db, id, &c);
        if (r < 0)
                return r;
        if (c.state == STATE_RUNNING)
                return -EBUSY;
        int64_t one;
        r = db_get(s->db, &one, "SELECT 1 FROM baselines b WHERE " PINNED_TO " = ? LIMIT 1", DB_INT(id));
        if (r != -ENOENT)
                return r < 0 ? r : -EEXIST;
        r = store_require_exported(s, id);
        if (r == 0)
                r = store_reserve_changes(s->db, 1, &change);
        if (r == 0)
                r = db_run(s->db, "INSERT INTO forgotten (experiment_id) VALUES (?)", DB_INT(id));
        if (r == 0)
                r = db_run(s->db, "INSERT INTO deletions (change, experiment_id) VALUES (?, ?)", DB_INT(change),
                           DB_INT(id));
        if (r == 0) /* its keys may be used again */
                r = db_run(s->db, "UPDATE experiments SET idempotency_key = NULL WHERE id = ?", DB_INT(id));
        if (r == 0)
                r = db_run(s->db, "DELETE FROM requests WHERE experiment_id = ?", DB_INT(id));
        if (r == 0) /* its bundle may be taken in again */
                r = db_run(s->db, "DELETE FROM bundles WHERE experiment_id = ?", DB_INT(id));
        if (r == 0)
                r = db_run(s->db, "DELETE FROM extensions WHERE experiment_id = ?", DB_INT(id));
        return r < 0 ? r : db_commit(&t);
}

int store_delete_experiment(struct store *s, int64_t id) {
        int r;
        do
                r = delete_once(s, id);
        while (r == -ENOSPC && reserve_release(s->dir));
        return r;
}

/* The queue's ETA */

void backlog_deinit(struct backlog *b) {
        free(b->entries);
        *b = (struct backlog){0};
}

struct running_now {
        int64_t experiment_id, elapsed_ms;
};

static int read_running(struct db *db, int64_t now_ms, struct running_now *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(db, &q, "SELECT experiment_id, started_at FROM runs WHERE state = 'running'");
        if (r < 0)
                return r;
        r = db_step(&q);
        if (r <= 0)
                return r;
        int64_t elapsed = now_ms - db_column_i64(&q, 1);
        *ret = (struct running_now){.experiment_id = db_column_i64(&q, 0), .elapsed_ms = elapsed > 0 ? elapsed : 0};
        return q.error;
}

/* Columns: id, state, runs left, estimate_ns, runs_done, measured_ms. */
static int64_t milliseconds_left(struct db_query *q, const struct running_now *running) {
        int64_t left = db_column_i64(q, 2), done = db_column_i64(q, 4);
        int64_t each = done > 0 ? db_column_i64(q, 5) / done : db_column_i64(q, 3) / (int64_t) NSEC_PER_MSEC;
        int64_t total;
        if (__builtin_mul_overflow(left, each, &total))
                return INT64_MAX / 2;
        if (db_column_i64(q, 0) == running->experiment_id)
                total -= running->elapsed_ms < each ? running->elapsed_ms : each;
        return total > 0 ? total : 0;
}

static int fill_backlog(struct db *db, const struct running_now *running, struct backlog *b) {
        _cleanup_query_ struct db_query q = {0};
        size_t size = 0;
        int64_t sum = 0, position = 0;
        int r = db_select_all(db, &q,
                              "SELECT id, state, runs_total - runs_done - runs_failed - runs_cancelled, estimate_ns, "
                              "runs_done, measured_ms FROM experiments WHERE state IN ('running', 'queued') AND " SHOWN(
                                      "id") " ORDER BY state = 'queued', turn");
        while (r >= 0 && (r = store_next_row(&q, b->entries, size, b->n)) > 0) {
                enum state state;
                r = store_row_state(&q, 1, &state);
                if (r < 0)
                        return r;
                if (__builtin_add_overflow(sum, milliseconds_left(&q, running), &sum))
                        sum = INT64_MAX;
                b->entries[b->n++] = (struct backlog_entry){
                        .id = db_column_i64(&q, 0),
                        .queue_position = state == STATE_QUEUED ? ++position : 0,
                        .eta_ms = sum,
                };
        }
        return r;
}

int store_read_backlog(struct db *db, int64_t now_ms, struct backlog *ret) {
        struct running_now running = {0};
        struct backlog b = {0};
        int r = read_running(db, now_ms, &running);
        if (r == 0 || r == -EBADMSG) /* how long it has run is not known */
                r = fill_backlog(db, &running, &b);
        if (r < 0)
                backlog_deinit(&b);
        if (r == -EBADMSG) /* when a run begins is not known where one before it cannot be read */
                r = 0;
        if (r < 0)
                return r;
        *ret = b;
        return 0;
}

int store_list_ids(struct db *db, const char *sql, int64_t **ret, size_t *ret_n) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0, size = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select_all(db, &q, sql);
        while (r >= 0 && (r = store_next_row(&q, ids, size, n)) > 0)
                ids[n++] = db_column_i64(&q, 0);
        if (r < 0)
                return r;
        *ret = util_steal(&ids);
        *ret_n = n;
        return 0;
}

int store_queued_ids(struct db *db, int64_t **ret, size_t *ret_n) {
        return store_list_ids(db,
                              "SELECT id FROM experiments INDEXED BY experiments_state "
                              "WHERE state IN ('running', 'queued') ORDER BY id",
                              ret, ret_n);
}

/* Reading */

int store_require_experiment(struct db *db, int64_t id) {
        int64_t one;
        return db_get(db, &one, "SELECT 1 FROM experiments WHERE id = ? AND " SHOWN("id"), DB_INT(id));
}

int store_row_state(struct db_query *q, int column, enum state *ret) {
        const char *name = db_column_peek(q, column);
        if (q->error < 0)
                return q->error;
        return name && state_from_name(name, ret) == 0 ? 0 : -EBADMSG;
}

static void place_in_backlog(struct experiment_record *e, const struct backlog *b) {
        e->eta_seconds = -1;
        for (size_t i = 0; i < b->n; i++)
                if (b->entries[i].id == e->id) {
                        e->eta_seconds = b->entries[i].eta_ms / 1000 + (b->entries[i].eta_ms % 1000 != 0);
                        e->queue_position = b->entries[i].queue_position;
                        return;
                }
}

int store_row_experiment(struct db_query *q, const struct backlog *b, struct experiment_record *ret) {
        struct experiment_record e = {
                .id = db_column_i64(q, 0),
                .change = db_column_i64(q, 1),
                .seed = (uint64_t) db_column_i64(q, 3),
                .created_at = db_column_i64(q, 4),
                .started_at = db_column_i64(q, 5),
                .finished_at = db_column_i64(q, 6),
                .runs_total = db_column_u32(q, 7),
                .runs_done = db_column_u32(q, 8),
                .runs_failed = db_column_u32(q, 9),
                .runs_cancelled = db_column_u32(q, 10),
                .version = db_column_text(q, 11),
                .name = db_column_text(q, 12),
                .error = db_column_text(q, 13),
                .skipped_json = db_column_text(q, 14),
                .merged_json = db_column_text(q, 15),
                .spec_json = db_column_text(q, 16),
                .measured_ms = db_column_i64(q, 17),
                .until_json = db_column_text(q, 18),
                .flags_json = db_column_text(q, 19),
                .searches = db_column_i64(q, 20) != 0,
                .imported_json = db_column_text(q, 21),
        };
        int r = store_row_state(q, 2, &e.state);
        if (r == 0)
                r = q->error;
        if (r < 0) {
                experiment_record_deinit(&e);
                return r;
        }
        place_in_backlog(&e, b);
        *ret = e;
        return 0;
}

static int select_experiment(struct db *db, int64_t id, const struct backlog *b, struct experiment_record *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(db, &q,
                         "SELECT " EXPERIMENT_COLUMNS " FROM " EXPERIMENT_TABLES " WHERE id = ? AND " SHOWN("id"),
                         DB_INT(id));
        if (r < 0)
                return r;
        return store_row_experiment(&q, b, ret);
}

int store_experiment(struct store *s, int64_t id, int64_t now_ms, struct experiment_record *ret) {
        _cleanup_(backlog_deinit) struct backlog b = {0};
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_read_backlog(s->db, now_ms, &b);
        return r < 0 ? r : select_experiment(s->db, id, &b, ret);
}

/* A page by the filter. No spec is read but those of the page, and none with the columns of id alone: words are found
 * in the text that is made for that. */
#define SELECT_PAGE(columns, where)                                                                                    \
        "SELECT " columns " FROM " EXPERIMENT_TABLES " WHERE " where                                                   \
        "id < ?2 AND " SHOWN("id") " AND (?3 IS NULL "                                                                 \
                                   "OR instr(lower(name), lower(?3)) > 0 OR instr((SELECT text FROM search_texts "     \
                                   "WHERE search_texts.experiment_id = id), lower(?3)) > 0) "                          \
                                   "ORDER BY id DESC LIMIT ?4"
static int select_experiments(struct db *db, struct db_query *q, bool ids, const struct experiment_filter *f,
                              int64_t before_id, int64_t limit) {
        static const char *const statements[2][2] = {
                {SELECT_PAGE(EXPERIMENT_COLUMNS, "?1 IS NULL AND "),
                 SELECT_PAGE(EXPERIMENT_COLUMNS, "state = ?1 AND ")},
                {SELECT_PAGE("id", "?1 IS NULL AND "), SELECT_PAGE("id", "state = ?1 AND ")},
        };
        return db_select(db, q, statements[ids][f->by_state], f->by_state ? DB_TEXT(state_name(f->state)) : DB_NULL(),
                         DB_INT(before_id > 0 ? before_id : INT64_MAX), f->words ? DB_TEXT(f->words) : DB_NULL(),
                         DB_INT(limit));
}

size_t store_experiment_bytes(const struct experiment_record *e) {
        const char *const texts[] = {e->name, e->error, e->spec_json, e->merged_json, e->skipped_json, e->until_json};
        size_t bytes = 0;
        for (size_t i = 0; i < ELEMENTS(texts); i++)
                bytes += texts[i] ? strlen(texts[i]) : 0;
        return bytes;
}

int store_experiments_end(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                          int64_t *ret_last, bool *ret_more) {
        int64_t last = 0;
        uint32_t n = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = select_experiments(s->db, &q, true, f, before_id, (int64_t) limit + 1);
        while (r >= 0 && (r = db_step(&q)) > 0)
                if (n++ < limit)
                        last = db_column_i64(&q, 0);
        bool damaged = r == -EBADMSG && n > 0; /* below the last one */
        if (r < 0 && !damaged)
                return r;
        *ret_last = last;
        *ret_more = n > limit || damaged;
        return 0;
}

static int take_changes(struct db_query *q, struct experiment_change **ret, size_t *ret_n) {
        _cleanup_free_ struct experiment_change *items = NULL;
        size_t n = 0, size = 0;
        int r = 0;
        while (r >= 0 && (r = store_next_row(q, items, size, n)) > 0)
                items[n++] = (struct experiment_change){db_column_i64(q, 0), db_column_i64(q, 1)};
        if (r < 0)
                return r;
        *ret = util_steal(&items);
        *ret_n = n;
        return 0;
}

int store_measured(struct store *s, const char *host, struct experiment_change **ret, size_t *ret_n) {
        _cleanup_query_ struct db_query q = {0};
        int r = host ? db_select(s->db, &q,
                                 "SELECT id, change FROM experiments WHERE runs_done > 0 AND " SHOWN(
                                         "id") " AND id IN (SELECT experiment_id FROM bundles WHERE host = ?) "
                                               "ORDER BY finished_at DESC, id DESC",
                                 DB_TEXT(host))
                     : db_select_all(s->db, &q,
                                     "SELECT id, change FROM experiments WHERE runs_done > 0 AND " SHOWN(
                                             "id") " AND " OWN("id") " ORDER BY id DESC");
        return r < 0 ? r : take_changes(&q, ret, ret_n);
}

int store_last_of_preset(struct store *s, const char *preset, struct preset_last *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q,
                         "SELECT id, started_at, finished_at FROM experiments WHERE preset = ? AND state = 'done' "
                         "AND " SHOWN("id") " ORDER BY id DESC LIMIT 1",
                         DB_TEXT(preset));
        if (r < 0)
                return r;
        struct preset_last last = {db_column_i64(&q, 0), db_column_i64(&q, 1), db_column_i64(&q, 2)};
        if (q.error == 0)
                *ret = last;
        return q.error;
}

int store_failed(struct store *s, uint32_t most, struct experiment_change **ret, size_t *ret_n) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT id, change FROM experiments WHERE runs_failed > 0 AND " SHOWN("id") " AND " OWN(
                                  "id") " ORDER BY id DESC LIMIT ?",
                          DB_INT(most));
        return r < 0 ? r : take_changes(&q, ret, ret_n);
}

int store_visit_points(struct store *s, int64_t experiment_id, uint32_t most, store_point_visitor visit, void *userdata,
                       uint32_t *ret_n) {
        uint32_t n = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT id, point FROM points WHERE experiment_id = ? AND rate IS NULL ORDER BY ordinal "
                          "LIMIT ?",
                          DB_INT(experiment_id), DB_INT(most));
        while (r == 0 && (r = db_step(&q)) > 0) {
                int64_t id = db_column_i64(&q, 0);
                const char *point_json = db_column_peek(&q, 1);
                n++;
                r = point_json ? visit(userdata, id, point_json) : -EBADMSG;
        }
        *ret_n = n;
        return r;
}

void failed_point_deinit(struct failed_point *p) {
        free(p->error);
        free(p->environment_json);
        *p = (struct failed_point){0};
}

int store_failed_point(struct store *s, int64_t point_id, uint32_t least, struct failed_point *ret) {
        _cleanup_query_ struct db_query q = {0};
        /* with max() alone, the other columns are those of its row */
        int r = db_first(s->db, &q,
                         "SELECT sum(state = 'failed') AS n_failed, error, environment, "
                         "max(CASE WHEN state = 'failed' THEN position END) FROM runs WHERE point_id = ?1 "
                         "HAVING n_failed >= ?2 AND sum(state IN ('done', 'queued', 'running')) = 0",
                         DB_INT(point_id), DB_INT(least));
        if (r < 0)
                return r;
        struct failed_point p = {.n_failed = db_column_u32(&q, 0),
                                 .error = db_column_text(&q, 1),
                                 .environment_json = db_column_text(&q, 2)};
        r = q.error < 0 ? q.error : p.error ? 0 : -EBADMSG;
        if (r < 0)
                failed_point_deinit(&p);
        else
                *ret = p;
        return r;
}

STORE_LIST_FREE(store_experiments_free, experiment_record)

int store_experiments(struct store *s, const struct experiment_filter *f, int64_t before_id, uint32_t limit,
                      int64_t now_ms, struct experiment_record **ret, size_t *ret_n) {
        struct experiment_record *items = NULL;
        size_t n = 0, size = 0, bytes = 0;
        _cleanup_(backlog_deinit) struct backlog b = {0};
        _cleanup_transaction_ struct db_transaction t = {0};
        _cleanup_query_ struct db_query q = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = store_read_backlog(s->db, now_ms, &b);
        if (r == 0)
                r = select_experiments(s->db, &q, false, f, before_id, limit);
        while (r >= 0 && bytes < STORE_PAGE_BYTES && (r = store_next_row(&q, items, size, n)) > 0) {
                r = store_row_experiment(&q, &b, &items[n]);
                if (r == 0)
                        bytes += store_experiment_bytes(&items[n++]);
        }
        if (r < 0 && !(r == -EBADMSG && n > 0)) {
                store_experiments_free(items, n);
                return r;
        }
        *ret = items;
        *ret_n = n;
        return 0;
}
