/* SPDX-License-Identifier: MIT */

/* What the service reads: lists by pages, changes, and the results table. */

#include "daemon/log.h"
#include "daemon/result/figure.h"
#include "schema/json/json.h"
#include "tests/unit/check.h"
#include "tests/unit/service-harness.h"

#include <errno.h>
#include <math.h>

/* Reading */

static int count_experiment(void *userdata, const struct experiment_record *e) {
        int64_t *last = userdata;
        if (last[0] != 0 && e->id >= last[0])
                return -EILSEQ;
        last[0] = e->id;
        return ++last[1] == last[2] ? 42 : 0;
}

static void test_lists_are_paged(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        for (int i = 0; i < 40; i++)
                CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        int64_t seen[3] = {0};
        struct experiment_query q = {.limit = 35};
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 35);
        CHECK_INT(seen[0], 6);
        memset(seen, 0, sizeof(seen));
        q = (struct experiment_query){
                .filter = {.by_state = true, .state = STATE_QUEUED}, .before_id = 21, .limit = 1000};
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 20);
        memset(seen, 0, sizeof(seen));
        seen[2] = 17; /* the visitor stops, in the second page */
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 42);
        CHECK_INT(seen[1], 17);
        q.filter.state = STATE_DONE;
        memset(seen, 0, sizeof(seen));
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 0);
}

/* Stores it as an earlier version did, white space and all. Returns how many are in one page. */
static int job_large_specs(void *harness, void *argument) {
        struct harness *h = harness;
        struct experiment_record *page = NULL;
        size_t n = 0;
        static char large[STORE_PAGE_BYTES];
        (void) argument;
        memset(large, ' ', sizeof(large) - 1);
        int r = db_run(h->f.store->db, "UPDATE specs SET spec = ? WHERE experiment_id <> 5", DB_TEXT(large));
        if (r == 0)
                r = store_experiments(h->f.store, &(struct experiment_filter){0}, 0, 5, 0, &page, &n);
        store_experiments_free(page, n);
        return r < 0 ? r : (int) n;
}

static void test_a_page_ends_by_its_bytes(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created, more;
        int64_t id, last, seen[3] = {0};
        for (int i = 0; i < 5; i++)
                CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        CHECK_INT(on_main(&h, job_large_specs, NULL), 2); /* the small one, and the one that takes it over */
        struct experiment_query q = {.limit = 4};
        CHECK_INT(service_experiments(h.service, &q, count_experiment, seen, &r), 0);
        CHECK_INT(seen[1], 4);
        CHECK_INT(service_experiments_end(h.service, &q, &last, &more, &r), 0);
        CHECK(last == 2 && more);
        q.limit = 5;
        CHECK_INT(service_experiments_end(h.service, &q, &last, &more, &r), 0);
        CHECK(last == 1 && !more);
        q = (struct experiment_query){.filter = {.by_state = true, .state = STATE_DONE}, .limit = 5};
        CHECK_INT(service_experiments_end(h.service, &q, &last, &more, &r), 0);
        CHECK(last == 0 && !more);
}

static int count_run(void *userdata, const struct run_record *run) {
        uint32_t *next = userdata;
        return run->position == (*next)++ ? 0 : -EILSEQ;
}

static int count_sample(void *userdata, const struct sample_record *sample) {
        int64_t *last = userdata;
        if (sample->change <= last[0])
                return -EILSEQ;
        last[0] = sample->change;
        last[1]++;
        return 0;
}

static int count_change(void *userdata, const struct change_record *c) {
        int64_t *last = userdata, change = c->experiment ? c->experiment->change
                                           : c->run      ? c->run->change
                                           : c->sample   ? c->sample->change
                                           : c->deletion ? c->deletion->change
                                           : c->pin      ? c->pin->change
                                                         : -1;
        if (!!c->experiment + !!c->run + !!c->sample + !!c->deletion + !!c->pin != 1 || c->change != change ||
            change <= last[0])
                return -EILSEQ;
        last[0] = change;
        last[1]++;
        return 0;
}

