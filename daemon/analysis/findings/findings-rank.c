/* SPDX-License-Identifier: MIT */

/* Rankings of an axis' values, and the cost or gain of a value beside the usual one. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NAMED_MAX 12u /* values that a sentence names */

/* Axes with a usual value: the findings give the cost of the others beside it. */
static bool has_usual(enum axis_name axis) {
        return axis == AXIS_PLACEMENT || axis == AXIS_COPY_MODE || axis == AXIS_ENGINE || axis == AXIS_WAIT;
}

/* The usual value; for placements two cores of a node. -1: the group has none. */
static ssize_t find_usual(const struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        const struct axis *x = &axes[axis];
        for (size_t i = 0; i < n; i++)
                if (axis == AXIS_PLACEMENT && a->in->rows[rows[i]].point.placement.kind == PLACEMENT_SAME_NODE)
                        return (ssize_t) i;
        for (size_t i = 0; i < n; i++)
                if (x->value.type->equal(&x->value, axis_of(x, &a->in->rows[rows[i]].point), x->value.standard))
                        return (ssize_t) i;
        return -1;
}

/* Whether the axis of this row has a usual value beside which the row's value has a cost. Placements by hand have none;
 * for every other axis they are placements like any. */
static bool has_cost(const struct answer *a, enum axis_name axis, uint32_t row) {
        return axis != AXIS_PLACEMENT || a->in->rows[row].point.placement.kind != PLACEMENT_EXPLICIT;
}

/* ---- rankings ---- */

/* The words about a tier's neighbours. So few runs that no difference would have been seen are no sign that there is
 * none. Pairs of runs may be certain that the one with the worse median is the better one. */
static const char *tier_words(const struct ranked *tier, size_t n) {
        bool alike = true, few = true, some_few = false;
        size_t n_against = 0;
        for (size_t i = 0; i + 1 < n; i++) {
                alike = alike && tier[i].next.verdict == COMPARE_EQUIVALENT;
                few = few && (tier[i].next.verdict == COMPARE_EQUIVALENT || !tier[i].next.has_visible);
                some_few = some_few || (tier[i].next.verdict == COMPARE_UNDECIDED && !tier[i].next.has_visible);
                n_against += is_better(&tier[i].next);
        }
        if (n == 2 && n_against > 0)
                return ", which are not ranked: their medians and the pairs of their runs disagree";
        if (n_against + 1 == n)
                return ", which are not ranked: the medians of all neighbours and the pairs of their runs disagree";
        if (n_against > 0)
                return ", which are not ranked: the medians of some neighbours and the pairs of their runs disagree, "
                       "and no others are known to differ by more than 3 %";
        if (alike)
                return n == 2 ? ", which are equal within 3 %" : ", each and its neighbour equal within 3 %";
        if (few)
                return ", which are not ranked: no difference would have been seen by so few runs";
        if (some_few)
                return ", where no neighbours can be distinguished, some of them by so few runs that no difference "
                       "would "
                       "have been seen";
        return n == 2 ? ", which cannot be distinguished" : ", where no neighbours can be distinguished";
}

/* "2.1 GB/s [2.05 GB/s, 2.14 GB/s]"; without an interval where the runs are too few for one. */
static void write_median(struct draft *d, const struct statistic *s, const char *unit) {
        char value[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX];
        phrase_value(s->median, unit, value);
        draft_write(d, "%s", value);
        if (!s->has_ci95)
                return;
        phrase_value(s->ci95_low, unit, low);
        phrase_value(s->ci95_high, unit, high);
        draft_write(d, " [%s, %s]", low, high);
}

/* "shm-posix (5.1 GB/s), then pipe (2.1 GB/s) and fifo (2.09 GB/s), which cannot be distinguished", each median with
 * its interval */
static void write_tiers(struct draft *d, const struct ranked *ranked, size_t n, enum judged judged) {
        for (size_t begin = 0, end; begin < n && begin < NAMED_MAX; begin = end) {
                for (end = begin + 1; end < n && !is_worse(&ranked[end - 1].next);)
                        end++;
                draft_write(d, begin ? ", then " : "");
                for (size_t i = begin; i < end && i < NAMED_MAX; i++) {
                        draft_write(d, i == begin ? "" : i + 1 == end ? " and " : ", ");
                        char label[PHRASE_MAX];
                        phrase_axis(d->f.axis, &d->a->in->rows[ranked[i].row].point, label);
                        draft_write(d, "%s (", label);
                        write_median(d, &ranked[i].statistic, figure_terms[judged_terms[judged].figure].unit);
                        draft_write(d, ")");
                }
                if (end - begin > 1 && end <= NAMED_MAX)
                        draft_write(d, "%s", tier_words(&ranked[begin], end - begin));
        }
        if (n > NAMED_MAX)
                draft_write(d, ", and %zu more", n - NAMED_MAX);
        draft_write(d, ".");
}

/* A group of those that are not distinguished, and others: between two of them that are no neighbours nothing was
 * tested. */
