/* SPDX-License-Identifier: MIT */

/* The effect of the message size: the best one, the knee, cliffs, and where one mechanism overtakes another. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"
#include "daemon/analysis/statistics/fit.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEST_WITHIN 0.05 /* of the best: the range that is reported */
#define CLIFF 0.8        /* a step of the size that leaves at most this much of the throughput */
#define FIT_SIZES_LEAST 4u
#define FIT_RESIDUAL_MOST 0.2 /* of a law that is reported */
#define FIT_RESAMPLES 400u
#define FIT_SEED UINT64_C(14)
/* α and β each have 95 %; their quotient at its worst corners has this at least (Bonferroni). */
#define KNEE_LEVEL 0.9

static const struct point *point_of(const struct answer *a, uint32_t row) {
        return &a->in->rows[row].point;
}

/* ---- best size ---- */

/* How the throughput of a size stands beside the greatest median, as far as the runs carry it. */
enum standing { STANDING_BEST, STANDING_WITHIN, STANDING_LESS, STANDING_OPEN, STANDING_COUNT };

/* "Within" is one-sided at 5 %, as equivalence is. The greatest median is picked from all sizes, and still compared
 * with each other one alone: with 4, 8 and 16 equal sizes at most 1 % of the answers called one of them less. */
static enum standing standing_of(const struct comparison *c) {
        if (c->has_equivalence && c->equivalence_low >= 1 - BEST_WITHIN)
                return STANDING_WITHIN;
        return is_worse(c) ? STANDING_LESS : STANDING_OPEN;
}

/* "64 B to 1 KiB and 64 KiB": neighbours with the same standing are one range. */
static void write_sizes(struct draft *d, const uint32_t *rows, const enum standing *standings, size_t n,
                        enum standing standing) {
        const char *joint = "";
        for (size_t i = 0, end; i < n; i = end) {
                char low[PHRASE_MAX], high[PHRASE_MAX];
                bool last = true;
                for (end = i + 1; end < n && standings[end] == standings[i];)
                        end++;
                if (standings[i] != standing)
                        continue;
                for (size_t k = end; k < n; k++)
                        last = last && standings[k] != standing;
                phrase_axis(AXIS_MESSAGE_SIZE, point_of(d->a, rows[i]), low);
                phrase_axis(AXIS_MESSAGE_SIZE, point_of(d->a, rows[end - 1]), high);
                draft_write(d, "%s%s%s%s", last && joint[0] ? " and " : joint, low,
                            end - i == 1                        ? ""
                            : end - i == 2 && !joint[0] && last ? " and "
                                                                : " to ",
                            end - i == 1 ? "" : high);
                joint = ", ";
        }
}

static size_t count_standings(const enum standing *standings, size_t n, enum standing standing) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
                count += standings[i] == standing;
        return count;
}

static void write_best(struct draft *d, const uint32_t *rows, const enum standing *standings, size_t n, size_t best) {
        char size[PHRASE_MAX], value[PHRASE_MAX];
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(d->a, rows[best]), size);
        phrase_value(answer_statistic(d->a, rows[best], FIGURE_THROUGHPUT).median, "bytes/s", value);
        draft_write_subject(d, AXIS_BIT(AXIS_MESSAGE_SIZE), "");
        draft_write(d, ": the greatest median throughput is %s, with messages of %s", value, size);
        if (count_standings(standings, n, STANDING_WITHIN)) {
                draft_write(d, "; within 5 %% of it %s ",
                            count_standings(standings, n, STANDING_WITHIN) == 1 ? "is" : "are");
                write_sizes(d, rows, standings, n, STANDING_WITHIN);
        }
        if (count_standings(standings, n, STANDING_LESS)) {
                draft_write(d, "; it is less with ");
                write_sizes(d, rows, standings, n, STANDING_LESS);
        }
        if (count_standings(standings, n, STANDING_OPEN)) {
                draft_write(d, "; undecided %s ", count_standings(standings, n, STANDING_OPEN) == 1 ? "is" : "are");
                write_sizes(d, rows, standings, n, STANDING_OPEN);
        }
        draft_write(d, ".");
}

