/* SPDX-License-Identifier: MIT */

/* The search for a rate, against points whose latency at each rate is known. */

#include "daemon/result/search.h"

#include "daemon/run/blocks.h"
#include "daemon/store/internal.h"
#include "schema/json/json.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/store-fixture.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#define REPETITIONS 3u
#define STEPS_MAX 64u

static char merged[] = "{\"order\":\"blocks\"}";

/* A server that is full at `most`: what waits before it grows without bound there. */
struct model {
        double closed, most, idle_us; /* what a closed loop carries, and an open one; the latency of an idle one */
        /* Runs of these positions are disturbed, and their latency is beyond any limit; equal: none is. */
        uint32_t disturbed_from, disturbed_to;
        uint32_t chance; /* not 0: the seed of a machine that is disturbed at one rate of five */
        bool few; /* the first run of each rate below the closed loop's has too few latencies, and all of one below half
                   */
        bool stays; /* the database is not opened anew, which one of many searches shows as well */
        bool both;  /* it is of either of two streams; an open loop's second one carries 5 % less than it can */
};

static double latency_us(const struct model *m, double rate) {
        return rate < m->most ? m->idle_us / (1 - rate / m->most) : 1e6;
}

/* The rate at which the latency is the limit. */
static double knee(const struct model *m, double limit_us) {
        return m->most * (1 - m->idle_us / limit_us);
}

/* By Thomas Mueller's constant: each bit of the number decides over each bit of what it gives. */
static uint32_t hash(uint32_t n) {
        n = ((n >> 16) ^ n) * 0x45d9f3bu;
        n = ((n >> 16) ^ n) * 0x45d9f3bu;
        return (n >> 16) ^ n;
}

static int run_all(struct fixture *f, const struct model *models, bool fails) {
        struct run_record run;
        struct experiment_record e;
        int r;
        while ((r = store_next_run(f->store, &run, &e)) == 0) {
                const struct model *m = strstr(run.point_json, "\"message_size\":2") ? &models[1] : &models[0];
                double rate = run.rate > 0 ? (double) run.rate : m->closed, part = 1 + 0.001 * (run.repetition % 3);
                bool disturbed = (run.position >= m->disturbed_from && run.position < m->disturbed_to) ||
                                 (m->chance > 0 && hash(m->chance + run.position / REPETITIONS) % 5 == 0);
                double carried = rate < m->most ? rate : m->most, second = 0;
                if (m->both)
                        second = run.rate > 0 && rate > 0.95 * m->most ? 0.95 * m->most : carried;
                bool reached = carried >= 0.97 * rate && (!m->both || second >= 0.97 * rate);
                char result[160];
                char latency[64] = "null"; /* as of a stream in a closed loop */
                bool few = m->few && (rate < m->closed / 2 || (rate < m->closed && run.repetition == 1));
                if (run.rate > 0)
                        (void) snprintf(latency, sizeof(latency), "{\"p99\":%.17g,\"count\":%d}",
                                        disturbed ? 1e12 : latency_us(m, rate) * 1e3 * part, few ? 999 : 1000);
                (void) snprintf(result, sizeof(result), "{\"messages_per_second\":%.17g,\"latency_ns\":%s}",
                                carried + second, latency);
                int64_t id = run.id;
                bool fail = fails && run.rate > 0;
                run_record_deinit(&run);
                experiment_record_deinit(&e);
                r = store_start_run(f->store, id);
                if (r == 0)
                        r = store_finish_run(
                                f->store, id,
                                &(struct run_outcome){.state = fail ? STATE_FAILED : STATE_DONE,
                                                      .error = fail ? "broken" : NULL,
                                                      .flags_json = reached ? "[]" : "[\"rate_not_reached\"]",
                                                      .result_json = fail ? NULL : result});
                if (r < 0)
                        return r;
        }
        return r == -ENOENT ? 0 : r;
}