static bool has_group_and_rest(const struct ranked *ranked, size_t n) {
        size_t n_worse = 0;
        for (size_t i = 0; i + 1 < n; i++)
                n_worse += is_worse(&ranked[i].next);
        return n_worse > 0 && n_worse + 1 < n;
}

static void draw_ranking(struct answer *a, enum axis_name axis, const struct ranked *ranked, size_t n,
                         enum judged judged) {
        char name[PHRASE_MAX];
        struct draft d;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, n, sizeof(*rows));
        for (size_t i = 0; rows && i < n; i++)
                rows[i] = ranked[i].row;
        draft_begin(&d, a, FINDING_RANKING, axis, rows, rows ? n : 0);
        d.f.rests_on = judged_figures(judged);
        draft_write_subject(&d, AXIS_BIT(axis), "");
        phrase_axis_name(axis, name);
        draft_write(&d, ": %s by %s, best first%s: ", judged_terms[judged].words, name,
                    has_group_and_rest(ranked, n) ? ", each compared with the next" : "");
        write_tiers(&d, ranked, n, judged);
        draft_write_unlike(&d);
        for (size_t i = 0; i < n; i++) {
                char label[PHRASE_MAX];
                phrase_axis(axis, &a->in->rows[ranked[i].row].point, label);
                draft_statistic(&d, judged_terms[judged].figure, ranked[i].row, label);
                if (i + 1 < n)
                        draft_ratio(&d, "next_over_this", label, &ranked[i].next);
        }
        draft_end(&d);
}

/* Whether some of the rows send one way and some both ways at once. */
static bool has_parts_and_sums(const struct answer *a, const uint32_t *rows, size_t n) {
        size_t n_sums = 0;
        for (size_t i = 0; i < n; i++)
                n_sums += point_streams(&a->in->rows[rows[i]].point) > 1;
        return n_sums > 0 && n_sums < n;
}

/* The sum of two streams at once is no throughput beside which that of one is less, whatever the axis: of a transport
 * that sends one way only, beside one that sends both ways, the direction is no axis. */
static size_t list_rankable(const struct answer *a, const uint32_t *rows, size_t n, enum judged judged, uint32_t *ret) {
        const bool without_sums = judged == JUDGED_THROUGHPUT && has_parts_and_sums(a, rows, n);
        size_t n_rankable = 0;
        for (size_t i = 0; i < n; i++)
                if (!without_sums || point_streams(&a->in->rows[rows[i]].point) == 1)
                        ret[n_rankable++] = rows[i];
        return n_rankable;
}

static void rank_by(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n, enum judged judged) {
        size_t n_ranked = 0, decided = 0;
        _cleanup_free_ uint32_t *rankable = reallocarray(NULL, n, sizeof(*rankable));
        if (!rankable) {
                a->error = -ENOMEM;
                return;
        }
        n = list_rankable(a, rows, n, judged, rankable);
        _cleanup_free_ struct ranked *ranked = n > 1 ? answer_rank(a, rankable, n, judged, &n_ranked) : NULL;
        if (!ranked || a->collecting || n_ranked < 2)
                return;
        for (size_t i = 0; i + 1 < n_ranked; i++) {
                decided += ranked[i].next.verdict != COMPARE_UNDECIDED;
                if (ranked[i].next.verdict == COMPARE_UNDECIDED)
                        doubt_rows(a, axis, judged, (const uint32_t[]){ranked[i].row, ranked[i + 1].row}, 2,
                                   &ranked[i].next);
        }
        if (decided > 0)
                draw_ranking(a, axis, ranked, n_ranked, judged);
}

/* Some of the rows may be of a transport whose messages carry no time. */
static bool applies_to_any(const struct answer *a, enum judged judged, const uint32_t *rows, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (judged_applies(judged, &a->in->rows[rows[i]]))
                        return true;
        return false;
}

static void rank_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        if (has_usual(axis) && n == 2 && find_usual(a, axis, rows, n) >= 0 && has_cost(a, axis, rows[0]) &&
            has_cost(a, axis, rows[1]))
                return; /* that is a cost */
        for (enum judged j = 0; j < JUDGED_COUNT; j++)
                if (applies_to_any(a, j, rows, n))
                        rank_by(a, axis, rows, n, j);
}

void draw_rankings(struct answer *a) {
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                if (axis_is_a_choice(axis) && a->n_values[axis] > 1)
                        answer_groups(a, 0, axis, rank_group);
}

/* ---- costs ---- */

/* What a choice changes in one figure. */
struct effect {
        enum judged judged;
        bool known; /* both rows have it in runs enough */
        struct comparison c;
};

