/* SPDX-License-Identifier: MIT */

/* See sequence.h. Blocks are numbered from 1, as the runs that they have. */

#include "daemon/run/sequence.h"

#include "daemon/analysis/adaptive.h"
#include "schema/spec/spec.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* The earlier repetitions are drawn again, as all are of one sequence of random numbers. */
static int shuffle(uint64_t seed, size_t n_points, uint32_t done, uint32_t n, uint32_t *order) {
        _cleanup_free_ uint32_t *all = reallocarray(NULL, n_points * (done + n), sizeof(*all));
        if (!all)
                return -ENOMEM;
        spec_shuffle(seed, n_points, done + n, all);
        memcpy(order, all + n_points * done, n_points * n * sizeof(*order));
        return 0;
}

int sequence_make(enum spec_order order, uint64_t seed, const uint32_t *groups, size_t n_points, uint32_t done,
                  uint32_t n, uint32_t **ret) {
        if (n_points == 0 || n == 0)
                return -EINVAL;
        _cleanup_free_ uint32_t *points = reallocarray(NULL, n_points * n, sizeof(*points));
        if (!points)
                return -ENOMEM;
        int r = order == ORDER_SHUFFLED ? shuffle(seed, n_points, done, n, points) : 0;
        for (uint32_t k = 0; r == 0 && order == ORDER_BLOCKS && k < n; k++)
                r = adaptive_block_order(seed, done + k + 1, groups, n_points, points + n_points * k);
        if (r == 0)
                *ret = util_steal(&points);
        return r;
}
