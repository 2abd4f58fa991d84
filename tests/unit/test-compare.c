/* SPDX-License-Identifier: MIT */

/* Verdicts of drawn-up samples, and by simulation how often a verdict is wrong. */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/statistics/rank.h"
#include "daemon/analysis/statistics/serial.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/lanes.h"
#include "tests/unit/samples.h"

#define ROWS 48u
#define BLOCKS 13u
#define N(array) (sizeof(array) / sizeof((array)[0]))

static const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};

static void fill(struct random *random, double *values, size_t n, double mean, double noise) {
        for (size_t i = 0; i < n; i++)
                values[i] = mean * exp(noise * sample_normal(random));
}

static void test_verdicts(void) {
        static const struct {
                double ratio, noise;
                bool less_is_faster;
                enum compare_verdict verdict;
        } table[] = {
                {1.2, 0.01, false, COMPARE_FASTER},      {0.8, 0.01, false, COMPARE_SLOWER},
                {1.2, 0.01, true, COMPARE_SLOWER},       {0.8, 0.01, true, COMPARE_FASTER},
                {1.0, 0.005, false, COMPARE_EQUIVALENT}, {1.01, 0.001, false, COMPARE_EQUIVALENT},
                {1.01, 0.3, false, COMPARE_UNDECIDED},
        };
        struct random random;
        random_init(&random, 7);
        for (size_t i = 0; i < 2 * N(table); i++) {
                double a[12], b[12];
                fill(&random, a, 12, 5000, table[i / 2].noise);
                fill(&random, b, 12, 5000 * table[i / 2].ratio, table[i / 2].noise);
                struct compare_row row = {.baseline = a,
                                          .candidate = b,
                                          .n_baseline = 12,
                                          .n_candidate = 12,
                                          .paired = i % 2,
                                          .less_is_faster = table[i / 2].less_is_faster};
                struct comparison c;
                CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                if (c.verdict != table[i / 2].verdict)
                        CHECK_FAIL("case %zu: verdict %u, ratio %g, p %g", i, c.verdict, c.ratio, c.p);
                CHECK(c.has_interval && c.low <= c.ratio && c.ratio <= c.high && c.level >= 0.95);
                CHECK(c.equivalence_low >= c.low && c.equivalence_high <= c.high);
                CHECK((c.runs_needed > 12) == (c.verdict == COMPARE_UNDECIDED));
        }
}

/* A certain difference of 1 % is within the margin, and outside of a smaller one. */
static void test_margin(void) {
        double a[12], b[12];
        for (size_t i = 0; i < 12; i++) {
                a[i] = 1000 + (double) i;
                b[i] = a[i] * 1.01;
        }
        struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 12, .n_candidate = 12, .paired = true};
        struct comparison c;
        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
        CHECK_INT(c.verdict, COMPARE_EQUIVALENT);
        CHECK(c.differs);
        CHECK_INT(compare_rows(&row, 1, &(struct compare_rule){.margin = 0.005}, &c), 0);
        CHECK_INT(c.verdict, COMPARE_FASTER);
}

/* The correction is over all rows: what one row alone would call a difference, 48 do not. Nine pairs are too few for
 * the signed-rank test among 48, whatever they are; the rank-sum test finds what is great. */
