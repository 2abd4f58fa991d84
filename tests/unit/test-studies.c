/* SPDX-License-Identifier: MIT */

/* The questions of the published studies, answered from made rows. */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/findings/studies.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/util.h"
#include "tests/unit/drawn.h"

static double any_time(const struct point *p) {
        return 1000 + (double) p->message_size;
}

/* Every question of a study is about a row that its preset spans, or about a finding: each gets its answer. */
static void test_studies(void) {
        static const struct {
                const char *preset;
                size_t n, n_published;
        } table[] = {{"pipe-block-sweep", 11, 8},
                     {"fifo-numa", 13, 12},
                     {"syscall-and-switch", 8, 2},
                     {"tcp-copy-modes", 19, 6},
                     {"ipc-4mib", 14, 12}};
        for (size_t t = 0; t < sizeof(table) / sizeof(table[0]); t++) {
                char spec[96];
                struct study *s = NULL;
                size_t published = 0;
                MADE m;
                (void) snprintf(spec, sizeof(spec), "{\"preset\": \"%s\"}", table[t].preset);
                make(&m, spec, 4, 11);
                measure(&m, any_time, NULL, NOISE, 0);
                for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                        for (size_t f = 0; f < FIGURE_COUNT; f++)
                                m.runs[i].values[f] = 1 + (double) i / (double) m.blocks;
                m.rows[0].flags.noisy = true;
                FINDINGS *f = draw(&m);
                const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
                CHECK_INT(study_answer(table[t].preset, NULL, &in, f, &s), 0);
                CHECK(s != NULL);
                CHECK_STRING(s->name, table[t].preset);
                CHECK_UINT(s->n, table[t].n);
                for (size_t i = 0; i < s->n; i++) {
                        published += s->answers[i].has_published;
                        if (s->answers[i].kind != STUDY_FINDING && (!s->answers[i].has_figure || s->answers[i].reason))
                                CHECK_FAIL("%s: no answer", s->answers[i].question);
                        if (s->answers[i].kind == STUDY_FINDING && !s->answers[i].sentence && !s->answers[i].reason)
                                CHECK_FAIL("%s: neither answer nor reason", s->answers[i].question);
                        CHECK(s->answers[i].n_rows > 0 || s->answers[i].reason);
                        bool first = false;
                        for (size_t k = 0; k < s->answers[i].n_rows; k++)
                                first |= s->answers[i].rows[k] == 0;
                        CHECK_INT(s->answers[i].confidence, s->answers[i].n_rows == 0 ? CONFIDENCE_NONE
                                                            : first                   ? CONFIDENCE_REDUCED
                                                                                      : CONFIDENCE_HIGH);
                }
                CHECK_UINT(published, table[t].n_published);
                CHECK(study_bytes(s) > sizeof(*s));
                study_free(s);
        }
}

/* As many runs as a preset has can decide among the comparisons that its answer makes: on a machine that has all of its
 * points, with CPU time and counters, no difference would be found otherwise, however great it is. */
static void test_presets_have_runs_enough(void) {
        static const char *const presets[] = {"pipe-block-sweep", "fifo-numa", "syscall-and-switch", "tcp-copy-modes",
                                              "ipc-4mib"};
        for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
                char spec[96];
                MADE m, runs;
                (void) snprintf(spec, sizeof(spec), "{\"preset\": \"%s\"}", presets[i]);
                make(&m, spec, 1, 16);
                make(&runs, spec, m.spec->repetitions, 16);
                measure(&runs, any_time, one, NOISE, 0);
                count(&runs);
                if (runs.spec->stamp)
                        stamp(&runs);
                FINDINGS *f = draw(&runs);
                printf("     comparisons of %s: %zu\n", presets[i], f->n_tests);
                if (compare_runs_least(false, f->n_tests) > m.spec->repetitions)
                        CHECK_FAIL("%s: %zu comparisons take %u runs, it has %u", presets[i], f->n_tests,
                                   compare_runs_least(false, f->n_tests), m.spec->repetitions);
        }
}

static const struct study_answer *answer_of(const struct study *s, const char *question) {
        for (size_t i = 0; s && i < s->n; i++)
                if (strstr(s->answers[i].question, question))
                        return &s->answers[i];
        return NULL;
}

