/* SPDX-License-Identifier: MIT */

/* The findings where points send one way, or both ways at once, whose figures are the sum of two streams. */

#include "tests/unit/drawn.h"

#define DIRECTIONS "\"transport\": \"tcp\", \"direction\": [\"down\", \"up\", \"both\"]"

/* Both ways move 1.6 times as much together, and more than one way below 1 KiB only. */
static double shared(const struct point *p) {
        double alone = p->direction == DIRECTION_UP ? 1100 : 1000;
        if (p->direction != DIRECTION_BOTH)
                return alone;
        return p->message_size < 1024 ? alone / 1.6 : alone * 1.6;
}

/* Whether the finding is about what goes both ways. */
static bool is_of_both(const struct made *m, const struct finding *f) {
        for (size_t i = 0; i < f->n_rows; i++)
                if (m->rows[f->rows[i]].point.direction == DIRECTION_BOTH)
                        return true;
        return false;
}

static void a_sum_is_not_ranked_with_its_parts(void) {
        MADE m;
        make(&m, "{" DIRECTIONS ", \"message_size\": 64}", 12, 1);
        measure(&m, shared, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        const struct finding *ranking = nth(f, FINDING_RANKING, 0);
        CHECK(ranking != NULL);
        CHECK_UINT(ranking->n_rows, 2);
        CHECK(says(ranking, "throughput by direction, best first: down "));
        CHECK(says(ranking, ", then up "));
        CHECK(!nth(f, FINDING_RANKING, 1));
        for (size_t i = 0; i < f->n; i++)
                CHECK(f->items[i].axis != AXIS_DIRECTION || !is_of_both(&m, &f->items[i]));
}

/* A latency is of a message, whichever way it goes. */
static void latencies_are_ranked(void) {
        MADE m;
        make(&m, "{" DIRECTIONS ", \"message_size\": 64}", 12, 1);
        measure(&m, shared, NULL, NOISE, 0);
        stamp(&m);
        FINDINGS *f = draw(&m);
        const struct finding *ranking = nth(f, FINDING_RANKING, 1);
        CHECK(says(ranking, "median one-way latency by direction, best first: both "));
        CHECK_UINT(ranking->n_rows, 3);
}

static void a_sum_overtakes_nothing(void) {
        MADE m;
        make(&m, "{" DIRECTIONS ", \"message_size\": [256, 4096]}", 12, 1);
        measure(&m, shared, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        CHECK(!nth(f, FINDING_CROSSOVER, 0));
        const struct finding *best = nth(f, FINDING_BEST_SIZE, 2);
        CHECK(says(best, "stream over tcp, both ways together: "));
}

int main(void) {
        RUN(a_sum_is_not_ranked_with_its_parts);
        RUN(latencies_are_ranked);
        RUN(a_sum_overtakes_nothing);
        return check_end();
}
