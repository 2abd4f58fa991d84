/* SPDX-License-Identifier: MIT */

/*
 * Findings of made data: what is known to be there is found, at counted rates, and what is not there is not claimed.
 */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/findings/findings.h"
#include "daemon/analysis/phrase.h"
#include "daemon/analysis/statistics/serial.h"
#include "schema/util.h"
#include "tests/unit/check.h"
#include "tests/unit/drawn.h"
#include "tests/unit/lanes.h"

#include <stdlib.h>

#define TRIALS 100u

/* ---- what is not there ---- */

static double false_answers(const char *spec, double drift, const char *what) {
        unsigned wrong = 0;
        MADE m;
        make(&m, spec, 8, 14);
        for (unsigned t = 0; t < 2 * TRIALS; t++) {
                bool any = false;
                measure(&m, alike, one, NOISE, drift);
                FINDINGS *f = draw(&m);
                for (size_t i = 0; i < f->n; i++)
                        any |= claims(&f->items[i]);
                wrong += any;
        }
        return sample_share(what, wrong, 2 * TRIALS);
}

static double faster_pipe(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : 1060;
}

/* A drift that all rows of a block share is taken out by pairs, and runs of no block make none. */
static void test_runs_of_no_block_are_no_pairs(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"message_size\": 4096}", 20, 14);
        measure(&m, faster_pipe, one, 0.01, 0.3);
        CHECK(claimed(&m) > 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].block = 0;
        CHECK_UINT(claimed(&m), 0);
}

static void test_no_difference(void) {
        static const char spec[] = "{\"transport\": [\"pipe\", \"fifo\", \"unix-stream\", \"tcp\"], \"message_size\": "
                                   "[64, 1024, 16384, 65536], \"engine\": [\"syscall\", \"io_uring\"], "
                                   "\"placement\": [\"same-node\", \"same-cpu\"]}";
        static const char threads[] = "{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8], \"message_size\": 4096}";
        static const struct {
                const char *spec;
                double drift;
                const char *what;
        } cases[] = {
                {threads, 0.02, "answers that claim a difference, 4 equal rows on a host that drifts"},
                {spec, 0, "the same, 64 rows, on one that does not drift"},
                {spec, 0.02, "the same, 64 rows"},
        };
        IN_LANES_OF_TRIALS(test_no_difference);
        /* 5 % is promised; 4.5 standard errors more for 200 trials */
        for (size_t k = 0; k < ELEMENTS(cases); k++)
                if (lanes_my_turn())
                        CHECK(false_answers(cases[k].spec, cases[k].drift, cases[k].what) <= 0.12);
}

/* Points that stand twice are one thing: their difference is reported as the noise floor, never as a ranking, and the
 * floor's interval covers it. */
static void test_equal_points(void) {
        static const char spec[] = "{\"points\": \"twice\", \"transport\": [\"pipe\", \"fifo\"], \"message_size\": "
                                   "[64, 4096], \"workload\": [\"stream\", \"pingpong\"]}";
        size_t floors = 0, covered = 0;
        MADE m;
        make(&m, spec, 8, 13);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, alike, one, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                for (size_t i = 0; i < f->n; i++) {
                        CHECK(f->items[i].kind == FINDING_NOISE_FLOOR || f->items[i].axis != AXIS_INSTANCE);
                        if (f->items[i].kind != FINDING_NOISE_FLOOR)
                                continue;
                        const struct finding_figure *ratio = figure(&f->items[i], "ratio");
                        floors++;
                        covered += ratio && ratio->low <= 1 && 1 <= ratio->high;
                        CHECK_UINT(f->items[i].n_rows, 2);
                }
        }
        CHECK_UINT(floors, TRIALS * 12); /* 8 points: throughput of 4, both percentiles of 4 */
        CHECK(sample_share("intervals of a noise floor that cover no difference", (unsigned) covered,
                           (unsigned) floors) >= 0.94);
        CHECK(false_answers(spec, 0.02, "answers that claim a difference, 8 points that stand twice") <= 0.12);
}

static double second_slower(const struct point *p) {
        return p->instance == 2 ? 1100 : 1000;
}

static void test_unequal_instances(void) {
        MADE m;
        make(&m, "{\"points\": \"twice\", \"transport\": \"pipe\"}", 10, 13);
        measure(&m, second_slower, one, 0.01, 0);
        FINDINGS *f = draw(&m);
        const struct finding *floor = nth(f, FINDING_NOISE_FLOOR, 0);
        CHECK(says(floor, "stream over pipe, 4 KiB: equal points measured twice differ by -") &&
              says(floor, " %] in throughput: ") && says(floor, "more than the scatter of their runs explains"));
        CHECK(!figure(floor, "noise_floor"));
        measure(&m, one, one, 0.01, 0);
        FINDINGS *even = draw(&m);
        floor = nth(even, FINDING_NOISE_FLOOR, 0);
        CHECK(says(floor, "between other points of this experiment may be noise"));
        const struct finding_figure *least = figure(floor, "noise_floor");
        CHECK(least && least->value > 0 && least->value < 0.03);
}

/* ---- what is there ---- */

static double kneed(const struct point *p) {
        return 1000 + 0.25 * (double) p->message_size;
}

/* All of the time is for the bytes, whatever the size. */
static double proportional(const struct point *p) {
        return 0.25 * (double) p->message_size;
}

/* No line, nor four pieces of one. */
static double jagged(const struct point *p) {
        return (p->message_size == 256 || p->message_size == 4096 ? 9 : 1) * (1000 + 0.01 * (double) p->message_size);
}

/* Two laws: the knee of the first would be at 20000 bytes, where the second holds, which has its own at 100000. */
static double broken(const struct point *p) {
        double size = (double) p->message_size;
        return size <= 4096 ? 1000 + 0.05 * size : 6000 + 0.06 * size;
}

