/* SPDX-License-Identifier: MIT */

/*
 * Experiments of other hosts in the store. They have rows like those that were measured here, so that all reads serve
 * them, and the file that they came as. Of a run's latencies the store has one sample, of its whole window.
 */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

static struct db_value time_or_null(int64_t ms) {
        return ms > 0 ? DB_INT(ms) : DB_NULL();
}

/* `measures` stays empty: what was measured elsewhere is not compared with a baseline by itself. */
static int insert_experiment(struct db *db, const struct experiment_record *e, int64_t change, int64_t *ret_id) {
        int r = db_run(
                db,
                "INSERT INTO experiments (change, turn, state, seed, estimate_ns, created_at, started_at, "
                "finished_at, runs_total, runs_done, runs_failed, runs_cancelled, version, name, error, searches) "
                "VALUES (?1, ?1, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                DB_INT(change), DB_TEXT(state_name(e->state)), DB_INT(e->seed), DB_INT(e->created_at),
                time_or_null(e->started_at), time_or_null(e->finished_at), DB_INT(e->runs_total), DB_INT(e->runs_done),
                DB_INT(e->runs_failed), DB_INT(e->runs_cancelled), DB_TEXT(e->version), DB_TEXT(e->name),
                DB_TEXT(e->error), DB_INT(e->searches));
        if (r < 0)
                return r;
        *ret_id = db_last_id(db);
        r = db_run(db, "INSERT INTO specs (experiment_id, skipped, merged, spec) VALUES (?, ?, ?, ?)", DB_INT(*ret_id),
                   DB_TEXT(e->skipped_json), DB_TEXT(e->merged_json), DB_TEXT(e->spec_json));
        return r < 0 ? r : store_insert_search_text(db, *ret_id, e->spec_json);
}

int store_begin_import(struct store *s, const struct experiment_record *e, struct importing *ret) {
        struct importing i = {.store = s};
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_require_room(s);
        if (r == 0)
                r = store_begin_write(s->db, &t, 1, &change);
        if (r == 0)
                r = insert_experiment(s->db, e, change, &i.id);
        if (r == 0) /* until it is whole */
                r = db_run(s->db, "INSERT INTO forgotten (experiment_id) VALUES (?)", DB_INT(i.id));
        if (r == 0)
                r = db_commit(&t);
        if (r < 0)
                return r;
        s->adding++;
        *ret = i;
        return 0;
}

static int find_point(struct db *db, int64_t experiment_id, const struct imported_run *x, int64_t *ret) {
        int r = db_get(db, ret, "SELECT id FROM points WHERE experiment_id = ? AND ordinal = ?", DB_INT(experiment_id),
                       DB_INT(x->ordinal));
        if (r != -ENOENT)
                return r;
        r = db_run(db, "INSERT INTO points (experiment_id, ordinal, point, rate) VALUES (?, ?, ?, ?)",
                   DB_INT(experiment_id), DB_INT(x->ordinal), DB_TEXT(x->run.point_json),
                   x->run.rate > 0 ? DB_INT(x->run.rate) : DB_NULL());
        if (r == 0)
                *ret = db_last_id(db);
        return r;
}

static int insert_run(struct db *db, int64_t experiment_id, int64_t change, const struct imported_run *x,
                      int64_t *ret_id) {
        const struct run_record *run = &x->run;
        int64_t point_id = 0;
        int r = find_point(db, experiment_id, x, &point_id);
        if (r == 0)
                r = db_run(
                        db,
                        "INSERT INTO runs (change, experiment_id, point_id, repetition, block, position, state, "
                        "attempt, started_at, finished_at, error, flags, result, agents, environment, probes, begun) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)",
                        DB_INT(change), DB_INT(experiment_id), DB_INT(point_id), DB_INT(run->repetition),
                        run->block > 0 ? DB_INT(run->block) : DB_NULL(), DB_INT(run->position),
                        DB_TEXT(state_name(run->state)), DB_INT(run->attempt), time_or_null(run->started_at),
                        time_or_null(run->finished_at), DB_TEXT(run->error), DB_TEXT(run->flags_json),
                        DB_TEXT(run->result_json), DB_TEXT(run->agents_json), DB_TEXT(run->environment_json),
                        DB_TEXT(run->probes_json));
        if (r == 0)
                *ret_id = db_last_id(db);
        return r;
}