static void test_rows_together(void) {
        double a[9], b[9], c_little[9];
        struct compare_row rows[ROWS];
        struct comparison c[ROWS];
        for (size_t i = 0; i < 9; i++) {
                a[i] = 1000 + 10 * (double) i;
                b[i] = a[i] * 1.2;
                c_little[i] = a[i] * 1.04;
        }
        for (size_t i = 0; i < ROWS; i++)
                rows[i] = (struct compare_row){.baseline = a,
                                               .candidate = i == 0   ? b
                                                            : i == 1 ? c_little
                                                                     : a,
                                               .n_baseline = 9,
                                               .n_candidate = 9,
                                               .paired = true};
        CHECK_INT(compare_rows(rows + 1, 1, &rule, c + 1), 0);
        CHECK_INT(c[1].verdict, COMPARE_FASTER);
        CHECK(!c[1].by_runs);
        CHECK_INT(compare_rows(rows, ROWS, &rule, c), 0);
        CHECK_INT(c[0].verdict, COMPARE_FASTER);
        CHECK(c[0].by_runs && is_close(c[0].p, 2 / 48620.0) && is_close(c[0].ratio, 1.2));
        CHECK(is_close(c[0].low, 1.2)); /* that of the pairs */
        CHECK_INT(c[1].verdict, COMPARE_UNDECIDED);
        CHECK(c[1].by_runs && c[1].has_visible && c[1].visible > 0.04);
        CHECK_UINT(c[1].runs_needed, 11); /* from there on pairs decide: 48 × 2 / 2048 */
        CHECK_UINT(compare_runs_least(true, ROWS), 11);
        CHECK_UINT(compare_runs_least(false, ROWS), 7);
        CHECK_INT(c[2].verdict, COMPARE_EQUIVALENT);
        rows[0].n_baseline = rows[0].n_candidate = 6;
        CHECK_INT(compare_rows(rows, ROWS, &rule, c), 0);
        CHECK_INT(c[0].verdict, COMPARE_UNDECIDED); /* 48 × 2 / 924 */
        CHECK(!c[0].has_visible);
        CHECK_UINT(c[0].runs_needed, 7);
}

/* The pairs say one thing and the runs as a whole the other: that is no difference in the direction of the ratio. */
static void test_runs_against_pairs(void) {
        /* In most blocks the candidate is a little faster; in three of them it is much slower, the baseline not. */
        static const double a[] = {100, 200, 300, 400, 500, 600, 700}, b[] = {101, 202, 303, 404, 505, 1, 2};
        struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 7, .n_candidate = 7, .paired = true};
        struct compare_row rows[20];
        struct comparison c[20];
        for (size_t i = 0; i < N(rows); i++)
                rows[i] = row;
        CHECK_INT(compare_rows(rows, N(rows), &rule, c), 0);
        CHECK(c[0].by_runs && c[0].p >= 0.3);
}

/* All runs of the candidate but one are the slowest, and that one is a little faster than its pair: the test of the
 * runs has no doubt, but a reader sees 1 within the interval of six pairs. */
static void test_interval_with_one(void) {
        static const double a[] = {100, 101, 102, 103, 104, 99.5}, b[] = {94, 95, 96, 97, 98, 99.6};
        struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 6, .n_candidate = 6, .paired = true};
        struct compare_row rows[] = {row, row};
        struct comparison c[2];
        CHECK_INT(compare_rows(rows, 2, &rule, c), 0);
        CHECK(c[0].by_runs && c[0].p_adjusted <= COMPARE_ERROR && c[0].low < 1 && c[0].high > 1);
        CHECK(!c[0].differs);
        CHECK_INT(c[0].verdict, COMPARE_UNDECIDED);
        CHECK_UINT(c[0].runs_needed, 7);
}

static void test_too_few(void) {
        double a[] = {1, 2, 3}, b[] = {4, 5, 6};
        struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 3, .n_candidate = 3};
        struct comparison c;
        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
        CHECK_INT(c.verdict, COMPARE_UNDECIDED);
        CHECK(!c.has_interval && c.level == 0 && !c.has_visible);
        CHECK_UINT(c.runs_needed, 4);
}

static void test_refused(void) {
        double a[] = {1, 2, 3}, zero[] = {1, 0, 2};
        struct compare_row row = {.baseline = a, .candidate = zero, .n_baseline = 3, .n_candidate = 3};
        struct comparison c = {.p = 7};
        CHECK_INT(compare_rows(&row, 1, &rule, &c), -EDOM);
        row = (struct compare_row){.baseline = a, .candidate = a, .n_baseline = 3, .n_candidate = 2, .paired = true};
        CHECK_INT(compare_rows(&row, 1, &rule, &c), -EINVAL);
        row = (struct compare_row){.baseline = a, .candidate = a, .n_baseline = 3};
        CHECK_INT(compare_rows(&row, 1, &rule, &c), -EINVAL);
        CHECK_INT(compare_rows(&row, 0, &(struct compare_rule){.margin = 0}, &c), -EINVAL);
        CHECK(c.p == 7);
}

