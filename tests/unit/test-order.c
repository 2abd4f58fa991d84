/* SPDX-License-Identifier: MIT */

/* Checked against published tables of the sign test's confidence limits for the median, and against R and SciPy. */

#include "daemon/analysis/statistics/order.h"
#include "daemon/analysis/statistics/rank.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

#include <math.h>
#include <stdlib.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_median(void) {
        static const struct {
                double values[6];
                size_t n;
                double median, min, max;
        } table[] = {
                {{7}, 1, 7, 7, 7},          {{9, 1}, 2, 1, 1, 9},          {{3, 1, 2}, 3, 2, 1, 3},
                {{4, 1, 3, 2}, 4, 2, 1, 4}, {{5, 5, 5, 5, 5}, 5, 5, 5, 5}, {{-1, -3, -2}, 3, -2, -3, -1},
        };
        for (size_t i = 0; i < N(table); i++) {
                struct statistic s;
                CHECK_INT(order_summarize(table[i].values, table[i].n, &s), 0);
                CHECK_UINT(s.n, table[i].n);
                CHECK(s.median == table[i].median);
                CHECK(s.min == table[i].min && s.max == table[i].max);
                CHECK(!s.has_ci95);
        }
}

static void test_middle(void) {
        CHECK(order_middle((const double[]){1, 2, 4}, 3) == 2);
        CHECK(order_middle((const double[]){1, 2, 4, 5}, 4) == 3);
        CHECK(order_middle((const double[]){1e308, 1.5e308}, 2) == 1.25e308); /* the sum would overflow */
        CHECK(order_middle((const double[]){1, INFINITY, INFINITY, INFINITY}, 4) == INFINITY);
}

/* By hand: the mean of 2, 4, 9 is 5, their variance 13; their Walsh averages are 2, 3, 4, 5.5, 6.5, 9. */
static void test_scatter_and_shift(void) {
        struct statistic s;
        CHECK_INT(order_summarize((const double[]){9, 2, 4}, 3, &s), 0);
        CHECK(s.has_variation && fabs(s.variation - sqrt(13) / 5) < 1e-15);
        CHECK(s.has_hodges_lehmann && s.hodges_lehmann == 4.75);
        struct rank_shift shift;
        double values[RANK_MAX + 1];
        for (size_t i = 0; i < N(values); i++)
                values[i] = sin((double) i) + 3;
        CHECK_INT(order_summarize(values, 50, &s), 0);
        CHECK_INT(rank_signed_shift(values, 50, 0.95, &shift), 0);
        CHECK(s.hodges_lehmann == shift.estimate);
        CHECK_INT(order_summarize(values, RANK_MAX, &s), 0);
        CHECK(s.has_hodges_lehmann);
        CHECK_INT(order_summarize(values, N(values), &s), 0);
        CHECK(!s.has_hodges_lehmann && s.has_variation);
        CHECK_INT(order_summarize((const double[]){7}, 1, &s), 0);
        CHECK(!s.has_variation && s.hodges_lehmann == 7);
        CHECK_INT(order_summarize((const double[]){-1, 1}, 2, &s), 0);
        CHECK(!s.has_variation && s.hodges_lehmann == 0);
        CHECK_INT(order_summarize((const double[]){-1e308, 1.5e308}, 2, &s), 0);
        CHECK(!s.has_variation);
}

static void test_nothing_to_show(void) {
        struct statistic s = {.n = 9, .has_ci95 = true};
        CHECK_INT(order_summarize(NULL, 0, &s), 0);
        CHECK_UINT(s.n, 0);
        CHECK(!s.has_ci95);
}

/* Conover, table A3 (binomial, p = 1/2): the ranks of the limits of the 95 % interval. */
static void test_interval_ranks(void) {
        static const struct {
                size_t n, low, high; /* ranks from 1; 0: none */
        } table[] = {
                {5, 0, 0},    {6, 1, 6},    {7, 1, 7},    {8, 1, 8},    {9, 2, 8},     {10, 2, 9},
                {11, 2, 10},  {12, 3, 10},  {13, 3, 11},  {14, 3, 12},  {15, 4, 12},   {16, 4, 13},
                {17, 5, 13},  {18, 5, 14},  {19, 5, 15},  {20, 6, 15},  {25, 8, 18},   {30, 10, 21},
                {40, 14, 27}, {50, 18, 33}, {60, 22, 39}, {70, 27, 44}, {100, 40, 61},
        };
        for (size_t i = 0; i < N(table); i++) {
                double values[100];
                for (size_t k = 0; k < table[i].n; k++)
                        values[k] = (double) (table[i].n - k); /* descending: rank = value */
                struct statistic s;
                CHECK_INT(order_summarize(values, table[i].n, &s), 0);
                CHECK_INT(s.has_ci95, table[i].low > 0);
                if (s.has_ci95) {
                        CHECK_INT(s.ci95_low, table[i].low);
                        CHECK_INT(s.ci95_high, table[i].high);
                }
        }
}