static void test_runs_samples_changes(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id, run;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5], \"repetitions\": 30}", NULL, &id, &created, &r), 0);
        uint32_t position = 0;
        CHECK_INT(service_runs(h.service, id, 0, UINT32_MAX, count_run, &position, &r), 0);
        CHECK_UINT(position, 150);
        position = 100;
        CHECK_INT(service_runs(h.service, id, 100, 20, count_run, &position, &r), 0);
        CHECK_UINT(position, 120);
        CHECK_INT(service_runs(h.service, 9, 0, 20, count_run, &position, &r), -ENOENT);
        CHECK_INT(r.status, 404);

        CHECK_INT(on_main(&h, job_start, &run), 0);
        CHECK_INT(on_main(&h, job_sample, &run), 0);
        int64_t seen[2] = {0};
        CHECK_INT(service_samples(h.service, id, 0, 0, UINT32_MAX, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 200);
        seen[0] = seen[1] = 0;
        CHECK_INT(service_samples(h.service, 0, run, 0, 77, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 77);
        CHECK_INT(service_samples(h.service, 0, run, seen[0], 1000, count_sample, seen, &r), 0);
        CHECK_INT(seen[1], 200);
        CHECK_INT(service_samples(h.service, 0, 999, 0, 77, count_sample, seen, &r), -ENOENT);
        CHECK_STRING(r.detail, "there is no run 999");

        seen[0] = seen[1] = 0;
        CHECK_INT(service_changes(h.service, id, 0, UINT32_MAX, count_change, seen, &r), 0);
        CHECK_INT(seen[1], 1 + 150 + 200);
        int64_t last;
        CHECK_INT(service_last_change(h.service, &last, &r), 0);
        CHECK_INT(seen[0], last);
        CHECK_INT(service_changes(h.service, 77, 0, 10, count_change, seen, &r), -ENOENT);

        struct run_record record;
        CHECK_INT(service_run(h.service, run, &record, &r), 0);
        enum state state = record.state;
        run_record_deinit(&record);
        CHECK_INT(state, STATE_RUNNING);
        CHECK_INT(service_run(h.service, 999, &record, &r), -ENOENT);
}

/* Of the first run by position that has one, whatever its state; none is looked for behind the limit. */
static void test_first_environment(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        _cleanup_free_ char *none = NULL, *first = NULL;
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{\"repetitions\": 6}", NULL, &id, &created, &r), 0);
        CHECK_INT(db_run_script(h.f.store->db, "UPDATE runs SET environment = 'e' || position WHERE position >= 2"), 0);
        CHECK_INT(service_first_environment(h.service, id, 2, &none, &r), 0);
        CHECK(!none);
        CHECK_INT(service_first_environment(h.service, id, 3, &first, &r), 0);
        CHECK_STRING(first, "e2");
}

static void check_read_without(const char *name, bool opened_before) {
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        struct experiment_record e;
        struct service_health health;
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
        if (opened_before) {
                CHECK_INT(service_experiment(h.service, id, &e, &r), 0);
                experiment_record_deinit(&e);
        }
        CHECK_INT(unlink(fixture_path(&h.f, name)), 0);
        CHECK_INT(service_experiment(h.service, id, &e, &r), -ESTALE);
        CHECK_INT(r.status, 503);
        CHECK(strstr(r.detail, fixture_path(&h.f, name)) && strstr(r.detail, " was removed or replaced"));
        CHECK_INT(service_health(h.service, &health, &r), 0);
        CHECK(!health.ok && strstr(health.problem, fixture_path(&h.f, name)));
}

static void test_reads_without_a_file(void) {
        static const char *const names[] = {"ipclab.db", "ipclab.db-wal", "ipclab.db-shm"};
        for (size_t i = 0; i < ELEMENTS(names) && !check_case_failed; i++) {
                check_read_without(names[i], false);
                check_read_without(names[i], true);
        }
}

/* Results */

