/* SPDX-License-Identifier: MIT */

/* Doubts: what cannot be said of some rows is said of them, and nothing is concluded from them in silence. */

#include "tests/unit/drawn.h"

/* ---- figures of which there is no ratio ---- */

static double faster_pipe(const struct point *p) {
        return p->transport == TRANSPORT_PIPE ? 1000 : 1500;
}

/* One run that moved nothing is not left out of a ranking as if the others were all of the row's runs. */
static void test_a_run_of_nothing(void) {
        static const double values[] = {0, -5};
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
                MADE m;
                make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"]}", 8, 14);
                measure(&m, faster_pipe, NULL, NOISE, 0);
                FINDINGS *sound = draw(&m);
                const struct finding *all = nth(sound, FINDING_RANKING, 0);
                CHECK(all && all->n_rows == 3 && !has_doubt(sound, "not-above-0"));
                m.runs[m.blocks + 3].values[FIGURE_THROUGHPUT] = values[i];
                FINDINGS *f = draw(&m);
                const struct finding *ranking = nth(f, FINDING_RANKING, 0), *u = of_reason(f, "not-above-0");
                CHECK(ranking && ranking->n_rows == 2 && !strstr(ranking->sentence, "fifo"));
                CHECK(says(u, "1 of 3 rows has runs whose figure for throughput is 0 or less. There is no ratio of "
                              "such, so nothing is concluded from it for this row."));
                CHECK(u && u->n_rows == 1 && u->rows[0] == 1 && u->confidence == CONFIDENCE_NONE);
        }
}

/* Of two rows nothing is left to rank. */
static void test_nothing_beside_one(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"workload\": \"pingpong\"}", 8, 14);
        measure(&m, faster_pipe, NULL, NOISE, 0);
        for (size_t i = 0; i < 2; i++)
                m.runs[i * m.blocks].values[FIGURE_LATENCY_P99] = 0;
        FINDINGS *f = draw(&m);
        CHECK(says(nth(f, FINDING_RANKING, 0), "median round trip") && !nth(f, FINDING_RANKING, 1));
        CHECK(says(of_reason(f, "not-above-0"), "2 of 2 rows have runs whose figure for p99 of the round trip is 0 or "
                                                "less"));
}

/* A cost beside the first figure that is 0 is said, too, and the others are compared. */
static void test_a_cost_of_nothing(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"message_size\": 65536, \"copy_mode\": [\"two-copy\", \"zero-copy\"]}", 8,
             7);
        measure(&m, faster_pipe, one, NOISE, 0);
        count(&m);
        FINDINGS *sound = draw(&m);
        CHECK(says(nth(sound, FINDING_COST, 0), "misses of the last cache per message"));
        m.runs[2].values[FIGURE_LLC_MISSES] = 0;
        FINDINGS *f = draw(&m);
        const struct finding *cost = nth(f, FINDING_COST, 0);
        CHECK(says(cost, "cycles per byte") && !strstr(cost->sentence, "misses"));
        CHECK(says(of_reason(f, "not-above-0"), "1 of 2 rows has runs whose figure for misses of the last cache per "
                                                "message is 0 or less"));
}

/* Neither a knee nor a crossover rests on the runs that are left. */
static void test_no_law_from_what_is_left(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\"], \"message_size\": [64, 256, 1024, 4096, 16384]}", 8, 1);
        measure(&m, one, NULL, NOISE, 0);
        for (size_t i = 0; i < m.n_rows; i++)
                for (size_t k = 0; k < m.blocks; k++) {
                        bool up = (m.rows[i].point.transport == TRANSPORT_PIPE) == (m.rows[i].point.message_size > 500);
                        m.runs[i * m.blocks + k].values[FIGURE_THROUGHPUT] *= up ? 3 : 1;
                }
        FINDINGS *sound = draw(&m);
        CHECK(nth(sound, FINDING_CROSSOVER, 0));
        for (size_t i = 0; i < m.n_rows; i++)
                m.runs[i * m.blocks].values[FIGURE_THROUGHPUT] = m.runs[i * m.blocks].values[FIGURE_MESSAGES] = 0;
        FINDINGS *f = draw(&m);
        CHECK(!nth(f, FINDING_CROSSOVER, 0) && !nth(f, FINDING_KNEE, 0) && !nth(f, FINDING_RANKING, 0));
        CHECK(says(of_reason(f, "not-above-0"), "10 of 10 rows have"));
}

int main(void) {
        RUN(test_a_run_of_nothing);
        RUN(test_nothing_beside_one);
        RUN(test_a_cost_of_nothing);
        RUN(test_no_law_from_what_is_left);
        return check_end();
}
