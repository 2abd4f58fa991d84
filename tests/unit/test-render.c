/* SPDX-License-Identifier: MIT */

/* Records as clients see them: every key always there, null for what is not known, integers exact. */

#include "api/handle/render/render.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/recorded.h"

#define JSON __attribute__((cleanup(free_root))) struct json

static void free_root(struct json **root) {
        json_free(*root);
}

/* The text that the call has written into w, and w at its end; NULL on an error. */
static char *steal(struct json_writer *w) {
        char *text = NULL;
        (void) json_writer_steal(w, &text, NULL);
        json_writer_deinit(w);
        return text;
}

static const char *string_of(const struct json *object, const char *key) {
        const char *text = NULL;
        const struct json *v = json_get(object, key);
        return v && json_as_string(v, &text) == 0 ? text : NULL;
}

/* An empty record has all keys: numbers are 0, lists are empty, and whatever else is null. */
static void a_bare_experiment_has_every_key(void) {
        const struct experiment_record e = {.id = 1, .eta_seconds = -1};
        struct json_writer w;
        json_writer_init(&w);
        render_experiment(&w, &e);
        _cleanup_free_ char *text = steal(&w);
        CHECK_STRING(text, "{\"id\":1,\"name\":null,\"state\":\"queued\",\"spec\":null,\"error\":null,\"progress\":{"
                           "\"runs_total\":0,\"runs_done\":0,\"runs_failed\":0,\"runs_cancelled\":0},"
                           "\"eta_seconds\":null,\"queue_position\":null,\"created_at\":null,\"started_at\":null,"
                           "\"finished_at\":null,\"seed\":0,\"skipped\":[],\"until\":null,\"search\":null,\"flags\":[],"
                           "\"effective_spec\":null,"
                           "\"version\":null,\"imported\":null}");
}

static void a_full_experiment(void) {
        char name[] = "say \"hi\"", spec[] = "{\"transport\":\"fifo\"}", skipped[] = "[{}]", version[] = "1.0";
        const struct experiment_record e = {.id = INT64_MAX,
                                            .name = name,
                                            .state = STATE_RUNNING,
                                            .spec_json = spec,
                                            .skipped_json = skipped,
                                            .version = version,
                                            .runs_total = 48,
                                            .runs_done = 3,
                                            .eta_seconds = 0,
                                            .queue_position = 2,
                                            .created_at = 1769860800000,
                                            .started_at = 1769860800007,
                                            .finished_at = 1};
        struct json_writer w;
        json_writer_init(&w);
        render_experiment(&w, &e);
        _cleanup_free_ char *text = steal(&w);
        CHECK(text && strstr(text, "\"id\":9223372036854775807,\"name\":\"say \\\"hi\\\"\",\"state\":\"running\","
                                   "\"spec\":{\"transport\":\"fifo\"},"));
        CHECK(strstr(text, "\"eta_seconds\":0,\"queue_position\":2,")); /* no time left is a time */
        CHECK(strstr(text, "\"created_at\":\"2026-01-31T12:00:00.000Z\",\"started_at\":\"2026-01-31T12:00:00.007Z\","
                           "\"finished_at\":\"1970-01-01T00:00:00.001Z\""));
        CHECK(strstr(text, "\"skipped\":[{}]"));
}

