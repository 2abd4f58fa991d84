/* SPDX-License-Identifier: MIT */

/* What comes out of the store again: samples, lists, the ETA, changes, points, totals. */

#include "daemon/store/internal.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/recorded.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>

/* Samples */

static void test_samples_come_back(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        static struct histogram h;
        memset(&h, 0, sizeof(h));
        histogram_record(&h, 1234567);
        histogram_record(&h, 3);
        struct sample_record batch[] = {sample_of(id, run, 0), sample_of(id, run, 1)};
        CHECK(sample_has_latency(&batch[1], &h));
        int added = store_add_samples(f.store, batch, 2);
        free(batch[1].latency_v2);
        CHECK_INT(added, 0);
        CHECK_INT(store_add_samples(f.store, NULL, 0), 0);

        struct sample_record *got;
        size_t n;
        CHECK_INT(store_samples(f.store, 0, run, 0, 10, &got, &n), 0);
        bool good = n == 2 && got[0].change < got[1].change && got[1].second == 1 && got[1].thread == 1 &&
                    got[1].interval_ns == 1000012345 && got[1].messages == UINT64_C(1) << 40 &&
                    got[1].bytes == UINT64_C(1) << 52 && strcmp(got[1].agent, "receiver") == 0 &&
                    !got[0].counters_json && strstr(got[1].counters_json, "voluntary") && !got[0].latency &&
                    got[1].latency && memcmp(got[1].latency, &h, sizeof(h)) == 0;
        int64_t after = n ? got[0].change : 0;
        store_samples_free(got, n);
        CHECK(good);
        CHECK_INT(store_samples(f.store, id, 0, after, 10, &got, &n), 0);
        store_samples_free(got, n);
        CHECK_UINT(n, 1);
        CHECK_INT(store_samples(f.store, id, 0, 0, 1, &got, &n), 0);
        store_samples_free(got, n);
        CHECK_UINT(n, 1);
        CHECK_INT(store_samples(f.store, 0, 99, 0, 1, &got, &n), -ENOENT);
        CHECK_INT(store_samples(f.store, 99, 0, 0, 1, &got, &n), -ENOENT);
}

static void test_samples_of_running_runs_only(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        struct sample_record batch[] = {sample_of(id, run, 0), sample_of(id, run + 1, 0)};
        CHECK_INT(store_add_samples(f.store, batch, 2), -ENOENT);
        CHECK_INT(number(&f, "SELECT count(*) FROM samples"), 0); /* not half of the batch either */
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        CHECK_INT(store_add_samples(f.store, batch, 1), -ENOENT);
}

static void test_second_attempt_starts_without_samples(void) {
        FIXTURE f;
        int64_t id;
        struct recovery recovery;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        struct sample_record sample = sample_of(id, run, 0);
        CHECK_INT(store_add_samples(f.store, &sample, 1), 0);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_INT(fixture_start(f.store), run);
        CHECK_INT(number(&f, "SELECT count(*) + (SELECT value FROM counters WHERE name = 'samples') FROM samples"), 0);
}

/* A million samples take seconds: the main loop has other things to do between two portions of them. */
static void test_samples_of_an_earlier_attempt_go_in_portions(void) {
        enum { LEFT = 3, ALL = 2 * STORE_STEP_ROWS + LEFT };
        static struct sample_record samples[ALL];
        FIXTURE f;
        int64_t id;
        struct recovery recovery;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        for (uint32_t i = 0; i < ALL; i++)
                samples[i] = sample_of(id, run, i);
        CHECK_INT(store_add_samples(f.store, samples, ALL), 0);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        for (unsigned portion = 1; portion <= 2; portion++) {
                CHECK_INT(store_start_run(f.store, run), 1);
                CHECK_INT(number(&f, "SELECT count(*) FROM samples"), ALL - portion * STORE_STEP_ROWS);
                CHECK_INT(number(&f, "SELECT value FROM counters WHERE name = 'samples'"),
                          ALL - portion * STORE_STEP_ROWS);
                /* a crash in between leaves a run that waits as before */
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_UINT(recovery.requeued + recovery.given_up, 0);
                CHECK_INT(fixture_run_state(f.store, run), STATE_QUEUED);
                CHECK_INT(number(&f, "SELECT attempt FROM runs"), 1);
        }
        CHECK_INT(store_start_run(f.store, run), 0);
        CHECK_INT(number(&f, "SELECT count(*) + (SELECT value FROM counters WHERE name = 'samples') FROM samples"), 0);
        CHECK_INT(number(&f, "SELECT attempt FROM runs"), 2);
        CHECK_INT(store_start_run(f.store, run), -ENOENT);
}

