/* SPDX-License-Identifier: MIT */

/* The order of an experiment's runs: blocks, the shuffled order of earlier versions, and what is added to either. */

#include "daemon/run/sequence.h"

#include "check.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>

#define POINTS 12u

/* Whether each repetition has each point once. */
static bool is_in_repetitions(const uint32_t *points, uint32_t n) {
        for (uint32_t k = 0; k < n; k++) {
                unsigned seen = 0;
                for (uint32_t i = 0; i < POINTS; i++) {
                        uint32_t point = points[k * POINTS + i];
                        if (point >= POINTS || seen & 1u << point)
                                return false;
                        seen |= 1u << point;
                }
        }
        return true;
}

static void each_repetition_has_each_point_once(void) {
        for (unsigned order = 0; order < ORDER_COUNT; order++)
                for (uint64_t seed = 0; seed < 50; seed++) {
                        _cleanup_free_ uint32_t *points = NULL;
                        CHECK_INT(sequence_make((enum spec_order) order, seed, NULL, POINTS, 0, 9, &points), 0);
                        CHECK(is_in_repetitions(points, 9));
                }
}

/* Written down once, and never to change. Computed by a second implementation, in Python. */
static void blocks_of_a_seed_are_these(void) {
        static const uint32_t want[2][8] = {{1, 6, 5, 3, 0, 7, 4, 2}, {3, 0, 5, 2, 7, 4, 6, 1}};
        _cleanup_free_ uint32_t *points = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 42, NULL, 8, 0, 2, &points), 0);
        for (unsigned i = 0; i < 16; i++)
                CHECK_UINT(points[i], want[i / 8][i % 8]);
}

static void blocks_have_orders_of_their_own(void) {
        unsigned alike = 0;
        _cleanup_free_ uint32_t *points = NULL, *other = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, NULL, POINTS, 0, 40, &points), 0);
        CHECK_INT(sequence_make(ORDER_BLOCKS, 2, NULL, POINTS, 0, 40, &other), 0);
        for (unsigned k = 1; k < 40; k++)
                for (unsigned j = 0; j < k; j++)
                        alike += memcmp(points + k * POINTS, points + j * POINTS, POINTS * sizeof(*points)) == 0;
        CHECK_UINT(alike, 0); /* 12! orders for 780 pairs */
        CHECK(memcmp(points, other, POINTS * sizeof(*points)) != 0);
}

/* An experiment that is extended runs as if it had been submitted so. */
static void what_is_added_continues(void) {
        for (unsigned order = 0; order < ORDER_COUNT; order++) {
                _cleanup_free_ uint32_t *all = NULL, *first = NULL, *rest = NULL;
                CHECK_INT(sequence_make((enum spec_order) order, 7, NULL, POINTS, 0, 9, &all), 0);
                CHECK_INT(sequence_make((enum spec_order) order, 7, NULL, POINTS, 0, 4, &first), 0);
                CHECK_INT(sequence_make((enum spec_order) order, 7, NULL, POINTS, 4, 5, &rest), 0);
                CHECK_INT(memcmp(all, first, 4 * POINTS * sizeof(*all)), 0);
                CHECK_INT(memcmp(all + 4 * POINTS, rest, 5 * POINTS * sizeof(*all)), 0);
        }
}

static void shuffled_is_the_order_of_earlier_versions(void) {
        uint32_t earlier[3 * POINTS];
        _cleanup_free_ uint32_t *points = NULL;
        spec_shuffle(4711, POINTS, 3, earlier);
        CHECK_INT(sequence_make(ORDER_SHUFFLED, 4711, NULL, POINTS, 0, 3, &points), 0);
        CHECK_INT(memcmp(points, earlier, sizeof(earlier)), 0);
}

/* The points of a spec, and their groups; whether each block has the points of each group in one piece. */
static bool are_together(const uint32_t *points, const uint32_t *groups, size_t n_points, uint32_t n) {
        for (uint32_t k = 0; k < n; k++) {
                const uint32_t *block = points + k * n_points;
                for (size_t i = 1; i < n_points; i++)
                        for (size_t j = 0; j + 1 < i; j++)
                                if (groups[block[i]] == groups[block[j]] && groups[block[i]] != groups[block[i - 1]])
                                        return false;
        }
        return true;
}

