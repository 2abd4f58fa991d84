/* SPDX-License-Identifier: MIT */

/* What the service accepts, refuses, carries out and reports of itself. */

#include "daemon/log.h"
#include "schema/json/json.h"
#include "tests/unit/check.h"
#include "tests/unit/full-disk.h"
#include "tests/unit/listed-runs.h"
#include "tests/unit/service-harness.h"

#include <errno.h>

/* Submit */

static void test_submit(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id;
        bool created;
        struct refusal r = {0};
        const char *body = "{\"name\": \"x\", \"message_size\": [1, 2], \"repetitions\": 3, \"duration_seconds\": 2}";
        const char *compact = "{\"name\":\"x\",\"message_size\":[1,2],\"repetitions\":3,\"duration_seconds\":2}";
        CHECK_INT(SUBMIT(&h, body, NULL, &id, &created, &r), 0);
        CHECK(created && id == 1);
        CHECK_UINT(h.submitted, 1);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
        bool good = strcmp(e.spec_json, compact) == 0 && strcmp(e.name, "x") == 0 && e.runs_total == 6 &&
                    e.seed < UINT64_C(1) << 53 && e.queue_position == 1 && e.eta_seconds == 21; /* 6 × (1 + 2 + 0.5) */
        experiment_record_deinit(&e);
        CHECK(good);
        CHECK_INT(service_experiment(h.service, 99, &e, &r), -ENOENT);
        CHECK_INT(r.status, 404);
}

/* Windows that end by messages or bytes are as long as those take, as far as that can be estimated. */
static void test_counted_windows_are_estimated(void) {
        static const struct {
                const char *body;
                int64_t eta_seconds;
        } cases[] = {
                {"{\"message_size\": 1000, \"messages\": 1000000, \"repetitions\": 2}", 7}, /* 2 × (1 + 2 + 0.5) */
                {"{\"message_size\": 1000, \"bytes\": 1000000000, \"repetitions\": 2}", 7},
                {"{\"message_size\": 1000, \"workload\": \"pingpong\", \"messages\": 500000, \"repetitions\": 2}", 7},
                {"{\"message_size\": [1000, 9000], \"messages\": 250000}", 6}, /* 3, and 0.5 + 2.5 */
                {"{\"message_size\": 1, \"messages\": 1, \"repetitions\": 4}", 6},
                {"{\"message_size\": 1000, \"messages\": 10000000, \"repetitions\": 2}", 43}, /* 2 × (1 + 20 + 0.5) */
                {"{\"message_size\": 1073741824, \"messages\": 20}", 23},
                {"{\"message_size\": 1000, \"messages\": 3000, \"rate\": 100}", 32},
                {"{\"message_size\": 1000000, \"messages\": 9007199254740991, \"repetitions\": 2}", 2 * 90000},
                {"{\"workload\": \"context-switch\", \"processes\": 50, \"messages\": 30000, \"repetitions\": 2}", 6},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                HARNESS h;
                int64_t id;
                bool created;
                struct refusal r = {0};
                struct experiment_record e;
                harness_start(&h);
                if (SUBMIT(&h, cases[i].body, NULL, &id, &created, &r) < 0)
                        CHECK_FAIL("case %zu: %s", i, r.detail);
                CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
                int64_t eta = e.eta_seconds;
                experiment_record_deinit(&e);
                if (eta != cases[i].eta_seconds)
                        CHECK_FAIL("case %zu: %" PRId64 " seconds", i, eta);
        }
}

static void test_seed_gives_the_order(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id, sizes[2][8];
        bool created;
        struct refusal r;
        for (int k = 0; k < 2; k++) {
                CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5,6,7,8], \"seed\": 4711}", NULL, &id, &created, &r),
                          0);
                struct run_record *runs = NULL;
                size_t n = 0;
                struct store *reader;
                CHECK_INT(store_open_beside(&reader, h.f.store), 0);
                int error = listed_runs(reader, id, 0, 100, &runs, &n);
                store_close(reader);
                CHECK_INT(error, 0);
                CHECK_UINT(n, 8);
                for (size_t i = 0; i < 8; i++)
                        sizes[k][i] = strtoll(strstr(runs[i].point_json, "message_size\":") + 14, NULL, 10);
                listed_runs_free(runs, n);
        }
        CHECK(memcmp(sizes[0], sizes[1], sizeof(sizes[0])) == 0);
        bool sorted = true;
        for (size_t i = 0; i < 7; i++)
                sorted = sorted && sizes[0][i] < sizes[0][i + 1];
        CHECK(!sorted);
}

