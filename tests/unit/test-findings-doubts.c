/* SPDX-License-Identifier: MIT */

/* Doubts: what cannot be said of some rows is said of them, and nothing is concluded from them in silence. */

#include "daemon/analysis/statistics/serial.h"
#include "schema/util.h"
#include "tests/unit/drawn.h"

#define TRIALS 100u

/* ---- figures of which there is no ratio ---- */

static double faster_pipe(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : 1500;
}

static double overtaken_pipe(const struct point *p) {
        return p->message_size > 1024 ? faster_pipe(p) : 2500 - faster_pipe(p);
}

/* One run that moved nothing is not left out of a ranking as if the others were all of the row's runs. */
static void test_a_run_of_nothing(void) {
        static const double values[] = {0, -5};
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 8, 14);
                measure(&m, faster_pipe, NULL, NOISE, 0);
                FINDINGS *sound = draw(&m);
                const struct finding *all = nth(sound, FINDING_RANKING, 0);
                CHECK(all && all->n_rows == 3 && !has_doubt(sound, "not-above-0"));
                m.runs[m.blocks + 3].values[FIGURE_THROUGHPUT] = values[i];
                FINDINGS *f = draw(&m);
                const struct finding *ranking = nth(f, FINDING_RANKING, 0), *u = of_reason(f, "not-above-0");
                CHECK(ranking && ranking->n_rows == 2 && !strstr(ranking->sentence, "fifo"));
                CHECK(says(u, "1 of 3 rows has runs whose figure for throughput is 0 or less. There is no ratio of "
                              "such, so nothing is concluded from it for this row."));
                CHECK(u && u->n_rows == 1 && u->rows[0] == 1 && u->confidence == CONFIDENCE_NONE);
        }
}

/* An answer of runs that were added by hand does not promise that nobody looked at it before. */
static void test_runs_that_were_added(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 9, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        FINDINGS *planned = draw(&m);
        CHECK(nth(planned, FINDING_RANKING, 0) && !has_doubt(planned, FINDING_REPETITIONS_ADDED));
        for (size_t i = 0; i < m.n_rows; i++)
                m.rows[i].n_added = 1;
        FINDINGS *f = draw(&m);
        const struct finding *u = of_reason(f, FINDING_REPETITIONS_ADDED);
        CHECK(says(u, "1 repetition was added to the 8 that were planned. If that depended on what the runs before "
                      "showed, a false difference is more likely than 5 %: how often the figures were read "
                      "meanwhile is not known. A new experiment of 9 repetitions would not depend on them."));
        CHECK(u && u->n_figures == 1 && u->figures[0].value == 1);
        CHECK_STRING(u ? u->figures[0].name : "", "repetitions_added"); /* as in a comparison */
        CHECK_STRING(u ? u->figures[0].unit : "", "repetitions");
        CHECK(u && u->n_rows == 2 && u->confidence == CONFIDENCE_NONE);
        CHECK(nth(f, FINDING_RANKING, 0));
}

/* Nothing was compared, and no difference can be false. */
static void test_runs_that_were_added_to_one_row(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\"}", 9, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        m.rows[0].n_added = 1;
        FINDINGS *f = draw(&m);
        CHECK(!has_doubt(f, FINDING_REPETITIONS_ADDED));
}

/* Two rows leave nothing to rank. */
static void test_nothing_beside_one(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"workload\": \"pingpong\"}", 8, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        for (size_t i = 0; i < 2; i++)
                m.runs[i * m.blocks].values[FIGURE_LATENCY_P99] = 0;
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_RANKING, 0), "median round trip") && !nth(f, FINDING_RANKING, 1));
        CHECK(says(of_reason(f, "not-above-0"), "2 of 2 rows have runs whose figure for p99 of the round trip is 0 or "
                                                "less"));
}

/* A cost beside the first figure that is 0 is said, too, and the others are compared. */
static void test_a_cost_of_nothing(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"message_size\": 65536, \"copy_mode\": [\"two-copy\", \"zero-copy\"]}", 8,
             7);
        measure(&m, faster_pipe, one, NOISE, 0);
        count(&m);
        FINDINGS *sound = draw(&m);
        CHECK(says(nth(sound, FINDING_COST, 0), "misses of the last cache per message"));
        m.runs[2].values[FIGURE_LLC_MISSES] = 0;
        FINDINGS *f = draw(&m);
        const struct finding *cost = nth(f, FINDING_COST, 0);
        CHECK(says(cost, "cycles per byte") && !strstr(cost->sentence, "misses"));
        CHECK(says(of_reason(f, "not-above-0"), "1 of 2 rows has runs whose figure for misses of the last cache per "
                                                "message is 0 or less"));
}

