/* SPDX-License-Identifier: MIT */

/*
 * Experiments that get more runs: further repetitions, or another attempt of runs that did not succeed. One that had
 * ended goes to the end of the queue; one that waits or runs keeps its place.
 */

#include "daemon/log.h"
#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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
        int r = db_first(s->db, &q,
                         "SELECT state, seed, runs_total, cancel_requested_at IS NOT NULL, merged, "
                         "(SELECT count(*) FROM points WHERE experiment_id = experiments.id), searches, "
                         /* imported: not measured here */
                         "NOT " OWN("experiments.id") " FROM " EXPERIMENT_TABLES " WHERE id = ? AND " SHOWN("id"),
                         DB_INT(id));
        if (r < 0)
                return r;
        struct experiment_extent e = {
                .seed = (uint64_t) db_column_i64(&q, 1),
                .cancelling = db_column_i64(&q, 3) != 0,
                .n_points = db_column_u32(&q, 5),
                .searches = db_column_i64(&q, 6) != 0,
                .imported = db_column_i64(&q, 7) != 0,
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

int store_read_points(struct store *s, int64_t id, struct point **ret, size_t *ret_n) {
        _cleanup_free_ struct point *points = NULL;
        _cleanup_query_ struct db_query q = {0};
        size_t n = 0, size = 0;
        int r = db_select(s->db, &q, "SELECT point FROM points WHERE experiment_id = ? ORDER BY ordinal", DB_INT(id));
        while (r >= 0 && (r = store_next_row(&q, points, size, n)) > 0) {
                const char *text = db_column_peek(&q, 0);
                r = text ? point_from_json(text, strlen(text), &points[n++]) : -EBADMSG;
        }
        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        *ret = util_steal(&points);
        *ret_n = n;
        return 0;
}

/* Where the points, runs and blocks of an extension are: the first of them. */
struct place {
        int64_t experiment_id;
        size_t point, position, block;
};

/* An extension under way. With more runs inserted than it has, it was shortened, and the last ones are removed. */
struct pending {
        struct place place;
        struct extension x;
        uint32_t *order;
        struct searched_rate *rates;
        size_t inserted;
};

static void pending_deinit(struct pending *p) {
        free(p->order);
        free(p->rates);
}

/* The runs of points that are added come after all others, in blocks of their own. */
static int find_place(struct db *db, int64_t id, const struct extension *x, struct place *ret) {
        int64_t points = 0, position = (int64_t) x->n_points * (x->first_repetition - 1), block = x->first_repetition;
        int r = 0;
        if (x->rates)
                r = db_get(db, &points, "SELECT count(*) FROM points WHERE experiment_id = ?", DB_INT(id));
        if (x->rates && r == 0)
                r = db_get(db, &position, "SELECT runs_total FROM experiments WHERE id = ?", DB_INT(id));
        if (x->rates && r == 0)
                r = db_get(db, &block, "SELECT COALESCE(max(block % ?), 0) + 1 FROM runs WHERE experiment_id = ?",
                           DB_INT(RETRY_BLOCKS), DB_INT(id));
        *ret = (struct place){id, (size_t) points, (size_t) position, (size_t) block};
        return r;
}

static int read_point_ids(struct db *db, const struct place *p, size_t n_points, int64_t *ids) {
        size_t n = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(db, &q, "SELECT id FROM points WHERE experiment_id = ? AND ordinal >= ? ORDER BY ordinal",
                          DB_INT(p->experiment_id), DB_INT(p->point));
        while (r >= 0 && (r = db_step(&q)) > 0) {
                if (n == n_points)
                        return -EBADMSG;
                ids[n++] = db_column_i64(&q, 0);
        }
        return r == 0 && n != n_points ? -EBADMSG : r;
}

/* The points of a search's rates that are not there yet, with the JSON of those whose rates they are; `most` of them.
 */
static int insert_rates(struct db *db, const struct pending *p, size_t *most) {
        int64_t n;
        int r = db_get(db, &n, "SELECT count(*) FROM points WHERE experiment_id = ? AND ordinal >= ?",
                       DB_INT(p->place.experiment_id), DB_INT(p->place.point));
        for (size_t i = r == 0 ? (size_t) n : 0; r == 0 && i<p->x.n_points && * most> 0; i++, --*most) {
                r = db_run(db,
                           "INSERT INTO points (experiment_id, ordinal, point, rate) SELECT experiment_id, ?, point, ? "
                           "FROM points WHERE experiment_id = ? AND ordinal = ?",
                           DB_INT(p->place.point + i), DB_INT(p->x.rates[i].rate), DB_INT(p->place.experiment_id),
                           DB_INT(p->x.rates[i].ordinal));
                if (r == 0 && db_changed_rows(db) != 1)
                        r = -EINVAL;
        }
        return r;
}

static int insert_runs(struct db *db, const struct pending *p, const int64_t *point_ids, size_t n, int64_t change) {
        const struct extension *x = &p->x;
        int r = 0;
        for (size_t i = p->inserted; r == 0 && i < p->inserted + n; i++) {
                size_t k = i / x->n_points;
                r = x->order[i] >= x->n_points
                            ? -EINVAL
                            : store_insert_run(db, p->place.experiment_id, change + (int64_t) (i - p->inserted),
                                               point_ids[x->order[i]], x->first_repetition + k,
                                               x->in_blocks ? p->place.block + k : 0, p->place.position + i);
        }
        return r;
}

static size_t runs_of(const struct extension *x) {
        return x->n_points * x->repetitions;
}

/* A portion of what is still to be inserted: the points before the runs. */
static int insert_portion(struct db *db, struct pending *p) {
        size_t left = runs_of(&p->x) - p->inserted, most = STORE_STEP_ROWS;
        _cleanup_free_ int64_t *point_ids = calloc(p->x.n_points + 1, sizeof(*point_ids));
        int64_t change;
        int r = !point_ids ? -ENOMEM : p->x.rates ? insert_rates(db, p, &most) : 0;
        if (r < 0 || most == 0)
                return r;
        size_t n = left < most ? left : most;
        r = read_point_ids(db, &p->place, p->x.n_points, point_ids);
        if (r == 0)
                r = store_reserve_changes(db, n, &change);
        if (r == 0)
                r = insert_runs(db, p, point_ids, n, change);
        if (r == 0)
                p->inserted += n;
        return r;
}

/* The experiment has more runs from now on, of which `change` is to be the newest change. */
static int count_added(struct db *db, int64_t id, const struct extension *x, int64_t change) {
        int r = db_run(db, "UPDATE experiments SET runs_total = runs_total + ? WHERE id = ?", DB_INT(runs_of(x)),
                       DB_INT(id));
        return r < 0 ? r : queue_again(db, id, change, x->until_json);
}

static int note_pending(struct db *db, const struct pending *p) {
        _cleanup_free_ uint64_t *rates = calloc(p->x.n_points + 1, 2 * sizeof(*rates));
        if (!rates)
                return -ENOMEM;
        for (size_t i = 0; p->x.rates && i < p->x.n_points; i++) {
                rates[2 * i] = p->x.rates[i].ordinal;
                rates[2 * i + 1] = p->x.rates[i].rate;
        }
        return db_run(db,
                      "INSERT INTO extensions (experiment_id, first_repetition, in_blocks, points, inserted, sequence, "
                      "first_point, position, block, rates) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      DB_INT(p->place.experiment_id), DB_INT(p->x.first_repetition), DB_INT(p->x.in_blocks),
                      DB_INT(p->x.n_points), DB_INT(p->inserted),
                      DB_BLOB(p->x.order, runs_of(&p->x) * sizeof(*p->x.order)), DB_INT(p->place.point),
                      DB_INT(p->place.position), DB_INT(p->place.block),
                      p->x.rates ? DB_BLOB(rates, p->x.n_points * 2 * sizeof(*rates)) : DB_NULL());
}

static bool order_is_valid(const struct extension *x) {
        bool valid = true;
        for (size_t i = 0; i < runs_of(x); i++)
                valid &= x->order[i] < x->n_points;
        return valid;
}

int store_extend_some(struct store *s, int64_t id, const struct extension *x, const struct request_record *request) {
        struct pending p = {.x = *x}; /* which owns nothing */
        int64_t change;
        if (!order_is_valid(x))
                return -EINVAL;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(s, &t);
        if (r == 0)
                r = find_place(s->db, id, x, &p.place);
        if (r == 0)
                r = insert_portion(s->db, &p);
        if (r == 0)
                r = store_reserve_changes(s->db, 1, &change);
        if (r == 0)
                r = count_added(s->db, id, x, change);
        if (r == 0 && p.inserted < runs_of(x))
                r = note_pending(s->db, &p);
        if (r == 0)
                r = remember_request(s->db, id, request);
        if (r == 0)
                r = db_commit(&t);
        return r < 0 ? r : p.inserted < runs_of(x);
}

static int take_rates(const uint64_t *stored, size_t bytes, struct pending *p) {
        size_t n = p->x.n_points;
        if (!stored)
                return 0;
        if (bytes != n * 2 * sizeof(*stored))
                return -EBADMSG;
        p->rates = calloc(n + 1, sizeof(*p->rates));
        if (!p->rates)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                p->rates[i] = (struct searched_rate){.ordinal = (uint32_t) stored[2 * i], .rate = stored[2 * i + 1]};
        p->x.rates = p->rates;
        return 0;
}

/* -ENOENT: there is none. An error leaves what the caller frees, too. */
static int read_pending(struct db *db, int64_t id, struct pending *p) {
        _cleanup_query_ struct db_query q = {0};
        size_t bytes, rates_bytes;
        int r = db_first(db, &q,
                         "SELECT first_point, position, block, first_repetition, in_blocks, points, inserted, "
                         "sequence, rates FROM extensions WHERE experiment_id = ?",
                         DB_INT(id));
        if (r < 0)
                return r;
        p->place = (struct place){id, db_column_u32(&q, 0), db_column_u32(&q, 1), db_column_u32(&q, 2)};
        p->x = (struct extension){.first_repetition = db_column_u32(&q, 3),
                                  .in_blocks = db_column_i64(&q, 4) != 0,
                                  .n_points = db_column_u32(&q, 5)};
        p->inserted = db_column_u32(&q, 6);
        const void *order = db_column_blob(&q, 7, &bytes);
        size_t row = p->x.n_points * sizeof(*p->order);
        if (q.error < 0)
                return q.error;
        if (row == 0 || bytes % row != 0 || p->inserted == bytes / sizeof(*p->order))
                return -EBADMSG;
        p->order = malloc(bytes + 1);
        if (!p->order)
                return -ENOMEM;
        if (bytes > 0)
                memcpy(p->order, order, bytes);
        p->x.order = p->order;
        p->x.repetitions = (uint32_t) (bytes / row);
        const void *rates = db_column_blob(&q, 8, &rates_bytes);
        return q.error < 0 ? q.error : take_rates(rates, rates_bytes, p);
}

/* Removes a portion of the last runs of one that was shortened: none of them has begun. */
static int remove_portion(struct db *db, struct pending *p) {
        size_t left = p->inserted - runs_of(&p->x), n = left < STORE_STEP_ROWS ? left : STORE_STEP_ROWS;
        int r = db_run(db, "DELETE FROM runs WHERE experiment_id = ? AND position >= ?", DB_INT(p->place.experiment_id),
                       DB_INT(p->place.position + p->inserted - n));
        if (r == 0 && db_changed_rows(db) != n)
                r = -EBADMSG;
        if (r == 0)
                p->inserted -= n;
        return r;
}

static int note_inserted(struct db *db, const struct pending *p) {
        return p->inserted == runs_of(&p->x)
                       ? db_run(db, "DELETE FROM extensions WHERE experiment_id = ?", DB_INT(p->place.experiment_id))
                       : db_run(db, "UPDATE extensions SET inserted = ? WHERE experiment_id = ?", DB_INT(p->inserted),
                                DB_INT(p->place.experiment_id));
}

int store_continue_extension(struct db *db, int64_t id) {
        _cleanup_(pending_deinit) struct pending p = {0};
        int r = read_pending(db, id, &p);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = p.inserted > runs_of(&p.x) ? remove_portion(db, &p) : insert_portion(db, &p);
        if (r == 0)
                r = note_inserted(db, &p);
        return r < 0 ? r : 1;
}

/* How many of its runs are kept: whole repetitions, among them the last one that is there in part if it has begun. */
static int count_kept(struct db *db, const struct pending *p, size_t *ret) {
        size_t part = p->inserted % p->x.n_points, whole = p->inserted - part;
        int64_t one;
        int r = db_get(db, &one,
                       "SELECT 1 FROM runs WHERE experiment_id = ? AND position >= ? "
                       "AND (state <> 'queued' OR attempt > 0) LIMIT 1",
                       DB_INT(p->place.experiment_id), DB_INT(p->place.position + whole));
        *ret = whole + (r == 0 ? p->x.n_points : 0);
        return r == -ENOENT ? 0 : r;
}

static int shorten(struct db *db, struct pending *p, size_t kept) {
        int64_t change;
        size_t row = p->x.n_points * sizeof(*p->order), dropped = runs_of(&p->x) - kept;
        int r = store_reserve_changes(db, 1, &change);
        if (r == 0)
                r = db_run(db, "UPDATE experiments SET change = ?, runs_total = runs_total - ? WHERE id = ?",
                           DB_INT(change), DB_INT(dropped), DB_INT(p->place.experiment_id));
        p->x.repetitions = (uint32_t) (kept / p->x.n_points);
        if (r == 0)
                r = db_run(db, "UPDATE extensions SET sequence = substr(sequence, 1, ?) WHERE experiment_id = ?",
                           DB_INT(row * p->x.repetitions), DB_INT(p->place.experiment_id));
        return r < 0 ? r : note_inserted(db, p);
}

int store_drop_extension(struct db *db, int64_t id) {
        _cleanup_(pending_deinit) struct pending p = {0};
        size_t kept;
        int r = read_pending(db, id, &p);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (p.inserted > runs_of(&p.x))
                return store_continue_extension(db, id);
        r = count_kept(db, &p, &kept);
        if (r < 0)
                return r;
        if (kept >= runs_of(&p.x)) /* the rest of a repetition that has begun */
                return store_continue_extension(db, id);
        r = shorten(db, &p, kept);
        return r < 0 ? r : 1;
}

static int extend_one(struct store *s, int64_t id) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int64_t one;
        int r = db_get(s->db, &one, "SELECT 1 FROM extensions WHERE experiment_id = ?", DB_INT(id));
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = store_begin_growth(s, &t);
        if (r < 0)
                return r;
        int added = store_continue_extension(s->db, id);
        if (added <= 0)
                return added;
        r = db_commit(&t);
        return r < 0 ? r : added;
}

