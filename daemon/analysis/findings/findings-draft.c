/* SPDX-License-Identifier: MIT */

/* A draft of a finding: its sentence, its figures, and the members that follow from its rows. */

#include "daemon/analysis/findings/findings-internal.h"

#include "daemon/analysis/phrase.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void fail(struct draft *d) {
        if (d->a->error == 0)
                d->a->error = -ENOMEM;
}

/* The ids of the rows' runs; none where they are too many to be named. */
static void take_run_ids(struct draft *d) {
        size_t n = 0;
        if (d->f.n_runs > FINDINGS_RUN_IDS_MAX)
                return;
        d->f.run_ids = reallocarray(NULL, d->f.n_runs + 1, sizeof(*d->f.run_ids));
        if (!d->f.run_ids) {
                fail(d);
                return;
        }
        for (size_t i = 0; i < d->f.n_rows; i++) {
                const struct findings_row *row = &d->a->in->rows[d->f.rows[i]];
                for (size_t k = 0; k < row->n_runs; k++)
                        d->f.run_ids[n++] = row->runs[k].id;
        }
        d->f.n_run_ids = n;
}

void draft_begin(struct draft *d, struct answer *a, enum finding_kind kind, enum axis_name axis, const uint32_t *rows,
                 size_t n) {
        *d = (struct draft){.a = a, .f = {.kind = kind, .axis = axis, .confidence = CONFIDENCE_HIGH}};
        d->text = open_memstream(&d->text_data, &d->text_length);
        d->f.rows = reallocarray(NULL, n + 1, sizeof(*rows));
        if (!d->text || !d->f.rows)
                fail(d);
        d->f.common = AXIS_BIT(AXIS_COUNT) - 1;
        for (size_t i = 0; d->f.rows && i < n; i++) {
                const struct findings_row *row = &a->in->rows[rows[i]];
                d->f.rows[d->f.n_rows++] = rows[i];
                d->f.n_runs += (uint32_t) row->n_runs;
                if (findings_row_is_doubtful(row))
                        d->f.confidence = CONFIDENCE_REDUCED;
                for (size_t x = 0; x < AXIS_COUNT; x++)
                        if (a->values[rows[i]][x] == 0 || a->values[rows[i]][x] != a->values[rows[0]][x])
                                d->f.common &= ~AXIS_BIT(x);
        }
        take_run_ids(d);
        if (n > 0)
                d->f.subject = a->in->rows[rows[0]].point;
        if (kind == FINDING_UNDECIDED)
                d->f.confidence = CONFIDENCE_NONE;
}

void draft_write(struct draft *d, const char *format, ...) {
        va_list arguments;
        va_start(arguments, format);
        if (d->text && vfprintf(d->text, format, arguments) < 0)
                fail(d);
        va_end(arguments);
}

/* The main axes, which each sentence names. */
static bool is_always_named(size_t axis) {
        return axis == AXIS_WORKLOAD || axis == AXIS_TRANSPORT || axis == AXIS_MESSAGE_SIZE || axis == AXIS_CALL;
}

/* "same-node", "threads 4", "both ways together" */
static void name_value(size_t axis, const struct point *p, char ret[static PHRASE_SETTING_MAX]) {
        bool plain = axis == AXIS_WORKLOAD || axis == AXIS_TRANSPORT || axis == AXIS_MESSAGE_SIZE ||
                     axis == AXIS_PLACEMENT || axis == AXIS_COPY_MODE || axis == AXIS_CALL;
        if (axis == AXIS_DIRECTION && p->direction == DIRECTION_BOTH) /* whose figures are their sum */
                (void) snprintf(ret, PHRASE_SETTING_MAX, "both ways together");
        else if (plain)
                phrase_axis((enum axis_name) axis, p, ret);
        else
                (void) phrase_setting((enum axis_name) axis, p, ret);
}

void draft_series(const struct draft *d, uint32_t row, uint32_t varied, char *ret, size_t size) {
        size_t n = 0;
        *ret = '\0';
        for (size_t i = 0; i < AXIS_COUNT && n < size; i++) {
                char words[PHRASE_SETTING_MAX];
                if (varied & AXIS_BIT(i) || d->f.common & AXIS_BIT(i) || d->a->n_values[i] < 2 ||
                    d->a->values[row][i] == 0)
                        continue;
                name_value(i, &d->a->in->rows[row].point, words);
                n += (size_t) snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", words);
        }
}

void draft_write_subject(struct draft *d, uint32_t varied, const char *before) {
        bool begun = false;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                char words[PHRASE_SETTING_MAX];
                if (varied & AXIS_BIT(i) || !(d->f.common & AXIS_BIT(i)))
                        continue;
                if (!is_always_named(i) && d->a->n_values[i] < 2) /* the sentence is clear without it */
                        continue;
                name_value(i, &d->f.subject, words);
                draft_write(d, "%s%s", !begun ? before : i == AXIS_TRANSPORT ? " over " : ", ", words);
                begun = true;
        }
}

