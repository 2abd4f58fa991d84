/* SPDX-License-Identifier: MIT */

/* Reading a baseline's history; see the header. The checks that it is made of are in checker.c. */

#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

size_t history_bytes(const struct history *h) {
        size_t bytes = sizeof(*h) + h->n_checks * sizeof(*h->checks) + h->n_series * sizeof(*h->series);
        for (size_t i = 0; i < h->n_checks; i++)
                bytes += strlen(h->checks[i].differences_json);
        for (size_t i = 0; i < h->n_series; i++)
                bytes += strlen(h->series[i].record.point_json) + strlen(h->series[i].record.figure) +
                         h->series[i].record.n * sizeof(*h->series[i].record.values);
        return bytes;
}

void history_free(struct history *h) {
        if (!h)
                return;
        for (size_t i = 0; i < h->n_series; i++) {
                free(h->series[i].record.point_json);
                free(h->series[i].record.figure);
                free(h->series[i].record.values);
                free(h->series[i].segments);
        }
        free(h->series);
        check_records_free(h->checks, h->n_checks);
        baseline_record_deinit(&h->baseline);
        free(h);
}

UTIL_FREEP(history, history_free)

/* As segments.h judges counts, on the logarithms of ratios. Where all are the same there is no noise, and no change. */
static int find_changes(struct history_series *s, size_t n_series) {
        size_t n = s->record.n;
        struct segments_noise noise;
        if (n < HISTORY_VALUES_MIN)
                return 0;
        _cleanup_free_ double *logs = reallocarray(NULL, n, sizeof(*logs));
        _cleanup_free_ struct segment *segments = reallocarray(NULL, n / HISTORY_LEAST, sizeof(*segments));
        if (!logs || !segments)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                logs[i] = log(s->record.values[i].ratio);
        size_t n_segments = 0;
        int r = segments_noise(logs, n, &noise);
        if (r == 0)
                r = segments_find(logs, n, HISTORY_LEAST, segments_penalty(n, n_series, fmax(noise.long_run, 1e-12)),
                                  segments, &n_segments);
        if (r < 0)
                return r;
        s->segments = util_steal(&segments);
        s->n_segments = n_segments;
        return 0;
}

static int take_series(struct history *h, struct series_record *series, size_t n) {
        h->series = calloc(n ? n : 1, sizeof(*h->series));
        if (!h->series)
                return -ENOMEM;
        int r = 0;
        for (size_t i = 0; r == 0 && i < n; i++) {
                h->series[h->n_series].record = series[i];
                series[i] = (struct series_record){0};
                r = find_changes(&h->series[h->n_series++], n);
        }
        return r;
}

int service_history(struct service *s, const char *name, uint32_t limit, struct history **ret, struct refusal *r) {
        struct series_record *series = NULL;
        size_t n_series = 0;
        _cleanup_(history_freep) struct history *h = calloc(1, sizeof(*h));
        if (!h)
                return service_fail(s, r, -ENOMEM, "the history", 0);
        int error = service_baseline(s, name, &h->baseline, r);
        if (error < 0)
                return error;
        error = SERVICE_READ(s, r, "reading the history", 0,
                             store_history(store, name, limit, &h->checks, &h->n_checks, &series, &n_series));
        if (error < 0)
                return error;
        error = take_series(h, series, n_series);
        series_records_free(series, n_series);
        if (error < 0)
                return service_fail(s, r, error, "reading the history", 0);
        *ret = util_steal(&h);
        return 0;
}
