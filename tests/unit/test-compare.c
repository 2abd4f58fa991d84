/* SPDX-License-Identifier: MIT */

/* Verdicts of drawn-up samples, and by simulation how often a verdict is wrong. */

#include "daemon/analysis/compare.h"
#include "daemon/analysis/rank.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
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

/* The correction is over all rows: what one row alone would call a difference, 48 do not. */
static void test_rows_together(void) {
        double a[9], b[9];
        struct compare_row rows[ROWS];
        struct comparison c[ROWS];
        for (size_t i = 0; i < 9; i++) {
                a[i] = 1000 + (double) i;
                b[i] = a[i] * 1.2;
        }
        for (size_t i = 0; i < ROWS; i++)
                rows[i] = (struct compare_row){
                        .baseline = a, .candidate = i == 0 ? b : a, .n_baseline = 9, .n_candidate = 9, .paired = true};
        CHECK_INT(compare_rows(rows, 1, &rule, c), 0);
        CHECK_INT(c[0].verdict, COMPARE_FASTER);
        CHECK_INT(compare_rows(rows, ROWS, &rule, c), 0);
        CHECK_INT(c[0].verdict, COMPARE_UNDECIDED); /* 48 × 2 / 512 */
        CHECK(!c[0].has_visible);
        CHECK_UINT(c[0].runs_needed, 11);
        CHECK_UINT(compare_runs_least(true, ROWS), 11);
        CHECK_INT(c[1].verdict, COMPARE_EQUIVALENT);
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

static unsigned alarms_of_experiment(struct host *h) {
        static double a[ROWS][BLOCKS], b[ROWS][BLOCKS];
        struct compare_row rows[ROWS];
        struct comparison c[ROWS];
        for (size_t k = 0; k < BLOCKS; k++) {
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
                                               .n_baseline = BLOCKS,
                                               .n_candidate = BLOCKS,
                                               .paired = true};
        unsigned alarms = 0;
        if (compare_rows(rows, ROWS, &rule, c) < 0)
                return ROWS;
        for (size_t i = 0; i < ROWS; i++)
                alarms += c[i].differs || c[i].verdict == COMPARE_FASTER || c[i].verdict == COMPARE_SLOWER;
        return alarms;
}

static void test_equal_sides(void) {
        const unsigned trials = 1000;
        unsigned steady = 0, drifting = 0;
        struct host quiet = {.drift = 0}, restless = {.drift = 0.02};
        random_init(&quiet.random, 3);
        random_init(&restless.random, 4);
        for (unsigned t = 0; t < trials; t++) {
                steady += alarms_of_experiment(&quiet) > 0;
                drifting += alarms_of_experiment(&restless) > 0;
        }
        CHECK(sample_share("A against A, 48 rows of 13 blocks: a false alarm anywhere", steady, trials) <= 0.05);
        CHECK(sample_share("the same on a host that drifts by 2 % a run", drifting, trials) <= 0.05);
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

/* What compare_runs_for() promises, tried out: a difference of 5 % at several variations from run to run. */
static void test_runs_for(void) {
        static const double variations[] = {0.01, 0.02, 0.03, 0.05, 0.08, 0.10};
        struct random random;
        random_init(&random, 6);
        for (size_t k = 0; k < 2 * N(variations); k++) {
                bool paired = k % 2;
                double variation = variations[k / 2];
                uint32_t n = compare_runs_for(variation, 0.05, paired, 1);
                CHECK(n <= RANK_MAX);
                const unsigned trials = 400;
                unsigned found = 0;
                for (unsigned t = 0; t < trials; t++) {
                        double a[RANK_MAX], b[RANK_MAX];
                        fill(&random, a, n, 1, variation);
                        fill(&random, b, n, 1.05, variation);
                        struct rank_test test;
                        for (size_t i = 0; i < n; i++)
                                a[i] = paired ? log(b[i]) - log(a[i]) : a[i];
                        CHECK_INT(paired ? rank_signed_test(a, n, &test) : rank_sum_test(b, n, a, n, &test), 0);
                        found += test.p_two_sided <= COMPARE_ERROR;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "5 %% found, runs vary by %.0f %%: %u %s", 100 * variation, n,
                                paired ? "pairs" : "runs a side");
                CHECK(sample_share(what, found, trials) >= 0.92);
        }
}

int main(void) {
        RUN(test_verdicts);
        RUN(test_margin);
        RUN(test_rows_together);
        RUN(test_too_few);
        RUN(test_refused);
        RUN(test_scale_and_sides);
        RUN(test_equal_sides);
        RUN(test_drift_without_blocks);
        RUN(test_runs_for);
        return check_end();
}
