/* SPDX-License-Identifier: MIT */

/* Change points against ruptures, classes of series that have been drawn up, and how often noise looks like a change.
 */

#include "daemon/analysis/statistics/segments.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define WINDOW 300u    /* 30 s, ten counts a second */
#define NOISE 0.095    /* of a count: 3 % of a second */
#define TOLERANCE 0.02 /* of the means of segments */
#define TRIALS 400u

static struct segments s; /* too long for the stack of a test */

static void test_against_ruptures(void) {
        struct cases c;
        CHECK(cases_open(&c, "segments"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t n = cases_count(&c), least = cases_count(&c), got;
                double penalty = *cases_take(&c, 1);
                const double *values = cases_take(&c, n);
                size_t want = cases_count(&c);
                const double *ends = cases_take(&c, want);
                struct segment list[200];
                bool good = segments_find(values, n, least, penalty, list, &got) == 0 && got == want;
                for (size_t i = 0; good && i < want; i++)
                        good = (double) list[i].end == ends[i] && list[i].begin == (i > 0 ? list[i - 1].end : 0);
                if (!good)
                        fprintf(stderr, "line %zu: %zu segments, expected %zu\n", c.line_number, got, want);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 100);
        CHECK_UINT(wrong, 0);
}

/* First-order autoregressive noise about `mean`, with the same variance whatever its correlation. */
static void fill(struct random *random, double *values, double mean, double noise, double correlation) {
        double e = sample_normal(random);
        for (size_t i = 0; i < WINDOW; i++) {
                values[i] = fmax(0, mean * (1 + noise * e));
                e = correlation * e + sqrt(1 - correlation * correlation) * sample_normal(random);
        }
}

static void scale(double *values, size_t begin, size_t end, double factor) {
        for (size_t i = begin; i < end; i++)
                values[i] *= factor;
}

static void test_classes(void) {
        static const struct {
                double factors[6]; /* of each sixth of the window */
                enum segments_class class;
                size_t from;
        } table[] = {
                {{1, 1, 1, 1, 1, 1}, SEGMENTS_FLAT, 0},
                {{1, 1.015, 1, 1, 1.015, 1}, SEGMENTS_FLAT, 0}, /* within the tolerance */
                {{0.5, 1, 1, 1, 1, 1}, SEGMENTS_WARM_UP, 50},
                {{0.5, 0.8, 1, 1, 1, 1}, SEGMENTS_WARM_UP, 100},
                {{2, 1, 1, 1, 1, 1}, SEGMENTS_SLOW_DOWN, 50},
                {{1, 1, 1, 0.7, 0.7, 0.7}, SEGMENTS_SLOW_DOWN, 150},
                {{1, 1, 0.8, 1, 1, 1}, SEGMENTS_UNSTEADY, 0}, /* a dip: what was lost came back */
                {{1, 1, 1, 1, 1, 0.7}, SEGMENTS_UNSTEADY, 0}, /* too late to be a steady state */
                {{1, 0.5, 1.5, 0.7, 1.2, 1}, SEGMENTS_UNSTEADY, 0},
        };
        struct random random;
        random_init(&random, 1);
        for (size_t i = 0; i < N(table); i++) {
                double values[WINDOW];
                fill(&random, values, 10000, 0.02, 0);
                for (size_t k = 0; k < 6; k++)
                        scale(values, k * 50, (k + 1) * 50, table[i].factors[k]);
                CHECK_INT(segments_judge(values, WINDOW, SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
                CHECK_INT(s.reason, SEGMENTS_KNOWN);
                if (s.class != table[i].class)
                        CHECK_FAIL("series %zu is of class %u, %zu segments", i, s.class, s.n);
                CHECK(s.steady_from + 3 >= table[i].from && s.steady_from <= table[i].from + 3);
                for (size_t k = 0; k < WINDOW; k++) /* the times of what comes so often */
                        values[k] = 1e9 / values[k];
                CHECK_INT(segments_judge(values, WINDOW, SEGMENTS_OF_TIMES, TOLERANCE, &s), 0);
                if (s.class != table[i].class)
                        CHECK_FAIL("times of series %zu are of class %u, %zu segments", i, s.class, s.n);
                CHECK(s.steady_from + 3 >= table[i].from && s.steady_from <= table[i].from + 3);
        }
}

/* Seconds of one run that were called steady, as ten counts each: nearly as many changes as a series can have. */
static void test_wild_run(void) {
        static const double seconds[] = {184, 867, 763, 261, 244, 99, 376, 531, 553};
        struct random random;
        random_init(&random, 2);
        unsigned unsteady = 0, flat = 0;
        for (unsigned t = 0; t < TRIALS; t++) {
                double values[90];
                for (size_t i = 0; i < 90; i++)
                        values[i] = seconds[i / 10] * (1 + 0.05 * sample_normal(&random));
                CHECK_INT(segments_judge(values, 90, SEGMENTS_OF_COUNTS, 0.1, &s), 0);
                unsteady += s.class == SEGMENTS_UNSTEADY;
                flat += s.class == SEGMENTS_FLAT;
        }
        CHECK(sample_share("184, 867, 763, 261, 244, 99, 376, 531, 553 MB/s: no steady state", unsteady, TRIALS) >=
              0.90);
        CHECK_UINT(flat, 0);
}

static void test_no_noise(void) {
        double values[WINDOW];
        for (size_t i = 0; i < WINDOW; i++)
                values[i] = 0;
        CHECK_INT(segments_judge(values, WINDOW, SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_FLAT); /* a stall is steady */
        for (size_t i = 0; i < WINDOW; i++)
                values[i] = i < 40 ? 900 : 1000 + (double) (i % 7 == 0);
        CHECK_INT(segments_judge(values, WINDOW, SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_WARM_UP);
        CHECK_UINT(s.steady_from, 40);
}

/* Medians of a histogram have few values: hardly any neighbours differ, and those that do are the changes. */
static void test_levels(void) {
        double values[60];
        for (size_t i = 0; i < N(values); i++)
                values[i] = i >= 20 && i < 40 ? 200 : 100;
        CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_UNSTEADY);
        CHECK_UINT(s.n, 3);
        for (size_t i = 0; i < N(values); i++)
                values[i] = i >= 20 && i < 22 ? 101 : 100; /* the next bucket, for a moment */
        CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_FLAT);
}

/* On a machine so busy that each tenth of a second is another, a stop is still one. */
static void test_standstill(void) {
        struct random random;
        random_init(&random, 7);
        for (unsigned t = 0; t < TRIALS; t++) {
                double values[60];
                for (size_t i = 0; i < N(values); i++)
                        values[i] = i >= 27 && i < 42 ? 0 : 1000 * sample_skewed(&random, 0.5);
                values[33] = 500; /* for a moment */
                CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, 0.1, &s), 0);
                CHECK_INT(s.reason, SEGMENTS_KNOWN);
                CHECK_INT(s.class, SEGMENTS_UNSTEADY);
                bool found = false;
                for (size_t i = 0; i < s.n; i++)
                        found |= s.list[i].begin == 27 && s.list[i].end == 42;
                CHECK(found);
        }
        double values[60] = {0}; /* a message now and then: nothing stands still */
        for (size_t i = 0; i < N(values); i += 7)
                values[i] = 1;
        CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, 0.1, &s), 0);
        CHECK_INT(s.class, SEGMENTS_FLAT);
        for (size_t i = 0; i < N(values); i++) /* it never begins to move again */
                values[i] = i < 40 ? 1000 + (double) (i % 3) : 0;
        CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, 0.1, &s), 0);
        CHECK_INT(s.class, SEGMENTS_SLOW_DOWN);
}

