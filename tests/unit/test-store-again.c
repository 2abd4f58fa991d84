/* SPDX-License-Identifier: MIT */

/* Experiments that get more to do: further repetitions, runs once more, and their place in the queue. */

#include "daemon/run/blocks.h"
#include "daemon/store/internal.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/full-disk.h"
#include "tests/unit/listed-runs.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>

static const struct request_record no_key = {NULL, "extend"};

/* Runs all that is queued; the number of runs, of which each but those of `failing` (bits by turn) is done. */
static int run_all(struct fixture *f, unsigned failing) {
        int n = 0;
        for (int64_t id; (id = fixture_start(f->store)) > 0; n++, failing >>= 1)
                if (fixture_finish(f->store, id, failing & 1 ? STATE_FAILED : STATE_DONE,
                                   failing & 1 ? "broken" : NULL) < 0)
                        return -1;
        return n;
}

/* One more repetition of an experiment of two points. */
static int extend(struct fixture *f, int64_t id, uint32_t first, const struct request_record *request) {
        static const uint32_t order[] = {1, 0};
        return store_extend_some(
                f->store, id,
                &(struct extension){
                        .order = order, .n_points = 2, .first_repetition = first, .repetitions = 1, .in_blocks = true},
                request);
}

static void test_extend_one_that_is_done(void) {
        FIXTURE f;
        int64_t id, change;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 2, NULL, &id), 0);
        CHECK_INT(run_all(&f, 0), 4);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE);
        CHECK_INT(store_last_change(f.store, &change), 0);
        CHECK_INT(extend(&f, id, 3, &no_key), 0);
        CHECK_INT(fixture_reopen(&f), 0); /* it was on disk */

        struct experiment_record e;
        CHECK_INT(store_experiment(f.store, id, util_now_ms(), &e), 0);
        bool good = e.state == STATE_QUEUED && e.runs_total == 6 && e.runs_done == 4 && e.finished_at == 0 &&
                    e.started_at > 0 && e.change > change && e.queue_position == 1;
        experiment_record_deinit(&e);
        CHECK(good);
        struct run_record *runs = NULL;
        size_t n = 0;
        CHECK_INT(listed_runs(f.store, id, 4, 10, &runs, &n), 0);
        good = n == 2 && runs[0].repetition == 3 && runs[0].block == 3 && runs[0].position == 4 &&
               runs[1].position == 5 && strstr(runs[0].point_json, "\"message_size\":2") &&
               strstr(runs[1].point_json, "\"message_size\":1,") && runs[0].change > change;
        listed_runs_free(runs, n);
        CHECK(good);
        CHECK_INT(run_all(&f, 0), 2);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE);
}

static void test_extend_is_all_or_nothing(void) {
        FIXTURE f;
        int64_t id;
        static const uint32_t order[] = {0, 2};
        const struct extension bad = {.order = order, .n_points = 2, .first_repetition = 2, .repetitions = 1};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        CHECK_INT(store_extend_some(f.store, id, &bad, &no_key), -EINVAL);
        CHECK_INT(extend(&f, id, 1, &no_key), -EEXIST); /* these positions are taken */
        CHECK_INT(extend(&f, 99, 1, &no_key), -EBADMSG);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 2);
        CHECK_INT(number(&f, "SELECT runs_total FROM experiments"), 2);
}

static void test_queued_again_is_last(void) {
        FIXTURE f;
        int64_t first, second, third;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &first), 0);
        CHECK_INT(run_all(&f, 0), 2);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &second), 0);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &third), 0);
        int64_t running = fixture_start(f.store);
        CHECK_INT(extend(&f, first, 2, &no_key), 0);
        CHECK_INT(extend(&f, second, 2, &no_key), 0); /* it runs: it keeps its turn, and so does the next */
        CHECK_INT(extend(&f, third, 2, &no_key), 0);
        CHECK_INT(fixture_experiment_state(f.store, second), STATE_RUNNING);
        CHECK_INT(fixture_finish(f.store, running, STATE_DONE, NULL), 0);

        const int64_t want[] = {second, second, second, third, third, third, third, first, first};
        for (size_t i = 0; i < ELEMENTS(want); i++) {
                struct run_record run;
                struct experiment_record e;
                CHECK_INT(store_next_run(f.store, &run, &e), 0);
                int64_t got = run.experiment_id, id = run.id, place = e.queue_position;
                run_record_deinit(&run);
                experiment_record_deinit(&e);
                CHECK_INT(got, want[i]);
                CHECK(place <= 1); /* the order in which they are shown is that in which they run */
                CHECK_INT(store_start_run(f.store, id), 0);
                CHECK_INT(fixture_finish(f.store, id, STATE_DONE, NULL), 0);
        }
}