/* In other units, and in the other direction: the same verdict of the other side. */
static void test_scale_and_sides(void) {
        struct random random;
        random_init(&random, 2);
        for (unsigned t = 0; t < 100; t++) {
                double a[10], b[10], more_a[10], more_b[10];
                fill(&random, a, 10, 1, 0.03);
                fill(&random, b, 10, 1.03, 0.03);
                for (size_t i = 0; i < 10; i++) {
                        more_a[i] = 1e6 * a[9 - i];
                        more_b[i] = 1e6 * b[9 - i];
                }
                struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 10, .n_candidate = 10};
                struct compare_row more = {
                        .baseline = more_a, .candidate = more_b, .n_baseline = 10, .n_candidate = 10};
                struct compare_row turned = {.baseline = b, .candidate = a, .n_baseline = 10, .n_candidate = 10};
                struct comparison c, d, e;
                CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                CHECK_INT(compare_rows(&more, 1, &rule, &d), 0);
                CHECK_INT(compare_rows(&turned, 1, &rule, &e), 0);
                CHECK(c.verdict == d.verdict && c.p == d.p && fabs(c.ratio / d.ratio - 1) < 1e-12);
                CHECK(fabs(c.ratio * e.ratio - 1) < 1e-12 && is_close(c.p, e.p));
                CHECK((c.verdict == COMPARE_FASTER) == (e.verdict == COMPARE_SLOWER));
        }
}

/* A machine whose speed walks about by 2 % a run, and whose runs scatter by 2 % beside. Both sides are equal. In every
 * block the rows come in turn, and the sides of each row in random order one after the other. */
struct host {
        struct random random;
        double walk, drift;
};

static double run_on(struct host *h) {
        h->walk += h->drift * sample_normal(&h->random);
        return 1000 * exp(h->walk + 0.02 * sample_normal(&h->random));
}

static unsigned alarms_of_experiment(struct host *h, size_t blocks) {
        static double a[ROWS][BLOCKS], b[ROWS][BLOCKS];
        struct compare_row rows[ROWS];
        struct comparison c[ROWS];
        for (size_t k = 0; k < blocks; k++) {
                for (size_t i = 0; i < ROWS; i++) {
                        bool first = random_below(&h->random, 2);
                        double x = run_on(h), y = run_on(h);
                        a[i][k] = first ? x : y;
                        b[i][k] = first ? y : x;
                }
        }
        for (size_t i = 0; i < ROWS; i++)
                rows[i] = (struct compare_row){.baseline = a[i],
                                               .candidate = b[i],
                                               .n_baseline = blocks,
                                               .n_candidate = blocks,
                                               .paired = true};
        unsigned alarms = 0;
        if (compare_rows(rows, ROWS, &rule, c) < 0)
                return ROWS;
        for (size_t i = 0; i < ROWS; i++)
                alarms += c[i].differs || c[i].verdict == COMPARE_FASTER || c[i].verdict == COMPARE_SLOWER;
        return alarms;
}

static void test_equal_sides(void) {
        static const size_t blocks[] = {7, 10, BLOCKS}; /* of the first two the rank-sum test decides */
        static const double drifts[] = {0, 0.02};       /* of a host, a run */
        const unsigned trials = 1000;
        IN_LANES_OF_TRIALS(test_equal_sides);
        for (size_t k = 0; k < N(blocks) * N(drifts); k++) {
                if (!lanes_my_turn())
                        continue;
                struct host h = {.drift = drifts[k % N(drifts)]};
                unsigned alarms = 0;
                char what[100];
                random_init(&h.random, 3 + k);
                for (unsigned t = 0; t < trials; t++)
                        alarms += alarms_of_experiment(&h, blocks[k / N(drifts)]) > 0;
                (void) snprintf(what, sizeof(what), "A against A, %u rows of %zu blocks, drift %.0f %%: a false alarm",
                                ROWS, blocks[k / N(drifts)], 100 * h.drift);
                CHECK(sample_share(what, alarms, trials) <= 0.05);
        }
}

