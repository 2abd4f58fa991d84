/* SPDX-License-Identifier: MIT */

/* A draft of a finding: its sentence, its figures, and the members that follow from its rows. */

#include "daemon/analysis/findings-internal.h"

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

/* Whether the sentence has to name the axis' value: for the main axes, and for those that the experiment varies. */
static bool is_worth_saying(const struct draft *d, size_t axis) {
        bool always = axis == AXIS_WORKLOAD || axis == AXIS_TRANSPORT || axis == AXIS_MESSAGE_SIZE || axis == AXIS_CALL;
        return d->f.common & AXIS_BIT(axis) && (always || d->a->n_values[axis] > 1);
}

/* "same-node", "threads 4" */
static void name_value(size_t axis, const struct point *p, char *ret, size_t size) {
        char words[PHRASE_MAX];
        phrase_axis((enum axis_name) axis, p, words);
        bool plain = axis == AXIS_WORKLOAD || axis == AXIS_TRANSPORT || axis == AXIS_MESSAGE_SIZE ||
                     axis == AXIS_PLACEMENT || axis == AXIS_COPY_MODE || axis == AXIS_CALL;
        (void) snprintf(ret, size, "%s%s%s", plain ? "" : axes[axis].value.name, plain ? "" : " ", words);
}

void draft_series(const struct draft *d, uint32_t row, uint32_t varied, char *ret, size_t size) {
        size_t n = 0;
        *ret = '\0';
        for (size_t i = 0; i < AXIS_COUNT && n < size; i++) {
                char words[2 * PHRASE_MAX];
                if (varied & AXIS_BIT(i) || d->f.common & AXIS_BIT(i) || d->a->n_values[i] < 2 ||
                    d->a->values[row][i] == 0)
                        continue;
                name_value(i, &d->a->in->rows[row].point, words, sizeof(words));
                n += (size_t) snprintf(ret + n, size - n, "%s%s", n > 0 ? ", " : "", words);
        }
}

void draft_write_subject(struct draft *d, uint32_t varied, const char *before) {
        bool begun = false;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                char words[2 * PHRASE_MAX];
                if (varied & AXIS_BIT(i) || !is_worth_saying(d, i))
                        continue;
                name_value(i, &d->f.subject, words, sizeof(words));
                draft_write(d, "%s%s", !begun ? before : i == AXIS_TRANSPORT ? " over " : ", ", words);
                begun = true;
        }
}

/* The values of `axis` of the draft's rows for which `other` has a meaning, and the setting of the first of them. */
static size_t write_holders(struct draft *d, size_t other) {
        size_t n = 0;
        for (size_t i = 0; i < d->f.n_rows; i++) {
                char words[PHRASE_MAX];
                uint32_t row = d->f.rows[i];
                if (d->a->values[row][other] == 0)
                        continue;
                phrase_axis(d->f.axis, &d->a->in->rows[row].point, words);
                draft_write(d, "%s%s", n++ ? ", " : "", words);
        }
        return n;
}

/* Whether a row with the setting differs from one without such a setting. Assembling a message from fields always
 * differs; waiting by blocking does not, as mechanisms without a choice block, too. */
static bool is_a_choice(size_t axis, const struct point *p) {
        const struct value *v = &axes[axis].value;
        if (axis == AXIS_FIELDS)
                return p->fields > 1;
        return !v->type->equal(v, axis_of(&axes[axis], p), v->standard);
}

/* A setting in force that is a number; 0: the row has none, or it is not known. */
struct sized {
        double (*of)(const struct findings_row *row);
        const char *words, *unit;
        bool own; /* of a mechanism: what one transport's own grew to in its rows is no setting */
};

static double buffer_of(const struct findings_row *row) {
        return row->buffer_bytes;
}

static double pages_of(const struct findings_row *row) {
        return row->page_bytes;
}

static double gathering_of(const struct findings_row *row) {
        return row->gather_ns;
}

static double stamp_of(const struct findings_row *row) {
        return row->stamped;
}

static const struct sized sizes[] = {
        {buffer_of, "buffers of ", "bytes", true},
        {pages_of, "pages of ", "bytes", false},
        {gathering_of, "gathering for ", "ns", true},
};

static const struct findings_row *row_of(const struct draft *d, size_t at) {
        return &d->a->in->rows[d->f.rows[at]];
}

/* Whether two rows have different ones; where it is their mechanism's own, of different transports. */
static bool are_unlike(const struct draft *d, const struct sized *s) {
        const struct findings_row *first = NULL;
        bool other_value = false, other_transport = false;
        for (size_t i = 0; i < d->f.n_rows; i++) {
                const struct findings_row *row = row_of(d, i);
                if (s->of(row) == 0)
                        continue;
                first = first ? first : row;
                bool value = s->of(row) != s->of(first), transport = row->point.transport != first->point.transport;
                if (value && transport)
                        return true;
                other_value |= value;         /* and the transport of the first */
                other_transport |= transport; /* and its value: these two differ in both */
        }
        return other_value && (other_transport || !s->own);
}

