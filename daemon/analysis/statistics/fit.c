/* SPDX-License-Identifier: MIT */

/* See fit.h. The time per message over the size; threads are in fit-threads.c. */

#include "daemon/analysis/statistics/fit.h"
#include "daemon/analysis/statistics/order.h"
#include "daemon/analysis/statistics/student.h"
#include "schema/random.h"
#include "schema/util.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define RESIDUAL_FLOOR 1e-9L /* mean squares below its square are rounding: BIC has nothing to choose among them */
#define RESAMPLES_MIN 100u

/* The sums of a size's runs for least squares, each weighted by the square of one over its time. */
struct sums {
        long double w, s, t, ss, st, n;
};

/* The runs of one size: points first … first + n - 1 of the sorted ones. */
struct size {
        double bytes;
        size_t first, n;
        struct sums sums;
};

struct sizes {
        struct fit_point *points; /* sorted by size */
        size_t n_points, n;
        struct size list[FIT_SIZES_MAX];
};

static void sizes_deinit(struct sizes *s) {
        free(s->points);
}

struct line {
        long double alpha, beta, squares; /* of the relative residuals */
};

static void sums_add(struct sums *into, const struct sums *s) {
        into->w += s->w;
        into->s += s->s;
        into->t += s->t;
        into->ss += s->ss;
        into->st += s->st;
        into->n += s->n;
}

static void sums_add_run(struct sums *into, double size, double time) {
        long double w = 1 / ((long double) time * (long double) time), s = (long double) size, t = (long double) time;
        sums_add(into, &(struct sums){.w = w, .s = w * s, .t = w * t, .ss = w * s * s, .st = w * s * t, .n = 1});
}

/* The line with the smallest sum of weighted squares that has neither a negative α nor a negative β: the one without
 * limits if it keeps them, else the better of those on a limit. */
static struct line fit_line(const struct sums *a) {
        long double mean_s = a->s / a->w, mean_t = a->t / a->w;
        long double spread = a->ss - mean_s * a->s, together = a->st - mean_s * a->t;
        struct line l = {.alpha = mean_t};
        if (spread > 0) {
                l.beta = together / spread;
                l.alpha = mean_t - l.beta * mean_s;
        }
        if (l.beta < 0)
                l = (struct line){.alpha = mean_t};
        else if (l.alpha < 0)
                l = (struct line){.beta = a->st / a->ss};
        /* Σ w (t - α - β s)², with Σ w t² = n */
        l.squares = a->n - 2 * (l.alpha * a->t + l.beta * a->st) + l.alpha * l.alpha * a->w +
                    2 * l.alpha * l.beta * a->s + l.beta * l.beta * a->ss;
        l.squares = fmaxl(l.squares, 0);
        return l;
}

static int by_size(const void *a, const void *b) {
        const struct fit_point *x = a, *y = b;
        if (x->size != y->size)
                return x->size < y->size ? -1 : 1;
        return (x->time > y->time) - (x->time < y->time);
}

static int sizes_init(struct sizes *ret, const struct fit_point *points, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!(points[i].size > 0 && isfinite(points[i].size) && points[i].time > 0 && isfinite(points[i].time)))
                        return -EINVAL;
        if (n == 0)
                return -EINVAL;
        ret->points = reallocarray(NULL, n, sizeof(*ret->points));
        if (!ret->points)
                return -ENOMEM;
        memcpy(ret->points, points, n * sizeof(*points));
        ret->n_points = n;
        qsort(ret->points, n, sizeof(*points), by_size);
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || ret->points[i].size != ret->points[i - 1].size) {
                        if (ret->n == FIT_SIZES_MAX)
                                return -E2BIG; /* the caller frees */
                        ret->list[ret->n++] = (struct size){.bytes = ret->points[i].size, .first = i};
                }
                struct size *size = &ret->list[ret->n - 1];
                size->n++;
                sums_add_run(&size->sums, size->bytes, ret->points[i].time);
        }
        return ret->n < 2 ? -EINVAL : 0;
}

/* The sizes of a fit: all, or all but one. */
struct choice {
        const struct size *sizes[FIT_SIZES_MAX];
        size_t n;
};

struct pieces {
        size_t n, begins[FIT_PIECES_MAX + 1]; /* of the chosen sizes; the last is their number */
        struct line lines[FIT_PIECES_MAX];
        long double squares;
        double bic;
};

/* best[k][j] is the least sum of squares of the first j sizes in k + 1 pieces, from[k][j] where the last begins. */
struct table {
        long double best[FIT_PIECES_MAX][FIT_SIZES_MAX + 1];
        size_t from[FIT_PIECES_MAX][FIT_SIZES_MAX + 1];
};

