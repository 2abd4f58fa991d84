/* SPDX-License-Identifier: MIT */

/* Whether an experiment gets more blocks: from its stored runs, and again after a crash. */

#include "daemon/result/until.h"

#include "daemon/store/internal.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <math.h>

static char merged[] = "{\"order\":\"blocks\"}";

static struct spec spec_of(double relative_ci, uint32_t most, double budget) {
        return (struct spec){.merged_json = merged,
                             .until = {.relative_ci = relative_ci, .max_repetitions = most, .budget_seconds = budget}};
}

/* A spec of two points, with the blocks before the first look. */
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

/* An experiment under way, and the last decision on it. */
struct adaptive {
        struct fixture f;
        struct spec spec;
        int64_t id;
        struct json *decision;
        char *text; /* of the decision, as it is stored */
        uint32_t more;
};

static void adaptive_close(struct adaptive *a) {
        json_free(a->decision);
        free(a->text);
        fixture_end(&a->f);
}
#define ADAPTIVE __attribute__((cleanup(adaptive_close))) struct adaptive

/* Adds the experiment, and runs its first blocks, as run_all(). How many runs that were; -errno. */
static int begin(struct adaptive *a, double relative_ci, uint32_t most, double first, double second) {
        uint32_t blocks;
        *a = (struct adaptive){.spec = spec_of(relative_ci, most, 0)};
        fixture_open(&a->f);
        int r = add(&a->f, &a->spec, &a->id, &blocks);
        return r < 0 ? r : run_all(&a->f, first, second);
}

static int decide(struct adaptive *a) {
        struct experiment_record e;
        struct until_decision d = {0};
        json_free(util_steal(&a->decision));
        free(util_steal(&a->text));
        int r = store_undecided(a->f.store, &e);
        if (r < 0)
                return r;
        r = until_decide(a->f.store, &e, &a->spec, &d);
        experiment_record_deinit(&e);
        a->text = d.json;
        a->more = d.more;
        return r == 0 ? json_parse(d.json, strlen(d.json), &a->decision, NULL) : r;
}

static const char *string(const struct json *object, const char *key) {
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
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.02), 12);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_RUNNING); /* nothing is decided */
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "reached");
        CHECK(figure(a.decision, "rows_reached") == 2);
        CHECK_UINT(json_length(json_get(a.decision, "rows_not_reached")), 0);
        CHECK_UINT(a.more, 0);
        CHECK_INT(store_conclude_experiment(a.f.store, a.id, a.text), 0);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_DONE);
        CHECK_INT(store_undecided(a.f.store, &(struct experiment_record){0}), -ENOENT);
}

static void nothing_is_decided_before_the_last_run(void) {
        FIXTURE f;
        struct spec spec = spec_of(0.02, 60, 0);
        int64_t id;
        uint32_t blocks;
        fixture_open(&f);
        CHECK_INT(add(&f, &spec, &id, &blocks), 0);
        CHECK_INT(store_undecided(f.store, &(struct experiment_record){0}), -ENOENT);
}

static void wide_rows_are_named(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.04), 12);
        CHECK_INT(fixture_reopen(&a.f), 0); /* a daemon that was killed before it could decide */
        struct recovery counts;
        CHECK_INT(store_recover(a.f.store, &counts), 0);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_QUEUED);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "running");
        CHECK(figure(a.decision, "rows") == 2 && figure(a.decision, "rows_reached") == 1);
        CHECK_UINT(json_length(json_get(a.decision, "looks")), 1);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached"));
        CHECK(row && figure(json_get(row, "point"), "message_size") == 2 && figure(row, "runs") == 6);
        CHECK(figure(row, "relative_ci") > 0.0399 && figure(row, "relative_ci") < 0.0401);
        CHECK(figure(a.decision, "repetitions_asked") == 9); /* with the three that it adds */
        CHECK(figure(row, "repetitions_needed") == 24);      /* twice as narrow: four times as many */
        CHECK_UINT(a.more, 3);
}

/* Runs the experiment until a decision ends it, its two points with these figures. How many blocks that were; -errno.
 */
