/* SPDX-License-Identifier: MIT */

/* See rank.h. Called by compare.c and adaptive.c, on logarithms for a ratio. */

#include "daemon/analysis/statistics/rank.h"
#include "daemon/analysis/statistics/rank-internal.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>

struct value {
        double v;
        bool marked; /* of x, or of a positive difference */
};

static int by_value(const void *a, const void *b) {
        const struct value *x = a, *y = b;
        return (x->v > y->v) - (x->v < y->v);
}

static int check_side(const double *values, size_t n) {
        if (n == 0)
                return -EINVAL;
        if (n > RANK_MAX)
                return -E2BIG;
        for (size_t i = 0; i < n; i++)
                if (!isfinite(values[i]))
                        return -EINVAL;
        return 0;
}

/* Sorts the values. Their midranks, doubled so that they are integers, and the sum of those that are marked. Returns
 * whether there are ties. */
static bool rank_all(struct value *values, size_t n, uint32_t *ret_doubled, uint64_t *ret_sum) {
        bool tied = false;
        uint64_t sum = 0;
        qsort(values, n, sizeof(*values), by_value);
        for (size_t begin = 0, end; begin < n; begin = end) {
                for (end = begin + 1; end < n && values[end].v == values[begin].v; end++)
                        tied = true;
                for (size_t i = begin; i < end; i++) {
                        ret_doubled[i] = (uint32_t) (begin + 1 + end); /* of ranks begin + 1 … end */
                        sum += values[i].marked ? ret_doubled[i] : 0;
                }
        }
        *ret_sum = sum;
        return tied;
}

/* `tail` is of the side on which the statistic lies. */
static void put_tails(const struct rank_tail *tail, bool mirrored, struct rank_test *t) {
        double here = fmin(1, tail->at_most), beyond = fmin(1, fmax(0, 1 - tail->at_most + tail->exactly));
        t->p_less = mirrored ? beyond : here;
        t->p_greater = mirrored ? here : beyond;
        t->p_two_sided = fmin(1, 2 * fmin(here, beyond));
}

/* The same seen from above: the greatest rank becomes the smallest. */
static void mirror(uint32_t *doubled, size_t n) {
        uint32_t ends = doubled[0] + doubled[n - 1];
        for (size_t i = 0; i < n / 2; i++) {
                uint32_t low = doubled[i];
                doubled[i] = ends - doubled[n - 1 - i];
                doubled[n - 1 - i] = ends - low;
        }
        if (n % 2)
                doubled[n / 2] = ends - doubled[n / 2];
}

/* The tail for tied values: `sum` is of the n of x among all n_all doubled ranks. The side with fewer values is the
 * shorter walk, and its lower sums are the other's higher ones. */
static int tied_tail(uint32_t *doubled, size_t n_all, size_t n, uint64_t sum, bool *ret_mirrored,
                     struct rank_tail *ret) {
        bool mirrored = false;
        uint64_t all = (uint64_t) n_all * (n_all + 1); /* of the doubled ranks */
        if (n > n_all - n) {
                n = n_all - n;
                sum = all - sum;
                mirrored = true;
        }
        if (2 * sum > (uint64_t) n * 2 * (n_all + 1)) { /* above its mean */
                sum = (uint64_t) n * (doubled[0] + doubled[n_all - 1]) - sum;
                mirror(doubled, n_all);
                mirrored = !mirrored;
        }
        *ret_mirrored = mirrored;
        return rank_sum_tied(doubled, n_all, n, sum, ret);
}

int rank_sum_test(const double *x, size_t n, const double *y, size_t m, struct rank_test *ret) {
        int r = check_side(x, n);
        if (r == 0)
                r = check_side(y, m);
        if (r < 0)
                return r;
        size_t n_all = n + m;
        _cleanup_free_ struct value *values = reallocarray(NULL, n_all, sizeof(*values));
        _cleanup_free_ uint32_t *doubled = reallocarray(NULL, n_all, sizeof(*doubled));
        if (!values || !doubled)
                return -ENOMEM;
        for (size_t i = 0; i < n_all; i++)
                values[i] = (struct value){.v = i < n ? x[i] : y[i - n], .marked = i < n};
        uint64_t sum;
        bool mirrored, tied = rank_all(values, n_all, doubled, &sum);
        uint64_t u2 = sum - (uint64_t) n * (n + 1); /* twice U */
        struct rank_tail tail;
        if (tied) {
                r = tied_tail(doubled, n_all, n, sum, &mirrored, &tail);
        } else {
                mirrored = u2 > (uint64_t) n * m;
                r = rank_sum_untied(n, m, (mirrored ? 2 * (uint64_t) n * m - u2 : u2) / 2, &tail);
        }
        if (r < 0)
                return r;
        struct rank_test t = {.statistic = (double) u2 / 2, .n_used = n_all};
        put_tails(&tail, mirrored, &t);
        *ret = t;
        return 0;
}

