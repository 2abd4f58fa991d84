/* SPDX-License-Identifier: MIT */

/* Whether an experiment gets more blocks: from what its stored runs say, and again after a crash. */

#include "daemon/result/until.h"

#include "daemon/store/internal.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>

static char merged[] = "{\"order\":\"blocks\"}";

static struct spec spec_of(double relative_ci, uint32_t most, double budget) {
        return (struct spec){.merged_json = merged,
                             .until = {.relative_ci = relative_ci, .max_repetitions = most, .budget_seconds = budget}};
}

/* Of two points, with the blocks before the first look. */
static int add(struct fixture *f, const struct spec *spec, int64_t *ret_id, uint32_t *ret_blocks) {
        struct point points[2] = {{.message_size = 1, .threads = 1}, {.message_size = 2, .threads = 1}};
        struct point_list list = {.points = points, .n_points = 2};
        uint32_t order[FIXTURE_RUNS_MAX];
        _cleanup_free_ char *json = NULL;
        int r = until_begin(spec, 1, ret_blocks, &json);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < 2 * *ret_blocks; i++)
                order[i] = i % 2;
        return store_add_experiment(f->store,
                                    &(struct new_experiment){.spec_json = "{}",
                                                             .spec = spec,
                                                             .points = &list,
                                                             .skipped_json = "[]",
                                                             .repetitions = *ret_blocks,
                                                             .until_json = json,
                                                             .order = order,
                                                             .estimate_ns = NSEC_PER_SEC},
                                    ret_id);
}

static int finish(struct fixture *f, int64_t run, double throughput) {
        char result[80];
        (void) snprintf(result, sizeof(result), "{\"throughput_bytes_per_second\":%.17g}", throughput);
        struct run_outcome o = {.state = throughput > 0 ? STATE_DONE : STATE_FAILED,
                                .error = throughput > 0 ? NULL : "broken",
                                .result_json = throughput > 0 ? result : NULL};
        return store_finish_run(f->store, run, &o);
}

/* All queued runs: the first point's differ by ± `first` of 1000, the second's by ± `second`; 0: they fail. */
static int run_all(struct fixture *f, double first, double second) {
        int n = 0;
        for (int64_t id; (id = fixture_start(f->store)) > 0; n++) {
                double part = n % 2 ? second : first;
                int r = finish(f, id, part > 0 ? 1000 * (1 + part * (n / 2 % 3 - 1)) : 0);
                if (r < 0)
                        return r;
        }
        return n;
}

/* What is decided, and the word of its state. */
static int decide(struct fixture *f, const struct spec *spec, uint32_t *ret_more, struct json **ret) {
        struct experiment_record e;
        struct until_decision d = {0};
        int r = store_undecided(f->store, &e);
        if (r < 0)
                return r;
        r = until_decide(f->store, &e, spec, &d);
        experiment_record_deinit(&e);
        if (r == 0)
                r = json_parse(d.json, strlen(d.json), ret, NULL);
        free(d.json);
        *ret_more = d.more;
        return r;
}

static const char *word(const struct json *object, const char *key) {
        const char *s = "";
        (void) json_as_string(json_get(object, key), &s); /* "" when it is none */
        return s;
}

static double figure(const struct json *object, const char *key) {
        double v = -1;
        (void) json_as_double(json_get(object, key), &v); /* -1 when it is none */
        return v;
}

static void first_blocks(void) {
        static const struct {
                uint32_t most;
                double budget;
                uint32_t blocks;
        } cases[] = {{60, 0, 6}, {3, 0, 3}, {60, 6, 6}, {60, 5.5, 5}, {60, 1, 1}, {60, 0.5, 1}, {200, 1e6, 6}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct spec spec = spec_of(0.02, cases[i].most, cases[i].budget);
                uint32_t blocks;
                char *json;
                CHECK_INT(until_begin(&spec, 1, &blocks, &json), 0);
                free(json);
                CHECK_UINT(blocks, cases[i].blocks);
        }
}

static void narrow_rows_end_it(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        struct json *told;
        int64_t id;
        uint32_t blocks, more;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(store_undecided(f.store, &(struct experiment_record){0}), -ENOENT); /* its runs are still to come */
        CHECK_INT(run_all(&f, 0.01, 0.02), 12);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_RUNNING); /* nothing is decided */
        CHECK_INT(decide(&f, &spec, &more, &told), 0);
        bool good = strcmp(word(told, "state"), "reached") == 0 && figure(told, "rows_reached") == 2 &&
                    json_length(json_get(told, "rows_not_reached")) == 0;
        char *text = json_print(told);
        json_free(told);
        CHECK_UINT(more, 0);
        CHECK(good);
        int r = store_conclude_experiment(f.store, id, text);
        free(text);
        CHECK_INT(r, 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE);
        CHECK_INT(store_undecided(f.store, &(struct experiment_record){0}), -ENOENT);
}