static int keep_row(void *userdata, const struct result_record *row) {
        struct result_record **rows = userdata;
        **rows = *row;
        (*rows)->run_ids = NULL;
        (*rows)->point_json = strdup(row->point_json);
        (*rows)->flags_json = strdup(row->flags_json);
        (*rows)->flag_runs_json = strdup(row->flag_runs_json);
        (*rows)->reasons_json = strdup(row->reasons_json);
        (*rows)->effective_json = strdup(row->effective_json);
        (*rows)->loop = row->loop ? strdup(row->loop) : NULL;
        (*rows)->verify = row->verify ? strdup(row->verify) : NULL;
        (*rows)->counted_by = row->counted_by ? strdup(row->counted_by) : NULL;
        (*rows)->error = row->error ? strdup(row->error) : NULL;
        (*rows)++;
        return 0;
}

static void test_results(void) {
        static const struct {
                enum state state;
                const char *result, *flags, *error;
        } runs[] = {
                {STATE_DONE,
                 "{\"throughput_bytes_per_second\": 300, \"messages_per_second\": 3, \"latency_ns\": {\"min\": 1, "
                 "\"p50\": 20, \"p90\": 30, \"p99\": 40, \"p99_9\": 50, \"max\": 60, \"mean\": 21.5, \"kind\": "
                 "\"rtt\"}}",
                 "[\"noisy:steal\", \"no_steady_state\"]", NULL},
                {STATE_DONE, "{\"throughput_bytes_per_second\": 100, \"messages_per_second\": 1, \"latency_ns\": null}",
                 "[\"noisy:steal\"]", NULL},
                {STATE_FAILED, NULL, "[\"placement_violated\"]", "thread 0 ran on CPU 3, not 1"},
                {STATE_DONE,
                 "{\"throughput_bytes_per_second\": null, \"messages_per_second\": 2.5, \"latency_ns\": "
                 "{\"p50\": 40, \"kind\": \"rtt\"}}",
                 "[]", NULL},
        };
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{\"repetitions\": 5}", NULL, &id, &created, &r), 0);
        for (size_t i = 0; i < ELEMENTS(runs); i++)
                CHECK_INT(run_next(&h, runs[i].state, runs[i].result, runs[i].flags, runs[i].error), 0);
        struct result_record row = {0}, *p = &row;
        CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, keep_row, &p, &r), 0);
        CHECK(p == &row + 1);
        bool good =
                row.runs == 3 && row.runs_planned == 5 && row.runs_failed == 1 &&
                row.figures[FIGURE_THROUGHPUT].n == 2 && row.figures[FIGURE_THROUGHPUT].median == 100 &&
                row.figures[FIGURE_THROUGHPUT].min == 100 && row.figures[FIGURE_MESSAGES].n == 3 &&
                row.figures[FIGURE_MESSAGES].median == 2.5 && !row.figures[FIGURE_MESSAGES].has_ci95 &&
                row.figures[FIGURE_LATENCY_P50].n == 2 && row.figures[FIGURE_LATENCY_P50].median == 20 &&
                row.figures[FIGURE_LATENCY_P99].n == 1 && row.figures[FIGURE_LATENCY_MEAN].median == 21.5 &&
                row.latency_kind && strcmp(row.latency_kind, "rtt") == 0 &&
                strcmp(row.error, "thread 0 ran on CPU 3, not 1") == 0 &&
                strcmp(row.flags_json, "[\"noisy:steal\",\"no_steady_state\",\"placement_violated\"]") == 0 &&
                strcmp(row.flag_runs_json, "{\"noisy:steal\":2,\"no_steady_state\":1,\"placement_violated\":1}") == 0;
        result_record_deinit(&row);
        CHECK(good);
        CHECK_INT(service_results(h.service, 99, 0, UINT32_MAX, keep_row, &p, &r), -ENOENT);
        CHECK_INT(r.status, 404);
}

static const char *const figure_results[] = {
        "{\"throughput_bytes_per_second\": 300.5, \"cost_ns\": 7, \"hop_ns\": null, \"counted_by\": \"sender\", "
        "\"latency_ns\": {\"p50\": 20, \"p90\": 30, \"p99\": 40, \"p99_9\": 50.25, \"max\": 60}, "
        "\"sender\": {\"cpu_ns_per_message\": 12.25}, \"receiver\": {\"cpu_ns_per_message\": 1}}",
        "{\"latency_ns\": null, \"counted_by\": \"none\", \"none\": {\"cpu_ns_per_message\": 3}, \"hop_ns\": 1e-3}",
        "{\"sender\": {\"cpu_ns_per_message\": 12.25}}",
};

