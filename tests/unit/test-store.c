/* SPDX-License-Identifier: MIT */

#include "daemon/store/internal.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/listed-runs.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <sys/wait.h>

/* Opening */

static void test_one_daemon_per_directory(void) {
        FIXTURE f;
        struct store *second = NULL;
        fixture_open(&f);
        CHECK_INT(store_open(&second, f.dir), -EBUSY);
        CHECK(second == NULL);
        CHECK_INT(fixture_reopen(&f), 0); /* the lock goes with the holder */
}

/* As the child of a daemon that was killed before the child has executed its program. */
static void test_a_lock_of_a_child_that_ends_is_waited_for(void) {
        FIXTURE f;
        fixture_open(&f);
        pid_t child = fork();
        if (child == 0) {
                usleep(300000);
                _exit(0);
        }
        CHECK(child > 0);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(waitpid(child, NULL, 0), child);
}

static void test_bad_directories(void) {
        FIXTURE f;
        struct store *s = NULL;
        unsigned faults;
        fixture_dir(&f);
        CHECK_INT(store_open(&s, "/nonexistent/ipclab"), -ENOENT);
        CHECK_INT(store_open(&s, "/dev/null"), -ENOTDIR);
        CHECK_INT(store_verify(f.dir, NULL, &faults), -ENOENT); /* a reader creates nothing */
        CHECK(s == NULL);
}

static void test_durable_settings(void) {
        FIXTURE f;
        fixture_open(&f);
        CHECK_INT(number(&f, "PRAGMA synchronous"), 2);
        CHECK_INT(number(&f, "PRAGMA foreign_keys"), 1);
        CHECK_INT(number(&f, "PRAGMA mmap_size"), 0);
        CHECK_INT(number(&f, "PRAGMA auto_vacuum"), 2);
        CHECK_INT(number(&f, "PRAGMA busy_timeout"), 5000);
        CHECK_INT(number(&f, "SELECT journal_mode = 'wal' FROM pragma_journal_mode"), 1);
        struct stat st;
        CHECK_INT(stat(fixture_path(&f, "ipclab.db"), &st), 0);
        CHECK_INT(st.st_mode & 07, 0);
}

static void test_link_in_place_of_the_file(void) {
        FIXTURE f;
        struct store *s = NULL;
        fixture_dir(&f);
        CHECK_INT(symlink("/tmp/ipclab-elsewhere.db", fixture_path(&f, "ipclab.db")), 0);
        CHECK(store_open(&s, f.dir) < 0);
        CHECK(s == NULL);
        CHECK(access("/tmp/ipclab-elsewhere.db", F_OK) < 0);
}

static void test_not_a_database(void) {
        FIXTURE f;
        struct store *s = NULL;
        fixture_dir(&f);
        FILE *file = fopen(fixture_path(&f, "ipclab.db"), "we");
        CHECK(file != NULL);
        for (int i = 0; i < 1000; i++)
                fputs("this is not a database\n", file);
        CHECK_INT(fclose(file), 0);
        CHECK_INT(store_open(&s, f.dir), -EBADMSG);
        CHECK(s == NULL);
}

/* Earlier versions wrote `require` in the posted order, later ones sort it. Each is a requirement of the same. */
static void test_check_of_sorted_require(void) {
        static const struct {
                const char *pinned, *later;
                bool same;
        } cases[] = {
                {"{\"smt\":true,\"turbo\":false}", "{\"turbo\":false,\"smt\":true}", true},
                {"{\"build\":{\"commit\":\"a\"},\"smt\":true,\"cpu\":[1,2]}",
                 "{\"smt\":true,\"cpu\":[1,2],\"build\":{\"commit\":\"a\"}}", true},
                {"{\"smt\":true}", "{\"smt\":true}", true},
                {"{\"smt\":true,\"turbo\":null}", "{\"turbo\":true,\"smt\":null}", false},
                {"{\"a\":\"1\",\"b\":222}", "{\"b\":\"2\",\"a\":122}", false},
                {"{\"cpu\":[1,2]}", "{\"cpu\":[2,1]}", false},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FIXTURE f;
                int64_t first, second;
                struct pending_check p = {0};
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &first), 0);
                CHECK_INT(fixture_add(f.store, 1, 1, NULL, &second), 0);
                int r = db_run(f.store->db,
                               "UPDATE specs SET measures = '{\"transport\":\"pipe\",\"require\":' || "
                               "CASE experiment_id WHEN ?1 THEN ?2 ELSE ?3 END || '}'",
                               DB_INT(first), DB_TEXT(cases[i].pinned), DB_TEXT(cases[i].later));
                if (r == 0)
                        r = db_run_script(f.store->db, "UPDATE experiments SET state = 'done', finished_at = 1");
                if (r == 0)
                        r = store_pin_baseline(f.store, "base", first);
                CHECK_INT(r, 0);
                r = store_pending_check(f.store, &(struct pending_check){0}, &p);
                if (r != (cases[i].same ? 0 : -ENOENT) || (r == 0 && p.experiment_id != second))
                        CHECK_FAIL("case %zu: %d", i, r);
                free(p.name);
        }
}