/* What a study of few blocks is asked: one of 48 rows has three times the speed, on a host that drifts. */
static void test_few_blocks(void) {
        const unsigned trials = 400;
        unsigned found = 0;
        struct host h = {.drift = 0.02};
        random_init(&h.random, 8);
        for (unsigned t = 0; t < trials; t++) {
                static double a[ROWS][BLOCKS], b[ROWS][BLOCKS];
                struct compare_row rows[ROWS];
                struct comparison c[ROWS];
                for (size_t k = 0; k < 8; k++)
                        for (size_t i = 0; i < ROWS; i++) {
                                a[i][k] = run_on(&h);
                                b[i][k] = run_on(&h) * (i == 0 ? 3 : 1);
                        }
                for (size_t i = 0; i < ROWS; i++)
                        rows[i] = (struct compare_row){
                                .baseline = a[i], .candidate = b[i], .n_baseline = 8, .n_candidate = 8, .paired = true};
                CHECK_INT(compare_rows(rows, ROWS, &rule, c), 0);
                found += c[0].verdict == COMPARE_FASTER;
        }
        CHECK(sample_share("three times the speed found by 8 blocks of 48 rows on that host", found, trials) >= 0.95);
}

/* Why the order of the runs and the pairs matter: the same host, one side after the other, analysed as if it had not
 * moved. The simulation is worth nothing if it does not show that. */
static void test_drift_without_blocks(void) {
        const unsigned trials = 2000;
        unsigned alarms = 0, paired_alarms = 0;
        struct host h = {.drift = 0.02};
        random_init(&h.random, 5);
        for (unsigned t = 0; t < trials; t++) {
                double a[10], b[10];
                struct comparison c;
                for (size_t i = 0; i < 20; i++)
                        *(i < 10 ? &a[i] : &b[i - 10]) = run_on(&h);
                struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 10, .n_candidate = 10};
                CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                alarms += c.differs;
                for (size_t i = 0; i < 10; i++) {
                        bool first = random_below(&h.random, 2);
                        double x = run_on(&h), y = run_on(&h);
                        a[i] = first ? x : y;
                        b[i] = first ? y : x;
                }
                row.paired = true;
                CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                paired_alarms += c.differs;
        }
        CHECK(sample_share("one row on that host, 10 runs one after the other, unpaired", alarms, trials) > 0.4);
        CHECK(sample_share("one row on that host, 10 blocks, paired", paired_alarms, trials) <= 0.06);
}

/* Values of which each depends on the one before it; those of all n together have the noise. */
static void fill_serial(struct random *random, double *values, size_t n, double correlation, double noise) {
        double now = sample_normal(random);
        for (size_t i = 0; i < n; i++) {
                values[i] = 1000 * exp(noise * now);
                now = correlation * now + sqrt(1 - correlation * correlation) * sample_normal(random);
        }
}

/* Two sittings of a machine whose state lasts for a few runs. Were the runs taken for independent, there would be 17,
 * 31 and 57 % of alarms; not all of a correlation is seen in 24 runs. */
static void test_sittings(void) {
        static const struct {
                double correlation, at_most;
        } cases[] = {{0, 0.06}, {0.35, 0.10}, {0.6, 0.09}, {0.85, 0.12}};
        enum { RUNS = 24 };
        const unsigned trials = 2000;
        IN_LANES_OF_TRIALS(test_sittings);
        for (size_t k = 0; k < N(cases); k++) {
                if (!lanes_my_turn())
                        continue;
                struct random random;
                unsigned alarms = 0, widened = 0;
                random_init(&random, 9 + k);
                for (unsigned t = 0; t < trials; t++) {
                        double a[RUNS], b[RUNS];
                        struct comparison c;
                        fill_serial(&random, a, RUNS, cases[k].correlation, 0.02);
                        fill_serial(&random, b, RUNS, cases[k].correlation, 0.02);
                        struct compare_row row = {
                                .baseline = a, .candidate = b, .n_baseline = RUNS, .n_candidate = RUNS};
                        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                        CHECK(c.widening >= 1 && (!c.has_interval || c.level >= 0.95 - 1e-9));
                        alarms += c.differs;
                        widened += c.widening > 1;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "two equal sittings of %d runs, correlation %.2f", RUNS,
                                cases[k].correlation);
                CHECK(sample_share(what, alarms, trials) <= cases[k].at_most);
                sample_share("of these widened", widened, trials);
        }
}

