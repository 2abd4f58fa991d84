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

#define REASON(item) advice_reason_names[(item)->reason]

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
        CHECK(a.items[0].leads && !a.items[1].leads);
        CHECK(!a.items[0].interpolated);
        CHECK(!a.items[0].has_interval &&
              a.items[0].alike); /* twelve runs of a host that drifts do not tell the median */
        CHECK_INT(a.items[3].point.transport, TRANSPORT_TCP);
        for (size_t i = 1; i < 4; i++) {
                CHECK_INT(a.items[i].standing, STANDING_WORSE);
                CHECK(!REASON(&a.items[i]));
                CHECK(a.items[i].has_ratio && a.items[i].ratio.low > 1);
                CHECK(a.items[i].experiment_id == 7 && a.items[i].n_runs == 12 && a.items[i].measured_at == 7000);
        }
}

static void test_interval(void) {
        struct advice_row rows[32];
        MADE m;
        make(&m, LADDER, 12, 1);
        measure(&m, ladder, NULL, NOISE, 0);
        size_t n = take(&m, 7, "{}", rows);
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 1024);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_INT(a.items[0].point.transport, TRANSPORT_SHM_POSIX);
        CHECK(a.items[0].has_interval && a.items[0].level >= 0.95 && !a.items[0].interpolated && !a.items[0].alike);
        CHECK(a.items[0].low < a.items[0].value && a.items[0].value < a.items[0].high);
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
                                CHECK_STRING(REASON(&a.items[k]), "interpolated");
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
        CHECK_STRING(REASON(of(&a, TRANSPORT_TCP)), "not-measured-together");
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
        CHECK_STRING(REASON(&a.items[3]), "limit");
        CHECK_INT(a.items[3].point.transport, TRANSPORT_TCP);
        q.limits[WANT_CPU] = 1; /* CPU time was not counted */
        CHECK_INT(advice_draw(&q, rows, n, &b), 0);
        CHECK_UINT(b.n_excluded, 4);
        CHECK(of(&b, TRANSPORT_PIPE)->standing == STANDING_EXCLUDED);
}

/* Nanoseconds of each transport, as the machine is now. */
static double now[TRANSPORT_COUNT];

static double time_now(const struct point *p) {
        return now[p->transport];
}

/* Both in one experiment, which is older than the rows that there are. */
static size_t measure_two(enum transport x, double time_x, enum transport y, double time_y, int64_t id, struct made *m,
                          struct advice_row *ret) {
        char spec[160];
        (void) snprintf(spec, sizeof(spec), "{\"workload\": \"pingpong\", \"transport\": [\"%s\", \"%s\"]}",
                        transport_words.name(x), transport_words.name(y));
        now[x] = time_x;
        now[y] = time_y;
        make(m, spec, 8, (uint64_t) id);
        measure(m, time_now, NULL, NOISE, 0.02);
        return take(m, id, "{}", ret);
}

/* The host was faster in the newest sitting, in which one of the two was measured alone. */
static void test_a_duel_decides_who_leads(void) {
        struct advice_row rows[8];
        MADE alone, both;
        now[TRANSPORT_PIPE] = 700;
        make(&alone, "{\"workload\": \"pingpong\", \"transport\": \"pipe\"}", 8, 21);
        measure(&alone, time_now, NULL, NOISE, 0);
        size_t n = take(&alone, 2, "{}", rows);
        n += measure_two(TRANSPORT_PIPE, 1000, TRANSPORT_TCP, 800, 1, &both, rows + n);
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_UINT(a.n, 2);
        const struct advice_item *tcp = of(&a, TRANSPORT_TCP), *pipe = of(&a, TRANSPORT_PIPE);
        CHECK_INT(tcp->standing, STANDING_BEST);
        CHECK(!REASON(tcp) && tcp->leads && tcp == &a.items[0]);
        CHECK_INT(pipe->standing, STANDING_WORSE);
        CHECK(pipe->value < tcp->value && pipe->experiment_id == 2 && a.n_better == 1);
        CHECK(pipe->has_ratio && pipe->ratio.low > 1.1 && pipe->ratio.high < 1.4);
        CHECK_INT(pipe->ratio.verdict, COMPARE_SLOWER);
}