/* How often and in which order its points run is not what a spec measures. */
static void test_what_a_spec_measures(void) {
        static const struct {
                const char *spec;
                bool same;
        } cases[] = {
                {"{\"name\":\"x\",\"transport\":\"pipe\",\"repetitions\":9,\"seed\":1}", true},
                {"{\"transport\":\"pipe\",\"order\":\"shuffled\",\"skip_impossible\":true}", true},
                {"{\"transport\":\"pipe\",\"until\":{\"relative_ci\":0.02,\"max_repetitions\":60}}", true},
                {"{\"transport\":\"pipe\",\"rate\":1000}", false},
                {"{\"transport\":\"pipe\",\"search\":{\"rate\":{\"latency_p99_below_us\":50}}}", false},
        };
        FIXTURE f;
        _cleanup_free_ char *plain = NULL;
        fixture_open(&f);
        CHECK_INT(store_measures(f.store, "{\"transport\":\"pipe\"}", &plain), 0);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *measures = NULL;
                CHECK_INT(store_measures(f.store, cases[i].spec, &measures), 0);
                if (!measures || (strcmp(measures, plain) == 0) != cases[i].same)
                        CHECK_FAIL("case %zu: %s", i, measures ? measures : "none");
        }
}

static void test_reader_changes_nothing(void) {
        FIXTURE f;
        int64_t id, other;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        struct store *reader;
        CHECK_INT(store_open_beside(&reader, f.store), 0);
        int read_only = fixture_add(reader, 1, 1, NULL, &other);
        int64_t second;
        int added = fixture_add(f.store, 1, 1, NULL, &second);
        enum state seen = fixture_experiment_state(reader, second); /* what is committed is seen at once */
        store_close(reader);
        CHECK_INT(read_only, -EROFS);
        CHECK_INT(added, 0);
        CHECK_INT(seen, STATE_QUEUED);
}

/* Submission */

static void test_add_and_read(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        int64_t before = util_now_ms();
        CHECK_INT(fixture_add(f.store, 3, 2, NULL, &id), 0);
        CHECK_INT(id, 1);
        struct experiment_record e;
        CHECK_INT(store_experiment(f.store, id, util_now_ms(), &e), 0);
        bool good = e.id == 1 && e.state == STATE_QUEUED && e.seed == 42 && e.runs_total == 6 && e.runs_done == 0 &&
                    e.created_at >= before && e.started_at == 0 && e.finished_at == 0 && !e.error &&
                    strcmp(e.spec_json, FIXTURE_BODY) == 0 && strcmp(e.skipped_json, "[]") == 0 &&
                    strcmp(e.version, IPCLAB_VERSION) == 0 && e.queue_position == 1 && e.eta_seconds == 18;
        experiment_record_deinit(&e);
        CHECK(good);

        struct run_record *runs = NULL;
        size_t n = 0;
        CHECK_INT(listed_runs(f.store, id, 0, 100, &runs, &n), 0);
        good = n == 6;
        for (uint32_t i = 0; i < n; i++)
                good = good && runs[i].position == i && runs[i].repetition == i / 3 + 1 && runs[i].attempt == 0 &&
                       runs[i].state == STATE_QUEUED && strcmp(runs[i].flags_json, "[]") == 0 && !runs[i].result_json;
        char *first = strdup(runs[0].point_json), *again = strdup(runs[3].point_json);
        listed_runs_free(runs, n);
        good = good && first && again && strcmp(first, again) == 0 && strstr(first, "\"message_size\":1,") != NULL;
        free(first);
        free(again);
        CHECK(good);
}

static void test_add_is_all_or_nothing(void) {
        FIXTURE f;
        int64_t id = 7;
        fixture_open(&f);
        struct point point = {.message_size = 1, .threads = 1};
        static char merged[] = "{}";
        struct spec spec = {.merged_json = merged, .repetitions = 3};
        uint32_t order[] = {0, 0, 1}; /* the last one is no point */
        struct new_experiment e = {
                .spec_json = "{}",
                .spec = &spec,
                .points = &(struct point_list){.points = &point, .n_points = 1},
                .skipped_json = "[]",
                .order = order,
        };
        CHECK_INT(store_add_experiment(f.store, &e, &id), -EINVAL);
        spec.repetitions = 0;
        CHECK_INT(store_add_experiment(f.store, &e, &id), -EINVAL);
        CHECK_INT(id, 7);
        CHECK_INT(number(&f, "SELECT (SELECT count(*) FROM experiments) + (SELECT count(*) FROM points) + "
                             "(SELECT count(*) FROM runs) + (SELECT value FROM counters WHERE name = 'change')"),
                  0);
}