int rank_signed_test(const double *differences, size_t n, struct rank_test *ret) {
        int r = check_side(differences, n);
        if (r < 0)
                return r;
        _cleanup_free_ struct value *values = reallocarray(NULL, n, sizeof(*values));
        _cleanup_free_ uint32_t *doubled = reallocarray(NULL, n, sizeof(*doubled));
        if (!values || !doubled)
                return -ENOMEM;
        size_t used = 0;
        for (size_t i = 0; i < n; i++)
                if (differences[i] != 0)
                        values[used++] = (struct value){.v = fabs(differences[i]), .marked = differences[i] > 0};
        uint64_t sum, all = (uint64_t) used * (used + 1);
        (void) rank_all(values, used, doubled, &sum);
        bool mirrored = 2 * sum > all; /* changing all signs changes one tail into the other */
        struct rank_tail tail;
        r = rank_signed(doubled, used, mirrored ? all - sum : sum, &tail);
        if (r < 0)
                return r;
        struct rank_test t = {.statistic = (double) sum / 2, .n_used = used};
        put_tails(&tail, mirrored, &t);
        *ret = t;
        return 0;
}

/* The interval between the q-th value from below and the q-th from above. */
static struct rank_shift shift_between(double *values, size_t n, uint64_t q, double beyond) {
        order_sort(values, n);
        struct rank_shift shift = {.estimate = order_middle(values, n)};
        if (q > 0) {
                shift.has_interval = true;
                shift.low = values[q - 1];
                shift.high = values[n - q];
                shift.level = 1 - 2 * beyond;
        }
        return shift;
}

int rank_sum_shift(const double *x, size_t n, const double *y, size_t m, double level, struct rank_shift *ret) {
        int r = check_side(x, n);
        if (r == 0)
                r = check_side(y, m);
        if (r == 0 && !(level > 0 && level < 1))
                r = -EINVAL;
        if (r < 0)
                return r;
        _cleanup_free_ double *differences = reallocarray(NULL, n * m, sizeof(*differences));
        if (!differences)
                return -ENOMEM;
        for (size_t i = 0; i < n * m; i++)
                differences[i] = x[i / m] - y[i % m];
        uint64_t q;
        double beyond;
        r = rank_sum_quantile(n, m, (1 - level) / 2, &q, &beyond);
        if (r < 0)
                return r;
        *ret = shift_between(differences, n * m, q, beyond);
        return 0;
}

int rank_signed_shift(const double *differences, size_t n, double level, struct rank_shift *ret) {
        int r = check_side(differences, n);
        if (r == 0 && !(level > 0 && level < 1))
                r = -EINVAL;
        if (r < 0)
                return r;
        size_t n_walsh = n * (n + 1) / 2, k = 0;
        _cleanup_free_ double *walsh = reallocarray(NULL, n_walsh, sizeof(*walsh));
        if (!walsh)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                for (size_t j = i; j < n; j++)
                        walsh[k++] = differences[i] / 2 + differences[j] / 2;
        uint64_t q;
        double beyond;
        r = rank_signed_quantile(n, (1 - level) / 2, &q, &beyond);
        if (r < 0)
                return r;
        *ret = shift_between(walsh, n_walsh, q, beyond);
        return 0;
}

double rank_signed_least_p(size_t n) {
        return fmin(1, 2 * exp2(-(double) n));
}

double rank_sum_least_p(size_t n, size_t m) {
        double p = 2;
        for (size_t i = 1; i <= n; i++)
                p *= (double) i / (double) (m + i);
        return fmin(1, p);
}