static struct spec spec_of(double limit_us) {
        return (struct spec){
                .merged_json = merged,
                .repetitions = REPETITIONS,
                .end = {.duration_ns = 10 * NSEC_PER_SEC}, /* enough messages for a p99 from 104 per second on */
                .search = {.latency_p99_below_us = limit_us}};
}

static int add(struct fixture *f, const struct spec *spec, uint32_t n_points, bool both, int64_t *ret_id) {
        struct point points[2] = {{.message_size = 1, .threads = 1}, {.message_size = 2, .threads = 1}};
        if (both)
                points[0] = (struct point){.message_size = 64,
                                           .threads = 1,
                                           .workload = WORKLOAD_STREAM,
                                           .transport = TRANSPORT_TCP,
                                           .direction = DIRECTION_BOTH,
                                           .queue_depth = 1,
                                           .fields = 1};
        struct point_list list = {.points = points, .n_points = n_points};
        uint32_t order[2 * REPETITIONS];
        _cleanup_free_ char *json = NULL;
        int r = search_begin(spec, &json);
        for (uint32_t i = 0; i < n_points * REPETITIONS; i++)
                order[i] = i % n_points;
        return r < 0 ? r
                     : store_add_experiment(f->store,
                                            &(struct new_experiment){.spec_json = "{}",
                                                                     .spec = spec,
                                                                     .points = &list,
                                                                     .skipped_json = "[]",
                                                                     .repetitions = REPETITIONS,
                                                                     .until_json = json,
                                                                     .order = order,
                                                                     .estimate_ns = NSEC_PER_SEC},
                                            ret_id);
}

static int extend(struct fixture *f, int64_t id, const struct search_decision *d) {
        uint32_t order[STEPS_MAX];
        for (uint32_t i = 0; i < d->n * REPETITIONS; i++)
                order[i] = i % (uint32_t) d->n;
        return store_extend_some(f->store, id,
                                 &(struct extension){.order = order,
                                                     .n_points = d->n,
                                                     .first_repetition = 1,
                                                     .repetitions = REPETITIONS,
                                                     .in_blocks = true,
                                                     .rates = d->rates,
                                                     .until_json = d->json},
                                 &(struct request_record){0});
}

/* Until it is over. The database is opened anew before each decision, as after a crash, unless the model says no. */
static int search(struct fixture *f, const struct spec *spec, uint32_t n_points, const struct model *models, bool fails,
                  struct json **ret) {
        int64_t id;
        int r = add(f, spec, n_points, models->both, &id);
        for (unsigned step = 0; r == 0 && step < STEPS_MAX; step++) {
                struct experiment_record e;
                struct search_decision d;
                r = run_all(f, models, fails);
                if (r == 0 && !models->stays)
                        r = fixture_reopen(f);
                if (r == 0)
                        r = store_undecided(f->store, &e);
                if (r < 0)
                        return r;
                r = e.searches ? search_decide(f->store, &e, spec, &d) : -EINVAL;
                experiment_record_deinit(&e);
                if (r < 0)
                        return r;
                bool over = d.n == 0;
                r = over ? store_conclude_experiment(f->store, id, d.json) : extend(f, id, &d);
                if (r == 0 && over)
                        r = json_parse(d.json, strlen(d.json), ret, NULL);
                search_decision_deinit(&d);
                if (over)
                        return r;
        }
        return r < 0 ? r : -ELOOP;
}

static double figure(const struct json *object, const char *key) {
        double v = -1;
        (void) json_as_double(json_get(object, key), &v); /* -1 when it is none */
        return v;
}

static const char *word(const struct json *object, const char *key) {
        const char *s = "";
        (void) json_as_string(json_get(object, key), &s); /* "" when it is none */
        return s;
}