static void draw_best_size(struct answer *a, const uint32_t *rows, const enum standing *standings, size_t n,
                           size_t best) {
        char size[PHRASE_MAX];
        struct draft d;
        size_t from = best, to = best;
        while (from > 0 && standings[from - 1] == STANDING_WITHIN)
                from--;
        while (to + 1 < n && standings[to + 1] == STANDING_WITHIN)
                to++;
        draft_begin(&d, a, FINDING_BEST_SIZE, AXIS_MESSAGE_SIZE, rows, n);
        write_best(&d, rows, standings, n, best);
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(a, rows[best]), size);
        draft_statistic(&d, FIGURE_THROUGHPUT, rows[best], size);
        draft_figure(&d, "best_size", NULL, "bytes", (double) point_of(a, rows[best])->message_size);
        draft_figure(&d, "range_from", NULL, "bytes", (double) point_of(a, rows[from])->message_size);
        draft_figure(&d, "range_to", NULL, "bytes", (double) point_of(a, rows[to])->message_size);
        draft_end(&d);
}

/* Rows ascend by size. */
static void best_size_group(struct answer *a, const uint32_t *rows, size_t n) {
        size_t best = answer_fastest(a, rows, n), known = 1;
        _cleanup_free_ enum standing *standings = calloc(n, sizeof(*standings));
        _cleanup_free_ struct comparison *beside = calloc(n, sizeof(*beside));
        if (!standings || !beside) {
                a->error = a->error < 0 ? a->error : -ENOMEM;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                if (i == best)
                        continue;
                known += answer_compare(a, rows[best], rows[i], JUDGED_THROUGHPUT, &beside[i]);
                standings[i] = standing_of(&beside[i]);
        }
        if (known < n) /* also while collecting */
                return;
        for (size_t i = 0; i < n; i++)
                if (standings[i] == STANDING_OPEN)
                        doubt_rows(a, AXIS_MESSAGE_SIZE, JUDGED_THROUGHPUT, (const uint32_t[]){rows[best], rows[i]}, 2,
                                   &beside[i]);
        if (count_standings(standings, n, STANDING_OPEN) + 1 < n)
                draw_best_size(a, rows, standings, n, best);
}

/* ---- knee ---- */

/* What a rate of messages is the sum of, and what a message takes its time of. */
static double streams_of(const struct point *p) {
        return (double) p->threads * point_streams(p);
}

/* Nanoseconds of a message in its stream, of all runs; *ret_n of them. */
static struct fit_point *times_of(struct answer *a, const uint32_t *rows, size_t n, size_t *ret_n) {
        size_t total = 0, used = 0;
        for (size_t i = 0; i < n; i++)
                total += a->in->rows[rows[i]].n_runs;
        struct fit_point *points = reallocarray(NULL, total + 1, sizeof(*points));
        if (!points && a->error == 0)
                a->error = -ENOMEM;
        for (size_t i = 0; points && i < n; i++) {
                const struct findings_row *row = &a->in->rows[rows[i]];
                bool usable = findings_row_has_ratios(row, FIGURE_MESSAGES);
                if (!usable && !findings_row_has_ratios(row, FIGURE_THROUGHPUT))
                        doubt_ratios(a, rows[i], JUDGED_THROUGHPUT);
                for (size_t k = 0; usable && k < row->n_runs; k++) {
                        double rate = row->runs[k].values[FIGURE_MESSAGES];
                        if (isfinite(rate))
                                points[used++] = (struct fit_point){.size = (double) row->point.message_size,
                                                                    .time = 1e9 * streams_of(&row->point) / rate};
                }
        }
        *ret_n = used;
        return points;
}

/* Within the sizes that have the piece's law: beyond them another piece holds, or nothing is known. */
static bool is_knee(const struct fit_piece *p) {
        return p->has_knee && p->has_interval && p->alpha_low > 0 && p->beta_low > 0 && p->knee >= p->size_low &&
               p->knee <= p->size_high;
}

/* "a message of one of the 4 streams takes 2.71 µs and 450 ns for each KiB" */
static void write_time(struct draft *d, const struct point *p, const struct fit_piece *piece) {
        char alpha[PHRASE_MAX], beta[PHRASE_MAX];
        const bool returns = p->workload == WORKLOAD_PINGPONG;
        draft_write(d, ": a %s", returns ? "round trip" : "message");
        if (streams_of(p) > 1)
                draft_write(d, " of one of the %.0f %s", streams_of(p), returns ? "threads" : "streams");
        phrase_value(piece->alpha, "ns", alpha);
        phrase_value(piece->beta * 1024, "ns", beta);
        draft_write(d, " takes %s and %s for each KiB", alpha, beta);
}

