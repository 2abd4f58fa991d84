/* SPDX-License-Identifier: MIT */

/* Which seconds of a run's noise a sample has, of results that this file makes up. Times are in tenths of a second. */

#include "api/handle/render/sample-noise.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>
#include <string.h>

#define TENTH (NSEC_PER_SEC / 10)

static void put_second(struct json_writer *w, uint64_t second, uint64_t begin_ns, uint64_t interval_ns, double foreign,
                       const char *flag) {
        json_object_begin(w);
        json_member_u64(w, "second", second);
        json_member_u64(w, "begin_ns", begin_ns);
        json_member_u64(w, "interval_ns", interval_ns);
        json_member_u64(w, "cpu", second);
        json_member_double(w, "foreign_share", foreign);
        json_member_u64(w, "stopped_ns", 100000000 * second);
        if (foreign < 0.5)
                json_member_double(w, "worst_softirq_share", foreign / 2);
        else
                json_member_null(w, "worst_softirq_share");
        json_put_key(w, "flags");
        json_array_begin(w);
        if (flag)
                json_put_string(w, flag);
        json_array_end(w);
        json_object_end(w);
}

/* Seconds 0, 1 and 2 from 100.03 s on, of which 1 is disturbed, and the disturbed 602 alone of those from 600 on. */
static void make_noise(struct sample_noise *ret) {
        _cleanup_free_ char *text = NULL;
        const uint64_t begin_ns = 1000 * TENTH + 30 * NSEC_PER_MSEC;
        struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        json_put_key(&w, "noise");
        json_object_begin(&w);
        json_member_u64(&w, "seconds_total", 700);
        json_put_key(&w, "seconds");
        json_array_begin(&w);
        put_second(&w, 0, begin_ns, 10 * TENTH, 0.01, NULL);
        put_second(&w, 1, begin_ns + 10 * TENTH, 10 * TENTH, 0.4, "noisy:foreign-cpu");
        put_second(&w, 2, begin_ns + 20 * TENTH, 17 * TENTH, 0.02, NULL);
        put_second(&w, 602, begin_ns + 6020 * TENTH, 10 * TENTH, 0.6, "noisy:daemon");
        json_array_end(&w);
        json_object_end(&w);
        json_object_end(&w);
        CHECK_INT(json_writer_steal(&w, &text, NULL), 0);
        json_writer_deinit(&w);
        CHECK_INT(sample_noise_read(ret, &(struct run_record){.state = STATE_DONE, .result_json = text}), 0);
}

static void a_sample_has_its_seconds(void) {
        static const struct {
                uint64_t begin, interval;
                int64_t cpu; /* -2: nothing is known */
                double foreign, softirq, observed;
                bool flagged;
                const char *reason; /* a word of either */
        } cases[] = {
                {1000, 10, 0, 0.01, 0.005, 0.97, false, NULL}, /* 0.03 s of it are before the first reading */
                {1010, 10, 1, 0.4, 0.2, 1, true, NULL},        /* 0.03 s of it are of another second */
                {1005, 10, 1, 0.4, 0.2, 1, true, NULL},        /* half of it is */
                {1000, 20, 1, 0.4, 0.2, 0.985, true, NULL},    /* an agent was stopped */
                {1020, 10, 2, 0.02, 0.01, 1, false, "1.6 s"},
                {990, 20, 0, 0.01, 0.005, 0.485, false, "observed_share"},
                {900, 10, -2, 0, 0, 0, false, "no reading"},
                {1100, 10, -2, 0, 0, 0, false, "600 seconds"},
                {7020, 10, 602, 0.6, -1, 0.97, true, NULL},
                {7500, 10, -2, 0, 0, 0, false, "600 seconds"},
                {0, 10, -2, 0, 0, 0, false, "begin_ns"},
        };
        _cleanup_(sample_noise_deinit) struct sample_noise n = {0};
        make_noise(&n);
        CHECK_UINT(n.n, 4);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct sample_record s = {.begin_ns = cases[i].begin * TENTH,
                                                .interval_ns = cases[i].interval * TENTH};
                const struct sample_noise_found f = sample_noise_find(&n, &s);
                CHECK((f.reason != NULL) == (cases[i].cpu == -2));
                CHECK((f.reason || f.unobserved) == (cases[i].reason != NULL));
                if (cases[i].reason)
                        CHECK(strstr(f.reason ? f.reason : f.unobserved, cases[i].reason));
                if (f.reason)
                        continue;
                CHECK_INT(f.of.cpu, cases[i].cpu);
                const double *got = f.of.values;
                CHECK(got[SAMPLE_NOISE_FOREIGN] == cases[i].foreign && got[SAMPLE_NOISE_SOFTIRQ] == cases[i].softirq);
                CHECK(got[SAMPLE_NOISE_STEAL] == -1 && got[SAMPLE_NOISE_TIMED_OUT] == -1);
                CHECK(got[SAMPLE_NOISE_STOPPED] == 1e8 * (double) cases[i].cpu);
                CHECK(f.observed > cases[i].observed - 0.001 && f.observed < cases[i].observed + 0.001);
                CHECK((f.of.flags != 0) == cases[i].flagged);
        }
}

#define COUNTS                                                                                                         \
        "\"migrations\":null,\"retransmitted_segments\":null,\"lost_segments\":null,\"retransmission_timeouts\":null,"