static void test_knee_of_another_piece(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"message_size\": [64, 256, 1024, 4096, 16384, 65536, 262144]}", 8, 1);
        measure(&m, broken, NULL, 0.001, 0);
        FINDINGS *f = draw(&m);
        const struct finding_figure *knee = figure(nth(f, FINDING_KNEE, 0), "knee");
        CHECK(knee && knee->low < 100000 && 100000 < knee->high && knee->low > 90000);
        CHECK(!nth(f, FINDING_KNEE, 1));
}

static double gathered_faster(const struct point *p) {
        return (1000 + 0.25 * (double) p->message_size) * (p->copy_mode == COPY_ONE ? 0.92 : 1);
}

/* None of 7 pairs is decided by its signs among many comparisons: the runs decide, but nothing that the pairs' interval
 * does not exclude the contrary of. */
static void test_no_bound_beyond_one(void) {
        unsigned costs = 0, beyond = 0;
        MADE m;
        make(&m,
             "{\"transport\": \"pipe\", \"message_size\": [64, 512, 4096, 32768],"
             " \"copy_mode\": [\"two-copy\", \"one-copy\"]}",
             7, 1);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, gathered_faster, NULL, 0.045, 0);
                FINDINGS *f = draw(&m);
                for (size_t i = 0; nth(f, FINDING_COST, i); i++, costs++)
                        beyond += says(nth(f, FINDING_COST, i), " [-");
        }
        printf("     of %u costs, %u with a bound beyond 1\n", costs, beyond);
        CHECK(costs > 0);
        CHECK_UINT(beyond, 0);
}

static void test_knee(void) {
        unsigned found = 0;
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"message_size\": [64, 256, 1024, 4096, 16384, 65536]}", 8, 1);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, kneed, NULL, NOISE, 0);
                FINDINGS *f = draw(&m);
                const struct finding_figure *knee = figure(nth(f, FINDING_KNEE, 0), "knee");
                found += knee && knee->low <= 4000 && 4000 <= knee->high && knee->high < 6000;
        }
        CHECK(sample_share("knees found, the true one within the interval", found, TRIALS) >= 0.9);
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_KNEE, 0), "half of the time is for the bytes"));
        CHECK(figure(nth(f, FINDING_KNEE, 0), "residual")->value < 2 * NOISE);
        CHECK(figure(nth(f, FINDING_KNEE, 0), "left_out_error"));
        CHECK(says(nth(f, FINDING_BEST_SIZE, 0), "64 KiB"));
        CHECK(!nth(f, FINDING_CLIFF, 0));
        CHECK(!has_doubt(f, "fit"));
        measure(&m, proportional, NULL, NOISE, 0);
        FINDINGS *flat = draw(&m);
        CHECK(!nth(flat, FINDING_KNEE, 0));
        const struct finding *outside = of_reason(flat, "fit");
        CHECK(says(outside, ". In it it is not between the sizes that ran") && !strstr(outside->sentence, "lines"));
        measure(&m, jagged, NULL, NOISE, 0);
        FINDINGS *off = draw(&m);
        CHECK(!nth(off, FINDING_KNEE, 0));
        const struct finding *crooked = of_reason(off, "fit");
        CHECK(says(crooked, ". In it no straight lines fit the time per message") &&
              !strstr(crooked->sentence, "between"));
}

#define SIZES "{\"transport\": \"pipe\", \"message_size\": [1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072]}"

/* Each size has 3 % more throughput than the one before: neighbours are alike, and the ends are not. */
static double sloping(const struct point *p) {
        return (double) p->message_size / pow(1.03, log2((double) p->message_size));
}

static void test_best_size(void) {
        unsigned ends = 0, best_is_less = 0;
        MADE m;
        make(&m, SIZES, 8, 21);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, sloping, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *best = nth(f, FINDING_BEST_SIZE, 0);
                const char *less = best ? strstr(best->sentence, "it is less with ") : NULL;
                ends += less && strstr(less, "1 KiB") == less + strlen("it is less with ");
                best_is_less += less && memmem(less, strcspn(less, ";"), "128 KiB", strlen("128 KiB"));
        }
        CHECK(sample_share("best sizes found that are better than the far end", ends, TRIALS) >= 0.95);
        CHECK(sample_share("best sizes called less than another", best_is_less, TRIALS) <= 0.05);
        measure(&m, alike, NULL, 0.002, 0);
        FINDINGS *same = draw(&m);
        const struct finding *all = nth(same, FINDING_BEST_SIZE, 0);
        CHECK(says(all, "; within 5 % of it are ") && !strstr(all->sentence, "less"));
        const struct finding_figure *from = figure(all, "range_from"), *to = figure(all, "range_to");
        CHECK(from && from->value == 1024 && to && to->value == 131072);
        CHECK(false_answers(SIZES, 0, "answers that claim a difference, 8 equal sizes") <= 0.12);
        CHECK(false_answers(SIZES, 0.02, "the same on a host that drifts") <= 0.12);
}

/* A pipe overtakes a socket at 4000 bytes. */
static double crossing(const struct point *p) {
        double size = (double) p->message_size;
        return p->transport == TRANSPORT_PIPE ? 2000 + 0.25 * size : 1000 + 0.5 * size;
}

static void test_crossover(void) {
        unsigned found = 0;
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"unix-stream\"], \"workload\": \"pingpong\", "
             "\"message_size\": [64, 256, 1024, 4096, 16384, 65536, 262144]}",
             10, 2);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, crossing, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding_figure *at = figure(nth(f, FINDING_CROSSOVER, 0), "crossover");
                found += at && !nth(f, FINDING_CROSSOVER, 1) && at->low <= 4000 && 4000 <= at->high && at->low >= 256 &&
                         at->high <= 65536 && fabs(at->value - 4000) < 1500;
        }
        CHECK(sample_share("crossovers found, the true one within the interval", found, TRIALS) >= 0.95);
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_CROSSOVER, 0), "pipe overtakes unix-stream"));
}

