/* SPDX-License-Identifier: MIT */

/*
 * A damaged page of what waits, runs or is to be removed: what needs it fails by name, and the others go on.
 */

#include "daemon/log.h"
#include "tests/unit/check.h"
#include "tests/unit/damage.h"

#include <errno.h>

#define MARK "the text of the first one"

/* Flips a bit in each page that has the mark. */
static int damage_mark(const struct fixture *f) {
        _cleanup_fclose_ FILE *file = fopen(fixture_path(f, "ipclab.db"), "re");
        uint8_t page[PAGES_SIZE];
        int64_t at = 0;
        int n = 0, r = 0;
        for (; file && r == 0 && fread(page, 1, sizeof(page), file) == sizeof(page); at += PAGES_SIZE) {
                const uint8_t *mark = memmem(page, sizeof(page), MARK, strlen(MARK));
                if (mark) {
                        r = flip_bit(f, "ipclab.db", at + (mark - page), 2);
                        n++;
                }
        }
        return r < 0 ? r : n;
}

#define INDEX_LEAF 0x0a /* https://www.sqlite.org/fileformat2.html#b_tree_pages */

/* Flips a bit in the n-th leaf of runs_state, in the order of the file: the index alone has so many texts of states. */
static int damage_index(const struct fixture *f, unsigned n) {
        _cleanup_fclose_ FILE *file = fopen(fixture_path(f, "ipclab.db"), "re");
        uint8_t page[PAGES_SIZE];
        for (int64_t at = 0; file && fread(page, 1, sizeof(page), file) == sizeof(page); at += PAGES_SIZE) {
                unsigned entries = 0;
                if (page[0] != INDEX_LEAF)
                        continue;
                for (size_t i = 0; i + strlen("queued") <= sizeof(page); i++)
                        entries += memcmp(&page[i], "queued", strlen("queued")) == 0;
                if (entries > 20 && n-- == 0)
                        return flip_bit(f, "ipclab.db", at + 1000, 2);
        }
        return -ENOENT;
}

static int64_t next_experiment(struct store *s) {
        struct run_record run;
        struct experiment_record e;
        int r = store_next_run(s, &run, &e);
        if (r < 0)
                return r;
        int64_t id = e.id;
        run_record_deinit(&run);
        experiment_record_deinit(&e);
        return id;
}

/* What is before it fails in portions. */
static int64_t next_in_portions(struct store *s) {
        int64_t id = -EAGAIN;
        for (int step = 0; id == -EAGAIN && step < 10; step++)
                id = next_experiment(s);
        return id;
}

/* Three queued experiments, of which the first one has a page that is damaged: what this SQL fills. */
static void damage_first(struct fixture *f, const char *sql) {
        int64_t id;
        fixture_open(f);
        for (int i = 0; i < 3; i++)
                CHECK_INT(fixture_add(f->store, 2, 300, NULL, &id), 0);
        CHECK_INT(db_run_script(f->store->db, sql), 0);
        store_close(util_steal(&f->store));
        CHECK(damage_mark(f) > 0);
        CHECK_INT(store_open(&f->store, f->dir), 0);
}

static void test_a_damaged_spec_fails_its_experiment_alone(void) {
        FIXTURE f;
        damage_first(&f, "UPDATE specs SET spec = '" MARK "' || hex(zeroblob(4000)) WHERE experiment_id = 1");
        CHECK_INT(next_experiment(f.store), -EAGAIN); /* a portion, as the caller has others to serve */
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id = 1 AND state = 'failed'"),
                  STORE_STEP_ROWS);
        CHECK_INT(number(&f, "SELECT state = 'queued' AND error IS NULL FROM experiments WHERE id = 1"), 1);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK_INT(number(&f, "SELECT state = 'failed' AND runs_failed = 600 AND error LIKE '%damaged%' "
                             "FROM experiments WHERE id = 1"),
                  1);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id = 1 AND state = 'failed'"), 600);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id > 1 AND state = 'queued'"), 1200);
        CHECK_UINT(damaged(&f), 1);
}

