/* SPDX-License-Identifier: MIT */

/* Held against published tables of the sign test's confidence limits for the median. */

#include "daemon/result/statistics.h"
#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void test_median(void) {
        static const struct {
                double values[6];
                size_t n;
                double median, min, max;
        } table[] = {
                {{7}, 1, 7, 7, 7},
                {{9, 1}, 2, 5, 1, 9},
                {{3, 1, 2}, 3, 2, 1, 3},
                {{4, 1, 3, 2}, 4, 2.5, 1, 4},
                {{5, 5, 5, 5, 5}, 5, 5, 5, 5},
                {{-1, -3, -2}, 3, -2, -3, -1},
                {{1e308, 1.5e308}, 2, 1.25e308, 1e308, 1.5e308}, /* the sum would overflow */
        };
        for (size_t i = 0; i < N(table); i++) {
                struct statistic s;
                CHECK_INT(statistic_of(table[i].values, table[i].n, &s), 0);
                CHECK_UINT(s.n, table[i].n);
                CHECK(s.median == table[i].median);
                CHECK(s.min == table[i].min && s.max == table[i].max);
                CHECK(!s.has_ci95);
        }
}

static void test_nothing_to_show(void) {
        struct statistic s = {.n = 9, .has_ci95 = true};
        CHECK_INT(statistic_of(NULL, 0, &s), 0);
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
                CHECK_INT(statistic_of(values, table[i].n, &s), 0);
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
        CHECK_INT(statistic_of(values, n, &s), 0);
        free(values);
        CHECK(s.has_ci95);
        CHECK(fabs(s.ci95_low - (2500 - 1.96 * sqrt(5000) / 2)) <= 1.5);
        CHECK(s.ci95_low + s.ci95_high == 5001);
}

/* The interval is what it claims: of samples of a skewed distribution, at least 95 in 100 cover its median. */
static void test_interval_covers(void) {
        unsigned covered = 0, trials = 4000;
        unsigned short state[3] = {1, 2, 3};
        for (unsigned t = 0; t < trials; t++) {
                double values[9];
                for (size_t i = 0; i < 9; i++)
                        values[i] = -log(1 - erand48(state)); /* exponential, median ln 2 */
                struct statistic s;
                CHECK_INT(statistic_of(values, 9, &s), 0);
                covered += s.ci95_low <= M_LN2 && M_LN2 <= s.ci95_high;
        }
        CHECK(covered >= trials * 95 / 100); /* 96.1 % expected of n = 9 */
        CHECK(covered <= trials * 98 / 100); /* and it is not simply everything */
}

static void test_input_is_left_alone(void) {
        double values[] = {3, 1, 2};
        struct statistic s;
        CHECK_INT(statistic_of(values, 3, &s), 0);
        CHECK(values[0] == 3 && values[1] == 1 && values[2] == 2);
}

static void test_steady(void) {
        static const struct {
                double values[12];
                size_t n;
                enum series_verdict verdict;
        } table[] = {
                {{0}, 0, SERIES_TOO_SHORT},
                {{100, 100}, 2, SERIES_TOO_SHORT},
                {{1, 100, 1, 100, 1}, 5, SERIES_UNCLEAR}, /* the ends agree by chance */
                {{100, 100, 100}, 3, SERIES_STEADY},
                {{100, 102, 104}, 3, SERIES_STEADY},             /* within the tolerance */
                {{0, 0, 0}, 3, SERIES_STEADY},                   /* a stall is steady */
                {{100, 120, 140}, 3, SERIES_UNSTEADY},           /* climbs */
                {{100, 140, 120}, 3, SERIES_UNCLEAR},            /* climbs, or does not */
                {{50, 100, 101}, 3, SERIES_UNSTEADY},            /* started late */
                {{50, 100, 101, 99}, 4, SERIES_UNSTEADY},        /* started late */
                {{100, 130, 90, 80}, 4, SERIES_UNCLEAR},         /* noise */
                {{200, 110, 101, 99, 100}, 5, SERIES_UNSTEADY},  /* falls, then settles */
                {{100, 110, 119, 131, 140}, 5, SERIES_UNSTEADY}, /* climbs */
                {{100, 130, 90, 120, 80}, 5, SERIES_UNCLEAR},    /* noise */
                {{100, 100, 100, 100, 100, 100}, 6, SERIES_STEADY},
                {{100, 101, 99, 100, 102, 98, 101, 99, 100}, 9, SERIES_STEADY},
                {{50, 60, 70, 80, 90, 100, 110, 120, 130}, 9, SERIES_UNSTEADY},             /* climbs */
                {{200, 190, 150, 110, 101, 100, 100, 100, 100}, 9, SERIES_UNSTEADY},        /* falls, then settles */
                {{100, 100, 100, 100, 100, 100, 104, 104, 104}, 9, SERIES_STEADY},          /* within the tolerance */
                {{100, 100, 100, 100, 100, 100, 106, 106, 106}, 9, SERIES_UNSTEADY},        /* just outside */
                {{10, 200, 30, 150, 90, 20, 180, 40, 210, 15, 60, 190}, 12, SERIES_STEADY}, /* noise, no trend */
                {{0, 0, 0, 0, 0, 0}, 6, SERIES_STEADY},
                {{0, 0, 100, 100, 100, 100}, 6, SERIES_UNSTEADY}, /* started late */
        };
        for (size_t i = 0; i < N(table); i++)
                if (series_judge(table[i].values, table[i].n, 0.05) != table[i].verdict)
                        CHECK_FAIL("series %zu", i);
}