static int run_to_end(struct adaptive *a, uint32_t most, double relative_ci, const double *first,
                      const double *second) {
        uint32_t blocks, order[FIXTURE_RUNS_MAX];
        int n = 0;
        *a = (struct adaptive){.spec = spec_of(relative_ci, most, 0)};
        fixture_open(&a->f);
        int r = add(&a->f, &a->spec, &a->id, &blocks);
        while (r == 0) {
                for (int64_t id; r == 0 && (id = fixture_start(a->f.store)) > 0; n++)
                        r = finish(&a->f, id, n % 2 ? second[n / 2] : first[n / 2]);
                if (r == 0)
                        r = decide(a);
                if (r < 0 || a->more == 0)
                        break;
                for (uint32_t i = 0; i < 2 * a->more; i++)
                        order[i] = i % 2;
                struct extension x = {.order = order,
                                      .n_points = 2,
                                      .first_repetition = (uint32_t) n / 2 + 1,
                                      .repetitions = a->more,
                                      .in_blocks = true,
                                      .until_json = a->text};
                r = store_extend_some(a->f.store, a->id, &x, &(struct request_record){0});
        }
        return r < 0 ? r : n / 2;
}

/* The same runs in two orders: of those that drift, the least and the greatest do not cover the median. */
static void neighbours_that_are_alike_take_a_row_its_interval(void) {
        static const double drift[13] = {950, 950, 990, 992, 994, 996, 998, 1000, 1002, 1004, 1006, 1008, 1010};
        static const double mixed[13] = {950, 1010, 990, 1008, 950, 1006, 992, 1004, 994, 1002, 996, 1000, 998};
        ADAPTIVE a;
        CHECK_INT(run_to_end(&a, 13, 0.02, drift, mixed), 13);
        CHECK_STRING(string(a.decision, "state"), "max_repetitions");
        CHECK(figure(a.decision, "rows") == 2 && figure(a.decision, "rows_reached") == 1);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached"));
        CHECK(row && figure(json_get(row, "point"), "message_size") == 1 && figure(row, "runs") == 13);
        CHECK(row && json_type(json_get(row, "relative_ci")) == JSON_NULL);
        double correlation = 0, independent = 0;
        /* the one follows from the other: 13 (1 - r) / (1 + r) */
        CHECK(row && sscanf(string(row, "reason"),
                            "neighbouring runs are alike (correlation %lf, without its bias): 13 of them tell as much "
                            "as %lf independent ones, too few for an interval; runs at other times tell more",
                            &correlation, &independent) == 2);
        CHECK(correlation > 0.5 && fabs(13 * (1 - correlation) / (1 + correlation) - independent) < 0.2);
}

/* A number that no experiment can have is no advice, and is told with the limit. */
static void a_row_out_of_reach_has_no_number(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.004, 60, 0.01, 0.04), 12);
        CHECK_INT(decide(&a), 0);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached")), *next = json_next(row);
        CHECK(figure(row, "relative_ci") > 0.0399 && figure(row, "relative_ci") < 0.0401);
        CHECK_INT(json_type(json_get(row, "repetitions_needed")), JSON_NULL);
        CHECK_STRING(string(row, "reason"), "it would take about 600 repetitions, more than the 200 that an experiment "
                                            "with until can have; a quieter machine or a longer window needs fewer");
        CHECK(figure(next, "repetitions_needed") == 38); /* 6 x 2.5 x 2.5, and no reason */
        CHECK(!json_get(next, "reason"));
}

static void neighbours_that_are_alike_widen_a_row(void) {
        double alike[41], unlike[41], width[2] = {0};
        ADAPTIVE a;
        for (int i = 0; i < 41; i++) {
                unlike[i] = 1000 + i * 7 % 11;
                alike[i] = 1000 + i / 3 * 7 % 11; /* three in a row are */
        }
        CHECK_INT(run_to_end(&a, 41, 0.001, alike, unlike), 41);
        CHECK(figure(a.decision, "rows") == 2 && figure(a.decision, "rows_reached") == 0);
        for (const struct json *row = json_first(json_get(a.decision, "rows_not_reached")); row; row = json_next(row)) {
                bool is_alike = figure(json_get(row, "point"), "message_size") == 1;
                width[is_alike] = figure(row, "relative_ci");
                CHECK_INT(strstr(string(row, "reason"), "neighbouring runs are alike") != NULL, is_alike);
        }
        CHECK(width[0] > 0 && width[1] > width[0]);
}