static void fill_table(const struct choice *c, struct table *t) {
        for (size_t k = 0; k < FIT_PIECES_MAX; k++)
                for (size_t j = 0; j <= c->n; j++)
                        t->best[k][j] = INFINITY;
        for (size_t begin = 0; begin < c->n; begin++) {
                struct sums sums = {0};
                for (size_t end = begin + 1; end <= c->n; end++) {
                        sums_add(&sums, &c->sizes[end - 1]->sums);
                        if (end - begin < FIT_PIECE_SIZES && end - begin < c->n)
                                continue;
                        long double squares = fit_line(&sums).squares;
                        for (size_t k = 0; k < FIT_PIECES_MAX; k++) {
                                long double before = k > 0 ? t->best[k - 1][begin] : begin > 0 ? INFINITY : 0;
                                if (before + squares < t->best[k][end]) {
                                        t->best[k][end] = before + squares;
                                        t->from[k][end] = begin;
                                }
                        }
                }
        }
}

static void choose_pieces(const struct choice *c, struct pieces *ret) {
        struct table table;
        fill_table(c, &table);
        double n = 0;
        for (size_t i = 0; i < c->n; i++)
                n += (double) c->sizes[i]->n;
        ret->n = 0;
        for (size_t k = 0; k < FIT_PIECES_MAX && isfinite(table.best[k][c->n]); k++) {
                long double mean = table.best[k][c->n] / (long double) n + RESIDUAL_FLOOR * RESIDUAL_FLOOR;
                double bic = n * (double) logl(mean) + (3.0 * (double) k + 2) * log(n);
                if (ret->n > 0 && bic >= ret->bic)
                        continue;
                ret->n = k + 1;
                ret->bic = bic;
                ret->squares = table.best[k][c->n];
        }
        for (size_t k = ret->n, end = c->n; k-- > 0;) {
                ret->begins[k + 1] = end;
                ret->begins[k] = table.from[k][end];
                struct sums sums = {0};
                for (size_t i = ret->begins[k]; i < end; i++)
                        sums_add(&sums, &c->sizes[i]->sums);
                ret->lines[k] = fit_line(&sums);
                end = ret->begins[k];
        }
}

static void put_pieces(const struct choice *c, const struct pieces *p, struct fit *f) {
        f->n_pieces = p->n;
        for (size_t k = 0; k < p->n; k++) {
                double alpha = (double) p->lines[k].alpha, beta = (double) p->lines[k].beta;
                f->pieces[k] = (struct fit_piece){
                        .size_low = c->sizes[p->begins[k]]->bytes,
                        .size_high = c->sizes[p->begins[k + 1] - 1]->bytes,
                        .alpha = alpha,
                        .beta = beta,
                        .has_knee = alpha > 0 && beta > 0,
                        .knee = alpha > 0 && beta > 0 ? alpha / beta : 0,
                };
        }
}

/* The median of an even number of runs is the geometric mean of both middle ones: that of a rate is that of a time,
 * then. */
static double median_time(const struct sizes *s, const struct size *size) {
        const struct fit_point *runs = s->points + size->first; /* sorted by time, too */
        return sqrt(runs[(size->n - 1) / 2].time * runs[size->n / 2].time);
}

static void leave_out(const struct sizes *s, struct fit *f) {
        for (size_t out = 1; out + 1 < s->n; out++) {
                struct choice rest = {0};
                for (size_t i = 0; i < s->n; i++)
                        if (i != out)
                                rest.sizes[rest.n++] = &s->list[i];
                struct pieces pieces;
                struct fit partial = {0};
                choose_pieces(&rest, &pieces);
                put_pieces(&rest, &pieces, &partial);
                double times = fit_predict(&partial, s->list[out].bytes) / median_time(s, &s->list[out]);
                f->left_out_error = fmax(f->left_out_error, fabs(times - 1));
                f->has_left_out = true;
                f->left_out_squares += log(times) * log(times);
        }
}

static void measure_scatter(const struct sizes *s, struct fit *f) {
        double off[FIT_SIZES_MAX], squares = 0;
        if (s->n <= 2 * f->n_pieces)
                return;
        for (size_t i = 0; i < s->n; i++) {
                off[i] = log(median_time(s, &s->list[i]) / fit_predict(f, s->list[i].bytes));
                f->shift += off[i] / (double) s->n;
        }
        for (size_t i = 0; i < s->n; i++)
                squares += (off[i] - f->shift) * (off[i] - f->shift);
        f->scatter_degrees = (unsigned) (s->n - 2 * f->n_pieces);
        f->scatter = sqrt(squares / f->scatter_degrees);
}

