/* SPDX-License-Identifier: MIT */

/* Both laws against numpy and SciPy, and by simulation whether their sizes and coefficients are true. */

#include "daemon/analysis/statistics/fit.h"
#include "daemon/analysis/statistics/order.h"
#include "tests/unit/cases.h"
#include "tests/unit/check.h"
#include "tests/unit/samples.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* α, β: of numbers that differ by many powers of ten, close to the greatest part that they have in any time. */
static bool coefficient_agrees(double got, double want, double part) {
        return fabs(got - want) <= 1e-9 * fmax(fabs(want), part);
}

static void test_against_numpy(void) {
        struct cases c;
        CHECK(cases_open(&c, "fit"));
        unsigned n_cases = 0, wrong = 0, cliffs = 0;
        for (; cases_next(&c); n_cases++) {
                struct fit_point points[64];
                size_t n = cases_count(&c);
                for (size_t i = 0; i < n; i++) {
                        const double *v = cases_take(&c, 2);
                        points[i] = (struct fit_point){.size = v[0], .time = v[1]};
                }
                size_t n_pieces = cases_count(&c);
                struct fit f;
                bool good = fit_time(points, n, &f) == 0 && f.n_pieces == n_pieces && f.n_points == n;
                for (size_t k = 0; good && k < n_pieces; k++) {
                        const double *v = cases_take(&c, 4);
                        const struct fit_piece *p = &f.pieces[k];
                        double time = v[2] + v[3] * v[1];
                        good = p->size_low == v[0] && p->size_high == v[1] && coefficient_agrees(p->alpha, v[2], 0) &&
                               coefficient_agrees(p->beta, v[3], time * 1e-6 / v[1]);
                        if (!good)
                                fprintf(stderr, "line %zu, piece %zu: %.17g %.17g\n", c.line_number, k, p->alpha,
                                        p->beta);
                }
                if (!good)
                        fprintf(stderr, "line %zu: %zu pieces, expected %zu\n", c.line_number, f.n_pieces, n_pieces);
                wrong += !good;
                cliffs += n_pieces > 1;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 100);
        CHECK(cliffs >= 20);
        CHECK_UINT(wrong, 0);
}

static void test_threads_against_scipy(void) {
        struct cases c;
        CHECK(cases_open(&c, "fit-threads"));
        unsigned n_cases = 0, wrong = 0;
        for (; cases_next(&c); n_cases++) {
                struct fit_threads_point points[64];
                size_t n = cases_count(&c);
                for (size_t i = 0; i < n; i++) {
                        const double *v = cases_take(&c, 2);
                        points[i] = (struct fit_threads_point){.threads = v[0], .throughput = v[1]};
                }
                const double *want = cases_take(&c, 3);
                struct fit_threads f;
                bool good = fit_threads(points, n, &f) == 0 && fabs(f.lambda / want[0] - 1) < 1e-9 &&
                            fabs(f.sigma - want[1]) < 1e-9 && fabs(f.kappa - want[2]) < 1e-10;
                if (!good)
                        fprintf(stderr, "line %zu: %.17g %.17g %.17g\n", c.line_number, f.lambda, f.sigma, f.kappa);
                wrong += !good;
        }
        cases_close(&c);
        CHECK_UINT(n_cases, 100);
        CHECK_UINT(wrong, 0);
}

static double truth(double alpha, double beta, double size) {
        return alpha + beta * size;
}

/* n_runs of every power of two from 2^0 to 2^20 with a cliff of four times the time from 2^16 on. */
static size_t draw(struct random *random, size_t n_runs, double noise, double cliff, struct fit_point *points) {
        size_t n = 0;
        for (unsigned k = 0; k <= 20; k++)
                for (size_t i = 0; i < n_runs; i++) {
                        double size = ldexp(1, (int) k), time = truth(800, 0.1, size) * (k >= 16 ? cliff : 1);
                        points[n++] = (struct fit_point){.size = size, .time = time * sample_skewed(random, noise)};
                }
        return n;
}

