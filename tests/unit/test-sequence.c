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
                        CHECK_INT(sequence_make((enum spec_order) order, seed, POINTS, 0, 9, &points), 0);
                        CHECK(is_in_repetitions(points, 9));
                }
}

/* Written down once, and never to change. Computed by a second implementation, in Python. */
static void blocks_of_a_seed_are_these(void) {
        static const uint32_t want[2][8] = {{1, 6, 5, 3, 0, 7, 4, 2}, {3, 0, 5, 2, 7, 4, 6, 1}};
        _cleanup_free_ uint32_t *points = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 42, 8, 0, 2, &points), 0);
        for (unsigned i = 0; i < 16; i++)
                CHECK_UINT(points[i], want[i / 8][i % 8]);
}

static void blocks_have_orders_of_their_own(void) {
        unsigned alike = 0;
        _cleanup_free_ uint32_t *points = NULL, *other = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, POINTS, 0, 40, &points), 0);
        CHECK_INT(sequence_make(ORDER_BLOCKS, 2, POINTS, 0, 40, &other), 0);
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
                CHECK_INT(sequence_make((enum spec_order) order, 7, POINTS, 0, 9, &all), 0);
                CHECK_INT(sequence_make((enum spec_order) order, 7, POINTS, 0, 4, &first), 0);
                CHECK_INT(sequence_make((enum spec_order) order, 7, POINTS, 4, 5, &rest), 0);
                CHECK_INT(memcmp(all, first, 4 * POINTS * sizeof(*all)), 0);
                CHECK_INT(memcmp(all + 4 * POINTS, rest, 5 * POINTS * sizeof(*all)), 0);
        }
}

static void shuffled_is_the_order_of_earlier_versions(void) {
        uint32_t earlier[3 * POINTS];
        _cleanup_free_ uint32_t *points = NULL;
        spec_shuffle(4711, POINTS, 3, earlier);
        CHECK_INT(sequence_make(ORDER_SHUFFLED, 4711, POINTS, 0, 3, &points), 0);
        CHECK_INT(memcmp(points, earlier, sizeof(earlier)), 0);
}

static void nothing_has_no_order(void) {
        uint32_t *points = NULL;
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, 0, 0, 1, &points), -EINVAL);
        CHECK_INT(sequence_make(ORDER_BLOCKS, 1, 1, 3, 0, &points), -EINVAL);
        CHECK(points == NULL);
}

int main(void) {
        RUN(each_repetition_has_each_point_once);
        RUN(blocks_of_a_seed_are_these);
        RUN(blocks_have_orders_of_their_own);
        RUN(what_is_added_continues);
        RUN(shuffled_is_the_order_of_earlier_versions);
        RUN(nothing_has_no_order);
        return check_end();
}
