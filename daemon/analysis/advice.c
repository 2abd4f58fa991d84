/* SPDX-License-Identifier: MIT */

/* The ranking over what several experiments measured; see the header. */

#include "daemon/analysis/advice.h"

#include "daemon/analysis/findings-internal.h"
#include "daemon/analysis/fit.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct advice_term advice_terms[WANT_COUNT] = {
        [WANT_THROUGHPUT] = {"throughput", FIGURE_THROUGHPUT, false, "throughput_above_mb_per_second", 1e6,
                             "throughput", "above", "MB/s"},
        [WANT_LATENCY_P50] = {"latency_p50", FIGURE_LATENCY_P50, true, "latency_p50_below_us", 1e3, "median latency",
                              "p50 below", "us"},
        [WANT_LATENCY_P99] = {"latency_p99", FIGURE_LATENCY_P99, true, "latency_p99_below_us", 1e3,
                              "99th percentile of latency", "p99 below", "us"},
        [WANT_CPU] = {"cpu_per_message", FIGURE_CPU_PER_MESSAGE, true, "cpu_per_message_below_us", 1e3,
                      "CPU time per message", "CPU time below", "us"},
};

const char *const advice_standing_names[STANDING_COUNT] = {
        [STANDING_BEST] = "best", [STANDING_EQUAL] = "equal",       [STANDING_WORSE] = "worse",
        [STANDING_OPEN] = "open", [STANDING_EXCLUDED] = "excluded",
};

/* A mechanism with its settings, at whatever sizes. */
struct candidate {
        const struct advice_row *first; /* names it */
        const struct advice_row *at;    /* that has the size; NULL: interpolated or unknown */
        struct advice_item item;
        bool known;
};

struct work {
        const struct advice_question *q;
        const struct advice_row *rows;
        size_t n_rows;
        struct candidate *candidates;
        size_t n;
};

bool advice_concerns(const struct advice_question *q, const struct point *p) {
        return p->workload == q->workload && p->placement.kind == q->placement && p->threads == q->threads;
}

static bool is_same(const struct advice_row *x, const struct advice_row *y) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct axis *a = &axes[i];
                if (i == AXIS_MESSAGE_SIZE || i == AXIS_PLACEMENT)
                        continue;
                bool has = axis_applies(a, &x->row.point);
                if (has != axis_applies(a, &y->row.point) ||
                    (has && !a->value.type->equal(&a->value, axis_of(a, &x->row.point), axis_of(a, &y->row.point))))
                        return false;
        }
        return strcmp(x->settings, y->settings) == 0;
}

static int list_candidates(struct work *w) {
        w->candidates = calloc(w->n_rows + 1, sizeof(*w->candidates));
        if (!w->candidates)
                return -ENOMEM;
        for (size_t i = 0; i < w->n_rows; i++) {
                size_t k = 0;
                while (k < w->n && !is_same(w->candidates[k].first, &w->rows[i]))
                        k++;
                if (k == w->n)
                        w->candidates[w->n++].first = &w->rows[i];
        }
        return 0;
}

/* ---- the figures of a candidate ---- */

static void take_row(const struct advice_row *row, struct advice_item *item) {
        item->experiment_id = row->experiment_id;
        item->measured_at = row->measured_at;
        item->n_runs += (uint32_t) row->row.n_runs;
        item->noisy |= row->row.noisy;
        item->unsteady |= row->row.unsteady;
}

/* The newest row of the size with runs enough to be compared, else the newest with any. */
static const struct advice_row *find_measured(const struct work *w, const struct candidate *c, enum figure figure) {
        const struct advice_row *found = NULL;
        for (size_t i = 0; i < w->n_rows; i++) {
                const struct advice_row *row = &w->rows[i];
                if (row->row.point.message_size != w->q->message_size || !is_same(row, c->first))
                        continue;
                size_t n = findings_row_values(&row->row, figure, NULL);
                if (n >= FINDINGS_RUNS_LEAST)
                        return row;
                if (n > 0 && !found)
                        found = row;
        }
        return found;
}