/* pipe before tcp before fifo before pipe: the search for the best ends, and none is. */
static void test_experiments_in_a_circle(void) {
        struct advice_row rows[8];
        MADE first, second, third;
        size_t n = measure_two(TRANSPORT_PIPE, 1000, TRANSPORT_TCP, 1200, 3, &third, rows);
        n += measure_two(TRANSPORT_TCP, 1000, TRANSPORT_FIFO, 1200, 2, &second, rows + n);
        n += measure_two(TRANSPORT_FIFO, 1000, TRANSPORT_PIPE, 1200, 1, &first, rows + n);
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        unsigned open = 0;
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_UINT(a.n, 3);
        for (size_t i = 0; i < a.n; i++) {
                CHECK(a.items[i].standing != STANDING_BEST);
                CHECK(a.items[i].leads == (i == 0));
                open += a.items[i].standing == STANDING_OPEN;
                if (a.items[i].standing == STANDING_OPEN)
                        CHECK_STRING(REASON(&a.items[i]), "experiments-disagree");
        }
        CHECK_UINT(open, 2); /* the leader, and the one that beats it */
}

/* One lucky run stands above a mechanism that was compared, and does not lead. */
static void test_one_run_does_not_lead(void) {
        struct advice_row rows[8];
        MADE lucky = {0}, both = {0};
        now[TRANSPORT_FIFO] = 100;
        make(&lucky, "{\"workload\": \"pingpong\", \"transport\": \"fifo\"}", 1, 31);
        measure(&lucky, time_now, NULL, 0, 0);
        size_t n = take(&lucky, 2, "{}", rows);
        ADVICE alone = {0}, a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, n, &alone), 0);
        CHECK_UINT(alone.n, 1);
        CHECK(alone.items[0].standing == STANDING_OPEN && alone.items[0].leads);
        CHECK_STRING(REASON(&alone.items[0]), "too-few-runs");
        n += measure_two(TRANSPORT_PIPE, 1000, TRANSPORT_TCP, 800, 1, &both, rows + n);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_INT(of(&a, TRANSPORT_TCP)->standing, STANDING_BEST);
        CHECK_INT(of(&a, TRANSPORT_PIPE)->standing, STANDING_WORSE);
        CHECK_INT(of(&a, TRANSPORT_FIFO)->standing, STANDING_OPEN);
        CHECK_STRING(REASON(of(&a, TRANSPORT_FIFO)), "too-few-runs");
}

/* A host that others use, too: the blocks differ by a half, and in all but one of them the pipe is 4 % faster. */
static void test_the_pairs_choose_who_leads(void) {
        static const double pipe[] = {1.00, 1.01, 1.02, 1.30, 1.60, 1.61, 1.62, 1.63};
        static const double fifo[] = {1.04, 1.05, 1.06, 1.20, 1.66, 1.67, 1.68, 1.69};
        struct advice_row rows[4];
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"fifo\"]}", 8, 52);
        measure(&m, level, NULL, 0, 0);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++)
                m.runs[i].values[FIGURE_LATENCY_P50] =
                        1000 * (m.rows[i / m.blocks].point.transport == TRANSPORT_PIPE ? pipe : fifo)[i % m.blocks];
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
        CHECK_UINT(a.n, 2);
        CHECK_INT(a.items[0].point.transport, TRANSPORT_PIPE);
        CHECK(a.items[1].has_ratio && a.items[1].ratio.ratio > 1 && a.items[1].value < a.items[0].value);
        CHECK_INT(a.items[1].standing, STANDING_OPEN);
        CHECK_STRING(REASON(&a.items[1]), "overlap");
}

static int compare_numbers(const void *x, const void *y) {
        double a = *(const double *) x, b = *(const double *) y;
        return (a > b) - (a < b);
}

/* A limit between the least and the greatest of the runs' percentiles; place 0 is before the first. */
static double limit_at(const struct findings_row *row, double place) {
        double values[16];
        for (size_t i = 0; i < row->n_runs; i++)
                values[i] = row->runs[i].values[FIGURE_LATENCY_P99];
        qsort(values, row->n_runs, sizeof(*values), compare_numbers);
        return values[0] + place * (values[row->n_runs - 1] - values[0]);
}