/* Neither a knee nor a crossover rests on the runs that are left. */
static void test_no_law_from_what_is_left(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"message_size\": [64, 256, 1024, 4096, 16384]}", 8, 1);
        measure(&m, one, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows; i++)
                for (size_t k = 0; k < m.blocks; k++) {
                        bool up = (m.rows[i].point.transport == TRANSPORT_PIPE) == (m.rows[i].point.message_size > 500);
                        m.runs[i * m.blocks + k].values[FIGURE_THROUGHPUT] *= up ? 3 : 1;
                }
        FINDINGS *sound = draw(&m);
        CHECK(nth(sound, FINDING_CROSSOVER, 0));
        for (size_t i = 0; i < m.n_rows; i++)
                m.runs[i * m.blocks].values[FIGURE_THROUGHPUT] = m.runs[i * m.blocks].values[FIGURE_MESSAGES] = 0;
        FINDINGS *f = draw(&m);
        CHECK(!nth(f, FINDING_CROSSOVER, 0) && !nth(f, FINDING_KNEE, 0) && !nth(f, FINDING_RANKING, 0));
        CHECK(says(of_reason(f, "not-above-0"), "10 of 10 rows have"));
}

/* A row without a rate is left out of the law of sizes. The sentence says so only where its throughput is unknown, too.
 */
static void test_no_rate_of_a_round_trip(void) {
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"message_size\": [64, 256, 1024, 4096, 16384]}", 8, 1);
        measure(&m, one, NULL, NOISE, 0);
        FINDINGS *sound = draw(&m);
        CHECK(!has_doubt(sound, "not-above-0"));
        m.runs[m.blocks + 3].values[FIGURE_MESSAGES] = 0;
        FINDINGS *known = draw(&m); /* its bytes a second are known */
        CHECK(!has_doubt(known, "not-above-0"));
        m.runs[m.blocks + 3].values[FIGURE_THROUGHPUT] = 0;
        FINDINGS *f = draw(&m);
        const struct finding *u = of_reason(f, "not-above-0");
        CHECK(says(u, "1 of 5 rows has runs whose figure for throughput is 0 or less"));
        CHECK(u && u->n_rows == 1 && u->rows[0] == 1);
}

/* The only size at which the other one leads, by a row of which there is no ratio, makes no crossover that is open. */
static void test_no_crossover_from_what_is_left(void) {
        static const size_t last = 9; /* fifo, 16 KiB */
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"message_size\": [64, 256, 1024, 4096, 16384]}", 8, 1);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        CHECK(m.rows[last].point.transport == TRANSPORT_FIFO && m.rows[last].point.message_size == 16384);
        for (size_t k = 0; k < m.blocks; k++)
                m.runs[last * m.blocks + k].values[FIGURE_THROUGHPUT] *= 3;
        FINDINGS *sound = draw(&m);
        CHECK(nth(sound, FINDING_CROSSOVER, 0));
        m.runs[last * m.blocks].values[FIGURE_THROUGHPUT] = 0;
        FINDINGS *f = draw(&m);
        CHECK(has_doubt(f, "not-above-0") && !nth(f, FINDING_CROSSOVER, 0));
        for (size_t i = 0; i < f->n; i++)
                if (strstr(f->items[i].sentence, "overtake") || strstr(f->items[i].sentence, "cross"))
                        CHECK_FAIL("%s", f->items[i].sentence);
}

static double one_less_with_threads(const struct point *p) {
        return 1000 / fmin(p->threads, 4);
}

/* A count of threads of which there is no ratio is told with the throughput, and was measured all the same. */
static void test_no_scaling_from_what_is_left(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"threads\": [1, 2, 4, 8]}", 8, 1);
        measure(&m, one_less_with_threads, NULL, NOISE, 0);
        for (size_t row = 0; row < 3; row++)
                for (size_t i = 0; i < m.blocks; i++)
                        m.runs[row * m.blocks + i].values[FIGURE_THROUGHPUT] *= m.rows[row].point.threads;
        m.runs[3 * m.blocks].values[FIGURE_THROUGHPUT] = 0;
        FINDINGS *f = draw(&m);
        const struct finding *scaling = nth(f, FINDING_SCALING, 0);
        CHECK(scaling && scaling->n_rows == 3 && !strstr(scaling->sentence, "no more threads were measured"));
        CHECK(says(scaling, "; no fall behind it was found."));
        const struct finding *u = of_reason(f, "not-above-0");
        CHECK(says(u, "1 of 4 rows has runs whose figure for throughput is 0 or less"));
        CHECK(u && u->n_rows == 1 && u->rows[0] == 3);
        for (size_t i = 1; i < m.n_rows; i++)
                m.runs[i * m.blocks].values[FIGURE_THROUGHPUT] = 0;
        FINDINGS *none = draw(&m);
        CHECK(!nth(none, FINDING_SCALING, 0));
        CHECK(says(of_reason(none, "not-above-0"), "3 of 4 rows have"));
}

/* ---- more runs than take part ---- */

/* The second pair of neighbours differs by a tenth of what the first differs by. */
static double close_second(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : p->transport == TRANSPORT_FIFO ? 1100 : 1108;
}