static void test_a_damaged_point_fails_its_experiment_alone(void) {
        FIXTURE f;
        damage_first(&f, "UPDATE points SET point = '" MARK "' || hex(zeroblob(4000)) WHERE experiment_id = 1");
        CHECK_INT(next_experiment(f.store), -EAGAIN);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK_INT(number(&f, "SELECT state = 'failed' FROM experiments WHERE id = 1"), 1);
}

/* It cannot even be failed: the queue goes on without it, and what is asked of the others is answered. */
static void test_a_damaged_row_does_not_stop_the_queue(void) {
        FIXTURE f;
        struct experiment_record e;
        damage_first(&f, "UPDATE experiments SET name = CASE id WHEN 1 THEN '" MARK "' ELSE '' END "
                         "|| hex(zeroblob(1500))");
        struct store_backlog waiting = {0};
        int64_t left = 0;
        CHECK_INT(store_backlog(f.store, &waiting), 0); /* by the index of runs, as the row cannot be read */
        CHECK_UINT(waiting.experiments, 3);
        CHECK_UINT(waiting.runs, 1800);
        CHECK_UINT(store_left_behind(f.store, &left), 0);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK_UINT(store_left_behind(f.store, &left), 1);
        CHECK_INT(left, 1);
        int64_t run = fixture_start(f.store);
        CHECK(run > 0);
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        const struct experiment_filter all = {0};
        bool more = false;
        int64_t last = 0;
        CHECK_INT(store_experiments_end(f.store, &all, 0, 100, &last, &more), 0); /* as if the page ended there */
        CHECK(last == 2 && more);
        CHECK_INT(store_experiments_end(f.store, &all, last, 100, &last, &more), -EBADMSG);
        CHECK_INT(store_undecided(f.store, &e), -ENOENT);
        CHECK_INT(store_experiment(f.store, 1, 0, &e), -EBADMSG);
        CHECK_INT(store_experiment(f.store, 3, 0, &e), 0);
        CHECK_INT(e.eta_seconds, -1);
        experiment_record_deinit(&e);
        for (int i = 0; i < 2; i++) /* however often it is tried */
                CHECK_INT(store_leave_out(&f.store->queued, 1), 0);
        CHECK_UINT(f.store->queued.n, 1);
}

static void test_an_undecided_experiment_with_a_damaged_spec_ends(void) {
        FIXTURE f;
        struct experiment_record e;
        damage_first(&f, "UPDATE specs SET spec = '" MARK "' || hex(zeroblob(4000)) WHERE experiment_id = 1; "
                         "UPDATE runs SET state = 'done' WHERE experiment_id = 1; UPDATE experiments SET "
                         "state = 'running', runs_done = 600, until = '{\"state\":\"running\"}' WHERE id = 1");
        CHECK_INT(store_undecided(f.store, &e), -ENOENT);
        CHECK_INT(number(&f, "SELECT state = 'done' AND until ->> '$.state' = 'failed' FROM experiments WHERE id = 1"),
                  1);
        CHECK_INT(next_experiment(f.store), 2);
}

/* Housekeeping to its end; -1: it comes to none. */
static int tidy_to_the_end(struct store *s) {
        int r = 1;
        for (int step = 0; r > 0 && step < 1000; step++)
                r = store_tidy(s);
        return r > 0 ? -1 : r;
}

/* One deleted experiment that cannot be removed leaves the others, and the rest of the housekeeping, to be done. The
 * mark is on a page that has nothing of them. */
static void test_a_damaged_experiment_does_not_end_housekeeping(void) {
        FIXTURE f;
        damage_first(&f, "UPDATE points SET point = hex(zeroblob(4000)) || '" MARK "' WHERE experiment_id = 1; "
                         "INSERT INTO forgotten (experiment_id) VALUES (1), (2)");
        for (int start = 0; start < 2; start++) {
                CHECK_INT(tidy_to_the_end(f.store), 0);
                CHECK_INT(number(&f, "SELECT sum(id) * 10 + count(*) FROM experiments"), 42);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id < 3"), 0);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id = 3"), 600);
                CHECK_INT(file_size(&f, "ipclab.db-wal"), 0);
                CHECK_UINT(damaged(&f), 1);
                CHECK_INT(fixture_reopen(&f), 0);
        }
}

