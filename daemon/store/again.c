/* SPDX-License-Identifier: MIT */

/*
 * Experiments that get more to do: further repetitions, or runs that did not succeed once more. One that had ended goes
 * to the end of the queue; one that waits or runs keeps its place.
 */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>

static int remember_request(struct db *db, int64_t experiment_id, const struct request_record *request) {
        int64_t id;
        if (!request->key)
                return 0;
        int r = db_get(db, &id, "SELECT id FROM experiments WHERE idempotency_key = ?", DB_TEXT(request->key));
        if (r != -ENOENT)
                return r < 0 ? r : -EEXIST;
        return db_run(db, "INSERT INTO requests (key, experiment_id, request) VALUES (?, ?, ?)", DB_TEXT(request->key),
                      DB_INT(experiment_id), DB_TEXT(request->text));
}

/* The experiment has runs in the queue again; `change` is its newest. until_json as of struct extension. */
static int queue_again(struct db *db, int64_t id, int64_t change, const char *until_json) {
        return db_run(db,
                      "UPDATE experiments SET change = ?1, until = COALESCE(?3, json_set(until, '$.state', "
                      "'running')), error = NULL, finished_at = NULL, cancel_requested_at = NULL, "
                      "turn = CASE WHEN state IN ('queued', 'running') THEN turn ELSE ?1 END, "
                      "state = CASE WHEN state = 'running' THEN state ELSE 'queued' END WHERE id = ?2",
                      DB_INT(change), DB_INT(id), DB_TEXT(until_json));
}

int store_read_extent(struct store *s, int64_t id, struct experiment_extent *ret) {
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(s->db, &q,
                          "SELECT state, seed, runs_total, cancel_requested_at IS NOT NULL, merged, "
                          "(SELECT count(*) FROM points WHERE experiment_id = experiments.id) "
                          "FROM experiments WHERE id = ? AND " SHOWN("id"),
                          DB_INT(id));
        if (r == 0)
                r = db_step(&q);
        if (r <= 0)
                return r < 0 ? r : -ENOENT;
        struct experiment_extent e = {
                .seed = (uint64_t) db_column_i64(&q, 1),
                .cancelling = db_column_i64(&q, 3) != 0,
                .n_points = db_column_u32(&q, 5),
        };
        uint32_t runs = db_column_u32(&q, 2);
        r = store_row_state(&q, 0, &e.state);
        if (r == 0)
                r = q.error;
        if (r == 0 && (e.n_points == 0 || runs % e.n_points != 0))
                r = -EBADMSG;
        if (r < 0)
                return r;
        e.repetitions = runs / e.n_points;
        e.merged_json = db_column_text(&q, 4);
        if (!e.merged_json)
                return q.error < 0 ? q.error : -EBADMSG;
        *ret = e;
        return 0;
}

void experiment_extent_deinit(struct experiment_extent *e) {
        free(e->merged_json);
        *e = (struct experiment_extent){0};
}

static int insert_runs(struct db *db, int64_t experiment_id, int64_t first_change, const int64_t *point_ids,
                       const struct extension *x) {
        size_t first_position = x->n_points * (x->first_repetition - 1);
        int r = 0;
        for (size_t i = 0; r == 0 && i < x->n_points * x->repetitions; i++)
                r = x->order[i] >= x->n_points
                            ? -EINVAL
                            : store_insert_run(db, experiment_id, first_change + (int64_t) i, point_ids[x->order[i]],
                                               x->first_repetition + i / x->n_points, x->in_blocks, first_position + i);
        return r;
}

static int read_point_ids(struct db *db, int64_t experiment_id, size_t n_points, int64_t *ids) {
        size_t n = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(db, &q, "SELECT id FROM points WHERE experiment_id = ? ORDER BY ordinal",
                          DB_INT(experiment_id));
        while (r == 0 && (r = db_step(&q)) > 0) {
                if (n == n_points)
                        return -EBADMSG;
                ids[n++] = db_column_i64(&q, 0);
                r = 0;
        }
        if (r == 0)
                r = q.error;
        return r == 0 && n != n_points ? -EBADMSG : r;
}

int store_extend_experiment(struct store *s, int64_t id, const struct extension *x,
                            const struct request_record *request) {
        uint64_t n_runs = (uint64_t) x->n_points * x->repetitions;
        _cleanup_free_ int64_t *point_ids = calloc(x->n_points + 1, sizeof(*point_ids));
        if (!point_ids)
                return -ENOMEM;
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = read_point_ids(s->db, id, x->n_points, point_ids);
        if (r == 0)
                r = store_reserve_changes(s->db, n_runs + 1, &change);
        if (r == 0)
                r = insert_runs(s->db, id, change, point_ids, x);
        if (r == 0)
                r = db_run(s->db, "UPDATE experiments SET runs_total = runs_total + ? WHERE id = ?", DB_INT(n_runs),
                           DB_INT(id));
        if (r == 0)
                r = queue_again(s->db, id, change + (int64_t) n_runs, x->until_json);
        if (r == 0)
                r = remember_request(s->db, id, request);
        return r < 0 ? r : db_commit(&t);
}

int store_retry_experiment(struct store *s, int64_t id, const struct request_record *request) {
        int64_t change, total;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = db_get(s->db, &total, "SELECT runs_total FROM experiments WHERE id = ?", DB_INT(id));
        if (r == 0)
                r = store_reserve_changes(s->db, (uint64_t) total + 1, &change);
        if (r == 0)
                r = db_run(s->db,
                           "UPDATE runs SET state = 'queued', change = ? + position, started_at = NULL, "
                           "finished_at = NULL, error = NULL, flags = '[]', result = NULL, agents = '[]', "
                           "environment = NULL WHERE experiment_id = ? AND state IN ('failed', 'cancelled', "
                           "'interrupted')",
                           DB_INT(change), DB_INT(id));
        if (r == 0 && db_changed_rows(s->db) == 0)
                return -ENODATA;
        if (r == 0)
                r = db_run(s->db, "UPDATE experiments SET runs_failed = 0, runs_cancelled = 0 WHERE id = ?",
                           DB_INT(id));
        if (r == 0)
                r = queue_again(s->db, id, change + total, NULL);
        if (r == 0)
                r = remember_request(s->db, id, request);
        return r < 0 ? r : db_commit(&t);
}

int store_undecided(struct store *s, struct experiment_record *ret) {
        int64_t id;
        int r = db_get_one(s->db, &id,
                           "SELECT id FROM experiments WHERE state IN ('running', 'queued') "
                           "AND runs_done + runs_failed + runs_cancelled = runs_total AND " SHOWN(
                                   "id") " AND " UNDECIDED " ORDER BY turn LIMIT 1");
        return r < 0 ? r : store_experiment(s, id, util_now_ms(), ret);
}

int store_conclude_experiment(struct store *s, int64_t id, const char *until_json) {
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(s->db, &t);
        if (r == 0)
                r = store_reserve_changes(s->db, 1, &change);
        if (r == 0)
                r = db_run(
                        s->db,
                        "UPDATE experiments SET change = ?, until = COALESCE(?, json_set(until, '$.state', 'failed')) "
                        "WHERE id = ?",
                        DB_INT(change), DB_TEXT(until_json), DB_INT(id));
        if (r == 0)
                r = store_settle_experiment(s->db, id, util_now_ms());
        return r < 0 ? r : db_commit(&t);
}