/* "brings 12 % more throughput [9 %, 15 %]", "costs a 12 % longer median round trip [9 %, 15 %]". */
static void write_effect(struct draft *d, const struct comparison *c, enum judged judged) {
        const struct judged_term *term = &judged_terms[judged];
        char words[3][PHRASE_MAX];
        const char *share = words[0];
        if (c->verdict == COMPARE_EQUIVALENT) {
                draft_write(d, "leaves %s equal within 3 %%", term->words);
                return;
        }
        double way = c->ratio < 1 ? -1 : 1;
        const double ends[] = {way * (c->low - 1), way * (c->high - 1)};
        phrase_shares((const double[]){way * (c->ratio - 1), ends[c->ratio < 1], ends[c->ratio >= 1]}, words);
        draft_write(d, "%s %s%s %s", is_better(c) ? "brings" : "costs", *term->article ? phrase_article(share) : "",
                    share,
                    c->ratio < 1 ? (term->less_is_better ? term->better : term->worse)
                                 : (term->less_is_better ? term->worse : term->better));
        if (c->has_interval)
                draft_write(d, " [%s, %s]", words[1], words[2]);
}

/* What is decided: "brings … and costs …". */
static void write_effects(struct draft *d, const struct effect *effects, size_t n, size_t n_decided) {
        const char *joint = "";
        for (size_t i = 0; i < n; i++) {
                if (effects[i].c.verdict == COMPARE_UNDECIDED)
                        continue;
                draft_write(d, "%s", joint);
                write_effect(d, &effects[i].c, effects[i].judged);
                joint = --n_decided == 1 ? " and " : ", ";
        }
}

/* The call that makes a copy mode; NULL: the axis is another, or the usual call does. */
static const char *copy_call(enum axis_name axis, const struct point *p) {
        if (axis != AXIS_COPY_MODE || p->copy_mode == COPY_TWO)
                return NULL;
        const struct transport_term *t = &transport_terms[p->transport];
        return p->copy_mode == COPY_ONE ? t->one_copy_call : t->zero_copy_call;
}

/* Registers the comparisons; once they have been made, adds the undecided ones to the doubts. How many are decided. */
static size_t take_effects(struct answer *a, enum axis_name axis, const uint32_t rows[2], struct effect *effects,
                           size_t n) {
        size_t n_decided = 0, n_known = 0;
        for (size_t i = 0; i < n; i++) {
                struct effect *e = &effects[i];
                e->known = answer_compare(a, rows[0], rows[1], e->judged, &e->c);
                n_known += e->known;
                n_decided += e->c.verdict != COMPARE_UNDECIDED;
                if (e->known && e->c.verdict == COMPARE_UNDECIDED)
                        doubt_rows(a, axis, e->judged, rows, 2, &e->c);
        }
        if (n_known > 0)
                doubt_counts(a, rows, 2);
        return n_decided;
}

static void draw_cost(struct answer *a, enum axis_name axis, uint32_t usual, uint32_t other, enum judged judged) {
        struct effect effects[] = {
                {.judged = judged}, {.judged = JUDGED_CPU}, {.judged = JUDGED_CYCLES}, {.judged = JUDGED_CACHE_MISSES}};
        const uint32_t rows[] = {usual, other};
        const struct point *p = &a->in->rows[other].point;
        const char *call = copy_call(axis, p);
        char label[PHRASE_MAX], usual_label[PHRASE_MAX];
        struct draft d;
        size_t n_decided = take_effects(a, axis, rows, effects, ELEMENTS(effects));
        if (n_decided == 0)
                return;
        phrase_axis(axis, p, label);
        phrase_axis(axis, &a->in->rows[usual].point, usual_label);
        draft_begin(&d, a, FINDING_COST, axis, rows, 2);
        for (size_t k = 0; k < ELEMENTS(effects); k++)
                if (effects[k].c.verdict != COMPARE_UNDECIDED)
                        d.f.rests_on |= judged_figures(effects[k].judged);
        d.f.lead = is_better(&effects[0].c) ? 1 : is_worse(&effects[0].c) ? -1 : 0;
        draft_write(&d, "%s", label);
        if (call)
                draft_write(&d, " (%s)", call);
        draft_write(&d, " instead of %s ", usual_label);
        write_effects(&d, effects, ELEMENTS(effects), n_decided);
        draft_write_subject(&d, AXIS_BIT(axis), " (");
        draft_write(&d, ").");
        draft_write_unlike(&d);
        for (size_t i = 0; i < 2; i++)
                for (size_t k = 0; k < ELEMENTS(effects); k++)
                        draft_statistic(&d, judged_terms[effects[k].judged].figure, rows[i], i ? label : usual_label);
        for (size_t k = 0; k < ELEMENTS(effects); k++)
                if (effects[k].known)
                        draft_ratio(&d, "ratio", judged_terms[effects[k].judged].words, &effects[k].c);
        draft_end(&d);
}

static void cost_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        ssize_t usual = find_usual(a, axis, rows, n);
        enum judged judged = judged_first(&a->in->rows[rows[0]]);
        if (usual < 0 || judged == JUDGED_COUNT)
                return;
        for (size_t i = 0; i < n; i++)
                if (i != (size_t) usual && has_cost(a, axis, rows[i]))
                        draw_cost(a, axis, rows[usual], rows[i], judged);
}

void draw_costs(struct answer *a) {
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                if (has_usual(axis) && a->n_values[axis] > 1)
                        answer_groups(a, 0, axis, cost_group);
}
