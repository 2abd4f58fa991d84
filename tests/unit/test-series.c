/* SPDX-License-Identifier: MIT */

/* The bench's arithmetic: medians, and whether its intervals hold what they promise where the truth is known. */

#include "tests/bench/series.h"
#include "tests/unit/check.h"

#include <math.h>

#define TRIALS 300u

static uint64_t noise_state;

/* 1, give or take `spread`, evenly; from a fixed seed. */
static double noise(double spread) {
        noise_state = noise_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return 1 + spread * ((double) (noise_state >> 33) / (double) (UINT64_C(1) << 31) * 2 - 1);
}

static void fill(struct series *s, unsigned n, double level, double spread) {
        for (s->n = 0; s->n < n; s->n++)
                s->values[s->n] = level * noise(spread);
}

static void test_median(void) {
        static struct series s;
        s = (struct series){{7}, 1};
        CHECK(series_median(&s) == 7);
        s = (struct series){{9, 1, 4}, 3};
        CHECK(series_median(&s) == 4);
        s = (struct series){{9, 1, 4, 2}, 4};
        CHECK(series_median(&s) == 3);
        CHECK(series_min(&s) == 1 && series_max(&s) == 9);
        CHECK(s.values[0] == 9); /* the order stays: places belong together */
}

static void test_few_rounds_have_no_interval(void) {
        static struct series a, b;
        fill(&a, 5, 50, 0);
        fill(&b, 5, 100, 0);
        struct ratio r = series_ratio(&a, &b);
        CHECK(r.value == 0.5);
        CHECK(!r.has_interval);
        CHECK(!ratio_settled(&r, 1));
        CHECK_INT(ratio_verdict(&r, 0.97), VERDICT_MISSES); /* nothing is called below on so little */
        CHECK_INT(ratio_verdict(&r, 0.5), VERDICT_HOLDS);   /* nor reached */
}

static void test_the_same_twice(void) {
        static struct series a, b;
        fill(&a, 20, 90, 0.1);
        fill(&b, 20, 100, 0.1);
        struct ratio r = series_ratio(&a, &b), again = series_ratio(&a, &b);
        CHECK(r.has_interval && r.low < r.value && r.value < r.high);
        CHECK(r.low == again.low && r.high == again.high);
}

/* What disturbs a whole turn is in both, and cancels. */
static void test_common_disturbance_cancels(void) {
        static struct series a, b;
        fill(&b, 21, 100, 0.5);
        a.n = b.n;
        for (unsigned i = 0; i < a.n; i++)
                a.values[i] = 0.98 * b.values[i];
        struct ratio r = series_ratio(&a, &b);
        CHECK(ratio_settled(&r, 0.0001));
        CHECK(r.value > 0.9799 && r.value < 0.9801);
}

/* Two CPUs that are near and far from each other by turns, for many rounds each: a contender with one near round more
 * would have another median by far. */
static void test_a_machine_of_two_speeds(void) {
        static struct series a, b;
        noise_state = 3;
        fill(&b, 31, 100, 0.01);
        fill(&a, 31, 98, 0.01);
        for (unsigned i = 0; i < a.n; i++) {
                a.values[i] *= i < 15 ? 1 : 14;
                b.values[i] *= i < 16 ? 1 : 14; /* the speed changed between the two */
        }
        CHECK(series_median(&a) / series_median(&b) > 10);
        struct ratio r = series_ratio(&a, &b);
        CHECK(r.value > 0.97 && r.value < 0.99);
        CHECK(r.low > 0.96 && r.high < 1);
}