/* The figures as daemon/result finds them in the result. Returns how many runs there were. */
static int job_figures(void *harness, void *argument) {
        struct harness *h = harness;
        struct figures_point *points = NULL;
        size_t n = 0;
        int r = store_figures(h->f.store, *(int64_t *) argument, 0, 8, &points, &n);
        if (r < 0)
                return r;
        int n_runs = n == 1 ? (int) points[0].n_runs : -EILSEQ;
        for (size_t i = 0; n_runs == 4 && i < ELEMENTS(figure_results); i++) {
                for (size_t f = 0; n_runs == 4 && f < FIGURE_COUNT; f++) {
                        double expected = NAN, found = points[0].runs[i].values[f];
                        if (figure_terms[f].faster != FIGURE_NOT_COMPARED &&
                            figure_of_run(figure_results[i], (enum figure) f, &expected) == -EBADMSG)
                                n_runs = -EBADMSG;
                        if (isnan(expected) ? !isnan(found) : found != expected)
                                n_runs = -EDOM;
                }
        }
        if (n_runs == 4 && (!points[0].runs[0].noisy || points[0].runs[1].noisy || points[0].runs[3].noisy ||
                            points[0].runs[2].block != 3 || points[0].runs[3].state != STATE_FAILED))
                n_runs = -EINVAL;
        store_figures_free(points, n);
        return n_runs;
}

static void test_figures_without_their_results(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id, missing = 99;
        CHECK_INT(SUBMIT(&h, "{\"repetitions\": 4}", NULL, &id, &created, &r), 0);
        for (size_t i = 0; i < ELEMENTS(figure_results); i++)
                CHECK_INT(run_next(&h, STATE_DONE, figure_results[i], i ? "[\"odd\"]" : "[\"noisy:steal\"]", NULL), 0);
        CHECK_INT(run_next(&h, STATE_FAILED, NULL, "[]", "no"), 0);
        CHECK_INT(on_main(&h, job_figures, &id), 4);
        CHECK_INT(on_main(&h, job_figures, &missing), -ENOENT);
}

/* Figures of both ends together, and of each; and a figure without a value has its reason. */
static void test_results_of_counters(void) {
        static const struct {
                const char *result;
        } runs[] = {
                {"{\"counted_by\": \"server\", \"cycles_per_byte\": 9, \"cpu_ns_per_message\": 12, \"latency_ns\": "
                 "null, \"latency_reason\": \"no clock\", \"llc_misses_per_message\": null, "
                 "\"llc_misses_per_message_reason\": \"not allowed\", "
                 "\"server\": {\"cpu_ns_per_message\": 5, \"cycles_per_byte\": null, "
                 "\"cycles_per_byte_reason\": \"no bytes\"}, \"client\": {\"cpu_ns_per_message\": 7}, "
                 "\"counters\": {\"client\": {}, \"server\": {}}}"},
                {"{\"loop\": \"open\", \"verify\": null, \"verify_reason\": \"no bytes came\", "
                 "\"cpu_ns_per_message\": 6, \"counted_by\": \"caller\", \"caller\": {\"cpu_ns_per_message\": 6}, "
                 "\"counters\": {\"caller\": {}}}"},
                /* before there were counters */
                {"{\"throughput_bytes_per_second\": 1, \"counters\": {\"server\": {\"cycles\": 1}}}"},
                {"{\"effective\": {\"chunk_bytes\": 8192}, \"counters\": {}}"},
        };
        static const char *const reasons[] = {
                "\"messages_per_second\":\"the runs do not report it\",",
                "\"both_ways_bytes_per_second\":\"of pingpong only\",",
                "\"cpu_ns_per_gigabyte\":\"the runs do not report it\",",
                "\"llc_misses_per_message\":\"not allowed\",",
                "\"cycles_per_byte_sender\":\"no bytes\",",
                "\"cycles_per_byte_receiver\":\"the run has one agent\",",
                "\"latency_ns\":\"no clock\",\"latency_one_way_ns\":\"of pingpong only\",",
                "\"verify\":\"no bytes came\"}",
        };
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{\"repetitions\": 4}", NULL, &id, &created, &r), 0);
        for (size_t i = 0; i < ELEMENTS(runs); i++)
                CHECK_INT(run_next(&h, STATE_DONE, runs[i].result, "[]", NULL), 0);
        struct result_record row = {0}, *p = &row;
        CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, keep_row, &p, &r), 0);
        CHECK(row.figures[FIGURE_CPU_PER_MESSAGE].n == 2 && row.figures[FIGURE_CPU_PER_MESSAGE].max == 12);
        CHECK(row.figures[FIGURE_SENDER_CPU_PER_MESSAGE].n == 2 && row.figures[FIGURE_SENDER_CPU_PER_MESSAGE].min == 5);
        CHECK(row.figures[FIGURE_RECEIVER_CPU_PER_MESSAGE].n == 1 &&
              row.figures[FIGURE_RECEIVER_CPU_PER_MESSAGE].median == 7);
        CHECK(row.figures[FIGURE_CYCLES_PER_BYTE].n == 1 && row.figures[FIGURE_CYCLES_PER_BYTE].median == 9);
        CHECK_UINT(row.figures[FIGURE_SENDER_CYCLES_PER_BYTE].n, 0);
        CHECK_UINT(row.figures[FIGURE_LLC_MISSES].n, 0);
        CHECK_STRING(row.counted_by, "caller");
        CHECK_STRING(row.loop, "open");
        CHECK(!row.verify);
        CHECK_STRING(row.effective_json, "{\"chunk_bytes\":8192}");
        for (size_t i = 0; i < ELEMENTS(reasons); i++)
                if (!strstr(row.reasons_json, reasons[i]))
                        CHECK_FAIL("%s: %s", reasons[i], row.reasons_json);
        result_record_deinit(&row);
}

