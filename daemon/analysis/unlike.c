/* SPDX-License-Identifier: MIT */

/* Unlike settings in words; see the header. */

#include "daemon/analysis/unlike.h"

#include "daemon/analysis/phrase.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <string.h>

struct words {
        FILE *f;
        const struct unlike_row *rows;
        size_t n;
        const char *joint; /* before the next setting */
};

/* A setting in force that is a number; 0: the row has none, or it is not known. */
struct sized {
        double (*of)(const struct unlike_row *row);
        const char *words, *unit;
        bool own; /* of a mechanism: what one transport's own grew to in its rows is no setting */
};

static double buffer_of(const struct unlike_row *row) {
        return row->in_force->buffer_bytes;
}

static double pages_of(const struct unlike_row *row) {
        return row->in_force->page_bytes;
}

static double gathering_of(const struct unlike_row *row) {
        return row->in_force->gather_ns;
}

static double stamp_of(const struct unlike_row *row) {
        return row->in_force->stamped;
}

/* Bytes of the pieces that a row's messages are sent in; 0: they are sent whole. */
static double pieces_of(const struct unlike_row *row) {
        const double bytes = row->in_force->chunk_bytes;
        return bytes > 0 && bytes < (double) row->point->message_size ? bytes : 0;
}

static const struct sized sizes[] = {
        {buffer_of, "buffers of ", "bytes", true},
        {pages_of, "pages of ", "bytes", false},
        {gathering_of, "gathering for ", "ns", true},
};

/* What some rows do and others do not: `one` does, or `many` do. */
static const struct {
        double (*of)(const struct unlike_row *row);
        const char *one, *many;
} doings[] = {
        {gathering_of, " lets messages gather", " let messages gather"},
        {stamp_of, " writes a time into each message", " write a time into each message"},
};

/* Whether a row with the setting differs from one without such a setting. Assembling a message from fields always
 * differs; waiting by blocking does not, as mechanisms without a choice block, too. */
static bool is_a_choice(size_t axis, const struct point *p) {
        const struct value *v = &axes[axis].value;
        if (axis == AXIS_FIELDS)
                return p->fields > 1;
        return !v->type->equal(v, axis_of(&axes[axis], p), v->standard);
}

/* Whether a row of the same name before this one has the same: it differs in what the sentence leaves out. */
static bool is_repeated(const struct words *w, double (*of)(const struct unlike_row *row), size_t at) {
        for (size_t i = 0; i < at; i++)
                if (strcmp(w->rows[i].name, w->rows[at].name) == 0 && of(&w->rows[i]) == of(&w->rows[at]))
                        return true;
        return false;
}

static bool is_held_before(const struct words *w, size_t axis, size_t at) {
        for (size_t i = 0; i < at; i++)
                if (axis_applies(&axes[axis], w->rows[i].point) && strcmp(w->rows[i].name, w->rows[at].name) == 0)
                        return true;
        return false;
}

/* An axis that has a meaning for some of the rows alone. */
static void write_axis(struct words *w, size_t axis) {
        char words[PHRASE_SETTING_MAX];
        size_t holders = 0, first = 0, n_written = 0;
        for (size_t i = 0; i < w->n; i++)
                if (axis_applies(&axes[axis], w->rows[i].point) && holders++ == 0)
                        first = i;
        if (holders == 0 || holders == w->n || !is_a_choice(axis, w->rows[first].point))
                return;
        (void) fprintf(w->f, "%s%s is of ", w->joint,
                       phrase_setting((enum axis_name) axis, w->rows[first].point, words));
        for (size_t i = 0; i < w->n; i++)
                if (axis_applies(&axes[axis], w->rows[i].point) && !is_held_before(w, axis, i))
                        (void) fprintf(w->f, "%s%s", n_written++ ? ", " : "", w->rows[i].name);
        (void) fputs(" alone", w->f);
        w->joint = "; ";
}