/* The ratios of m are between those of the two others, which are not on one page. */
static void test_a_damaged_pin_does_not_end_housekeeping(void) {
        FIXTURE f;
        damage_first(&f, "INSERT INTO baselines VALUES ('a', 1, 1), ('m', 3, 1), ('z', 2, 1); "
                         "INSERT INTO pin_changes VALUES (901, 'a', NULL), (902, 'z', 3); "
                         "INSERT INTO baseline_checks (name, experiment_id, finished_at) VALUES "
                         "('a', 2, 1), ('m', 3, 1), ('z', 3, 1); "
                         "INSERT INTO baseline_ratios (name, experiment_id, figure, point, ratio, verdict) "
                         "SELECT 'm', 3, 'f', ordinal + 2 * position, 1, '' FROM points CROSS JOIN runs "
                         "WHERE points.experiment_id = 3 AND runs.experiment_id = 3; "
                         "INSERT INTO baseline_ratios (name, experiment_id, figure, point, ratio, verdict) VALUES "
                         "('a', 2, 'f', hex(zeroblob(4000)) || '" MARK "', 1, ''), ('z', 3, 'f', '{}', 1, ''); "
                         "INSERT INTO forgotten (experiment_id) VALUES (1)");
        CHECK_INT(tidy_to_the_end(f.store), 0);
        CHECK_INT(number(&f, "SELECT experiment_id FROM baselines WHERE name = 'z'"), 3);
        CHECK_INT(number(&f, "SELECT count(*) FROM baseline_checks WHERE name = 'z'"), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM baselines WHERE name = 'a'"), 1);
        CHECK(damaged(&f) > 0);
        CHECK_INT(file_size(&f, "ipclab.db-wal"), 0);
}

static void test_a_damaged_extension_does_not_end_housekeeping(void) {
        FIXTURE f;
        int r = 1;
        damage_first(&f,
                     "INSERT INTO extensions (experiment_id, first_repetition, in_blocks, points, inserted, position, "
                     "sequence) VALUES (1, 301, 0, 2, 0, 600, CAST(hex(zeroblob(4000)) || '" MARK "' AS BLOB)), "
                     "(2, 301, 0, 2, 0, 600, zeroblob(8))");
        for (int step = 0; r > 0 && step < 10; step++)
                r = store_extend_more(f.store, 0);
        CHECK_INT(r, 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id = 2"), 602);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE experiment_id = 1 AND state = 'failed'"), 600);
        CHECK_INT(number(&f, "SELECT state = 'failed' AND error LIKE '%damaged%' FROM experiments WHERE id = 1"), 1);
        CHECK_UINT(damaged(&f), 1);
        CHECK_INT(store_extend_more(f.store, 1), -EBADMSG); /* a caller that asks for it alone gets the error */
}

/* Housekeeping meets it while the outcome of a run cannot be stored yet: the run counts once. */
static void test_a_damaged_extension_waits_for_the_running_run(void) {
        FIXTURE f;
        int r = 1;
        damage_first(&f, "UPDATE experiments SET runs_total = 602 WHERE id = 1; "
                         "INSERT INTO extensions (experiment_id, first_repetition, in_blocks, points, inserted, "
                         "position, sequence) VALUES (1, 301, 0, 2, 0, 600, CAST(hex(zeroblob(4000)) || '" MARK
                         "' AS BLOB))");
        CHECK_INT(fixture_start(f.store), 1);
        for (int step = 0; r > 0 && step < 10; step++)
                r = store_extend_more(f.store, 0);
        CHECK_INT(r, 0);
        CHECK_INT(number(&f, "SELECT state = 'running' FROM experiments WHERE id = 1"), 1);
        CHECK_INT(fixture_finish(f.store, 1, STATE_DONE, NULL), 0);
        CHECK_INT(number(&f, "SELECT state = 'failed' AND runs_done = 1 AND runs_failed = 601 AND "
                             "error LIKE '%damaged%' AND finished_at IS NOT NULL FROM experiments WHERE id = 1"),
                  1);
        CHECK_INT(next_experiment(f.store), 2);
}