/* No number is advised that a comparison does not take: 200 pairs, or 60 runs of no block. */
static void test_runs_that_decide_nothing(void) {
        static const struct {
                bool in_blocks;
                uint32_t most;
        } cases[] = {{true, 200}, {false, 60}};
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                unsigned in_reach = 0, beyond = 0, both = 0;
                for (unsigned t = 0; t < 100; t++) {
                        char words[80];
                        MADE m;
                        make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 8, 100 + t);
                        measure(&m, close_second, NULL, 0.08, 0);
                        for (size_t k = 0; !cases[i].in_blocks && k < m.n_rows * m.blocks; k++)
                                m.runs[k].block = 0;
                        FINDINGS *f = draw(&m);
                        const struct finding *u = of_reason(f, "overlap");
                        if (!u)
                                continue;
                        CHECK(u->runs_needed <= cases[i].most);
                        const struct finding_figure *needed = figure(u, "runs_needed");
                        CHECK(!needed || needed->value <= cases[i].most);
                        (void) snprintf(words, sizeof(words), "more than the %u ", cases[i].most);
                        in_reach += u->runs_needed > 0;
                        beyond += u->runs_needed == 0 && !needed && says(u, words);
                        both += u->runs_needed == 0 && needed &&
                                says(u, "would decide the first of them; to decide all ") && says(u, words);
                }
                printf("     doubts in reach %u, beyond %u, both %u\n", in_reach, beyond, both);
                CHECK(in_reach > 0 && beyond > 0 && both > 0);
        }
}

static double far_ring(const struct point *p) {
        return p->transport == TRANSPORT_SHM_POSIX ? 10 : 1000;
}

/* Few runs of a row and more of the others: of its comparisons none shows a difference among so many, and nothing is
 * said of them that holds for the others alone. */
static void test_blind_comparisons(void) {
        unsigned some = 0;
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"fifo\", \"tcp\", \"unix-stream\"], \"message_size\": 4096, "
             "\"workload\": [\"stream\", \"pingpong\"]}",
             12, 14);
        for (unsigned t = 0; t < 20; t++) {
                measure(&m, one, NULL, 0.2, 0);
                for (size_t i = 0; i < m.n_rows; i++)
                        m.rows[i].n_runs = m.rows[i].point.transport == TRANSPORT_TCP ? 4 : m.blocks;
                FINDINGS *f = draw(&m);
                const struct finding *u = of_reason(f, "overlap");
                if (!u || u->n_rows < 4)
                        continue;
                some++;
                CHECK(says(u, " would have been seen in ") && says(u, " of their ") && says(u, " none by so few runs"));
        }
        CHECK(some > 10);
        measure(&m, one, NULL, 0.2, 0);
        for (size_t i = 0; i < m.n_rows; i++)
                m.rows[i].n_runs = m.blocks;
        FINDINGS *all = draw(&m);
        const struct finding *u = of_reason(all, "overlap");
        CHECK(says(u, " would have been seen") && !strstr(u->sentence, "so few runs"));
}

/* Among neighbours in a ranking that are not distinguished some may be so for their few runs alone. */
static void test_neighbours_of_few_runs(void) {
        unsigned some = 0;
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"fifo\", \"tcp\", \"shm-posix\"], \"workload\": [\"stream\", \"pingpong\"], "
             "\"message_size\": [64, 4096]}",
             12, 14);
        for (unsigned t = 0; t < 100; t++) {
                measure(&m, far_ring, NULL, 0.2, 0);
                for (size_t i = 0; i < m.n_rows; i++)
                        m.rows[i].n_runs = m.rows[i].point.transport == TRANSPORT_TCP ? 4 : m.blocks;
                FINDINGS *f = draw(&m);
                for (size_t i = 0; nth(f, FINDING_RANKING, i); i++) {
                        const char *sentence = nth(f, FINDING_RANKING, i)->sentence;
                        const char *words = strstr(sentence, ", where no neighbours can be distinguished");
                        const char *tcp = strstr(sentence, "tcp (");
                        const char *then = strstr(sentence, ", then ");
                        if (!words || !tcp || !then || tcp < then || tcp > words)
                                continue;
                        CHECK(strstr(words, "some of them by so few runs that no difference would have been seen"));
                        some++;
                }
        }
        CHECK(some > 10);
}

/* Runs of no block are compared as far as an exact test of tied ones is quick, and the answer says so. */
static void test_many_runs_that_are_no_pairs(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 200, 14);
        measure(&m, faster_pipe, NULL, 0.3, 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++) {
                double *value = &m.runs[i].values[FIGURE_THROUGHPUT];
                *value = floor(*value / 1e5) * 1e5;     /* tied */
                if (i >= 2 * m.blocks && i % 200 >= 60) /* of tcp after the first sixty nothing is as it was */
                        *value *= 100;
        }
        FINDINGS *pairs = draw(&m);
        CHECK(!has_doubt(pairs, "too-many-runs"));
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].block = 0;
        FINDINGS *f = draw(&m);
        CHECK(says(of_reason(f, "too-many-runs"), "3 of 3 rows have more than 60 runs that were compared with others "
                                                  "than those of their blocks"));
        MADE few;
        make(&few, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 60, 14);
        measure(&few, faster_pipe, NULL, 0.3, 0);
        for (size_t i = 0; i < few.n_rows * few.blocks; i++) {
                few.runs[i] = m.runs[i / few.blocks * m.blocks + i % few.blocks];
                few.runs[i].id = (int64_t) i;
        }
        FINDINGS *same = draw(&few);
        CHECK(!has_doubt(same, "too-many-runs"));
        const struct finding *first = nth(same, FINDING_RANKING, 0);
        CHECK(first && figure(first, "next_over_this"));
}