/* In how many of n blocks the point comes before the other one. */
static unsigned count_before(const uint32_t *points, size_t n_points, uint32_t n, uint32_t point, uint32_t other) {
        unsigned before = 0;
        for (uint32_t k = 0; k < n; k++)
                for (size_t i = 0; i < n_points; i++) {
                        uint32_t at = points[k * n_points + i];
                        if (at == point || at == other) {
                                before += at == point;
                                break;
                        }
                }
        return before;
}

static void check_groups(const char *text, const uint32_t *want, size_t n_points) {
        _cleanup_free_ uint32_t *groups = NULL, *points = NULL;
        struct point_list list = {0};
        struct spec *spec = NULL;
        struct refusal why;
        CHECK_INT(spec_parse(text, strlen(text), &spec, &why), 0);
        CHECK_INT(spec_points(spec, &list, &why), 0);
        CHECK_UINT(list.n_points, n_points);
        CHECK_INT(points_group(spec, list.points, list.n_points, &groups), 0);
        CHECK(groups != NULL);
        for (size_t i = 0; groups && i < n_points; i++)
                CHECK_UINT(groups[i], want[i]);
        CHECK_INT(sequence_make(ORDER_BLOCKS, 4711, groups, n_points, 0, 200, &points), 0);
        CHECK(are_together(points, groups, n_points, 200));
        for (uint32_t i = 0; groups && i < n_points; i++)
                for (uint32_t k = 0; k < i; k++) { /* 200 throws of a coin: 6 standard deviations */
                        unsigned before = count_before(points, n_points, 200, i, k);
                        CHECK(before > 57 && before < 143);
                }
        point_list_deinit(&list);
        spec_free(spec);
}

/* What a spec compares lies next to each other in time, in an order that changes from block to block. */
static void what_is_compared_is_together(void) {
        check_groups("{\"message_size\":[64,128,256],\"points\":\"twice\"}", (const uint32_t[]){0, 0, 2, 2, 4, 4}, 6);
        check_groups("{\"transport\":[\"pipe\",\"fifo\"],\"message_size\":[64,128,256],"
                     "\"until\":{\"compare\":{\"axis\":\"transport\"}}}",
                     (const uint32_t[]){0, 1, 2, 0, 1, 2}, 6);
        /* fifo is compared with pipe alone, and so is unix-stream */
        check_groups("{\"transport\":[\"fifo\",\"pipe\",\"unix-stream\"],\"message_size\":[64,128],"
                     "\"until\":{\"compare\":{\"axis\":\"transport\",\"baseline\":\"pipe\"}}}",
                     (const uint32_t[]){0, 1, 0, 1, 0, 1}, 6);
        /* both, and a size that is compared with none but its own instance */
        check_groups("{\"message_size\":[64,128,256],\"points\":\"twice\",\"until\":{\"compare\":"
                     "{\"axis\":\"instance\"}}}",
                     (const uint32_t[]){0, 0, 2, 2, 4, 4}, 6);
        check_groups("{\"transport\":[\"pipe\",\"fifo\"],\"message_size\":[64,128],\"points\":\"twice\","
                     "\"until\":{\"compare\":{\"axis\":\"transport\"}}}",
                     (const uint32_t[]){0, 0, 2, 2, 0, 0, 2, 2}, 8);
}

/* Others have the order that they have always had. */
static void without_a_comparison_there_are_no_groups(void) {
        static const char text[] = "{\"transport\":[\"pipe\",\"fifo\"],\"until\":{}}";
        uint32_t *groups = NULL;
        struct spec *spec = NULL;
        struct refusal why;
        CHECK_INT(spec_parse(text, strlen(text), &spec, &why), 0);
        CHECK(!spec_compares_points(spec));
        CHECK_INT(points_group(spec, NULL, 0, &groups), 0);
        CHECK(groups == NULL);
        spec_free(spec);
}

static void nothing_has_no_order(void) {
        uint32_t *points = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, NULL, 0, 0, 1, &points), -EINVAL);
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, NULL, 1, 3, 0, &points), -EINVAL);
        CHECK(points == NULL);
}

int main(void) {
        RUN(each_repetition_has_each_point_once);
        RUN(blocks_of_a_seed_are_these);
        RUN(blocks_have_orders_of_their_own);
        RUN(what_is_added_continues);
        RUN(shuffled_is_the_order_of_earlier_versions);
        RUN(what_is_compared_is_together);
        RUN(without_a_comparison_there_are_no_groups);
        RUN(nothing_has_no_order);
        return check_end();
}