/* Before housekeeping has met it: it has failed by then, or ends with its run. */
static void test_an_experiment_with_a_damaged_extension_is_cancelled(void) {
        for (int begun = 0; begun < 2; begun++) {
                FIXTURE f;
                int64_t running = 0;
                int r = 1;
                damage_first(&f, "UPDATE experiments SET runs_total = 602 WHERE id = 1; "
                                 "INSERT INTO extensions (experiment_id, first_repetition, in_blocks, points, "
                                 "inserted, position, sequence) VALUES (1, 301, 0, 2, 0, 600, "
                                 "CAST(hex(zeroblob(4000)) || '" MARK "' AS BLOB))");
                if (begun)
                        CHECK_INT(fixture_start(f.store), 1);
                for (int step = 0; r > 0 && step < 10; step++)
                        r = store_cancel_experiment(f.store, 1, &running);
                CHECK_INT(r, begun ? 0 : -EALREADY);
                CHECK_INT(running, begun);
                if (begun)
                        CHECK_INT(fixture_finish(f.store, 1, STATE_CANCELLED, NULL), 0);
                CHECK_INT(number(&f, begun ? "SELECT state = 'cancelled' FROM experiments WHERE id = 1"
                                           : "SELECT state = 'failed' FROM experiments WHERE id = 1"),
                          1);
                CHECK_INT(number(&f, "SELECT runs_done + runs_failed + runs_cancelled FROM experiments WHERE id = 1"),
                          602);
                CHECK_INT(next_experiment(f.store), 2);
        }
}

/* What an earlier attempt has left cannot be removed, so that the run fails, and the next one begins. */
static void test_a_damaged_sample_fails_its_run_alone(void) {
        FIXTURE f;
        struct run_record run;
        struct experiment_record e;
        damage_first(&f, "UPDATE runs SET state = 'queued', attempt = 1 WHERE id = 1; "
                         "INSERT INTO samples (change, experiment_id, run_id, thread, second, interval_ns, messages, "
                         "bytes, agent, counters) VALUES (9000, 1, 1, 0, 0, 1, 1, 1, 'receiver', "
                         "hex(zeroblob(4000)) || '" MARK "')");
        CHECK_INT(store_next_run(f.store, &run, &e), 0);
        CHECK_INT(run.id, 1);
        run_record_deinit(&run);
        experiment_record_deinit(&e);
        CHECK_INT(store_start_run(f.store, 1), 1); /* the caller asks for the next one */
        CHECK_INT(number(&f, "SELECT state = 'failed' AND error LIKE '%damaged%' AND finished_at IS NOT NULL "
                             "FROM runs WHERE id = 1"),
                  1);
        CHECK_INT(number(&f, "SELECT runs_failed FROM experiments WHERE id = 1"), 1);
        CHECK_INT(fixture_start(f.store), 2);
        CHECK_UINT(damaged(&f), 1);
}

/* All of the queue's rows that a damaged page has: of the first experiment, whose runs have the mark. */
#define DAMAGED_RUN(state)                                                                                             \
        "UPDATE runs SET state = '" state "', attempt = 1, error = '" MARK "' || hex(zeroblob(1500)) WHERE id = 300"

/* It cannot even fail: its experiment does, and the queue goes on, now and after the next start. */
static void test_a_damaged_run_does_not_stop_the_queue(void) {
        FIXTURE f;
        damage_first(&f, DAMAGED_RUN("queued"));
        for (int start = 0; start < 2; start++) {
                CHECK_INT(next_in_portions(f.store), 1); /* its first run can be read */
                CHECK_INT(number(&f, "SELECT state = 'queued' FROM experiments WHERE id = 1"), 1);
                CHECK_INT(fixture_reopen(&f), 0);
        }
        int step = 0;
        for (int64_t run = 1; run > 0 && number(&f, "SELECT state = 'failed' FROM experiments WHERE id = 1") == 0;) {
                CHECK(step++ < 1000);
                run = fixture_start(f.store);
                if (run > 0 && run <= 600) /* 1: the page of its row has no room, and the next one is damaged */
                        CHECK(fixture_finish(f.store, run, STATE_DONE, NULL) >= 0);
                else if (run == -EAGAIN)
                        run = 1;
        }
        CHECK_INT(number(&f, "SELECT error LIKE '%damaged%' AND finished_at IS NOT NULL AND runs_done > 200 "
                             "AND runs_done + runs_failed = runs_total FROM experiments WHERE id = 1"),
                  1);
        CHECK_INT(next_experiment(f.store), 2);
}