static void write_pieces(struct words *w) {
        bool unlike = false;
        for (size_t i = 1; i < w->n; i++)
                unlike |= pieces_of(&w->rows[i]) != pieces_of(&w->rows[0]);
        for (size_t i = 0; unlike && i < w->n; i++) {
                char size[PHRASE_MAX];
                if (pieces_of(&w->rows[i]) == 0 || is_repeated(w, pieces_of, i))
                        continue;
                phrase_value(pieces_of(&w->rows[i]), "bytes", size);
                (void) fprintf(w->f, "%s%s sends a message in pieces of %s", w->joint, w->rows[i].name, size);
                w->joint = "; ";
        }
}

/* Whether two rows have different ones; where it is their mechanism's own, of different transports. */
static bool are_unlike(const struct words *w, const struct sized *s) {
        const struct unlike_row *first = NULL;
        bool other_value = false, other_transport = false;
        for (size_t i = 0; i < w->n; i++) {
                const struct unlike_row *row = &w->rows[i];
                if (s->of(row) == 0)
                        continue;
                first = first ? first : row;
                bool value = s->of(row) != s->of(first), transport = row->point->transport != first->point->transport;
                if (value && transport)
                        return true;
                other_value |= value;         /* and the transport of the first */
                other_transport |= transport; /* and its value: these two differ in both */
        }
        return other_value && (other_transport || !s->own);
}

/* The first row that has this value. */
static size_t first_with(const struct words *w, const struct sized *s, double value) {
        size_t i = 0;
        while (s->of(&w->rows[i]) != value)
                i++;
        return i;
}

/* "8 MiB (shm-sysv, mmap-file)": those from row `first` on. */
static void write_value(const struct words *w, const struct sized *s, size_t first) {
        const double value = s->of(&w->rows[first]);
        const char *joint = " (";
        char words[PHRASE_MAX] = "several sizes";
        if (value > 0)
                phrase_value(value, s->unit, words);
        (void) fputs(words, w->f);
        for (size_t i = first; i < w->n; i++) {
                if (s->of(&w->rows[i]) != value || is_repeated(w, s->of, i))
                        continue;
                (void) fprintf(w->f, "%s%s", joint, w->rows[i].name);
                joint = ", ";
        }
        (void) fputs(")", w->f);
}

static void write_sized(struct words *w, const struct sized *s) {
        if (!are_unlike(w, s))
                return;
        (void) fprintf(w->f, "%s%s", w->joint, s->words);
        for (size_t i = 0, n_written = 0; i < w->n; i++) {
                const double value = s->of(&w->rows[i]);
                if (value == 0 || first_with(w, s, value) < i)
                        continue;
                (void) fputs(n_written++ ? ", " : "", w->f);
                write_value(w, s, i);
        }
        w->joint = "; ";
}

static void write_doers(struct words *w, size_t doing) {
        double (*of)(const struct unlike_row *row) = doings[doing].of;
        size_t n = 0, n_written = 0;
        for (size_t i = 0; i < w->n; i++)
                n += of(&w->rows[i]) > 0;
        if (n == 0 || n == w->n)
                return;
        for (size_t i = 0; i < w->n; i++)
                if (of(&w->rows[i]) > 0 && !is_repeated(w, of, i))
                        (void) fprintf(w->f, "%s%s", n_written++ ? ", " : w->joint, w->rows[i].name);
        (void) fputs(n_written == 1 ? doings[doing].one : doings[doing].many, w->f);
        w->joint = "; ";
}

bool unlike_write(FILE *f, const struct unlike_row *rows, size_t n, bool with_axes, const char *before) {
        struct words w = {.f = f, .rows = rows, .n = n, .joint = before};
        for (size_t x = 0; with_axes && x < AXIS_COUNT; x++)
                write_axis(&w, x);
        write_pieces(&w);
        for (size_t i = 0; i < ELEMENTS(sizes); i++)
                write_sized(&w, &sizes[i]);
        for (size_t i = 0; i < ELEMENTS(doings); i++)
                write_doers(&w, i);
        return w.joint != before;
}