static void draw_knee(struct answer *a, const uint32_t *rows, size_t n, const struct fit *fit,
                      const struct fit_piece *p) {
        char knee[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX], off[PHRASE_MAX];
        double knee_low = p->alpha_low / p->beta_high, knee_high = p->alpha_high / p->beta_low;
        struct draft d;
        draft_begin(&d, a, FINDING_KNEE, AXIS_MESSAGE_SIZE, rows, n);
        draft_write_subject(&d, AXIS_BIT(AXIS_MESSAGE_SIZE), "");
        write_time(&d, point_of(a, rows[0]), p);
        phrase_value(p->size_low, "bytes", low);
        phrase_value(p->size_high, "bytes", high);
        draft_write(&d, " (fitted from %s to %s)", low, high);
        phrase_value(p->knee, "bytes", knee);
        phrase_value(knee_low, "bytes", low);
        phrase_value(knee_high, "bytes", high);
        phrase_share(fit->residual, off);
        draft_write(&d, ": at the knee, %s [%s, %s], half of the time is for the bytes. The fit is off by %s", knee,
                    low, high, off);
        if (fit->has_left_out) {
                phrase_share(fit->left_out_error, off);
                draft_write(&d, ", and by %s at worst for a size that it was not shown", off);
        }
        draft_write(&d, ".");
        draft_figure(&d, "knee", NULL, "bytes", p->knee);
        draft_interval(&d, knee_low, knee_high, KNEE_LEVEL);
        draft_figure(&d, "time_per_message", NULL, "ns", p->alpha);
        draft_interval(&d, p->alpha_low, p->alpha_high, ORDER_LEVEL);
        draft_figure(&d, "time_per_byte", NULL, "ns", p->beta);
        draft_interval(&d, p->beta_low, p->beta_high, ORDER_LEVEL);
        draft_figure(&d, "residual", NULL, "ratio", fit->residual);
        if (fit->has_left_out)
                draft_figure(&d, "left_out_error", NULL, "ratio", fit->left_out_error);
        draft_end(&d);
}

static void note_kneeless(struct answer *a, const uint32_t *rows, size_t n, const struct fit *fit) {
        struct kneeless *k = &a->kneeless;
        uint32_t *more = reallocarray(k->rows, k->n + n, sizeof(*more));
        if (!more) {
                a->error = -ENOMEM;
                return;
        }
        k->rows = more;
        memcpy(more + k->n, rows, n * sizeof(*rows));
        k->n += n;
        k->residual = fmax(k->residual, fit->residual);
        *(fit->residual > FIT_RESIDUAL_MOST ? &k->n_off : &k->n_outside) += 1;
}

static void knee_group(struct answer *a, const uint32_t *rows, size_t n) {
        size_t n_points = 0;
        struct fit fit;
        if (a->collecting || n < FIT_SIZES_LEAST || n > FIT_SIZES_MAX)
                return;
        _cleanup_free_ struct fit_point *points = times_of(a, rows, n, &n_points);
        int r = points ? fit_time(points, n_points, &fit) : 0;
        if (!points || r == -EINVAL) /* fewer sizes have a rate */
                return;
        if (r == 0 && fit.residual <= FIT_RESIDUAL_MOST)
                r = fit_intervals(points, n_points, FIT_SEED, FIT_RESAMPLES, &fit);
        if (r < 0 && a->error == 0)
                a->error = r;
        for (size_t i = 0; r == 0 && fit.residual <= FIT_RESIDUAL_MOST && i < fit.n_pieces; i++)
                if (is_knee(&fit.pieces[i])) {
                        draw_knee(a, rows, n, &fit, &fit.pieces[i]);
                        return;
                }
        if (r == 0)
                note_kneeless(a, rows, n, &fit);
}

/* ---- cliffs ---- */

/* Writes the limits between the two sizes, of which one may be the limit itself: sizes and caches are powers of two. A
 * message has a buffer at either end. */
