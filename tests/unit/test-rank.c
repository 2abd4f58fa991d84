/* SPDX-License-Identifier: MIT */

/* Exact tests and intervals against R, coin, SciPy and counting in integers; see the heads of the data for which. */

#include "daemon/analysis/statistics/rank-internal.h"
#include "daemon/analysis/statistics/rank.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

static bool test_agrees(const struct rank_test *t, const double *want) {
        return t->statistic == want[0] && is_close(t->p_less, want[1]) && is_close(t->p_greater, want[2]) &&
               is_close(t->p_two_sided, want[3]);
}

static bool shift_agrees(const struct rank_shift *s, const double *want) {
        return is_close(s->estimate, want[0]) && is_close(s->low, want[1]) && is_close(s->high, want[2]) &&
               is_close(s->level, want[3]) && s->has_interval == (want[3] > 0);
}

static void complain(const struct cases *c, const struct rank_test *t, const struct rank_shift *s) {
        fprintf(stderr, "line %zu: %g %.17g %.17g %.17g, %.17g [%.17g, %.17g] %.17g\n", c->line_number, t->statistic,
                t->p_less, t->p_greater, t->p_two_sided, s->estimate, s->low, s->high, s->level);
}

static void test_sum_against_others(void) {
        struct cases c;
        CHECK(cases_open(&c, "rank-sum"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t n = cases_count(&c), m = cases_count(&c);
                const double *x = cases_take(&c, n), *y = cases_take(&c, m), *want = cases_take(&c, 8);
                struct rank_test t = {0};
                struct rank_shift s = {0};
                bool good = rank_sum_test(x, n, y, m, &t) == 0 && rank_sum_shift(x, n, y, m, 0.95, &s) == 0 &&
                            test_agrees(&t, want) && shift_agrees(&s, want + 4);
                if (!good)
                        complain(&c, &t, &s);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 500);
        CHECK_UINT(wrong, 0);
}

static void test_signed_against_others(void) {
        struct cases c;
        CHECK(cases_open(&c, "rank-signed"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                size_t n = cases_count(&c);
                const double *d = cases_take(&c, n), *want = cases_take(&c, 8);
                struct rank_test t = {0};
                struct rank_shift s = {0};
                bool good = rank_signed_test(d, n, &t) == 0 && rank_signed_shift(d, n, 0.95, &s) == 0 &&
                            test_agrees(&t, want) && shift_agrees(&s, want + 4);
                if (!good)
                        complain(&c, &t, &s);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 500);
        CHECK_UINT(wrong, 0);
}

struct pair {
        double x[40], y[40], more_x[80], more_y[80];
        size_t n, m;
        bool tied;
};

static void draw_pair(struct random *random, struct pair *p) {
        p->n = 4 + random_below(random, 17);
        p->m = 4 + random_below(random, 17);
        p->tied = random_below(random, 2);
        for (size_t i = 0; i < p->n; i++)
                p->x[i] = p->tied ? (double) random_below(random, 9) : sample_skewed(random, 1);
        for (size_t i = 0; i < p->m; i++)
                p->y[i] = p->tied ? (double) random_below(random, 7) : sample_skewed(random, 1);
}

/* The test of two samples, and the interval of their shift. */
struct outcome {
        struct rank_test t;
        struct rank_shift s;
};

static int compare(const double *x, size_t n, const double *y, size_t m, double level, struct outcome *ret) {
        int r = rank_sum_test(x, n, y, m, &ret->t);
        return r < 0 ? r : rank_sum_shift(x, n, y, m, level, &ret->s);
}

static bool same_test(const struct rank_test *a, const struct rank_test *b) {
        return a->statistic == b->statistic && a->p_less == b->p_less && a->p_greater == b->p_greater &&
               a->p_two_sided == b->p_two_sided;
}

/* Times a power of two, and in another order: the same p to the bit, and the shift times as much. */
static void test_scale_and_order(void) {
        struct random random;
        random_init(&random, 1);
        for (unsigned i = 0; i < 200; i++) {
                struct pair p;
                draw_pair(&random, &p);
                struct outcome o, scaled;
                for (size_t k = 0; k < p.n; k++)
                        p.more_x[k] = 8 * p.x[p.n - 1 - k];
                for (size_t k = 0; k < p.m; k++)
                        p.more_y[k] = 8 * p.y[(k + 2) % p.m];
                CHECK_INT(compare(p.x, p.n, p.y, p.m, 0.95, &o), 0);
                CHECK_INT(compare(p.more_x, p.n, p.more_y, p.m, 0.95, &scaled), 0);
                CHECK(same_test(&o.t, &scaled.t));
                CHECK(scaled.s.estimate == 8 * o.s.estimate && scaled.s.low == 8 * o.s.low);
                CHECK(scaled.s.high == 8 * o.s.high && scaled.s.level == o.s.level);
                CHECK_INT(rank_signed_test(p.x, p.n, &o.t), 0);
                CHECK_INT(rank_signed_test(p.more_x, p.n, &scaled.t), 0);
                CHECK(same_test(&o.t, &scaled.t));
        }
}

/* The sides change places, or all signs: what was less is greater. */
static void test_sides_change_places(void) {
        struct random random;
        random_init(&random, 2);
        for (unsigned i = 0; i < 200; i++) {
                struct pair p;
                draw_pair(&random, &p);
                struct outcome o, back;
                CHECK_INT(compare(p.x, p.n, p.y, p.m, 0.9, &o), 0);
                CHECK_INT(compare(p.y, p.m, p.x, p.n, 0.9, &back), 0);
                CHECK(is_close(o.t.p_less, back.t.p_greater) && is_close(o.t.p_greater, back.t.p_less));
                CHECK(o.t.statistic + back.t.statistic == (double) (p.n * p.m));
                CHECK(is_close(o.s.estimate, -back.s.estimate) && o.s.low == -back.s.high && o.s.high == -back.s.low);
        }
}

/* Every run twice: four times the pairs, the same shift, and nothing that was seen is seen less well. */
static void test_every_run_twice(void) {
        struct random random;
        random_init(&random, 3);
        for (unsigned i = 0; i < 200; i++) {
                struct pair p;
                draw_pair(&random, &p);
                for (size_t k = 0; k < 2 * p.n; k++)
                        p.more_x[k] = p.x[k % p.n];
                for (size_t k = 0; k < 2 * p.m; k++)
                        p.more_y[k] = p.y[k % p.m];
                struct outcome o, twice;
                CHECK_INT(compare(p.x, p.n, p.y, p.m, 0.95, &o), 0);
                CHECK_INT(compare(p.more_x, 2 * p.n, p.more_y, 2 * p.m, 0.95, &twice), 0);
                CHECK(twice.t.statistic == 4 * o.t.statistic);
                CHECK(o.t.p_two_sided > 0.2 || twice.t.p_two_sided < o.t.p_two_sided);
                CHECK(is_close(o.s.estimate, twice.s.estimate));
                CHECK(!o.s.has_interval ||
                      (twice.s.has_interval && twice.s.low >= o.s.low && twice.s.high <= o.s.high));
        }
}

/* Both ways to the distribution of 200 and 200, where there are 1e119 choices: by factors, and rank by rank. */
static void test_two_ways_to_a_tail(void) {
        static const uint64_t values[] = {0, 1, 40, 1000, 15000, 17800, 20000};
        uint32_t ranks[2 * RANK_MAX];
        for (uint32_t i = 0; i < 2 * RANK_MAX; i++)
                ranks[i] = i + 1;
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                struct rank_tail by_factors, by_ranks;
                uint64_t least = RANK_MAX * (RANK_MAX + 1) / 2;
                CHECK_INT(rank_sum_untied(RANK_MAX, RANK_MAX, values[i], &by_factors), 0);
                CHECK_INT(rank_sum_tied(ranks, 2 * RANK_MAX, RANK_MAX, least + values[i], &by_ranks), 0);
                CHECK(fabs(by_ranks.at_most / by_factors.at_most - 1) < 1e-12);
                CHECK(fabs(by_ranks.exactly / by_factors.exactly - 1) < 1e-12);
        }
}

static void test_nothing_but_zeros(void) {
        struct rank_test t;
        CHECK_INT(rank_signed_test((const double[]){0, 0, 0}, 3, &t), 0);
        CHECK(t.statistic == 0 && t.n_used == 0 && t.p_less == 1 && t.p_greater == 1 && t.p_two_sided == 1);
        CHECK_INT(rank_sum_test((const double[]){5, 5}, 2, (const double[]){5}, 1, &t), 0);
        CHECK(t.statistic == 1 && is_close(t.p_less, 1) && is_close(t.p_greater, 1) && t.p_two_sided == 1);
}

static void test_refused(void) {
        double many[RANK_MAX + 1] = {0};
        struct rank_test t;
        struct rank_shift s;
        CHECK_INT(rank_signed_test(many, 0, &t), -EINVAL);
        CHECK_INT(rank_signed_test(many, RANK_MAX + 1, &t), -E2BIG);
        CHECK_INT(rank_signed_test((const double[]){1, NAN}, 2, &t), -EINVAL);
        CHECK_INT(rank_sum_test(many, 1, many, 0, &t), -EINVAL);
        CHECK_INT(rank_sum_test(many, 1, many, RANK_MAX + 1, &t), -E2BIG);
        CHECK_INT(rank_sum_shift(many, 1, many, 1, 1, &s), -EINVAL);
        CHECK_INT(rank_signed_shift(many, 1, 0, &s), -EINVAL);
}

/* From four values a side, or six pairs, on there is an interval of 95 %. */
static void test_too_few(void) {
        double v[] = {1, 2, 4, 8, 16, 32};
        struct rank_shift s;
        for (size_t n = 1; n <= 6; n++) {
                CHECK_INT(rank_sum_shift(v, n, v, n, 0.95, &s), 0);
                CHECK_INT(s.has_interval, n >= 4);
                CHECK_INT(rank_signed_shift(v, n, 0.95, &s), 0);
                CHECK_INT(s.has_interval, n >= 6);
        }
        CHECK(s.level == 1 - 2.0 / 64 && s.low == 1 && s.high == 32);
        CHECK(rank_signed_least_p(6) == 2.0 / 64);
        CHECK(is_close(rank_sum_least_p(4, 4), 2.0 / 70));
        CHECK(rank_signed_least_p(1) == 1 && rank_sum_least_p(1, 1) == 1);
}

/* Ratios of skewed samples, 1.1 in truth; paired, the machine's drift is in both. */
static void test_intervals_cover(void) {
        struct random random;
        random_init(&random, 4);
        const unsigned trials = 10000;
        unsigned sum_covers = 0, signed_covers = 0;
        double level_sum = 0, level_signed = 0;
        for (unsigned t = 0; t < trials; t++) {
                double x[9], y[9], d[9], drift = 0;
                for (size_t i = 0; i < 9; i++) {
                        x[i] = log(1.1 * sample_skewed(&random, 0.5));
                        y[i] = log(sample_skewed(&random, 0.5));
                        drift += 0.1 * sample_normal(&random);
                        d[i] = (x[i] + drift) - (y[i] + drift);
                }
                struct rank_shift s;
                CHECK_INT(rank_sum_shift(x, 9, y, 9, 0.95, &s), 0);
                sum_covers += exp(s.low) <= 1.1 && 1.1 <= exp(s.high);
                level_sum = s.level;
                CHECK_INT(rank_signed_shift(d, 9, 0.95, &s), 0);
                signed_covers += exp(s.low) <= 1.1 && 1.1 <= exp(s.high);
                level_signed = s.level;
        }
        CHECK(sample_share("ratio of 9 and 9 skewed runs within its interval", sum_covers, trials) >= 0.95);
        CHECK(sample_share("ratio of 9 pairs of them within its interval", signed_covers, trials) >= 0.95);
        CHECK(fabs((double) sum_covers / trials - level_sum) < 0.01);
        CHECK(fabs((double) signed_covers / trials - level_signed) < 0.01);
}

int main(void) {
        RUN(test_sum_against_others);
        RUN(test_signed_against_others);
        RUN(test_scale_and_order);
        RUN(test_sides_change_places);
        RUN(test_every_run_twice);
        RUN(test_two_ways_to_a_tail);
        RUN(test_nothing_but_zeros);
        RUN(test_refused);
        RUN(test_too_few);
        RUN(test_intervals_cover);
        return check_end();
}