static void test_idempotency(void) {
        FIXTURE f;
        int64_t id, found, again;
        char *body = NULL;
        fixture_open(&f);
        CHECK_INT(store_find_idempotency(f.store, "key", &found, &body), -ENOENT);
        CHECK_INT(fixture_add(f.store, 1, 1, "key", &id), 0);
        CHECK_INT(store_find_idempotency(f.store, "key", &found, &body), 0);
        bool same = found == id && strcmp(body, FIXTURE_BODY) == 0;
        free(body);
        CHECK(same);
        CHECK_INT(fixture_add(f.store, 1, 1, "key", &again), -EEXIST);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &again), 0); /* none is not a key */
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &again), 0);
}

static void test_ids_are_never_reused(void) {
        FIXTURE f;
        int64_t id, next;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 2, NULL, &id), 0);
        CHECK_INT(fixture_add(f.store, 2, 2, NULL, &id), 0);
        int64_t run = number(&f, "SELECT max(id) FROM runs"), change = number(&f, "SELECT max(change) FROM runs");
        CHECK_INT(store_delete_experiment(f.store, id), 0);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &next), 0);
        CHECK_INT(next, id + 1);
        CHECK_INT(number(&f, "SELECT max(id) FROM runs"), run + 1);
        CHECK(number(&f, "SELECT max(change) FROM runs") > change);
}

/* Runs */

static void test_runs_in_order(void) {
        FIXTURE f;
        int64_t first, second;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &first), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &second), 0);
        for (int i = 0; i < 3; i++) {
                int64_t run = fixture_start(f.store);
                CHECK(run > 0);
                int64_t experiment = number(&f, "SELECT experiment_id FROM runs WHERE state = 'running'");
                CHECK_INT(experiment, i < 2 ? first : second);
                CHECK_INT(number(&f, "SELECT position FROM runs WHERE state = 'running'"), i < 2 ? i : 0);
                CHECK_INT(fixture_experiment_state(f.store, experiment), STATE_RUNNING);
                CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
                CHECK_INT(fixture_experiment_state(f.store, first), i == 0 ? STATE_RUNNING : STATE_DONE);
        }
        CHECK_INT(fixture_experiment_state(f.store, second), STATE_DONE);
        CHECK_INT(fixture_start(f.store), -ENOENT);
}

static void test_wrong_transitions(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 1, NULL, &id), 0);
        CHECK_INT(fixture_finish(f.store, 1, STATE_DONE, NULL), -ENOENT); /* not started */
        CHECK_INT(store_start_run(f.store, 1), 0);
        CHECK_INT(store_start_run(f.store, 1), -ENOENT); /* twice */
        CHECK_INT(store_start_run(f.store, 2), -EEXIST); /* two at once */
        CHECK_INT(store_start_run(f.store, 99), -ENOENT);
        CHECK_INT(fixture_finish(f.store, 1, STATE_RUNNING, NULL), -EINVAL);
        CHECK_INT(fixture_finish(f.store, 1, STATE_INTERRUPTED, NULL), -EINVAL);
        CHECK_INT(fixture_finish(f.store, 1, STATE_FAILED, "why"), 0);
        CHECK_INT(fixture_finish(f.store, 1, STATE_DONE, NULL), -ENOENT);
        CHECK_INT(store_interrupt_run(f.store, 1), -ENOENT);
        CHECK_INT(fixture_run_state(f.store, 1), STATE_FAILED);
}

static void test_experiment_ends(void) {
        static const struct {
                enum state runs[3], end;
                const char *error;
        } table[] = {
                {{STATE_DONE, STATE_DONE, STATE_DONE}, STATE_DONE, NULL},
                {{STATE_DONE, STATE_FAILED, STATE_FAILED},
                 STATE_FAILED,
                 "run 1"}, /* the error of the first that failed */
                {{STATE_FAILED, STATE_DONE, STATE_DONE}, STATE_FAILED, "run 0"},
                {{STATE_FAILED, STATE_CANCELLED, STATE_DONE}, STATE_CANCELLED, NULL},
        };
        FIXTURE f;
        fixture_open(&f);
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                int64_t id;
                CHECK_INT(fixture_add(f.store, 3, 1, NULL, &id), 0);
                for (int k = 0; k < 3; k++) {
                        char words[16];
                        snprintf(words, sizeof(words), "run %d", k);
                        int64_t run = fixture_start(f.store);
                        CHECK_INT(fixture_finish(f.store, run, table[i].runs[k],
                                                 table[i].runs[k] == STATE_FAILED ? words : NULL),
                                  0);
                }
                struct experiment_record e;
                CHECK_INT(store_experiment(f.store, id, util_now_ms(), &e), 0);
                bool good = e.state == table[i].end && e.finished_at >= e.started_at && e.started_at > 0 &&
                            e.runs_done + e.runs_failed + e.runs_cancelled == 3 && e.eta_seconds == -1 &&
                            e.queue_position == 0 && !e.error == !table[i].error &&
                            (!e.error || strcmp(e.error, table[i].error) == 0);
                experiment_record_deinit(&e);
                CHECK(good);
        }
}