static const struct advice_item *limited(const struct made *m, double limit, struct advice *ret) {
        struct advice_row rows[4];
        struct advice_question q = question(WANT_LATENCY_P50, 4096);
        q.limits[WANT_LATENCY_P99] = limit;
        advice_deinit(ret);
        if (advice_draw(&q, rows, take(m, 1, "{}", rows), ret) < 0)
                abort();
        return of(ret, TRANSPORT_PIPE);
}

static void test_a_limit_within_the_interval_is_undecided(void) {
        MADE many, few, same;
        ADVICE a = {0};
        const struct advice_item *pipe;
        const char *spec = "{\"workload\": \"pingpong\", \"transport\": \"pipe\"}";
        now[TRANSPORT_PIPE] = 1000;
        make(&many, spec, 9, 41);
        make(&few, spec, 3, 42);
        make(&same, spec, 9, 43);
        measure(&many, time_now, NULL, NOISE, 0);
        measure(&few, time_now, NULL, NOISE, 0);
        measure(&same, time_now, NULL, 0, 0);
        const struct made *some[] = {&many, &few};
        for (size_t i = 0; i < 2; i++) {
                pipe = limited(some[i], limit_at(some[i]->rows, 0.5), &a);
                CHECK_INT(pipe->standing, STANDING_OPEN);
                CHECK_STRING(REASON(pipe), "limit-undecided");
                CHECK(!pipe->leads && a.n_excluded == 0);
                CHECK(i == 1 ? pipe->runs_needed == 0 : pipe->runs_needed > 9);
                pipe = limited(some[i], limit_at(some[i]->rows, -0.1), &a); /* below every run */
                CHECK_INT(pipe->standing, STANDING_EXCLUDED);
                CHECK_STRING(REASON(pipe), "limit");
                pipe = limited(some[i], limit_at(some[i]->rows, 1.1), &a);
                CHECK(pipe->leads);
        }
        CHECK_STRING(REASON(pipe), "too-few-runs"); /* of the three runs */
        pipe = limited(&same, 2000, &a);            /* "below" */
        CHECK_STRING(REASON(pipe), "limit");
        CHECK_INT(limited(&same, 2000.1, &a)->standing, STANDING_BEST);
}

/* What is worse than one that keeps the limit cannot become the best, whether it keeps it or not; what is better, can.
 */
static void test_only_one_that_keeps_the_limits_leads(void) {
        struct advice_row rows[4];
        MADE m;
        ADVICE worse = {0}, better = {0};
        struct advice_question q = question(WANT_LATENCY_P50, 4096), other = question(WANT_CPU, 4096);
        size_t n = measure_two(TRANSPORT_PIPE, 1000, TRANSPORT_TCP, 800, 1, &m, rows);
        for (size_t i = 0; i < m.n_rows * m.blocks; i++) /* the other way round as the latencies */
                m.runs[i].values[FIGURE_CPU_PER_MESSAGE] = 1e6 / m.runs[i].values[FIGURE_LATENCY_P50];
        const struct findings_row *pipe = &m.rows[m.rows[0].point.transport != TRANSPORT_PIPE];
        q.limits[WANT_LATENCY_P99] = other.limits[WANT_LATENCY_P99] = limit_at(pipe, 0.5);
        CHECK_INT(advice_draw(&q, rows, n, &worse), 0);
        CHECK_INT(of(&worse, TRANSPORT_TCP)->standing, STANDING_BEST);
        CHECK_INT(of(&worse, TRANSPORT_PIPE)->standing, STANDING_WORSE);
        CHECK_INT(advice_draw(&other, rows, n, &better), 0);
        CHECK_INT(of(&better, TRANSPORT_TCP)->standing, STANDING_BEST);
        CHECK_INT(of(&better, TRANSPORT_PIPE)->standing, STANDING_OPEN);
        CHECK_STRING(REASON(of(&better, TRANSPORT_PIPE)), "limit-undecided");
        CHECK(of(&better, TRANSPORT_PIPE)->has_ratio && of(&better, TRANSPORT_PIPE)->value < better.items[0].value);
}