static void write_standing(struct draft *d, const struct findings_limit *limits, size_t n, bool buffers, double below,
                           double above, unsigned *n_written) {
        for (size_t i = 0; i < n; i++) {
                char size[PHRASE_MAX];
                bool whole = below <= limits[i].bytes && limits[i].bytes <= above;
                bool half = buffers && below <= limits[i].bytes / 2 && limits[i].bytes / 2 <= above;
                if (!whole && !half)
                        continue;
                phrase_value(limits[i].bytes, "bytes", size);
                draft_write(d, "%s%s%s (%s)", (*n_written)++ ? ", " : "; what is known to stand between these sizes: ",
                            whole ? "" : "half of ", limits[i].what, size);
                draft_figure(d, "stands_there", limits[i].what, "bytes", limits[i].bytes);
        }
}

static void draw_cliff(struct answer *a, uint32_t below, uint32_t above, const struct comparison *c) {
        const uint32_t rows[] = {below, above};
        const struct findings_row *row = &a->in->rows[above];
        double small = (double) point_of(a, below)->message_size, large = (double) point_of(a, above)->message_size;
        char from[PHRASE_MAX], to[PHRASE_MAX], lost[3][PHRASE_MAX];
        struct draft d;
        unsigned n_written = 0;
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(a, below), from);
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(a, above), to);
        phrase_shares((const double[]){1 - c->ratio, 1 - c->high, 1 - c->low}, lost);
        draft_begin(&d, a, FINDING_CLIFF, AXIS_MESSAGE_SIZE, rows, 2);
        draft_write_subject(&d, AXIS_BIT(AXIS_MESSAGE_SIZE), "");
        draft_write(&d, ": from %s to %s it loses %s of its throughput", from, to, lost[0]);
        if (c->has_interval)
                draft_write(&d, " [%s, %s]", lost[1], lost[2]);
        draft_statistic(&d, FIGURE_THROUGHPUT, below, from);
        draft_statistic(&d, FIGURE_THROUGHPUT, above, to);
        draft_ratio(&d, "ratio", NULL, c);
        write_standing(&d, row->limits, row->n_limits, false, small, large, &n_written);
        write_standing(&d, a->in->caches, a->in->n_caches, true, small, large, &n_written);
        draft_write(&d, n_written ? "." : "; no limit is known between these sizes.");
        draft_end(&d);
}

static void size_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        (void) axis;
        best_size_group(a, rows, n);
        knee_group(a, rows, n);
        for (size_t i = 0; i + 1 < n; i++) {
                struct comparison c;
                if (answer_compare(a, rows[i], rows[i + 1], JUDGED_THROUGHPUT, &c) && is_worse(&c) && c.ratio <= CLIFF)
                        draw_cliff(a, rows[i], rows[i + 1], &c);
        }
}

void draw_sizes(struct answer *a) {
        if (a->n_values[AXIS_MESSAGE_SIZE] > 1)
                answer_groups(a, 0, AXIS_MESSAGE_SIZE, size_group);
}

/* ---- crossovers ---- */

/* A size that both values have. */
struct meeting {
        uint32_t rows[2];
        struct comparison c;
        double log_ratio;
};

static double middle_of(struct answer *a, uint32_t row, enum judged judged) {
        return answer_statistic(a, row, judged_terms[judged].figure).median;
}

/* The rows of one value and those of the other, each by size. While counting it may be of rows without runs. */
static size_t meet(struct answer *a, const uint32_t *x, size_t n_x, const uint32_t *y, size_t n_y, enum judged judged,
                   struct meeting *ret) {
        size_t n = 0;
        for (size_t i = 0, j = 0; i < n_x && j < n_y;) {
                uint64_t u = point_of(a, x[i])->message_size, v = point_of(a, y[j])->message_size;
                if (u == v) {
                        const enum figure figure = judged_terms[judged].figure;
                        bool usable = true;
                        for (size_t k = 0; k < 2; k++) {
                                uint32_t row = k ? y[j] : x[i];
                                bool has_ratios = findings_row_has_ratios(&a->in->rows[row], figure);
                                if (!has_ratios && !a->collecting)
                                        doubt_ratios(a, row, judged);
                                usable &= has_ratios;
                        }
                        double mine = a->counting ? 1 : middle_of(a, x[i], judged);
                        double other = a->counting ? 1 : middle_of(a, y[j], judged);
                        if (usable && mine > 0 && other > 0)
                                ret[n++] = (struct meeting){.rows = {x[i], y[j]}, .log_ratio = log(other / mine)};
                }
                i += u <= v;
                j += v <= u;
        }
        return n;
}

