/* SPDX-License-Identifier: MIT */

/* Runs that depend on those before them: how often the interval of their median covers, with that counted and without.
 */

#include "daemon/analysis/statistics/serial.h"

#include "tests/unit/check.h"
#include "tests/unit/lanes.h"
#include "tests/unit/samples.h"

#include <errno.h>

#define TRIALS 4000u
#define RUNS_MOST 60u
#define N(array) (sizeof(array) / sizeof((array)[0]))

/* First-order autoregressive, about a median of 1. */
static void draw(struct random *random, double correlation, double *ret, size_t n) {
        double state = sample_normal(random);
        for (size_t i = 0; i < n; i++) {
                ret[i] = exp(0.05 * state);
                state = correlation * state + sqrt(1 - correlation * correlation) * sample_normal(random);
        }
}

struct coverage {
        double before, after, has, material, effective, wider;
};

static struct coverage simulate(double correlation, size_t n) {
        struct random random;
        struct coverage c = {0};
        random_init(&random, 14);
        for (unsigned t = 0; t < TRIALS; t++) {
                double values[RUNS_MOST];
                struct statistic plain;
                struct serial s;
                draw(&random, correlation, values, n);
                if (order_summarize(values, n, &plain) < 0 || serial_judge(values, n, &s) < 0)
                        return (struct coverage){0};
                c.before += plain.ci95_low <= 1 && 1 <= plain.ci95_high;
                c.after += s.interval.has_interval && s.interval.low <= 1 && 1 <= s.interval.high;
                c.has += s.interval.has_interval;
                c.material += s.material;
                c.effective += s.effective_runs / TRIALS;
                if (s.interval.has_interval)
                        c.wider += (s.interval.high - s.interval.low) / (plain.ci95_high - plain.ci95_low);
        }
        c.before /= TRIALS;
        c.after /= c.has > 0 ? c.has : 1;
        c.wider /= c.has > 0 ? c.has : 1;
        c.has /= TRIALS;
        c.material /= TRIALS;
        return c;
}

static void test_coverage(void) {
        static const double correlations[] = {0, 0.2, 0.35, 0.5, 0.7};
        static const size_t runs[] = {12, 13, 19, 28, 41, 60};
        if (!lanes)
                printf("     r     runs  covered by ci95  with r counted  (has one, times as wide, effective runs, "
                       "material)\n");
        IN_LANES_OF_TRIALS(test_coverage);
        for (size_t i = 0; i < N(correlations); i++)
                for (size_t k = 0; k < N(runs); k++) {
                        if (!lanes_my_turn())
                                continue;
                        struct coverage c = simulate(correlations[i], runs[k]);
                        printf("     %-4.2f  %4zu  %13.1f %%  %12.1f %%  (%3.0f %%, %.2f, %.1f, %.1f %%)\n",
                               correlations[i], runs[k], 100 * c.before, 100 * c.after, 100 * c.has, c.wider,
                               c.effective, 100 * c.material);
                        CHECK(c.after >= c.before);
                        /* runs of a quiet machine correlate by 0.33 to 0.38 */
                        if (correlations[i] < 0.4 && runs[k] >= 19)
                                CHECK(c.after >= 0.95);
                        if (correlations[i] < 0.6 && runs[k] >= 28)
                                CHECK(c.after >= 0.95);
                        if (correlations[i] < 0.1)
                                CHECK(c.wider <= 1.3 && c.has >= 0.9 && c.material <= 0.06);
                        if (correlations[i] > 0.4 && runs[k] >= 41)
                                CHECK(c.material >= 0.9);
                }
}

static void test_by_hand(void) {
        /* about their mean, 6.5, the products of neighbours sum to 107.25, the squares to 143 */
        static const double line[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        struct serial s;
        CHECK_INT(serial_judge(line, N(line), &s), 0);
        CHECK(s.known && s.material);
        CHECK(fabs(s.correlation - 107.25 / 143) < 1e-12);
        CHECK(s.corrected == SERIAL_MAX && !s.interval.has_interval);
        CHECK(fabs(s.effective_runs - 12 * 0.1 / 1.9) < 1e-12);
        CHECK_INT(serial_judge(line, SERIAL_RUNS_LEAST - 1, &s), 0);
        CHECK(!s.known);
}

/* Without correlation it is the interval of the results. */
static void test_independent(void) {
        static const double zigzag[] = {1, 12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7};
        static const double same[N(zigzag)] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
        static const double bad[N(zigzag)] = {NAN};
        struct statistic plain;
        struct serial s;
        CHECK_INT(order_summarize(zigzag, N(zigzag), &plain), 0);
        CHECK_INT(serial_judge(zigzag, N(zigzag), &s), 0);
        CHECK(s.known && !s.material && s.correlation < -0.5 && s.corrected == 0 && s.effective_runs == 12);
        CHECK(s.interval.has_interval && s.interval.low == plain.ci95_low && s.interval.high == plain.ci95_high &&
              s.interval.level == plain.level);
        CHECK_INT(serial_judge(same, N(same), &s), 0);
        CHECK(!s.known);
        CHECK_INT(serial_judge(bad, N(bad), &s), -EINVAL);
}

/* The interval of a summary is that of independent values, unless they are not. */
static void test_summary(void) {
        static const double line[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
        static const double zigzag[] = {1, 12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7};
        struct statistic plain, s;
        struct serial serial;
        double steps[40];
        CHECK_INT(order_summarize(zigzag, N(zigzag), &plain), 0);
        CHECK_INT(serial_summarize(zigzag, N(zigzag), &s, NULL), 0);
        CHECK(s.has_ci95 && s.ci95_low == plain.ci95_low && s.ci95_high == plain.ci95_high && s.level == plain.level);
        CHECK_INT(serial_summarize(line, N(line), &s, &serial), 0);
        CHECK(serial.material && !s.has_ci95 && s.level == 0 && s.median == plain.median && s.n == plain.n);
        for (size_t i = 0; i < N(steps); i++)
                steps[i] = (double) (i / 3 * 7 % 11);
        CHECK_INT(order_summarize(steps, N(steps), &plain), 0);
        CHECK_INT(serial_summarize(steps, N(steps), &s, &serial), 0);
        CHECK(serial.material && s.has_ci95 && s.ci95_low == serial.interval.low &&
              s.ci95_high == serial.interval.high && s.level == serial.interval.level);
        CHECK(s.ci95_low < plain.ci95_low && s.ci95_high > plain.ci95_high);
        CHECK_INT(serial_summarize(line, 3, &s, &serial), 0);
        CHECK(!serial.known && s.n == 3 && !s.has_ci95);
        CHECK_INT(serial_summarize((const double[]){1, NAN}, 2, &s, NULL), -EINVAL);
}

int main(void) {
        RUN(test_by_hand);
        RUN(test_independent);
        RUN(test_summary);
        RUN(test_coverage);
        return check_end();
}