/* Lists, ETA, changes */

static void test_lists(void) {
        FIXTURE f;
        int64_t id;
        struct experiment_record *items;
        size_t n;
        fixture_open(&f);
        for (int i = 0; i < 5; i++)
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);

        static const struct {
                struct experiment_filter filter;
                int64_t before;
                uint32_t limit;
                int64_t ids[6];
        } table[] = {
                {{false, STATE_QUEUED, NULL}, 0, 100, {5, 4, 3, 2, 1}},
                {{false, STATE_QUEUED, NULL}, 0, 2, {5, 4}},
                {{false, STATE_QUEUED, NULL}, 4, 2, {3, 2}},
                {{false, STATE_QUEUED, NULL}, 1, 2, {0}},
                {{true, STATE_QUEUED, NULL}, 0, 100, {5, 4, 3, 2}},
                {{true, STATE_DONE, NULL}, 0, 100, {1}},
                {{true, STATE_FAILED, NULL}, 0, 100, {0}},
                {{false, STATE_QUEUED, "TRANSPORT"}, 0, 100, {5, 4, 3, 2, 1}},
                {{false, STATE_QUEUED, "TRANSPORT"}, 4, 2, {3, 2}},
                {{true, STATE_DONE, "transport"}, 0, 100, {1}},
                {{false, STATE_QUEUED, "%"}, 0, 100, {0}},
        };
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                CHECK_INT(store_experiments(f.store, &table[i].filter, table[i].before, table[i].limit, util_now_ms(),
                                            &items, &n),
                          0);
                bool good = true;
                for (size_t k = 0; k < n; k++)
                        good = good && items[k].id == table[i].ids[k];
                good = good && table[i].ids[n] == 0;
                store_experiments_free(items, n);
                if (!good)
                        CHECK_FAIL("list %zu is not as expected", i);
        }
}

/* Bytes that this process has read from files so far, cached or not. */
static uint64_t bytes_read(void) {
        FILE *io = fopen("/proc/self/io", "re");
        unsigned long long n = 0;
        if (!io || fscanf(io, "rchar: %llu", &n) != 1)
                n = 0;
        if (io)
                (void) fclose(io);
        return n;
}

#define LONG_SPEC (UINT32_C(1) << 20)
#define LONG_SPECS 8

/* A megabyte of numbers between two texts. */
static char *long_spec(unsigned number) {
        static const char before[] = "{\"name\":\"Great %u\",\"transport\":[\"fifo\"],\"message_size\":[4096",
                          after[] = "],\"placement\":\"Same-Core\"}";
        char *spec = malloc(LONG_SPEC + sizeof(before) + sizeof(after) + 16);
        if (!spec)
                return NULL;
        int n = sprintf(spec, before, number); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy) */
        for (; n < (int) LONG_SPEC; n += 5)
                memcpy(spec + n, ",4097", 5);
        memcpy(spec + n, after, sizeof(after));
        return spec;
}