static void it_finds_a_known_knee(void) {
        static const struct model models[] = {{.closed = 20000, .most = 20000, .idle_us = 10},
                                              {.closed = 3000, .most = 3300, .idle_us = 40}};
        static const double limits[] = {50, 100, 1000};
        for (size_t i = 0; i < ELEMENTS(limits); i++) {
                FIXTURE f;
                struct spec spec = spec_of(limits[i]);
                struct json *found;
                fixture_open(&f);
                CHECK_INT(search(&f, &spec, 2, models, false, &found), 0);
                const struct json *point = json_first(json_get(found, "points"));
                bool good = strcmp(word(found, "state"), "done") == 0 && json_length(json_get(found, "points")) == 2;
                for (unsigned k = 0; k < 2 && good; k++, point = json_next(point)) {
                        double want = knee(&models[k], limits[i]), low = figure(point, "highest_rate"),
                               high = figure(point, "lowest_rate_not_kept");
                        good = strcmp(word(point, "state"), "found") == 0 && low <= want && high >= want * 0.995 &&
                               high <= low * (1 + SEARCH_PRECISION) && low >= want * 0.97;
                        if (!good)
                                fprintf(stderr, "limit %g, point %u: %g … %g, not %g\n", limits[i], k, low, high, want);
                }
                json_free(found);
                CHECK(good);
                CHECK_INT(number(&f, "SELECT count(*) FROM runs WHERE state != 'done'"), 0);
                CHECK_INT(
                        number(&f,
                               "SELECT max(position) + 1 = count(*) AND runs_total = count(*) FROM runs, experiments"),
                        1);
                CHECK_INT(number(&f, "SELECT count(DISTINCT point_id || ' ' || block) = count(*) FROM runs"), 1);
                CHECK_INT(fixture_experiment_state(f.store, 1), STATE_DONE);
        }
}

/* Where both ends send, their messages are counted together, and the rate is of each. */
static void a_rate_is_of_each_of_two_streams(void) {
        static const struct model model = {.closed = 10000, .most = 10000, .idle_us = 10, .both = true};
        FIXTURE f;
        struct spec spec = spec_of(1e7); /* the latency of any rate that is reached is less */
        struct json *found;
        unsigned n_wrong = 0;
        fixture_open(&f);
        CHECK_INT(search(&f, &spec, 1, &model, false, &found), 0);
        const struct json *point = json_first(json_get(found, "points"));
        const double closed = figure(point, "closed_loop_messages_per_second"), low = figure(point, "highest_rate");
        for (const struct json *i = json_first(json_get(point, "curve")); i; i = json_next(i)) {
                const double rate = figure(i, "rate"), carried = figure(i, "messages_per_second");
                n_wrong += rate < 0.95 * model.most && fabs(carried - rate) > 1e-6 * rate;
                n_wrong += carried > model.most;
        }
        json_free(found);
        CHECK(fabs(closed - model.closed) < 1e-6 * closed);
        CHECK(low > 0.95 * model.most && low < 0.95 / 0.97 * model.most + 1);
        CHECK_UINT(n_wrong, 0);
}

/* All runs of one step, whichever it is. */
static void a_disturbance_does_not_move_the_knee(void) {
        const double limit = 1000;
        FIXTURE f; /* of all: to make a database takes longer than a search */
        fixture_open(&f);
        for (uint32_t step = 0; step < 10; step++) {
                const uint32_t from = REPETITIONS * (1 + 7 + step); /* after the closed loop and the curve */
                const struct model model = {.closed = 20000,
                                            .most = 3000,
                                            .idle_us = 10,
                                            .disturbed_from = from,
                                            .disturbed_to = from + REPETITIONS};
                const double want = knee(&model, limit);
                struct spec spec = spec_of(limit);
                struct json *found;
                CHECK_INT(search(&f, &spec, 1, &model, false, &found), 0);
                const struct json *point = json_first(json_get(found, "points"));
                double low = figure(point, "highest_rate"), high = figure(point, "lowest_rate_not_kept");
                bool good = strcmp(word(point, "state"), "found") == 0 && fabs(low - want) < 0.05 * want &&
                            fabs(high - want) < 0.05 * want;
                json_free(found);
                if (!good)
                        CHECK_FAIL("step %u: %g … %g, not %g", step, low, high, want);
        }
}