/* As many as an experiment has whose time is up. */
static void few_runs_have_no_interval(void) {
        static const double values[] = {1000, 1001};
        ADAPTIVE a;
        CHECK_INT(run_to_end(&a, 2, 0.5, values, values), 2);
        CHECK(figure(a.decision, "rows") == 2 && figure(a.decision, "rows_reached") == 0);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached"));
        CHECK(row && json_type(json_get(row, "relative_ci")) == JSON_NULL);
        CHECK(row && json_type(json_get(row, "repetitions_needed")) == JSON_NULL);
        CHECK_STRING(string(row, "reason"), "fewer than 6 runs have the figure, and there is no interval");
}

static void looks_are_stored(void) {
        static const uint32_t order[] = {0, 1, 1, 0, 0, 1}, at[] = {6, 9};
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.001, 9, 0.1, 0.1), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_UINT(a.more, 3);
        struct extension x = {.order = order,
                              .n_points = 2,
                              .first_repetition = 7,
                              .repetitions = 3,
                              .in_blocks = true,
                              .until_json = a.text};
        CHECK_INT(store_extend_some(a.f.store, a.id, &x, &(struct request_record){0}), 0);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_RUNNING);
        CHECK_INT(run_all(&a.f, 0.1, 0.1), 6);
        for (unsigned twice = 0; twice < 2; twice++) { /* a decision changes nothing that the next one goes by */
                CHECK_INT(decide(&a), 0);
                CHECK_STRING(string(a.decision, "state"), "max_repetitions");
                CHECK_UINT(a.more, 0);
                CHECK(figure(a.decision, "repetitions_asked") == 9);
                const struct json *look = json_first(json_get(a.decision, "looks"));
                for (size_t i = 0; i < ELEMENTS(at); i++, look = json_next(look))
                        CHECK(look && figure(look, "repetitions") == at[i]);
                CHECK(!look);
        }
}

static void a_row_that_only_fails_ends_it(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0), 12);
        CHECK_INT(decide(&a), 0);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached"));
        CHECK_STRING(string(a.decision, "state"), "failed");
        CHECK(row && figure(row, "runs") == 0 && *string(row, "reason"));
        CHECK_INT(json_type(json_get(row, "relative_ci")), JSON_NULL);
        CHECK_INT(json_type(json_get(row, "repetitions_needed")), JSON_NULL);
        CHECK_UINT(a.more, 0);
        CHECK_INT(store_conclude_experiment(a.f.store, a.id, a.text), 0);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_FAILED);
        CHECK_INT(store_retry_some(a.f.store, a.id, false, &(struct request_record){0}), 0); /* and it goes on */
        CHECK_INT(run_all(&a.f, 0.01, 0.01), 6);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "reached");
}

/* At as many repetitions, and at other data. Where all runs fail again, they are the same. */
static void a_look_after_a_retry_counts(void) {
        static const double parts[] = {0, 0.01}; /* by which the runs that are retried differ; 0: they fail */
        ADAPTIVE a;
        uint32_t looks = 0;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_UINT(json_length(json_get(a.decision, "looks")), 1);
        for (size_t i = 0; i < ELEMENTS(parts); i++) {
                CHECK_INT(store_conclude_experiment(a.f.store, a.id, a.text), 0);
                CHECK_INT(store_retry_some(a.f.store, a.id, false, &(struct request_record){0}), 0);
                CHECK_INT(run_all(&a.f, parts[i], parts[i]), 6);
                CHECK_INT(decide(&a), 0);
                CHECK_UINT(json_length(json_get(a.decision, "looks")), i + 1);
        }
        const struct json *look = json_first(json_get(a.decision, "looks")), *next = look ? json_next(look) : NULL;
        CHECK(look && figure(look, "repetitions") == 6 && figure(look, "runs") == 6);
        CHECK(next && figure(next, "repetitions") == 6 && figure(next, "runs") == 12);
        CHECK_INT(until_looks_made(a.text, &looks), 0);
        CHECK_UINT(looks, 2);
}

/* An early version listed no runs: what it looked at is not known to be the same. */
static void a_look_of_an_early_version_counts(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.01), 12);
        CHECK_INT(db_run_script(a.f.store->db, "UPDATE experiments SET until = json_set(until, '$.looks', "
                                               "json('[{\"repetitions\":6,\"rows_reached\":0}]'))"),
                  0);
        CHECK_INT(decide(&a), 0);
        CHECK_UINT(json_length(json_get(a.decision, "looks")), 2);
}