/* The number of experiments on all pages of a search, of which each has a megabyte. */
static int search(struct store *s, const char *words, size_t *ret_n) {
        struct experiment_filter filter = {.words = words};
        int64_t before = 0;
        size_t n = 0, all = 0;
        int r;
        do {
                struct experiment_record *items = NULL;
                r = store_experiments(s, &filter, before, 100, util_now_ms(), &items, &n);
                if (r < 0)
                        return r;
                before = n > 0 ? items[n - 1].id : 0;
                all += n;
                store_experiments_free(items, n);
        } while (n > 0);
        *ret_n = all;
        return 0;
}

/* A search reads a text of each experiment that has a bound, whatever its spec has: less than one spec in all. */
static void test_search_reads_no_spec(void) {
        static const struct {
                const char *words;
                size_t n;
        } table[] = {
                {"nowhere", 0},
                {"\"placement\":\"same-core\"", LONG_SPECS},
                {"FIFO", LONG_SPECS},
                {"great 3", 1},
        };
        FIXTURE f;
        int64_t id;
        size_t n = 0;
        fixture_open(&f);
        for (unsigned i = 0; i < LONG_SPECS; i++) {
                _cleanup_free_ char *spec = long_spec(i);
                CHECK(spec);
                fixture_spec = spec;
                int r = fixture_add(f.store, 1, 1, NULL, &id);
                fixture_spec = FIXTURE_BODY;
                CHECK_INT(r, 0);
        }
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                CHECK_INT(fixture_reopen(&f), 0);
                int64_t last;
                bool more;
                uint64_t before = bytes_read();
                CHECK_INT(store_experiments_end(f.store, &(struct experiment_filter){.words = table[i].words}, 0, 100,
                                                &last, &more),
                          0);
                uint64_t read = bytes_read() - before;
                CHECK(before > 0);
                if (read >= LONG_SPEC)
                        CHECK_FAIL("\"%s\": %llu bytes were read", table[i].words, (unsigned long long) read);
                CHECK_INT(search(f.store, table[i].words, &n), 0);
                CHECK_UINT(n, table[i].n);
        }
}

static void test_eta(void) {
        FIXTURE f;
        int64_t id[3];
        struct experiment_record *items;
        size_t n;
        fixture_open(&f);
        for (int i = 0; i < 3; i++)
                CHECK_INT(fixture_add(f.store, 4, 1, NULL, &id[i]), 0);
        /* the first has done two runs of 2 s and is 0.5 s into its third; planned were 3 s each */
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        CHECK_INT(db_run_script(f.store->db, "UPDATE experiments SET measured_ms = 4000 WHERE id = 1"), 0);
        CHECK(fixture_start(f.store) > 0);
        int64_t started = number(&f, "SELECT started_at FROM runs WHERE state = 'running'");

        CHECK_INT(store_experiments(f.store, &(struct experiment_filter){0}, 0, 9, started + 500, &items, &n), 0);
        bool good = n == 3 && items[2].eta_seconds == 4 && items[2].queue_position == 0 && /* 3.5 rounded up */
                    items[1].eta_seconds == 16 && items[1].queue_position == 1 && items[0].eta_seconds == 28 &&
                    items[0].queue_position == 2;
        store_experiments_free(items, n);
        CHECK(good);
        /* a run that takes longer than expected, and a clock that was set back */
        CHECK_INT(store_experiments(f.store, &(struct experiment_filter){0}, 0, 9, started + 60000, &items, &n), 0);
        good = n == 3 && items[2].eta_seconds == 2;
        store_experiments_free(items, n);
        CHECK(good);
        CHECK_INT(store_experiments(f.store, &(struct experiment_filter){0}, 0, 9, started - 60000, &items, &n), 0);
        good = n == 3 && items[2].eta_seconds == 4;
        store_experiments_free(items, n);
        CHECK(good);
}

static void test_measured_time_is_true(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        uint64_t began = util_now_ns();
        int64_t run = fixture_start(f.store);
        usleep(30000);
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        int64_t measured = number(&f, "SELECT measured_ms FROM experiments");
        CHECK(measured >= 30 && (uint64_t) measured <= (util_now_ns() - began) / NSEC_PER_MSEC);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_FAILED, "no"), 0); /* does not count */
        CHECK_INT(number(&f, "SELECT measured_ms FROM experiments"), measured);
}