static void test_outcome_is_stored(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        int64_t run_id = fixture_start(f.store);
        struct run_outcome o = {STATE_DONE,          NULL,
                                "[\"noisy:steal\"]", "[{\"role\":\"sender\"}]",
                                "{\"bytes\":1}",     "{\"before\":{}}",
                                "{\"cpus\":[0,1]}"};
        CHECK_INT(store_finish_run(f.store, run_id, &o), 0);
        struct run_record run;
        CHECK_INT(store_run(f.store, run_id, &run), 0);
        bool good = run.state == STATE_DONE && run.attempt == 1 && strcmp(run.flags_json, o.flags_json) == 0 &&
                    strcmp(run.agents_json, o.agents_json) == 0 && strcmp(run.result_json, o.result_json) == 0 &&
                    strcmp(run.environment_json, o.environment_json) == 0 &&
                    strcmp(run.probes_json, o.probes_json) == 0 && !run.error && run.started_at > 0 &&
                    run.finished_at >= run.started_at;
        run_record_deinit(&run);
        CHECK(good);
        CHECK_INT(store_run(f.store, 99, &run), -ENOENT);
}

/* Where further threads had two sets of CPUs, each run finds the first with its own, and otherwise the first. */
static void test_first_probes_of_as_many_cpus(void) {
        static const char *const compared[] = {"[0,1]", "[0,1,2,3]", "[0,1]", "[0,1,2,3]"};
        FIXTURE f;
        int64_t id, ids[ELEMENTS(compared)], found = 0;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, ELEMENTS(compared), NULL, &id), 0);
        for (size_t i = 0; i < ELEMENTS(compared); i++) {
                char probes[100];
                (void) snprintf(probes, sizeof probes, "{\"cpus\":[0,1]%s%s%s}",
                                i ? ",\"cpus_compared\":{\"before\":" : "", i ? compared[i] : "",
                                i ? "}" : ""); /* the first is of an earlier version */
                ids[i] = fixture_start(f.store);
                CHECK_INT(store_finish_run(f.store, ids[i],
                                           &(struct run_outcome){.state = STATE_DONE, .probes_json = probes}),
                          0);
        }
        static const struct {
                size_t run;
                const char *compared;
                size_t wanted;
        } rows[] = {{3, "[0,1,2,3]", 1}, {3, "[0,1]", 2}, {1, "[0,1,2,3]", 3}, {3, "[0,1,2]", 0}, {0, "[7]", 1}};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                char *text = NULL;
                CHECK_INT(store_first_probes(f.store, id, ids[rows[i].run], "[0,1]", rows[i].compared, &found, &text),
                          0);
                CHECK_INT(found, ids[rows[i].wanted]);
                free(text);
        }
}

/* A thousandth run does not read the probes of all before it: those behind the reference cannot even be parsed. */
static void test_first_probes_end_the_search(void) {
        FIXTURE f;
        int64_t id, runs[3], found = 0;
        char *text = NULL;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 3, NULL, &id), 0);
        for (size_t i = 0; i < 3; i++) {
                const struct run_outcome done = {
                        .state = STATE_DONE,
                        .probes_json = i == 1 ? "{" : "{\"cpus\":[0,1],\"cpus_compared\":{\"before\":[0,1]}}"};
                runs[i] = fixture_start(f.store);
                CHECK_INT(store_finish_run(f.store, runs[i], &done), 0);
        }
        CHECK_INT(store_first_probes(f.store, id, runs[2], "[0,1]", "[0,1]", &found, &text), 0);
        free(text);
        CHECK_INT(found, runs[0]);
}

/* The first of the same experiment that is done, on the same CPUs, and another run. */
static void test_first_probes(void) {
        static const struct run_outcome outcomes[] = {
                {.state = STATE_FAILED, .error = "x", .probes_json = "{\"cpus\":[0,1],\"run\":0}"},
                {.state = STATE_DONE},
                {.state = STATE_DONE, .probes_json = "{\"cpus\":[1,0],\"run\":2}"},
                {.state = STATE_DONE, .probes_json = "{\"cpus\":[0,1],\"run\":3}"},
                {.state = STATE_DONE, .probes_json = "{\"cpus\":[0,1],\"run\":4}"},
                {.state = STATE_DONE, .probes_json = "{\"cpus\":null,\"run\":5}"},
        };
        FIXTURE f;
        int64_t id, other, ids[ELEMENTS(outcomes)], found = 0;
        char *text = NULL;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, ELEMENTS(outcomes), NULL, &id), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &other), 0);
        for (size_t i = 0; i < ELEMENTS(outcomes); i++) {
                ids[i] = fixture_start(f.store);
                CHECK_INT(store_finish_run(f.store, ids[i], &outcomes[i]), 0);
        }
        CHECK_INT(store_first_probes(f.store, id, ids[5], "[0,1]", "[0,1]", &found, &text), 0);
        CHECK_INT(found, ids[3]);
        CHECK_STRING(text, outcomes[3].probes_json);
        free(text);
        CHECK_INT(store_first_probes(f.store, id, ids[3], "[0,1]", "[0,1]", &found, &text), 0);
        CHECK_INT(found, ids[4]);
        free(text);
        /* the third one was made again, after all others */
        CHECK_INT(db_run(f.store->db, "UPDATE runs SET started_at = started_at + 100000 WHERE id = ?", DB_INT(ids[3])),
                  0);
        CHECK_INT(store_first_probes(f.store, id, ids[5], "[0,1]", "[0,1]", &found, &text), 0);
        CHECK_INT(found, ids[4]);
        free(text);
        CHECK_INT(store_first_probes(f.store, id, ids[2], "[1,0]", "[1,0]", &found, &text), -ENOENT);
        CHECK_INT(store_first_probes(f.store, other, 0, "[0,1]", "[0,1]", &found, &text), -ENOENT);
}

