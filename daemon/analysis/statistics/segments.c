/* SPDX-License-Identifier: MIT */

/* See segments.h. */

#include "daemon/analysis/statistics/segments.h"
#include "daemon/analysis/statistics/order.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define NOISE_FROM 8u
#define JUMP 4.0                            /* standard deviations of the steps: a change of the mean, not noise */
#define MEDIAN_OF_NORMAL 0.6744897501960817 /* of the absolute value of a standard normal one */
#define CORRELATION_LIMIT 0.99
#define NOISE_FLOOR 1e-3 /* of the mean: changes among values that hardly scatter are ignored */

static int check_values(const double *values, size_t n, double least) {
        for (size_t i = 0; i < n; i++)
                if (!isfinite(values[i]) || values[i] < least)
                        return -EINVAL;
        return 0;
}

/* Mean square of the differences of values `lag` apart, without those across a jump of more than `limit`. */
static double square_of_differences(const double *values, size_t n, size_t lag, double limit) {
        double sum = 0;
        size_t count = 0;
        for (size_t i = lag; i < n; i++) {
                bool jumps = false;
                for (size_t k = i - lag; k < i; k++)
                        jumps |= fabs(values[k + 1] - values[k]) > limit;
                if (jumps)
                        continue;
                sum += (values[i] - values[i - lag]) * (values[i] - values[i - lag]);
                count++;
        }
        return count > 0 ? sum / (double) count : 0;
}

int segments_noise(const double *values, size_t n, struct segments_noise *ret) {
        if (n < NOISE_FROM || check_values(values, n, -INFINITY) < 0)
                return -EINVAL;
        _cleanup_free_ double *steps = reallocarray(NULL, n, sizeof(*steps));
        if (!steps)
                return -ENOMEM;
        size_t n_steps = 0; /* other than 0, as small counts have many of these */
        for (size_t i = 1; i < n; i++)
                if (values[i] != values[i - 1])
                        steps[n_steps++] = fabs(values[i] - values[i - 1]);
        order_sort(steps, n_steps);
        double limit = 0; /* of so few that they are changes of level, as quantized medians have */
        if (n_steps * 2 * SEGMENTS_LEAST >= n)
                limit = JUMP * order_middle(steps, n_steps) / MEDIAN_OF_NORMAL;
        /* 2 v (1 - c) and 2 v (1 - c²) of variance v and correlation c */
        double next = square_of_differences(values, n, 1, limit);
        double second = square_of_differences(values, n, 2, limit);
        double correlation = next > 0 ? fmin(CORRELATION_LIMIT, fmax(0, second / next - 1)) : 0;
        double variance = next / 2 / (1 - correlation);
        *ret = (struct segments_noise){
                .variance = variance,
                .correlation = correlation,
                .long_run = variance * (1 + correlation) / (1 - correlation),
        };
        return 0;
}

struct search {
        size_t n, least;
        double penalty;
        double *sums, *squares; /* of the first values, which are taken about their mean: n + 1 each */
        double *best;           /* cost of the first values: n + 1 */
        size_t *from;           /* begin of the last segment of the first values: n + 1 */
        size_t *starts;         /* that a best last segment may yet have */
        size_t *dropped_at;     /* the length at which a start was beaten; SIZE_MAX: not yet: n + 1 */
        size_t n_starts;
};

static void search_deinit(struct search *s) {
        free(s->sums);
        free(s->squares);
        free(s->best);
        free(s->from);
        free(s->starts);
        free(s->dropped_at);
}

static int search_init(struct search *s, const double *values) {
        s->sums = calloc(s->n + 1, sizeof(*s->sums));
        s->squares = calloc(s->n + 1, sizeof(*s->squares));
        s->best = calloc(s->n + 1, sizeof(*s->best));
        s->from = calloc(s->n + 1, sizeof(*s->from));
        s->starts = calloc(s->n + 1, sizeof(*s->starts));
        s->dropped_at = calloc(s->n + 1, sizeof(*s->dropped_at));
        if (!s->sums || !s->squares || !s->best || !s->from || !s->starts || !s->dropped_at)
                return -ENOMEM; /* the caller frees */
        double mean = 0;
        for (size_t i = 0; i < s->n; i++)
                mean += values[i] / (double) s->n;
        for (size_t i = 0; i < s->n; i++) {
                double apart = values[i] - mean;
                s->sums[i + 1] = s->sums[i] + apart;
                s->squares[i + 1] = s->squares[i] + apart * apart;
        }
        return 0;
}