/* Follows the changes as an event stream does, `limit` at a time; returns how many it saw, or INT64_MIN. */
static int64_t follow(struct store *s, int64_t experiment_id, int64_t *after, uint32_t limit) {
        int64_t seen = 0;
        for (;;) {
                struct change_record *changes;
                size_t n;
                if (store_changes(s, experiment_id, *after, limit, util_now_ms(), &changes, &n) < 0)
                        return INT64_MIN;
                for (size_t i = 0; i < n; i++) {
                        struct change_record *c = &changes[i];
                        int64_t change = c->experiment ? c->experiment->change
                                         : c->run      ? c->run->change
                                                       : c->sample->change;
                        if ((!!c->experiment + !!c->run + !!c->sample) != 1 || change <= *after)
                                seen = INT64_MIN / 2;
                        *after = change;
                        seen++;
                }
                store_changes_free(changes, n);
                if (n < limit)
                        return seen;
        }
}

static void test_changes(void) {
        FIXTURE f;
        int64_t id, other, after = 0, all = 0;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 1, NULL, &id), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &other), 0);
        CHECK_INT(follow(f.store, id, &after, 2), 4); /* the experiment and three runs, in steps of two */
        CHECK_INT(follow(f.store, 0, &all, 100), 2);  /* runs that wait are no news to all */
        CHECK_INT(follow(f.store, id, &after, 2), 0);

        int64_t run = fixture_start(f.store);
        struct sample_record batch[] = {sample_of(id, run, 0), sample_of(id, run, 1), sample_of(id, run, 2)};
        CHECK_INT(store_add_samples(f.store, batch, 3), 0);
        CHECK_INT(follow(f.store, id, &after, 1), 5); /* run, experiment, samples */
        CHECK_INT(follow(f.store, 0, &all, 1), 2);
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        CHECK_INT(follow(f.store, id, &after, 1), 2);
        int64_t running;
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
        CHECK_INT(follow(f.store, id, &after, 1), 3); /* two runs and the experiment */
        int64_t last;
        CHECK_INT(store_last_change(f.store, &last), 0);
        CHECK(after <= last);
        struct change_record *changes;
        size_t n;
        CHECK_INT(store_changes(f.store, 99, 0, 10, 0, &changes, &n), -ENOENT);
        CHECK_INT(number(&f, "SELECT count(*) - count(DISTINCT change) FROM (SELECT change FROM experiments UNION ALL "
                             "SELECT change FROM runs UNION ALL SELECT change FROM samples)"),
                  0);
}

/* The first attempt, too, which does not count once it was interrupted. */
static void test_an_interrupted_run_is_a_change_of_all(void) {
        FIXTURE f;
        int64_t id, all = 0;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        CHECK_INT(follow(f.store, 0, &all, 100), 2);
        CHECK_INT(store_interrupt_run(f.store, run), 0);
        CHECK_INT(follow(f.store, 0, &all, 100), 1);
}

/* After the next start the run is queued again, which readers see that continue from their last change number. */
static void test_a_return_to_the_queue_is_a_change_of_all(void) {
        FIXTURE f;
        int64_t id, all = 0;
        struct recovery recovery;
        struct change_record *changes;
        size_t n;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store), running;
        CHECK_INT(store_interrupt_run(f.store, run), 0);
        CHECK_INT(follow(f.store, 0, &all, 100), 2);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_INT(store_changes(f.store, 0, all, 100, util_now_ms(), &changes, &n), 0);
        bool good = n == 2 && changes[0].run && changes[0].run->id == run && changes[0].run->state == STATE_QUEUED &&
                    changes[0].run->attempt == 0 && changes[1].experiment &&
                    changes[1].experiment->state == STATE_QUEUED;
        store_changes_free(changes, n);
        CHECK(good);
        CHECK_INT(follow(f.store, 0, &all, 100), 2);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
        CHECK_INT(follow(f.store, 0, &all, 100), 2); /* nor is its end missed; of the other run there is no news */
}