static void test_retry_what_failed(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 2, NULL, &id), 0);
        CHECK_INT(run_all(&f, 1u << 1 | 1u << 2), 4);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_FAILED);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
        CHECK_INT(fixture_reopen(&f), 0);

        struct experiment_record e;
        CHECK_INT(store_experiment(f.store, id, util_now_ms(), &e), 0);
        bool good = e.state == STATE_QUEUED && !e.error && e.runs_done == 2 && e.runs_failed == 0 && e.runs_total == 4;
        experiment_record_deinit(&e);
        CHECK(good);
        struct run_record *runs = NULL;
        size_t n = 0;
        CHECK_INT(listed_runs(f.store, id, 0, 10, &runs, &n), 0);
        good = n == 4 && runs[0].state == STATE_DONE && runs[1].state == STATE_QUEUED && runs[1].attempt == 1 &&
               !runs[1].error && runs[1].started_at == 0 && runs[2].state == STATE_QUEUED &&
               runs[1].change != runs[2].change;
        listed_runs_free(runs, n);
        CHECK(good);
        CHECK_INT(run_all(&f, 0), 2);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE attempt = 2"), 2);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), -ENODATA);
        CHECK_INT(store_retry_some(f.store, 99, false, &no_key), -ENOENT);
}

/* What failed in a block ran at another time than the rest of it; what failed of it ran together again. */
static void test_retried_runs_are_of_another_block(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 2, NULL, &id), 0);
        CHECK_INT(db_run(f.store->db, "UPDATE runs SET block = 1 + position / 3 WHERE position < 6"), 0);
        CHECK_INT(run_all(&f, 1u << 1 | 1u << 2 | 1u << 5), 6);
        for (int64_t times = 1; times <= 2; times++) {
                CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'done' AND block = 1 + position / 3"), 3);
                CHECK_INT(number(&f, "SELECT count(DISTINCT block) FROM runs WHERE state = 'queued' AND block > 2"), 2);
                CHECK_INT(number(&f, "SELECT count(DISTINCT block) FROM runs WHERE position IN (1, 2)"), 1);
                CHECK_INT(number(&f, "SELECT min(block) FROM runs WHERE state = 'queued'"), 1 + times * 1000000);
                CHECK_INT(run_all(&f, times == 1 ? ~0u : 0), 3);
        }
        CHECK_INT(db_run(f.store->db, "UPDATE runs SET block = NULL, state = 'failed'"), 0);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
        CHECK_INT(number(&f, "SELECT count(block) FROM runs"), 0); /* of a shuffled order: of none */
}

/* The middle one, which was retried, is the last in time: wherever figures are read, and also before an extension. */
static void test_runs_come_in_their_order_in_time(void) {
        static const uint32_t blocks[] = {1, 3, 1000002, 4};
        FIXTURE f;
        int64_t id;
        struct point_record *points = NULL;
        struct figures_point *figures = NULL;
        int64_t *runs = NULL;
        size_t n = 0, n_figures = 0, n_runs = 0;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 4, NULL, &id), 0);
        CHECK_INT(run_all(&f, 0), 4);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET block = repetition, started_at = 100 * repetition;"
                                             "UPDATE runs SET block = 1000002, started_at = 350 WHERE repetition = 2"),
                  0);
        CHECK_INT(store_points(f.store, id, 0, 1, &points, &n), 0);
        CHECK_INT(store_figures(f.store, id, 0, 1, &figures, &n_figures), 0);
        CHECK(n == 1 && n_figures == 1 && points[0].n_runs == 4 && figures[0].n_runs == 4);
        CHECK_INT(store_done_runs(f.store, id, &runs, &n_runs), 0);
        CHECK_UINT(n_runs, 4);
        for (size_t i = 0; n_runs == 4 && n == 1 && i < n_runs; i++)
                CHECK_INT(runs[i], points[0].runs[i].id);
        free(runs);
        for (size_t i = 0; n == 1 && n_figures == 1 && i < ELEMENTS(blocks); i++)
                CHECK(points[0].runs[i].block == blocks[i] && figures[0].runs[i].block == blocks[i]);
        store_points_free(points, n);
        store_figures_free(figures, n_figures);
}