static void test_knee_and_cliff(void) {
        struct random random;
        random_init(&random, 1);
        struct fit_point points[63];
        struct fit f;
        size_t n = draw(&random, 3, 0, 1, points);
        CHECK_INT(fit_time(points, n, &f), 0);
        CHECK_UINT(f.n_pieces, 1);
        CHECK(f.pieces[0].has_knee && fabs(f.pieces[0].knee - 8000) < 1e-3);
        CHECK(f.residual < 1e-8 && f.has_left_out && f.left_out_error < 1e-8);
        CHECK(fabs(fit_predict(&f, 3000) - 1100) < 1e-5);

        n = draw(&random, 3, 0.02, 4, points);
        CHECK_INT(fit_time(points, n, &f), 0);
        CHECK_UINT(f.n_pieces, 2);
        CHECK(f.pieces[0].size_high == ldexp(1, 15) && f.pieces[1].size_low == ldexp(1, 16));
        CHECK(fabs(fit_predict(&f, 40000) / truth(800, 0.1, 40000) - 1) < 0.03);       /* nearer to 2^15 */
        CHECK(fabs(fit_predict(&f, 60000) / (4 * truth(800, 0.1, 60000)) - 1) < 0.03); /* nearer to 2^16 */
}

/* Other units, another order. */
static void test_scale_and_order(void) {
        struct random random;
        random_init(&random, 2);
        struct fit_point points[63], turned[63];
        struct fit f, g;
        size_t n = draw(&random, 3, 0.05, 3, points);
        for (size_t i = 0; i < n; i++)
                turned[i] = (struct fit_point){.size = points[n - 1 - i].size, .time = points[n - 1 - i].time / 1000};
        CHECK_INT(fit_time(points, n, &f), 0);
        CHECK_INT(fit_time(turned, n, &g), 0);
        CHECK_UINT(f.n_pieces, g.n_pieces);
        CHECK(fabs(f.residual / g.residual - 1) < 1e-9 && fabs(f.left_out_error / g.left_out_error - 1) < 1e-9);
        for (size_t k = 0; k < f.n_pieces; k++)
                CHECK(fabs(g.pieces[k].alpha * 1000 / f.pieces[k].alpha - 1) < 1e-9 &&
                      fabs(g.pieces[k].knee / f.pieces[k].knee - 1) < 1e-9);
}

/* Times that fall with the size have β 0, times that are a multiple of it α 0. */
static void test_no_negative_coefficients(void) {
        const struct fit_point falling[] = {{1, 100}, {2, 99}, {4, 98}, {8, 97}};
        const struct fit_point steep[] = {{10, 9}, {20, 21}, {40, 44}, {80, 90}};
        struct fit f;
        CHECK_INT(fit_time(falling, N(falling), &f), 0);
        CHECK_UINT(f.n_pieces, 1);
        CHECK(f.pieces[0].beta == 0 && f.pieces[0].alpha > 97 && f.pieces[0].alpha < 100 && !f.pieces[0].has_knee);
        CHECK_INT(fit_time(steep, N(steep), &f), 0);
        CHECK(f.pieces[0].alpha == 0 && f.pieces[0].beta > 0.9 && f.pieces[0].beta < 1.2 && !f.pieces[0].has_knee);
}

static void test_intervals(void) {
        struct random random;
        random_init(&random, 3);
        const unsigned trials = 200;
        unsigned alphas = 0, betas = 0;
        for (unsigned t = 0; t < trials; t++) {
                struct fit_point points[21 * 6];
                struct fit f;
                size_t n = draw(&random, 6, 0.05, 1, points);
                CHECK_INT(fit_time(points, n, &f), 0);
                CHECK_INT(fit_intervals(points, n, t, 300, &f), 0);
                const struct fit_piece *p = &f.pieces[0];
                CHECK(p->has_interval && p->alpha_low <= p->alpha_high && p->beta_low <= p->beta_high);
                /* lognormal noise has its relative least squares below the median: by 1.5 times its variance */
                double bias = exp(-1.5 * 0.05 * 0.05);
                alphas += p->alpha_low <= 800 * bias && 800 * bias <= p->alpha_high;
                betas += p->beta_low <= 0.1 * bias && 0.1 * bias <= p->beta_high;
        }
        CHECK(sample_share("alpha within its interval, 21 sizes of 6 runs that vary by 5 %", alphas, trials) >= 0.90);
        CHECK(sample_share("beta within its interval", betas, trials) >= 0.90);
}