/* Half of a round trip that counts from when its message was due is no figure, even where a run of an earlier version
 * has one. */
static void test_results_of_one_way(void) {
        static const struct {
                const char *run, *reason; /* NULL: there is a figure */
        } rows[] = {
                {"{\"loop\": \"closed\", \"both_ways_bytes_per_second\": 1, \"latency_one_way_ns\": {\"p50\": 5}}",
                 NULL},
                {"{\"loop\": \"open\", \"both_ways_bytes_per_second\": 1, \"latency_one_way_ns\": {\"p50\": 5}}",
                 "\"latency_one_way_ns\":\"none in an open loop: "},
                {"{\"loop\": \"open\", \"both_ways_bytes_per_second\": 1, \"latency_one_way_ns\": null, "
                 "\"latency_one_way_ns_reason\": \"as it is\"}",
                 "\"latency_one_way_ns\":\"as it is\""},
                {"{\"loop\": \"open\", \"both_ways_bytes_per_second\": null}",
                 "\"latency_one_way_ns\":\"of pingpong only\""},
        };
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                bool created;
                int64_t id;
                CHECK_INT(SUBMIT(&h, "{}", NULL, &id, &created, &r), 0);
                CHECK_INT(run_next(&h, STATE_DONE, rows[i].run, "[]", NULL), 0);
                struct result_record row = {0}, *p = &row;
                CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, keep_row, &p, &r), 0);
                if ((row.figures[FIGURE_ONE_WAY_P50].n == 0) != (rows[i].reason != NULL))
                        CHECK_FAIL("case %zu: %u figures", i, row.figures[FIGURE_ONE_WAY_P50].n);
                const char *reason = strstr(row.reasons_json, "\"latency_one_way_ns\"");
                if ((reason != NULL) != (rows[i].reason != NULL) || (reason && !strstr(reason, rows[i].reason)))
                        CHECK_FAIL("case %zu: %s", i, row.reasons_json);
                result_record_deinit(&row);
        }
}