static int statistic_of(const struct findings_row *row, enum figure figure, struct statistic *ret) {
        _cleanup_free_ double *values = reallocarray(NULL, row->n_runs + 1, sizeof(*values));
        if (!values)
                return -ENOMEM;
        return order_summarize(values, findings_row_values(row, figure, values), ret);
}

static int measure(const struct work *w, struct candidate *c) {
        enum figure figure = advice_terms[w->q->want].figure;
        struct statistic s;
        c->at = find_measured(w, c, figure);
        if (!c->at)
                return 0;
        int r = statistic_of(&c->at->row, figure, &s);
        if (r < 0)
                return r;
        c->known = true;
        c->item.value = s.median;
        c->item.has_interval = s.has_ci95;
        c->item.low = s.ci95_low;
        c->item.high = s.ci95_high;
        c->item.level = s.level;
        take_row(c->at, &c->item);
        return 0;
}

/* A fit is made of a time that grows with the size. */
static double as_time(enum advice_want want, double value, double size) {
        return want == WANT_THROUGHPUT ? size / value * 1e9 : value;
}

/* The candidate's runs of one experiment, at all sizes; whether these lie on both sides of the requested one. */
static size_t gather(const struct work *w, const struct candidate *c, int64_t experiment_id, struct fit_point *ret,
                     bool *ret_inside) {
        bool below = false, above = false;
        size_t n = 0;
        for (size_t i = 0; i < w->n_rows; i++) {
                const struct advice_row *row = &w->rows[i];
                double size = (double) row->row.point.message_size;
                if (row->experiment_id != experiment_id || !is_same(row, c->first))
                        continue;
                below |= row->row.point.message_size < w->q->message_size;
                above |= row->row.point.message_size > w->q->message_size;
                for (size_t k = 0; k < row->row.n_runs; k++) {
                        double value = row->row.runs[k].values[advice_terms[w->q->want].figure];
                        if (isfinite(value) && value > 0)
                                ret[n++] = (struct fit_point){size, as_time(w->q->want, value, size)};
                }
        }
        *ret_inside = below && above;
        return n;
}

static void predict(const struct work *w, const struct fit *fit, const struct fit_prediction *p,
                    struct advice_item *item) {
        double size = (double) w->q->message_size;
        bool less = advice_terms[w->q->want].less_is_better;
        item->interpolated = item->has_interval = true;
        item->value = as_time(w->q->want, p->value, size);
        item->low = less ? p->low : as_time(w->q->want, p->high, size);
        item->high = less ? p->high : as_time(w->q->want, p->low, size);
        item->level = FIT_PREDICTION_LEVEL;
        item->residual = fit->residual;
        item->left_out_error = fit->left_out_error;
}

/* Interpolates from the newest experiment that has enough sizes around the requested one. */
static int interpolate(const struct work *w, struct candidate *c, struct fit_point *points) {
        for (size_t i = 0; i < w->n_rows; i++) {
                struct fit fit;
                struct fit_prediction p;
                bool inside;
                if (!is_same(&w->rows[i], c->first) ||
                    (i > 0 && w->rows[i - 1].experiment_id == w->rows[i].experiment_id &&
                     is_same(&w->rows[i - 1], c->first)))
                        continue;
                size_t n = gather(w, c, w->rows[i].experiment_id, points, &inside);
                int r = inside && n > 0 ? fit_time(points, n, &fit) : -EINVAL;
                if (r == -ENOMEM)
                        return r;
                if (r < 0 || fit.n_sizes < ADVICE_SIZES_LEAST || !fit.has_left_out ||
                    !fit_predict_median(&fit, (double) w->q->message_size, &p))
                        continue;
                c->known = true;
                predict(w, &fit, &p, &c->item);
                for (size_t k = 0; k < w->n_rows; k++)
                        if (w->rows[k].experiment_id == w->rows[i].experiment_id && is_same(&w->rows[k], c->first))
                                take_row(&w->rows[k], &c->item);
                return 0;
        }
        return 0;
}

