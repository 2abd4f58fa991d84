/* SPDX-License-Identifier: MIT */

/* The effect of more threads: the peak, the collapse behind it, and the universal scalability law. */

#include "daemon/analysis/findings-internal.h"

#include "daemon/analysis/fit.h"
#include "daemon/analysis/phrase.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define THREADS_LEAST 3u
#define FIT_RESIDUAL_MOST 0.2 /* of a law that is reported */

struct scaling {
        const uint32_t *rows;         /* ascend by threads */
        size_t n, peak;               /* the peak's place among the rows */
        bool rises, falls;            /* that it is above the first, and above the last, is certain */
        struct comparison rise, fall; /* the peak over the first, the last over the peak */
};

static uint32_t threads_of(const struct answer *a, uint32_t row) {
        return a->in->rows[row].point.threads;
}

static bool fit_law(struct answer *a, const struct scaling *s, struct fit_threads *ret) {
        size_t total = 0, n = 0;
        for (size_t i = 0; i < s->n; i++)
                total += a->in->rows[s->rows[i]].n_runs;
        _cleanup_free_ struct fit_threads_point *points = reallocarray(NULL, total + 1, sizeof(*points));
        if (!points) {
                a->error = -ENOMEM;
                return false;
        }
        for (size_t i = 0; i < s->n; i++)
                for (size_t k = 0; k < a->in->rows[s->rows[i]].n_runs; k++) {
                        double rate = a->in->rows[s->rows[i]].runs[k].values[FIGURE_THROUGHPUT];
                        if (isfinite(rate) && rate > 0)
                                points[n++] = (struct fit_threads_point){threads_of(a, s->rows[i]), rate};
                }
        return fit_threads(points, n, ret) == 0 && ret->residual <= FIT_RESIDUAL_MOST;
}

static void add_law(struct draft *d, const struct scaling *s) {
        struct fit_threads law;
        char off[PHRASE_MAX];
        if (!fit_law(d->a, s, &law))
                return;
        phrase_share(law.residual, off);
        draft_write(d, " The universal scalability law fits with σ = %.3g and κ = %.3g, off by %s", law.sigma,
                    law.kappa, off);
        if (law.has_peak)
                draft_write(d, "; its peak is at %.3g threads", law.peak_threads);
        draft_write(d, ".");
        draft_figure(d, "sigma", NULL, "1", law.sigma);
        draft_figure(d, "kappa", NULL, "1", law.kappa);
        if (law.has_peak)
                draft_figure(d, "fitted_peak", NULL, "threads", law.peak_threads);
        draft_figure(d, "residual", NULL, "ratio", law.residual);
}

static void write_at(struct draft *d, const char *joint, uint32_t row) {
        char value[PHRASE_MAX];
        phrase_value(answer_statistic(d->a, row, FIGURE_THROUGHPUT).median, "bytes/s", value);
        draft_write(d, "%s%s with %u", joint, value, threads_of(d->a, row));
}

/* " (2.1 times [1.9, 2.4])": the estimate of the comparison, which need not be the quotient of the medians. */
static void write_times(struct draft *d, const struct comparison *c) {
        draft_write(d, " (%.3g times", c->ratio);
        if (c->has_interval)
                draft_write(d, " [%.3g, %.3g]", c->low, c->high);
        draft_write(d, ")");
}

static void draw_scaling(struct answer *a, const struct scaling *s) {
        uint32_t first = s->rows[0], peak = s->rows[s->peak], last = s->rows[s->n - 1];
        struct draft d;
        draft_begin(&d, a, FINDING_SCALING, AXIS_THREADS, s->rows, s->n);
        draft_write_subject(&d, AXIS_BIT(AXIS_THREADS), "");
        draft_write(&d, ": throughput ");
        if (s->rises) {
                write_at(&d, "rises from ", first);
                write_at(&d, threads_of(a, first) == 1 ? " thread to " : " threads to ", peak);
                draft_write(&d, " threads");
                write_times(&d, &s->rise);
        }
        if (s->falls) {
                write_at(&d, s->rises ? " and falls to " : "falls to ", last);
                if (!s->rises)
                        write_at(&d, " threads from ", peak);
                draft_write(&d, s->rises || threads_of(a, peak) > 1 ? " threads" : " thread");
                write_times(&d, &s->fall);
        }
        draft_write(&d, s->falls ? "." : "; no fall behind it was found.");
        for (size_t i = 0; i < s->n; i++) {
                char label[PHRASE_MAX];
                phrase_axis(AXIS_THREADS, &a->in->rows[s->rows[i]].point, label);
                draft_statistic(&d, FIGURE_THROUGHPUT, s->rows[i], label);
        }
        draft_figure(&d, "peak", NULL, "threads", threads_of(a, peak));
        if (s->rises)
                draft_ratio(&d, "ratio", "the peak over the fewest", &s->rise);
        if (s->falls)
                draft_ratio(&d, "ratio", "the most over the peak", &s->fall);
        add_law(&d, s);
        draft_end(&d);
}

static void scaling_group(struct answer *a, enum axis_name axis, const uint32_t *rows, size_t n) {
        struct scaling s = {.rows = rows, .n = n};
        double most = 0;
        struct comparison doubtful = {0};
        bool decided = false;
        if (n < THREADS_LEAST)
                return;
        for (size_t i = 0; i < n; i++) {
                double rate = answer_statistic(a, rows[i], FIGURE_THROUGHPUT).median;
                if (rate > most) {
                        most = rate;
                        s.peak = i;
                }
        }
        for (size_t i = 0; i < 2; i++) {
                struct comparison c;
                uint32_t before = rows[i == 0 ? 0 : s.peak], after = rows[i == 0 ? s.peak : n - 1];
                if (before == after || !answer_compare(a, before, after, JUDGED_THROUGHPUT, &c))
                        continue;
                *(i == 0 ? &s.rise : &s.fall) = c;
                *(i == 0 ? &s.rises : &s.falls) = i == 0 ? is_better(&c) : is_worse(&c);
                decided |= c.verdict != COMPARE_UNDECIDED;
                if (c.verdict == COMPARE_UNDECIDED)
                        doubtful = c;
        }
        if (a->collecting || a->error < 0)
                return;
        if (s.rises || s.falls)
                draw_scaling(a, &s);
        else if (!decided && doubtful.runs_needed)
                doubt_rows(a, axis, JUDGED_THROUGHPUT, rows, n, &doubtful);
}

void draw_scalings(struct answer *a) {
        if (a->n_values[AXIS_THREADS] >= THREADS_LEAST)
                answer_groups(a, 0, AXIS_THREADS, scaling_group);
}