static bool is_environment(struct fixture *f, int64_t id, bool last, const char *want) {
        _cleanup_free_ char *text = NULL;
        return store_environment(f->store, id, last, &text) == 0 && strcmp(text, want) == 0;
}

/* What was tried again ran after all others, whatever its position is, and what a restart interrupted before those that
 * follow it. */
static void test_the_environments_are_in_their_order_in_time(void) {
        static const struct {
                const char *change, *first, *last;
                int64_t at;
        } cases[] = {
                {"UPDATE runs SET attempt = 1", "e1", "e4", 450},
                {"UPDATE runs SET attempt = 2, started_at = 500, finished_at = 550 WHERE position = 0", "e2", "e1",
                 550},
                {"UPDATE runs SET attempt = 2, started_at = 600, finished_at = 650 WHERE position = 1", "e3", "e2",
                 650},
                {"UPDATE runs SET attempt = 2 WHERE position = 2", "e3", "e2", 650},
                {"UPDATE runs SET attempt = 2 WHERE position = 3", "e3", "e2", 650},
                {"UPDATE runs SET state = 'failed' WHERE position = 1", "e3", "e1", 550},
        };
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 4, NULL, &id), 0);
        CHECK_INT(run_all(&f, 0), 4);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET environment = 'e' || repetition, "
                                             "started_at = 100 * repetition, finished_at = 100 * repetition + 50"),
                  0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *first = NULL, *last = NULL;
                int64_t at = 0;
                CHECK_INT(db_run_script(f.store->db, cases[i].change), 0);
                CHECK(is_environment(&f, id, false, cases[i].first) && is_environment(&f, id, true, cases[i].last));
                CHECK_INT(store_environments(f.store, id, &first, &last, &at), 0);
                CHECK_STRING(first, cases[i].first);
                CHECK_STRING(last, cases[i].last);
                CHECK_INT(at, cases[i].at);
        }
}

/* A run that failed before it began has no attempt when it is queued again: it is at its first one when it is done,
 * after all others. */
static void test_the_environment_of_a_run_that_failed_before_it_began(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 3, NULL, &id), 0);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET state = 'failed', error = 'broken' WHERE position = 0"),
                  0);
        CHECK_INT(run_all(&f, 0), 2);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET environment = 'e' || repetition, "
                                             "started_at = 100 * repetition WHERE position > 0;"
                                             "UPDATE experiments SET state = 'failed'"),
                  0);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
        CHECK_INT(run_all(&f, 0), 1);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET environment = 'e1' WHERE position = 0"), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'done' AND attempt = 1"), 3);
        CHECK(is_environment(&f, id, false, "e2") && is_environment(&f, id, true, "e1"));
}

static void test_retry_what_was_cancelled(void) {
        FIXTURE f;
        int64_t id, running;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 2, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
        CHECK_INT(running, run);
        CHECK_INT(fixture_finish(f.store, run, STATE_CANCELLED, NULL), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
        CHECK_INT(run_all(&f, 0), 4);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE); /* the cancellation is forgotten */
        CHECK_INT(number(&f, "SELECT runs_cancelled FROM experiments"), 0);
}

/* A run that was given up after three attempts has three more when a user requests it. */
static void test_retry_has_its_own_attempts(void) {
        FIXTURE f;
        int64_t id;
        struct recovery counts;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned attempt = 0; attempt < RUN_ATTEMPTS_MAX; attempt++) {
                        CHECK(fixture_start(f.store) > 0);
                        CHECK_INT(store_recover(f.store, &counts), 0);
                        CHECK_UINT(counts.given_up, attempt + 1 == RUN_ATTEMPTS_MAX);
                }
                CHECK_INT(fixture_experiment_state(f.store, id), STATE_FAILED);
                CHECK_INT(store_retry_some(f.store, id, false, &no_key), 0);
        }
        CHECK_INT(number(&f, "SELECT attempt FROM runs"), 2 * RUN_ATTEMPTS_MAX);
}