/* ---- how many comparisons there will be ---- */

/* Before there are runs it is known how many comparisons share the correction, at most. */
static void test_comparisons_are_counted_before(void) {
        static const struct {
                const char *spec;
                size_t n; /* 0: only that there are no more */
        } cases[] = {
                {"{\"transport\": \"pipe\"}", 0},
                {"{\"transport\": [\"pipe\", \"fifo\"]}", 1},
                {"{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 2},
                {"{\"transport\": [\"pipe\", \"fifo\", \"tcp\"], \"workload\": \"pingpong\"}", 4},
                {"{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8]}", 3},
                {"{\"preset\": \"tcp-copy-modes\"}", 0},
                {"{\"preset\": \"pipe-block-sweep\"}", 0},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                size_t n = 0;
                MADE m;
                make(&m, cases[i].spec, 8, 14);
                measure(&m, faster_pipe, one, NOISE, 0);
                count(&m);
                if (m.spec->stamp)
                        stamp(&m);
                FINDINGS *f = draw(&m);
                for (size_t k = 0; k < m.n_rows; k++)
                        m.rows[k].n_runs = 0;
                CHECK_INT(findings_count(&(struct findings_input){.rows = m.rows, .n_rows = m.n_rows}, &n), 0);
                CHECK(n >= f->n_tests && (cases[i].n == 0 || n == cases[i].n));
        }
        size_t many = 0;
        CHECK_INT(findings_count(&(struct findings_input){.n_rows = FINDINGS_NUMBERED_MAX + 1}, &many), 0);
        CHECK(many > FINDINGS_NUMBERED_MAX);
}

/* ---- runs that are missing, too few, disturbed or alike ---- */

static double nearly(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : 1030;
}

static void test_missing_runs(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 9);
        measure(&m, three, NULL, NOISE, 0);
        FINDINGS *whole = draw(&m);
        CHECK(!has_doubt(whole, "missing-runs"));
        m.rows[1].n_planned = 11;
        m.rows[1].n_failed = 1;
        FINDINGS *f = draw(&m);
        const struct finding *u = of_reason(f, "missing-runs");
        CHECK(says(u, "1 of 2 rows has fewer runs than are planned: of 19 in all, 1 failed or was cancelled and 2 are "
                      "not done."));
        CHECK(u && u->n_rows == 1 && u->rows[0] == 1);
        m.rows[0].n_planned = 10;
        m.rows[0].n_failed = 2;
        m.rows[1].n_planned = 8;
        m.rows[1].n_failed = 0;
        FINDINGS *g = draw(&m);
        CHECK(says(of_reason(g, "missing-runs"), "of 18 in all, 2 failed or were cancelled. Conclusions rest on "));
        measure(&m, nearly, NULL, 0.1, 0);
        FINDINGS *none = draw(&m);
        u = of_reason(none, "missing-runs");
        CHECK(says(u, "of 18 in all, 2 failed or were cancelled.") && u && !strstr(u->sentence, "Conclusions"));
}

/* All runs of a row failed, or of all rows. */
static void test_failed_runs(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 8, 9);
        measure(&m, three, NULL, NOISE, 0);
        m.rows[1].n_runs = 0;
        m.rows[1].n_failed = 8;
        FINDINGS *some = draw(&m);
        CHECK(says(of_reason(some, "missing-runs"), "1 of 3 rows has fewer runs than are planned: of 24 in all, 8 "
                                                    "failed or were cancelled; no run of 1 row is done. Conclusions "));
        for (size_t i = 0; i < m.n_rows; i++)
                m.rows[i].n_runs = m.rows[i].n_failed = 0;
        FINDINGS *queued = draw(&m);
        CHECK(!has_doubt(queued, "missing-runs"));
        m.rows[0].n_failed = 8;
        m.rows[2].n_failed = 3;
        FINDINGS *none = draw(&m);
        const struct finding *u = of_reason(none, "missing-runs");
        CHECK(says(u, "No run is done: 11 runs of 2 rows failed or were cancelled, and 13 are not begun or not over."));
        CHECK(u->n_rows == 2 && u->rows[0] == 0 && u->rows[1] == 2 && u->confidence == CONFIDENCE_NONE);
        m.rows[1].n_failed = m.rows[2].n_failed = 8;
        FINDINGS *all = draw(&m);
        CHECK(says(of_reason(all, "missing-runs"), "No run is done: 24 runs of 3 rows failed or were cancelled."));
}

static double far_apart(const struct point *p) {
        double by_transport = p->transport == TRANSPORT_PIPE ? 1 : p->transport == TRANSPORT_FIFO ? 10 : 100;
        return 1000 * by_transport * (p->wait == WAIT_SPIN ? 0.2 : 1) * p->threads;
}

