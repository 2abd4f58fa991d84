/* SPDX-License-Identifier: MIT */

/* The peak among many counts of threads: one that is not there is not claimed, at counted rates. */

#include "tests/unit/drawn.h"
#include "tests/unit/lanes.h"

#define TRIALS 400u
#define EIGHT "{\"transport\": \"tcp\", \"threads\": [1, 2, 3, 4, 6, 8, 12, 16], \"message_size\": 4096}"
#define SIXTEEN                                                                                                        \
        "{\"transport\": \"tcp\", \"threads\": [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32], "             \
        "\"message_size\": 4096}"

/* As much with one thread as with more. */
static double flat(const struct point *p) {
        (void) p;
        return 1000;
}

/* The same from four threads on, and less with fewer. */
static double level_from_four(const struct point *p) {
        return p->threads < 4 ? 1500 : 1000;
}

/* The share of answers that say of the greatest median what the law is not: that it is above the first, or the last. */
static double false_peaks(const char *spec, law time, bool rises, size_t runs, double drift, const char *what) {
        unsigned wrong = 0;
        char words[128];
        MADE m;
        make(&m, spec, runs, 16);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, time, NULL, NOISE, drift);
                FINDINGS *f = draw(&m);
                const struct finding *s = nth(f, FINDING_SCALING, 0);
                wrong += s && ((!rises && strstr(s->sentence, "rises from")) || strstr(s->sentence, "falls to"));
        }
        (void) snprintf(words, sizeof(words), "false peaks %s, %zu runs, drift %.2f", what, runs, drift);
        return sample_share(words, wrong, TRIALS);
}

static void test_no_peak_among_many(void) {
        static const size_t runs[] = {8, 30};
        static const double drifts[] = {0, 0.02};
        IN_LANES_OF_TRIALS(test_no_peak_among_many);
        for (size_t i = 0; i < ELEMENTS(runs) * ELEMENTS(drifts); i++) {
                size_t n = runs[i / ELEMENTS(drifts)];
                double drift = drifts[i % ELEMENTS(drifts)];
                if (lanes_my_turn())
                        CHECK(false_peaks(EIGHT, flat, false, n, drift, "among 8 equal counts") <= 0.05);
                if (lanes_my_turn())
                        CHECK(false_peaks(SIXTEEN, flat, false, n, drift, "among 16 equal counts") <= 0.05);
                if (lanes_my_turn())
                        CHECK(false_peaks(SIXTEEN, level_from_four, true, n, drift, "of 13 equal counts above 3") <=
                              0.05);
        }
}

/* The universal scalability law with its peak near eight threads. */
static double peaked(const struct point *p) {
        double n = p->threads;
        return 1000 * (1 + 0.05 * (n - 1) + 0.015 * n * (n - 1)) / n;
}

/* The correction leaves a peak that is there to be found; its neighbours are told from it only where they are. */
static void test_a_peak_among_many(void) {
        unsigned found = 0, near = 0;
        MADE m;
        make(&m, SIXTEEN, 8, 16);
        for (unsigned t = 0; t < 100; t++) {
                measure(&m, peaked, NULL, NOISE, 0.02);
                FINDINGS *f = draw(&m);
                const struct finding *s = nth(f, FINDING_SCALING, 0);
                found += s && strstr(s->sentence, "rises from") && strstr(s->sentence, "falls to");
                const char *words = s ? strstr(s->sentence, " It is not known to be more with ") : NULL;
                near += words && strstr(words, " threads than with ") && !strstr(words, " 32.") &&
                        !strstr(words, " than with 1,");
        }
        CHECK(sample_share("peaks found among 16 counts", found, 100) >= 0.95);
        CHECK(sample_share("of these with neighbours that are not told from it", near, 100) >= 0.95);
}

/* Hundreds of threads, and hundreds of times the throughput of one, are written without an exponent. */
static double far_peak(const struct point *p) {
        double n = p->threads, peak = 1000;
        return 1e6 * (1 + 1e-6 * (n - 1) + n * (n - 1) / (peak * peak)) / n;
}

static void test_numbers_of_threads(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"threads\": [1, 64, 256, 512, 768, 1000, 1024], \"message_size\": 4096}", 8,
             16);
        measure(&m, far_peak, NULL, 0.001, 0);
        for (size_t i = 0; i < m.blocks; i++)
                m.runs[i].values[FIGURE_THROUGHPUT] /= 10;
        FINDINGS *f = draw(&m);
        const struct finding *s = nth(f, FINDING_SCALING, 0);
        CHECK(s && !strstr(s->sentence, "e+") && says(s, " times ["));
        CHECK(says(s, " (run by run ")); /* it is no quotient of the medians before it */
        measure(&m, far_peak, NULL, 0.001, 0);
        FINDINGS *fitted = draw(&m);
        s = nth(fitted, FINDING_SCALING, 0);
        CHECK(s && !strstr(s->sentence, "e+") && says(s, "; its peak is at "));
}

int main(void) {
        RUN(test_no_peak_among_many);
        RUN(test_a_peak_among_many);
        RUN(test_numbers_of_threads);
        return check_end();
}
