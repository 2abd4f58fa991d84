/* SPDX-License-Identifier: MIT */

/* See rank-internal.h. */

#include "daemon/analysis/statistics/rank-internal.h"
#include "schema/util.h"

#include <errno.h>

static uint64_t smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/*
 * Ways in which U is 0 … u. They are the coefficients of the Gaussian binomial, the product over i of
 * (1 - q^(m+i)) / (1 - q^i), which is multiplied out factor by factor. The coefficients rise up to n m / 2 and those up
 * to u depend on none beyond: the subtracted part is never greater than the final value of the coefficient.
 */
static void count_sums(size_t n, size_t m, uint64_t u, long double *ways) {
        ways[0] = 1;
        for (uint64_t s = 1; s <= u; s++)
                ways[s] = 0;
        for (size_t i = 1; i <= n; i++) {
                for (uint64_t s = u; s >= m + i; s--)
                        ways[s] -= ways[s - m - i];
                for (uint64_t s = i; s <= u; s++)
                        ways[s] += ways[s - i];
        }
}

/* C(n + m, n): 1e119 at most. */
static long double choices(size_t n, size_t m) {
        long double ways = 1;
        for (size_t i = 1; i <= n; i++)
                ways *= (long double) (m + i) / (long double) i;
        return ways;
}

int rank_sum_untied(size_t n, size_t m, uint64_t u, struct rank_tail *ret) {
        _cleanup_free_ long double *ways = reallocarray(NULL, u + 1, sizeof(*ways));
        if (!ways)
                return -ENOMEM;
        count_sums(n, m, u, ways);
        long double sum = 0, all = choices(n, m);
        for (uint64_t s = 0; s <= u; s++)
                sum += ways[s];
        *ret = (struct rank_tail){.at_most = (double) (sum / all), .exactly = (double) (ways[u] / all)};
        return 0;
}

/* The first value up to `last` below which there is more than the tail; 2 × tail < 1, so there is one. */
static uint64_t find_quantile(const long double *ways, uint64_t last, long double all, double tail, double *ret_below) {
        long double below = 0;
        uint64_t q = 0;
        for (; q <= last && (below + ways[q]) / all <= (long double) tail; q++)
                below += ways[q];
        *ret_below = (double) (below / all);
        return q;
}

int rank_sum_quantile(size_t n, size_t m, double tail, uint64_t *ret, double *ret_probability) {
        uint64_t last = (uint64_t) n * m / 2;
        _cleanup_free_ long double *ways = reallocarray(NULL, last + 1, sizeof(*ways));
        if (!ways)
                return -ENOMEM;
        count_sums(n, m, last, ways);
        *ret = find_quantile(ways, last, choices(n, m), tail, ret_probability);
        return 0;
}

/*
 * A walk through the ranks that takes or leaves each. ways[k] counts the choices of k with each sum, from the smallest
 * sum of k on: a sum that would exceed the requested one, even if the smallest ranks followed, is not followed, and so
 * all rows are as long. A count is 1e119 at most, and an addition adds no more than its own rounding.
 */
struct walk {
        const uint32_t *ranks;
        size_t n_ranks, n;
        uint64_t excess; /* of the requested sum over the smallest one */
        double *ways;
};

static double *row_of(const struct walk *w, size_t k) {
        return w->ways + k * (w->excess + 1);
}

static void add_shifted(double *restrict row, const double *restrict from, uint64_t step, uint64_t end) {
        for (uint64_t e = step; e <= end; e++)
                row[e] += from[e - step];
}

static void walk_all(const struct walk *w, const uint64_t *below) {
        size_t others = w->n_ranks - w->n; /* are left */
        row_of(w, 0)[0] = 1;
        for (size_t j = 0; j < w->n_ranks; j++)
                for (size_t k = smaller(j + 1, w->n); k > 0 && j + 1 <= k + others; k--) {
                        uint64_t greatest = below[j + 1] - below[j + 1 - k] - below[k]; /* of k among the first j + 1 */
                        add_shifted(row_of(w, k), row_of(w, k - 1), w->ranks[j] - w->ranks[k - 1],
                                    smaller(greatest, w->excess));
                }
}

int rank_sum_tied(const uint32_t *ranks, size_t n_ranks, size_t n, uint64_t sum, struct rank_tail *ret) {
        _cleanup_free_ uint64_t *below = calloc(n_ranks + 1, sizeof(*below)); /* the sum of the first */
        if (!below)
                return -ENOMEM;
        for (size_t i = 0; i < n_ranks; i++)
                below[i + 1] = below[i] + ranks[i];
        struct walk w = {.ranks = ranks, .n_ranks = n_ranks, .n = n, .excess = sum - below[n]};
        _cleanup_free_ double *ways = calloc((n + 1) * (w.excess + 1), sizeof(*ways));
        if (!ways)
                return -ENOMEM;
        w.ways = ways;
        walk_all(&w, below);
        const double *row = row_of(&w, n);
        long double at_most = 0, all = choices(n, n_ranks - n);
        for (uint64_t e = 0; e <= w.excess; e++)
                at_most += (long double) row[e];
        *ret = (struct rank_tail){.at_most = (double) (at_most / all),
                                  .exactly = (double) ((long double) row[w.excess] / all)};
        return 0;
}

/* Ways in which the signed ranks' sum is 0 … last, of 2^n: 1.6e60 at most. */
static void count_signed(const uint32_t *ranks, size_t n, uint64_t last, long double *ways) {
        ways[0] = 1;
        for (uint64_t s = 1; s <= last; s++)
                ways[s] = 0;
        uint64_t reached = 0; /* no sum beyond it is possible yet */
        for (size_t i = 0; i < n; i++) {
                reached = reached + ranks[i] < last ? reached + ranks[i] : last;
                for (uint64_t s = reached + 1; s-- > ranks[i];)
                        ways[s] += ways[s - ranks[i]];
        }
}

static long double signs(size_t n) {
        long double ways = 1;
        while (n-- > 0)
                ways *= 2;
        return ways;
}

int rank_signed(const uint32_t *ranks, size_t n, uint64_t sum, struct rank_tail *ret) {
        _cleanup_free_ long double *ways = reallocarray(NULL, sum + 1, sizeof(*ways));
        if (!ways)
                return -ENOMEM;
        count_signed(ranks, n, sum, ways);
        long double at_most = 0, all = signs(n);
        for (uint64_t s = 0; s <= sum; s++)
                at_most += ways[s];
        *ret = (struct rank_tail){.at_most = (double) (at_most / all), .exactly = (double) (ways[sum] / all)};
        return 0;
}

int rank_signed_quantile(size_t n, double tail, uint64_t *ret, double *ret_probability) {
        uint64_t last = (uint64_t) n * (n + 1) / 4;
        _cleanup_free_ uint32_t *ranks = reallocarray(NULL, n, sizeof(*ranks));
        _cleanup_free_ long double *ways = reallocarray(NULL, last + 1, sizeof(*ways));
        if (!ranks || !ways)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                ranks[i] = (uint32_t) i + 1;
        count_signed(ranks, n, last, ways);
        *ret = find_quantile(ways, last, signs(n), tail, ret_probability);
        return 0;
}