static void test_few(void) {
        struct advice_row rows[8];
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"]}", 3, 7);
        measure(&m, ladder, NULL, NOISE, 0);
        ADVICE a = {0}, none = {0};
        struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
        for (size_t i = 0; i < 2; i++) {
                CHECK_INT(a.items[i].standing, STANDING_OPEN);
                CHECK_STRING(REASON(&a.items[i]), "too-few-runs");
                CHECK(a.items[i].leads == (i == 0));
        }
        CHECK_INT(advice_draw(&q, rows, 0, &none), 0);
        CHECK_UINT(none.n, 0);
}

/* What moved nothing in one of its runs is not ranked by the others; beside a limit it has its place. */
static void test_a_run_of_nothing(void) {
        struct advice_row rows[32];
        MADE m;
        make(&m, LADDER, 12, 1);
        measure(&m, ladder, NULL, NOISE, 0);
        struct advice_question q = question(WANT_LATENCY_P50, 1024);
        ADVICE sound = {0}, a = {0}, limited = {0};
        CHECK_INT(advice_draw(&q, rows, take(&m, 7, "{}", rows), &sound), 0);
        CHECK(sound.n == 4 && sound.n_without_ratios == 0);
        for (size_t i = 0; i < m.n_rows; i++)
                if (m.rows[i].point.transport == TRANSPORT_SHM_POSIX)
                        m.runs[i * m.blocks + 5].values[FIGURE_LATENCY_P50] = 0;
        CHECK_INT(advice_draw(&q, rows, take(&m, 7, "{}", rows), &a), 0);
        CHECK_UINT(a.n, 3);
        CHECK_UINT(a.n_without_ratios, 1);
        CHECK_INT(of(&a, TRANSPORT_SHM_POSIX)->standing, STANDING_COUNT);
        CHECK(a.items[0].point.transport != TRANSPORT_TCP && a.measured);
        q.want = WANT_LATENCY_P99;
        q.limits[WANT_LATENCY_P50] = 1000;
        CHECK_INT(advice_draw(&q, rows, take(&m, 7, "{}", rows), &limited), 0);
        CHECK(of(&limited, TRANSPORT_SHM_POSIX)->leads);
}

static double barely(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : 1001;
}

/* A number of runs that no comparison takes is no advice; nor are all runs of no block compared. */
static void test_out_of_reach(void) {
        struct advice_row rows[8];
        unsigned beyond = 0;
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"]}", 8, 7);
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        for (unsigned t = 0; t < TRIALS; t++) {
                measure(&m, barely, NULL, 0.3, 0);
                ADVICE a = {0};
                CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
                CHECK(a.items[1].runs_needed <= 200 && !a.cut);
                CHECK(!a.items[1].out_of_reach || (a.items[1].standing == STANDING_OPEN && !a.items[1].runs_needed));
                beyond += a.items[1].out_of_reach;
        }
        CHECK(beyond > 0);
        MADE many;
        make(&many, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"]}", 61, 7);
        measure(&many, barely, NULL, 0.3, 0);
        ADVICE pairs = {0}, cut = {0};
        CHECK_INT(advice_draw(&q, rows, take(&many, 1, "{}", rows), &pairs), 0);
        CHECK(!pairs.cut);
        for (size_t i = 0; i < many.n_rows * many.blocks; i++)
                many.runs[i].block = 0;
        CHECK_INT(advice_draw(&q, rows, take(&many, 1, "{}", rows), &cut), 0);
        CHECK(cut.cut);
}

/* The figures of two streams at once are their sum: no mechanism is the better by going both ways. */
static void test_two_streams_are_no_mechanism(void) {
        struct advice_question q = question(WANT_THROUGHPUT, 4096);
        unsigned n[DIRECTION_COUNT] = {0};
        MADE m;
        make(&m,
             "{\"transport\": [\"tcp\", \"pipe\"], \"direction\": [\"down\", \"up\", \"both\"], "
             "\"message_size\": [4096, 8192]}",
             1, 1);
        q.workload = WORKLOAD_STREAM;
        for (size_t i = 0; i < m.n_rows; i++)
                n[m.rows[i].point.direction] += advice_concerns(&q, &m.rows[i].point);
        CHECK_UINT(n[DIRECTION_DOWN], 4); /* of both transports */
        CHECK_UINT(n[DIRECTION_UP], 2);
        CHECK_UINT(n[DIRECTION_BOTH], 0);
}

