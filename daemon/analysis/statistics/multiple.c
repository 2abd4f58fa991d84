/* SPDX-License-Identifier: MIT */

/* See multiple.h. Called by compare.c for all rows of an answer. */

#include "daemon/analysis/statistics/multiple.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>

const char *const multiple_names[MULTIPLE_COUNT] = {
        [MULTIPLE_HOLM] = "holm", [MULTIPLE_BENJAMINI_HOCHBERG] = "benjamini-hochberg"};

struct ranked {
        double p;
        size_t at;
        uint32_t looks;
};

static int by_p(const void *a, const void *b) {
        const struct ranked *x = a, *y = b;
        if (x->p != y->p)
                return x->p < y->p ? -1 : 1;
        return (x->at > y->at) - (x->at < y->at);
}

/* Step down: the smallest p meets the strictest limit, and none may look better than one before it. */
static void adjust_holm(const struct ranked *sorted, size_t n, double n_left, double *ret) {
        double worst = 0;
        for (size_t i = 0; i < n; i++) {
                worst = fmax(worst, fmin(1, sorted[i].p * n_left));
                ret[sorted[i].at] = worst;
                n_left -= sorted[i].looks;
        }
}

/* Step up: from the largest p on. */
static void adjust_benjamini_hochberg(const struct ranked *sorted, size_t n, double n_all, double *ret) {
        double best = 1;
        for (size_t i = n; i-- > 0;) {
                best = fmin(best, sorted[i].p * (n_all / (double) (i + 1)));
                ret[sorted[i].at] = best;
        }
}

int multiple_adjust(enum multiple_method method, const double *p, const uint32_t *looks, size_t n, double *ret) {
        double n_all = 0;
        if (n == 0)
                return 0;
        _cleanup_free_ struct ranked *sorted = reallocarray(NULL, n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (!(p[i] >= 0 && p[i] <= 1))
                        return -EINVAL;
                sorted[i] = (struct ranked){.p = p[i], .at = i, .looks = looks ? looks[i] : 1};
                n_all += sorted[i].looks;
        }
        qsort(sorted, n, sizeof(*sorted), by_p);
        if (method == MULTIPLE_HOLM)
                adjust_holm(sorted, n, n_all, ret);
        else
                adjust_benjamini_hochberg(sorted, n, n_all, ret);
        return 0;
}