/* Cancel and forget */

static void test_cancel_queued(void) {
        FIXTURE f;
        int64_t id, running = 7;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 1, NULL, &id), 0);
        CHECK_INT(store_cancel_experiment(f.store, 99, &running), -ENOENT);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
        CHECK_INT(running, 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(fixture_run_state(f.store, 3), STATE_CANCELLED);
        CHECK_INT(fixture_start(f.store), -ENOENT);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), -EALREADY);
}

static void test_cancel_running(void) {
        FIXTURE f;
        int64_t id, running;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 1, NULL, &id), 0);
        int64_t first = fixture_start(f.store);
        CHECK_INT(fixture_finish(f.store, first, STATE_DONE, NULL), 0);
        int64_t second = fixture_start(f.store);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
        CHECK_INT(running, second);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_RUNNING);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0); /* a second request is no fault */
        CHECK_INT(running, second);
        CHECK_INT(fixture_finish(f.store, second, STATE_CANCELLED, NULL), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(number(&f, "SELECT runs_done * 10 + runs_cancelled FROM experiments"), 12);
}

/* The answer to a cancel outlives a crash, even when the last run was the running one. */
static void test_cancel_then_crash(void) {
        for (uint32_t points = 1; points <= 2; points++) {
                FIXTURE f;
                int64_t id, running;
                struct recovery recovery;
                fixture_open(&f);
                CHECK_INT(fixture_add(f.store, points, 1, NULL, &id), 0);
                int64_t run = fixture_start(f.store);
                CHECK_INT(store_cancel_experiment(f.store, id, &running), 0);
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_UINT(recovery.requeued, 0);
                CHECK_INT(fixture_run_state(f.store, run), STATE_CANCELLED);
                CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        }
}

static void test_delete(void) {
        FIXTURE f;
        int64_t id, other;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &other), 0);
        int64_t run = fixture_start(f.store);
        struct sample_record batch[500];
        for (uint32_t i = 0; i < 500; i++)
                batch[i] = sample_of(id, run, i);
        for (int i = 0; i < 10; i++)
                CHECK_INT(store_add_samples(f.store, batch, 500), 0);
        CHECK_INT(store_delete_experiment(f.store, id), -EBUSY);
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        CHECK_INT(store_delete_experiment(f.store, id), -EBUSY); /* between two runs it runs still */
        int64_t none;
        CHECK_INT(store_cancel_experiment(f.store, id, &none), 0);
        CHECK_INT(store_delete_experiment(f.store, id), 0);
        CHECK_INT(store_delete_experiment(f.store, id), -ENOENT);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_COUNT);
        CHECK_INT(fixture_run_state(f.store, run), STATE_COUNT);
        struct sample_record *samples = NULL;
        size_t n;
        CHECK_INT(store_samples(f.store, id, 0, 0, 10, &samples, &n), -ENOENT);

        int steps = 0, r;
        while ((r = store_tidy(f.store)) == 1)
                CHECK(++steps < 100);
        CHECK_INT(r, 0);
        CHECK(steps > 1); /* not all 5000 at once */
        CHECK_INT(number(&f, "SELECT count(*) FROM points"), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM experiments"), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM samples"), 0);
        CHECK_INT(number(&f, "SELECT value FROM counters WHERE name = 'samples'"), 0);
        CHECK_INT(number(&f, "SELECT count(*) FROM forgotten"), 0);
        struct stat st;
        CHECK_INT(stat(fixture_path(&f, "ipclab.db-wal"), &st), 0);
        CHECK_INT(st.st_size, 0);
        CHECK_INT(fixture_experiment_state(f.store, other), STATE_QUEUED);
}