static double same_for_all(const struct point *p) {
        return 1000 + 0.25 * (double) p->message_size;
}

/* The rest of a block that a crash split has a later number than the blocks after it. */
static void test_pairs_are_of_a_block_in_any_order(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", 8, 14);
        measure(&m, same_for_all, NULL, 0.001, 0.2);
        struct findings_run *runs = &m.runs[m.blocks], first = runs[0];
        for (size_t i = 0; i < m.blocks; i++)
                runs[i].values[FIGURE_THROUGHPUT] *= 1.1;
        first.values[FIGURE_THROUGHPUT] *= 1.1;
        memmove(runs, runs + 1, (m.blocks - 1) * sizeof(*runs));
        runs[m.blocks - 1] = first;
        FINDINGS *f = draw(&m);
        const struct finding *ranking = nth(f, FINDING_RANKING, 0);
        CHECK(ranking != NULL);
        const struct finding_figure *ratio = figure(ranking, "next_over_this");
        CHECK(ratio && ratio->has_interval && ratio->low > 0.9 && ratio->high < 0.92);
}

/* The medians change places, and the scatter hides on which side which is better: a doubt of its own. */
static void test_crossover_in_doubt(void) {
        unsigned named = 0, with_doubt = 0, claimed_of_equals = 0;
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"unix-stream\"], \"workload\": \"pingpong\", "
             "\"message_size\": [2048, 3072, 5120, 8192]}",
             8, 31);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, crossing, NULL, 0.3, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *u = of_reason(f, "crossover");
                named += nth(f, FINDING_CROSSOVER, 0) != NULL;
                if (!u)
                        continue;
                with_doubt++;
                CHECK_UINT(u->n_rows, 8);
                CHECK(says(u, "overtakes another in median round trip") && says(u, "pipe and unix-stream at about "));
                CHECK(u->runs_needed == 0 || strstr(u->sentence, "would decide") ||
                      strstr(u->sentence, "a quieter machine"));
                const struct finding_figure *at = figure(u, "medians_cross");
                CHECK(at && at->value > 2048 && at->value < 8192 && !at->has_interval);
        }
        CHECK(sample_share("undecided crossovers with their doubt", with_doubt, TRIALS) >= 0.7);
        CHECK(named <= 5);
        for (unsigned t = 0; t < TRIALS; t++) { /* equals, known to be: nothing crosses, and nothing is in doubt */
                measure(&m, same_for_all, NULL, 0.002, 0);
                FINDINGS *f = draw(&m);
                claimed_of_equals += of_reason(f, "crossover") != NULL;
        }
        CHECK(sample_share("doubts about the crossover of equals", claimed_of_equals, TRIALS) <= 0.05);
        measure(&m, crossing, NULL, 0.002, 0);
        FINDINGS *sure = draw(&m);
        CHECK(nth(sure, FINDING_CROSSOVER, 0) && !of_reason(sure, "crossover"));
}

/* Where another axis varies, too, the doubt names the series in which its medians change places. */
static void test_crossover_in_doubt_of_which_series(void) {
        unsigned with_doubt = 0;
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"unix-stream\"], \"workload\": \"pingpong\", \"threads\": [1, 4], "
             "\"placement\": [\"same-cpu\", \"default\"], \"message_size\": [2048, 3072, 5120, 8192]}",
             8, 31);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, crossing, NULL, 0.3, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *u = of_reason(f, "crossover");
                if (!u || u->axis != AXIS_TRANSPORT)
                        continue;
                bool both = u->n_rows > 8;
                const struct finding_figure *at = figure(u, "medians_cross");
                with_doubt++;
                CHECK(says(u, both ? "pipe and unix-stream (threads " : "pipe and unix-stream at about "));
                CHECK(at && !strstr(at->of, " (threads ") == !both);
                CHECK(!both || strstr(u->sentence, ", same-cpu) at about ") || strstr(u->sentence, ", default) at "));
        }
        CHECK(with_doubt > TRIALS / 4);
}

/* What goes into a full pipe waits for the reader. */
static double falling(const struct point *p) {
        double size = (double) p->message_size;
        return (500 + 0.2 * size) * (size >= 65536 ? 3 : 1);
}

static void test_cliff(void) {
        unsigned found = 0;
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"message_size\": [1024, 4096, 16384, 32768, 65536]}", 8, 3);
        for (size_t i = 0; i < m.n_rows; i++) {
                m.rows[i].limits[0] = (struct findings_limit){"the pipe's capacity", 65536};
                m.rows[i].n_limits = 1;
        }
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, falling, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *cliff = nth(f, FINDING_CLIFF, 0);
                found += cliff && !nth(f, FINDING_CLIFF, 1) && cliff->n_rows == 2 && cliff->rows[0] == 3 &&
                         strstr(cliff->sentence, "stand between these sizes: the pipe's capacity (64 KiB)");
        }
        CHECK(sample_share("cliffs found where they stand, and named", found, TRIALS) >= 0.95);
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_CLIFF, 0), "from 32 KiB to 64 KiB"));
        CHECK(figure(nth(f, FINDING_CLIFF, 0), "ratio")->has_interval);
        CHECK(says(nth(f, FINDING_BEST_SIZE, 0), "32 KiB"));
        for (size_t i = 0; i < m.n_rows; i++) /* what just fits is the smaller size itself */
                m.rows[i].limits[0] = (struct findings_limit){"the L1 cache", 32768};
        measure(&m, falling, NULL, NOISE, 0.02);
        FINDINGS *again = draw(&m);
        CHECK(says(nth(again, FINDING_CLIFF, 0), "stand between these sizes: the L1 cache (32 KiB)"));
}

/* The universal scalability law with its peak at 4.4 threads. */
static double collapsing(const struct point *p) {
        double n = p->threads;
        return 1000 * (1 + 0.03 * (n - 1) + 0.05 * n * (n - 1)) / n;
}

