/* SPDX-License-Identifier: MIT */

/* Adjusted p values against R's p.adjust(). */

#include "daemon/analysis/statistics/multiple.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"

static void test_against_r(void) {
        struct cases c;
        CHECK(cases_open(&c, "multiple"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t n = cases_count(&c);
                const double *p = cases_take(&c, n), *holm = cases_take(&c, n), *bh = cases_take(&c, n);
                double got[60];
                wrong += multiple_adjust(MULTIPLE_HOLM, p, NULL, n, got) != 0;
                for (size_t i = 0; i < n; i++)
                        wrong += !is_close(got[i], holm[i]);
                wrong += multiple_adjust(MULTIPLE_BENJAMINI_HOCHBERG, p, NULL, n, got) != 0;
                for (size_t i = 0; i < n; i++)
                        wrong += !is_close(got[i], bh[i]);
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 500);
        CHECK_UINT(wrong, 0);
}

static void test_in_place(void) {
        double p[] = {0.01, 0.04, 0.03};
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, p, NULL, 3, p), 0);
        CHECK(p[0] == 0.03 && p[1] == 0.06 && p[2] == 0.06);
}

/* Each look is a test, until the row is found. */
static void test_looks(void) {
        const double p[] = {0.001, 0.004, 0.02};
        double got[3];
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, p, (const uint32_t[]){1, 7, 1}, 3, got), 0);
        CHECK(is_close(got[0], 0.009) && is_close(got[1], 0.032) && is_close(got[2], 0.032));
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, p, (const uint32_t[]){7, 7, 7}, 3, got), 0);
        CHECK(is_close(got[0], 0.021) && is_close(got[1], 0.056) && is_close(got[2], 0.14));
        CHECK_INT(multiple_adjust(MULTIPLE_BENJAMINI_HOCHBERG, p, (const uint32_t[]){1, 7, 1}, 3, got), 0);
        CHECK(is_close(got[0], 0.009) && is_close(got[1], 0.018) && is_close(got[2], 0.06));
}

static void test_refused(void) {
        double got[2] = {7, 7};
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, (const double[]){0.5, 1.5}, NULL, 2, got), -EINVAL);
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, (const double[]){0.5, NAN}, NULL, 2, got), -EINVAL);
        CHECK(got[0] == 7 && got[1] == 7);
        CHECK_INT(multiple_adjust(MULTIPLE_HOLM, NULL, NULL, 0, NULL), 0);
}

int main(void) {
        RUN(test_against_r);
        RUN(test_in_place);
        RUN(test_looks);
        RUN(test_refused);
        return check_end();
}
