/* SPDX-License-Identifier: MIT */

/* The findings where points send one way, or both ways at once, whose figures are the sum of two streams; and what of
 * all points is said once. */

#include "schema/util.h"
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

/* No sentence names what is the same everywhere, and no figure is without it. */
static void what_all_have_is_named_once(void) {
        static const struct {
                const char *spec, *constants;
        } cases[] = {
                {"{\"message_size\": [64, 4096]}", "placement default"},
                {"{\"placement\": \"same-node\", \"threads\": 4}", "threads 4, placement same-node"},
                {"{\"placement\": [\"same-node\", \"cross-node\"], \"threads\": 4}", "threads 4"},
                {"{\"transport\": [\"tcp\", \"pipe\"], \"copy_mode\": \"one-copy\", \"fields\": 8}",
                 "copy mode one-copy, fields 8, placement default"},
                {"{\"transport\": \"tcp\", \"direction\": \"both\"}", "both ways together, placement default"},
                {"{\"transport\": \"tcp\", \"direction\": [\"down\", \"both\"], "
                 "\"placement\": [\"same-node\", \"cross-node\"]}",
                 ""},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                MADE m;
                make(&m, cases[i].spec, 1, 1);
                measure(&m, one, NULL, NOISE, 0);
                FINDINGS *f = draw(&m);
                CHECK_STRING(f->constants, cases[i].constants);
        }
}

static void a_placement_by_hand_is_named_whole(void) {
        MADE m;
        make(&m,
             "{\"placement\": {\"sender\": {\"node\": 0, \"cpu\": 3, \"memory\": {\"policy\": \"bind\", "
             "\"nodes\": [0]}}, \"receiver\": {\"node\": 0, \"cpu\": 4, \"memory\": {\"policy\": \"bind\", "
             "\"nodes\": [0]}}}}",
             1, 1);
        measure(&m, one, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        _cleanup_free_ char *point = point_to_json(&m.rows[0].point);
        const char *placement = strstr(f->constants, "placement {");
        CHECK(placement == f->constants && point);
        CHECK(strstr(point, placement + strlen("placement ")) != NULL);
}

int main(void) {
        RUN(a_sum_is_not_ranked_with_its_parts);
        RUN(latencies_are_ranked);
        RUN(a_sum_overtakes_nothing);
        RUN(what_all_have_is_named_once);
        RUN(a_placement_by_hand_is_named_whole);
        return check_end();
}
