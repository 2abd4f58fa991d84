/* SPDX-License-Identifier: MIT */

/* See serial.h. Called for the rows of results, and by what is concluded of them. */

#include "daemon/analysis/statistics/serial.h"

#include "daemon/analysis/statistics/normal.h"
#include "schema/util.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* False: all values are equal. */
static bool correlate(const double *values, size_t n, double *ret) {
        double mean = 0, squares = 0, products = 0;
        bool equal = true;
        for (size_t i = 0; i < n; i++) {
                mean += values[i] / (double) n;
                equal = equal && !(values[i] < values[0] || values[i] > values[0]);
        }
        for (size_t i = 0; i < n; i++) {
                double apart = values[i] - mean;
                squares += apart * apart;
                if (i > 0)
                        products += apart * (values[i - 1] - mean);
        }
        if (equal || !(squares > 0))
                return false;
        *ret = products / squares;
        return true;
}

/* The level of an interval that is `times` as wide as one at this level. */
static double level_of(double level, double times) {
        return fmin(erf(normal_quantile((1 + level) / 2) * times / M_SQRT2), 1 - DBL_EPSILON);
}

/* How many times as wide an interval is as one at the same level of independent values. */
static double times_of(const struct serial *s) {
        return sqrt((1 + s->corrected) / (1 - s->corrected));
}

static int put_interval(const double *sorted, size_t n, struct serial *s) {
        double times = times_of(s);
        bool same = !(s->corrected > 0);
        int r = order_interval(sorted, n, 0.5, same ? ORDER_LEVEL : level_of(ORDER_LEVEL, times), &s->interval);
        if (r == 0 && s->interval.has_interval && !same)
                s->interval.level = level_of(s->interval.level, 1 / times);
        return r;
}

/* All but the interval. */
static void estimate(const double *values, size_t n, struct serial *s) {
        if (n < SERIAL_RUNS_LEAST || !correlate(values, n, &s->correlation))
                return;
        double count = (double) n;
        s->known = true;
        s->corrected = fmin(SERIAL_MAX, fmax(0, (count * s->correlation + 1) / (count - 4)));
        s->effective_runs = count * (1 - s->corrected) / (1 + s->corrected);
        /* of independent values it has the mean -1/n and the variance of about 1/n */
        s->material = s->correlation > -1 / count + normal_quantile(0.95) / sqrt(count);
}

double serial_inflation(const double *values, size_t n) {
        struct serial s = {0};
        estimate(values, n, &s);
        return s.material ? (double) n / s.effective_runs : 1;
}

int serial_judge(const double *values, size_t n, struct serial *ret) {
        for (size_t i = 0; i < n; i++)
                if (!isfinite(values[i]))
                        return -EINVAL;
        struct serial s = {0};
        estimate(values, n, &s);
        if (!s.known) {
                *ret = s;
                return 0;
        }
        _cleanup_free_ double *sorted = reallocarray(NULL, n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        memcpy(sorted, values, n * sizeof(*sorted));
        order_sort(sorted, n);
        int r = put_interval(sorted, n, &s);
        if (r == 0)
                *ret = s;
        return r;
}

int serial_summarize(const double *values, size_t n, struct statistic *ret, struct serial *ret_serial) {
        struct statistic s;
        struct serial serial;
        int r = order_summarize(values, n, &s);
        if (r == 0)
                r = serial_judge(values, n, &serial);
        if (r < 0)
                return r;
        if (serial.known)
                s.widening = serial.material ? times_of(&serial) : 1;
        if (serial.material) {
                s.has_ci95 = serial.interval.has_interval;
                s.ci95_low = serial.interval.low;
                s.ci95_high = serial.interval.high;
                s.level = serial.interval.level;
        }
        *ret = s;
        if (ret_serial)
                *ret_serial = serial;
        return 0;
}
