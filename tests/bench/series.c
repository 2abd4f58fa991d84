/* SPDX-License-Identifier: MIT */

/* See series.h. Medians and their intervals are those of daemon/analysis. */

#include "tests/bench/series.h"

#include "daemon/analysis/statistics/order.h"

#include <math.h>
#include <string.h>

double series_median(const struct series *s) {
        double values[SERIES_MAX];
        memcpy(values, s->values, s->n * sizeof values[0]);
        order_sort(values, s->n);
        return order_middle(values, s->n);
}

double series_min(const struct series *s) {
        double v = s->values[0];
        for (unsigned i = 1; i < s->n; i++)
                v = s->values[i] < v ? s->values[i] : v;
        return v;
}

double series_max(const struct series *s) {
        double v = s->values[0];
        for (unsigned i = 1; i < s->n; i++)
                v = s->values[i] > v ? s->values[i] : v;
        return v;
}

static double ratio_of(double of, double to) {
        return to > 0 ? of / to : of > 0 ? INFINITY : 1; /* neither has moved anything: alike */
}

struct ratio series_ratio(const struct series *of, const struct series *to) {
        double ratios[SERIES_MAX];
        for (unsigned i = 0; i < of->n; i++)
                ratios[i] = ratio_of(of->values[i], to->values[i]);
        order_sort(ratios, of->n);
        struct ratio r = {.value = order_middle(ratios, of->n)};
        struct order_interval interval;
        if (order_interval(ratios, of->n, 0.5, ORDER_LEVEL, &interval) < 0 || !interval.has_interval)
                return r;
        r.has_interval = true;
        r.low = interval.low;
        r.high = interval.high;
        return r;
}

enum verdict ratio_verdict(const struct ratio *r, double limit) {
        if (r->has_interval && r->low >= limit)
                return VERDICT_REACHED;
        if (r->has_interval && r->high < limit)
                return VERDICT_BELOW;
        return r->value >= limit ? VERDICT_HOLDS : VERDICT_MISSES;
}

bool ratio_settled(const struct ratio *r, double half_width) {
        return r->has_interval && r->high - r->low <= 2 * half_width;
}