static void test_refused_submissions(void) {
        static const struct {
                const char *body, *key;
                int status;
                const char *code, *pointer;
        } table[] = {
                {"", NULL, 400, "invalid-json", ""},
                {"{\"transport\": \"pipe\"", NULL, 400, "invalid-json", "/transport"},
                {"{\"transprot\": \"pipe\"}", NULL, 422, "unknown-field", "/transprot"},
                {"{\"message_size\": 13}", NULL, 422, "limit-exceeded", "/message_size"},
                {"{\"message_size\": [13, 14]}", NULL, 422, "limit-exceeded", "/message_size"},
                {"{\"message_size\": 13, \"skip_impossible\": true}", NULL, 422, "no-points", ""},
                {"{}", "", 400, "invalid-idempotency-key", ""},
                {"{}", "with space", 400, "invalid-idempotency-key", ""},
                {"{}", "\x7f", 400, "invalid-idempotency-key", ""},
                {"{}", "sch\xc3\xb6n", 400, "invalid-idempotency-key", ""},
        };
        HARNESS h;
        harness_start(&h);
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                int64_t id = 7;
                bool created = true;
                struct refusal r = {0};
                int error = SUBMIT(&h, table[i].body, table[i].key, &id, &created, &r);
                if (error == 0 || id != 7 || r.status != table[i].status || strcmp(r.code, table[i].code) != 0 ||
                    strcmp(r.pointer, table[i].pointer) != 0 || !r.detail[0])
                        CHECK_FAIL("submission %zu: error %d, %d %s at \"%s\": %s", i, error, r.status, r.code,
                                   r.pointer, r.detail);
        }
        char key[202];
        memset(key, 'k', 201);
        key[201] = '\0';
        int64_t id;
        bool created;
        struct refusal r;
        CHECK(SUBMIT(&h, "{}", key, &id, &created, &r) < 0);
        CHECK_INT(r.status, 400);
        key[200] = '\0';
        CHECK_INT(SUBMIT(&h, "{}", key, &id, &created, &r), 0);
        CHECK(service_submit(h.service, "{}\0{}", 5, NULL, &id, &created, &r) < 0); /* not cut at the NUL */
        CHECK_INT(r.status, 400);
        CHECK_UINT(h.submitted, 1);
}

static void test_skip_impossible(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id;
        bool created;
        struct refusal r;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [12, 13, 14], \"skip_impossible\": true}", NULL, &id, &created, &r),
                  0);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
        struct json *skipped = NULL;
        int error = json_parse(e.skipped_json, strlen(e.skipped_json), &skipped, NULL);
        uint32_t total = e.runs_total;
        experiment_record_deinit(&e);
        CHECK_INT(error, 0);
        CHECK_UINT(total, 2);
        const struct json *first = json_first(skipped);
        const char *reason = NULL;
        bool good = json_length(skipped) == 1 && json_get(json_get(first, "point"), "message_size") &&
                    json_as_string(json_get(first, "reason"), &reason) == 0 &&
                    strcmp(reason, "13 bytes are impossible here") == 0;
        json_free(skipped);
        CHECK(good);
}

/* A property of the host that one point has tried holds for the others of its submission, and for no other
 * submission. */
static void test_one_session_for_all_points(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id;
        bool created;
        struct refusal r;
        points_with_session = 0;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [10, 11, 12]}", NULL, &id, &created, &r), 0);
        CHECK_UINT(points_with_session, 2);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 10}", NULL, &id, &created, &r), 0);
        CHECK_UINT(points_with_session, 2);
}