static void wide_rows_are_named(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        struct json *told;
        int64_t id;
        uint32_t blocks, more;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(run_all(&f, 0.01, 0.04), 12);
        CHECK_INT(fixture_reopen(&f), 0); /* a daemon that was killed before it could decide */
        struct recovery counts;
        CHECK_INT(store_recover(f.store, &counts), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_QUEUED);
        CHECK_INT(decide(&f, &spec, &more, &told), 0);
        const struct json *row = json_first(json_get(told, "rows_not_reached"));
        bool good = strcmp(word(told, "state"), "running") == 0 && figure(told, "rows") == 2 &&
                    figure(told, "rows_reached") == 1 && json_length(json_get(told, "looks")) == 1 && row &&
                    figure(json_get(row, "point"), "message_size") == 2 && figure(row, "runs") == 6 &&
                    figure(row, "relative_ci") > 0.0399 && figure(row, "relative_ci") < 0.0401 &&
                    figure(row, "repetitions_needed") == 24; /* twice as narrow: four times as many */
        json_free(told);
        CHECK(good);
        CHECK_UINT(more, 3);
}

static void looks_are_remembered(void) {
        static const uint32_t order[] = {0, 1, 1, 0, 0, 1}, at[] = {6, 9};
        FIXTURE f;
        struct spec spec = spec_of(0.001, 9, 0);
        struct json *told;
        int64_t id;
        uint32_t blocks, more;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(run_all(&f, 0.1, 0.1), 12);
        CHECK_INT(decide(&f, &spec, &more, &told), 0);
        _cleanup_free_ char *text = json_print(told);
        json_free(told);
        CHECK_UINT(more, 3);
        struct extension x = {.order = order,
                              .n_points = 2,
                              .first_repetition = 7,
                              .repetitions = 3,
                              .in_blocks = true,
                              .until_json = text};
        CHECK_INT(store_extend_experiment(f.store, id, &x, &(struct request_record){0}), 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_RUNNING);
        CHECK_INT(run_all(&f, 0.1, 0.1), 6);
        for (unsigned twice = 0; twice < 2; twice++) { /* a decision changes nothing that the next one goes by */
                CHECK_INT(decide(&f, &spec, &more, &told), 0);
                bool good = strcmp(word(told, "state"), "max_repetitions") == 0 && more == 0;
                const struct json *look = json_first(json_get(told, "looks"));
                for (size_t i = 0; i < ELEMENTS(at); i++, look = look ? json_next(look) : NULL)
                        good = good && look && figure(look, "repetitions") == at[i];
                good = good && !look;
                json_free(told);
                CHECK(good);
        }
}

static void a_row_that_only_fails_ends_it(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        struct json *told;
        int64_t id;
        uint32_t blocks, more;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(run_all(&f, 0.01, 0), 12);
        CHECK_INT(decide(&f, &spec, &more, &told), 0);
        const struct json *row = json_first(json_get(told, "rows_not_reached"));
        bool good = strcmp(word(told, "state"), "failed") == 0 && row && figure(row, "runs") == 0 &&
                    json_type(json_get(row, "relative_ci")) == JSON_NULL &&
                    json_type(json_get(row, "repetitions_needed")) == JSON_NULL && *word(row, "reason");
        char *text = json_print(told);
        json_free(told);
        int r = store_conclude_experiment(f.store, id, text);
        free(text);
        CHECK(good);
        CHECK_UINT(more, 0);
        CHECK_INT(r, 0);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_FAILED);
        CHECK_INT(store_retry_experiment(f.store, id, &(struct request_record){0}), 0); /* and it goes on */
        CHECK_INT(run_all(&f, 0.01, 0.01), 6);
        CHECK_INT(decide(&f, &spec, &more, &told), 0);
        good = strcmp(word(told, "state"), "reached") == 0;
        json_free(told);
        CHECK(good);
}

static void what_makes_no_sense_ends_it(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        struct json *told;
        int64_t id;
        uint32_t blocks, more;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(run_all(&f, 0.01, 0.01), 12);
        CHECK_INT(db_run_script(f.store->db, "UPDATE runs SET result = 'no JSON'"), 0);
        CHECK_INT(decide(&f, &spec, &more, &told), -EBADMSG);
        CHECK_INT(store_conclude_experiment(f.store, id, NULL), 0);
        CHECK_INT(number(&f, "SELECT json_extract(until, '$.state') = 'failed' FROM experiments"), 1);
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_DONE);
}

static void a_cancelled_one_is_over(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        int64_t id, running;
        uint32_t blocks;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(run_all(&f, 0.01, 0.01), 12);
        CHECK_INT(store_cancel_experiment(f.store, id, &running), 0); /* between its last run and the decision */
        CHECK_INT(fixture_experiment_state(f.store, id), STATE_CANCELLED);
        CHECK_INT(number(&f, "SELECT json_extract(until, '$.state') = 'cancelled' FROM experiments"), 1);
        CHECK_INT(store_undecided(f.store, &(struct experiment_record){0}), -ENOENT);
}

int main(void) {
        RUN(first_blocks);
        RUN(narrow_rows_end_it);
        RUN(wide_rows_are_named);
        RUN(looks_are_remembered);
        RUN(a_row_that_only_fails_ends_it);
        RUN(what_makes_no_sense_ends_it);
        RUN(a_cancelled_one_is_over);
        return check_end();
}