/* What a crash leaves is what the portions before it made: the rest can be queued by whoever asks again. */
static void test_retry_in_portions(void) {
        FIXTURE f;
        int64_t id, running, known;
        char *text = NULL;
        struct recovery recovery;
        const struct request_record request = {"key", "retry 1"};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 64, 16, NULL, &id), 0);
        while (store_cancel_experiment(f.store, id, &running) == 1)
                ;
        CHECK_INT(number(&f, "SELECT runs_cancelled FROM experiments"), 64 * 16);
        CHECK_INT(store_retry_some(f.store, id, false, &request), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'queued'"), STORE_STEP_ROWS);
        CHECK_INT(number(&f, "SELECT runs_cancelled FROM experiments"), 64 * 16 - STORE_STEP_ROWS);
        CHECK_INT(store_find_idempotency(f.store, "key", &known, &text), -ENOENT);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_QUEUED);
        CHECK_INT(store_retry_some(f.store, id, false, &request), 1);
        CHECK_INT(store_retry_some(f.store, id, true, &request), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'queued'"), 64 * 16);
        CHECK_INT(number(&f, "SELECT runs_cancelled + runs_failed FROM experiments"), 0);
        CHECK_INT(store_find_idempotency(f.store, "key", &known, &text), 0);
        CHECK_STRING(text, "retry 1");
        free(text);
        /* as many as are whole portions: the last finds nothing, and ends it */
        CHECK_INT(store_retry_some(f.store, id, true, &no_key), 0);
        CHECK_INT(store_retry_some(f.store, id, false, &no_key), -ENODATA);
}

/* 16 repetitions of an experiment of 64 points, each in the order of the points. */
static int extend_much(struct fixture *f, int64_t id, uint32_t first, const struct request_record *request) {
        static uint32_t order[64 * 16];
        for (uint32_t i = 0; i < ELEMENTS(order); i++)
                order[i] = i % 64;
        return store_extend_some(f->store, id,
                                 &(struct extension){.order = order,
                                                     .n_points = 64,
                                                     .first_repetition = first,
                                                     .repetitions = 16,
                                                     .in_blocks = true},
                                 request);
}

/* Whether the runs are those of so many repetitions, each a block, at places without a gap. */
static bool is_whole(struct fixture *f, int64_t repetitions) {
        return number(f, "SELECT count(*) FROM runs") == 64 * repetitions &&
               number(f, "SELECT max(position) + 1 FROM runs") == 64 * repetitions &&
               number(f, "SELECT runs_total FROM experiments") == 64 * repetitions &&
               number(f, "SELECT count(*) FROM runs JOIN points ON points.id = point_id WHERE "
                         "block = repetition AND position = 64 * (repetition - 1) + ordinal") == 64 * repetitions &&
               number(f, "SELECT count(DISTINCT runs.change) FROM runs") == 64 * repetitions &&
               number(f, "SELECT count(*) FROM extensions") == 0;
}

#define RATES 600u

/* Two runs of each of many rates of 64 points: more points than a portion has rows. */
static int extend_by_rates(struct fixture *f, int64_t id) {
        static uint32_t order[2 * RATES];
        static struct searched_rate rates[RATES];
        for (uint32_t i = 0; i < RATES; i++) {
                order[i] = RATES - 1 - i;
                order[RATES + i] = i;
                rates[i] = (struct searched_rate){.ordinal = i % 64, .rate = (UINT64_C(1) << 40) + i};
        }
        return store_extend_some(f->store, id,
                                 &(struct extension){.order = order,
                                                     .n_points = RATES,
                                                     .first_repetition = 1,
                                                     .repetitions = 2,
                                                     .in_blocks = true,
                                                     .rates = rates,
                                                     .until_json = "{\"state\":\"running\"}"},
                                 &no_key);
}