int fit_time(const struct fit_point *points, size_t n, struct fit *ret) {
        _cleanup_(sizes_deinit) struct sizes sizes = {0};
        int r = sizes_init(&sizes, points, n);
        if (r < 0)
                return r;
        struct choice all = {.n = sizes.n};
        for (size_t i = 0; i < sizes.n; i++)
                all.sizes[i] = &sizes.list[i];
        struct pieces pieces;
        choose_pieces(&all, &pieces);
        struct fit fit = {
                .n_points = n,
                .n_sizes = sizes.n,
                .bic = pieces.bic,
                .residual = (double) sqrtl(pieces.squares / (long double) n),
        };
        put_pieces(&all, &pieces, &fit);
        if (sizes.n >= 4)
                leave_out(&sizes, &fit);
        measure_scatter(&sizes, &fit);
        *ret = fit;
        return 0;
}

double fit_predict(const struct fit *fit, double size) {
        size_t k = 0;
        while (k + 1 < fit->n_pieces && size > sqrt(fit->pieces[k].size_high * fit->pieces[k + 1].size_low))
                k++;
        return fit->pieces[k].alpha + fit->pieces[k].beta * size;
}

/* Half of an interval, of errors with this sum of squares: Student's t. */
static double half_of(double squares, unsigned degrees) {
        return student_quantile((1 + FIT_PREDICTION_LEVEL) / 2, degrees) * sqrt(squares / degrees);
}

bool fit_predict_median(const struct fit *fit, double size, struct fit_prediction *ret) {
        if (fit->scatter_degrees == 0)
                return false;
        double leverage = 2 * (double) fit->n_pieces / (double) fit->n_sizes;
        double squares = fit->scatter * fit->scatter * fit->scatter_degrees;
        double half = half_of(squares, fit->scatter_degrees) * sqrt(1 + leverage);
        if (fit->has_left_out && fit->n_pieces > 1)
                half = fmin(half, half_of(fit->left_out_squares, (unsigned) fit->n_sizes - 2));
        double time = fit_predict(fit, size) * exp(fit->shift);
        *ret = (struct fit_prediction){.value = time, .low = time * exp(-half), .high = time * exp(half)};
        return true;
}

/* Times of each size, their scatter widened by what so small a sample lacks. */
static void widen(struct sizes *s) {
        for (size_t i = 0; i < s->n; i++) {
                struct fit_point *runs = s->points + s->list[i].first;
                double n = (double) s->list[i].n, mean = 0, wider = sqrt(n / (n - 1));
                for (size_t k = 0; k < s->list[i].n; k++)
                        mean += log(runs[k].time) / n;
                for (size_t k = 0; k < s->list[i].n; k++)
                        runs[k].time = exp(mean + (log(runs[k].time) - mean) * wider);
        }
}

/* Draws each size's runs anew, and fits a line to those from size_low to size_high. */
static struct line draw_line(const struct sizes *s, const struct fit_piece *piece, struct random *random) {
        struct sums sums = {0};
        for (size_t i = 0; i < s->n; i++) {
                const struct size *size = &s->list[i];
                if (size->bytes < piece->size_low || size->bytes > piece->size_high)
                        continue;
                for (size_t k = 0; k < size->n; k++)
                        sums_add_run(&sums, size->bytes, s->points[size->first + random_below(random, size->n)].time);
        }
        return fit_line(&sums);
}

static void put_interval(double *values, size_t n, double *ret_low, double *ret_high) {
        order_sort(values, n);
        *ret_low = order_quantile(values, n, (1 - ORDER_LEVEL) / 2);
        *ret_high = order_quantile(values, n, (1 + ORDER_LEVEL) / 2);
}

int fit_intervals(const struct fit_point *points, size_t n, uint64_t seed, size_t resamples, struct fit *fit) {
        _cleanup_(sizes_deinit) struct sizes sizes = {0};
        if (resamples < RESAMPLES_MIN || resamples > FIT_RESAMPLES_MAX)
                return -EINVAL;
        int r = sizes_init(&sizes, points, n);
        if (r < 0)
                return r;
        if (sizes.n != fit->n_sizes || n != fit->n_points)
                return -EINVAL;
        for (size_t i = 0; i < sizes.n; i++)
                if (sizes.list[i].n < FIT_INTERVAL_FROM)
                        return 0;
        _cleanup_free_ double *alphas = reallocarray(NULL, resamples, sizeof(*alphas));
        _cleanup_free_ double *betas = reallocarray(NULL, resamples, sizeof(*betas));
        if (!alphas || !betas)
                return -ENOMEM;
        struct random random;
        random_init(&random, seed);
        widen(&sizes);
        for (size_t k = 0; k < fit->n_pieces; k++) {
                struct fit_piece *piece = &fit->pieces[k];
                for (size_t i = 0; i < resamples; i++) {
                        struct line line = draw_line(&sizes, piece, &random);
                        alphas[i] = (double) line.alpha;
                        betas[i] = (double) line.beta;
                }
                put_interval(alphas, resamples, &piece->alpha_low, &piece->alpha_high);
                put_interval(betas, resamples, &piece->beta_low, &piece->beta_high);
                piece->has_interval = true;
        }
        return 0;
}