/* A machine of one node has none of the rows that a finding about nodes would be of. */
static void test_a_study_without_its_rows(void) {
        static const struct {
                const char *spec, *reason;
        } cases[] = {
                {"{\"transport\": \"fifo\", \"message_size\": [1, 1024]}", "no two rows that differ in it"},
                {"{\"transport\": \"fifo\", \"placement\": [\"same-node\", \"same-cpu\"]}",
                 "no two rows that differ in it"},
                {"{\"transport\": \"fifo\", \"placement\": [\"same-node\", \"cross-node\"]}",
                 "do not let one conclude it"},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct study *s = NULL;
                MADE m;
                make(&m, cases[i].spec, 3, 13);
                measure(&m, any_time, NULL, NOISE, 0);
                const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
                CHECK_INT(study_answer("fifo-numa", NULL, &in, &(struct findings){0}, &s), 0);
                const struct study_answer *a = answer_of(s, "What does the other node cost?");
                CHECK(a && a->reason && strstr(a->reason, cases[i].reason));
                study_free(s);
        }
}

/* The runs decide how certain a ratio is, as of every figure. */
static double slow_on_one_cpu(const struct point *p) {
        return any_time(p) * (p->placement.kind == PLACEMENT_SAME_CPU ? 3 : 1);
}

/* What one CPU costs is no answer to what the other node costs. */
static void test_a_finding_about_other_values_is_no_answer(void) {
        struct study *s = NULL;
        MADE m;
        make(&m, "{\"transport\": \"fifo\", \"placement\": [\"same-node\", \"same-cpu\", \"cross-node\"]}", 8, 15);
        measure(&m, slow_on_one_cpu, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK(says(nth(f, FINDING_COST, 0), "same-cpu instead of same-node costs 6"));
        CHECK(says(nth(f, FINDING_COST, 0), " % of the throughput ["));
        CHECK_INT(study_answer("fifo-numa", NULL, &in, f, &s), 0);
        const struct study_answer *a = answer_of(s, "What does the other node cost?");
        CHECK(a && (!a->sentence || !strstr(a->sentence, "same-cpu")));
        study_free(s);
}

static void test_a_ratio_of_a_study(void) {
        struct study *s = NULL;
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"placement\": [\"same-node\", \"same-cpu\"]}", 8, 17);
        measure(&m, any_time, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows; i++)
                for (size_t k = 0; k < m.rows[i].n_runs && m.rows[i].point.placement.kind == PLACEMENT_SAME_CPU; k++)
                        m.runs[i * m.blocks + k].values[FIGURE_THROUGHPUT] *= 2;
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("pipe-block-sweep", NULL, &in, &(struct findings){0}, &s), 0);
        const struct study_answer *a = answer_of(s, "How many times as fast");
        CHECK(a && a->has_figure && a->figure.has_interval && a->n_rows == 2);
        CHECK(a->figure.low < 2 && 2 < a->figure.high && a->figure.value > 1.9 && a->figure.value < 2.1);
        CHECK_STRING(a->figure.unit, "times");
        study_free(s);
        m.runs[3].values[FIGURE_THROUGHPUT] = 0;
        CHECK_INT(study_answer("pipe-block-sweep", NULL, &in, &(struct findings){0}, &s), 0);
        a = answer_of(s, "How many times as fast");
        CHECK(a && !a->has_figure && a->reason && strstr(a->reason, "0 or less"));
        study_free(s);
}

/* The interval of runs that are like those before them counts how alike they are, or there is none. */
static void test_runs_that_are_alike(void) {
        struct study *s = NULL;
        struct serial serial;
        double values[60];
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"placement\": \"same-node\"}", 60, 17);
        measure(&m, any_time, NULL, 0.002, 0);
        for (size_t i = 0; i < m.blocks; i++) {
                m.runs[i].values[FIGURE_THROUGHPUT] *= i / 10 % 2 ? 1.02 : 1; /* ten by ten */
                values[i] = m.runs[i].values[FIGURE_THROUGHPUT] / 1048576;
        }
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("pipe-block-sweep", NULL, &in, &(struct findings){0}, &s), 0);
        const struct study_answer *a = answer_of(s, "blocks of 4096 bytes");
        CHECK_INT(serial_judge(values, m.blocks, &serial), 0);
        CHECK(serial.material && a && a->has_figure && a->figure.has_interval == serial.interval.has_interval);
        CHECK(!a->figure.has_interval ||
              (fabs(a->figure.low / serial.interval.low - 1) < 1e-12 && a->figure.level == serial.interval.level));
        study_free(s);
}