/* What an earlier daemon left behind. */
static void check_recovered(struct fixture *f) {
        struct recovery recovery = {0};
        for (int start = 0; start < 2; start++) {
                CHECK_INT(store_recover(f->store, &recovery), 0);
                CHECK_INT(number(f, "SELECT state = 'failed' AND error LIKE '%damaged%' AND finished_at IS NOT NULL "
                                    "AND runs_done + runs_failed = runs_total FROM experiments WHERE id = 1"),
                          1);
                CHECK_INT(number(f, "SELECT count(*) FROM experiments WHERE id > 1 AND state = 'queued'"), 2);
                CHECK_INT(next_experiment(f->store), 2);
                CHECK(damaged(f) > 0);
                CHECK_INT(fixture_reopen(f), 0);
        }
        CHECK_INT(store_recover(f->store, &recovery), 0);
        int64_t run = fixture_start(f->store);
        CHECK(run > 600);
        CHECK_INT(fixture_start(f->store), -EEXIST); /* two at once would measure each other */
        CHECK_INT(fixture_finish(f->store, run, STATE_DONE, NULL), 0);
        CHECK_INT(number(f, "SELECT runs_done FROM experiments WHERE id = 2"), 1);
}

static void test_a_damaged_run_does_not_stop_the_recovery(void) {
        static const char *const states[] = {DAMAGED_RUN("running"), DAMAGED_RUN("interrupted")};
        for (size_t i = 0; i < ELEMENTS(states); i++) {
                FIXTURE f;
                char sql[1024];
                (void) snprintf(sql, sizeof(sql), "%s; UPDATE experiments SET state = 'running' WHERE id = 1; %s",
                                states[i], i == 0 ? "" : "UPDATE runs SET state = 'running' WHERE id = 700");
                damage_first(&f, sql);
                check_recovered(&f);
        }
}

static void test_a_damaged_extension_does_not_stop_the_recovery(void) {
        FIXTURE f;
        damage_first(&f, "UPDATE experiments SET runs_total = 602 WHERE id = 1; "
                         "INSERT INTO extensions (experiment_id, first_repetition, in_blocks, points, inserted, "
                         "position, sequence) VALUES (1, 301, 0, 2, 0, 600, CAST(hex(zeroblob(4000)) || '" MARK
                         "' AS BLOB)); "
                         "UPDATE runs SET state = 'interrupted' WHERE id = 700; "
                         "UPDATE experiments SET state = 'running' WHERE id = 2");
        check_recovered(&f);
}

/* The experiment's row has the damage: what is left of its run has a state, and the others go on. */
static void test_a_damaged_row_does_not_stop_the_recovery(void) {
        FIXTURE f;
        struct recovery recovery = {0};
        damage_first(&f, "UPDATE experiments SET state = CASE id WHEN 1 THEN 'running' ELSE state END, "
                         "name = CASE id WHEN 1 THEN '" MARK "' ELSE '' END || hex(zeroblob(1500)); "
                         "UPDATE runs SET state = 'running', attempt = 1 WHERE id = 1");
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_INT(number(&f, "SELECT state = 'failed' AND error LIKE '%damaged%' FROM runs WHERE id = 1"), 1);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK(fixture_start(f.store) > 600);
}

/* What was measured cannot be stored: no later run waits for it. */
static void test_a_damaged_run_ends(void) {
        FIXTURE f;
        damage_first(&f, DAMAGED_RUN("running") "; UPDATE experiments SET state = 'running' WHERE id = 1");
        CHECK_INT(fixture_finish(f.store, 300, STATE_DONE, NULL), 1);
        CHECK_INT(next_in_portions(f.store), 2);
        CHECK_INT(number(&f, "SELECT state = 'failed' AND error LIKE '%damaged%' FROM experiments WHERE id = 1"), 1);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK(fixture_start(f.store) > 600);
}