/* A side whose level changes half-way differs from one that has either level, and says less for it. */
static void test_change_half_way(void) {
        double a[24], b[24];
        struct random random;
        struct comparison c;
        random_init(&random, 10);
        fill(&random, a, 24, 1000, 0.02);
        fill(&random, b, 12, 1000, 0.02);
        fill(&random, b + 12, 12, 800, 0.02);
        struct compare_row row = {.baseline = a, .candidate = b, .n_baseline = 24, .n_candidate = 24};
        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
        CHECK_INT(c.verdict, COMPARE_UNDECIDED);
        CHECK(c.widening > 2);
}

/* With fewer runs than have an autocorrelation, a side is not known to be of independent ones; of pairs that does not
 * matter. */
static void test_too_few_to_judge(void) {
        double a[SERIAL_RUNS_LEAST], b[SERIAL_RUNS_LEAST];
        struct random random;
        random_init(&random, 11);
        fill(&random, a, SERIAL_RUNS_LEAST, 1000, 0.02);
        fill(&random, b, SERIAL_RUNS_LEAST, 1000, 0.02);
        for (unsigned k = 0; k < 5; k++) {
                bool few_a = k & 1, few_b = k & 2 || k == 4, paired = k == 4;
                struct compare_row row = {.baseline = a,
                                          .candidate = b,
                                          .n_baseline = SERIAL_RUNS_LEAST - (few_a || paired),
                                          .n_candidate = SERIAL_RUNS_LEAST - few_b,
                                          .paired = paired};
                struct comparison c;
                CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                CHECK(c.baseline_unjudged == (few_a && !paired) && c.candidate_unjudged == (few_b && !paired));
                struct comparison turned = compare_turned(&c);
                CHECK(turned.baseline_unjudged == c.candidate_unjudged);
                CHECK(turned.candidate_unjudged == c.baseline_unjudged);
        }
}

/* What compare_runs_for() promises, tried out: a difference of 5 % at several variations from run to run. */
static void test_runs_for(void) {
        static const double variations[] = {0.01, 0.02, 0.03, 0.05, 0.08, 0.10};
        IN_LANES_OF_TRIALS(test_runs_for);
        for (size_t k = 0; k < 2 * N(variations); k++) {
                if (!lanes_my_turn())
                        continue;
                struct random random;
                random_init(&random, 6 + k);
                bool paired = k % 2;
                double variation = variations[k / 2];
                uint32_t n = compare_runs_for(variation, 0.05, paired, 1);
                CHECK(n <= RANK_MAX);
                const unsigned trials = n > 50 ? 100 : 400; /* the time of each grows with the square of n */
                unsigned found = 0;
                for (unsigned t = 0; t < trials; t++) {
                        double a[RANK_MAX], b[RANK_MAX];
                        fill(&random, a, n, 1, variation);
                        fill(&random, b, n, 1.05, variation);
                        struct compare_row row = {
                                .baseline = a, .candidate = b, .n_baseline = n, .n_candidate = n, .paired = paired};
                        struct comparison c;
                        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                        found += c.differs;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "5 %% found, runs vary by %.0f %%: %u %s", 100 * variation, n,
                                paired ? "pairs" : "runs a side");
                CHECK(sample_share(what, found, trials) >= 0.92);
        }
}

/* One run in ten takes twice as long, as where the machine changes its state. */
static void fill_of_two_states(struct random *random, double *values, size_t n, double mean) {
        fill(random, values, n, mean, 0.02);
        for (size_t i = 0; i < n; i++)
                if (random_below(random, 10) == 0)
                        values[i] *= 2;
}

#define STATES_ROWS 8u