static void runs_bare_and_full(void) {
        char point[] = "{\"message_size\":1}", flags[] = "[\"noisy:steal\"]", agents[] = "[{\"pid\":1}]";
        char result[] = "{\"messages\":5}";
        char probes[] = "{\"changes\":[]}";
        const struct run_record bare = {.id = 7, .experiment_id = 2}, full = {.id = 7,
                                                                              .experiment_id = 2,
                                                                              .point_json = point,
                                                                              .repetition = 1,
                                                                              .block = 3,
                                                                              .position = 4,
                                                                              .state = STATE_INTERRUPTED,
                                                                              .attempt = 3,
                                                                              .flags_json = flags,
                                                                              .agents_json = agents,
                                                                              .result_json = result,
                                                                              .probes_json = probes};
        struct json_writer w;
        json_writer_init(&w);
        render_run(&w, &bare);
        _cleanup_free_ char *text = steal(&w), *more = NULL;
        CHECK_STRING(text, "{\"id\":7,\"experiment_id\":2,\"point\":null,\"repetition\":0,\"block\":null,\"rate\":null,"
                           "\"position\":0,\"state\":"
                           "\"queued\",\"attempt\":0,\"error\":null,\"flags\":[],\"agents\":[],\"result\":null,"
                           "\"environment\":null,\"probes\":null,\"started_at\":null,\"finished_at\":null}");
        json_writer_init(&w);
        render_run(&w, &full);
        more = steal(&w);
        CHECK_STRING(more, "{\"id\":7,\"experiment_id\":2,\"point\":{\"message_size\":1},\"repetition\":1,\"block\":3,"
                           "\"rate\":null,"
                           "\"position\":"
                           "4,\"state\":\"interrupted\",\"attempt\":3,\"error\":null,\"flags\":[\"noisy:steal\"],"
                           "\"agents\":[{\"pid\":1}],\"result\":{\"messages\":5},\"environment\":null,"
                           "\"probes\":{\"changes\":[]},\"started_at\":null,\"finished_at\":null}");
}

static void kinds_of_latency(void) {
        static const struct {
                const char *point, *kind;
        } cases[] = {{"{\"workload\":\"pingpong\"}", "rtt"},
                     {"{\"workload\":\"stream\"}", "one_way"},
                     {"{\"workload\":\"syscall\"}", "call"},
                     {"{\"workload\":\"context-switch\"}", "switch"},
                     {"{\"workload\":7}", "one_way"},
                     {"{}", "one_way"},
                     {"[\"workload\"]", "one_way"},
                     {"no json", "one_way"},
                     {NULL, "one_way"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++)
                CHECK_STRING(render_latency_kind(cases[i].point), cases[i].kind);
}

/* Counts that a double does not hold, and a latency that was not timed. */
static void samples_are_exact(void) {
        char agent[] = "receiver", counters[] = "{\"cycles\":null}";
        static struct histogram empty;
        struct sample_record s = {.run_id = 3,
                                  .agent = agent,
                                  .thread = 1023,
                                  .second = 4,
                                  .begin_ns = 9,
                                  .interval_ns = 1000012345,
                                  .messages = UINT64_MAX,
                                  .bytes = UINT64_C(9007199254740993),
                                  .counters_json = counters};
        for (unsigned i = 0; i < 2; i++) { /* without a histogram, and with one that counted nothing */
                struct json_writer w;
                s.latency = i ? &empty : NULL;
                json_writer_init(&w);
                render_sample(&w, &s, "rtt", &(struct sample_noise){.reason = "none"}, true);
                _cleanup_free_ char *text = steal(&w);
                CHECK_STRING(text, "{\"run_id\":3,\"agent\":\"receiver\",\"thread\":1023,\"second\":4,\"begin_ns\":9,"
                                   "\"interval_ns\":"
                                   "1000012345,\"messages\":18446744073709551615,\"bytes\":9007199254740993,"
                                   "\"latency_ns\":null,\"counters\":{\"cycles\":null},\"noise\":null,"
                                   "\"noise_reason\":\"none\"}");
        }
}

static void latencies_with_and_without_their_histogram(void) {
        static struct histogram h;
        char agent[] = "initiator";
        const struct sample_record s = {.agent = agent, .latency = &h};
        memset(&h, 0, sizeof h);
        for (uint64_t ns = 1; ns <= 100; ns++)
                histogram_record(&h, ns); /* up to 255 each value has a bucket of its own */
        for (unsigned with = 0; with < 2; with++) {
                struct json_writer w;
                JSON *root = NULL;
                json_writer_init(&w);
                render_sample(&w, &s, "rtt", &(struct sample_noise){.reason = "none"}, with);
                _cleanup_free_ char *text = steal(&w);
                CHECK(text && strstr(text, "\"latency_ns\":{\"min\":1,\"p50\":50,\"p90\":90,\"p99\":99,\"p99_9\":100,"
                                           "\"max\":100,\"mean\":51,\"kind\":\"rtt\",\"count\":100"));
                CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
                const struct json *latency = json_get(root, "latency_ns");
                CHECK(!string_of(latency, "histogram") == !with);
                if (with)
                        CHECK(strlen(string_of(latency, "histogram")) > 20);
        }
}

static void a_bare_result_has_every_key(void) {
        const struct result_record row = {.runs_planned = 3};
        struct json_writer w;
        JSON *root = NULL;
        json_writer_init(&w);
        render_result(&w, &row, NULL, false);
        _cleanup_free_ char *text = steal(&w);
        CHECK(text && json_parse(text, strlen(text), &root, NULL) == 0);
        static const char *const nulls[] = {
                "point",
                "throughput_bytes_per_second",
                "messages_per_second",
                "both_ways_bytes_per_second",
                "cost_ns",
                "hop_ns",
                "latency_ns",
                "latency_one_way_ns",
                "loop",
                "steady",
                "verify",
                "counted_by",
                "error",
        };
        for (size_t i = 0; i < ELEMENTS(nulls); i++) {
                const struct json *v = json_get(root, nulls[i]);
                if (!v || json_type(v) != JSON_NULL)
                        CHECK_FAIL("%s is not null", nulls[i]);
        }
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                char name[64];
                const char *object = figure_groups[figure_terms[f].group].in_row;
                figure_name((enum figure) f, name, sizeof name);
                const struct json *v = json_get(root, object ? object : name);
                if (!v || json_type(v) != JSON_NULL)
                        CHECK_FAIL("%s is not null", figure_terms[f].name);
        }
        CHECK(strstr(text, "\"reasons\":{},\"effective\":{},\"flags\":[],\"flag_runs\":{}"));
        CHECK(strstr(text, "\"runs\":0,\"runs_planned\":3,\"runs_failed\":0"));
}