/* Returns a limit that is exceeded, or not known to be met. */
static int check_limits(const struct work *w, struct candidate *c) {
        for (enum advice_want want = 0; want < WANT_COUNT; want++) {
                struct statistic s = {0};
                double limit = w->q->limits[want];
                if (isnan(limit))
                        continue;
                int r = c->at ? statistic_of(&c->at->row, advice_terms[want].figure, &s) : 0;
                if (r < 0)
                        return r;
                double value = c->at ? s.median : c->item.value;
                bool known = c->at ? s.n > 0 : want == w->q->want;
                bool met = advice_terms[want].less_is_better ? value <= limit : value >= limit;
                if (known && met)
                        continue;
                c->item.standing = STANDING_EXCLUDED;
                c->item.reason = known ? "limit" : "limit-not-known";
                return 0;
        }
        return 0;
}

static int settle_candidates(struct work *w) {
        size_t total = 0;
        for (size_t i = 0; i < w->n_rows; i++)
                total += w->rows[i].row.n_runs;
        _cleanup_free_ struct fit_point *points = reallocarray(NULL, total + 1, sizeof(*points));
        if (!points)
                return -ENOMEM;
        for (size_t i = 0; i < w->n; i++) {
                struct candidate *c = &w->candidates[i];
                c->item.point = c->first->row.point;
                c->item.point.message_size = w->q->message_size;
                c->item.settings = c->first->settings;
                c->item.standing = STANDING_OPEN;
                int r = measure(w, c);
                if (r == 0 && !c->known)
                        r = interpolate(w, c, points);
                if (r == 0 && c->known)
                        r = check_limits(w, c);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the ranking ---- */

static int best_first(const void *x, const void *y, void *userdata) {
        const struct candidate *a = x, *b = y;
        const struct work *w = userdata;
        bool less = advice_terms[w->q->want].less_is_better;
        bool out = a->item.standing == STANDING_EXCLUDED, other_out = b->item.standing == STANDING_EXCLUDED;
        if (a->known != b->known)
                return a->known ? -1 : 1;
        if (out != other_out)
                return out ? 1 : -1;
        if (a->item.value == b->item.value)
                return a->first < b->first ? -1 : a->first > b->first;
        return (a->item.value < b->item.value) == less ? -1 : 1;
}

/* The newest experiment that has both at the size, with runs enough. */
static bool find_together(const struct work *w, const struct candidate *x, const struct candidate *y,
                          const struct findings_row **ret_x, const struct findings_row **ret_y) {
        enum figure figure = advice_terms[w->q->want].figure;
        for (size_t i = 0; i < w->n_rows; i++) {
                const struct advice_row *a = &w->rows[i];
                if (a->row.point.message_size != w->q->message_size || !is_same(a, x->first) ||
                    findings_row_values(&a->row, figure, NULL) < FINDINGS_RUNS_LEAST)
                        continue;
                for (size_t k = 0; k < w->n_rows; k++) {
                        const struct advice_row *b = &w->rows[k];
                        if (b->experiment_id != a->experiment_id || b->row.point.message_size != w->q->message_size ||
                            !is_same(b, y->first) || findings_row_values(&b->row, figure, NULL) < FINDINGS_RUNS_LEAST)
                                continue;
                        *ret_x = &a->row;
                        *ret_y = &b->row;
                        return true;
                }
        }
        return false;
}

/* Judges a pair, which may not be comparable. */
struct duel {
        size_t x, y;
        const struct findings_row *rows[2];
};

static int compare_duels(const struct work *w, const struct duel *duels, size_t n, struct comparison *ret) {
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        enum figure figure = advice_terms[w->q->want].figure;
        _cleanup_free_ struct compare_row *rows = reallocarray(NULL, n + 1, sizeof(*rows));
        _cleanup_free_ double *values = reallocarray(NULL, n + 1, 2 * RANK_MAX * sizeof(*values));
        if (!rows || !values)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                (void) findings_fill_comparison(duels[i].rows[0], duels[i].rows[1], figure,
                                                advice_terms[w->q->want].less_is_better, values + i * 2 * RANK_MAX,
                                                &rows[i]);
        }
        return compare_rows(rows, n, &rule, ret);
}

static void stand(struct advice_item *item, const struct comparison *c) {
        item->has_ratio = true;
        item->ratio = *c;
        item->standing = c->verdict == COMPARE_SLOWER       ? STANDING_WORSE
                         : c->verdict == COMPARE_EQUIVALENT ? STANDING_EQUAL
                                                            : STANDING_OPEN;
        item->reason = NULL;
        if (item->standing != STANDING_OPEN)
                return;
        item->reason = c->verdict == COMPARE_FASTER ? "experiments-disagree"
                       : c->has_visible             ? "overlap"
                                                    : "too-few-runs";
        item->runs_needed = c->runs_needed;
}

/* All pairs are compared, as which of them is the best follows from the figures. */
static int rank(struct work *w, size_t n) {
        size_t n_duels = 0, leader = 0;
        _cleanup_free_ struct duel *duels = reallocarray(NULL, n * n / 2 + 1, sizeof(*duels));
        _cleanup_free_ struct comparison *results = reallocarray(NULL, n * n / 2 + 1, sizeof(*results));
        if (!duels || !results)
                return -ENOMEM;
        while (leader < n && w->candidates[leader].item.interpolated)
                leader++;
        for (size_t x = 0; x < n; x++)
                for (size_t y = x + 1; y < n; y++) {
                        struct duel *d = &duels[n_duels];
                        *d = (struct duel){.x = x, .y = y};
                        n_duels += find_together(w, &w->candidates[x], &w->candidates[y], &d->rows[0], &d->rows[1]);
                }
        int r = compare_duels(w, duels, n_duels, results);
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct advice_item *item = &w->candidates[i].item;
                item->reason = item->interpolated                   ? "interpolated"
                               : item->n_runs < FINDINGS_RUNS_LEAST ? "too-few-runs"
                                                                    : "not-measured-together";
        }
        for (size_t i = 0; r == 0 && i < n_duels; i++)
                if (duels[i].x == leader)
                        stand(&w->candidates[duels[i].y].item, &results[i]);
        if (r == 0 && leader < n) {
                w->candidates[leader].item.standing = STANDING_BEST;
                w->candidates[leader].item.reason = NULL;
        }
        return r;
}

