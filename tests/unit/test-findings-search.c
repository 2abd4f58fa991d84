/* SPDX-License-Identifier: MIT */

/* The findings of a search: the highest rates, and what contradicts them. */

#include "tests/unit/drawn.h"

#define FOUR_SIZES "{\"transport\": \"pipe\", \"workload\": \"pingpong\", \"message_size\": [64, 256, 1024, 4096]}"

/* What a search has found of three points; of the third it has concluded nothing. */
static void test_highest_rate(void) {
        MADE m;
        make(&m, FOUR_SIZES, 1, 1);
        measure(&m, one, NULL, NOISE, 0);
        const struct findings_search searches[] = {
                {0, .kept = 5087, .not_kept = 5161, .closed_loop = 11900, .n_rates = 19, .n_runs = 57, .runs_least = 3},
                {1, .kept = 9000, .n_rates = 7, .n_runs = 35, .runs_least = 5, .rates.noisy = true},
                {3, .not_kept = 2100, .n_rates = 1, .n_runs = 1, .runs_least = 1},
        };
        FINDINGS *f = draw_searched(&m, searches, 3);
        static const char *const sentences[] = {
                "pingpong over pipe, 64 B: the 99th percentile of the latency stays below 50 µs up to a rate between "
                "5087 messages/s and 5161 messages/s, at 43 % of what a closed loop carries (19 rates, at least 3 "
                "runs each).",
                "pingpong over pipe, 256 B: the 99th percentile of the latency stays below 50 µs at every rate that "
                "was tried, up to 9000 messages/s (7 rates, at least 5 runs each).",
                "pingpong over pipe, 4 KiB: no rate that was tried, down to 2100 messages/s, was reached with a 99th "
                "percentile of the latency below 50 µs (1 rate, 1 run).",
        };
        for (size_t i = 0; i < 3; i++) {
                const struct finding *found = nth(f, FINDING_HIGHEST_RATE, i);
                CHECK(found != NULL);
                CHECK_STRING(found->sentence, sentences[i]);
                CHECK_UINT(found->n_rows, 1);
                CHECK_UINT(found->rows[0], searches[i].row);
                CHECK_UINT(found->n_runs, 1 + searches[i].n_runs);
                CHECK(found->n_run_ids == 1 && found->run_ids[0] == m.runs[searches[i].row].id);
                CHECK_INT(found->confidence, i == 0 ? CONFIDENCE_HIGH : CONFIDENCE_REDUCED);
        }
        CHECK(!nth(f, FINDING_HIGHEST_RATE, 3));
        const struct finding_figure *highest = figure(nth(f, FINDING_HIGHEST_RATE, 0), "highest_rate");
        CHECK(highest->has_interval && highest->low == 5087 && highest->high == 5161 && highest->level == 0);
        CHECK(figure(nth(f, FINDING_HIGHEST_RATE, 0), "lowest_rate_not_kept")->value == 5161);
        CHECK(!figure(nth(f, FINDING_HIGHEST_RATE, 1), "highest_rate")->has_interval);
        CHECK(!figure(nth(f, FINDING_HIGHEST_RATE, 1), "lowest_rate_not_kept"));
        CHECK(!figure(nth(f, FINDING_HIGHEST_RATE, 2), "highest_rate"));
        const struct finding *few = of_reason(f, "too-few-runs");
        CHECK(says(few, "1 of 4 rows has fewer than 4 runs") && few->rows[0] == 2);
}

/* A search passes over rates that contradict the step; the sentence does not. */
static void test_rates_that_contradict(void) {
        MADE m;
        make(&m, FOUR_SIZES, 8, 1);
        measure(&m, one, NULL, NOISE, 0);
        const struct findings_search searches[] = {
                {.row = 0, .kept = 5087, .not_kept = 5161, .n_below = 2, .n_beyond = 1, .n_rates = 19, .runs_least = 3},
                {.row = 1, .kept = 9000, .n_below = 1, .n_rates = 7, .runs_least = 3},
                {.row = 2, .not_kept = 2100, .n_beyond = 2, .n_rates = 7, .runs_least = 3},
                {.row = 3, .kept = 5087, .not_kept = 5161, .n_rates = 19, .runs_least = 2},
        };
        static const char *const words[] = {
                "stays below 50 µs up to a rate between 5087 messages/s and 5161 messages/s, although 2 of the rates "
                "below it exceeded the limit or were not reached, and 1 of the rates beyond it kept the limit (19 ",
                "stays below 50 µs up to the highest rate that was tried, 9000 messages/s, although 1 of the rates "
                "below it exceeded the limit or was not reached (7 rates",
                "already at the lowest rate that was tried, 2100 messages/s, the 99th percentile of the latency "
                "exceeds the limit of 50 µs, or that rate was not reached, although 2 of the rates beyond it kept the "
                "limit (7 rates",
                "(19 rates, at least 2 runs each).",
        };
        FINDINGS *f = draw_searched(&m, searches, 4);
        for (size_t i = 0; i < 4; i++) {
                const struct finding *found = nth(f, FINDING_HIGHEST_RATE, i);
                CHECK(says(found, words[i]));
                CHECK(!strstr(found->sentence, "every rate") && !strstr(found->sentence, "no rate"));
                CHECK_INT(found->confidence, CONFIDENCE_REDUCED);
        }
}

