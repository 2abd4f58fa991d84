/* SPDX-License-Identifier: MIT */

/* The effect of more threads: the peak, the collapse behind it, and the universal scalability law. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"
#include "daemon/analysis/statistics/fit.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define THREADS_LEAST 3u
#define FIT_COUNTS_LEAST 4u   /* different ones: through three the law's three parameters fit exactly */
#define FIT_RESIDUAL_MOST 0.2 /* of a law that is reported */

struct scaling {
        const uint32_t *rows;      /* ascend by threads */
        size_t n, peak;            /* the peak's place among the rows */
        struct comparison *beside; /* each row over the peak */
        bool rises, falls;         /* that it is above the first, and above the last, is certain */
        bool more;                 /* more threads than the last row's were measured, and have no ratios */
};

static uint32_t threads_of(const struct answer *a, uint32_t row) {
        return a->in->rows[row].point.threads;
}

/* The runs' throughput; threads ascend. NULL where there is no memory. */
static struct fit_threads_point *runs_of(struct answer *a, const struct scaling *s, size_t *ret_n) {
        size_t total = 0, n = 0;
        for (size_t i = 0; i < s->n; i++)
                total += a->in->rows[s->rows[i]].n_runs;
        struct fit_threads_point *points = reallocarray(NULL, total + 1, sizeof(*points));
        if (!points && a->error == 0)
                a->error = -ENOMEM;
        for (size_t i = 0; points && i < s->n; i++)
                for (size_t k = 0; k < a->in->rows[s->rows[i]].n_runs; k++) {
                        double rate = a->in->rows[s->rows[i]].runs[k].values[FIGURE_THROUGHPUT];
                        if (isfinite(rate) && rate > 0)
                                points[n++] = (struct fit_threads_point){threads_of(a, s->rows[i]), rate};
                }
        *ret_n = n;
        return points;
}

struct range {
        double low, high;
};

static void widen(struct range *r, double value) {
        r->low = fmin(r->low, value);
        r->high = fmax(r->high, value);
}

/* The universal scalability law, and the ranges of its figures over the fits that leave out one count of threads each.
 */
struct law {
        struct fit_threads fit;
        size_t n_counts;
        double least, most; /* threads that were measured */
        struct range sigma, kappa, peak;
        bool peaks; /* every one of these fits has a peak */
        bool off;   /* there are counts enough, and it does not fit them */
};

/* A fit without the points [begin, end). */
static int fit_without(const struct fit_threads_point *points, size_t n, size_t begin, size_t end,
                       struct fit_threads_point *rest, struct fit_threads *ret) {
        size_t k = 0;
        for (size_t i = 0; i < n; i++)
                if (i < begin || i >= end)
                        rest[k++] = points[i];
        return fit_threads(rest, k, ret);
}

static bool fit_law(struct answer *a, const struct scaling *s, struct law *ret) {
        size_t n = 0;
        struct law law = {0};
        _cleanup_free_ struct fit_threads_point *points = runs_of(a, s, &n);
        _cleanup_free_ struct fit_threads_point *rest = reallocarray(NULL, n + 1, sizeof(*rest));
        if (!points || !rest) {
                a->error = -ENOMEM;
                return false;
        }
        if (fit_threads(points, n, &law.fit) < 0)
                return false;
        if (law.fit.residual > FIT_RESIDUAL_MOST) {
                law.off = s->n >= FIT_COUNTS_LEAST;
                *ret = law;
                return false;
        }
        law.least = points[0].threads;
        law.most = points[n - 1].threads;
        law.sigma = (struct range){law.fit.sigma, law.fit.sigma};
        law.kappa = (struct range){law.fit.kappa, law.fit.kappa};
        law.peak = (struct range){law.fit.peak_threads, law.fit.peak_threads};
        law.peaks = law.fit.has_peak;
        for (size_t begin = 0, end; begin < n; begin = end) {
                struct fit_threads without;
                for (end = begin + 1; end < n && points[end].threads == points[begin].threads;)
                        end++;
                law.n_counts++;
                if (fit_without(points, n, begin, end, rest, &without) < 0)
                        return false; /* too few others */
                widen(&law.sigma, without.sigma);
                widen(&law.kappa, without.kappa);
                widen(&law.peak, without.peak_threads);
                law.peaks = law.peaks && without.has_peak;
        }
        *ret = law;
        return law.n_counts >= FIT_COUNTS_LEAST;
}