int advice_draw(const struct advice_question *q, const struct advice_row *rows, size_t n_rows, struct advice *ret) {
        struct work w = {.q = q, .rows = rows, .n_rows = n_rows};
        struct advice a = {0};
        size_t n_known = 0;
        int r = list_candidates(&w);
        for (size_t i = 0; i < n_rows; i++)
                if (rows[i].row.point.message_size == q->message_size) {
                        a.measured = true;
                        a.few |= rows[i].row.few_messages;
                }
        if (r == 0)
                r = settle_candidates(&w);
        if (r == 0) {
                qsort_r(w.candidates, w.n, sizeof(*w.candidates), best_first, &w);
                while (n_known < w.n && w.candidates[n_known].known)
                        n_known++;
                for (size_t i = 0; i < n_known; i++)
                        a.n_excluded += w.candidates[i].item.standing == STANDING_EXCLUDED;
                r = rank(&w, n_known - a.n_excluded);
        }
        a.items = r == 0 ? calloc(n_known + 1, sizeof(*a.items)) : NULL;
        for (size_t i = 0; a.items && i < n_known; i++)
                a.items[a.n++] = w.candidates[i].item;
        free(w.candidates);
        if (r < 0 || !a.items)
                return r < 0 ? r : -ENOMEM;
        *ret = a;
        return 0;
}

void advice_deinit(struct advice *a) {
        free(a->items);
        *a = (struct advice){0};
}