static int insert_window(struct db *db, int64_t experiment_id, int64_t run_id, int64_t change,
                         const struct imported_run *x) {
        _cleanup_free_ uint8_t *data = NULL;
        size_t length = 0;
        int r = x->latency ? histogram_encode(x->latency, &data, &length) : 0;
        if (r < 0 || x->window_ns == 0)
                return r;
        r = db_run(db,
                   "INSERT INTO samples (change, experiment_id, run_id, thread, second, interval_ns, messages, bytes, "
                   "latency_sum, agent, latency) VALUES (?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?)",
                   DB_INT(change), DB_INT(experiment_id), DB_INT(run_id), DB_INT(x->window_ns), DB_INT(x->messages),
                   DB_INT(x->bytes), x->latency ? DB_INT(x->latency->sum_ns) : DB_NULL(), DB_TEXT(x->role),
                   DB_BLOB(data, length));
        return r < 0 ? r : store_count_samples(db, 1);
}

int store_import_runs(struct importing *i, const struct imported_run *runs, size_t n) {
        struct db *db = i->store->db;
        int64_t change, id = 0;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(i->store, &t);
        if (r == 0)
                r = store_reserve_changes(db, 2 * n, &change);
        for (size_t k = 0; r == 0 && k < n; k++) {
                r = insert_run(db, i->id, change + 2 * (int64_t) k, &runs[k], &id);
                if (r == 0)
                        r = insert_window(db, i->id, id, change + 2 * (int64_t) k + 1, &runs[k]);
        }
        return r < 0 ? r : db_commit(&t);
}

int store_import_part(struct importing *i, uint32_t part, const void *data, size_t length) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(i->store, &t);
        if (r == 0)
                r = db_run(i->store->db, "INSERT INTO bundle_parts (experiment_id, part, data) VALUES (?, ?, ?)",
                           DB_INT(i->id), DB_INT(part), DB_BLOB(data, length));
        return r < 0 ? r : db_commit(&t);
}

int store_end_import(struct importing *i, const struct bundle_file *file, const char *search_json) {
        struct db *db = i->store->db;
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(db, &t);
        if (r == 0)
                r = store_reserve_changes(db, 1, &change);
        if (r == 0)
                r = db_run(db, "INSERT INTO bundles (experiment_id, taken_at, sha256, host) VALUES (?, ?, ?, ?)",
                           DB_INT(i->id), DB_INT(util_now_ms()), DB_TEXT(file->sha256), DB_TEXT(file->host));
        if (r == 0)
                r = db_run(db, "DELETE FROM forgotten WHERE experiment_id = ?", DB_INT(i->id));
        if (r == 0)
                r = db_run(db, "UPDATE experiments SET change = ?, until = ? WHERE id = ?", DB_INT(change),
                           DB_TEXT(search_json), DB_INT(i->id));
        return r < 0 ? r : db_commit(&t);
}

void store_import_deinit(struct importing *i) {
        if (i->store)
                i->store->adding--;
        *i = (struct importing){0};
}

int store_find_bundle(struct store *s, const char *sha256, int64_t *ret_id) {
        return db_get(s->db, ret_id, "SELECT experiment_id FROM bundles WHERE sha256 = ? AND " SHOWN("experiment_id"),
                      DB_TEXT(sha256));
}

int store_bundle_part(struct store *s, int64_t id, uint32_t part, uint8_t **ret, size_t *ret_length, bool *ret_last) {
        size_t length = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_first(s->db, &q,
                         "SELECT data, part = (SELECT max(part) FROM bundle_parts WHERE experiment_id = ?1) "
                         "FROM bundle_parts WHERE experiment_id = ?1 AND part = ?2 AND " SHOWN("experiment_id"),
                         DB_INT(id), DB_INT(part));
        if (r < 0)
                return r;
        const void *data = db_column_blob(&q, 0, &length);
        if (q.error < 0 || !data)
                return q.error < 0 ? q.error : -EBADMSG;
        uint8_t *copy = malloc(length);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, data, length);
        *ret = copy;
        *ret_length = length;
        *ret_last = db_column_i64(&q, 1) != 0;
        return 0;
}