/* With as many runs as the doubt names something is decided, if differences are great. */
static void test_runs_that_would_be_enough(void) {
        static const char *const specs[] = {
                ("{\"transport\": [\"pipe\", \"fifo\"], \"workload\": \"pingpong\", "
                 "\"message_size\": [64, 128, 256, 512, 1024, 2048]}"),
                "{\"transport\": [\"pipe\", \"tcp\"], \"message_size\": [64, 4096, 65536]}",
                "{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8]}",
                "{\"transport\": \"shm-posix\", \"wait\": [\"block\", \"spin\"]}",
        };
        for (size_t i = 0; i < ELEMENTS(specs); i++) {
                MADE first = {0}, more = {0};
                make(&first, specs[i], 1, 19);
                measure(&first, far_apart, one, NOISE, 0);
                FINDINGS *f = draw(&first);
                const struct finding *few = of_reason(f, "too-few-runs");
                const uint32_t runs = few ? few->runs_needed : 0;
                CHECK(runs >= FINDINGS_RUNS_LEAST);
                for (size_t k = 0; k < first.n_rows; k++)
                        first.rows[k].n_runs = 0;
                FINDINGS *none = draw(&first);
                few = of_reason(none, "too-few-runs");
                CHECK(few && few->runs_needed >= runs);
                make(&more, specs[i], runs, 20);
                measure(&more, far_apart, one, 0.002, 0);
                CHECK(claimed(&more) > 0);
        }
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"workload\": [\"stream\", \"pingpong\"]}", 1, 19);
        measure(&m, far_apart, NULL, NOISE, 0);
        FINDINGS *alone = draw(&m); /* neither has another to be compared with */
        const struct finding *u = of_reason(alone, "too-few-runs");
        CHECK(u && u->runs_needed == 0 && !strstr(u->sentence, "would be enough"));
}

static void test_too_few_runs(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"tcp\"], \"message_size\": [64, 4096, 65536]}", 3, 8);
        measure(&m, three, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        CHECK_UINT(f->n, 1);
        CHECK_INT(f->items[0].kind, FINDING_UNDECIDED);
        CHECK_STRING(f->items[0].reason, "too-few-runs");
        CHECK(says(&f->items[0], "6 of 6 rows have fewer than 4 runs"));
        CHECK(f->items[0].runs_needed > 3 && f->items[0].confidence == CONFIDENCE_NONE);
        CHECK_UINT(f->n_tests, 0);
}

static void test_one_row_is_singular(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 9);
        measure(&m, nearly, NULL, 0.1, 0);
        m.rows[0].flags.noisy = true;
        FINDINGS *f = draw(&m);
        bool one = false, both = false;
        for (size_t i = 0; i < f->n; i++) {
                one = one || strstr(f->items[i].sentence, "1 of 2 rows has runs with noise flags; the same runs on a ");
                CHECK(!strstr(f->items[i].sentence, "onclusions")); /* there are none */
                both = both || strstr(f->items[i].sentence, "2 of 2 rows have fewer than 12 runs.");
        }
        CHECK(one && both);
}

/* Where nothing is compared a quieter machine would decide nothing. */
static void test_a_row_alone(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\"}", 8, 9);
        measure(&m, nearly, NULL, 0.1, 0);
        m.rows[0].flags.noisy = true;
        m.rows[0].n_planned = 9;
        FINDINGS *f = draw(&m);
        CHECK_STRING(of_reason(f, "noise")->sentence, "The only row has runs with noise flags.");
        CHECK_STRING(of_reason(f, "missing-runs")->sentence,
                     "The only row has fewer runs than are planned: of 9 in all, 1 is not done.");
}

static void test_overlap(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 9);
        measure(&m, nearly, NULL, 0.03, 0);
        FINDINGS *f = draw(&m);
        const struct finding *u = nth(f, FINDING_UNDECIDED, 0);
        CHECK(!nth(f, FINDING_RANKING, 0));
        CHECK_STRING(u->reason, "overlap");
        CHECK(says(u, "would have been seen") && u->runs_needed > 8 &&
              figure(u, "runs_needed")->value == u->runs_needed);
        CHECK(says(
                u,
                "Which transport has more throughput is not known for 2 rows of stream, 4 KiB: they are too close "));
        CHECK_UINT(u->n_rows, 2);
}

/* A run that was tried again is in a block of its own, and in no pair, but counts as one of the row's runs: a number of
 * them that a row has already would decide nothing. */
static void test_a_run_in_no_pair(void) {
        unsigned undecided = 0;
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 8);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, nearly, NULL, NOISE, 0);
                m.runs[7].block = 1000001; /* pipe's last */
                FINDINGS *f = draw(&m);
                m.rows[0].n_runs = m.rows[1].n_runs = 7; /* the pairs */
                FINDINGS *pairs = draw(&m);
                m.rows[0].n_runs = m.rows[1].n_runs = 8;
                const struct finding *u = of_reason(f, "overlap"), *v = of_reason(pairs, "overlap");
                if (!u || u->runs_needed == 0)
                        continue;
                CHECK(v && u->runs_needed == v->runs_needed + 1);
                undecided++;
        }
        CHECK(undecided > 0);
}