static void each_form_has_the_same(void) {
        _cleanup_(sample_noise_deinit) struct sample_noise n = {0};
        make_noise(&n);
        for (unsigned i = 0; i < 3; i++) {
                static const char *const json[] = {
                        "{\"noise\":{\"observed_share\":1,\"cpu\":1,\"foreign_share\":0.4,\"worst_softirq_share\":0.2,"
                        "\"worst_steal_share\":null,\"stopped_ns\":100000000," COUNTS
                        "\"flags\":[\"noisy:foreign-cpu\"]}}",
                        "{\"noise\":{\"observed_share\":1,\"not_observed_reason\":\"a second of the run's noise that "
                        "the "
                        "sample lies in is longer than 1.6 s, and the mean of so long a time hides a disturbance\","
                        "\"cpu\":2,\"foreign_share\":0.02,\"worst_softirq_share\":0.01,\"worst_steal_share\":null,"
                        "\"stopped_ns\":200000000," COUNTS "\"flags\":[]}}",
                        "{\"noise\":null,\"noise_reason\":\"an earlier version stored the sample, without begin_ns\"}"};
                static const char *const csv[] = {
                        ",1,1,0.4,0.2,,100000000,,,,,noisy:foreign-cpu,",
                        ",1,2,0.02,0.01,,200000000,,,,,,\"a second of the run's noise that the sample lies "
                        "in is longer than 1.6 s, and "
                        "the mean of so long a time hides a disturbance\"",
                        ",,,,,,,,,,,,\"an earlier version stored the sample, without begin_ns\""};
                const struct sample_record s = {.begin_ns = i < 2 ? (1010 + 10 * i) * TENTH + 30 * NSEC_PER_MSEC : 0,
                                                .interval_ns = 10 * TENTH};
                _cleanup_(text_deinit) struct text header = {0}, cells = {0};
                _cleanup_free_ char *text = NULL;
                struct json_writer w;
                json_writer_init(&w);
                json_object_begin(&w);
                sample_noise_put(&n, &s, &w);
                json_object_end(&w);
                CHECK_INT(json_writer_steal(&w, &text, NULL), 0);
                json_writer_deinit(&w);
                CHECK_STRING(text, json[i]);
                sample_noise_header(&header);
                sample_noise_cells(&n, &s, &cells);
                CHECK_STRING(cells.data, csv[i]);
                unsigned columns = 0;
                for (const char *at = header.data; at && (at = strchr(at, ',')); at++)
                        columns++;
                CHECK_UINT(columns, 12);
        }
}

static void a_run_without_noise_says_why(void) {
        char null[] = "{\"noise\":null,\"noise_reason\":\"there were no descriptors\"}", old[] = "{\"messages\":1}",
             older[] = "{\"noise\":{\"foreign_share\":0.1}}",
             taken_in[] =
                     "{\"noise\":{\"seconds_total\":1,\"seconds\":[{\"second\":0,\"interval_ns\":1,\"flags\":[]}]}}";
        const struct {
                struct run_record run;
                const char *word;
        } cases[] = {
                {{.state = STATE_RUNNING}, "has not ended"},
                {{.state = STATE_QUEUED}, "has not ended"},
                {{.state = STATE_FAILED}, "not completed"},
                {{.state = STATE_DONE, .result_json = null}, "noise_reason"},
                {{.state = STATE_DONE, .result_json = old}, "earlier version"},
                {{.state = STATE_DONE, .result_json = older}, "earlier version"},
                {{.state = STATE_DONE, .result_json = taken_in}, "bundle"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                const struct sample_record s = {.begin_ns = 1, .interval_ns = 1};
                _cleanup_(sample_noise_deinit) struct sample_noise n = {0};
                CHECK_INT(sample_noise_read(&n, &cases[i].run), 0);
                CHECK(strstr(sample_noise_find(&n, &s).reason, cases[i].word));
        }
}

static void a_damaged_result_is_refused(void) {
        static const char *const texts[] = {
                "{\"noise\":{\"seconds_total\":\"2\",\"seconds\":[]}}",
                "{\"noise\":{\"seconds_total\":1}}",
                "{\"noise\":{\"seconds_total\":1,\"seconds\":{}}}",
                "{\"noise\":{\"seconds_total\":1,\"seconds\":[7]}}",
                "{\"noise\":{\"seconds_total\":1,\"seconds\":[{\"second\":0,\"begin_ns\":1,\"flags\":[]}]}}",
                "{\"noise\":{\"seconds_total\":1,\"seconds\":[{\"second\":0,\"begin_ns\":1,\"interval_ns\":1}]}}",
                "{\"noise\":{\"seconds_total\":1,\"seconds\":[{\"second\":0,\"begin_ns\":1,\"interval_ns\":1,"
                "\"flags\":[1]}]}}",
                "{\"noise\":{\"seconds_total\":2,\"seconds\":[{\"second\":0,\"begin_ns\":9,\"interval_ns\":1,\"flags\":"
                "[]},"
                "{\"second\":1,\"begin_ns\":1,\"interval_ns\":1,\"flags\":[]}]}}",
        };
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                _cleanup_free_ char *text = strdup(texts[i]);
                struct sample_noise n = {0};
                CHECK_INT(sample_noise_read(&n, &(struct run_record){.state = STATE_DONE, .result_json = text}),
                          -EBADMSG);
        }
}

int main(void) {
        RUN(a_sample_has_its_seconds);
        RUN(each_form_has_the_same);
        RUN(a_run_without_noise_says_why);
        RUN(a_damaged_result_is_refused);
        return check_end();
}
