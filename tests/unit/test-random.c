/* SPDX-License-Identifier: MIT */

/* The generator against its published algorithm, and that nothing drawn from it leans to one side. */

#include "schema/random.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"

/* Integers of 64 bits: read as such, not as the doubles of cases.h. */
static void test_published_numbers(void) {
        struct cases c;
        CHECK(cases_open(&c, "random"));
        unsigned wrong = 0, n = 0;
        while (cases_next(&c)) {
                char *p = c.line;
                struct random r;
                random_init(&r, strtoull(p, &p, 10));
                for (unsigned i = 0; i < 8; i++, n++)
                        wrong += random_next(&r) != strtoull(p, &p, 10);
        }
        cases_close(&c);
        CHECK_UINT(n, 40);
        CHECK_UINT(wrong, 0);
}

static void test_unit(void) {
        struct random r;
        random_init(&r, 1);
        double sum = 0;
        for (unsigned i = 0; i < 100000; i++) {
                double u = random_unit(&r);
                CHECK(u >= 0 && u < 1);
                sum += u;
        }
        CHECK(fabs(sum / 100000 - 0.5) < 0.005); /* five standard errors */
}

static void test_below(void) {
        struct random r;
        random_init(&r, 2);
        unsigned counts[7] = {0};
        for (unsigned i = 0; i < 70000; i++)
                counts[random_below(&r, 7)]++;
        for (unsigned i = 0; i < 7; i++)
                CHECK(counts[i] > 9500 && counts[i] < 10500);
        CHECK_UINT(random_below(&r, 1), 0);
}

/* Each of the six orders of three. */
static void test_shuffle(void) {
        struct random r;
        random_init(&r, 3);
        unsigned counts[27] = {0};
        for (unsigned i = 0; i < 60000; i++) {
                uint32_t v[] = {0, 1, 2};
                random_shuffle(&r, v, 3);
                counts[v[0] * 9 + v[1] * 3 + v[2]]++;
        }
        unsigned orders = 0;
        for (unsigned i = 0; i < 27; i++) {
                orders += counts[i] > 0;
                CHECK(counts[i] == 0 || (counts[i] > 9500 && counts[i] < 10500));
        }
        CHECK_UINT(orders, 6);
}

int main(void) {
        RUN(test_published_numbers);
        RUN(test_unit);
        RUN(test_below);
        RUN(test_shuffle);
        return check_end();
}