static void test_scaling(void) {
        unsigned found = 0, fitted = 0;
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8, 16], \"message_size\": 4096}", 8, 4);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, collapsing, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *s = nth(f, FINDING_SCALING, 0);
                const struct finding_figure *peak = figure(s, "peak"), *law_peak = figure(s, "fitted_peak");
                found += s && peak->value == 4 && strstr(s->sentence, "rises from") && strstr(s->sentence, "falls to");
                fitted += law_peak && fabs(law_peak->value - sqrt(0.97 / 0.05)) < 0.5;
        }
        CHECK(sample_share("collapses found behind the true peak", found, TRIALS) >= 0.95);
        CHECK(sample_share("peaks of the law within half a thread", fitted, TRIALS) >= 0.95);
}

/* The law with its peak at 31 threads, far beyond those that are measured. */
static double rising(const struct point *p) {
        double n = p->threads;
        return 1000 * (1 + 0.03 * (n - 1) + 0.001 * n * (n - 1)) / n;
}

/* As much with two threads as with more. */
static double saturated(const struct point *p) {
        return p->threads == 1 ? 2000 : 1000;
}

/* A hole in the middle, which no law has. */
static double with_a_hole(const struct point *p) {
        return p->threads == 4 ? 1600 : 1000.0 / p->threads;
}

static void test_a_law_that_does_not_fit(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8, 16], \"message_size\": 4096}", 8, 4);
        measure(&m, with_a_hole, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct finding *s = nth(f, FINDING_SCALING, 0);
        CHECK(says(s, "throughput rises from ") &&
              says(s, " The universal scalability law does not fit: it is off by "));
        CHECK(figure(s, "residual") && figure(s, "residual")->value > 0.2 && !figure(s, "sigma"));
}

static void test_the_law_of_scaling(void) {
        MADE m = {0}, few = {0};
        make(&m, "{\"transport\": \"tcp\", \"threads\": [1, 2, 4, 8, 16], \"message_size\": 4096}", 8, 4);
        measure(&m, collapsing, NULL, NOISE, 0);
        FINDINGS *falls = draw(&m);
        const struct finding *s = nth(falls, FINDING_SCALING, 0);
        CHECK(says(s, " The universal scalability law fits with σ = ") && says(s, " without one of the counts)"));
        CHECK(says(s, "; its peak is at 4."));
        CHECK(figure(s, "kappa") && fabs(figure(s, "kappa")->value - 0.05) < 0.01);
        static const char *const ranges[] = {"sigma", "kappa", "fitted_peak"};
        for (size_t i = 0; i < ELEMENTS(ranges); i++) { /* of all fits, at no known level */
                const struct finding_figure *one = figure(s, ranges[i]);
                CHECK(one && one->has_interval && one->level == 0);
                CHECK(one->low <= one->value && one->value <= one->high && one->high < 6);
        }
        measure(&m, rising, NULL, NOISE, 0);
        FINDINGS *rises = draw(&m);
        s = nth(rises, FINDING_SCALING, 0);
        CHECK(says(s, "; no more threads were measured. The universal"));
        CHECK(says(s,
                   "; by it throughput still rises at 16 threads, the most that were measured: no peak among the 5 "));
        CHECK(!figure(s, "fitted_peak") && !strstr(s->sentence, "peak is at") && !strstr(s->sentence, "no fall"));
        /* the three parameters of the law fit any three counts */
        make(&few, "{\"transport\": \"tcp\", \"threads\": [1, 2, 4], \"message_size\": 4096}", 8, 4);
        measure(&few, rising, NULL, NOISE, 0);
        FINDINGS *three_counts = draw(&few);
        s = nth(three_counts, FINDING_SCALING, 0);
        CHECK(says(s, "throughput rises from ") && !strstr(s->sentence, "universal") && !figure(s, "sigma"));
}

static void test_no_fall_and_no_more_threads(void) {
        unsigned last = 0, behind = 0;
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"threads\": [1, 2, 4], \"message_size\": 4096}", 8, 5);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, saturated, NULL, NOISE, 0);
                FINDINGS *f = draw(&m);
                const struct finding *s = nth(f, FINDING_SCALING, 0);
                if (!s || strstr(s->sentence, "falls"))
                        continue;
                const struct finding_figure *peak = figure(s, "peak");
                const bool ends = peak && peak->value == 4;
                ends ? last++ : behind++;
                CHECK(says(s, ends ? "; no more threads were measured." : "; no fall behind it was found."));
        }
        CHECK(last > 0 && behind > 0);
}