static double cost_of(const struct search *s, size_t begin, size_t end) {
        double sum = s->sums[end] - s->sums[begin];
        return fmax(0, s->squares[end] - s->squares[begin] - sum * sum / (double) (end - begin));
}

/* The best last segment of the first `end` values. A start that another beats even without the price of a change stays
 * beaten, but only once that other, which begins where this one ends, is long enough. */
static void extend(struct search *s, size_t end) {
        if (end >= 2 * s->least || end == s->least) {
                size_t start = end - s->least; /* no earlier one ends there, so it is at least `least`, or 0 */
                s->starts[s->n_starts++] = start;
                s->dropped_at[start] = SIZE_MAX;
        }
        s->best[end] = INFINITY;
        for (size_t i = 0; i < s->n_starts; i++) {
                size_t start = s->starts[i];
                double cost = s->best[start] + cost_of(s, start, end) + (start > 0 ? s->penalty : 0);
                if (cost < s->best[end]) {
                        s->best[end] = cost;
                        s->from[end] = start;
                }
        }
        size_t left = 0;
        for (size_t i = 0; i < s->n_starts; i++) {
                size_t start = s->starts[i];
                double cost = s->best[start] + cost_of(s, start, end) + (start > 0 ? s->penalty : 0);
                if (s->dropped_at[start] == SIZE_MAX && cost > s->best[end] + s->penalty)
                        s->dropped_at[start] = end;
                if (s->dropped_at[start] == SIZE_MAX || end < s->dropped_at[start] + s->least - 1)
                        s->starts[left++] = start;
        }
        s->n_starts = left;
}

double segments_penalty(size_t n, size_t n_series, double long_run) {
        return SEGMENTS_PENALTY * log((double) n * (double) n_series) * long_run;
}

int segments_find(const double *values, size_t n, size_t least, double penalty, struct segment *ret, size_t *ret_n) {
        if (least == 0 || n < least || !(penalty >= 0) || check_values(values, n, -INFINITY) < 0)
                return -EINVAL;
        _cleanup_(search_deinit) struct search s = {.n = n, .least = least, .penalty = penalty};
        int r = search_init(&s, values);
        if (r < 0)
                return r;
        for (size_t end = least; end <= n; end++)
                extend(&s, end);
        size_t n_segments = 0, at;
        for (size_t end = n; end > 0; end = s.from[end])
                n_segments++;
        at = n_segments;
        for (size_t end = n; end > 0; end = s.from[end]) {
                size_t begin = s.from[end];
                double mean = 0;
                for (size_t i = begin; i < end; i++)
                        mean += values[i] / (double) (end - begin);
                ret[--at] = (struct segment){.begin = begin, .end = end, .mean = mean};
        }
        *ret_n = n_segments;
        return 0;
}

static bool alike(double a, double b, double tolerance) {
        return fabs(a - b) <= tolerance * fmax(a, b);
}

static void classify(struct segments *s, size_t n_values, enum segments_of of, double tolerance) {
        const struct segment *last = &s->list[s->n - 1];
        size_t first = s->n - 1, slower = 0, faster = 0;
        while (first > 0 && alike(s->list[first - 1].mean, last->mean, tolerance))
                first--;
        for (size_t i = 0; i < first; i++) {
                if (alike(s->list[i].mean, last->mean, tolerance))
                        continue;
                bool is_slower = (s->list[i].mean < last->mean) == (of == SEGMENTS_OF_COUNTS);
                slower += is_slower;
                faster += !is_slower;
        }
        size_t from = s->list[first].begin;
        s->class = first == 0                                            ? SEGMENTS_FLAT
                   : (n_values - from) * SEGMENTS_STEADY_PART < n_values ? SEGMENTS_UNSTEADY
                   : slower == first                                     ? SEGMENTS_WARM_UP
                   : faster == first                                     ? SEGMENTS_SLOW_DOWN
                                                                         : SEGMENTS_UNSTEADY;
        s->steady_from = s->class == SEGMENTS_UNSTEADY ? 0 : from;
}

/* Means of `bin` neighbours each, and of up to twice as many at the end. */
static void put_together(const double *values, size_t n, size_t bin, double *ret, size_t n_bins) {
        for (size_t i = 0; i < n_bins; i++) {
                size_t begin = i * bin, end = i + 1 < n_bins ? begin + bin : n;
                ret[i] = 0;
                for (size_t k = begin; k < end; k++)
                        ret[i] += values[k] / (double) (end - begin);
        }
}