/* The others are to be known all the same. */
static void a_row_that_only_fails_ends_no_other(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.04, 0), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "running");
        CHECK_UINT(a.more, 3);
        const struct json *row = json_first(json_get(a.decision, "rows_not_reached"));
        CHECK(row && figure(row, "runs") == 0);
        CHECK_STRING(string(row, "reason"), "no run of it is done");
}

static void a_damaged_result_ends_it(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.01), 12);
        CHECK_INT(db_run_script(a.f.store->db, "UPDATE runs SET result = 'no JSON'"), 0);
        CHECK_INT(decide(&a), -EBADMSG);
        CHECK_INT(store_conclude_experiment(a.f.store, a.id, NULL), 0);
        CHECK_INT(number(&a.f, "SELECT json_extract(until, '$.state') = 'failed' FROM experiments"), 1);
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_DONE);
}

static void a_cancelled_one_is_over(void) {
        ADAPTIVE a;
        int64_t running;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.01), 12);
        CHECK_INT(store_cancel_experiment(a.f.store, a.id, &running), 0); /* between its last run and the decision */
        CHECK_INT(fixture_experiment_state(a.f.store, a.id), STATE_CANCELLED);
        CHECK_INT(number(&a.f, "SELECT json_extract(until, '$.state') = 'cancelled' FROM experiments"), 1);
        CHECK_INT(store_undecided(a.f.store, &(struct experiment_record){0}), -ENOENT);
}

/* All queued runs of two points whose blocks drift together by a tenth: the second is `ratio` times as fast as the
 * first, ± `scatter`. */
static int run_pairs(struct fixture *f, double ratio, double scatter) {
        int n = 0;
        for (int64_t id; (id = fixture_start(f->store)) > 0; n++) {
                int block = n / 2;
                double first = 1000 * (1 + 0.1 * (block % 3 - 1));
                double second = first * ratio * (1 + scatter * (block * 7 % 5 - 2));
                int r = finish(f, id, n % 2 ? second : first);
                if (r < 0)
                        return r;
        }
        return n;
}

static int begin_pairs(struct adaptive *a, double relative_ci, double ratio, double scatter) {
        uint32_t blocks;
        *a = (struct adaptive){.spec = spec_of(relative_ci, 60, 0)};
        a->spec.until.compare =
                (struct spec_compare){.given = true, .axis = AXIS_MESSAGE_SIZE, .baseline = {.message_size = 1}};
        fixture_open(&a->f);
        int r = add(&a->f, &a->spec, &a->id, &blocks);
        return r < 0 ? r : run_pairs(&a->f, ratio, scatter);
}

/* Three more blocks, and their runs. */
static int extend_pairs(struct adaptive *a, double ratio, double scatter) {
        static const uint32_t order[] = {0, 1, 0, 1, 0, 1};
        struct extension x = {.order = order,
                              .n_points = 2,
                              .first_repetition = 7,
                              .repetitions = 3,
                              .in_blocks = true,
                              .until_json = a->text};
        int r = store_extend_some(a->f.store, a->id, &x, &(struct request_record){0});
        return r < 0 ? r : run_pairs(&a->f, ratio, scatter);
}

/* Rows that drift are not narrow, and their ratio may be; at one of seven looks six blocks are too few for a verdict.
 */
static void a_narrow_pair_ends_it(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.02, 1.01, 0.001), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "running");
        CHECK_UINT(a.more, 3);
        CHECK_INT(extend_pairs(&a, 1.01, 0.001), 6);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "reached");
        CHECK(figure(a.decision, "pairs") == 1 && figure(a.decision, "pairs_reached") == 1);
        CHECK(figure(a.decision, "rows") == 2 && json_type(json_get(a.decision, "rows_reached")) == JSON_NULL);
        CHECK_STRING(string(json_get(a.decision, "compare"), "axis"), "message_size");
        CHECK(figure(json_get(a.decision, "compare"), "baseline") == 1);
        CHECK_UINT(json_length(json_get(a.decision, "pairs_not_reached")), 0);
        CHECK_UINT(a.more, 0);
}