/* A row is steady when each of its runs is known to be, and is not when one is not. */
static void test_results_of_steadiness(void) {
        static const struct {
                const char *runs[2];
                const char *steady, *reasons; /* NULL: not known; not looked for */
        } rows[] = {
                {{"{\"steady\": true}", "{\"steady\": true}"}, "true", NULL},
                {{"{\"steady\": false}", "{\"steady\": true}"}, "false", NULL},
                {{"{\"steady\": false}", "{\"steady\": null, \"steady_reason\": \"too short\"}"}, "false", NULL},
                {{"{\"steady\": null, \"steady_reason\": \"too short\"}", "{\"steady\": true}"},
                 NULL,
                 "\"steady\":\"too short\""},
                {{"{\"steady\": true}", "{}"}, NULL, "\"steady\":\"the runs do not report it\""},
        };
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                bool created;
                int64_t id;
                CHECK_INT(SUBMIT(&h, "{\"repetitions\": 2}", NULL, &id, &created, &r), 0);
                for (size_t k = 0; k < ELEMENTS(rows[i].runs); k++)
                        CHECK_INT(run_next(&h, STATE_DONE, rows[i].runs[k], "[]", NULL), 0);
                struct result_record row = {0}, *p = &row;
                CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, keep_row, &p, &r), 0);
                bool has_reason = strstr(row.reasons_json, "\"steady\"");
                if ((row.steady != NULL) != (rows[i].steady != NULL) ||
                    (row.steady && strcmp(row.steady, rows[i].steady) != 0))
                        CHECK_FAIL("case %zu: %s", i, row.steady ? row.steady : "not known");
                if (has_reason != (rows[i].reasons != NULL) ||
                    (has_reason && !strstr(row.reasons_json, rows[i].reasons)))
                        CHECK_FAIL("case %zu: %s", i, row.reasons_json);
                result_record_deinit(&row);
        }
}

/* Whether runs depend on those before them is judged in the order in which they ran, of the row's first figure. */
#define THROUGHPUT "{\"throughput_bytes_per_second\": ", "}"
static void test_results_of_runs_that_are_alike(void) {
        static const struct {
                const char *spec, *before, *after; /* of the figure in a run's result, which falls or goes to and fro */
                enum figure figure;
                unsigned runs;
                bool falls, material;
                const char *reason;
        } rows[] = {
                {"{\"repetitions\": 12}", THROUGHPUT, FIGURE_THROUGHPUT, 12, true, true, NULL},
                {"{\"repetitions\": 12}", THROUGHPUT, FIGURE_THROUGHPUT, 12, false, false, NULL},
                {"{\"repetitions\": 12, \"workload\": \"pingpong\"}",
                 "{\"throughput_bytes_per_second\": 5, \"latency_ns\": {\"kind\": \"rtt\", \"p50\": ", "}}",
                 FIGURE_LATENCY_P50, 12, true, true, NULL},
                {"{\"repetitions\": 11}", THROUGHPUT, FIGURE_THROUGHPUT, 11, true, false,
                 "\"autocorrelation\":\"fewer than 12 runs: "},
                {"{\"repetitions\": 12}", "{\"throughput_bytes_per_second\": 7, \"run\": ", "}", FIGURE_THROUGHPUT, 12,
                 true, false, "\"autocorrelation\":\"all runs have the same figure\""},
        };
        HARNESS h;
        harness_start(&h);
        struct refusal r = {0};
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                bool created;
                int64_t id;
                CHECK_INT(SUBMIT(&h, rows[i].spec, NULL, &id, &created, &r), 0);
                for (unsigned k = 0; k < rows[i].runs; k++) {
                        char result[120];
                        unsigned value = 1000 + (rows[i].falls ? 100 - k : k % 2 ? k : 50 - k);
                        (void) snprintf(result, sizeof(result), "%s%u%s", rows[i].before, value, rows[i].after);
                        CHECK_INT(run_next(&h, STATE_DONE, result, "[]", NULL), 0);
                }
                struct result_record row = {0}, *p = &row;
                CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, keep_row, &p, &r), 0);
                bool known = !rows[i].reason;
                if (row.serial.known != known || row.serial.material != rows[i].material ||
                    (known && row.serial_figure != rows[i].figure) ||
                    row.figures[rows[i].figure].has_ci95 != !rows[i].material ||
                    (row.figures[rows[i].figure].widening > 1) != rows[i].material ||
                    (row.figures[rows[i].figure].widening > 0) != known ||
                    (row.serial.correlation > 0) != rows[i].material)
                        CHECK_FAIL("case %zu: figure %u, correlation %g", i, row.serial_figure, row.serial.correlation);
                const char *reason = strstr(row.reasons_json, "\"autocorrelation\"");
                if ((reason != NULL) != !known || (reason && !strstr(reason, rows[i].reason)))
                        CHECK_FAIL("case %zu: %s", i, row.reasons_json);
                result_record_deinit(&row);
        }
}