/* Runs of that kind that are shorter than a segment become of the other one. */
static void drop_short_runs(bool *standing, size_t n, bool kind) {
        for (size_t begin = 0, end; begin < n; begin = end) {
                for (end = begin; end < n && standing[end] == standing[begin]; end++)
                        ;
                if (standing[begin] == kind && end - begin < SEGMENTS_LEAST)
                        memset(standing + begin, !kind, end - begin);
        }
}

/* Marks as standing the values that lie below the threshold for long enough; returns how many others are left. */
static size_t mark_standstills(const double *values, size_t n, double threshold, bool *standing) {
        for (size_t i = 0; i < n; i++)
                standing[i] = values[i] < threshold;
        drop_short_runs(standing, n, true);
        drop_short_runs(standing, n, false);
        size_t moving = 0;
        for (size_t i = 0; i < n; i++)
                moving += !standing[i];
        return moving;
}

struct judging {
        const double *values;
        size_t n;
        bool *standing;
        size_t n_moving;
};

static double penalty_of(const struct judging *j, const struct segments_noise *noise) {
        double mean = 0;
        for (size_t i = 0; i < j->n; i++)
                mean += j->standing[i] ? 0 : j->values[i] / (double) j->n_moving;
        double floor = NOISE_FLOOR * mean;
        return segments_penalty(j->n, 1, fmax(noise->long_run, floor * floor));
}

static int find_noise(const struct judging *j, struct segments_noise *ret) {
        if (j->n_moving < NOISE_FROM)
                return 0;
        _cleanup_free_ double *moving = reallocarray(NULL, j->n_moving, sizeof(*moving));
        if (!moving)
                return -ENOMEM;
        size_t n = 0;
        for (size_t i = 0; i < j->n; i++)
                if (!j->standing[i])
                        moving[n++] = j->values[i];
        return segments_noise(moving, n, ret);
}

/* Each standstill is a segment; between them they are searched for. */
static int find_all(const struct judging *j, struct segments *ret) {
        double penalty = penalty_of(j, &ret->noise);
        ret->n = 0;
        for (size_t begin = 0, end; begin < j->n; begin = end) {
                for (end = begin; end < j->n && j->standing[end] == j->standing[begin]; end++)
                        ;
                size_t found;
                int r = segments_find(j->values + begin, end - begin, SEGMENTS_LEAST,
                                      j->standing[begin] ? INFINITY : penalty, ret->list + ret->n, &found);
                if (r < 0)
                        return r;
                for (size_t i = ret->n; i < ret->n + found; i++) {
                        ret->list[i].begin += begin;
                        ret->list[i].end += begin;
                }
                ret->n += found;
        }
        return 0;
}

static int median_of(const double *values, size_t n, double *ret) {
        _cleanup_free_ double *sorted = reallocarray(NULL, n, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        memcpy(sorted, values, n * sizeof(*sorted));
        order_sort(sorted, n);
        *ret = order_middle(sorted, n);
        return 0;
}

int segments_judge(const double *values, size_t n, enum segments_of of, double tolerance, struct segments *ret) {
        if (check_values(values, n, 0) < 0)
                return -EINVAL;
        *ret = (struct segments){.class = SEGMENTS_UNKNOWN, .reason = SEGMENTS_TOO_SHORT};
        if (n < SEGMENTS_VALUES_MIN)
                return 0;
        size_t bin = (n + SEGMENTS_VALUES_MAX - 1) / SEGMENTS_VALUES_MAX, n_bins = n / bin;
        _cleanup_free_ double *bins = reallocarray(NULL, n_bins, sizeof(*bins));
        _cleanup_free_ bool *standing = calloc(n_bins, sizeof(*standing));
        if (!bins || !standing)
                return -ENOMEM;
        put_together(values, n, bin, bins, n_bins);
        double median;
        int r = median_of(bins, n_bins, &median);
        if (r < 0)
                return r;
        struct judging j = {.values = bins, .n = n_bins, .standing = standing};
        j.n_moving = mark_standstills(bins, n_bins, SEGMENTS_STANDSTILL * median, standing);
        r = find_noise(&j, &ret->noise);
        if (r == 0)
                r = find_all(&j, ret);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ret->n; i++) {
                ret->list[i].begin *= bin;
                ret->list[i].end = i + 1 < ret->n ? ret->list[i].end * bin : n;
        }
        ret->reason = SEGMENTS_KNOWN;
        if (ret->noise.correlation > SEGMENTS_CORRELATION_MAX && j.n_moving == n_bins)
                ret->reason = SEGMENTS_CORRELATED;
        else
                classify(ret, n, of, tolerance);
        return 0;
}