/* One that ran out of rates does not hide how far apart its two are. */
static void test_rates_far_apart(void) {
        MADE m;
        make(&m, FOUR_SIZES, 8, 1);
        measure(&m, one, NULL, NOISE, 0);
        const struct findings_search searches[] = {
                {.row = 0, .kept = 5000, .not_kept = 5600, .n_below = 2, .n_rates = 32, .runs_least = 3, .wide = true},
                {.row = 1, .kept = 5000, .not_kept = 5600, .n_rates = 32, .runs_least = 3, .wide = true},
        };
        static const char *const words[] = {
                "although 2 of the rates below it exceeded the limit or were not reached; the two rates are 12 % "
                "apart, "
                "and no more may be tried: runs that do not contradict each other bring them closer (32 rates",
                "between 5000 messages/s and 5600 messages/s; the two rates are 12 % apart, and no more may be tried",
        };
        FINDINGS *f = draw_searched(&m, searches, 2);
        for (size_t i = 0; i < 2; i++) {
                const struct finding *found = nth(f, FINDING_HIGHEST_RATE, i);
                CHECK(says(found, words[i]) && found->confidence == CONFIDENCE_REDUCED);
        }
}

static bool is_sure(const struct findings *f, size_t n) {
        const struct finding *found = nth(f, FINDING_HIGHEST_RATE, n);
        return found && found->confidence == CONFIDENCE_HIGH;
}

/* What the flags of the rates' runs say is said of the highest rate, and why. */
static void test_flagged_rates(void) {
        static const struct {
                struct findings_flags rates;
                const char *reason;
        } cases[] = {
                {{.noisy = true}, "noise"},
                {{.unsteady = true}, "not-steady"},
                {{.changed = true}, "environment-changed"},
                {{.unobserved = true}, "not-observed"},
                {{.restless = true}, "machine-state"},
                {{.n_disputed[DISPUTED_LATENCY_LIMIT] = 2}, "disputed"},
        };
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                MADE m;
                make(&m, FOUR_SIZES, 8, 1);
                measure(&m, one, NULL, NOISE, 0);
                struct findings_search searches[] = {
                        {.row = 1, .kept = 5087, .not_kept = 5161, .n_rates = 19, .n_runs = 57, .runs_least = 3},
                        {.row = 2, .kept = 5087, .not_kept = 5161, .n_rates = 19, .n_runs = 57, .runs_least = 3},
                };
                FINDINGS *sound = draw_searched(&m, searches, 2);
                CHECK(!has_doubt(sound, cases[i].reason));
                CHECK(is_sure(sound, 0) && is_sure(sound, 1));
                searches[1].rates = cases[i].rates;
                FINDINGS *f = draw_searched(&m, searches, 2);
                const struct finding *u = of_reason(f, cases[i].reason);
                CHECK(says(u, "1 of 4 rows has ") && u && u->n_rows == 1 && u->rows[0] == 2);
                CHECK(is_sure(f, 0) && nth(f, FINDING_HIGHEST_RATE, 1) && !is_sure(f, 1));
                CHECK(!cases[i].rates.n_disputed[DISPUTED_LATENCY_LIMIT] ||
                      says(u, ": 2 of 65 runs have the flag latency_above_limit. Conclusions that rest on them have "));
        }
}

/* The rates of two streams are those of each, while their rows count both together. */
static void test_rates_are_each_way(void) {
        MADE m;
        make(&m, "{\"transport\": \"tcp\", \"direction\": \"both\", \"message_size\": 64}", 1, 1);
        measure(&m, one, NULL, NOISE, 0);
        const struct findings_search search = {
                0, .kept = 5087, .not_kept = 5161, .closed_loop = 11900, .n_rates = 19, .n_runs = 57, .runs_least = 3};
        FINDINGS *f = draw_searched(&m, &search, 1);
        CHECK(says(nth(f, FINDING_HIGHEST_RATE, 0),
                   "up to a rate between 5087 messages/s each way and 5161 messages/s each way, at 43 %"));
}

int main(void) {
        RUN(test_highest_rate);
        RUN(test_rates_that_contradict);
        RUN(test_rates_far_apart);
        RUN(test_flagged_rates);
        RUN(test_rates_are_each_way);
        return check_end();
}