/* The kernel's placement is held against one node by the pairs of their runs. */
static void test_what_the_kernels_placement_brings(void) {
        struct study *s = NULL;
        MADE m;
        make(&m, "{\"preset\": \"fifo-numa\"}", 8, 21);
        measure(&m, any_time, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].values[FIGURE_MESSAGES] *=
                        m.rows[i / m.blocks].point.placement.kind == PLACEMENT_DEFAULT ? 1.25 : 1;
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("fifo-numa", m.spec, &in, &(struct findings){0}, &s), 0);
        const struct study_answer *a = answer_of(s, "operations of 1024 bytes are there placed by the kernel");
        CHECK(a && a->has_figure && a->figure.has_interval && a->n_rows == 2);
        CHECK(a->figure.low < 1.25 && 1.25 < a->figure.high && a->figure.value > 1.2 && a->figure.value < 1.3);
        CHECK(a->has_published && fabs(a->published - 1.0508) < 1e-4);
        CHECK_UINT(m.rows[a->rows[0]].point.message_size, 1024);
        study_free(s);
}

/* Cycles and misses of the last cache, or why there are none. */
static void test_what_the_modes_cost_in_cycles(void) {
        static const char *const no_counters = "this machine has no counters";
        struct study *s = NULL, *none = NULL, *silent = NULL;
        MADE m;
        make(&m, "{\"preset\": \"tcp-copy-modes\"}", 8, 22);
        measure(&m, any_time, NULL, NOISE, 0);
        struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows, .uncounted = no_counters};
        CHECK_INT(study_answer("tcp-copy-modes", m.spec, &in, &(struct findings){0}, &none), 0);
        const struct study_answer *cycles = answer_of(none, "cycles per byte does zero-copy take at 1 MiB");
        const struct study_answer *misses = answer_of(none, "miss the last cache with one-copy at 16 KiB");
        CHECK(cycles && !cycles->has_figure && misses && !misses->has_figure);
        CHECK_STRING(cycles->reason, no_counters);
        CHECK_STRING(misses->reason, no_counters);
        study_free(none);
        in.uncounted = NULL;
        CHECK_INT(study_answer("tcp-copy-modes", m.spec, &in, &(struct findings){0}, &silent), 0);
        CHECK_STRING(answer_of(silent, "miss the last cache with one-copy")->reason,
                     "no run of such a row has this figure");
        study_free(silent);
        count(&m);
        CHECK_INT(study_answer("tcp-copy-modes", m.spec, &in, &(struct findings){0}, &s), 0);
        cycles = answer_of(s, "cycles per byte does zero-copy take at 1 MiB");
        CHECK(cycles && cycles->has_figure && fabs(cycles->figure.value - 0.5) < 0.05);
        misses = answer_of(s, "miss the last cache with zero-copy at 1 MiB");
        CHECK(misses && misses->has_figure && fabs(misses->figure.value - 300) < 15);
        CHECK_UINT(m.rows[misses->rows[0]].point.threads, 1);
        study_free(s);
}

/* What a medium held is its runs' own; where they do not tell, the largest transfer is still said to be elsewhere. */
static void test_what_the_media_hold(void) {
        struct study *s = NULL, *unknown = NULL;
        MADE m;
        make(&m, "{\"preset\": \"ipc-4mib\"}", 4, 23);
        measure(&m, any_time, NULL, NOISE, 0);
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("ipc-4mib", m.spec, &in, &(struct findings){0}, &unknown), 0);
        const struct study_answer *a = answer_of(unknown, "How much does each medium hold");
        CHECK(a && !a->sentence && a->reason && strstr(a->reason, "GET /transports has each medium's largest"));
        study_free(unknown);
        for (size_t i = 0; i < m.n_rows; i++) {
                struct in_force *f = &m.rows[i].in_force;
                f->buffer_bytes = m.rows[i].point.transport == TRANSPORT_FIFO        ? 65536
                                  : m.rows[i].point.transport == TRANSPORT_MSGQ_SYSV ? 16384
                                                                                     : 0;
                f->chunk_bytes = m.rows[i].point.transport == TRANSPORT_MSGQ_SYSV ? 8192 : 0;
        }
        CHECK_INT(study_answer("ipc-4mib", m.spec, &in, &(struct findings){0}, &s), 0);
        a = answer_of(s, "How much does each medium hold");
        CHECK(a && a->sentence && !a->reason && a->n_rows == 2);
        CHECK_STRING(a->sentence,
                     "In these runs fifo held 64 KiB, msgq-sysv 16 KiB, one way; msgq-sysv took a message in "
                     "pieces of 8 KiB. GET /transports has each medium's largest transfer on this host, the "
                     "setting that limits it, and how to raise it.");
        study_free(s);
}