/* What was not watched, or ran while the host changed, is told of a mechanism as that it was noisy. */
static void test_flags(void) {
        struct advice_row rows[8];
        MADE m;
        make(&m, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"]}", 8, 7);
        measure(&m, ladder, NULL, NOISE, 0);
        m.rows[m.rows[0].point.transport == TRANSPORT_PIPE ? 0 : 1].flags.unobserved = true;
        m.rows[m.rows[0].point.transport == TRANSPORT_PIPE ? 1 : 0].flags.changed = true;
        for (size_t i = 0; i < 2; i++) {
                m.rows[i].in_force.buffer_bytes = 65536;
                m.rows[i].n_added = 3;
        }
        ADVICE a = {0};
        const struct advice_question q = question(WANT_LATENCY_P50, 4096);
        CHECK_INT(advice_draw(&q, rows, take(&m, 1, "{}", rows), &a), 0);
        CHECK(of(&a, TRANSPORT_PIPE)->unobserved && !of(&a, TRANSPORT_PIPE)->changed);
        CHECK(of(&a, TRANSPORT_TCP)->changed && !of(&a, TRANSPORT_TCP)->unobserved);
        CHECK(of(&a, TRANSPORT_TCP)->in_force.buffer_bytes == 65536);
        CHECK_UINT(of(&a, TRANSPORT_TCP)->n_added, 3);
}

/* What was interpolated has no runs of its own by which it would be better. */
static void test_a_better_one_that_was_interpolated(void) {
        struct advice_row rows[32];
        MADE ladders, own;
        ADVICE a = {0};
        make(&ladders,
             "{\"workload\": \"pingpong\", \"transport\": \"shm-posix\", \"message_size\": [64, 256, 1024, 4096, "
             "16384]}",
             8, 1);
        make(&own, "{\"workload\": \"pingpong\", \"transport\": [\"pipe\", \"tcp\"], \"message_size\": 2000}", 8, 1);
        measure(&ladders, ladder, NULL, NOISE, 0);
        measure(&own, ladder, NULL, NOISE, 0);
        size_t n = take(&ladders, 2, "{}", rows);
        n += take(&own, 1, "{}", rows + n);
        const struct advice_question q = question(WANT_LATENCY_P50, 2000);
        CHECK_INT(advice_draw(&q, rows, n, &a), 0);
        CHECK_INT(a.items[0].point.transport, TRANSPORT_PIPE);
        CHECK(a.items[0].leads && of(&a, TRANSPORT_SHM_POSIX)->interpolated);
        CHECK_UINT(a.n_better, 0);
        CHECK_UINT(a.n_better_fitted, 1);
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
        q = (struct advice_question){.workload = WORKLOAD_STREAM, .threads = 1};
        for (unsigned both = 0; both < 2; both++) {
                q.both_ways = both;
                for (enum data_direction d = 0; d < DIRECTION_COUNT; d++) {
                        p = (struct point){
                                .workload = WORKLOAD_STREAM, .transport = TRANSPORT_TCP, .threads = 1, .direction = d};
                        CHECK_INT(advice_concerns(&q, &p), (d == DIRECTION_BOTH) == both);
                }
        }
}

int main(void) {
        RUN(test_ranking);
        RUN(test_interval);
        RUN(test_equals_are_not_ranked);
        RUN(test_interpolation);
        RUN(test_apart);
        RUN(test_unlike_settings_are_two);
        RUN(test_limits);
        RUN(test_a_duel_decides_who_leads);
        RUN(test_experiments_in_a_circle);
        RUN(test_one_run_does_not_lead);
        RUN(test_the_pairs_choose_who_leads);
        RUN(test_a_limit_within_the_interval_is_undecided);
        RUN(test_only_one_that_keeps_the_limits_leads);
        RUN(test_few);
        RUN(test_a_run_of_nothing);
        RUN(test_out_of_reach);
        RUN(test_two_streams_are_no_mechanism);
        RUN(test_flags);
        RUN(test_a_better_one_that_was_interpolated);
        RUN(test_what_concerns);
        return check_end();
}