/* The row among others that are equal. */
static void compare_of_two_states(struct random *random, uint32_t n, double ratio, struct comparison *ret) {
        static double values[STATES_ROWS][2][RANK_MAX];
        struct compare_row rows[STATES_ROWS];
        struct comparison c[STATES_ROWS];
        for (size_t i = 0; i < STATES_ROWS; i++) {
                fill_of_two_states(random, values[i][0], n, 100);
                fill_of_two_states(random, values[i][1], n, i == 0 ? 100 * ratio : 100);
                rows[i] = (struct compare_row){.baseline = values[i][0],
                                               .candidate = values[i][1],
                                               .n_baseline = n,
                                               .n_candidate = n,
                                               .paired = true};
        }
        CHECK_INT(compare_rows(rows, STATES_ROWS, &rule, c), 0);
        *ret = c[0];
}

/* Where a few runs are far off, the interval may be narrow and the test find nothing all the same: a difference as
 * great as the one that was not found would not have been seen, and one run more decides nothing. */
static void test_runs_far_off(void) {
        static const double ratios[] = {1.7, 1.3, 1.1}; /* the last takes longest */
        IN_LANES_OF_TRIALS(test_runs_far_off);
        for (size_t k = 0; k < N(ratios); k++) {
                if (!lanes_my_turn())
                        continue;
                struct random random;
                unsigned undecided = 0, decided = 0;
                random_init(&random, 23 - k);
                for (unsigned t = 0; t < 4000 && undecided < 100; t++) {
                        struct comparison c, again;
                        compare_of_two_states(&random, 7, ratios[k], &c);
                        if (c.verdict != COMPARE_UNDECIDED)
                                continue;
                        double seen = exp(fabs(log(c.ratio))) - 1;
                        if (!(c.visible >= seen * (1 - 1e-9)))
                                CHECK_FAIL("%g would have been seen, and %g was not", c.visible, seen);
                        CHECK(isfinite(c.visible));
                        if (c.out_of_reach)
                                continue;
                        undecided++;
                        compare_of_two_states(&random, c.runs_needed, ratios[k], &again);
                        decided += again.verdict != COMPARE_UNDECIDED;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "decided by the runs that would decide, ratio %g", ratios[k]);
                CHECK(undecided > 20);
                CHECK(sample_share(what, decided, undecided) >= 0.75);
        }
}

/* Runs that do not take part decide nothing: 200 pairs do, 60 runs of two sittings, or as many as the caller says. */
static void test_out_of_reach(void) {
        static const struct {
                bool paired;
                uint32_t runs_most, most;
        } cases[] = {{true, 0, 200}, {false, 0, 60}, {false, 200, 200}};
        for (size_t k = 0; k < N(cases); k++) {
                struct random random;
                unsigned within = 0, beyond = 0;
                random_init(&random, 11 + k);
                for (unsigned t = 0; t < 200; t++) {
                        double a[12], b[12];
                        struct comparison c;
                        fill(&random, a, N(a), 1000, 0.06);
                        fill(&random, b, N(b), 1020, 0.06);
                        struct compare_row row = {.baseline = a,
                                                  .candidate = b,
                                                  .n_baseline = N(a),
                                                  .n_candidate = N(b),
                                                  .paired = cases[k].paired,
                                                  .runs_most = cases[k].runs_most};
                        CHECK_INT(compare_rows(&row, 1, &rule, &c), 0);
                        CHECK_UINT(c.runs_most, cases[k].most);
                        CHECK(c.out_of_reach == (c.verdict == COMPARE_UNDECIDED && c.runs_needed > cases[k].most));
                        within += c.verdict == COMPARE_UNDECIDED && !c.out_of_reach;
                        beyond += c.out_of_reach;
                }
                CHECK(within > 0 && beyond > 0);
        }
}

int main(void) {
        RUN(test_verdicts);
        RUN(test_margin);
        RUN(test_rows_together);
        RUN(test_runs_against_pairs);
        RUN(test_interval_with_one);
        RUN(test_too_few);
        RUN(test_refused);
        RUN(test_scale_and_sides);
        RUN(test_equal_sides);
        RUN(test_few_blocks);
        RUN(test_drift_without_blocks);
        RUN(test_sittings);
        RUN(test_change_half_way);
        RUN(test_too_few_to_judge);
        RUN(test_runs_for);
        RUN(test_runs_far_off);
        RUN(test_out_of_reach);
        return check_end();
}
