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

/* The direction has a meaning for tcp alone, and is no axis where all of tcp goes both ways. */
static void a_sum_is_not_ranked_with_what_goes_one_way(void) {
        MADE m;
        make(&m, "{\"transport\": [\"pipe\", \"fifo\", \"tcp\"], \"direction\": \"both\", \"message_size\": 4096}", 12,
             1);
        measure(&m, shared, NULL, NOISE, 0);
        FINDINGS *f = draw(&m);
        for (size_t i = 0; i < f->n; i++)
                CHECK(f->items[i].kind != FINDING_RANKING || !is_of_both(&m, &f->items[i]));
        CHECK(nth(f, FINDING_RANKING, 0) != NULL);
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

/* 4 µs of all streams together, and 1 ns more for each byte. */
static double straight(const struct point *p) {
        return 4000 + (double) p->message_size;
}

/* Each of the streams that send at once takes as many times as long for a message as there are of them. */
static void a_message_takes_the_time_of_its_stream(void) {
        static const struct {
                const char *setting, *words;
                double streams;
        } cases[] = {
                {"\"transport\": \"pipe\"", ": a message takes 4", 1},
                {"\"transport\": \"pipe\", \"threads\": 4", ": a message of one of the 4 streams takes 16 µs and", 4},
                {"\"transport\": \"tcp\", \"direction\": \"both\"",
                 ": a message of one of the 2 streams takes 8 µs and", 2},
                {"\"transport\": \"tcp\", \"direction\": \"both\", \"threads\": 3", "one of the 6 streams takes 24 µs",
                 6},
                {"\"workload\": \"pingpong\", \"transport\": \"pipe\"", ": a round trip takes 4", 1},
                {"\"workload\": \"pingpong\", \"transport\": \"pipe\", \"threads\": 4",
                 ": a round trip of one of the 4 threads takes 16 µs and", 4},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char spec[256];
                MADE m;
                (void) snprintf(spec, sizeof(spec), "{%s, \"message_size\": [64, 512, 2048, 8192, 16384, 65536]}",
                                cases[i].setting);
                make(&m, spec, 8, 1);
                measure(&m, straight, NULL, 1e-4, 0);
                FINDINGS *f = draw(&m);
                const struct finding *knee = nth(f, FINDING_KNEE, 0);
                const struct finding_figure *alpha = figure(knee, "time_per_message");
                const struct finding_figure *beta = figure(knee, "time_per_byte"), *at = figure(knee, "knee");
                CHECK(says(knee, cases[i].words));
                CHECK(alpha && beta && at);
                CHECK(fabs(at->value - 4000) < 40);
                CHECK(fabs(alpha->value - 4000 * cases[i].streams) < 40 * cases[i].streams);
                CHECK(alpha->low <= alpha->value && alpha->value <= alpha->high &&
                      alpha->low > 3900 * cases[i].streams);
                CHECK(fabs(beta->value - cases[i].streams) < 0.01 * cases[i].streams);
                CHECK(beta->low <= beta->value && beta->value <= beta->high);
        }
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
        RUN(a_sum_is_not_ranked_with_what_goes_one_way);
        RUN(latencies_are_ranked);
        RUN(a_sum_overtakes_nothing);
        RUN(a_message_takes_the_time_of_its_stream);
        RUN(what_all_have_is_named_once);
        RUN(a_placement_by_hand_is_named_whole);
        return check_end();
}