/* So few runs that no test of them would decide anything are said beside the figure. */
static void test_a_study_of_few_runs(void) {
        static const char *const words[] = {[1] = "1 run", [3] = "3 runs", [4] = ""};
        for (size_t runs = 1; runs < ELEMENTS(words); runs++) {
                struct study *s = NULL, *peaks = NULL;
                MADE m = {0}, tcp = {0};
                if (!words[runs])
                        continue;
                make(&m, "{\"transport\": \"pipe\", \"placement\": [\"same-node\", \"same-cpu\"]}", runs, 17);
                measure(&m, any_time, NULL, NOISE, 0);
                const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
                CHECK_INT(study_answer("pipe-block-sweep", NULL, &in, &(struct findings){0}, &s), 0);
                const struct study_answer *ratio = answer_of(s, "How many times as fast");
                const struct study_answer *block = answer_of(s, "How many MiB/s do blocks of 4096 bytes");
                CHECK(ratio && ratio->has_figure && block && block->has_figure);
                CHECK_STRING(ratio->figure.of, words[runs]);
                CHECK_STRING(block->figure.of, words[runs]);
                CHECK_INT(ratio->confidence, runs < 4 ? CONFIDENCE_REDUCED : CONFIDENCE_HIGH);
                CHECK_INT(block->confidence, runs < 4 ? CONFIDENCE_REDUCED : CONFIDENCE_HIGH);
                make(&tcp,
                     "{\"transport\": \"tcp\", \"message_size\": 65536, \"threads\": 8, \"fields\": 8, \"placement\": "
                     "\"same-node\"}",
                     runs, 17);
                measure(&tcp, any_time, NULL, NOISE, 0);
                const struct findings_input tcp_in = {.rows = tcp.rows, .n_rows = tcp.n_rows};
                CHECK_INT(study_answer("tcp-copy-modes", NULL, &tcp_in, &(struct findings){0}, &peaks), 0);
                const struct study_answer *peak = answer_of(peaks, "What is the greatest throughput of two-copy");
                char where[64];
                (void) snprintf(where, sizeof(where), "64 KiB, 8 threads%s%s", runs < 4 ? "; " : "", words[runs]);
                CHECK_STRING(peak->figure.of, where);
                study_free(peaks);
                study_free(s);
        }
}

static void test_a_study_is_named(void) {
        static const char *const none[] = {NULL, "", "quick", "fifo", "fifo-numa-slow"};
        const struct findings_input in = {.rows = NULL};
        const struct findings f = {0};
        for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
                struct study *s = NULL;
                CHECK_INT(study_answer(none[i], NULL, &in, &f, &s), 0);
                CHECK(!s);
        }
        struct study *s = NULL;
        CHECK_INT(study_answer("fifo-numa-quick", NULL, &in, &f, &s), 0);
        CHECK_STRING(s->name, "fifo-numa");
        for (size_t i = 0; i < s->n; i++) /* without a row there is no answer, but what was published */
                CHECK(s->answers[i].reason && !s->answers[i].has_figure);
        study_free(s);
}