/* The interval is between two of the ratios: which, is in tables of the binomial distribution. */
static void test_ends(void) {
        static const struct {
                unsigned n;
                double low, high;
        } cases[] = {{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {15, 4, 12}, {20, 6, 15}, {100, 40, 61}};
        static struct series a, b;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                a.n = b.n = cases[i].n;
                for (unsigned k = 0; k < a.n; k++) {
                        a.values[k] = k + 1;
                        b.values[k] = 1;
                }
                struct ratio r = series_ratio(&a, &b);
                CHECK(r.low == cases[i].low && r.high == cases[i].high);
        }
        for (a.n = b.n = 1; a.n <= SERIES_MAX; a.n = ++b.n)
                a.values[a.n - 1] = b.values[a.n - 1] = 1;
        a.n = b.n = SERIES_MAX;
        CHECK(series_ratio(&a, &b).has_interval);
}

/* A round in which one contender moved nothing does not count against the other. */
static void test_nothing_to_compare_with(void) {
        static struct series a, b;
        fill(&a, 7, 1, 0);
        fill(&b, 7, 1, 0);
        b.values[3] = 0;
        struct ratio r = series_ratio(&a, &b);
        CHECK(r.value == 1 && r.low == 1 && isinf(r.high));
        a.values[3] = 0; /* nor against the one that moved nothing */
        r = series_ratio(&a, &b);
        CHECK(r.low == 1 && r.high == 1);
}

static void test_verdicts(void) {
        static const struct {
                struct ratio r;
                enum verdict want;
        } table[] = {
                {{0.97, true, 0.90, 1.10}, VERDICT_HOLDS},    {{0.98, true, 0.9699, 1.10}, VERDICT_HOLDS},
                {{0.98, true, 0.97, 1.10}, VERDICT_REACHED},  {{0.969, true, 0.90, 0.97}, VERDICT_MISSES},
                {{0.969, true, 0.90, 0.9699}, VERDICT_BELOW}, {{1.2, true, 1.1, 1.3}, VERDICT_REACHED},
        };
        for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
                CHECK_INT(ratio_verdict(&table[i].r, 0.97), table[i].want);
        CHECK(ratio_settled(&table[0].r, 0.101));
        CHECK(!ratio_settled(&table[0].r, 0.099));
}

/* At least 90 % of intervals of 95 % hold the truth, though there are but 15 rounds; and hardly all of them, or they
 * would be too wide. */
static void test_coverage(void) {
        static struct series a, b;
        unsigned holds = 0;
        noise_state = 1;
        for (unsigned i = 0; i < TRIALS; i++) {
                fill(&a, 15, 100, 0.3);
                fill(&b, 15, 100, 0.3);
                struct ratio r = series_ratio(&a, &b);
                holds += r.low <= 1 && 1 <= r.high;
        }
        CHECK(holds >= TRIALS * 90 / 100);
        CHECK(holds <= TRIALS * 99 / 100);
}

/* An agent that is as good as the loop is hardly ever called below; one that costs 8 % nearly always. */
static void test_false_alarms_and_misses(void) {
        static struct series a, b;
        unsigned alarms = 0, found = 0;
        noise_state = 2;
        for (unsigned i = 0; i < TRIALS; i++) {
                fill(&b, 15, 100, 0.03);
                fill(&a, 15, 100, 0.03);
                struct ratio same = series_ratio(&a, &b);
                fill(&a, 15, 92, 0.03);
                struct ratio worse = series_ratio(&a, &b);
                alarms += ratio_verdict(&same, 0.97) == VERDICT_BELOW;
                found += ratio_verdict(&worse, 0.97) == VERDICT_BELOW;
        }
        CHECK(alarms <= TRIALS / 100);
        CHECK(found >= TRIALS * 90 / 100);
}

int main(void) {
        RUN(test_median);
        RUN(test_few_rounds_have_no_interval);
        RUN(test_the_same_twice);
        RUN(test_common_disturbance_cancels);
        RUN(test_a_machine_of_two_speeds);
        RUN(test_ends);
        RUN(test_nothing_to_compare_with);
        RUN(test_verdicts);
        RUN(test_coverage);
        RUN(test_false_alarms_and_misses);
        return check_end();
}