/* Without them the experiment never has all of its runs. */
static int extend_or_fail(struct store *s, int64_t id) {
        int r = extend_one(s, id);
        if (r != -EBADMSG)
                return r;
        r = store_fail_queued(s, id, UNREADABLE);
        return r == 0 ? -EBADMSG : r;
}

int store_extend_more(struct store *s, int64_t id) {
        static const struct leftovers extensions = {"the rest of an extension of experiment",
                                                    "SELECT experiment_id FROM extensions", extend_or_fail};
        return id ? extend_one(s, id) : store_step_leftovers(s, &extensions, &s->extensions);
}

struct retried {
        uint64_t failed, cancelled, interrupted;
};

/* Queues runs of one state, as many as `most`. They run weeks after the others of their block, perhaps, and are of one
 * of their own: comparisons pair the runs of a block because the machine was the same for all of them. */
static int queue_state(struct db *db, int64_t id, enum state state, int64_t change, uint64_t most, uint64_t *ret_n) {
        int r = db_run(
                db,
                "UPDATE runs SET state = 'queued', change = ? + position, started_at = NULL, finished_at = NULL, "
                "error = NULL, flags = '[]', result = NULL, agents = '[]', environment = NULL, block = block + ? "
                "WHERE id IN (SELECT id FROM runs WHERE experiment_id = ? AND state = ? ORDER BY position LIMIT ?)",
                DB_INT(change), DB_INT(RETRY_BLOCKS), DB_INT(id), DB_TEXT(state_name(state)), DB_INT(most));
        if (r == 0)
                *ret_n = db_changed_rows(db);
        return r;
}