/* Beyond the counts that were measured the law is not known to hold. */
static bool has_measured_peak(const struct law *law) {
        return law->fit.has_peak && law->least <= law->fit.peak_threads && law->fit.peak_threads <= law->most;
}

static void write_peak(struct draft *d, const struct law *law) {
        if (has_measured_peak(law)) {
                char at[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX];
                draft_write(d, "; its peak is at %s threads", phrase_number(law->fit.peak_threads, at));
                if (law->peaks)
                        draft_write(d, " (%s to %s)", phrase_number(law->peak.low, low),
                                    phrase_number(law->peak.high, high));
                else
                        draft_write(d, " (without one of the counts there is none)");
        } else if (law->fit.has_peak ? law->fit.peak_threads > law->most : law->fit.sigma < 1) {
                draft_write(d,
                            "; by it throughput still rises at %.0f threads, the most that were measured: no peak "
                            "among the %zu counts",
                            law->most, law->n_counts);
        } else {
                draft_write(d,
                            "; by it throughput does not rise from the fewest threads on: no peak among the %zu "
                            "counts",
                            law->n_counts);
        }
}

static void add_law(struct draft *d, const struct scaling *s) {
        struct law law = {0};
        char off[PHRASE_MAX];
        bool fits = fit_law(d->a, s, &law);
        phrase_share(law.fit.residual, off);
        if (law.off) {
                draft_write(d, " The universal scalability law does not fit: it is off by %s.", off);
                draft_figure(d, "residual", NULL, "ratio", law.fit.residual);
        }
        if (!fits)
                return;
        draft_write(d,
                    " The universal scalability law fits with σ = %.3g (%.3g to %.3g without one of the counts) and κ "
                    "= %.3g (%.3g to %.3g), off by %s",
                    law.fit.sigma, law.sigma.low, law.sigma.high, law.fit.kappa, law.kappa.low, law.kappa.high, off);
        write_peak(d, &law);
        draft_write(d, ".");
        draft_figure(d, "sigma", NULL, "1", law.fit.sigma);
        draft_interval(d, law.sigma.low, law.sigma.high, 0);
        draft_figure(d, "kappa", NULL, "1", law.fit.kappa);
        draft_interval(d, law.kappa.low, law.kappa.high, 0);
        if (has_measured_peak(&law))
                draft_figure(d, "fitted_peak", NULL, "threads", law.fit.peak_threads);
        if (has_measured_peak(&law) && law.peaks)
                draft_interval(d, law.peak.low, law.peak.high, 0);
        draft_figure(d, "residual", NULL, "ratio", law.fit.residual);
}

static void write_at(struct draft *d, const char *joint, uint32_t row) {
        char value[PHRASE_MAX];
        phrase_value(answer_statistic(d->a, row, FIGURE_THROUGHPUT).median, "bytes/s", value);
        draft_write(d, "%s%s with %u", joint, value, threads_of(d->a, row));
}

/* " (run by run 2.1 times [1.9, 2.4])": the estimate of the comparison, which need not be the quotient of the medians.
 */
static void write_times(struct draft *d, const struct comparison *c) {
        char ratio[PHRASE_MAX], low[PHRASE_MAX], high[PHRASE_MAX];
        draft_write(d, " (run by run %s times", phrase_number(c->ratio, ratio));
        if (c->has_interval)
                draft_write(d, " [%s, %s]", phrase_number(c->low, low), phrase_number(c->high, high));
        draft_write(d, ")");
}

/* " with 2 and 16 threads": the counts that the peak is not known to be above. */
static void write_near(struct draft *d, const struct scaling *s) {
        size_t n = 0, k = 0;
        for (size_t i = 0; i < s->n; i++)
                n += i != s->peak && !is_worse(&s->beside[i]);
        if (n == 0)
                return;
        draft_write(d, " It is not known to be more with %u thread%s than with ", threads_of(d->a, s->rows[s->peak]),
                    threads_of(d->a, s->rows[s->peak]) == 1 ? "" : "s");
        for (size_t i = 0; i < s->n; i++)
                if (i != s->peak && !is_worse(&s->beside[i])) {
                        draft_write(d, "%s%u", k == 0 ? "" : k + 1 == n ? " and " : ", ", threads_of(d->a, s->rows[i]));
                        k++;
                }
        draft_write(d, ".");
}

