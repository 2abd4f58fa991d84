/* SPDX-License-Identifier: MIT */

/* The ranking over what several experiments measured; see the header. */

#include "daemon/analysis/advice.h"

#include "daemon/analysis/findings/findings-internal.h"
#include "daemon/analysis/statistics/fit.h"
#include "daemon/analysis/statistics/serial.h"
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

const char *const advice_reason_names[REASON_COUNT] = {
        [REASON_OVERLAP] = "overlap",
        [REASON_TOO_FEW_RUNS] = "too-few-runs",
        [REASON_NOT_TOGETHER] = "not-measured-together",
        [REASON_INTERPOLATED] = "interpolated",
        [REASON_DISAGREE] = "experiments-disagree",
        [REASON_LIMIT_UNDECIDED] = "limit-undecided",
        [REASON_LIMIT] = "limit",
        [REASON_LIMIT_NOT_KNOWN] = "limit-not-known",
};

/* How a mechanism stands to the limits: the greatest of all counts. */
enum keeping { LIMITS_KEPT, LIMITS_UNDECIDED, LIMITS_NOT_KNOWN, LIMITS_EXCEEDED };

/* A mechanism with its settings, at whatever sizes. */
struct candidate {
        const struct advice_row *first; /* names it */
        const struct advice_row *at;    /* that has the size; NULL: interpolated or unknown */
        struct advice_item item;
        enum keeping keeping;
        bool known;
        bool few; /* too few runs to be compared */
};

struct work {
        const struct advice_question *q;
        const struct advice_row *rows;
        size_t n_rows;
        struct candidate *candidates;
        size_t n;
};