static void test_points_with_their_runs(void) {
        FIXTURE f;
        int64_t id;
        struct point_record *points;
        size_t n;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 2, NULL, &id), 0);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_FAILED, "broken"), 0);
        CHECK_INT(store_points(f.store, id, 0, 2, &points, &n), 0);
        bool good = n == 2 && points[0].n_runs == 2 && points[0].runs[0].state == STATE_DONE &&
                    strcmp(points[0].runs[0].result_json, "{\"messages\":1}") == 0 &&
                    points[0].runs[1].state == STATE_QUEUED && points[1].runs[0].state == STATE_FAILED &&
                    strcmp(points[1].runs[0].error, "broken") == 0;
        store_points_free(points, n);
        CHECK(good);
        CHECK_INT(store_points(f.store, id, 2, 2, &points, &n), 0);
        store_points_free(points, n);
        CHECK_UINT(n, 1);
        CHECK_INT(store_points(f.store, 99, 0, 2, &points, &n), -ENOENT);
}

static void test_totals(void) {
        FIXTURE f;
        int64_t id;
        struct store_totals t;
        fixture_open(&f);
        CHECK_INT(store_totals(f.store, &t), 0);
        CHECK_UINT(t.experiments_queued + t.runs_done + t.runs_failed + t.samples, 0);
        for (int i = 0; i < 3; i++)
                CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        int64_t run = fixture_start(f.store);
        struct sample_record sample = sample_of(1, run, 0);
        CHECK_INT(store_add_samples(f.store, &sample, 1), 0);
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_FAILED, "x"), 0);
        CHECK_INT(store_totals(f.store, &t), 0);
        CHECK_UINT(t.experiments_queued, 2);
        CHECK_UINT(t.runs_done, 1);
        CHECK_UINT(t.runs_failed, 1);
        CHECK_UINT(t.samples, 1);
        CHECK(t.database_bytes > 4096);
}

/* What they were summed up from before they were kept. */
static bool totals_are_true(struct fixture *f) {
        struct store_totals t = {0};
        _cleanup_query_ struct db_query q = {0};
        return store_totals(f->store, &t) == 0 &&
               db_select_all(f->store->db, &q,
                             "SELECT COALESCE(SUM(state = 'queued'), 0), COALESCE(SUM(runs_done), 0), "
                             "COALESCE(SUM(runs_failed), 0) FROM experiments WHERE " SHOWN("id")) == 0 &&
               db_step(&q) > 0 && db_column_i64(&q, 0) == (int64_t) t.experiments_queued &&
               db_column_i64(&q, 1) == (int64_t) t.runs_done && db_column_i64(&q, 2) == (int64_t) t.runs_failed;
}

static void test_totals_stay_true(void) {
        FIXTURE f;
        int64_t first, second, many;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &first), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &second), 0);
        CHECK_INT(fixture_add(f.store, 1, STORE_STEP_ROWS + 1, NULL, &many), 0); /* among the forgotten meanwhile */
        CHECK(totals_are_true(&f));
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        CHECK(totals_are_true(&f));
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_FAILED, "x"), 0);
        CHECK(totals_are_true(&f));
        CHECK_INT(store_delete_experiment(f.store, first), 0);
        CHECK(totals_are_true(&f));
        for (int more = 1; more != 0;) {
                CHECK((more = store_tidy(f.store)) >= 0);
                CHECK(totals_are_true(&f));
        }
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK(totals_are_true(&f));
        struct store_totals t;
        CHECK_INT(store_totals(f.store, &t), 0);
        CHECK_UINT(t.experiments_queued, 2);
        CHECK_UINT(t.runs_done + t.runs_failed, 0);
}

