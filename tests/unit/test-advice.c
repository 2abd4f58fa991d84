/* SPDX-License-Identifier: MIT */

/* Advice over experiments that were made: which mechanism wins, what stays open, and how often either is wrong. */

#include "daemon/analysis/advice.h"
#include "tests/unit/check.h"
#include "tests/unit/made.h"

#define NOISE 0.02
#define TRIALS 100u

/* All rows of an experiment as those of the question. */
static size_t take(const struct made *m, int64_t id, const char *settings, struct advice_row *ret) {
        for (size_t i = 0; i < m->n_rows; i++)
                ret[i] = (struct advice_row){
                        .experiment_id = id, .measured_at = 1000 * id, .settings = settings, .row = m->rows[i]};
        return m->n_rows;
}

static struct advice_question question(enum advice_want want, uint64_t size) {
        struct advice_question q = {.workload = WORKLOAD_PINGPONG, .message_size = size, .threads = 1, .want = want};
        for (size_t i = 0; i < WANT_COUNT; i++)
                q.limits[i] = NAN;
        return q;
}

#define ADVICE __attribute__((cleanup(advice_deinit))) struct advice

/* One that stands for nothing where the transport is not in the answer. */
static const struct advice_item *of(const struct advice *a, enum transport t) {
        for (size_t i = 0; i < a->n; i++)
                if (a->items[i].point.transport == t)
                        return &a->items[i];
        static const struct advice_item absent = {.standing = STANDING_COUNT};
        return &absent;
}

static double ladder(const struct point *p) {
        double base = p->transport == TRANSPORT_SHM_POSIX ? 500 : p->transport == TRANSPORT_TCP ? 2000 : 1000;
        return base + 0.25 * (double) p->message_size;
}

#define LADDER                                                                                                         \
        "{\"workload\": \"pingpong\", \"transport\": [\"tcp\", \"pipe\", \"shm-posix\", \"fifo\"], "                   \
        "\"message_size\": [64, 256, 1024, 4096, 16384]}"

static void test_ranking(void) {
        struct advice_row rows[32];
        MADE m;
        make(&m, LADDER, 12, 1);
        measure(&m, ladder, NULL, NOISE, 0.02);
        size_t n = take(&m, 7, "{}", rows);
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 1024);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_UINT(a.n, 4);
        CHECK_INT(a.items[0].point.transport, TRANSPORT_SHM_POSIX);
        CHECK_INT(a.items[0].standing, STANDING_BEST);
        CHECK(a.items[0].has_interval && a.items[0].level >= 0.95 && !a.items[0].interpolated);
        CHECK_INT(a.items[3].point.transport, TRANSPORT_TCP);
        for (size_t i = 1; i < 4; i++) {
                CHECK_INT(a.items[i].standing, STANDING_WORSE);
                CHECK(!a.items[i].reason);
                CHECK(a.items[i].has_ratio && a.items[i].ratio.low > 1);
                CHECK(a.items[i].experiment_id == 7 && a.items[i].n_runs == 12 && a.items[i].measured_at == 7000);
        }
}

/* Equal mechanisms: none is called worse than the one that happens to lead. */
static double level(const struct point *p) {
        (void) p;
        return 1000;
}

static void test_equals_are_not_ranked(void) {
        struct advice_row rows[32];
        unsigned wrong = 0;
        MADE m;
        make(&m,
             "{\"workload\": \"pingpong\", \"transport\": [\"tcp\", \"pipe\", \"shm-posix\", \"fifo\", "
             "\"unix-stream\", \"unix-dgram\"]}",
             10, 2);
        for (unsigned t = 0; t < 4 * TRIALS; t++) {
                bool any = false;
                measure(&m, level, NULL, 0.05, 0.02);
                ADVICE a = {0};
                const struct advice_question q = question(WANT_LATENCY_P50, 4096);
                CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
                for (size_t i = 0; i < a.n; i++)
                        any |= a.items[i].standing == STANDING_WORSE;
                wrong += any;
        }
        CHECK(sample_share("answers that call one of six equals worse", wrong, 4 * TRIALS) <= 0.09);
}