/* n = 5000: 2^-n is not a double any more; the normal approximation is good to a rank there. */
static void test_interval_of_many(void) {
        size_t n = 5000;
        double *values = calloc(n, sizeof(*values));
        CHECK(values != NULL);
        for (size_t k = 0; k < n; k++)
                values[k] = (double) k + 1;
        struct statistic s;
        CHECK_INT(order_summarize(values, n, &s), 0);
        free(values);
        CHECK(s.has_ci95);
        CHECK(fabs(s.ci95_low - (2500 - 1.96 * sqrt(5000) / 2)) <= 1.5);
        CHECK(s.ci95_low + s.ci95_high == 5001);
}

/* The interval is what it claims, and so is its level: of samples of a skewed distribution. */
static void test_interval_covers(void) {
        static const size_t sizes[] = {6, 8, 9, 20};
        struct random random;
        random_init(&random, 1);
        for (size_t k = 0; k < N(sizes); k++) {
                unsigned covered = 0, trials = 10000;
                struct statistic s;
                for (unsigned t = 0; t < trials; t++) {
                        double values[20];
                        for (size_t i = 0; i < sizes[k]; i++)
                                values[i] = sample_skewed(&random, 1);
                        CHECK_INT(order_summarize(values, sizes[k], &s), 0);
                        covered += s.ci95_low <= 1 && 1 <= s.ci95_high;
                }
                char what[80];
                (void) snprintf(what, sizeof(what), "median of %zu skewed values within its interval, level %.4f",
                                sizes[k], s.level);
                CHECK(sample_share(what, covered, trials) >= 0.95);
                CHECK(fabs((double) covered / trials - s.level) < 0.01);
        }
}

static void test_level(void) {
        double values[] = {1, 2, 3, 4, 5, 6, 7, 8};
        struct statistic s;
        CHECK_INT(order_summarize(values, 8, &s), 0);
        CHECK(s.level == 1 - 2.0 / 256);
        CHECK_INT(order_summarize(values, 5, &s), 0);
        CHECK(s.level == 0);
}

static void test_against_others(void) {
        struct cases c;
        CHECK(cases_open(&c, "order"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t n = cases_count(&c);
                double p = *cases_take(&c, 1), sorted[400];
                memcpy(sorted, cases_take(&c, n), n * sizeof(sorted[0]));
                order_sort(sorted, n);
                const double *want = cases_take(&c, 4);
                struct order_interval interval;
                bool good = order_quantile(sorted, n, p) == want[0] &&
                            order_interval(sorted, n, p, 0.95, &interval) == 0 && interval.low == want[1] &&
                            interval.high == want[2] && is_close(interval.level, want[3]);
                if (!good)
                        fprintf(stderr, "line %zu: %g [%g, %g] %.17g\n", c.line_number, order_quantile(sorted, n, p),
                                interval.low, interval.high, interval.level);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 500);
        CHECK_UINT(wrong, 0);
}

static void test_refused(void) {
        struct statistic s;
        struct order_interval interval;
        CHECK_INT(order_summarize((const double[]){1, NAN}, 2, &s), -EINVAL);
        CHECK_INT(order_interval(NULL, 0, 0.5, 0.95, &interval), -EINVAL);
        CHECK_INT(order_interval((const double[]){1}, 1, 0, 0.95, &interval), -EINVAL);
        CHECK_INT(order_interval((const double[]){1}, 1, 0.5, 1, &interval), -EINVAL);
}

static void test_input_is_left_alone(void) {
        double values[] = {3, 1, 2};
        struct statistic s;
        CHECK_INT(order_summarize(values, 3, &s), 0);
        CHECK(values[0] == 3 && values[1] == 1 && values[2] == 2);
}

int main(void) {
        RUN(test_median);
        RUN(test_middle);
        RUN(test_scatter_and_shift);
        RUN(test_nothing_to_show);
        RUN(test_interval_ranks);
        RUN(test_interval_of_many);
        RUN(test_interval_covers);
        RUN(test_level);
        RUN(test_against_others);
        RUN(test_refused);
        RUN(test_input_is_left_alone);
        return check_end();
}