/* Each figure stands in its place with its own statistic: their medians distinguish them. */
static void figures_show_their_statistic(void) {
        struct result_record row = {.latency_kind = "rtt"};
        struct json_writer w;
        struct json *root = NULL;
        for (size_t f = 0; f < FIGURE_COUNT; f++)
                row.figures[f] = (struct statistic){.n = 1, .median = 100 + (double) f};
        json_writer_init(&w);
        render_result(&w, &row, NULL, false);
        _cleanup_free_ char *text = steal(&w);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        for (size_t f = 0; f < FIGURE_COUNT; f++) {
                char name[64];
                const char *object = figure_groups[figure_terms[f].group].in_row;
                figure_name((enum figure) f, name, sizeof name);
                const struct json *v =
                        object ? json_get(json_get(root, object), figure_terms[f].name) : json_get(root, name);
                double median = 0;
                if (!v || json_as_double(json_get(v, "median"), &median) < 0 || median != 100 + (double) f)
                        CHECK_FAIL("%s: %g", figure_terms[f].name, median);
        }
        json_free(root);
}

/* 1000 values: three nines have a value beyond them, and more have not. */
static void a_distribution_has_its_percentiles(void) {
        struct json_writer w;
        struct histogram h = {0};
        struct json *root = NULL;
        for (uint64_t i = 1; i <= 1000; i++)
                histogram_record(&h, 2 * i);
        json_writer_init(&w);
        render_distribution(&w, &h, "rtt");
        _cleanup_free_ char *text = steal(&w);
        CHECK(text);
        CHECK_INT(json_parse(text, strlen(text), &root, NULL), 0);
        int64_t v = 0, last = 0;
        CHECK(json_as_i64(json_get(root, "count"), &v) == 0 && v == 1000);
        const struct json *percentiles = json_get(root, "percentiles");
        CHECK_UINT(json_length(percentiles), 32); /* 0 to 3.0 nines, and the highest */
        for (const struct json *i = json_first(percentiles); i; i = json_next(i)) {
                double q = 2;
                CHECK(json_as_double(json_get(i, "quantile"), &q) == 0 && q <= 1);
                CHECK(json_as_i64(json_get(i, "value_ns"), &v) == 0 && v >= last);
                if (json_next(i))
                        CHECK_INT(v, (int64_t) histogram_quantile(&h, q));
                else
                        CHECK(q == 1 && json_type(json_get(i, "nines")) == JSON_NULL && v >= 2000);
                last = v;
        }
        json_free(root);
        json_writer_init(&w);
        render_distribution(&w, NULL, NULL);
        _cleanup_free_ char *none = steal(&w);
        CHECK_STRING(none, "null");
}