/* The comparison decides, where there is one: its pairs may give another sign than the medians' quotient. */
static double lead_of(const struct meeting *m) {
        return m->c.ratio > 0 ? log(m->c.ratio) : m->log_ratio;
}

/* The size at which the straight line between two sizes' ratios, of unlike signs and both on logarithms, is at 1. */
static double cross(const struct answer *a, const struct meeting *before, const struct meeting *after,
                    double (*ratio_of)(const struct meeting *m)) {
        double from = log((double) point_of(a, before->rows[0])->message_size);
        double to = log((double) point_of(a, after->rows[0])->message_size);
        double share = ratio_of(before) / (ratio_of(before) - ratio_of(after));
        return exp(from + share * (to - from));
}

static void draw_crossover(struct answer *a, enum axis_name axis, const struct meeting *m, size_t n, size_t before,
                           size_t after, enum judged judged) {
        const struct meeting *first = &m[before], *second = &m[after];
        char names[2][PHRASE_MAX], at[PHRASE_MAX], from[PHRASE_MAX], to[PHRASE_MAX];
        size_t near = before;
        bool turn = is_better(&first->c); /* the other value is better below */
        struct draft d;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, 2 * n, sizeof(*rows));
        for (size_t i = 0; rows && i < 2 * n; i++)
                rows[i] = m[i / 2].rows[i % 2];
        while (near + 1 < after && (lead_of(&m[near + 1]) > 0) == (lead_of(first) > 0))
                near++;
        for (size_t i = 0; i < 2; i++)
                phrase_axis(axis, point_of(a, first->rows[turn ? 1 - i : i]), names[i]);
        double estimate = cross(a, &m[near], &m[near + 1], lead_of);
        phrase_value(estimate, "bytes", at);
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(a, first->rows[0]), from);
        phrase_axis(AXIS_MESSAGE_SIZE, point_of(a, second->rows[0]), to);
        draft_begin(&d, a, FINDING_CROSSOVER, axis, rows, rows ? 2 * n : 0);
        d.f.rests_on = judged_figures(judged);
        draft_write_subject(&d, AXIS_BIT(axis) | AXIS_BIT(AXIS_MESSAGE_SIZE), "");
        draft_write(&d, ": %s overtakes %s in %s between %s and %s, at about %s.", names[1], names[0],
                    judged_terms[judged].words, from, to, at);
        draft_write_unlike(&d);
        draft_figure(&d, "crossover", NULL, "bytes", estimate);
        draft_interval(&d, (double) point_of(a, first->rows[0])->message_size,
                       (double) point_of(a, second->rows[0])->message_size, 1 - COMPARE_ERROR);
        draft_ratio(&d, "ratio", from, &first->c);
        draft_ratio(&d, "ratio", to, &second->c);
        draft_end(&d);
}

/* One side of a crossing: the sizes at which one of the two has the greater median. */
struct side {
        bool decided, open;
        uint32_t runs_needed; /* the fewest that decide an open one; 0: not known, or out of reach */
        uint32_t runs_most;   /* that take part, where one is out of reach */
};

static struct side side_of(const struct meeting *m, size_t n, bool up) {
        struct side s = {0};
        for (size_t i = 0; i < n; i++) {
                if ((m[i].log_ratio > 0) != up)
                        continue;
                s.decided |= is_better(&m[i].c) || is_worse(&m[i].c);
                if (m[i].c.verdict != COMPARE_UNDECIDED)
                        continue;
                s.open = true;
                if (m[i].c.out_of_reach)
                        s.runs_most = m[i].c.runs_most;
                else if (m[i].c.runs_needed > 0 && (s.runs_needed == 0 || m[i].c.runs_needed < s.runs_needed))
                        s.runs_needed = m[i].c.runs_needed;
        }
        if (s.decided)
                s.runs_needed = 0;
        if (s.decided || s.runs_needed > 0)
                s.runs_most = 0;
        return s;
}

static double median_lead_of(const struct meeting *m) {
        return m->log_ratio;
}

/* Doubts medians that change places while no crossover was found. Where one side has nothing but equals there is none
 * to look for. */