/* What is called found is as near as the precision; what contradicts itself until no rate is left is not called so. */
static void a_wide_step_is_not_called_found(void) {
        unsigned wide = 0, found = 0;
        FIXTURE f;
        fixture_open(&f);
        for (uint32_t seed = 1000; seed <= 40000; seed += 1000) {
                const struct model model = {
                        .closed = 20000, .most = 1e9, .idle_us = 10, .chance = seed, .stays = seed > 4000};
                struct spec spec = spec_of(1000);
                struct json *root;
                CHECK_INT(search(&f, &spec, 1, &model, false, &root), 0);
                const struct json *point = json_first(json_get(root, "points"));
                double low = figure(point, "highest_rate"), high = figure(point, "lowest_rate_not_kept");
                bool near = high <= low * (1 + SEARCH_PRECISION) + 1, good = true;
                size_t n = json_length(json_get(point, "curve"));
                if (strcmp(word(point, "state"), "found") == 0) {
                        good = near && low > 0;
                        found++;
                } else if (strcmp(word(point, "state"), "wide") == 0) {
                        good = !near && low > 0 && n == SPEC_SEARCH_RATES_MAX;
                        wide++;
                }
                json_free(root);
                if (!good)
                        CHECK_FAIL("seed %u: %g … %g after %zu rates", seed, low, high, n);
        }
        CHECK(found > 0 && wide > 0);
}