/* A longer series than the search takes: neighbours are put together, places are those of the series. */
static void test_long(void) {
        static double values[10007];
        struct random random;
        random_init(&random, 3);
        for (size_t i = 0; i < N(values); i++)
                values[i] = (i < 3000 ? 50 : 100) + 5 * sample_normal(&random);
        CHECK_INT(segments_judge(values, N(values), SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_WARM_UP);
        CHECK(s.steady_from >= 2996 && s.steady_from <= 3004);
        CHECK_UINT(s.list[s.n - 1].end, N(values));
}

static void test_refused(void) {
        double values[SEGMENTS_VALUES_MIN] = {0};
        struct segment list[1];
        struct segments_noise noise;
        size_t n;
        CHECK_INT(segments_judge(values, SEGMENTS_VALUES_MIN - 1, SEGMENTS_OF_COUNTS, TOLERANCE, &s), 0);
        CHECK_INT(s.class, SEGMENTS_UNKNOWN);
        CHECK_INT(s.reason, SEGMENTS_TOO_SHORT);
        CHECK_INT(segments_noise(values, 7, &noise), -EINVAL);
        CHECK_INT(segments_find(values, 4, 5, 1, list, &n), -EINVAL);
        CHECK_INT(segments_find(values, 4, 0, 1, list, &n), -EINVAL);
        CHECK_INT(segments_find(values, 4, 4, -1, list, &n), -EINVAL);
        values[3] = -1;
        CHECK_INT(segments_judge(values, SEGMENTS_VALUES_MIN, SEGMENTS_OF_COUNTS, TOLERANCE, &s), -EINVAL);
}

/* How many of TRIALS windows are not judged flat, are not judged at all, and have a change point. */
struct tally {
        unsigned judged_moving, unknown, changed;
};

static struct tally try_windows(uint64_t seed, double correlation, size_t begin, size_t end, double factor) {
        struct tally t = {0};
        struct random random;
        random_init(&random, seed);
        for (unsigned i = 0; i < TRIALS; i++) {
                double values[WINDOW];
                fill(&random, values, 10000, NOISE, correlation);
                scale(values, begin, end, factor);
                if (segments_judge(values, WINDOW, SEGMENTS_OF_COUNTS, TOLERANCE, &s) < 0)
                        return (struct tally){0};
                t.unknown += s.class == SEGMENTS_UNKNOWN;
                t.judged_moving += s.class != SEGMENTS_UNKNOWN && s.class != SEGMENTS_FLAT;
                t.changed += s.n > 1;
        }
        return t;
}

static void test_changes_are_found(void) {
        struct tally dip = try_windows(1, 0, 135, 165, 0.85), step = try_windows(2, 0, 150, 300, 0.93);
        CHECK(sample_share("a dip of 15 % for 3 s in mid-window (a second varies by 3 %): not flat", dip.judged_moving,
                           TRIALS) >= 0.90);
        CHECK(sample_share("a step of 7 % in mid-window: not flat", step.judged_moving, TRIALS) >= 0.90);
}

static void test_noise_is_no_change(void) {
        struct tally white = try_windows(3, 0, 0, 0, 1), some = try_windows(4, 0.6, 0, 0, 1),
                     strong = try_windows(5, 0.9, 0, 0, 1);
        CHECK(sample_share("change points in white noise", white.changed, TRIALS) <= 0.01);
        CHECK(sample_share("change points in autoregressive noise of 0.6", some.changed, TRIALS) <= 0.07);
        CHECK(sample_share("change points in autoregressive noise of 0.9", strong.changed, TRIALS) <= 0.25);
        CHECK(sample_share("autoregressive noise of 0.9: not judged, as a change cannot be distinguished",
                           strong.unknown, TRIALS) >= 0.75);
}

/* Changes in 144 series of noise, 12 values each, as in a baseline's history: a mean of many. */
static double changes_in_history(uint64_t seed, double correlation, size_t n_series) {
        enum { VALUES = 12, LEAST = 3, SERIES = 144, ANSWERS = 50 };
        struct random random;
        unsigned changes = 0;
        random_init(&random, seed);
        for (unsigned i = 0; i < SERIES * ANSWERS; i++) {
                double values[WINDOW];
                struct segments_noise noise;
                struct segment list[VALUES / LEAST];
                size_t n = 0;
                fill(&random, values, 1, 0.02, correlation);
                if (segments_noise(values, VALUES, &noise) < 0 ||
                    segments_find(values, VALUES, LEAST, segments_penalty(VALUES, n_series, noise.long_run), list, &n) <
                            0)
                        return INFINITY;
                changes += n > 1;
        }
        printf("     changes in 144 series of noise of %.2f, as of %zu: %.2f\n", correlation, n_series,
               (double) changes / ANSWERS);
        return (double) changes / ANSWERS;
}

static void test_many_series(void) {
        CHECK(changes_in_history(6, 0, 1) > 2 && changes_in_history(7, 0.35, 1) > 5);
        CHECK(changes_in_history(6, 0, 144) <= 0.5);
        CHECK(changes_in_history(7, 0.35, 144) <= 1);
}

int main(void) {
        RUN(test_against_ruptures);
        RUN(test_classes);
        RUN(test_wild_run);
        RUN(test_no_noise);
        RUN(test_levels);
        RUN(test_standstill);
        RUN(test_long);
        RUN(test_refused);
        RUN(test_changes_are_found);
        RUN(test_noise_is_no_change);
        RUN(test_many_series);
        return check_end();
}