static int count_row(void *userdata, const struct result_record *row) {
        unsigned *n = userdata;
        (*n)++;
        return row->runs == 0 && row->figures[FIGURE_THROUGHPUT].n == 0 && !row->latency_kind && !row->counted_by &&
                               !row->loop && !row->steady && !row->verify && strcmp(row->flags_json, "[]") == 0 &&
                               strcmp(row->reasons_json, "{}") == 0
                       ? 0
                       : -EILSEQ;
}

static void test_results_before_the_first_run(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        unsigned rows = 0;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5,6,7,8,9,10], \"threads\": [1,2,3,4]}", NULL, &id, &created,
                         &r),
                  0);
        CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, count_row, &rows, &r), 0);
        CHECK_UINT(rows, 40);
}

/* Behind the service's back, which looks again only where the experiment has a change. */
static int job_quicken(void *harness, void *argument) {
        struct harness *h = harness;
        (void) argument;
        return db_run(h->f.store->db, "UPDATE runs SET result = '{\"messages_per_second\": 5}'");
}

static int job_change(void *harness, void *argument) {
        struct harness *h = harness;
        (void) argument;
        return db_run(h->f.store->db, "UPDATE experiments SET change = change + 1000");
}

static int take_medians(void *userdata, const struct result_record *row) {
        double **medians = userdata;
        *(*medians)++ = row->figures[FIGURE_MESSAGES].median;
        return 0;
}

static bool results_are(struct harness *h, int64_t id, double wanted) {
        double medians[11], *end = medians;
        struct refusal r;
        if (service_results(h->service, id, 0, 3, take_medians, &end, &r) != 0 ||
            service_results(h->service, id, 3, UINT32_MAX, take_medians, &end, &r) != 0 || end != medians + 10)
                return false;
        while (end > medians)
                if (*--end != wanted)
                        return false;
        return true;
}

static void test_results_are_at_hand(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t id;
        CHECK_INT(SUBMIT(&h, "{\"message_size\": [1,2,3,4,5,6,7,8,9,10]}", NULL, &id, &created, &r), 0);
        for (unsigned i = 0; i < 10; i++) {
                double medians[10], *end = medians;
                CHECK_INT(service_results(h.service, id, 0, UINT32_MAX, take_medians, &end, &r), 0);
                CHECK(end == medians + 10); /* it has not finished, and nothing of this is used again */
                CHECK_INT(run_next(&h, STATE_DONE, "{\"messages_per_second\": 3}", "[]", NULL), 0);
        }
        CHECK(results_are(&h, id, 3));
        CHECK_INT(on_main(&h, job_quicken, NULL), 0);
        CHECK(results_are(&h, id, 3));
        CHECK_INT(on_main(&h, job_change, NULL), 0);
        CHECK(results_are(&h, id, 5));
        CHECK_INT(service_results(h.service, id, 10, UINT32_MAX, take_medians, NULL, &r), 0); /* none is there */
}

