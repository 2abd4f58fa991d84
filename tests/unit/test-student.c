/* SPDX-License-Identifier: MIT */

/* Quantiles of Student's t beside those of published tables, to more digits, and where it has closed forms. */

#include "daemon/analysis/statistics/student.h"
#include "tests/unit/check.h"

#include <math.h>

static void test_published(void) {
        static const struct {
                double p;
                unsigned degrees;
                double t;
        } table[] = {
                {0.95, 2, 2.919985580355516},  {0.95, 3, 2.353363434801823},  {0.95, 4, 2.131846786326649},
                {0.95, 5, 2.015048372669157},  {0.975, 5, 2.570581835636314}, {0.975, 10, 2.228138851964939},
                {0.95, 61, 1.670219484226537}, {0.995, 7, 3.499483297350494},
        };
        for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
                double got = student_quantile(table[i].p, table[i].degrees);
                if (fabs(got / table[i].t - 1) > 1e-9)
                        CHECK_FAIL("%g with %u degrees: %.15g", table[i].p, table[i].degrees, got);
        }
}

/* Cauchy's distribution, and that of two degrees. */
static void test_closed_forms(void) {
        for (double p = 0.51; p < 0.999; p += 0.007) {
                double u = 2 * p - 1;
                CHECK(fabs(student_quantile(p, 1) / tan(M_PI * (p - 0.5)) - 1) < 1e-9);
                CHECK(fabs(student_quantile(p, 2) / (u * sqrt(2 / (1 - u * u))) - 1) < 1e-9);
        }
}

int main(void) {
        RUN(test_published);
        RUN(test_closed_forms);
        return check_end();
}