/* A placement for otherwise is no part of an experiment that has another point to run. */
static void test_otherwise(void) {
        static const struct {
                const char *body;
                uint32_t runs, skipped;
        } cases[] = {
                {"{\"placement\": [\"cross-node\", {\"kind\": \"same-cpu\", \"otherwise\": true}], \"message_size\": "
                 "[1, 2], "
                 "\"skip_impossible\": true}",
                 2, 2},
                {"{\"placement\": [{\"kind\": \"same-cpu\", \"otherwise\": true}, \"cross-node\", \"default\"], "
                 "\"message_size\": [1, 2, 13], \"skip_impossible\": true}",
                 2, 4},
                {"{\"placement\": {\"kind\": \"same-cpu\", \"otherwise\": true}}", 1, 0},
                {"{\"placement\": [{\"kind\": \"same-cpu\", \"otherwise\": true}, \"default\"]}", 1, 0},
        };
        HARNESS h;
        harness_start(&h);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                int64_t id;
                bool created;
                struct refusal r;
                struct experiment_record e;
                struct json *skipped = NULL;
                CHECK_INT(SUBMIT(&h, cases[i].body, NULL, &id, &created, &r), 0);
                CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
                CHECK_INT(json_parse(e.skipped_json, strlen(e.skipped_json), &skipped, NULL), 0);
                size_t n = json_length(skipped);
                uint32_t total = e.runs_total;
                json_free(skipped);
                experiment_record_deinit(&e);
                if (total != cases[i].runs || n != cases[i].skipped)
                        CHECK_FAIL("case %zu: %" PRIu32 " runs, %zu skipped", i, total, n);
        }
}

/* White space is not stored, a megabyte of it least of all: every list would carry it. Strings keep theirs. */
static void test_a_spec_is_stored_compact(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id, again;
        bool created;
        struct refusal r = {0};
        struct experiment_record e;
        static char body[1 << 20];
        memset(body, ' ', sizeof(body) - 1);
        memcpy(body, "{\t\"name\" :\r\n", 12);
        const char *end = "\" a \\\"{ 1 , 2 }\\\\\"\n,\"message_size\": [ 1 , 2 ] }";
        memcpy(body + sizeof(body) - 1 - strlen(end), end, strlen(end));
        CHECK_INT(SUBMIT(&h, body, "key", &id, &created, &r), 0);
        CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
        CHECK_STRING(e.spec_json, "{\"name\":\" a \\\"{ 1 , 2 }\\\\\",\"message_size\":[1,2]}");
        CHECK_STRING(e.name, " a \"{ 1 , 2 }\\");
        CHECK_INT(SUBMIT(&h, e.spec_json, "key", &again, &created, &r), 0); /* the same, written otherwise */
        CHECK(!created && again == id);
        experiment_record_deinit(&e);

        /* what is no JSON does not become the same by it */
        CHECK_INT(SUBMIT(&h, "{\"message_size\":10}", "ten", &id, &created, &r), 0);
        CHECK_INT(SUBMIT(&h, "{\"message_size\":1 0}", "ten", &again, &created, &r), -EINVAL);
        CHECK_STRING(r.code, "idempotency-key-reused");
}

static void test_idempotency(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id, again, other;
        bool created;
        struct refusal r = {0};
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key", &id, &created, &r), 0);
        CHECK(created);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key", &again, &created, &r), 0);
        CHECK(!created && again == id);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 2}", "key", &other, &created, &r), -EINVAL);
        CHECK_INT(r.status, 422);
        CHECK_STRING(r.code, "idempotency-key-reused");
        CHECK(service_submit(h.service, "{\"message_size\": 1}\0", 20, "key", &other, &created, &r) < 0);
        CHECK_INT(SUBMIT(&h, "{\"message_size\": 1}", "key2", &other, &created, &r), 0);
        CHECK(created && other != id);
        CHECK_UINT(h.submitted, 2);
}

/* Full disk */

static int job_full(void *harness, void *kind) {
        (void) harness;
        fault.kind = *(enum fault_kind *) kind;
        fault.happened = false;
        fault.countdown = 1;
        return 0;
}

static void test_full_disk(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id;
        bool created;
        struct refusal r = {0};
        enum fault_kind full = FAULT_FULL;
        CHECK_INT(on_main(&h, job_full, &full), 0);
        CHECK_INT(SUBMIT(&h, "{}", "key", &id, &created, &r), -ENOSPC);
        CHECK_INT(r.status, 507);
        CHECK(strstr(r.detail, "bytes are free") && strstr(r.detail, h.f.dir));
        CHECK_UINT(h.submitted, 0);
        CHECK_INT(SUBMIT(&h, "{}", "key", &id, &created, &r), 0); /* there is room again */
        CHECK(created);
        CHECK_INT(id, 1);
}