/* ---- figures that a flag of their runs disputes ---- */

/* A cost is no more certain than the runs of zero-copy that were refused. */
static void test_refused_sends(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"message_size\": 65536, \"copy_mode\": [\"two-copy\", \"zero-copy\"]}", 6,
             7);
        measure(&m, faster_pipe, one, NOISE, 0);
        count(&m);
        FINDINGS *sound = draw(&m);
        CHECK(!has_doubt(sound, "disputed"));
        CHECK_INT(nth(sound, FINDING_COST, 0)->confidence, CONFIDENCE_HIGH);
        m.rows[1].flags.n_disputed[DISPUTED_ENOBUFS] = 2;
        FINDINGS *f = draw(&m);
        const struct finding *u = of_reason(f, "disputed");
        CHECK_INT(nth(f, FINDING_COST, 0)->confidence, CONFIDENCE_REDUCED);
        CHECK(says(u, "1 of 2 rows has runs in which the kernel refused sends without copying, each of which then "
                      "waited: 2 of 6 runs have the flag zerocopy:enobufs. Conclusions that rest on them have reduced "
                      "confidence; "));
        CHECK(u->n_rows == 1 && u->rows[0] == 1 && u->confidence == CONFIDENCE_NONE);
        CHECK(figure(u, "disputed_runs")->value == 2);
        CHECK_STRING(figure(u, "disputed_runs")->of, "zerocopy:enobufs");
        m.rows[0].flags.n_disputed[DISPUTED_ENDS] = 1;
        FINDINGS *two = draw(&m); /* each flag has its own doubt */
        size_t n = 0;
        for (size_t i = 0; i < two->n; i++)
                n += two->items[i].reason && strcmp(two->items[i].reason, "disputed") == 0;
        CHECK_UINT(n, 2);
}

/* A flag disputes the figures that it is of, and no others. */
static void test_disputed_figures(void) {
        static const struct {
                enum disputed flag;
                bool throughput, latency;
        } cases[] = {
                {DISPUTED_ENOBUFS, true, true},
                {DISPUTED_RATE, true, true},
                {DISPUTED_CEILING, true, false},
                {DISPUTED_ENDS, true, false},
                {DISPUTED_PIPES, true, true},
                {DISPUTED_SHARED_CPUS, true, true},
                {DISPUTED_SHARED_CORES, true, true},
                {DISPUTED_MEMORY, true, true},
                {DISPUTED_LATENCY_LIMIT, false, true},
                {DISPUTED_LATENCY_COUNTS, false, true},
                {DISPUTED_LATENCY_QUANTUM, false, true},
        };
        CHECK_UINT(ELEMENTS(cases), DISPUTED_COUNT);
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"workload\": [\"stream\", \"pingpong\"]}", 8, 14);
                measure(&m, faster_pipe, NULL, NOISE, 0);
                for (size_t k = 0; k < m.n_rows; k++)
                        m.rows[k].flags.n_disputed[cases[i].flag] = 1;
                FINDINGS *f = draw(&m);
                unsigned seen = 0;
                for (size_t k = 0; nth(f, FINDING_RANKING, k); k++) {
                        const struct finding *ranking = nth(f, FINDING_RANKING, k);
                        bool stream = ranking->subject.workload == WORKLOAD_STREAM;
                        seen |= stream ? 1 : 2;
                        CHECK_INT(ranking->confidence, (stream ? cases[i].throughput : cases[i].latency)
                                                               ? CONFIDENCE_REDUCED
                                                               : CONFIDENCE_HIGH);
                }
                CHECK_UINT(seen, 3);
                CHECK(says(of_reason(f, "disputed"), disputed_flags[cases[i].flag].flag));
        }
}

/* Where no conclusion has such a figure, none is called less certain. */
/* The crossover is of round trips: what a flag disputes of the throughput is beside it. */
static void test_disputed_crossover(void) {
        static const struct {
                enum disputed flag;
                enum finding_confidence confidence;
        } cases[] = {{DISPUTED_ENDS, CONFIDENCE_HIGH}, {DISPUTED_LATENCY_COUNTS, CONFIDENCE_REDUCED}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                MADE m;
                make(&m,
                     "{\"transport\": [\"pipe\", \"fifo\"], \"workload\": \"pingpong\", \"message_size\": [64, 65536]}",
                     10, 14);
                measure(&m, overtaken_pipe, NULL, NOISE, 0);
                m.rows[0].flags.n_disputed[cases[i].flag] = 1;
                FINDINGS *f = draw(&m);
                const struct finding *crossover = nth(f, FINDING_CROSSOVER, 0);
                CHECK(crossover != NULL);
                CHECK_INT(crossover->confidence, cases[i].confidence);
        }
}