/* The time of a size that was left out of the experiment lies in the interval that the fit gives. */
static void test_interpolation(void) {
        struct advice_row rows[32];
        unsigned covered = 0, all = 0;
        MADE m;
        make(&m, LADDER, 6, 3);
        for (unsigned t = 0; t < TRIALS; t++) {
                static const uint64_t sizes[] = {128, 512, 3000, 10000};
                measure(&m, ladder, NULL, 0.05, 0.02);
                for (size_t i = 0; i < 4; i++) {
                        ADVICE a = {0};
                        const struct advice_question q = question(WANT_LATENCY_P50, sizes[i]);
                        CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
                        CHECK_UINT(a.n, 4);
                        for (size_t k = 0; k < a.n; k++) {
                                double true_time = ladder(&a.items[k].point);
                                CHECK(a.items[k].interpolated && a.items[k].standing == STANDING_OPEN);
                                CHECK_STRING(a.items[k].reason, "interpolated");
                                covered += a.items[k].low <= true_time && true_time <= a.items[k].high;
                                all++;
                        }
                }
        }
        CHECK(sample_share("sizes never measured within the fit's interval", covered, all) >= 0.9);
        ADVICE a = {0};
        const struct advice_question outside = question(WANT_LATENCY_P50, 65536);
        CHECK_INT(advice_draw(&outside, rows, take(&m, 1, "{}", rows), &a), 0);
        CHECK_UINT(a.n, 0);
}

static void test_apart(void) {
        struct advice_row rows[8];
        MADE pipe, tcp;
        make(&pipe, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"fifo\"]}", 8, 4);
        make(&tcp, "{\"workload\": \"pingpong\", \"transport\": \"tcp\"}", 8, 104);
        measure(&pipe, ladder, NULL, 0.001, 0);
        measure(&tcp, ladder, NULL, 0.001, 0);
        size_t n = take(&tcp, 9, "{}", rows);
        n += take(&pipe, 8, "{}", rows + n);
        ADVICE a = {0};
        struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_INT(of(&a, TRANSPORT_TCP)->standing, STANDING_OPEN);
        CHECK_STRING(of(&a, TRANSPORT_TCP)->reason, "not-measured-together");
        CHECK(a.items[0].standing == STANDING_BEST && a.items[1].standing == STANDING_EQUAL);
}

static void test_unlike_settings_are_two(void) {
        struct advice_row rows[8];
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": \"pipe\"}", 8, 5);
        measure(&m, ladder, NULL, NOISE, 0);
        size_t n = take(&m, 2, "{\"verify\":\"checksum\"}", rows);
        n += take(&m, 1, "{}", rows + n);
        ADVICE a = {0};
        struct advice_question q = question(WANT_LATENCY_P99, 4096);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_UINT(a.n, 2);
        CHECK(strcmp(a.items[0].settings, a.items[1].settings) != 0);
}

static void test_limits(void) {
        struct advice_row rows[32];
        MADE m;
        make(&m, LADDER, 8, 6);
        measure(&m, ladder, NULL, NOISE, 0);
        size_t n = take(&m, 1, "{}", rows);
        ADVICE a = {0}, b = {0};
        struct advice_question q = question(WANT_THROUGHPUT, 1024);
        q.limits[WANT_LATENCY_P99] = 3000; /* p99 is twice the time */
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_UINT(a.n_excluded, 1);
        CHECK_INT(a.items[3].standing, STANDING_EXCLUDED);
        CHECK_STRING(a.items[3].reason, "limit");
        CHECK_INT(a.items[3].point.transport, TRANSPORT_TCP);
        q.limits[WANT_CPU] = 1; /* CPU time was not counted */
        CHECK_INT(advice_draw(&q, rows, n, &b), 0);
        CHECK_UINT(b.n_excluded, 4);
        CHECK(of(&b, TRANSPORT_PIPE)->standing == STANDING_EXCLUDED);
}

static void test_few(void) {
        struct advice_row rows[8];
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"]}", 3, 7);
        measure(&m, ladder, NULL, NOISE, 0);
        ADVICE a = {0}, none = {0};
        struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
        CHECK_INT(a.items[0].standing, STANDING_BEST);
        CHECK_INT(a.items[1].standing, STANDING_OPEN);
        CHECK_STRING(a.items[1].reason, "too-few-runs");
        CHECK_INT(advice_draw(&q, rows, 0, &none), 0);
        CHECK_UINT(none.n, 0);
}

static void test_what_concerns(void) {
        struct advice_question q = question(WANT_LATENCY_P50, 4096);
        struct point p = {.workload = WORKLOAD_PINGPONG, .threads = 1};
        CHECK(advice_concerns(&q, &p));
        p.message_size = 7;
        CHECK(advice_concerns(&q, &p));
        p.threads = 2;
        CHECK(!advice_concerns(&q, &p));
        p = (struct point){.workload = WORKLOAD_STREAM, .threads = 1};
        CHECK(!advice_concerns(&q, &p));
        p = (struct point){.workload = WORKLOAD_PINGPONG, .threads = 1, .placement.kind = PLACEMENT_SAME_CPU};
        CHECK(!advice_concerns(&q, &p));
}

int main(void) {
        RUN(test_ranking);
        RUN(test_equals_are_not_ranked);
        RUN(test_interpolation);
        RUN(test_apart);
        RUN(test_unlike_settings_are_two);
        RUN(test_limits);
        RUN(test_few);
        RUN(test_what_concerns);
        return check_end();
}