/* The same seed gives the same interval; fewer than six runs of a size none. */
static void test_intervals_repeat(void) {
        struct random random;
        random_init(&random, 4);
        struct fit_point points[21 * 6];
        struct fit f, g;
        size_t n = draw(&random, 6, 0.05, 4, points);
        CHECK_INT(fit_time(points, n, &f), 0);
        g = f;
        CHECK_INT(fit_intervals(points, n, 1, 200, &f), 0);
        CHECK_INT(fit_intervals(points, n, 1, 200, &g), 0);
        CHECK(f.pieces[0].alpha_low == g.pieces[0].alpha_low && f.pieces[1].beta_high == g.pieces[1].beta_high);
        CHECK_INT(fit_intervals(points, n - 6, 1, 200, &f), -EINVAL); /* not the points of this fit */
        CHECK_INT(fit_intervals(points, n, 1, 99, &f), -EINVAL);
        CHECK_INT(fit_time(points, n - 1, &f), 0);
        CHECK_INT(fit_intervals(points, n - 1, 1, 200, &f), 0);
        CHECK(!f.pieces[0].has_interval);
}

/* A size that was never measured: within the error that leaving sizes out gave. */
static void test_sizes_never_measured(void) {
        struct random random;
        random_init(&random, 5);
        unsigned within = 0, trials = 0;
        for (unsigned t = 0; t < 100; t++) {
                struct fit_point points[63];
                struct fit f;
                size_t n = draw(&random, 3, 0.05, 1, points);
                CHECK_INT(fit_time(points, n, &f), 0);
                for (unsigned k = 0; k < 5; k++, trials++) {
                        double size = exp2(20 * random_unit(&random));
                        within += fabs(fit_predict(&f, size) / truth(800, 0.1, size) - 1) <= f.left_out_error;
                }
        }
        CHECK(sample_share("time of a size never measured within the left-out error", within, trials) >= 0.90);
}

/* A transport whose time is no straight line: it winds about it, or steps up at a size. */
struct world {
        double winding, phase, cliff;
        double cliff_at;
};

static double world_time(const struct world *w, double size) {
        double time = truth(800, 0.1, size) * exp(w->winding * sin(w->phase + log2(size)));
        return size >= w->cliff_at ? time * w->cliff : time;
}

static double median_of_eight(struct random *random, const struct world *w, double size, double noise) {
        double times[8];
        for (size_t i = 0; i < N(times); i++)
                times[i] = world_time(w, size) * sample_skewed(random, noise);
        order_sort(times, N(times));
        return sqrt(times[(N(times) - 1) / 2] * times[N(times) / 2]);
}

/* What is then measured at sizes that were not: the median of as many runs, with its noise. */
static void hold_predictions(double winding, double cliff, double noise, double widest, const char *what) {
        static const double sizes[] = {700, 3000, 12000, 50000};
        struct random random;
        random_init(&random, 6);
        unsigned within = 0, trials = 0;
        double width = 0, ratio = 0;
        for (unsigned t = 0; t < 300; t++) {
                struct world w = {winding, 2 * M_PI * random_unit(&random), cliff, exp2(6 + 12 * random_unit(&random))};
                struct fit_point points[7 * 8];
                struct fit f;
                for (size_t i = 0; i < N(points); i++) {
                        double size = ldexp(1, 6 + 2 * (int) (i / 8));
                        points[i] = (struct fit_point){size, world_time(&w, size) * sample_skewed(&random, noise)};
                }
                CHECK_INT(fit_time(points, N(points), &f), 0);
                for (size_t k = 0; k < N(sizes); k++, trials++) {
                        struct fit_prediction p = {0};
                        double time = median_of_eight(&random, &w, sizes[k], noise);
                        CHECK(fit_predict_median(&f, sizes[k], &p));
                        within += p.low <= time && time <= p.high;
                        width += log(p.high / p.low) / 2;
                        ratio += log(p.value / time);
                }
        }
        CHECK(sample_share(what, within, trials) >= FIT_PREDICTION_LEVEL - 0.02);
        printf("     half of its width, and predicted over measured, in logarithms             %.3f %+.3f\n",
               width / trials, ratio / trials);
        CHECK(width / trials <= widest);
        CHECK(fabs(ratio / trials) < 0.04); /* predicted over measured, which skewed runs pull apart */
}