static void test_ranking(void) {
        MADE m;
        make(&m, "{\"transport\": [\"tcp\", \"pipe\", \"fifo\", \"unix-stream\"], \"fields\": 4}", 8, 5);
        measure(&m, three, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct finding *r = nth(f, FINDING_RANKING, 0);
        CHECK(says(r, "stream, 4 KiB: throughput by transport, best first, each compared with the next: "));
        CHECK(says(r, ", then unix-stream (3."));
        CHECK(says(r, ", then tcp (2.0"));
        const struct finding_figure *slowest = NULL;
        for (size_t i = 0; i < r->n_figures; i++)
                if (strcmp(r->figures[i].of, "tcp") == 0 && strcmp(r->figures[i].unit, "bytes/s") == 0)
                        slowest = &r->figures[i];
        CHECK(slowest && slowest->has_interval);
        char value[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX], sought[4 * PHRASE_MAX];
        phrase_value(slowest->value, "bytes/s", value);
        phrase_value(slowest->low, "bytes/s", low);
        phrase_value(slowest->high, "bytes/s", high);
        (void) snprintf(sought, sizeof(sought), ", then tcp (%s [%s, %s]).", value, low, high);
        CHECK(says(r, sought));
        CHECK(says(r, " and "));
        CHECK(says(r, "Their settings are unlike: fields 4 is of tcp alone."));
        CHECK(r->n_rows == 4 && r->n_runs == 32 && r->confidence == CONFIDENCE_HIGH && r->axis == AXIS_TRANSPORT);
        CHECK(!nth(f, FINDING_RANKING, 1));
        for (size_t i = 0; i < 4; i++)
                m.rows[i].in_force.buffer_bytes = 65536;
        FINDINGS *alike = draw(&m);
        CHECK(says(nth(alike, FINDING_RANKING, 0), "Their settings are unlike: fields 4 is of tcp alone."));
        m.rows[1].in_force.buffer_bytes = 1 << 20;
        m.rows[1].in_force.gather_ns = 8192;
        FINDINGS *unlike = draw(&m);
        CHECK(says(nth(unlike, FINDING_RANKING, 0), "; buffers of "));
        CHECK(says(nth(unlike, FINDING_RANKING, 0), "1 MiB (pipe)"));
        CHECK(says(nth(unlike, FINDING_RANKING, 0), "unix-stream, tcp)"));
        CHECK(says(nth(unlike, FINDING_RANKING, 0), "; pipe lets messages gather."));
        m.rows[1].in_force.buffer_bytes = 65536;
        m.rows[1].in_force.gather_ns = 0;
        m.rows[0].flags.noisy = true;
        FINDINGS *g = draw(&m);
        CHECK_INT(nth(g, FINDING_RANKING, 0)->confidence, CONFIDENCE_REDUCED);
        CHECK(has_doubt(g, "noise") && !has_doubt(unlike, "noise"));
        CHECK(says(of_reason(g, "noise"),
                   "1 of 4 rows has runs with noise flags. Conclusions that rest on them have "));
        m.rows[0].flags.noisy = false;
        m.rows[0].flags.changed = true;
        FINDINGS *h = draw(&m);
        CHECK_INT(nth(h, FINDING_RANKING, 0)->confidence, CONFIDENCE_REDUCED);
        CHECK(has_doubt(h, "environment-changed") && !has_doubt(g, "environment-changed"));
}

/* Those that differ in what both have are not otherwise equal. */
static double by_wait(const struct point *p) {
        return p->wait == WAIT_SPIN ? 100 : p->transport == TRANSPORT_PIPE ? 1000 : 500;
}

/* Seven runs are too few for the number of comparisons, even of ten times the speed. The finding states that, and not
 * that the rows cannot be distinguished. */
static void test_too_few_runs_are_no_sign_of_equality(void) {
        MADE m;
        make(&m,
             "{\"transport\": \"shm-posix\", \"wait\": [\"block\", \"spin\", \"hybrid\"], \"message_size\": "
             "[8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184]}",
             7, 17);
        measure(&m, by_wait, NULL, 0.002, 0);
        FINDINGS *f = draw(&m);
        CHECK(compare_runs_least(false, f->n_tests) > 7);
        const struct finding *r = nth(f, FINDING_RANKING, 0);
        CHECK(says(r, "best first: spin (") &&
              says(r, "not ranked: no difference would have been seen by so few runs"));
        CHECK(r && !strstr(r->sentence, "distinguished"));
}

/* In most pairs the one with the lower median is the better one: neither is ranked, and the runs are not too few. */
static void test_pairs_against_the_medians(void) {
        enum { PAIRS = 12 };
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"]}", PAIRS, 18);
        measure(&m, one, NULL, NOISE, 0);
        for (size_t i = 0; i < PAIRS; i++) {
                const double x = (i < 5 ? 100 : 200) + 0.01 * (double) i;
                m.runs[i].values[FIGURE_THROUGHPUT] = x;
                m.runs[PAIRS + i].values[FIGURE_THROUGHPUT] = x * (i == 5 || i == 6 ? 0.9 : 1.5);
        }
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_RANKING, 0), "), which are not ranked: their medians and the pairs of their runs "
                                               "disagree."));
}

/* Settings in force, whichever row is the first: one that is not known, or has a sibling of another size, hides none.
 */
static void test_settings_in_force_that_differ(void) {
        enum { PIPE, FIFO, TCP, SHM, N_ROWS };
        static const struct {
                double buffers[N_ROWS], pages[N_ROWS], gathers[N_ROWS], pieces[N_ROWS];
                bool stamps[N_ROWS];
                const char *wanted; /* NULL: they are alike */
        } cases[] = {
                {.buffers = {65536, 65536, 65536, 65536}, .pages = {[SHM] = 4096}, .wanted = NULL},
                {.buffers = {0, 65536, 1048576, 65536}, .wanted = "buffers of "},
                {.pages = {[TCP] = 4096, [SHM] = 2097152}, .wanted = "pages of "},
                {.pages = {4096, 4096, 4096, -1}, .wanted = "several sizes (shm-posix)"},
                {.gathers = {1000, 1000, 1000, 2000}, .wanted = "gathering for "},
                {.gathers = {1000, 1000, 1000, 1000}, .wanted = NULL},
                {.stamps = {[TCP] = true}, .wanted = "tcp writes a time into each message."},
                {.stamps = {true, true, true, true}, .wanted = NULL},
                {.pieces = {[SHM] = 16}, .wanted = "shm-posix sends a message in pieces of 16 B"},
                {.pieces = {16, 16, 16, 16}, .wanted = NULL},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\", \"shm-posix\"]}", 8, 5);
                measure(&m, three, NULL, NOISE, 0);
                for (size_t k = 0; k < N_ROWS; k++) {
                        m.rows[k].in_force.buffer_bytes = cases[i].buffers[k];
                        m.rows[k].in_force.page_bytes = cases[i].pages[k];
                        m.rows[k].in_force.gather_ns = cases[i].gathers[k];
                        m.rows[k].in_force.chunk_bytes = cases[i].pieces[k];
                        m.rows[k].in_force.stamped = cases[i].stamps[k];
                }
                FINDINGS *f = draw(&m);
                const struct finding *r = nth(f, FINDING_RANKING, 0);
                const char *sentence = r ? r->sentence : "no ranking", *unlike = strstr(sentence, "unlike");
                if (!r || (cases[i].wanted ? !unlike || !strstr(unlike, cases[i].wanted) : unlike != NULL))
                        CHECK_FAIL("case %zu: %s", i, sentence);
        }
}