/* Messages per second of windows of the default length, as runs on a virtual machine gave them: those of a quiet one,
 * and of one whose other guests took time away by fits and starts. */
static void test_steady_as_recorded(void) {
        static const struct {
                double values[5];
                enum series_verdict verdict;
        } table[] = {
                {{1343126, 1264406, 1219605, 1201989, 1336154}, SERIES_STEADY},
                {{1400281, 1403063, 1318050, 1488849, 1541661}, SERIES_STEADY},
                {{626306, 564665, 693593, 648363, 628580}, SERIES_STEADY},
                {{512375, 512595, 679897, 775589, 520458}, SERIES_UNCLEAR},
                {{1001014, 1915957, 4168446, 1594383, 1237853}, SERIES_UNCLEAR},
                {{1641330, 940133, 945382, 943014, 2662507}, SERIES_UNCLEAR},
                {{2131575, 2106322, 2141029, 3075445, 1531470}, SERIES_UNCLEAR},
                {{3222078, 3621157, 3609916, 1596237, 2874238}, SERIES_UNCLEAR},
                {{1120083, 1669968, 1254221, 1635387, 1742323}, SERIES_UNCLEAR},
                {{1318998, 2271965, 2122202, 2252608, 2251127}, SERIES_UNSTEADY}, /* a slow first second */
                {{1044085, 2470137, 3353845, 3242481, 3056435}, SERIES_UNSTEADY},
                {{1032794, 1203996, 2056157, 2065258, 2060357}, SERIES_UNSTEADY}, /* two */
        };
        for (size_t i = 0; i < N(table); i++)
                if (series_judge(table[i].values, 5, 0.10) != table[i].verdict)
                        CHECK_FAIL("series %zu", i);
}

/* Of short series of nothing but scatter, beyond any tolerance, 1 in 20 looks like a trend, as many seem to begin
 * apart; most are neither. */
static void test_scatter_is_no_drift(void) {
        unsigned short state[3] = {4, 5, 6};
        const unsigned trials = 4000;
        for (size_t n = SERIES_JUDGED_FROM; n < 6; n++) {
                unsigned unsteady = 0;
                for (unsigned t = 0; t < trials; t++) {
                        double values[5];
                        for (size_t i = 0; i < n; i++) /* normal enough */
                                values[i] = 100 + 10 * (erand48(state) + erand48(state) + erand48(state) - 1.5);
                        unsteady += series_judge(values, n, 0) == SERIES_UNSTEADY;
                }
                CHECK(unsteady < trials * 12 / 100);
                CHECK(unsteady > trials * 4 / 100);
        }
}

int main(void) {
        RUN(test_median);
        RUN(test_nothing_to_show);
        RUN(test_interval_ranks);
        RUN(test_interval_of_many);
        RUN(test_interval_covers);
        RUN(test_input_is_left_alone);
        RUN(test_steady);
        RUN(test_steady_as_recorded);
        RUN(test_scatter_is_no_drift);
        return check_end();
}