/* Errors that pass, of the check after an unclean end */

static unsigned calls_before_error; /* of the main thread's connection; 0: none fails any more */

static bool fails_once(void) {
        return calls_before_error > 0 && --calls_before_error == 0;
}

/* As after an unclean end; one call fails on the way. */
static int job_check(void *harness, void *calls) {
        struct harness *h = harness;
        h->f.store->scrub_next = h->f.store->scrub_total = 1;
        calls_before_error = *(unsigned *) calls;
        fault.fails = fails_once;
        service_arm_tidy(h->service);
        return 0;
}

/* 1: housekeeping goes on, and at once. */
static int job_hurry(void *harness, void *argument) {
        struct harness *h = harness;
        (void) argument;
        sd_event_source *source = h->service->tidy_source;
        return sd_event_source_get_enabled(source, NULL) > 0
                       ? sd_event_source_set_time_relative(source, 0) < 0 ? -EIO : 1
                       : 0;
}

static int job_left(void *harness, void *ret) {
        (void) harness;
        *(unsigned *) ret = calls_before_error;
        fault.fails = NULL;
        return 0;
}

/* The check comes to its end by itself, and what could not be read once is not called damaged. */
static void test_an_error_that_passes_does_not_end_the_check(void) {
        HARNESS h;
        unsigned rounds = 0, left = 0;
        harness_start(&h);
        for (unsigned calls = 1; left == 0; calls++, rounds++) {
                struct store_integrity i;
                int r = 1;
                CHECK_INT(on_main(&h, job_check, &calls), 0);
                while (r > 0) {
                        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
                        r = on_main(&h, job_hurry, NULL);
                }
                CHECK_INT(r, 0);
                CHECK_INT(on_main(&h, job_left, &left), 0);
                store_integrity(h.f.store, &i);
                CHECK(i.pages_to_check > 20);
                CHECK_UINT(i.pages_checked, i.pages_to_check);
                CHECK_UINT(i.damaged, 0);
        }
        CHECK(rounds > 20); /* at any of its calls */
}

static int job_extend_on_full_disk(void *harness, void *ret_id) {
        static uint32_t order[STORE_STEP_ROWS + 2];
        struct harness *h = harness;
        int r = fixture_add(h->f.store, 1, 1, NULL, ret_id);
        if (r == 0)
                r = store_extend_some(
                        h->f.store, *(int64_t *) ret_id,
                        &(struct extension){
                                .order = order, .n_points = 1, .first_repetition = 2, .repetitions = ELEMENTS(order)},
                        &(struct request_record){0});
        disk_is_full = true;
        service_arm_tidy(h->service);
        return r;
}

static int job_tidy_error(void *harness, void *argument) {
        (void) argument;
        return ((struct harness *) harness)->service->tidy_error;
}

static int job_count_runs(void *harness, void *ret) {
        return db_get_one(((struct harness *) harness)->f.store->db, ret, "SELECT count(*) FROM runs");
}

/* Housekeeping, as long as it goes on and (where it is asked for) has no error. */
static int hurry(struct harness *h, bool to_error) {
        int r;
        while ((r = on_main(h, job_hurry, NULL)) > 0 && !(to_error && on_main(h, job_tidy_error, NULL) < 0))
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return r;
}

/* An extension waits for room, though there is nothing else to be done. */
static void test_an_extension_waits_for_room(void) {
        HARNESS h;
        int64_t id, runs;
        harness_start(&h);
        CHECK_INT(on_main(&h, job_extend_on_full_disk, &id), 1);
        int r = hurry(&h, true),
            error = on_main(&h, job_tidy_error, NULL); /* which is gone soon after it is not full */
        disk_is_full = false;
        CHECK_INT(r, 1);
        CHECK_INT(error, -ENOSPC);
        CHECK_INT(hurry(&h, false), 0);
        CHECK_INT(on_main(&h, job_count_runs, &runs), 0);
        CHECK_INT(runs, STORE_STEP_ROWS + 3);
}

/* Cancel and delete */