static void statistics_with_and_without_an_interval(void) {
        const struct statistic s = {
                .n = 3, .median = 2.5, .min = 1, .max = 4, .ci95_low = 1.5, .ci95_high = 3.5, .level = 0.96875};
        struct result_record row = {.latency_kind = "rtt",
                                    .figures = {[FIGURE_LATENCY_P50] = s, [FIGURE_ONE_WAY_P50] = s}};
        struct json_writer w;
        row.figures[FIGURE_THROUGHPUT] = row.figures[FIGURE_HOP] = row.figures[FIGURE_CYCLES_PER_BYTE] = s;
        struct statistic *cycles = &row.figures[FIGURE_CYCLES_PER_BYTE];
        cycles->has_ci95 = cycles->has_variation = cycles->has_hodges_lehmann = true;
        cycles->variation = 0.25;
        cycles->widening = 1.5;
        cycles->hodges_lehmann = 2.25;
        json_writer_init(&w);
        render_result(&w, &row, NULL, false);
        _cleanup_free_ char *text = steal(&w);
        CHECK(text);
        static const char plain[] = "{\"n\":3,\"median\":2.5,\"min\":1,\"max\":4,\"cov\":null,"
                                    "\"hodges_lehmann\":null,\"ci95\":null,\"level\":null,\"widening\":null}";
        static const char full[] = "\"cycles_per_byte\":{\"n\":3,\"median\":2.5,\"min\":1,\"max\":4,\"cov\":0.25,"
                                   "\"hodges_lehmann\":2.25,\"ci95\":[1.5,3.5],\"level\":0.96875,\"widening\":1.5}";
        const char *at = strstr(text, "\"throughput_bytes_per_second\":");
        CHECK(at && strncmp(strchr(at, '{'), plain, strlen(plain)) == 0);
        at = strstr(text, "\"hop_ns\":");
        CHECK(at && strncmp(strchr(at, '{'), plain, strlen(plain)) == 0);
        CHECK(strstr(text, full));
        CHECK(strstr(text, "\"latency_ns\":{\"kind\":\"rtt\",\"min\":null,\"p50\":{\"n\":3,\"median\":2.5,"));
        CHECK(strstr(text,
                     "\"latency_one_way_ns\":{\"kind\":\"one_way\",\"min\":null,\"p50\":{\"n\":3,\"median\":2.5,"));
}

/* Runs may be so much alike that they are worth as much as too few. */
static void an_interval_that_is_null_has_its_reason(void) {
        struct result_record row = {.latency_kind = "rtt", .serial = {.known = true, .correlation = 0.8}};
        for (int known = 0; known < 2; known++) {
                struct json_writer w;
                row.serial.interval.has_interval = known;
                row.figures[FIGURE_THROUGHPUT] = (struct statistic){.n = 12, .has_ci95 = known, .widening = 2};
                json_writer_init(&w);
                render_result(&w, &row, NULL, false);
                _cleanup_free_ char *text = steal(&w);
                CHECK(text);
                CHECK((strstr(text, "\"interval\":null,\"interval_reason\":\"") != NULL) == !known);
                CHECK((strstr(text, "interval_reason") != NULL) == !known);
                CHECK((strstr(text, "\"ci95\":null,\"level\":null,\"widening\":2,\"ci95_reason\":\"") != NULL) ==
                      !known);
                CHECK((strstr(text, "ci95_reason") != NULL) == !known);
        }
}

int main(void) {
        RUN(a_bare_experiment_has_every_key);
        RUN(a_full_experiment);
        RUN(runs_bare_and_full);
        RUN(kinds_of_latency);
        RUN(samples_are_exact);
        RUN(latencies_with_and_without_their_histogram);
        RUN(a_bare_result_has_every_key);
        RUN(figures_show_their_statistic);
        RUN(a_distribution_has_its_percentiles);
        RUN(statistics_with_and_without_an_interval);
        RUN(an_interval_that_is_null_has_its_reason);
        return check_end();
}