/* A field that the spec overrides may make another thing of what is measured, to which the published figure is none. */
static void test_a_question_that_is_not_asked(void) {
        static const struct {
                const char *preset, *over, *question;
                const char *changed; /* NULL: it is answered */
        } cases[] = {
                {"pipe-block-sweep", "\"transport\": \"tcp\"", "How many MiB/s do blocks of 4096", "transport"},
                {"pipe-block-sweep", "\"transport\": \"tcp\"", "How many times as fast", "transport"},
                {"pipe-block-sweep", "\"transport\": \"fifo\"", "Which range", "transport"},
                {"pipe-block-sweep", "\"transport\": [\"pipe\", \"fifo\"]", "blocks of 4096", NULL},
                {"pipe-block-sweep", "\"message_size\": [64, 100]", "blocks of 64 bytes", NULL},
                {"pipe-block-sweep", "\"message_size\": [64, 100]", "blocks of 256 bytes", "message_size"},
                {"pipe-block-sweep", "\"message_size\": [64, 100]", "How many times as fast", "message_size"},
                {"pipe-block-sweep", "\"message_size\": [64, 100]", "Which range", "message_size"},
                {"pipe-block-sweep", "\"workload\": \"pingpong\"", "blocks of 64 bytes", "workload"},
                {"pipe-block-sweep", "\"threads\": 2, \"transport\": \"fifo\"", "blocks of 64 bytes",
                 "transport and threads"},
                {"pipe-block-sweep", "\"verify\": \"checksum\"", "blocks of 64 bytes", "verify"},
                {"pipe-block-sweep", "\"transport_options\": {\"pipe_size\": 4096}", "blocks of 64 bytes",
                 "transport_options"},
                {"pipe-block-sweep", "\"repetitions\": 5, \"bytes\": 65536, \"name\": \"mine\"", "How many times",
                 NULL},
                {"fifo-numa", "\"transport\": \"pipe\"", "operations a second of 1 byte", "transport"},
                {"fifo-numa", "\"message_size\": 2", "operations a second of 1 byte", "message_size"},
                {"syscall-and-switch", "\"processes\": 8", "context switch between two", "processes"},
                {"syscall-and-switch", "\"processes\": 4", "system call getpid", NULL},
                {"syscall-and-switch", "\"workload\": \"syscall\"", "context switch between two", "workload"},
                {"syscall-and-switch-quick", "\"messages\": 10", "context switch between two", NULL},
                {"tcp-copy-modes", "\"threads\": [1, 2]", "greatest throughput of one-copy", "threads"},
                {"tcp-copy-modes", "\"threads\": [1, 2]", "is left of one-copy at 1 MiB and 8", "threads"},
                {"tcp-copy-modes", "\"copy_mode\": [\"two-copy\", \"one-copy\"]", "greatest throughput of one-copy",
                 NULL},
                {"tcp-copy-modes", "\"copy_mode\": [\"two-copy\", \"one-copy\"]", "greatest throughput of zero-copy",
                 "copy_mode"},
                {"tcp-copy-modes", "\"direction\": \"up\"", "greatest throughput of one-copy", "direction"},
                {"tcp-copy-modes-quick", "\"repetitions\": 8", "greatest throughput of one-copy", NULL},
                {"ipc-4mib", "\"message_size\": 65536", "How long does 4 MiB take one way over shared memory",
                 "message_size"},
                {"ipc-4mib", "\"transport\": [\"fifo\", \"shm-sysv\"]", "4 MiB take one way over shared memory", NULL},
                {"ipc-4mib", "\"transport\": [\"fifo\", \"shm-sysv\"]", "Which medium is fastest?", "transport"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                struct study *s = NULL;
                char spec[256], words[256];
                MADE m;
                (void) snprintf(spec, sizeof(spec), "{\"preset\": \"%s\", %s}", cases[i].preset, cases[i].over);
                make(&m, spec, 4, 11);
                measure(&m, any_time, NULL, NOISE, 0);
                for (size_t k = 0; k < m.n_rows * m.blocks; k++)
                        for (size_t f = 0; f < FIGURE_COUNT; f++)
                                m.runs[k].values[f] = 1 + (double) k;
                FINDINGS *f = draw(&m);
                const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
                CHECK_INT(study_answer(cases[i].preset, m.spec, &in, f, &s), 0);
                const struct study_answer *a = answer_of(s, cases[i].question);
                (void) snprintf(words, sizeof(words),
                                "the experiment changes the preset's %s: ", cases[i].changed ? cases[i].changed : "");
                if (!a || (cases[i].changed ? !a->reason || !strstr(a->reason, words) || a->has_figure || a->sentence
                                            : !a->has_figure))
                        CHECK_FAIL("%s: %s: %s", spec, cases[i].question, a && a->reason ? a->reason : "(answered)");
                study_free(s);
        }
}

/* Rows that the study has not stand beside its own: none of them is the answer. */
static void test_rows_beside_the_study(void) {
        struct study *s = NULL;
        MADE m;
        make(&m, "{\"preset\": \"pipe-block-sweep\", \"transport\": [\"fifo\", \"pipe\"]}", 4, 11);
        measure(&m, any_time, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].values[FIGURE_THROUGHPUT] *= m.rows[i / m.blocks].point.transport == TRANSPORT_FIFO ? 3 : 1;
        FINDINGS *f = draw(&m);
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("pipe-block-sweep", m.spec, &in, f, &s), 0);
        const struct study_answer *a = answer_of(s, "blocks of 4096 bytes");
        CHECK(a && a->n_rows == 1 && m.rows[a->rows[0]].point.transport == TRANSPORT_PIPE);
        const struct study_answer *range = answer_of(s, "Which range");
        CHECK(range && (range->sentence || !strstr(range->reason, "changes")));
        for (size_t i = 0; i < range->n_rows; i++)
                CHECK_INT(m.rows[range->rows[i]].point.transport, TRANSPORT_PIPE);
        study_free(s);
}