/* What an exporter acknowledges never goes back, and is never beyond what there is. */
static void test_exported(void) {
        FIXTURE f;
        int64_t id, change, newest, exported;
        fixture_open(&f);
        CHECK_INT(store_exported(f.store, &exported), 0);
        CHECK_INT(exported, -1);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        CHECK_INT(store_last_change(f.store, &change), 0);
        CHECK_INT(store_acknowledge_export(f.store, change + 1, &newest), -ERANGE);
        CHECK_INT(newest, change);
        CHECK_INT(store_acknowledge_export(f.store, change, &newest), 0);
        CHECK_INT(store_acknowledge_export(f.store, 1, &newest), 0);
        CHECK_INT(store_exported(f.store, &exported), 0);
        CHECK_INT(exported, change);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_exported(f.store, &exported), 0);
        CHECK_INT(exported, change);
        CHECK_INT(number(&f, "SELECT count(*) FROM exported"), 1);
        CHECK_INT(store_export_of(f.store, id, &newest, &exported), 0);
        CHECK_INT(newest, change);
        CHECK_INT(store_export_of(f.store, id + 1, &newest, &exported), -ENOENT);
}

/* An exporter that acknowledges all there is, time and again, comes to an end. */
static void test_acknowledgements_end(void) {
        FIXTURE f;
        int64_t id, change, newest, exported;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        CHECK_INT(store_last_change(f.store, &change), 0);
        CHECK_INT(store_acknowledge_export(f.store, change, &newest), 0);
        CHECK_INT(store_pin_baseline(f.store, "base", id), 0);
        CHECK_INT(store_pin_baseline(f.store, "base", id), 0); /* where it is already */
        CHECK_INT(store_last_change(f.store, &newest), 0);
        CHECK_INT(newest, change + 2); /* the acknowledgement's and the pin's */
        for (int i = 0; i < 3; i++) {
                CHECK_INT(store_acknowledge_export(f.store, newest, &newest), 0);
                CHECK_INT(newest, change + 2);
                CHECK_INT(store_exported(f.store, &exported), 0);
                CHECK_INT(exported, newest);
        }
}

static void test_keep_until_exported(void) {
        FIXTURE f;
        int64_t id, other, newest, exported, ignored;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &other), 0);
        store_keep_until_exported(f.store, true);
        CHECK_INT(store_delete_experiment(f.store, other + 1), -ENOENT);
        CHECK_INT(store_delete_experiment(f.store, id), -EPERM); /* nothing was exported */
        CHECK_INT(store_last_change(f.store, &newest), 0);
        CHECK_INT(store_acknowledge_export(f.store, newest, &ignored), 0);
        int64_t run = fixture_start(f.store);
        CHECK_INT(store_delete_experiment(f.store, id), -EBUSY); /* the nearer reason */
        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
        CHECK_INT(store_delete_experiment(f.store, id), -EPERM); /* it went on */
        CHECK_INT(store_delete_experiment(f.store, other), 0);   /* what did not goes */
        CHECK_INT(store_export_of(f.store, id, &newest, &exported), 0);
        CHECK_INT(store_acknowledge_export(f.store, newest - 1, &ignored), 0);
        CHECK_INT(store_delete_experiment(f.store, id), -EPERM);
        CHECK_INT(store_acknowledge_export(f.store, newest, &ignored), 0);
        CHECK_INT(store_delete_experiment(f.store, id), 0);
}

/* Recovery */

static int64_t rows(struct fixture *f) {
        return number(f, "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM points) + "
                         "(SELECT count(*) FROM experiments)");
}

/* What was deleted is in no answer from the start, and leaves its tables a portion at a time. */
static void test_delete_in_portions(void) {
        FIXTURE f;
        int64_t ids[20], left, portions = 0, change;
        int r;
        fixture_open(&f);
        for (size_t i = 0; i < ELEMENTS(ids); i++)
                CHECK_INT(fixture_add(f.store, 64, 4, i == 0 ? "key" : NULL, &ids[i]), 0);
        /* as one experiment of many runs */
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET experiment_id = 1, position = id + 100000; "
                                             "UPDATE points SET experiment_id = 1, ordinal = id + 100000; "
                                             "DELETE FROM experiments WHERE id BETWEEN 2 AND 19"),
                  0);
        CHECK_INT(store_last_change(f.store, &change), 0);
        left = rows(&f);
        CHECK_INT(store_delete_experiment(f.store, 1), 0);
        CHECK_INT(rows(&f), left); /* nothing of it yet */
        struct run_record run;
        struct experiment_record e;
        struct store_backlog waiting;
        CHECK_INT(store_next_run(f.store, &run, &e), -ENOENT);
        CHECK_INT(store_run(f.store, 1, &run), -ENOENT);
        CHECK_INT(store_experiment(f.store, 1, 0, &e), -ENOENT);
        CHECK_INT(store_cancel_experiment(f.store, 1, &left), -ENOENT);
        CHECK_INT(store_backlog(f.store, &waiting), 0);
        CHECK_UINT(waiting.experiments, 1);
        CHECK_INT(fixture_add(f.store, 1, 1, "key", &ids[0]), 0); /* its key is free */

        struct change_record *changes = NULL;
        size_t n = 0;
        CHECK_INT(store_changes(f.store, 0, change, 100, 0, &changes, &n), 0);
        bool good = n >= 1 && changes[0].deletion && changes[0].deletion->experiment_id == 1 &&
                    changes[0].deletion->change == change + 1;
        store_changes_free(changes, n);
        CHECK(good);
        /* its own stream gets it too, once */
        CHECK_INT(store_changes(f.store, 1, 0, 100, 0, &changes, &n), 0);
        good = n == 1 && changes[0].deletion && changes[0].deletion->change == change + 1;
        store_changes_free(changes, n);
        CHECK(good);
        CHECK_INT(store_changes(f.store, 1, change + 1, 100, 0, &changes, &n), -ENOENT);
        CHECK_INT(store_changes(f.store, 99, 0, 100, 0, &changes, &n), -ENOENT);

        while ((left = rows(&f)) >= 0 && (r = store_tidy_forgotten(f.store)) == 1) {
                CHECK(left - rows(&f) <= 500);
                CHECK(++portions < 1000);
        }
        CHECK_INT(r, 0);
        CHECK(portions >= 20 * 256 / 500);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs"), 1);
        struct stat st;
        CHECK_INT(stat(fixture_path(&f, "ipclab.db-wal"), &st), 0);
        CHECK(st.st_size < 16 << 20);
}