static void test_rates_in_portions(void) {
        for (int crash = 0; crash < 2; crash++) {
                FIXTURE f;
                int64_t id;
                struct recovery recovery;
                int r = 1;
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
                CHECK_INT(extend_by_rates(&f, id), 1);
                CHECK_INT(number(&f, "SELECT count(*) FROM points"), 64 + STORE_STEP_ROWS);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 64);
                CHECK_INT(number(&f, "SELECT runs_total FROM experiments"), 64 + 2 * RATES);
                CHECK_INT(store_extend_more(f.store, id), 1);
                CHECK_INT(number(&f, "SELECT count(*) FROM points"), 64 + RATES);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 64 + 2 * STORE_STEP_ROWS - RATES);
                if (crash) {
                        CHECK_INT(fixture_reopen(&f), 0);
                        CHECK_INT(store_recover(f.store, &recovery), 0);
                }
                while (r > 0)
                        r = store_extend_more(f.store, id);
                CHECK_INT(r, 0);
                CHECK_INT(number(&f, "SELECT count(*) FROM extensions"), 0);
                CHECK_INT(number(&f,
                                 "SELECT count(*) FROM points AS p JOIN points AS o ON o.ordinal = (p.ordinal - 64) "
                                 "% 64 WHERE p.rate = (1 << 40) + p.ordinal - 64 AND p.point = o.point"),
                          RATES);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs JOIN points ON points.id = point_id WHERE CASE "
                                     "repetition + (rate IS NULL) * 10 WHEN 11 THEN block = 1 AND position = ordinal "
                                     "WHEN 1 THEN block = 2 AND position = 64 + 599 - (ordinal - 64) "
                                     "WHEN 2 THEN block = 3 AND position = 64 + 600 + (ordinal - 64) END"),
                          64 + 2 * RATES);
        }
}

/* With the first portion the whole extension is promised, and a crash after it loses nothing of it. */
static void test_extend_in_portions(void) {
        FIXTURE f;
        int64_t id, known, change;
        char *text = NULL;
        struct recovery recovery;
        const struct request_record request = {"key", "extend 1 16"};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
        CHECK_INT(extend_much(&f, id, 2, &request), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 64 + STORE_STEP_ROWS);
        CHECK_INT(number(&f, "SELECT runs_total FROM experiments"), 64 * 17);
        CHECK_INT(store_find_idempotency(f.store, "key", &known, &text), 0);
        free(text);
        CHECK_INT(store_last_change(f.store, &change), 0);
        CHECK_INT(store_extend_more(f.store, id + 1), 0); /* another experiment has none */
        CHECK_INT(store_extend_more(f.store, id), 1);
        CHECK(number(&f, "SELECT max(change) FROM runs") > change); /* streams that are past it get the new runs, too */
        CHECK_INT(store_extend_more(f.store, id), 1);
        CHECK_INT(store_extend_more(f.store, id), 0);
        CHECK(is_whole(&f, 17));
        CHECK_INT(extend_much(&f, id, 18, &no_key), 1);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK(is_whole(&f, 33));
        CHECK_INT(store_extend_more(f.store, 0), 0);
}

/* Blocks that an experiment itself decides on, as a client's. */
static void test_decided_blocks_come_in_portions(void) {
        FIXTURE f;
        int64_t id;
        static char until[] = "{\"state\":\"running\"}";
        const struct spec spec = {.order = ORDER_BLOCKS};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET state = 'done', block = 1; "
                                             "UPDATE experiments SET state = 'running', runs_done = 64"),
                  0);
        CHECK_INT(blocks_add(f.store, id, &spec, &(struct until_decision){.more = 16, .json = until}, NULL), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 64 + STORE_STEP_ROWS);
        CHECK_INT(number(&f, "SELECT runs_total FROM experiments"), 64 * 17);
        CHECK_INT(store_extend_more(f.store, 0), 1);
        CHECK_INT(store_extend_more(f.store, 0), 1);
        CHECK_INT(store_extend_more(f.store, 0), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 64 * 17);
        CHECK_INT(number(&f, "SELECT count(DISTINCT position) FROM runs WHERE block = repetition"), 64 * 17);
}

/* No other operation meets half of an extension. */
static void test_what_meets_an_extension(void) {
        FIXTURE f;
        int64_t id, running;
        unsigned n = 0;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
        CHECK_INT(extend_much(&f, id, 2, &no_key), 1);
        CHECK_INT(run_all(&f, 0), 64 + STORE_STEP_ROWS);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_RUNNING); /* it is not over */
        while (store_cancel_experiment(f.store, id, &running) == 1)
                n++;
        CHECK(n >= 2);
        CHECK(is_whole(&f, 17));
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(number(&f, "SELECT runs_cancelled FROM experiments"), 64 * 16 - STORE_STEP_ROWS);
        CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
        CHECK_INT(extend_much(&f, id, 2, &no_key), 1);
        CHECK_INT(store_delete_experiment(f.store, id), 0);
        CHECK_INT(store_extend_more(f.store, 0), 0);
        CHECK_INT(extend_much(&f, id + 1, 2, &no_key), -EBADMSG);
}