/* A crossover has each transport twice: a buffer that grew in between differs from the other transport's, and from none
 * of the first row's. */
static void test_buffers_on_both_sides_of_a_crossover(void) {
        static const enum transport growing[] = {TRANSPORT_PIPE, TRANSPORT_UNIX_STREAM, TRANSPORT_COUNT};
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"unix-stream\"], \"workload\": \"pingpong\", "
             "\"message_size\": [256, 1024, 16384, 65536]}",
             10, 2);
        measure(&m, crossing, NULL, 0.002, 0);
        for (size_t i = 0; i < sizeof(growing) / sizeof(growing[0]); i++) {
                for (size_t k = 0; k < 8; k++) {
                        const struct point *p = &m.rows[k].point;
                        m.rows[k].in_force.buffer_bytes =
                                p->transport == growing[i] && p->message_size > 1024 ? 1048576 : 65536;
                }
                FINDINGS *f = draw(&m);
                const struct finding *c = nth(f, FINDING_CROSSOVER, 0);
                CHECK(c && (strstr(c->sentence, "buffers of ") != NULL) == (growing[i] != TRANSPORT_COUNT));
        }
}

static double ring_time(const struct point *p) {
        return p->engine == ENGINE_IO_URING ? 800 : 1000;
}

static double ring_cpu(const struct point *p) {
        return p->engine == ENGINE_IO_URING ? 1500 : 1000;
}

static double by_hand(const struct point *p) {
        return p->placement.kind == PLACEMENT_EXPLICIT ? 800 : 1000;
}

/* Messages that carry the time of their sending have a latency, which ranks them; in an open loop it is all that does.
 */
static void test_latency_of_streams(void) {
        MADE m;
        make(&m, "{\"transport\": [\"tcp\", \"pipe\"], \"engine\": [\"syscall\", \"io_uring\"]}", 8, 7);
        measure(&m, ring_time, ring_cpu, NOISE, 0.02);
        FINDINGS *plain = draw(&m);
        CHECK(says(nth(plain, FINDING_COST, 0), "more throughput"));
        for (size_t i = 0; i < plain->n; i++)
                CHECK(!strstr(plain->items[i].sentence, "one-way"));
        stamp(&m);
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_COST, 0), "more throughput"));
        size_t n = 0;
        for (size_t i = 0; nth(f, FINDING_RANKING, i); i++)
                n += strstr(nth(f, FINDING_RANKING, i)->sentence, " one-way latency by ") != NULL;
        printf("     rankings by latency: %zu\n", n);
        for (size_t i = 0; i < m.n_rows; i++)
                m.rows[i].open_loop = true;
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].values[FIGURE_THROUGHPUT] = m.runs[i].values[FIGURE_MESSAGES] = NAN;
        FINDINGS *open = draw(&m);
        CHECK(says(nth(open, FINDING_COST, 0), "io_uring instead of syscall brings "));
        CHECK(says(nth(open, FINDING_COST, 0), " % shorter median one-way latency ["));
        CHECK(says(nth(open, FINDING_COST, 0), "more CPU time per message"));
        CHECK(has_doubt(open, "open-loop"));
        for (size_t i = 0; i < open->n; i++)
                CHECK(!strstr(open->items[i].sentence, " more throughput") &&
                      !strstr(open->items[i].sentence, "round trip"));
}

/* At the smaller size the pairs and the medians disagree on which is better: the crossover lies between both sizes all
 * the same, as by the pairs it does. */
static void test_a_crossover_within_its_interval(void) {
        enum { PAIRS = 12 };
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"message_size\": [64, 1024, 4096]}", PAIRS, 18);
        measure(&m, one, NULL, 0.001, 0);
        for (size_t row = 0; row < m.n_rows; row++)
                for (size_t i = 0; i < PAIRS; i++) {
                        const bool fifo = m.rows[row].point.transport == TRANSPORT_FIFO;
                        const double x = (i < 5 ? 100 : 200) + 0.01 * (double) i;
                        double *value = &m.runs[row * PAIRS + i].values[FIGURE_THROUGHPUT];
                        if (m.rows[row].point.message_size == 64)
                                *value = !fifo ? x : x * (i == 5 || i == 6 ? 0.9 : 1.5);
                        else
                                *value *= !fifo ? 1 : m.rows[row].point.message_size == 1024 ? 0.5 : 1.5;
                }
        FINDINGS *f = draw(&m);
        const struct finding *c = nth(f, FINDING_CROSSOVER, 0);
        CHECK(says(c, "pipe overtakes fifo in throughput between 64 B and 1 KiB"));
        for (size_t i = 0; i < 2; i++) {
                const struct finding_figure *at = figure(nth(f, FINDING_CROSSOVER, i), "crossover");
                CHECK(at && at->low <= at->value && at->value <= at->high);
        }
}

#define BY_HAND(a, b) "{\"sender\": {\"cpu\": " a "}, \"receiver\": {\"cpu\": " b "}}"

/* Where the ends stand is given by hand: what else is chosen has its cost, and placements are ranked. */
static void test_cost_of_placements_by_hand(void) {
        MADE m = {0}, places = {0};
        make(&m,
             "{\"transport\": \"pipe\", \"engine\": [\"syscall\", \"io_uring\"], \"placement\": " BY_HAND("0", "1") "}",
             8, 7);
        measure(&m, ring_time, NULL, NOISE, 0.02);
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_COST, 0), "io_uring instead of syscall brings 2"));
        CHECK(!nth(f, FINDING_RANKING, 0));
        make(&places, "{\"transport\": \"pipe\", \"placement\": [\"same-node\", " BY_HAND("0", "1") "]}", 8, 7);
        measure(&places, by_hand, NULL, NOISE, 0.02);
        FINDINGS *g = draw(&places);
        CHECK(!nth(g, FINDING_COST, 0) && says(nth(g, FINDING_RANKING, 0), "throughput by placement, best first: "));
}

