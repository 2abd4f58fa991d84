/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_ANALYSIS_RANK_INTERNAL_H
#define IPCLAB_DAEMON_ANALYSIS_RANK_INTERNAL_H

/*
 * Null distributions, whose tails rank.c uses. Ranks are integers: where there are ties, all are doubled. A tail of
 * 1e-100 is as exact, to 1e-12 of itself, as one of a half.
 */

#include <stddef.h>
#include <stdint.h>

struct rank_tail {
        double at_most; /* P(statistic <= value) */
        double exactly; /* P(statistic == value) */
};

/* U of n and m values without ties; u <= n m / 2. -ENOMEM. */
int rank_sum_untied(size_t n, size_t m, uint64_t u, struct rank_tail *ret);

/* The sum of n of the n_ranks, which ascend; every choice is as likely. -ENOMEM. */
int rank_sum_tied(const uint32_t *ranks, size_t n_ranks, size_t n, uint64_t sum, struct rank_tail *ret);

/* The sum of those ranks that have a positive sign; every assignment of signs is as likely. -ENOMEM. */
int rank_signed(const uint32_t *ranks, size_t n, uint64_t sum, struct rank_tail *ret);

/* The greatest q with P(statistic < q) <= tail, without ties, and that probability; 0 where even P(statistic = 0) is
 * more. -ENOMEM. */
int rank_sum_quantile(size_t n, size_t m, double tail, uint64_t *ret, double *ret_probability);
int rank_signed_quantile(size_t n, double tail, uint64_t *ret, double *ret_probability);

#endif