/* Each part is found by its key. */
static void test_totals_scan_no_table(void) {
        FIXTURE f;
        fixture_open(&f);
        _cleanup_query_ struct db_query q = {0};
        int steps = 0, r;
        CHECK_INT(db_select_all(f.store->db, &q, "EXPLAIN QUERY PLAN " STORE_TOTALS_SQL), 0);
        while ((r = db_step(&q)) > 0) {
                _cleanup_free_ char *step = db_column_text(&q, 3);
                CHECK(step);
                if (strncmp(step, "SCAN", 4) == 0 && strcmp(step, "SCAN CONSTANT ROW") != 0)
                        CHECK_FAIL("%s", step);
                steps++;
        }
        CHECK_INT(r, 0);
        CHECK(steps > 4);
}

/* However many others came after it. */
static void test_the_last_of_a_preset(void) {
        FIXTURE f;
        int64_t id, deleted;
        struct preset_last last = {0};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(store_last_of_preset(f.store, "quick", &last), -ENOENT);
        CHECK_INT(db_run_script(f.store->db, "UPDATE experiments SET preset = 'quick'"), 0);
        CHECK_INT(store_last_of_preset(f.store, "quick", &last), -ENOENT); /* it is queued */
        CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        for (int i = 0; i < 100; i++) {
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &deleted), 0);
                CHECK_INT(fixture_finish(f.store, fixture_start(f.store), STATE_DONE, NULL), 0);
        }
        CHECK_INT(db_run_script(f.store->db, "UPDATE experiments SET preset = 'quick' WHERE id = 101"), 0);
        CHECK_INT(store_delete_experiment(f.store, deleted), 0);
        CHECK_INT(store_last_of_preset(f.store, "quick", &last), 0);
        CHECK_INT(last.experiment_id, id);
        CHECK(last.started_at > 0 && last.finished_at >= last.started_at);
        CHECK_INT(store_last_of_preset(f.store, "other", &last), -ENOENT);
}

/* Bundles may come in any order: what counts is when they were measured. */
static void test_newest_of_a_host_was_measured_last(void) {
        FIXTURE f;
        int64_t ids[3];
        struct experiment_change *list = NULL;
        size_t n = 0;
        fixture_open(&f);
        for (unsigned i = 0; i < ELEMENTS(ids); i++) {
                struct importing importing = {0};
                char digest[8];
                (void) snprintf(digest, sizeof(digest), "%u", i);
                CHECK_INT(fixture_begin_import(f.store, &importing), 0);
                ids[i] = importing.id;
                int r = fixture_import_runs(&importing, 0);
                if (r == 0)
                        r = fixture_end_import(&importing, digest);
                store_import_deinit(&importing);
                CHECK_INT(r, 0);
        }
        CHECK_INT(db_run(f.store->db, "UPDATE experiments SET finished_at = 9 WHERE id = ?", DB_INT(ids[0])), 0);
        CHECK_INT(store_measured(f.store, "elsewhere", &list, &n), 0);
        bool good = n == 3 && list[0].id == ids[0] && list[1].id == ids[2] && list[2].id == ids[1];
        free(list);
        CHECK(good);
}

int main(void) {
        RUN(test_samples_come_back);
        RUN(test_samples_of_running_runs_only);
        RUN(test_second_attempt_starts_without_samples);
        RUN(test_samples_of_an_earlier_attempt_go_in_portions);
        RUN(test_lists);
        RUN(test_search_reads_no_spec);
        RUN(test_eta);
        RUN(test_measured_time_is_true);
        RUN(test_changes);
        RUN(test_an_interrupted_run_is_a_change_of_all);
        RUN(test_a_return_to_the_queue_is_a_change_of_all);
        RUN(test_points_with_their_runs);
        RUN(test_newest_of_a_host_was_measured_last);
        RUN(test_totals);
        RUN(test_totals_stay_true);
        RUN(test_totals_scan_no_table);
        RUN(test_the_last_of_a_preset);
        return check_end();
}
