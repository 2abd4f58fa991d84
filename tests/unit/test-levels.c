/* SPDX-License-Identifier: MIT */

/* Variances between and within runs against R's anova(), and the plan against trying plans out. */

#include "daemon/analysis/statistics/levels.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

static void test_against_r(void) {
        struct cases c;
        CHECK(cases_open(&c, "levels"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t k = cases_count(&c), lengths[12], n = 0;
                for (size_t i = 0; i < k; i++)
                        n += lengths[i] = cases_count(&c);
                const double *values = cases_take(&c, n), *want = cases_take(&c, 3);
                struct levels l;
                bool good = levels_of(values, lengths, k, &l) == 0 && is_close(l.mean, want[0]) &&
                            fabs(l.between - want[1]) <= 1e-11 * want[2] && is_close(l.within, want[2]);
                if (!good)
                        fprintf(stderr, "line %zu: %.17g %.17g %.17g\n", c.line_number, l.mean, l.between, l.within);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 100);
        CHECK_UINT(wrong, 0);
}

static int plan_of(const struct levels *l, double overhead, double seconds, struct levels_plan *ret) {
        const struct levels_budget b = {
                .seconds = seconds, .overhead_seconds = overhead, .runs_min = 2, .window_max = 60};
        return levels_plan(l, &b, ret);
}

static void test_refused(void) {
        struct levels l;
        CHECK_INT(levels_of((const double[]){1, 2}, (const size_t[]){2}, 1, &l), -EINVAL);
        CHECK_INT(levels_of((const double[]){1, 2, 3}, (const size_t[]){2, 1}, 2, &l), -EINVAL);
        CHECK_INT(levels_of((const double[]){1, 2, 3, INFINITY}, (const size_t[]){2, 2}, 2, &l), -EINVAL);
        struct levels known = {.mean = 100, .between = 4, .within = 9};
        struct levels_plan plan;
        CHECK_INT(plan_of(&known, 2, 5, &plan), -ERANGE);
        CHECK_INT(plan_of(&known, 0, 500, &plan), -EINVAL);
        struct levels_budget six = {.seconds = 15, .overhead_seconds = 2, .runs_min = 6, .window_max = 60};
        CHECK_INT(levels_plan(&known, &six, &plan), -ERANGE);
        six.seconds = 18;
        CHECK_INT(levels_plan(&known, &six, &plan), 0);
        CHECK_UINT(plan.runs, 6);
        six.runs_min = 1;
        CHECK_INT(levels_plan(&known, &six, &plan), -EINVAL);
}

/* Runs that differ: many short ones. Runs that do not: few long ones, as each start costs. */
static void test_plan(void) {
        struct levels_plan plan;
        CHECK_INT(plan_of(&(struct levels){.mean = 100, .between = 25, .within = 1}, 2, 300, &plan), 0);
        CHECK_UINT(plan.seconds_per_run, 1);
        CHECK_UINT(plan.runs, 100);
        CHECK(is_close(plan.relative_error, sqrt(26.0 / 100) / 100));
        CHECK_INT(plan_of(&(struct levels){.mean = 100, .between = 0, .within = 25}, 2, 300, &plan), 0);
        CHECK(plan.seconds_per_run >= 50);
        /* the root of 2 / 1 × 64 / 8: four seconds */
        CHECK_INT(plan_of(&(struct levels){.mean = 100, .between = 8, .within = 64}, 2, 6000, &plan), 0);
        CHECK_UINT(plan.seconds_per_run, 4);
        CHECK_UINT(plan.runs, 1000);
}

/* The error that a plan promises is the one that runs by it have. */
static void test_promise(void) {
        const struct levels truth = {.mean = 100, .between = 9, .within = 36};
        struct levels_plan plan;
        CHECK_INT(plan_of(&truth, 2, 120, &plan), 0);
        struct random random;
        random_init(&random, 1);
        double squares = 0;
        const unsigned trials = 2000;
        for (unsigned t = 0; t < trials; t++) {
                double sum = 0;
                for (uint32_t k = 0; k < plan.runs; k++) {
                        double run = truth.mean + 3 * sample_normal(&random), seconds = 0;
                        for (uint32_t i = 0; i < plan.seconds_per_run; i++)
                                seconds += run + 6 * sample_normal(&random);
                        sum += seconds / plan.seconds_per_run;
                }
                double apart = sum / plan.runs / truth.mean - 1;
                squares += apart * apart;
        }
        double seen = sqrt(squares / trials);
        printf("     %u runs of %u s: relative error %.4f promised, %.4f seen\n", plan.runs, plan.seconds_per_run,
               plan.relative_error, seen);
        CHECK(fabs(seen / plan.relative_error - 1) < 0.08); /* five standard errors */
}

int main(void) {
        RUN(test_against_r);
        RUN(test_refused);
        RUN(test_plan);
        RUN(test_promise);
        return check_end();
}