static void test_a_comparison_is_at_hand(void) {
        HARNESS h;
        harness_start(&h);
        struct refusal r;
        bool created;
        int64_t ids[2];
        for (unsigned i = 0; i < 2; i++)
                CHECK_INT(SUBMIT(&h, "{\"repetitions\": 2}", NULL, &ids[i], &created, &r), 0);
        struct comparison_query q = {.experiments = {ids[0], ids[1]}, .margin = 0.03};
        struct comparison_answer *answers[4];
        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(run_next(&h, STATE_DONE, "{\"messages_per_second\": 3}", "[]", NULL), 0);
        CHECK_INT(service_compare(h.service, &q, &answers[0], &r), 0);
        CHECK(!answers[0]->item); /* one of them has not finished */
        comparison_answer_release(answers[0]);
        CHECK_INT(run_next(&h, STATE_DONE, "{\"messages_per_second\": 3}", "[]", NULL), 0);

        CHECK_INT(service_compare(h.service, &q, &answers[0], &r), 0);
        CHECK_INT(service_compare(h.service, &q, &answers[1], &r), 0);
        q.margin = 0.04;
        CHECK_INT(service_compare(h.service, &q, &answers[2], &r), 0);
        CHECK_INT(on_main(&h, job_change, NULL), 0);
        CHECK_INT(service_compare(h.service, &q, &answers[3], &r), 0);
        CHECK(answers[0] == answers[1] && answers[2] != answers[1] && answers[3] != answers[2]);
        CHECK(answers[1]->margin == 0.03 && answers[2]->margin == 0.04 && answers[3]->margin == 0.04);
        for (unsigned i = 0; i < 4; i++)
                comparison_answer_release(answers[i]);
        q.experiments[0] = 99;
        CHECK_INT(service_compare(h.service, &q, &answers[0], &r), -ENOENT);
        CHECK_INT(r.status, 404);
}

static int job_damage(void *harness, void *argument) {
        struct harness *h = harness;
        return db_run(h->f.store->db, "UPDATE runs SET result = '{' WHERE experiment_id = ?",
                      DB_INT(*(int64_t *) argument));
}

/* Waits until a baseline has this many checks; the error of the first. */
static bool wait_checks(struct harness *h, size_t n, char *ret_error, size_t size) {
        uint64_t until = util_now_ns() + 60 * NSEC_PER_SEC;
        size_t found = 0;
        for (; found < n && util_now_ns() < until; (void) usleep(5000)) {
                struct check_record *checks = NULL;
                struct series_record *series = NULL;
                size_t n_series = 0;
                struct store *reader = NULL;
                if (store_open_beside(&reader, h->f.store) < 0)
                        return false;
                int r = store_history(reader, "base", 10, &checks, &found, &series, &n_series);
                if (r == 0 && found > 0)
                        (void) snprintf(ret_error, size, "%s", checks[0].error ? checks[0].error : "");
                if (r == 0) {
                        check_records_free(checks, found);
                        series_records_free(series, n_series);
                }
                store_close(reader);
        }
        return found == n;
}

/* An experiment of which something is damaged has that as its outcome, and later ones are compared. */
static void test_a_damaged_experiment_does_not_hold_the_checks(void) {
        HARNESS h;
        struct refusal r;
        bool created;
        int64_t ids[3];
        char error[512] = "";
        harness_start(&h);
        for (unsigned i = 0; i < 3; i++)
                CHECK_INT(SUBMIT(&h, "{\"repetitions\": 2}", NULL, &ids[i], &created, &r), 0);
        for (unsigned i = 0; i < 6; i++)
                CHECK_INT(run_next(&h, STATE_DONE, "{\"messages_per_second\": 3}", "[]", NULL), 0);
        CHECK_INT(on_main(&h, job_damage, &ids[1]), 0);
        CHECK_INT(service_pin_baseline(h.service, "base", ids[0], &r), 0);
        CHECK(wait_checks(&h, 2, error, sizeof(error)));
        if (!strstr(error, "is damaged"))
                CHECK_FAIL("the outcome is \"%s\"", error);
}

int main(void) {
        log_open(LOG_EMERG);
        fault_install();
        RUN(test_lists_are_paged);
        RUN(test_a_page_ends_by_its_bytes);
        RUN(test_runs_samples_changes);
        RUN(test_first_environment);
        RUN(test_reads_without_a_file);
        RUN(test_results);
        RUN(test_figures_without_their_results);
        RUN(test_results_of_counters);
        RUN(test_results_of_one_way);
        RUN(test_results_of_steadiness);
        RUN(test_results_of_runs_that_are_alike);
        RUN(test_results_before_the_first_run);
        RUN(test_results_are_at_hand);
        RUN(test_a_comparison_is_at_hand);
        RUN(test_a_damaged_experiment_does_not_hold_the_checks);
        return check_end();
}