static void the_ends_are_named(void) {
        static const struct {
                struct model model;
                double limit;
                const char *state;
        } cases[] = {
                {{.closed = 10000, .most = 10000, .idle_us = 10}, 5, "none_kept"},
                {{.closed = 10000, .most = 1e9, .idle_us = 10}, 1e8, "all_kept"},
                {{.closed = 80, .most = 80, .idle_us = 10}, 100, "too_slow"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                FIXTURE f;
                struct spec spec = spec_of(cases[i].limit);
                struct json *found;
                fixture_open(&f);
                CHECK_INT(search(&f, &spec, 1, &cases[i].model, false, &found), 0);
                const struct json *point = json_first(json_get(found, "points"));
                bool good = strcmp(word(point, "state"), cases[i].state) == 0;
                size_t n = json_length(json_get(point, "curve"));
                json_free(found);
                if (!good || n > SPEC_SEARCH_RATES_MAX)
                        CHECK_FAIL("%s: %zu rates", cases[i].state, n);
        }
}

static void percentiles_say_of_how_many_runs_they_are(void) {
        static const struct model model = {.closed = 10000, .most = 10000, .idle_us = 10, .few = true};
        FIXTURE f;
        struct spec spec = spec_of(100);
        struct json *found;
        unsigned n_null = 0, n_known = 0, n_wrong = 0;
        fixture_open(&f);
        CHECK_INT(search(&f, &spec, 1, &model, false, &found), 0);
        const struct json *point = json_first(json_get(found, "points"));
        for (const struct json *i = json_first(json_get(point, "curve")); i; i = json_next(i)) {
                const struct json *p99 = json_get(i, "latency_p99_us");
                double rate = figure(i, "rate"), runs = figure(i, "runs");
                if (rate < 5000) {
                        n_null++;
                        n_wrong +=
                                json_type(p99) != JSON_NULL || !strstr(word(i, "latency_p99_us_reason"), "latencies");
                } else {
                        n_known++;
                        n_wrong += json_type(p99) != JSON_OBJECT || json_get(i, "latency_p99_us_reason") ||
                                   figure(p99, "runs") != (rate < 10000 ? runs - 1 : runs);
                }
        }
        json_free(found);
        CHECK(n_null > 0 && n_known > 0);
        CHECK_UINT(n_wrong, 0);
}

static void rates_that_only_fail_end_it(void) {
        static const struct model model = {.closed = 10000, .most = 10000, .idle_us = 10};
        FIXTURE f;
        struct spec spec = spec_of(100);
        struct json *found;
        fixture_open(&f);
        CHECK_INT(search(&f, &spec, 1, &model, true, &found), 0);
        const struct json *point = json_first(json_get(found, "points"));
        bool good = strcmp(word(found, "state"), "failed") == 0 && strcmp(word(point, "state"), "failed") == 0;
        json_free(found);
        CHECK(good);
        CHECK_INT(fixture_experiment_state(f.store, 1), STATE_FAILED);
}

/* Two instances of two sizes, each with rates of its own, and as many as its own search asks for. */
static void rates_of_one_point_are_one_group(void) {
        static const char text[] = "{\"message_size\":[64,128],\"points\":\"twice\",\"duration_seconds\":10,"
                                   "\"search\":{\"rate\":{\"latency_p99_below_us\":100}}}";
        static const char plain[] = "{\"message_size\":[64,128],\"search\":{\"rate\":{\"latency_p99_below_us\":100}}}";
        struct searched_rate rates[] = {{0, 100}, {0, 200}, {1, 100}, {2, 300}, {3, 300}, {3, 400}};
        struct search_decision d = {.rates = rates, .n = ELEMENTS(rates)};
        const uint32_t want[] = {0, 0, 0, 2, 2, 2}, order[] = {0, 1, 2, 3};
        _cleanup_free_ uint32_t *groups = NULL;
        _cleanup_free_ char *json = NULL;
        struct point_list list = {0};
        struct spec *spec = NULL;
        struct refusal why;
        int64_t id = 0;
        FIXTURE f;
        fixture_open(&f);
        CHECK_INT(spec_parse(text, strlen(text), &spec, &why), 0);
        CHECK_INT(spec_points(spec, &list, &why), 0);
        CHECK_INT(search_begin(spec, &json), 0);
        CHECK_INT(store_add_experiment(f.store,
                                       &(struct new_experiment){.spec_json = text,
                                                                .spec = spec,
                                                                .points = &list,
                                                                .skipped_json = "[]",
                                                                .repetitions = 1,
                                                                .until_json = json,
                                                                .order = order,
                                                                .estimate_ns = NSEC_PER_SEC},
                                       &id),
                  0);
        CHECK_INT(blocks_rate_groups(f.store, id, spec, &d, &groups), 0);
        CHECK(groups != NULL);
        for (size_t i = 0; groups && i < d.n; i++)
                CHECK_UINT(groups[i], want[i]);
        rates[0].ordinal = 4;
        free(util_steal(&groups));
        CHECK_INT(blocks_rate_groups(f.store, id, spec, &d, &groups), -EBADMSG);
        point_list_deinit(&list);
        spec_free(util_steal(&spec));
        CHECK_INT(spec_parse(plain, strlen(plain), &spec, &why), 0);
        CHECK_INT(blocks_rate_groups(f.store, id, spec, &d, &groups), 0);
        CHECK(groups == NULL);
        spec_free(spec);
}

int main(void) {
        if (access("/dev/shm", W_OK) == 0)
                fixture_base = "/dev/shm"; /* none of this is about a disk, and it commits thousands of times */
        RUN(it_finds_a_known_knee);
        RUN(a_rate_is_of_each_of_two_streams);
        RUN(a_disturbance_does_not_move_the_knee);
        RUN(a_wide_step_is_not_called_found);
        RUN(the_ends_are_named);
        RUN(percentiles_say_of_how_many_runs_they_are);
        RUN(rates_that_only_fail_end_it);
        RUN(rates_of_one_point_are_one_group);
        return check_end();
}