static void test_disputed_elsewhere(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        m.rows[0].flags.n_disputed[DISPUTED_LATENCY_COUNTS] = 1;
        FINDINGS *f = draw(&m);
        CHECK(nth(f, FINDING_RANKING, 0) && nth(f, FINDING_RANKING, 0)->confidence == CONFIDENCE_HIGH);
        CHECK_STRING(of_reason(f, "disputed")->sentence,
                     "1 of 2 rows has runs in which there are not as many latencies as messages: 1 of 8 runs has the "
                     "flag latency_counts_differ.");
}

static void test_flags_are_counted(void) {
        uint32_t n[DISPUTED_COUNT] = {0};
        disputed_count(NULL, n);
        disputed_count("[\"noisy:load\",\"ends_differ\"]", n);
        disputed_count("[\"ends_differ\",\"rate_not_reached\",\"pipes_differ_else\"]", n);
        for (enum disputed i = 0; i < DISPUTED_COUNT; i++)
                CHECK_UINT(n[i], i == DISPUTED_ENDS ? 2 : i == DISPUTED_RATE ? 1 : 0);
        CHECK(disputed_any(n, FIGURES_BIT(FIGURES_LATENCY)) && !disputed_any(n, FIGURES_BIT(FIGURES_PER_UNIT)));
}

/* The throughput at a rate that was not reached is not that rate. */
static void test_open_loop_words(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"workload\": \"pingpong\"}", 8, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        m.rows[0].open_loop = m.rows[1].open_loop = true;
        m.rows[0].flags.n_disputed[DISPUTED_RATE] = 8;
        FINDINGS *f = draw(&m);
        CHECK_STRING(of_reason(f, "open-loop")->sentence,
                     "2 of 2 rows have an open loop, in which no more messages are sent than its rate specifies, so "
                     "nothing is concluded from the throughput.");
        CHECK(says(of_reason(f, "disputed"), "fewer messages came than the rate specifies"));
}

/* As many rows as an experiment can have, of a run each: nothing is compared, and all of them are named. */
static void test_many_rows(void) {
        struct findings_input in = {.n_rows = SPEC_POINTS_MAX};
        MADE m;
        make(&m, "{\"transport\": \"pipe\"}", 1, 12);
        measure(&m, alike, NULL, NOISE, 0);
        struct findings_row *rows = calloc(in.n_rows, sizeof(*rows));
        CHECK(rows != NULL);
        for (size_t i = 0; i < in.n_rows; i++) {
                rows[i] = m.rows[0];
                rows[i].point.message_size = i + 1;
        }
        in.rows = rows;
        struct findings *f = NULL;
        int r = findings_draw(&in, &f);
        free(rows);
        CHECK_INT(r, 0);
        FINDINGS *owned = f;
        CHECK_UINT(owned->n, 1);
        CHECK_STRING(owned->items[0].reason, "too-few-runs");
        CHECK_UINT(owned->items[0].n_rows, SPEC_POINTS_MAX);
}

/* The factor as it is written, in three digits. */
static bool has_factor(const struct finding *u, double factor) {
        static const char before[] = "only a difference of more than a factor of ";
        const char *words = strstr(u->sentence, before);
        return words && fabs(strtod(words + strlen(before), NULL) / factor - 1) < 0.0051;
}

/* Where the scatter is hopeless, more runs are not what is advised. */
static void test_hopeless(void) {
        unsigned hopeless = 0;
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 13);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, alike, NULL, 1, 0);
                FINDINGS *f = draw(&m);
                const struct finding *u = nth(f, FINDING_UNDECIDED, 0);
                if (!u || u->runs_needed > 0)
                        continue;
                const struct finding_figure *visible = figure(u, "visible_difference");
                CHECK(visible && has_factor(u, 1 + visible->value));
                CHECK(says(u, "would have been seen") && says(u, "a quieter machine"));
                CHECK(says(u, "It would take more than the 200 runs of each that take part in a comparison"));
                CHECK(!figure(u, "runs_needed") && !strstr(u->sentence, "would decide"));
                hopeless++;
        }
        CHECK(hopeless > 0);
}

static void test_what_is_missing(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 220, 10);
        measure(&m, nearly, NULL, 0.01, 0);
        m.rows[1].n_runs = 0; /* all of them failed */
        m.rows[1].n_failed = 220;
        m.rows[0].flags.unsteady = true;
        FINDINGS *f = draw(&m);
        CHECK(!nth(f, FINDING_RANKING, 0));
        CHECK_STRING(nth(f, FINDING_UNDECIDED, 0)->reason, "missing-runs");
        CHECK_STRING(nth(f, FINDING_UNDECIDED, 1)->reason, "too-few-runs");
        CHECK_STRING(nth(f, FINDING_UNDECIDED, 2)->reason, "not-steady");
        CHECK_STRING(nth(f, FINDING_UNDECIDED, 3)->reason, "too-many-runs");
        m.rows[0].flags.changed = m.rows[0].flags.unobserved = m.rows[0].flags.restless = true;
        FINDINGS *c = draw(&m);
        CHECK_STRING(nth(c, FINDING_UNDECIDED, 3)->reason, "environment-changed");
        CHECK_STRING(nth(c, FINDING_UNDECIDED, 4)->reason, "not-observed");
        CHECK_STRING(nth(c, FINDING_UNDECIDED, 5)->reason, "machine-state");
        m.rows[0].flags.changed = m.rows[0].flags.unobserved = m.rows[0].flags.restless = false;
        m.rows[0].open_loop = true;
        FINDINGS *g = draw(&m);
        CHECK_STRING(nth(g, FINDING_UNDECIDED, 3)->reason, "open-loop");
        m.rows[0].few_messages = true;
        FINDINGS *stream = draw(&m);
        CHECK(!has_doubt(stream, "few-messages")); /* it is not ranked by a latency */
        m.rows[0].point.workload = WORKLOAD_PINGPONG;
        FINDINGS *pingpong = draw(&m);
        CHECK(says(of_reason(pingpong, "few-messages"), "1 of 2 rows has runs of fewer than 1000 latencies. "));
        CHECK(findings_bytes(f) > sizeof(*f));
}

