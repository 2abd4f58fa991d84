/* SPDX-License-Identifier: MIT */

/* `until` with "compare": the pairs of rows, their ratios and verdicts. Called by until.c. */

#include "daemon/result/until-internal.h"

#include "daemon/analysis/statistics/rank.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(COMPARISON_PAIRS_MAX == 200, "the reason has the number");

void until_pairs_deinit(struct pairs *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->items[i].values);
        free(p->items);
}

/* The values of both rows in the blocks in which both have one. */
static int pair_up(const struct row *b, const struct row *c, struct pair *ret) {
        size_t least = b->runs < c->runs ? b->runs : c->runs, n = 0;
        double *values = reallocarray(NULL, 2 * least + 1, sizeof(*values));
        if (!values)
                return -ENOMEM;
        for (size_t i = 0, k = 0; i < b->runs && n < RANK_MAX; i++) {
                if (!compare_find_block(c->blocks, sizeof(*c->blocks), c->runs, b->blocks[i], &k))
                        continue;
                ret->no_ratio |= !(b->values[i] > 0 && c->values[k] > 0);
                values[n] = b->values[i];
                values[least + n++] = c->values[k];
        }
        memmove(values + n, values + least, n * sizeof(*values));
        ret->values = values;
        ret->n = n;
        return 0;
}

static int add_pair(struct pairs *p, const struct row *rows, size_t baseline, size_t candidate) {
        if (p->n == p->size) {
                size_t size = p->size ? 2 * p->size : 16;
                struct pair *items = reallocarray(p->items, size, sizeof(*items));
                if (!items)
                        return -ENOMEM;
                p->items = items;
                p->size = size;
        }
        struct pair pair = {.baseline = baseline, .candidate = candidate};
        int r = pair_up(&rows[baseline], &rows[candidate], &pair);
        if (r == 0)
                p->items[p->n++] = pair;
        return r;
}

int until_find_pairs(const struct row *rows, size_t n_rows, const struct spec *spec, struct pairs *ret) {
        _cleanup_free_ struct point *points = calloc(n_rows + 1, sizeof(*points));
        struct pairs p = {0};
        int r = points ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < n_rows; i++)
                if (point_from_json(rows[i].point_json, strlen(rows[i].point_json), &points[i]) < 0)
                        r = -EBADMSG;
        for (struct point_pair pair = {0}; r == 0 && points_next_pair(&spec->until.compare, points, n_rows, &pair);)
                r = add_pair(&p, rows, pair.baseline, pair.candidate);
        if (r == 0 && p.n == 0)
                r = -EBADMSG;
        if (r < 0) {
                until_pairs_deinit(&p);
                return r;
        }
        *ret = p;
        return 0;
}

/* Pairs without a block in common, or without a ratio, stay without an interval. */
static bool has_ratio(const struct pair *p) {
        return p->n > 0 && !p->no_ratio;
}

int until_compare_pairs(const struct spec *spec, uint32_t looks, struct pairs *p) {
        _cleanup_free_ struct compare_row *rows = calloc(p->n + 1, sizeof(*rows));
        _cleanup_free_ struct adaptive_row *known = calloc(p->n + 1, sizeof(*known));
        _cleanup_free_ struct comparison *results = calloc(p->n + 1, sizeof(*results));
        const struct adaptive_watch watch = adaptive_watch_of(&spec->until, looks);
        bool less = figure_terms[watch.figure].faster == FIGURE_LESS_IS_FASTER;
        size_t n = 0;
        if (!rows || !known || !results)
                return -ENOMEM;
        for (size_t i = 0; i < p->n; i++)
                if (has_ratio(&p->items[i]))
                        rows[n++] = (struct compare_row){.baseline = p->items[i].values,
                                                         .candidate = p->items[i].values + p->items[i].n,
                                                         .n_baseline = p->items[i].n,
                                                         .n_candidate = p->items[i].n,
                                                         .paired = true,
                                                         .less_is_faster = less,
                                                         .looks = watch.looks};
        int r = adaptive_compare(rows, n, known, results);
        for (size_t i = 0, k = 0; r == 0 && i < p->n; i++)
                if (has_ratio(&p->items[i])) {
                        p->items[i].known = known[k];
                        p->items[i].comparison = results[k++];
                }
        return r;
}