/* Without a baseline both points are one pair, whose baseline is the first. */
static void every_pair_is_compared_once(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.001, 0.8, 0.02), 12);
        a.spec.until.compare = (struct spec_compare){.given = true, .every_pair = true, .axis = AXIS_MESSAGE_SIZE};
        CHECK_INT(decide(&a), 0);
        CHECK(figure(a.decision, "pairs") == 1);
        CHECK_INT(json_type(json_get(json_get(a.decision, "compare"), "baseline")), JSON_NULL);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && figure(json_get(pair, "baseline"), "message_size") == 1 &&
              figure(json_get(pair, "candidate"), "message_size") == 2);
}

/* A difference needs no narrow ratio, but as many blocks as make it certain at one of several looks. */
static void a_decided_pair_ends_it(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.001, 0.8, 0.02), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "running");
        CHECK_UINT(a.more, 3);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && figure(json_get(pair, "baseline"), "message_size") == 1 &&
              figure(json_get(pair, "candidate"), "message_size") == 2 && figure(pair, "runs") == 6);
        CHECK(figure(pair, "ratio") > 0.75 && figure(pair, "ratio") < 0.85 && figure(pair, "relative_ci") > 0.01);
        CHECK(figure(pair, "repetitions_needed") >= 7);
        CHECK(figure(json_get(a.decision, "verdicts"), "undecided") == 1);
        CHECK_INT(extend_pairs(&a, 0.8, 0.02), 6);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "reached");
        CHECK(figure(json_get(a.decision, "verdicts"), "slower") == 1);
        const struct json *look = json_first(json_get(a.decision, "looks"));
        CHECK(look && figure(look, "repetitions") == 6 && figure(look, "pairs_reached") == 0);
        look = json_next(look);
        CHECK(look && figure(look, "repetitions") == 9 && figure(look, "pairs_reached") == 1);
}

/* Six blocks are too few for the signs of the pairs at one of seven looks, and enough for a great difference. */
static void a_great_difference_ends_it_early(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.001, 0.5, 0.05), 12);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "reached");
        CHECK(figure(json_get(a.decision, "verdicts"), "slower") == 1);
        CHECK_UINT(a.more, 0);
}

/* One of the third block was retried, and keeps its position. */
static void a_retried_run_is_of_no_pair(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.001, 0.5, 0.05), 12);
        CHECK_INT(db_run_script(a.f.store->db, "UPDATE runs SET block = block + 1000000 WHERE position = 5"), 0);
        CHECK_INT(decide(&a), 0);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && figure(pair, "runs") == 5);
}

/* Five blocks are all that was planned, at one look. A sixth that is added by hand gives another one: six pairs whose
 * signs all agree are certain at one look, and not at two. */
static void looks_after_an_extension_count(void) {
        static const uint32_t order[] = {0, 1};
        struct extension x = {
                .order = order, .n_points = 2, .first_repetition = 6, .repetitions = 1, .in_blocks = true};
        uint32_t blocks;
        ADAPTIVE a = {.spec = spec_of(0.0001, 5, 0)};
        a.spec.until.compare =
                (struct spec_compare){.given = true, .axis = AXIS_MESSAGE_SIZE, .baseline = {.message_size = 1}};
        fixture_open(&a.f);
        CHECK_INT(add(&a.f, &a.spec, &a.id, &blocks), 0);
        CHECK_INT(run_pairs(&a.f, 0.95, 0.001), 10);
        CHECK_INT(decide(&a), 0);
        CHECK_STRING(string(a.decision, "state"), "max_repetitions");
        CHECK_INT(store_conclude_experiment(a.f.store, a.id, a.text), 0);
        CHECK_INT(store_extend_some(a.f.store, a.id, &x, &(struct request_record){0}), 0);
        CHECK_INT(run_pairs(&a.f, 0.95, 0.001), 2);
        CHECK_INT(decide(&a), 0);
        CHECK_UINT(json_length(json_get(a.decision, "looks")), 2);
        CHECK(figure(json_get(a.decision, "verdicts"), "undecided") == 1);
        CHECK(figure(a.decision, "repetitions_asked") == 5); /* the sixth was not */
        CHECK_UINT(json_length(json_get(a.decision, "pairs_not_reached")), 1);
}