static void test_unlike_rows_are_kept_apart(void) {
        MADE m;
        make(&m,
             "{\"transport\": [\"pipe\", \"shm-posix\"], \"wait\": [\"block\", \"spin\"], \"workload\": \"pingpong\"}",
             8, 6);
        measure(&m, by_wait, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct finding *r = nth(f, FINDING_RANKING, 0);
        CHECK(says(r, "shm-posix (500 ns), then pipe") || says(r, "shm-posix (50") || says(r, "shm-posix (49"));
        CHECK(!strstr(r->sentence, "unlike")); /* to block is what a pipe does, too */
        CHECK_UINT(r->n_rows, 2);
        CHECK(says(nth(f, FINDING_COST, 0), "spin instead of block brings an 80 "));
        CHECK(says(nth(f, FINDING_COST, 0), " % shorter median round trip ["));
}

static void test_cost(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"engine\": [\"syscall\", \"io_uring\"]}", 8, 7);
        measure(&m, ring_time, ring_cpu, NOISE, 0.02);
        FINDINGS *f = draw(&m);
        const struct finding *c = nth(f, FINDING_COST, 0);
        CHECK(says(c, "io_uring instead of syscall brings 2"));
        CHECK(says(c, "more throughput ["));
        CHECK(says(c, " and costs "));
        CHECK(says(c, "more CPU time per message ["));
        CHECK(c->confidence == CONFIDENCE_HIGH && c->n_rows == 2);
        CHECK(!nth(f, FINDING_RANKING, 0));
}

static double one_copy_time(const struct point *p) {
        return p->copy_mode == COPY_ONE ? 800 : 1000;
}

static void test_the_call_of_a_copy_mode(void) {
        static const struct {
                const char *transport, *call;
        } cases[] = {
                {"fifo", "(writev)"},
                {"unix-seqpacket", "(sendmsg)"},
                {"tcp", "(sendmsg)"},
                {"process-vm", "(process_vm_writev)"},
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                MADE m;
                char spec[128], words[64];
                (void) snprintf(spec, sizeof(spec),
                                "{\"transport\": \"%s\", \"copy_mode\": [\"two-copy\", \"one-copy\"]}",
                                cases[i].transport);
                (void) snprintf(words, sizeof(words), "one-copy %s instead of two-copy brings ", cases[i].call);
                make(&m, spec, 8, 7);
                measure(&m, one_copy_time, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                CHECK(says(nth(f, FINDING_COST, 0), words));
        }
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++) { /* every row with such a copy mode has a call */
                const struct transport_term *row = &transport_terms[t];
                CHECK(!row->one_copy_call == !(row->copy_modes & 1u << COPY_ONE));
                CHECK(!row->zero_copy_call == (row->zero_copy == ZERO_COPY_NONE));
        }
}

static void test_cost_in_counts(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"message_size\": 65536, \"copy_mode\": [\"two-copy\", \"zero-copy\"]}", 8,
             7);
        measure(&m, ring_time, ring_cpu, NOISE, 0.02);
        FINDINGS *without = draw(&m);
        const struct finding *u = of_reason(without, "no-counters");
        CHECK(says(u, "in cycles and cache misses is not known for 2 rows: this machine has no such counter."));
        CHECK(u && u->n_rows == 2 && u->confidence == CONFIDENCE_NONE);
        CHECK(!strstr(nth(without, FINDING_COST, 0)->sentence, "cycles"));
        count(&m);
        FINDINGS *with = draw(&m);
        const struct finding *c = nth(with, FINDING_COST, 0);
        CHECK(says(c, "zero-copy (MSG_ZEROCOPY) instead of two-copy "));
        CHECK(says(c, ", brings ") && says(c, " % fewer cycles per byte ["));
        CHECK(says(c, " and costs ") && says(c, " % more misses of the last cache per message ["));
        CHECK(figure(c, "cycles_per_byte") && figure(c, "llc_misses_per_message"));
        CHECK(!has_doubt(with, "no-counters"));
}

static double by_placement(const struct point *p) {
        return p->placement.kind == PLACEMENT_SAME_CPU ? 1000 : 2000;
}

/* Two values without the usual one are ranked. */
static void test_two_beside_the_usual(void) {
        MADE m;
        make(&m, "{\"transport\": \"pipe\", \"placement\": [\"same-cpu\", \"cross-node\"]}", 8, 7);
        measure(&m, by_placement, NULL, NOISE, 0.02);
        FINDINGS *f = draw(&m);
        CHECK(!nth(f, FINDING_COST, 0));
        CHECK(says(nth(f, FINDING_RANKING, 0), "throughput by placement, best first: same-cpu ("));
}

/* ---- the rest ---- */