/* Nobody sees an experiment that is not stored as a whole, and nothing is left of one that never was. */
static void test_add_in_portions(void) {
        FIXTURE f;
        struct store_adding a = {0};
        struct store_backlog waiting;
        struct run_record run;
        struct experiment_record e;
        int64_t id, before, change;
        fixture_open(&f);
        CHECK_INT(store_last_change(f.store, &before), 0);
        CHECK_INT(fixture_add_some(f.store, 64, 16, "key", 1, &a), 1);
        CHECK(rows(&f) <= 1 + STORE_STEP_ROWS);
        CHECK_INT(store_experiment(f.store, a.id, 0, &e), -ENOENT);
        CHECK_INT(store_next_run(f.store, &run, &e), -ENOENT);
        char *spec;
        CHECK_INT(store_find_idempotency(f.store, "key", &id, &spec), -ENOENT);
        CHECK_INT(store_tidy_forgotten(f.store), 0);         /* it takes nothing of it away */
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0); /* another in between, which streams send first */
        CHECK_INT(store_last_change(f.store, &change), 0);
        int r, steps = 1;
        while ((r = fixture_add_some(f.store, 64, 16, "key", 1, &a)) == 1)
                CHECK(++steps < 100);
        int64_t first = a.id;
        store_adding_deinit(&a);
        CHECK_INT(r, 0);
        CHECK(steps >= 2);
        CHECK_INT(store_experiment(f.store, first, 0, &e), 0);
        bool later = e.change > change, whole = e.runs_total == 64 * 16;
        experiment_record_deinit(&e);
        CHECK(later && whole);
        CHECK_INT(number(&f, "SELECT count(DISTINCT change) FROM runs"), 64 * 16 + 1);
        CHECK_INT(store_find_idempotency(f.store, "key", &id, &spec), 0);
        free(spec);
        CHECK_INT(id, first);

        struct store_adding lost = {0};
        CHECK_INT(fixture_add_some(f.store, 64, 16, NULL, 2, &lost), 1);
        store_adding_deinit(&lost);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_backlog(f.store, &waiting), 0);
        CHECK_UINT(waiting.experiments, 2);
        while (store_tidy_forgotten(f.store) == 1)
                CHECK(++steps < 100);
        CHECK_INT(rows(&f), (1 + 64 + 64 * 16) + 3);
}

/* No run of an experiment that is being cancelled starts, also after a crash in between. */
static void test_cancel_in_portions(void) {
        FIXTURE f;
        int64_t id, running;
        struct run_record run;
        struct experiment_record e;
        struct recovery recovery;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 64, 16, NULL, &id), 0);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 1);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'cancelled'"), STORE_STEP_ROWS);
        CHECK_INT(store_next_run(f.store, &run, &e), -ENOENT);
        CHECK_INT(fixture_reopen(&f), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state = 'cancelled'"), 64 * 16);
        CHECK_INT(number(&f, "SELECT runs_cancelled FROM experiments"), 64 * 16);
        CHECK_INT(number(&f, "SELECT count(DISTINCT change) FROM runs"), 64 * 16);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), -EALREADY);
}

static void test_three_attempts(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 2, 1, NULL, &id), 0);
        for (unsigned attempt = 1; attempt <= RUN_ATTEMPTS_MAX; attempt++) {
                CHECK_INT(fixture_start(f.store), 1);
                CHECK_INT(number(&f, "SELECT attempt FROM runs WHERE id = 1"), attempt);
                CHECK_INT(fixture_reopen(&f), 0);
                struct recovery recovery;
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_UINT(recovery.requeued, attempt < RUN_ATTEMPTS_MAX);
                CHECK_UINT(recovery.given_up, attempt == RUN_ATTEMPTS_MAX);
                CHECK_INT(fixture_experiment_state(f.store, id), STATE_QUEUED);
        }
        struct run_record run;
        CHECK_INT(store_run(f.store, 1, &run), 0);
        bool good = run.state == STATE_FAILED && run.error && strstr(run.error, "attempt 3; a run is tried 3 times");
        run_record_deinit(&run);
        CHECK(good);
        CHECK_INT(fixture_start(f.store), 2); /* the queue goes on */
        CHECK_INT(fixture_finish(f.store, 2, STATE_DONE, NULL), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_FAILED);
}