static void draw_scaling(struct answer *a, const struct scaling *s) {
        uint32_t first = s->rows[0], peak = s->rows[s->peak], last = s->rows[s->n - 1];
        const struct comparison rise = compare_turned(&s->beside[0]), *fall = &s->beside[s->n - 1];
        struct draft d;
        draft_begin(&d, a, FINDING_SCALING, AXIS_THREADS, s->rows, s->n);
        draft_write_subject(&d, AXIS_BIT(AXIS_THREADS), "");
        draft_write(&d, ": throughput ");
        if (s->rises) {
                write_at(&d, "rises from ", first);
                write_at(&d, threads_of(a, first) == 1 ? " thread to " : " threads to ", peak);
                draft_write(&d, " threads");
                write_times(&d, &rise);
        }
        if (s->falls) {
                write_at(&d, s->rises ? " and falls to " : "falls to ", last);
                if (!s->rises)
                        write_at(&d, " threads from ", peak);
                draft_write(&d, s->rises || threads_of(a, peak) > 1 ? " threads" : " thread");
                write_times(&d, fall);
        }
        draft_write(&d, s->falls                          ? "."
                        : s->peak + 1 == s->n && !s->more ? "; no more threads were measured."
                                                          : "; no fall behind it was found.");
        write_near(&d, s);
        for (size_t i = 0; i < s->n; i++) {
                char label[PHRASE_MAX];
                phrase_axis(AXIS_THREADS, &a->in->rows[s->rows[i]].point, label);
                draft_statistic(&d, FIGURE_THROUGHPUT, s->rows[i], label);
        }
        draft_figure(&d, "peak", NULL, "threads", threads_of(a, peak));
        if (s->rises)
                draft_ratio(&d, "ratio", "the peak over the fewest", &rise);
        if (s->falls)
                draft_ratio(&d, "ratio", "the most over the peak", fall);
        add_law(&d, s);
        draft_end(&d);
}

/* The peak is picked from all counts, so that it is compared with all of them, not with the first and the last alone:
 * of 8 and of 16 equal counts 7 % of the answers had a peak by these two, which the correction of two does not cover.
 */
static void compare_counts(struct answer *a, struct scaling *s) {
        struct comparison doubtful = {0};
        bool decided = false;
        for (size_t i = 0; i < s->n; i++) {
                bool end = i == 0 || i + 1 == s->n;
                if (i == s->peak ||
                    !answer_compare(a, s->rows[s->peak], s->rows[i], JUDGED_THROUGHPUT, &s->beside[i]) || !end)
                        continue;
                *(i == 0 ? &s->rises : &s->falls) = is_worse(&s->beside[i]);
                decided |= s->beside[i].verdict != COMPARE_UNDECIDED;
                if (s->beside[i].verdict == COMPARE_UNDECIDED)
                        doubtful = s->beside[i];
        }
        if (a->collecting || a->error < 0)
                return;
        if (s->rises || s->falls)
                draw_scaling(a, s);
        else if (!decided && doubtful.runs_needed)
                doubt_rows(a, AXIS_THREADS, JUDGED_THROUGHPUT, s->rows, s->n, &doubtful);
}

static void scaling_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        _cleanup_free_ uint32_t *usable = reallocarray(NULL, n, sizeof(*usable));
        _cleanup_free_ struct comparison *beside = calloc(n, sizeof(*beside));
        struct scaling s = {.rows = usable, .beside = beside};
        (void) axis;
        if (!usable || !beside) {
                a->error = a->error < 0 ? a->error : -ENOMEM;
                return;
        }
        for (size_t i = 0; i < n; i++) {
                bool has_ratios = findings_row_has_ratios(&a->in->rows[rows[i]], FIGURE_THROUGHPUT);
                s.more = !has_ratios;
                if (has_ratios)
                        usable[s.n++] = rows[i];
                else if (!a->collecting)
                        doubt_ratios(a, rows[i], JUDGED_THROUGHPUT);
        }
        if (s.n < THREADS_LEAST)
                return;
        s.peak = answer_fastest(a, usable, s.n);
        compare_counts(a, &s);
}

void draw_scalings(struct answer *a) {
        if (a->n_values[AXIS_THREADS] >= THREADS_LEAST)
                answer_groups(a, 0, AXIS_THREADS, scaling_group);
}