static void test_run_ids(void) {
        MADE m = {0}, many = {0};
        make(&m, "{\"transport\": [\"pipe\", \"tcp\"]}", 8, 21);
        measure(&m, three, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct finding *r = nth(f, FINDING_RANKING, 0);
        CHECK(r && r->n_runs == 16 && r->n_run_ids == 16);
        for (size_t i = 0; i < 16; i++)
                CHECK(r->run_ids[i] == m.rows[r->rows[i / 8]].runs[i % 8].id);
        CHECK(findings_bytes(f) > sizeof(*f) + f->n * sizeof(*f->items) + 16 * sizeof(*r->run_ids));
        make(&many, "{\"transport\": [\"pipe\", \"tcp\"]}", FINDINGS_RUN_IDS_MAX / 2 + 1, 21);
        measure(&many, three, NULL, NOISE, 0);
        FINDINGS *g = draw(&many);
        r = nth(g, FINDING_RANKING, 0);
        CHECK(r && r->n_runs == FINDINGS_RUN_IDS_MAX + 2 && !r->run_ids && r->n_run_ids == 0);
}

static void test_nothing(void) {
        struct findings *f = NULL;
        CHECK_INT(findings_draw(&(struct findings_input){.rows = NULL}, &f), 0);
        CHECK_UINT(f->n, 0);
        findings_free(f);
        findings_free(NULL);
}

static double touched(const struct point *p) {
        return 1000 * p->processes + (double) p->working_set;
}

/* Sizes have a unit, and a setting is named in words. */
static void test_settings_in_words(void) {
        MADE m;
        make(&m, "{\"workload\": \"context-switch\", \"processes\": [2, 8], \"working_set\": [0, 65536]}", 8, 3);
        measure(&m, touched, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].values[FIGURE_COST] = 1e9 / m.runs[i].values[FIGURE_MESSAGES];
        FINDINGS *f = draw(&m);
        bool by_size = false, by_number = false;
        for (size_t i = 0; i < f->n; i++) {
                by_size |= says(&f->items[i], "processes 2: cost by working set, best first: 0 B (") &&
                           says(&f->items[i], ", then 64 KiB (");
                by_number |= says(&f->items[i], "working set 64 KiB");
        }
        CHECK(by_size && by_number);
        char words[PHRASE_SETTING_MAX];
        CHECK_STRING(phrase_setting(AXIS_QUEUE_DEPTH, &(struct point){.queue_depth = 8}, words), "queue depth 8");
}

/* An interval that is narrow has no width of 0. */
static void test_shares_with_their_interval(void) {
        static const struct {
                double shares[3];
                const char *words[3];
        } table[] = {
                {{0.698, 0.6953, 0.7012}, {"69.8 %", "69.5 %", "70.1 %"}},
                {{0.70001, 0.70001, 0.7003}, {"70.00 %", "70.00 %", "70.03 %"}},
                {{0.67, 0.66, 0.7}, {"67 %", "66 %", "70 %"}},
                {{0.0123, -0.003, 0.02}, {"1.2 %", "-0.30 %", "2.0 %"}},
                {{0.5, 0.5, 0.5}, {"50 %", "50 %", "50 %"}},
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                char words[3][PHRASE_MAX];
                phrase_shares(table[i].shares, words);
                for (size_t k = 0; k < 3; k++)
                        CHECK_STRING(words[k], table[i].words[k]);
        }
}

static void test_phrases(void) {
        static const struct {
                double value;
                const char *unit, *words;
        } table[] = {
                {2714, "ns", "2.71 µs"},     {5, "ns", "5 ns"},           {3.18e9, "bytes/s", "3.18 GB/s"},
                {65536, "bytes", "64 KiB"},  {4000, "bytes", "3.91 KiB"}, {12, "threads", "12 threads"},
                {1048576, "bytes", "1 MiB"}, {0, "ns", "0 ns"},           {123.4, "runs", "123 runs"},
                {2.5e10, "ns", "25 s"},
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                char words[PHRASE_MAX];
                phrase_value(table[i].value, table[i].unit, words);
                CHECK_STRING(words, table[i].words);
        }
        char words[PHRASE_MAX];
        phrase_share(0.123, words);
        CHECK_STRING(words, "12 %");
        phrase_share(0.0123, words);
        CHECK_STRING(words, "1.2 %");
        phrase_share(0.00123, words);
        CHECK_STRING(words, "0.12 %");
        phrase_share(-0.00001, words);
        CHECK_STRING(words, "0.00 %");
        static const char *const an[] = {"8 %", "8.1 %", "83 %", "800 %", "11 %", "18 %"};
        static const char *const not_an[] = {"1 %", "1.8 %", "0.8 %", "110 %", "12 %", "70 %", "181 %"};
        for (size_t i = 0; i < sizeof(an) / sizeof(an[0]); i++)
                CHECK_STRING(phrase_article(an[i]), "an ");
        for (size_t i = 0; i < sizeof(not_an) / sizeof(not_an[0]); i++)
                CHECK_STRING(phrase_article(not_an[i]), "a ");
}

int main(void) {
        RUN(test_no_difference);
        RUN(test_runs_of_no_block_are_no_pairs);
        RUN(test_equal_points);
        RUN(test_unequal_instances);
        RUN(test_knee);
        RUN(test_knee_of_another_piece);
        RUN(test_no_bound_beyond_one);
        RUN(test_best_size);
        RUN(test_crossover);
        RUN(test_pairs_are_of_a_block_in_any_order);
        RUN(test_crossover_in_doubt);
        RUN(test_crossover_in_doubt_of_which_series);
        RUN(test_cliff);
        RUN(test_scaling);
        RUN(test_the_law_of_scaling);
        RUN(test_a_law_that_does_not_fit);
        RUN(test_no_fall_and_no_more_threads);
        RUN(test_ranking);
        RUN(test_too_few_runs_are_no_sign_of_equality);
        RUN(test_pairs_against_the_medians);
        RUN(test_settings_in_force_that_differ);
        RUN(test_buffers_on_both_sides_of_a_crossover);
        RUN(test_latency_of_streams);
        RUN(test_a_crossover_within_its_interval);
        RUN(test_cost_of_placements_by_hand);
        RUN(test_unlike_rows_are_kept_apart);
        RUN(test_cost);
        RUN(test_the_call_of_a_copy_mode);
        RUN(test_cost_in_counts);
        RUN(test_two_beside_the_usual);
        RUN(test_run_ids);
        RUN(test_nothing);
        RUN(test_settings_in_words);
        RUN(test_shares_with_their_interval);
        RUN(test_phrases);
        return check_end();
}