static void test_cancel_and_delete(void) {
        HARNESS h;
        harness_start(&h);
        int64_t id, run;
        bool created;
        struct refusal r = {0};
        CHECK_INT(service_cancel(h.service, 1, &r), -ENOENT);
        CHECK_INT(r.status, 404);
        CHECK_STRING(r.detail, "there is no experiment 1");
        CHECK_INT(service_delete(h.service, 1, &r), -ENOENT);
        CHECK_INT(r.status, 404);

        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r), 0);
        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(service_delete(h.service, id, &r), -EBUSY);
        CHECK_INT(r.status, 409);
        CHECK_INT(service_cancel(h.service, id, &r), 0);
        CHECK_INT(h.cancelled_run, run);
        struct ending ending = {.run = run, .outcome = {.state = STATE_CANCELLED}};
        CHECK_INT(on_main(&h, job_finish, &ending), 0);
        CHECK_INT(service_cancel(h.service, id, &r), -EALREADY);
        CHECK_INT(r.status, 409);
        CHECK_INT(service_delete(h.service, id, &r), 0);
        struct experiment_record e;
        CHECK_INT(service_experiment(h.service, id, &e, &r), -ENOENT);
}

/* Subscribers */

static void test_subscribers(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        atomic_uint all = 0, first = 0, second = 0;
        struct subscription *a, *b, *c;
        CHECK_INT(service_subscribe(h.service, 0, on_wake, &all, &a), 0);
        CHECK_INT(service_subscribe(h.service, 1, on_wake, &first, &b), 0);
        CHECK_INT(service_subscribe(h.service, 2, on_wake, &second, &c), 0);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_INT(run_next(&h, STATE_DONE, "{}", "[]", NULL), 0);
        CHECK_UINT(first, 3);
        CHECK_UINT(second, 0);
        CHECK_UINT(all, 3);
        service_unsubscribe(b);
        CHECK_INT(service_delete(h.service, id, &r), 0);
        CHECK_UINT(first, 3);
        CHECK_UINT(all, 4);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_UINT(second, 1);
        service_unsubscribe(a);
        service_unsubscribe(c);
        service_unsubscribe(NULL);
}

/* Documents and health */

static void test_documents(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        int (*const documents[])(struct service *, char **, struct refusal *) = {
                service_presets_json, service_transports_json, service_topology_json, service_environment_json,
                service_noise_json};
        for (size_t i = 0; i < ELEMENTS(documents); i++) {
                char *text = NULL;
                struct json *tree = NULL;
                CHECK_INT(documents[i](h.service, &text, &r), 0);
                int error = json_parse(text, strlen(text), &tree, NULL);
                bool quick = i > 0 || strstr(text, "\"name\":\"quick\"") != NULL;
                json_free(tree);
                free(text);
                CHECK_INT(error, 0);
                CHECK(quick);
        }
}

static void test_health(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t id, run;
        struct service_health health;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1, 2]}", NULL, &id, &created, &r), 0);
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_INT(run_next(&h, STATE_DONE, "{}", "[]", NULL), 0);
        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(on_main(&h, job_sample, &run), 0);
        CHECK_INT(service_health(h.service, &health, &r), 0);
        CHECK_STRING(health.ok ? "" : health.problem, "");
        CHECK_STRING(health.version, IPCLAB_VERSION);
        CHECK_INT(health.running_experiment, 1);
        CHECK_INT(health.running_run, run);
        CHECK(util_now_ms() - health.running_since < 60000);
        CHECK_UINT(health.experiments_queued, 1);
        CHECK_UINT(health.runs_done, 1);
        CHECK_UINT(health.samples, 200);
        CHECK(health.cpu_ns > 0 && health.rss_bytes > 100000 && health.database_bytes > 4096);
        CHECK(health.uptime_seconds >= 0 && health.uptime_seconds < 60);
}

int main(void) {
        log_open(LOG_EMERG);
        fault_install();
        RUN(test_submit);
        RUN(test_counted_windows_are_estimated);
        RUN(test_seed_gives_the_order);
        RUN(test_refused_submissions);
        RUN(test_skip_impossible);
        RUN(test_one_session_for_all_points);
        RUN(test_otherwise);
        RUN(test_a_spec_is_stored_compact);
        RUN(test_idempotency);
        RUN(test_full_disk);
        RUN(test_an_error_that_passes_does_not_end_the_check);
        RUN(test_an_extension_waits_for_room);
        RUN(test_cancel_and_delete);
        RUN(test_subscribers);
        RUN(test_documents);
        RUN(test_health);
        return check_end();
}
