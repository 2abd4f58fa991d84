/* SPDX-License-Identifier: MIT */

/*
 * Samples in the store: a row per agent, thread and second, written in batches during a run, read by
 * experiment or by run in the order of their arrival.
 */

#include "daemon/store/internal.h"
#include "schema/util.h"

#include <errno.h>

#define RATES_ROWS_MAX 4096 /* read of one run: nothing of its size may hold a reader */

int store_count_samples(struct db *db, int64_t difference) {
        if (difference == 0)
                return 0;
        return db_run(db, "UPDATE counters SET value = value + ? WHERE name = 'samples'", DB_INT(difference));
}

static int insert_sample(struct db *db, const struct sample_record *sample, int64_t change) {
        return db_run(db,
                      "INSERT INTO samples (change, experiment_id, run_id, thread, second, interval_ns, messages, "
                      "bytes, latency_sum, agent, counters, latency, begin_ns) "
                      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      DB_INT(change), DB_INT(sample->experiment_id), DB_INT(sample->run_id), DB_INT(sample->thread),
                      DB_INT(sample->second), DB_INT(sample->interval_ns), DB_INT(sample->messages),
                      DB_INT(sample->bytes), sample->latency_v2 ? DB_INT(sample->latency_sum_ns) : DB_NULL(),
                      DB_TEXT(sample->agent), DB_TEXT(sample->counters_json),
                      DB_BLOB(sample->latency_v2, sample->latency_length),
                      sample->begin_ns ? DB_INT(sample->begin_ns) : DB_NULL());
}

int store_add_samples(struct store *s, const struct sample_record *samples, size_t n) {
        if (n == 0)
                return 0;
        int64_t change, one;
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = store_require_room(s);
        if (r == 0)
                r = store_begin_write(s->db, &t, n, &change);
        for (size_t i = 0; r == 0 && i < n; i++) {
                if (i == 0 || samples[i].run_id != samples[i - 1].run_id)
                        r = db_get(s->db, &one,
                                   "SELECT 1 FROM runs WHERE id = ? AND experiment_id = ? AND state = 'running'",
                                   DB_INT(samples[i].run_id), DB_INT(samples[i].experiment_id));
                if (r == 0)
                        r = insert_sample(s->db, &samples[i], change + (int64_t) i);
        }
        if (r == 0)
                r = store_count_samples(s->db, (int64_t) n);
        return r < 0 ? r : db_commit(&t);
}

static int read_latency(struct db_query *q, struct histogram **ret) {
        size_t length;
        const void *data = db_column_blob(q, 11, &length);
        int64_t sum_ns = db_column_i64(q, 8);
        if (q->error < 0 || !data)
                return q->error;
        _cleanup_free_ struct histogram *h = malloc(sizeof(*h));
        if (!h)
                return -ENOMEM;
        int r = histogram_decode(data, length, h);
        if (r < 0)
                return r;
        h->sum_ns = (uint64_t) sum_ns; /* exact, whereas the decoder estimates it */
        *ret = util_steal(&h);
        return 0;
}

int store_row_sample(struct db_query *q, struct sample_record *ret) {
        struct sample_record sample = {
                .change = db_column_i64(q, 0),
                .experiment_id = db_column_i64(q, 1),
                .run_id = db_column_i64(q, 2),
                .thread = db_column_u32(q, 3),
                .second = db_column_u32(q, 4),
                .interval_ns = (uint64_t) db_column_i64(q, 5),
                .messages = (uint64_t) db_column_i64(q, 6),
                .bytes = (uint64_t) db_column_i64(q, 7),
                .agent = db_column_text(q, 9),
                .counters_json = db_column_text(q, 10),
                .begin_ns = (uint64_t) db_column_i64(q, 12),
        };
        int r = read_latency(q, &sample.latency);
        if (r == 0)
                r = q->error;
        if (r < 0) {
                sample_record_deinit(&sample);
                return r;
        }
        *ret = sample;
        return 0;
}

STORE_LIST_FREE(store_samples_free, sample_record)

static int select_samples(struct db *db, struct db_query *q, int64_t experiment_id, int64_t run_id,
                          int64_t after_change, uint32_t limit) {
        int64_t one;
        int r;
        if (run_id > 0) {
                r = db_get(db, &one, "SELECT 1 FROM runs WHERE id = ? AND " SHOWN("experiment_id"), DB_INT(run_id));
                return r < 0 ? r
                             : db_select(db, q,
                                         "SELECT " SAMPLE_COLUMNS " FROM samples WHERE run_id = ? AND change > ? "
                                         "ORDER BY change LIMIT ?",
                                         DB_INT(run_id), DB_INT(after_change), DB_INT(limit));
        }
        r = store_require_experiment(db, experiment_id);
        return r < 0 ? r
                     : db_select(db, q,
                                 "SELECT " SAMPLE_COLUMNS " FROM samples WHERE experiment_id = ? AND change > ? "
                                 "ORDER BY change LIMIT ?",
                                 DB_INT(experiment_id), DB_INT(after_change), DB_INT(limit));
}

int store_samples(struct store *s, int64_t experiment_id, int64_t run_id, int64_t after_change, uint32_t limit,
                  struct sample_record **ret, size_t *ret_n) {
        struct sample_record *items = NULL;
        size_t n = 0, size = 0, bytes = 0;
        _cleanup_transaction_ struct db_transaction t = {0};
        _cleanup_query_ struct db_query q = {0};
        int r = db_begin_read(s->db, &t);
        if (r == 0)
                r = select_samples(s->db, &q, experiment_id, run_id, after_change, limit);
        while (r >= 0 && bytes < STORE_PAGE_BYTES && (r = store_next_row(&q, items, size, n)) > 0) {
                r = store_row_sample(&q, &items[n]);
                if (r == 0)
                        bytes += items[n++].latency ? sizeof(struct histogram) : 0;
        }
        if (r < 0 && !(r == -EBADMSG && n > 0)) {
                store_samples_free(items, n);
                return r;
        }
        *ret = items;
        *ret_n = n;
        return 0;
}

/* A window's last second is short, and a second that a thread lacks is not the run's. */
int store_run_rates(struct store *s, int64_t run_id, double **ret, size_t *ret_n, size_t *ret_rows) {
        _cleanup_free_ double *rates = NULL;
        size_t n = 0, size = 0, rows = 0;
        int64_t most = 0;
        _cleanup_query_ struct db_query q = {0};
        int r = db_select(
                s->db, &q,
                "SELECT SUM(messages * 1e9 / interval_ns), COUNT(*) FROM "
                "(SELECT second, messages, interval_ns FROM samples WHERE run_id = ? ORDER BY change LIMIT ?) "
                "WHERE interval_ns BETWEEN 900000000 AND 1100000000 GROUP BY second ORDER BY second",
                DB_INT(run_id), DB_INT(RATES_ROWS_MAX));
        while (r >= 0 && (r = store_next_row(&q, rates, size, n)) > 0) {
                int64_t threads = db_column_i64(&q, 1);
                if (threads > most)
                        n = 0;
                most = threads > most ? threads : most;
                rows += (size_t) threads;
                if (threads == most)
                        rates[n++] = db_column_double(&q, 0);
        }
        if (r < 0)
                return r;
        *ret = util_steal(&rates);
        *ret_n = n;
        *ret_rows = rows;
        return 0;
}