/* Nobody knows what an older version asked for, and no number is made up of the later ones. */
static void what_was_not_counted_stays_unknown(void) {
        uint32_t asked = 7;
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.001, 60, 0.1, 0.1), 12);
        CHECK_INT(db_run_script(a.f.store->db, "UPDATE experiments SET until = json_remove(until, "
                                               "'$.repetitions_asked')"),
                  0);
        CHECK_INT(decide(&a), 0);
        CHECK_UINT(a.more, 3);
        CHECK(!json_get(a.decision, "repetitions_asked"));
        CHECK_INT(until_asked(a.text, &asked), -ENODATA);
        CHECK_INT(until_asked(NULL, &asked), -ENODATA);
        CHECK_INT(until_asked("{\"repetitions_asked\":0}", &asked), -EBADMSG);
        CHECK_UINT(asked, 7);
}

static void a_pair_without_common_blocks_is_named(void) {
        ADAPTIVE a;
        CHECK_INT(begin(&a, 0.02, 60, 0.01, 0.01), 12);
        a.spec.until.compare =
                (struct spec_compare){.given = true, .axis = AXIS_MESSAGE_SIZE, .baseline = {.message_size = 1}};
        CHECK_INT(db_run_script(a.f.store->db, "UPDATE runs SET block = block + 100 WHERE position % 2"), 0);
        CHECK_INT(decide(&a), 0);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && figure(pair, "runs") == 0 && *string(pair, "reason"));
        CHECK_INT(json_type(json_get(pair, "ratio")), JSON_NULL);
        CHECK_INT(json_type(json_get(pair, "repetitions_needed")), JSON_NULL);
        CHECK_UINT(a.more, 3);
}

/* More blocks than a comparison takes would not decide it: no number of them is named. */
static void a_pair_out_of_reach_has_no_number(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.0001, 1.01, 0.1), 12);
        CHECK_INT(decide(&a), 0);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && figure(pair, "relative_ci") > 0.01);
        CHECK_INT(json_type(json_get(pair, "repetitions_needed")), JSON_NULL);
        CHECK(strstr(string(pair, "reason"), "more than the 200 blocks that take part in a comparison"));
}

/* There is no ratio of such a run, nor is the rest of the pair's runs one of the pair; further blocks change nothing.
 */
static void a_run_of_nothing_gives_no_ratio(void) {
        ADAPTIVE a;
        CHECK_INT(begin_pairs(&a, 0.001, 0.5, 0.05), 12);
        CHECK_INT(db_run_script(a.f.store->db,
                                "UPDATE runs SET result = '{\"throughput_bytes_per_second\":0}' WHERE position = 5"),
                  0);
        CHECK_INT(decide(&a), 0);
        const struct json *pair = json_first(json_get(a.decision, "pairs_not_reached"));
        CHECK(pair && json_type(json_get(pair, "ratio")) == JSON_NULL);
        CHECK(json_type(json_get(pair, "relative_ci")) == JSON_NULL);
        CHECK_STRING(string(pair, "reason"), "a run's figure is not above 0, and there is no ratio of such");
        CHECK_STRING(string(a.decision, "state"), "failed");
        CHECK_UINT(a.more, 0);
}

int main(void) {
        RUN(first_blocks);
        RUN(nothing_is_decided_before_the_last_run);
        RUN(narrow_rows_end_it);
        RUN(wide_rows_are_named);
        RUN(neighbours_that_are_alike_take_a_row_its_interval);
        RUN(a_row_out_of_reach_has_no_number);
        RUN(neighbours_that_are_alike_widen_a_row);
        RUN(few_runs_have_no_interval);
        RUN(looks_are_stored);
        RUN(a_row_that_only_fails_ends_it);
        RUN(a_look_after_a_retry_counts);
        RUN(a_look_of_an_early_version_counts);
        RUN(a_row_that_only_fails_ends_no_other);
        RUN(a_damaged_result_ends_it);
        RUN(a_cancelled_one_is_over);
        RUN(a_narrow_pair_ends_it);
        RUN(every_pair_is_compared_once);
        RUN(a_decided_pair_ends_it);
        RUN(a_great_difference_ends_it_early);
        RUN(a_retried_run_is_of_no_pair);
        RUN(looks_after_an_extension_count);
        RUN(what_was_not_counted_stays_unknown);
        RUN(a_pair_without_common_blocks_is_named);
        RUN(a_run_of_nothing_gives_no_ratio);
        RUN(a_pair_out_of_reach_has_no_number);
        return check_end();
}