static void test_prediction_intervals(void) {
        hold_predictions(0, 1, 0.05, 0.1, "median measured later in its interval, straight, 5 % of noise");
        hold_predictions(0, 1, 0.01, 0.02, "the same, 1 % of noise");
        hold_predictions(0.1, 1, 0.02, 0.32, "winding by 10 %");
        hold_predictions(0, 2, 0.02, 0.5, "with a cliff");
        hold_predictions(0, 1, 0.6, 1, "straight, 60 % of noise");
}

static void test_no_prediction(void) {
        const struct fit_point two[] = {{1, 100}, {2, 110}, {1, 101}, {2, 112}};
        struct fit_prediction p = {.low = 7};
        struct fit f;
        CHECK_INT(fit_time(two, N(two), &f), 0);
        CHECK(!fit_predict_median(&f, 1.5, &p) && p.low == 7);
}

static void test_threads(void) {
        struct fit_threads_point points[8];
        struct fit_threads f;
        for (size_t i = 0; i < 8; i++) {
                double n = ldexp(1, (int) i);
                points[i] = (struct fit_threads_point){
                        .threads = n, .throughput = 500 * n / (1 + 0.05 * (n - 1) + 0.002 * n * (n - 1))};
        }
        CHECK_INT(fit_threads(points, 8, &f), 0);
        CHECK(fabs(f.lambda - 500) < 1e-8 && fabs(f.sigma - 0.05) < 1e-10 && fabs(f.kappa - 0.002) < 1e-11);
        CHECK(f.has_peak && fabs(f.peak_threads - sqrt(0.95 / 0.002)) < 1e-6 && f.residual < 1e-9);
        for (size_t i = 0; i < 8; i++)
                points[i].throughput = 500 * points[i].threads;
        CHECK_INT(fit_threads(points, 8, &f), 0);
        CHECK(fabs(f.lambda - 500) < 1e-8 && f.sigma < 1e-12 && (!f.has_peak || f.peak_threads > 1e4));
        CHECK_INT(fit_threads(points, 2, &f), -EINVAL);
        points[0].throughput = 0;
        CHECK_INT(fit_threads(points, 8, &f), -EINVAL);
}

static void test_refused(void) {
        struct fit f = {.n_points = 7};
        struct fit_point many[FIT_SIZES_MAX + 1];
        for (size_t i = 0; i < N(many); i++)
                many[i] = (struct fit_point){.size = (double) i + 1, .time = 1};
        CHECK_INT(fit_time(many, N(many), &f), -E2BIG);
        CHECK_INT(fit_time(many, 1, &f), -EINVAL);
        CHECK_INT(fit_time(NULL, 0, &f), -EINVAL);
        many[1].time = 0;
        CHECK_INT(fit_time(many, 3, &f), -EINVAL);
        CHECK_UINT(f.n_points, 7);
}

int main(void) {
        RUN(test_against_numpy);
        RUN(test_threads_against_scipy);
        RUN(test_knee_and_cliff);
        RUN(test_scale_and_order);
        RUN(test_no_negative_coefficients);
        RUN(test_intervals);
        RUN(test_intervals_repeat);
        RUN(test_sizes_never_measured);
        RUN(test_prediction_intervals);
        RUN(test_no_prediction);
        RUN(test_threads);
        RUN(test_refused);
        return check_end();
}