/* What is left of a block of which runs have ended is another block; a whole block stays one. */
static void test_a_stop_splits_a_block(void) {
        FIXTURE f;
        int64_t id, before;
        struct recovery recovery;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 3, 2, NULL, &id), 0);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET block = 1 + position / 3"), 0);
        for (int64_t done = 0; done < 2; done++) { /* the second of the first block, the first of the second one */
                CHECK_INT(fixture_start(f.store), 1 + 3 * done);
                if (done == 0) {
                        CHECK_INT(fixture_finish(f.store, 1, STATE_DONE, NULL), 0);
                        CHECK_INT(fixture_start(f.store), 2);
                }
                CHECK_INT(store_last_change(f.store, &before), 0);
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_UINT(recovery.requeued, 1);
                CHECK_INT(number(&f, "SELECT block FROM runs WHERE id = 1"), 1);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE block = 1000001 AND id IN (2, 3)"), 2);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE block = 2 AND id > 3"), 3);
                CHECK_INT(number(&f, "SELECT count(DISTINCT change) FROM runs"), 6);
                if (done == 0)
                        CHECK_INT(number(&f, "SELECT min(change) FROM runs WHERE id IN (2, 3)") > before, 1);
                for (int64_t run = 2; done == 0 && run <= 3; run++) {
                        CHECK_INT(fixture_start(f.store), run);
                        CHECK_INT(fixture_finish(f.store, run, STATE_DONE, NULL), 0);
                }
        }
}

static void test_a_stop_does_not_count(void) {
        FIXTURE f;
        int64_t id;
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        for (unsigned i = 0; i < 2 * RUN_ATTEMPTS_MAX; i++) {
                struct recovery recovery;
                CHECK_INT(fixture_start(f.store), 1);
                CHECK_INT(store_interrupt_run(f.store, 1), 0);
                CHECK_INT(fixture_run_state(f.store, 1), STATE_INTERRUPTED);
                CHECK_INT(fixture_start(f.store), -ENOENT); /* not again by the daemon that stops */
                CHECK_INT(fixture_reopen(&f), 0);
                CHECK_INT(store_recover(f.store, &recovery), 0);
                CHECK_UINT(recovery.requeued, 1);
                CHECK_UINT(recovery.given_up, 0);
        }
        CHECK_INT(number(&f, "SELECT attempt FROM runs"), 0);
}

static void test_recovery_of_nothing(void) {
        FIXTURE f;
        int64_t id, change, after;
        struct recovery recovery = {7, 7};
        fixture_open(&f);
        CHECK_INT(fixture_add(f.store, 1, 1, NULL, &id), 0);
        CHECK_INT(store_last_change(f.store, &change), 0);
        CHECK_INT(store_recover(f.store, &recovery), 0);
        CHECK_UINT(recovery.requeued + recovery.given_up, 0);
        CHECK_INT(store_last_change(f.store, &after), 0);
        CHECK_INT(after, change);
}

int main(void) {
        RUN(test_one_daemon_per_directory);
        RUN(test_a_lock_of_a_child_that_ends_is_waited_for);
        RUN(test_bad_directories);
        RUN(test_durable_settings);
        RUN(test_link_in_place_of_the_file);
        RUN(test_not_a_database);
        RUN(test_check_of_sorted_require);
        RUN(test_what_a_spec_measures);
        RUN(test_reader_changes_nothing);
        RUN(test_add_and_read);
        RUN(test_add_is_all_or_nothing);
        RUN(test_idempotency);
        RUN(test_ids_are_never_reused);
        RUN(test_runs_in_order);
        RUN(test_wrong_transitions);
        RUN(test_experiment_ends);
        RUN(test_outcome_is_stored);
        RUN(test_first_probes);
        RUN(test_first_probes_end_the_search);
        RUN(test_first_probes_of_as_many_cpus);
        RUN(test_cancel_queued);
        RUN(test_cancel_running);
        RUN(test_cancel_then_crash);
        RUN(test_delete);
        RUN(test_exported);
        RUN(test_acknowledgements_end);
        RUN(test_keep_until_exported);
        RUN(test_delete_in_portions);
        RUN(test_add_in_portions);
        RUN(test_cancel_in_portions);
        RUN(test_three_attempts);
        RUN(test_a_stop_splits_a_block);
        RUN(test_a_stop_does_not_count);
        RUN(test_recovery_of_nothing);
        return check_end();
}