/* Pairs that are not reached come first, of them those without an interval before the widest. */
static int by_need(const void *a, const void *b) {
        const struct pair *x = a, *y = b;
        if (x->known.decided != y->known.decided)
                return x->known.decided ? 1 : -1;
        if (x->known.has_interval != y->known.has_interval)
                return x->known.has_interval ? 1 : -1;
        double wide = x->known.has_interval ? adaptive_row_width(&x->known) : 0;
        double other = y->known.has_interval ? adaptive_row_width(&y->known) : 0;
        return wide != other ? (wide < other ? 1 : -1) : 0;
}

static const char *why_no_interval(const struct row *rows, const struct pair *p, const struct spec_until *until) {
        if (rows[p->baseline].few_latencies || rows[p->candidate].few_latencies)
                return figure_terms[until_figure(until->figure)].few;
        return p->no_ratio ? "a run's figure is not above 0, and there is no ratio of such"
                           : "fewer than " UTIL_TEXT(INTERVAL_RUNS_MIN) " blocks have the figure of both points, and "
                                                                        "there is no interval";
}

static void put_pair(struct json_writer *w, const struct row *rows, const struct pair *p,
                     const struct spec_until *until, uint32_t blocks) {
        json_object_begin(w);
        json_member_raw(w, "baseline", rows[p->baseline].point_json);
        json_member_raw(w, "candidate", rows[p->candidate].point_json);
        json_member_u64(w, "runs", p->n);
        json_member_double_if(w, "ratio", has_ratio(p), p->comparison.ratio);
        bool beyond = until_put_width(w, &p->known, until->relative_ci, blocks, COMPARISON_PAIRS_MAX);
        if (!p->known.has_interval)
                json_member_string(w, "reason", why_no_interval(rows, p, until));
        else if (beyond)
                json_member_string(w, "reason",
                                   "it would take more than the 200 blocks that take part in a comparison; a quieter "
                                   "machine or a longer window would decide");
        json_object_end(w);
}

static void put_verdicts(struct json_writer *w, const struct pairs *p) {
        static const char *const names[] = {[COMPARE_UNDECIDED] = "undecided",
                                            [COMPARE_FASTER] = "faster",
                                            [COMPARE_SLOWER] = "slower",
                                            [COMPARE_EQUIVALENT] = "equivalent"};
        uint64_t counts[ELEMENTS(names)] = {0};
        for (size_t i = 0; i < p->n; i++)
                counts[p->items[i].comparison.verdict]++;
        json_member_object(w, "verdicts");
        for (size_t i = 0; i < ELEMENTS(names); i++)
                json_member_u64(w, names[i], counts[i]);
        json_object_end(w);
}

void until_put_pairs(struct json_writer *w, const struct spec *spec, const struct row *rows, struct pairs *p,
                     uint32_t blocks) {
        const struct spec_compare *c = &spec->until.compare;
        const struct value *v = &axes[c->axis].value;
        double relative_ci = spec->until.relative_ci;
        size_t n = 0;
        json_member_object(w, "compare");
        json_member_string(w, "axis", v->name);
        json_put_key(w, "baseline");
        if (c->every_pair)
                json_put_null(w);
        else
                v->type->write(v, w, axis_of(&axes[c->axis], &c->baseline));
        json_object_end(w);
        if (!p) {
                json_member_null(w, "pairs");
                json_member_null(w, "pairs_reached");
                json_member_null(w, "verdicts");
                json_member_raw(w, "pairs_not_reached", "[]");
                return;
        }
        qsort(p->items, p->n, sizeof(*p->items), by_need);
        while (n < p->n && !adaptive_row_reached(&p->items[n].known, relative_ci))
                n++;
        json_member_u64(w, "pairs", p->n);
        json_member_u64(w, "pairs_reached", p->n - n);
        put_verdicts(w, p);
        json_member_array(w, "pairs_not_reached");
        for (size_t i = 0; i < n && i < LISTED_MAX; i++)
                put_pair(w, rows, &p->items[i], &spec->until, blocks);
        json_array_end(w);
}
