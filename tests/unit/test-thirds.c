/* SPDX-License-Identifier: MIT */

/* Series as they were recorded, and of nothing but scatter. */

#include "daemon/analysis/thirds.h"
#include "tests/unit/check.h"

#include <stdlib.h>

#define N(array) (sizeof(array) / sizeof((array)[0]))

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
        RUN(test_steady);
        RUN(test_steady_as_recorded);
        RUN(test_scatter_is_no_drift);
        return check_end();
}