static int queue_runs(struct db *db, int64_t id, int64_t change, struct retried *ret) {
        struct retried n = {0};
        int r = queue_state(db, id, STATE_FAILED, change, STORE_STEP_ROWS, &n.failed);
        if (r == 0)
                r = queue_state(db, id, STATE_CANCELLED, change, STORE_STEP_ROWS - n.failed, &n.cancelled);
        if (r == 0)
                r = queue_state(db, id, STATE_INTERRUPTED, change, STORE_STEP_ROWS - n.failed - n.cancelled,
                                &n.interrupted);
        if (r == 0)
                *ret = n;
        return r;
}

int store_retryable(struct store *s, int64_t id, uint64_t *ret) {
        int64_t n;
        int r = db_get(s->db, &n,
                       "SELECT count(*) FROM runs WHERE experiment_id = ? "
                       "AND state IN ('failed', 'cancelled', 'interrupted')",
                       DB_INT(id));
        if (r == 0)
                *ret = (uint64_t) n;
        return r;
}

int store_retry_some(struct store *s, int64_t id, bool begun, const struct request_record *request) {
        int64_t change, total;
        struct retried n;
        bool more = false;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_growth(s, &t);
        if (r == 0)
                r = db_get(s->db, &total, "SELECT runs_total FROM experiments WHERE id = ?", DB_INT(id));
        if (r == 0)
                r = store_reserve_changes(s->db, (uint64_t) total + 1, &change);
        if (r == 0)
                r = queue_runs(s->db, id, change, &n);
        if (r == 0) {
                uint64_t all = n.failed + n.cancelled + n.interrupted;
                more = all == STORE_STEP_ROWS;
                if (all == 0 && !begun)
                        return -ENODATA;
                r = db_run(s->db,
                           "UPDATE experiments SET runs_failed = CASE WHEN ?1 THEN runs_failed - ? ELSE 0 END, "
                           "runs_cancelled = CASE WHEN ?1 THEN runs_cancelled - ? ELSE 0 END WHERE id = ?",
                           DB_INT(more), DB_INT(n.failed), DB_INT(n.cancelled), DB_INT(id));
        }
        if (r == 0)
                r = queue_again(s->db, id, change + total, NULL);
        if (r == 0 && !more)
                r = remember_request(s->db, id, request);
        if (r == 0)
                r = db_commit(&t);
        return r < 0 ? r : more;
}