/* The experiment does not count it. */
static void test_what_was_measured_is_kept_beside_a_damaged_row(void) {
        FIXTURE f;
        damage_first(&f, "UPDATE experiments SET state = CASE id WHEN 1 THEN 'running' ELSE state END, "
                         "name = CASE id WHEN 1 THEN '" MARK "' ELSE '' END || hex(zeroblob(1500)); "
                         "UPDATE runs SET state = 'running', attempt = 1 WHERE id = 1");
        CHECK_INT(fixture_finish(f.store, 1, STATE_DONE, NULL), 0);
        CHECK_INT(number(&f, "SELECT state = 'done' AND result IS NOT NULL FROM runs WHERE id = 1"), 1);
        CHECK_INT(next_experiment(f.store), 2);
        CHECK(fixture_start(f.store) > 600);
}

/* A run is running when a leaf of the index of states is damaged; -ENOENT: there is no such leaf. */
static int begin_with_damaged_index(struct fixture *f, unsigned leaf) {
        int64_t id;
        fixture_open(f);
        for (int i = 0; i < 3; i++)
                if (fixture_add(f->store, 2, 300, NULL, &id) < 0)
                        return -EIO;
        int64_t run = fixture_start(f->store);
        store_close(util_steal(&f->store));
        int r = run < 0 ? (int) run : damage_index(f, leaf);
        return r < 0 ? r : store_open(&f->store, f->dir);
}

/* Whichever leaf it is: the outcome is stored, or the run is given up. */
static void test_a_damaged_index_does_not_hold_an_outcome(void) {
        unsigned ends[2] = {0};
        int r = 0;
        for (unsigned leaf = 0; r == 0; leaf++) {
                FIXTURE f;
                r = begin_with_damaged_index(&f, leaf);
                if (r < 0)
                        continue;
                int end = fixture_finish(f.store, 1, STATE_DONE, NULL);
                CHECK(end == 0 || end == 1);
                ends[end]++;
                CHECK(next_in_portions(f.store) > 0);
        }
        CHECK_INT(r, -ENOENT);
        CHECK(ends[0] > 0 && ends[1] > 0);
}

static void test_a_damaged_index_does_not_stop_the_recovery(void) {
        int r = 0;
        for (unsigned leaf = 0; r == 0; leaf++) {
                FIXTURE f;
                struct recovery recovery = {0};
                r = begin_with_damaged_index(&f, leaf);
                if (r < 0)
                        continue;
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK(next_in_portions(f.store) > 0);
        }
        CHECK_INT(r, -ENOENT);
}

int main(void) {
        log_open(LOG_EMERG);
        RUN(test_a_damaged_spec_fails_its_experiment_alone);
        RUN(test_a_damaged_point_fails_its_experiment_alone);
        RUN(test_a_damaged_row_does_not_stop_the_queue);
        RUN(test_an_undecided_experiment_with_a_damaged_spec_ends);
        RUN(test_a_damaged_experiment_does_not_end_housekeeping);
        RUN(test_a_damaged_pin_does_not_end_housekeeping);
        RUN(test_a_damaged_extension_does_not_end_housekeeping);
        RUN(test_a_damaged_extension_waits_for_the_running_run);
        RUN(test_an_experiment_with_a_damaged_extension_is_cancelled);
        RUN(test_a_damaged_sample_fails_its_run_alone);
        RUN(test_a_damaged_run_does_not_stop_the_queue);
        RUN(test_a_damaged_run_does_not_stop_the_recovery);
        RUN(test_a_damaged_extension_does_not_stop_the_recovery);
        RUN(test_a_damaged_row_does_not_stop_the_recovery);
        RUN(test_a_damaged_run_ends);
        RUN(test_what_was_measured_is_kept_beside_a_damaged_row);
        RUN(test_a_damaged_index_does_not_hold_an_outcome);
        RUN(test_a_damaged_index_does_not_stop_the_recovery);
        return check_end();
}