/* Whether a row before this one has the same value of the draft's axis and the same of the setting: it differs in an
 * axis that the sentence leaves out. */
static bool is_repeated(const struct draft *d, double (*of)(const struct findings_row *row), size_t at) {
        const uint16_t value = d->a->values[d->f.rows[at]][d->f.axis];
        for (size_t i = 0; i < at; i++)
                if (d->a->values[d->f.rows[i]][d->f.axis] == value && of(row_of(d, i)) == of(row_of(d, at)))
                        return true;
        return false;
}

/* The first row that has this value. */
static size_t first_with(const struct draft *d, const struct sized *s, double value) {
        size_t i = 0;
        while (s->of(row_of(d, i)) != value)
                i++;
        return i;
}

/* "8 MiB (shm-sysv, mmap-file)": those from row `first` on. */
static void write_value(struct draft *d, const struct sized *s, size_t first) {
        const double value = s->of(row_of(d, first));
        const char *joint = " (";
        char words[PHRASE_MAX] = "several sizes";
        if (value > 0)
                phrase_value(value, s->unit, words);
        draft_write(d, "%s", words);
        for (size_t i = first; i < d->f.n_rows; i++) {
                if (s->of(row_of(d, i)) != value || is_repeated(d, s->of, i))
                        continue;
                phrase_axis(d->f.axis, &row_of(d, i)->point, words);
                draft_write(d, "%s%s", joint, words);
                joint = ", ";
        }
        draft_write(d, ")");
}

static const char *write_sized(struct draft *d, const char *joint, const struct sized *s) {
        if (!are_unlike(d, s))
                return joint;
        draft_write(d, "%s%s", joint, s->words);
        for (size_t i = 0, n_written = 0; i < d->f.n_rows; i++) {
                const double value = s->of(row_of(d, i));
                if (value == 0 || first_with(d, s, value) < i)
                        continue;
                draft_write(d, "%s", n_written++ ? ", " : "");
                write_value(d, s, i);
        }
        return "; ";
}

/* What some rows do and others do not: `one` does, or `many` do. */
static const char *write_doers(struct draft *d, const char *joint, double (*of)(const struct findings_row *row),
                               const char *one, const char *many) {
        size_t n = 0, n_written = 0;
        for (size_t i = 0; i < d->f.n_rows; i++)
                n += of(row_of(d, i)) > 0;
        if (n == 0 || n == d->f.n_rows)
                return joint;
        for (size_t i = 0; i < d->f.n_rows; i++) {
                char words[PHRASE_MAX];
                if (of(row_of(d, i)) == 0 || is_repeated(d, of, i))
                        continue;
                phrase_axis(d->f.axis, &row_of(d, i)->point, words);
                draft_write(d, "%s%s", n_written++ ? ", " : joint, words);
        }
        draft_write(d, "%s", n_written == 1 ? one : many);
        return "; ";
}

/* Bytes of the pieces that a row's messages are sent in; 0: they are sent whole. */
static double pieces_of(const struct findings_row *row) {
        return row->chunk_bytes > 0 && row->chunk_bytes < (double) row->point.message_size ? row->chunk_bytes : 0;
}

static bool have_same_pieces(const struct draft *d) {
        for (size_t i = 1; i < d->f.n_rows; i++)
                if (pieces_of(row_of(d, i)) != pieces_of(row_of(d, 0)))
                        return false;
        return true;
}

void draft_write_unlike(struct draft *d) {
        const char *joint = " Their settings are unlike: ";
        for (size_t x = 0; x < AXIS_COUNT; x++) {
                char words[PHRASE_MAX];
                size_t holders = 0, first = 0;
                for (size_t i = 0; i < d->f.n_rows; i++)
                        if (d->a->values[d->f.rows[i]][x] && holders++ == 0)
                                first = i;
                if (holders == 0 || holders == d->f.n_rows || !is_a_choice(x, &d->a->in->rows[d->f.rows[first]].point))
                        continue;
                phrase_axis((enum axis_name) x, &d->a->in->rows[d->f.rows[first]].point, words);
                draft_write(d, "%s%s %s is of ", joint, axes[x].value.name, words);
                (void) write_holders(d, x);
                draft_write(d, " alone");
                joint = "; ";
        }
        for (size_t i = 0; i < d->f.n_rows && !have_same_pieces(d); i++) {
                const struct findings_row *row = row_of(d, i);
                char words[PHRASE_MAX], size[PHRASE_MAX];
                if (pieces_of(row) == 0)
                        continue;
                phrase_axis(d->f.axis, &row->point, words);
                phrase_value(row->chunk_bytes, "bytes", size);
                draft_write(d, "%s%s sends a message in pieces of %s", joint, words, size);
                joint = "; ";
        }
        for (size_t i = 0; i < ELEMENTS(sizes); i++)
                joint = write_sized(d, joint, &sizes[i]);
        joint = write_doers(d, joint, gathering_of, " lets messages gather", " let messages gather");
        joint = write_doers(d, joint, stamp_of, " writes a time into each message", " write a time into each message");
        if (joint[0] == ';')
                draft_write(d, ".");
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