static int drop_some(struct fixture *f, int64_t id) {
        _cleanup_transaction_ struct db_transaction t = {0};
        int r = db_begin_write(f->store->db, &t);
        if (r < 0)
                return r;
        int more = store_drop_extension(f->store->db, id);
        r = more < 0 ? more : db_commit(&t);
        return r < 0 ? r : more;
}

/* 52 of the 500 runs that were added are of a repetition that is not complete. */
static void test_the_rest_of_an_extension_is_dropped(void) {
        for (int begun = 0; begun < 2; begun++) {
                FIXTURE f;
                int64_t id;
                int r;
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
                CHECK_INT(extend_much(&f, id, 2, &no_key), 1);
                if (begun)
                        CHECK_INT(run_all(&f, 0), 64 + STORE_STEP_ROWS);
                CHECK_INT(drop_some(&f, id), 1);
                while ((r = drop_some(&f, id)) == 1)
                        ;
                CHECK_INT(r, 0);
                CHECK(is_whole(&f, begun ? 9 : 8));
                CHECK_INT(extend_much(&f, id, begun ? 10 : 9, &no_key), 1);
        }
}

/* The cancellation has shortened the extension (and begun runs of its last repetition) when the daemon is killed, and
 * the disk is as full at the next start. */
static void test_a_cancellation_on_a_full_disk_is_ended(void) {
        for (int begun = 0; begun < 2; begun++) {
                FIXTURE f;
                int64_t id, running;
                struct recovery recovery;
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, 64, 1, NULL, &id), 0);
                CHECK_INT(extend_much(&f, id, 2, &no_key), 1);
                if (begun)
                        CHECK_INT(run_all(&f, 0), 64 + STORE_STEP_ROWS);
                disk_is_full = true;
                CHECK_INT(store_cancel_experiment(f.store, id, &running), 1);
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK_INT(store_recover(f.store, &recovery), 0);
                disk_is_full = false;
                CHECK_INT(number(&f, "SELECT count(*) FROM extensions"), 0);
                CHECK_INT(number(&f, "SELECT state = 'cancelled' AND runs_done + runs_cancelled = runs_total AND "
                                     "runs_total = (SELECT count(*) FROM runs) FROM experiments"),
                          1);
        }
}

static void test_keys(void) {
        FIXTURE f;
        int64_t id, found;
        char *text;
        const struct request_record request = {"extend-1", "extend 1 1"}, other = {"submitted", "extend 1 1"};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, "submitted", &id), 0);
        CHECK_INT(extend(&f, id, 2, &request), 0);
        CHECK_INT(store_find_idempotency(f.store, "extend-1", &found, &text), 0);
        bool same = strcmp(text, "extend 1 1") == 0;
        free(text);
        CHECK(same);
        CHECK_INT(found, id);
        CHECK_INT(extend(&f, id, 3, &request), -EEXIST);
        CHECK_INT(extend(&f, id, 3, &other), -EEXIST);
        CHECK_INT(fixture_add(f.store, 1, 1, "extend-1", &found), -EEXIST);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 4);
        CHECK_INT(run_all(&f, 0), 4);
        CHECK_INT(store_delete_experiment(f.store, id), 0);
        CHECK_INT(store_find_idempotency(f.store, "extend-1", &found, &text), -ENOENT); /* a key goes with it */
}

int main(void) {
        RUN(test_extend_one_that_is_done);
        RUN(test_extend_is_all_or_nothing);
        RUN(test_queued_again_is_last);
        RUN(test_retry_what_failed);
        RUN(test_retried_runs_are_of_another_block);
        RUN(test_runs_come_in_their_order_in_time);
        RUN(test_the_environments_are_in_their_order_in_time);
        RUN(test_the_environment_of_a_run_that_failed_before_it_began);
        RUN(test_retry_what_was_cancelled);
        RUN(test_retry_has_its_own_attempts);
        RUN(test_retry_in_portions);
        RUN(test_extend_in_portions);
        RUN(test_rates_in_portions);
        RUN(test_decided_blocks_come_in_portions);
        RUN(test_what_meets_an_extension);
        RUN(test_the_rest_of_an_extension_is_dropped);
        RUN(test_a_cancellation_on_a_full_disk_is_ended);
        RUN(test_keys);
        return check_end();
}