/* Said of rows that are compared and have too few runs for it; not of others. */
static void test_unknown_correlation(void) {
        static const unsigned runs[] = {3, 4, 11, 12};
        for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", runs[i], 12);
                measure(&m, nearly, NULL, 0.01, 0);
                FINDINGS *f = draw(&m);
                CHECK_INT(has_doubt(f, "autocorrelation"), runs[i] >= 4 && runs[i] < 12);
        }
}

/* What is not known of a row's machine is said of rows that are compared; it is no doubt of what their pairs show. */
static void test_unknown_machine(void) {
        for (unsigned runs = 3; runs <= 4; runs++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", runs, 12);
                measure(&m, nearly, NULL, 0.01, 0);
                FINDINGS *known = draw(&m);
                CHECK(!has_doubt(known, "machine-unknown"));
                m.rows[1].unprobed = true;
                FINDINGS *f = draw(&m);
                CHECK_INT(has_doubt(f, "machine-unknown"), runs == 4);
                if (runs == 4)
                        CHECK(says(of_reason(f, "machine-unknown"), "1 of 2 rows has runs whose probes are missing, "));
        }
}

/* A host drifts, alike for all rows of a block: pairs are compared as before, and a single row's interval is
 * that which counts how alike its runs are, or there is none. */
static void test_neighbours_that_are_alike(void) {
        struct serial s;
        double values[60];
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 60, 12);
        measure(&m, faster_pipe, NULL, 0.002, 0);
        FINDINGS *still = draw(&m);
        CHECK(!has_doubt(still, "neighbours-alike"));
        for (size_t i = 0; i < 2 * m.blocks; i++)
                m.runs[i].values[FIGURE_THROUGHPUT] *= i % m.blocks / 10 % 2 ? 1.02 : 1; /* ten by ten */
        FINDINGS *f = draw(&m);
        CHECK(says(of_reason(f, "neighbours-alike"), "2 of 2 rows have runs that are like those before them. "));
        CHECK(claims(nth(f, FINDING_RANKING, 0)));
        for (size_t i = 0; i < m.blocks; i++)
                values[i] = m.rows[0].runs[i].values[FIGURE_THROUGHPUT];
        CHECK_INT(serial_judge(values, m.blocks, &s), 0);
        const struct finding_figure *of = figure(nth(f, FINDING_RANKING, 0), "throughput_bytes_per_second");
        CHECK(s.material && of && of->has_interval == s.interval.has_interval);
        CHECK(!of || (of->low == s.interval.low && of->high == s.interval.high && of->level == s.interval.level));
}

int main(void) {
        RUN(test_a_run_of_nothing);
        RUN(test_runs_that_were_added);
        RUN(test_runs_that_were_added_to_one_row);
        RUN(test_nothing_beside_one);
        RUN(test_a_cost_of_nothing);
        RUN(test_no_law_from_what_is_left);
        RUN(test_no_rate_of_a_round_trip);
        RUN(test_no_crossover_from_what_is_left);
        RUN(test_no_scaling_from_what_is_left);
        RUN(test_runs_that_decide_nothing);
        RUN(test_blind_comparisons);
        RUN(test_comparisons_are_counted_before);
        RUN(test_neighbours_of_few_runs);
        RUN(test_many_runs_that_are_no_pairs);
        RUN(test_missing_runs);
        RUN(test_failed_runs);
        RUN(test_runs_that_would_be_enough);
        RUN(test_too_few_runs);
        RUN(test_one_row_is_singular);
        RUN(test_a_row_alone);
        RUN(test_overlap);
        RUN(test_a_run_in_no_pair);
        RUN(test_refused_sends);
        RUN(test_disputed_figures);
        RUN(test_disputed_crossover);
        RUN(test_disputed_elsewhere);
        RUN(test_flags_are_counted);
        RUN(test_open_loop_words);
        RUN(test_many_rows);
        RUN(test_hopeless);
        RUN(test_what_is_missing);
        RUN(test_unknown_correlation);
        RUN(test_unknown_machine);
        RUN(test_neighbours_that_are_alike);
        return check_end();
}