bool advice_concerns(const struct advice_question *q, const struct point *p) {
        return p->workload == q->workload && p->placement.kind == q->placement && p->threads == q->threads &&
               point_streams(p) == (q->both_ways ? 2 : 1);
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
        item->noisy |= row->row.flags.noisy;
        item->unsteady |= row->row.flags.unsteady;
        item->unobserved |= row->row.flags.unobserved;
        item->changed |= row->row.flags.changed;
        if (row->row.n_added > item->n_added)
                item->n_added = row->row.n_added;
        for (size_t i = 0; i < DISPUTED_COUNT; i++)
                item->n_disputed[i] += row->row.flags.n_disputed[i];
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

static int measure(const struct work *w, struct candidate *c) {
        enum figure figure = advice_terms[w->q->want].figure;
        struct statistic s;
        struct serial serial;
        c->at = find_measured(w, c, figure);
        if (!c->at)
                return 0;
        int r = findings_row_statistic(&c->at->row, figure, &s, &serial);
        if (r < 0)
                return r;
        c->known = true;
        c->few = s.n < FINDINGS_RUNS_LEAST;
        c->item.value = s.median;
        c->item.has_interval = s.has_ci95;
        c->item.low = s.ci95_low;
        c->item.high = s.ci95_high;
        c->item.level = s.level;
        c->item.alike = serial.material;
        c->item.in_force = c->at->row.in_force;
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
                if (row->experiment_id != experiment_id || !is_same(row, c->first) ||
                    !findings_row_has_ratios(&row->row, advice_terms[w->q->want].figure))
                        continue;
                below |= row->row.point.message_size < w->q->message_size;
                above |= row->row.point.message_size > w->q->message_size;
                for (size_t k = 0; k < row->row.n_runs; k++) {
                        double value = row->row.runs[k].values[advice_terms[w->q->want].figure];
                        if (isfinite(value))
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

/* Where the median of a figure lies: its interval; of fewer runs than one takes, their range; as interpolated. */
static int find_bounds(const struct work *w, const struct candidate *c, enum advice_want want, struct statistic *ret) {
        int r = 0;
        *ret = (struct statistic){0};
        if (c->at)
                r = findings_row_statistic(&c->at->row, advice_terms[want].figure, ret, NULL);
        else if (want == w->q->want)
                *ret = (struct statistic){.n = 1, .min = c->item.low, .max = c->item.high};
        if (r == 0 && !ret->has_ci95) {
                ret->ci95_low = ret->min;
                ret->ci95_high = ret->max;
        }
        return r;
}

static enum keeping keeping_of(const struct statistic *bounds, double limit, bool less_is_better) {
        double low = bounds->ci95_low, high = bounds->ci95_high;
        if (bounds->n == 0)
                return LIMITS_NOT_KNOWN;
        if (less_is_better ? high < limit : low > limit)
                return LIMITS_KEPT;
        return (less_is_better ? low < limit : high > limit) ? LIMITS_UNDECIDED : LIMITS_EXCEEDED;
}

/* How many runs take a limit out of the interval, whose ends approach the median with the root of the runs. 0: not
 * known. */
static uint32_t runs_to_tell(const struct statistic *s, double limit) {
        double times = limit > s->median ? (s->ci95_high - s->median) / (limit - s->median)
                                         : (s->median - s->ci95_low) / (s->median - limit);
        double n = ceil((double) s->n * times * times);
        if (!s->has_ci95)
                return 0;
        return n < COMPARE_RUNS_MAX ? (uint32_t) fmax(n, s->n + 1) : COMPARE_RUNS_MAX;
}

static int check_limits(const struct work *w, struct candidate *c) {
        uint32_t needed = 0;
        for (enum advice_want want = 0; want < WANT_COUNT; want++) {
                struct statistic bounds;
                double limit = w->q->limits[want];
                if (isnan(limit))
                        continue;
                int r = find_bounds(w, c, want, &bounds);
                if (r < 0)
                        return r;
                enum keeping keeping = keeping_of(&bounds, limit, advice_terms[want].less_is_better);
                uint32_t more = keeping == LIMITS_UNDECIDED ? runs_to_tell(&bounds, limit) : 0;
                needed = more > needed ? more : needed;
                c->keeping = keeping > c->keeping ? keeping : c->keeping;
        }
        if (c->keeping == LIMITS_UNDECIDED) {
                c->item.out_of_reach = needed > SPEC_REPETITIONS_MAX;
                c->item.runs_needed = c->item.out_of_reach ? 0 : needed;
        }
        if (c->keeping < LIMITS_NOT_KNOWN)
                return 0;
        c->item.standing = STANDING_EXCLUDED;
        c->item.reason = c->keeping == LIMITS_EXCEEDED ? REASON_LIMIT : REASON_LIMIT_NOT_KNOWN;
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

struct duel {
        size_t x, y;
        const struct findings_row *rows[2];
};

/* Pairs of candidates that one experiment has, and of each the later one's figure over that of the earlier. */
struct duels {
        struct duel *items;
        struct comparison *results;
        size_t n;
        bool cut; /* as of struct advice */
};

static void duels_deinit(struct duels *d) {
        free(d->items);
        free(d->results);
}

static bool is_cut(const struct duel *d, const struct compare_row *row, enum figure figure) {
        bool cut = false;
        for (size_t i = 0; i < ELEMENTS(d->rows) && !row->paired; i++)
                cut |= findings_row_values(d->rows[i], figure, NULL) > COMPARISON_RUNS_MAX;
        return cut;
}

static int compare_duels(const struct work *w, struct duels *d) {
        const struct compare_rule rule = {.margin = COMPARE_MARGIN, .correction = MULTIPLE_HOLM};
        enum figure figure = advice_terms[w->q->want].figure;
        _cleanup_free_ struct compare_row *rows = reallocarray(NULL, d->n + 1, sizeof(*rows));
        _cleanup_free_ double *values = reallocarray(NULL, d->n + 1, 2 * RANK_MAX * sizeof(*values));
        if (!rows || !values)
                return -ENOMEM;
        for (size_t i = 0; i < d->n; i++) {
                (void) findings_fill_comparison(d->items[i].rows[0], d->items[i].rows[1], figure,
                                                advice_terms[w->q->want].less_is_better, values + i * 2 * RANK_MAX,
                                                &rows[i]);
                d->cut |= is_cut(&d->items[i], &rows[i], figure);
        }
        return compare_rows(rows, d->n, &rule, d->results);
}

/* All pairs of the first n are compared, as which of them leads follows from the figures. */
static int make_duels(const struct work *w, size_t n, struct duels *d) {
        d->items = reallocarray(NULL, n * n / 2 + 1, sizeof(*d->items));
        d->results = reallocarray(NULL, n * n / 2 + 1, sizeof(*d->results));
        if (!d->items || !d->results)
                return -ENOMEM; /* the caller frees */
        for (size_t x = 0; x < n; x++)
                for (size_t y = x + 1; y < n; y++) {
                        struct duel *p = &d->items[d->n];
                        *p = (struct duel){.x = x, .y = y};
                        d->n += find_together(w, &w->candidates[x], &w->candidates[y], &p->rows[0], &p->rows[1]);
                }
        return compare_duels(w, d);
}

/* Whether a duel is this candidate's; *ret is the other one's figure over its own then. */
static bool duel_of(const struct duels *d, size_t i, size_t candidate, size_t *ret_other, struct comparison *ret) {
        const struct duel *p = &d->items[i];
        if (p->x != candidate && p->y != candidate)
                return false;
        *ret_other = p->x == candidate ? p->y : p->x;
        *ret = p->x == candidate ? d->results[i] : compare_turned(&d->results[i]);
        return true;
}

static bool may_lead(const struct candidate *c) {
        return !c->item.interpolated && c->keeping == LIMITS_KEPT;
}

/* The first of those that beat the candidate and may lead; n: none. */
static size_t find_winner(const struct work *w, const struct duels *d, size_t n, size_t candidate) {
        size_t winner = n, other;
        struct comparison c;
        for (size_t i = 0; i < d->n; i++)
                if (duel_of(d, i, candidate, &other, &c) && c.verdict == COMPARE_FASTER && other < winner &&
                    may_lead(&w->candidates[other]))
                        winner = other;
        return winner;
}

/* The first of those that may lead, that nobody beats, and that are ahead of the candidate by the runs of one sitting,
 * which is no certain difference; n: none. Medians alone have in them what the machine did between the runs. */
static size_t find_ahead(const struct work *w, const struct duels *d, size_t n, size_t candidate) {
        bool less = advice_terms[w->q->want].less_is_better;
        size_t ahead = n, other;
        struct comparison c;
        for (size_t i = 0; i < d->n; i++)
                if (duel_of(d, i, candidate, &other, &c) && c.verdict != COMPARE_SLOWER &&
                    (less ? c.ratio < 1 : c.ratio > 1) && other < ahead && may_lead(&w->candidates[other]) &&
                    find_winner(w, d, n, other) == n)
                        ahead = other;
        return ahead;
}

/* n: none of the first n may. */
static size_t find_leader(const struct work *w, const struct duels *d, size_t n) {
        size_t (*const steps[])(const struct work *, const struct duels *, size_t, size_t) = {find_winner, find_ahead};
        size_t leader = n;
        for (size_t i = 0; i < n; i++) {
                const struct candidate *c = &w->candidates[i];
                if (may_lead(c) && (leader == n || (w->candidates[leader].few && !c->few)))
                        leader = i;
        }
        for (size_t i = 0; leader < n && i < ELEMENTS(steps); i++)
                for (size_t step = 0; step < n; step++) {
                        size_t next = steps[i](w, d, n, leader);
                        if (next == n)
                                break;
                        leader = next;
                }
        return leader;
}

/* A candidate's standing follows from its comparison with the leader. One that may exceed a limit can be worse all the
 * same, but nothing better. */
static void stand(struct candidate *candidate, const struct comparison *c) {
        struct advice_item *item = &candidate->item;
        item->has_ratio = true;
        item->ratio = *c;
        if (c->verdict != COMPARE_SLOWER && candidate->keeping == LIMITS_UNDECIDED)
                return;
        item->standing = c->verdict == COMPARE_SLOWER       ? STANDING_WORSE
                         : c->verdict == COMPARE_EQUIVALENT ? STANDING_EQUAL
                                                            : STANDING_OPEN;
        item->reason = item->standing != STANDING_OPEN ? REASON_NONE
                       : c->verdict == COMPARE_FASTER  ? REASON_DISAGREE
                       : c->has_visible                ? REASON_OVERLAP
                                                       : REASON_TOO_FEW_RUNS;
        item->out_of_reach = item->standing == STANDING_OPEN && c->out_of_reach;
        item->runs_needed = item->standing == STANDING_OPEN && !c->out_of_reach ? c->runs_needed : 0;
}

static void stand_first(struct candidate *leader, bool beaten) {
        leader->item.leads = true;
        leader->item.reason = leader->few ? REASON_TOO_FEW_RUNS : beaten ? REASON_DISAGREE : REASON_NONE;
        leader->item.standing = leader->item.reason == REASON_NONE ? STANDING_BEST : STANDING_OPEN;
}

/* The first n candidates are those that no limit excludes. Puts the leader before the others. */
static int rank(struct work *w, size_t n, struct advice *ret) {
        _cleanup_(duels_deinit) struct duels duels = {0};
        int r = make_duels(w, n, &duels);
        if (r < 0)
                return r;
        ret->cut = duels.cut;
        for (size_t i = 0; i < n; i++) {
                struct candidate *c = &w->candidates[i];
                c->item.reason = c->item.interpolated             ? REASON_INTERPOLATED
                                 : c->keeping == LIMITS_UNDECIDED ? REASON_LIMIT_UNDECIDED
                                 : c->few                         ? REASON_TOO_FEW_RUNS
                                                                  : REASON_NOT_TOGETHER;
        }
        size_t leader = find_leader(w, &duels, n), other;
        struct comparison c;
        if (leader == n)
                return 0;
        for (size_t i = 0; i < duels.n; i++)
                if (duel_of(&duels, i, leader, &other, &c))
                        stand(&w->candidates[other], &c);
        stand_first(&w->candidates[leader], find_winner(w, &duels, n, leader) < n);
        struct candidate first = w->candidates[leader];
        memmove(&w->candidates[1], &w->candidates[0], leader * sizeof(first));
        w->candidates[0] = first;
        return 0;
}

/* Counts the better ones of the first n, by their own figures, or by those of other sizes; one that may exceed a limit
 * does not count. */
static size_t count_better(const struct work *w, size_t n, bool fitted) {
        bool less = advice_terms[w->q->want].less_is_better;
        size_t n_better = 0;
        for (size_t i = 1; i < n && w->candidates[0].item.leads; i++) {
                double value = w->candidates[i].item.value, best = w->candidates[0].item.value;
                n_better += w->candidates[i].keeping == LIMITS_KEPT && w->candidates[i].item.interpolated == fitted &&
                            (less ? value < best : value > best);
        }
        return n_better;
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
                        a.n_without_ratios += !findings_row_has_ratios(&rows[i].row, advice_terms[q->want].figure);
                }
        if (r == 0)
                r = settle_candidates(&w);
        if (r == 0) {
                qsort_r(w.candidates, w.n, sizeof(*w.candidates), best_first, &w);
                while (n_known < w.n && w.candidates[n_known].known)
                        n_known++;
                for (size_t i = 0; i < n_known; i++)
                        a.n_excluded += w.candidates[i].item.standing == STANDING_EXCLUDED;
                r = rank(&w, n_known - a.n_excluded, &a);
                a.n_better = count_better(&w, n_known - a.n_excluded, false);
                a.n_better_fitted = count_better(&w, n_known - a.n_excluded, true);
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