/* One-copy sends in this part of two-copy's time, whatever the size; with one thread zero-copy overtakes at 256 KiB. */
static double copies(const struct point *p) {
        double time = 1000 + (double) p->message_size;
        if (p->copy_mode == COPY_ZERO && p->threads == 1)
                return p->message_size > 200000 ? 0.8 * time : 1.3 * time;
        return p->copy_mode == COPY_ONE ? 0.8 * time : p->copy_mode == COPY_ZERO ? 1.3 * time : time;
}

/* Where one mode leads at every size there is no crossover, and that is an answer. */
static void test_a_mode_that_leads_everywhere(void) {
        struct study *s = NULL, *even = NULL;
        MADE m;
        make(&m, "{\"preset\": \"tcp-copy-modes\", \"threads\": [1, 2, 4, 8]}", 8, 18);
        measure(&m, copies, NULL, 0.01, 0);
        FINDINGS *f = draw(&m);
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("tcp-copy-modes", m.spec, &in, f, &s), 0);
        const struct study_answer *one_copy = answer_of(s, "Where does one-copy overtake");
        CHECK(one_copy && one_copy->sentence && !one_copy->reason && one_copy->n_rows == 32);
        CHECK(strstr(one_copy->sentence, "one-copy leads at every size that was measured, 16 KiB to 1 MiB, with 1 "
                                         "thread, so there is no size at which it begins to. one-copy leads at "));
        CHECK(strstr(one_copy->sentence, "with 8 threads, so there is no size at which it begins to."));
        CHECK_INT(one_copy->confidence, CONFIDENCE_HIGH);
        const struct study_answer *zero_copy = answer_of(s, "Where does zero-copy overtake");
        CHECK(zero_copy && zero_copy->sentence);
        CHECK(strstr(zero_copy->sentence, "zero-copy overtakes two-copy in throughput between 64 KiB and 256 KiB"));
        CHECK(!strstr(zero_copy->sentence, "with 1 thread:"));
        CHECK(strstr(zero_copy->sentence, "two-copy leads at every size that was measured, 16 KiB to 1 MiB, with 2 "
                                          "threads: zero-copy overtakes two-copy at none of them."));
        study_free(s);
        measure(&m, any_time, NULL, 0.1, 0);
        FINDINGS *same = draw(&m);
        CHECK_INT(study_answer("tcp-copy-modes", m.spec, &in, same, &even), 0);
        one_copy = answer_of(even, "Where does one-copy overtake");
        CHECK(one_copy && !one_copy->sentence && strstr(one_copy->reason, "do not let one conclude it"));
        study_free(even);
}

/* What a brief form leaves out was not skipped for anything that the machine lacks. */
static void test_a_brief_form(void) {
        struct study *s = NULL;
        MADE m;
        make(&m, "{\"preset\": \"tcp-copy-modes-quick\"}", 4, 11);
        measure(&m, any_time, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct findings_input in = {.rows = m.rows, .n_rows = m.n_rows};
        CHECK_INT(study_answer("tcp-copy-modes-quick", m.spec, &in, f, &s), 0);
        const struct study_answer *a = answer_of(s, "is left of one-copy at 1 MiB and 8");
        CHECK(a && a->reason);
        CHECK_STRING(a->reason, "the brief form of the preset has no such row");
        study_free(s);
}

int main(void) {
        RUN(test_studies);
        RUN(test_presets_have_runs_enough);
        RUN(test_a_study_without_its_rows);
        RUN(test_a_finding_about_other_values_is_no_answer);
        RUN(test_a_ratio_of_a_study);
        RUN(test_what_the_kernels_placement_brings);
        RUN(test_what_the_modes_cost_in_cycles);
        RUN(test_what_the_media_hold);
        RUN(test_a_study_of_few_runs);
        RUN(test_runs_that_are_alike);
        RUN(test_a_study_is_named);
        RUN(test_a_question_that_is_not_asked);
        RUN(test_rows_beside_the_study);
        RUN(test_a_brief_form);
        RUN(test_a_mode_that_leads_everywhere);
        return check_end();
}