#define UNDECIDED_NOW                                                                                                  \
        "state IN ('running', 'queued') AND runs_done + runs_failed + runs_cancelled = runs_total AND " SHOWN(         \
                "id") " AND " UNDECIDED

/* Where a page is damaged: an experiment whose texts cannot be read gets no more runs. */
static int undecided_readable(struct store *s, struct experiment_record *ret) {
        _cleanup_free_ int64_t *ids = NULL;
        size_t n = 0;
        int r = store_queued_ids(s->db, &ids, &n);
        for (size_t i = 0; r == 0 && i < n; i++) {
                int64_t id;
                r = db_get(s->db, &id, "SELECT id FROM experiments WHERE id = ? AND " UNDECIDED_NOW, DB_INT(ids[i]));
                if (r == 0 && (r = store_experiment(s, id, util_now_ms(), ret)) == 0)
                        return 0;
                if (r == -EBADMSG && (r = store_conclude_experiment(s, ids[i], NULL)) == 0)
                        log_error("whether experiment %" PRId64 " needs more runs cannot be decided: " UNREADABLE,
                                  ids[i]);
                if (r == -ENOENT || r == -EBADMSG)
                        r = 0;
        }
        return r < 0 ? r : -ENOENT;
}

int store_undecided(struct store *s, struct experiment_record *ret) {
        int64_t id;
        int r = db_get_one(s->db, &id, "SELECT id FROM experiments WHERE " UNDECIDED_NOW " ORDER BY turn LIMIT 1");
        if (r == 0)
                r = store_experiment(s, id, util_now_ms(), ret);
        return r == -EBADMSG ? undecided_readable(s, ret) : r;
}

int store_conclude_experiment(struct store *s, int64_t id, const char *until_json) {
        int64_t change;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_begin_write(s->db, &t, 1, &change);
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