/* Whether all rows have the axis, with one value. */
static bool is_of_all(const struct findings_input *in, const struct axis *a) {
        const void *first = in->n_rows > 0 ? axis_of(a, &in->rows[0].point) : NULL;
        for (size_t i = 0; i < in->n_rows; i++)
                if (!axis_applies(a, &in->rows[i].point) ||
                    !a->value.type->equal(&a->value, axis_of(a, &in->rows[i].point), first))
                        return false;
        return in->n_rows > 0;
}

/* A placement by hand is longer than a phrase. */
static int write_placement(FILE *f, const struct point *p) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        _cleanup_free_ char *text = NULL;
        json_writer_init(&w);
        axes[AXIS_PLACEMENT].value.type->write(&axes[AXIS_PLACEMENT].value, &w, axis_of(&axes[AXIS_PLACEMENT], p));
        int r = json_writer_steal(&w, &text, NULL);
        if (r < 0)
                return r;
        return fprintf(f, "placement %s", text) < 0 ? -ENOMEM : 0;
}

static int write_constant(FILE *f, const struct findings_input *in, size_t axis) {
        const struct point *p = &in->rows[0].point;
        char words[PHRASE_SETTING_MAX];
        if (ftell(f) > 0 && fputs(", ", f) < 0)
                return -ENOMEM;
        if (axis == AXIS_PLACEMENT && p->placement.kind == PLACEMENT_EXPLICIT)
                return write_placement(f, p);
        if (axis == AXIS_PLACEMENT || axis == AXIS_COPY_MODE) /* a word that stands alone in a sentence */
                (void) phrase_setting((enum axis_name) axis, p, words);
        else
                name_value(axis, p, words);
        return fputs(words, f) < 0 ? -ENOMEM : 0;
}

int draft_constants(const struct findings_input *in, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        int r = f ? 0 : -ENOMEM;
        for (size_t i = 0; r == 0 && i < AXIS_COUNT; i++) {
                const struct axis *a = &axes[i];
                if (is_always_named(i) || !is_of_all(in, a))
                        continue;
                if (i == AXIS_PLACEMENT ||
                    !a->value.type->equal(&a->value, axis_of(a, &in->rows[0].point), a->value.standard))
                        r = write_constant(f, in, i);
        }
        if (f && fclose(f) != 0)
                r = -ENOMEM;
        if (r == 0)
                *ret = util_steal(&text);
        return r;
}

void draft_write_unlike(struct draft *d) {
        if (!d->text)
                return;
        struct unlike_row *rows = reallocarray(NULL, d->f.n_rows + 1, sizeof(*rows));
        char(*names)[PHRASE_MAX] = reallocarray(NULL, d->f.n_rows + 1, sizeof(*names));
        for (size_t i = 0; rows && names && i < d->f.n_rows; i++) {
                const struct findings_row *row = &d->a->in->rows[d->f.rows[i]];
                phrase_axis(d->f.axis, &row->point, names[i]);
                rows[i] = (struct unlike_row){.point = &row->point, .in_force = &row->in_force, .name = names[i]};
        }
        if (!rows || !names)
                fail(d);
        else if (unlike_write(d->text, rows, d->f.n_rows, true, " Their settings are unlike: "))
                draft_write(d, ".");
        free(rows);
        free(names);
}

void draft_figure(struct draft *d, const char *name, const char *of, const char *unit, double value) {
        struct finding_figure *figures = reallocarray(d->f.figures, d->f.n_figures + 1, sizeof(*figures));
        if (!figures) {
                fail(d);
                return;
        }
        d->f.figures = figures;
        figures[d->f.n_figures] = (struct finding_figure){.unit = unit, .value = value};
        (void) snprintf(figures[d->f.n_figures].name, sizeof(figures->name), "%s", name);
        (void) snprintf(figures[d->f.n_figures++].of, sizeof(figures->of), "%s", of ? of : "");
}

void draft_interval(struct draft *d, double low, double high, double level) {
        if (d->f.n_figures == 0)
                return;
        struct finding_figure *last = &d->f.figures[d->f.n_figures - 1];
        last->has_interval = true;
        last->low = low;
        last->high = high;
        last->level = level;
}

void draft_statistic(struct draft *d, enum figure figure, uint32_t row, const char *of) {
        struct statistic s = answer_statistic(d->a, row, figure);
        if (s.n == 0)
                return;
        char name[48];
        figure_name(figure, name, sizeof(name));
        draft_figure(d, name, of, figure_terms[figure].unit, s.median);
        if (s.has_ci95)
                draft_interval(d, s.ci95_low, s.ci95_high, s.level);
}

void draft_ratio(struct draft *d, const char *name, const char *of, const struct comparison *c) {
        draft_figure(d, name, of, "ratio", c->ratio);
        if (c->has_interval)
                draft_interval(d, c->low, c->high, c->level);
}

void draft_end(struct draft *d) {
        struct findings *out = d->a->out;
        if (!d->text || fclose(d->text) != 0)
                fail(d);
        d->f.sentence = d->text_data;
        struct finding *items = reallocarray(out->items, out->n + 1, sizeof(*items));
        if (!items)
                fail(d);
        else
                out->items = items;
        if (!items || !d->f.sentence) {
                fail(d);
                free(d->f.sentence);
                free(d->f.figures);
                free(d->f.rows);
                free(d->f.run_ids);
                return;
        }
        out->items[out->n++] = d->f;
}