static void doubt_pair(struct answer *a, enum axis_name axis, enum judged judged, const struct meeting *m, size_t n) {
        const struct side up = side_of(m, n, true), down = side_of(m, n, false);
        size_t at = 0;
        if (!(up.decided || up.open) || !(down.decided || down.open))
                return;
        struct runs_to_decide needed = {.runs = up.runs_needed > down.runs_needed ? up.runs_needed : down.runs_needed,
                                        .most = up.runs_most > down.runs_most ? up.runs_most : down.runs_most};
        if ((!up.decided && up.runs_needed == 0) || (!down.decided && down.runs_needed == 0))
                needed.runs = 0;
        while ((m[at].log_ratio > 0) == (m[at + 1].log_ratio > 0))
                at++;
        _cleanup_free_ uint32_t *rows = reallocarray(NULL, 2 * n, sizeof(*rows));
        if (!rows) {
                a->error = -ENOMEM;
                return;
        }
        for (size_t i = 0; i < 2 * n; i++)
                rows[i] = m[i / 2].rows[i % 2];
        doubt_crossing(a, axis, judged, rows, 2 * n,
                       &(struct crossing_pair){.rows = {m[0].rows[0], m[0].rows[1]},
                                               .bytes = cross(a, &m[at], &m[at + 1], median_lead_of)},
                       needed);
}

/* Both sides of a crossover are differences of their own; the choice of pairs depends on signs alone. */
static void pair_of_values(struct answer *a, enum axis_name axis, const uint32_t *x, size_t n_x, const uint32_t *y,
                           size_t n_y) {
        enum judged judged = judged_first(&a->in->rows[x[0]]);
        _cleanup_free_ struct meeting *m = calloc(n_x, sizeof(*m));
        size_t n = 0, up = 0, last = SIZE_MAX;
        bool found = false;
        if (!m || judged == JUDGED_COUNT) {
                a->error = m ? a->error : -ENOMEM;
                return;
        }
        n = meet(a, x, n_x, y, n_y, judged, m);
        for (size_t i = 0; i < n; i++)
                up += m[i].log_ratio > 0;
        if (!a->counting && (up == 0 || up == n))
                return;
        for (size_t i = 0; i < n; i++) {
                (void) answer_compare(a, m[i].rows[0], m[i].rows[1], judged, &m[i].c);
                if (!is_better(&m[i].c) && !is_worse(&m[i].c))
                        continue;
                if (last != SIZE_MAX && is_better(&m[last].c) != is_better(&m[i].c)) {
                        draw_crossover(a, axis, m, n, last, i, judged);
                        found = true;
                }
                last = i;
        }
        if (!found && !a->collecting)
                doubt_pair(a, axis, judged, m, n);
}

/* Whether one of the two values can overtake the other: no placement by hand does, nor two streams at once one. */
static bool are_of_one_kind(const struct answer *a, enum axis_name axis, uint32_t x, uint32_t y) {
        if (axis == AXIS_PLACEMENT)
                return point_of(a, x)->placement.kind != PLACEMENT_EXPLICIT;
        enum judged judged = judged_first(&a->in->rows[x]);
        return judged == JUDGED_COUNT ||
               !points_incomparable(point_of(a, x), point_of(a, y), judged_terms[judged].figure);
}

static void crossover_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        for (size_t i = 0, end; i < n; i = end) {
                for (end = i + 1; end < n && a->values[rows[end]][axis] == a->values[rows[i]][axis];)
                        end++;
                for (size_t j = end, other; j < n && a->error == 0; j = other) {
                        for (other = j + 1; other < n && a->values[rows[other]][axis] == a->values[rows[j]][axis];)
                                other++;
                        if (are_of_one_kind(a, axis, rows[i], rows[j]))
                                pair_of_values(a, axis, rows + i, end - i, rows + j, other - j);
                }
        }
}

void draw_crossovers(struct answer *a) {
        if (a->n_values[AXIS_MESSAGE_SIZE] < 2)
                return;
        for (enum axis_name axis = 0; axis < AXIS_COUNT; axis++)
                if (axis_is_a_choice(axis) && a->n_values[axis] > 1)
                        answer_groups(a, AXIS_BIT(AXIS_MESSAGE_SIZE), axis, crossover_group);
}
