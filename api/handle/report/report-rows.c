/* SPDX-License-Identifier: MIT */

/* The rows of results in a report: a table that needs no script, and the JSON that the charts are drawn from. */

#include "api/handle/histograms.h"
#include "api/handle/render/render.h"
#include "api/handle/report/report.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define JSON_MAX 380000u    /* bytes of the rows' JSON */
#define CURVES_MAX 10u      /* rows, the first, that have the whole curve of their latencies */
#define CURVE_BYTES 6000u   /* that a curve takes at most, beside JSON_MAX */
#define TABLE_MAX 120000u   /* bytes of the table */
#define PRINTED_LINES 50u   /* of rows, what goes on half a sheet; the rows after these are on the screen alone */
#define PRINTED_ROWS 36u    /* of one line each, which have a rule between them */
#define WRAPPED_LETTERS 34u /* that a line of a cell has on paper, where its text is wrapped */
#define PRINTED_FIGURES 4u
#define POINTS_AT_A_TIME 8u

/* The units that a reader sees, and the divisor of each. */
static const struct {
        const char *unit, *read;
        double divisor;
} units[] = {{"bytes/s", "MB/s", 1e6}, {"ns", "µs", 1e3}, {"count", "", 1}};

/* ---- reading ---- */

struct reading {
        struct report_rows *rows;
        struct service *service;
        struct histogram *latency;
        struct refusal *refusal;
};

/* Damaged samples give no curve; the report does not depend on it. */
static int read_curve(const struct reading *of, const struct result_record *record, bool *ret) {
        *ret = of->rows->n_curves < CURVES_MAX && record->figures[FIGURE_LATENCY_P50].n > 0;
        int k = *ret ? histograms_of_row(of->service, record, of->latency, of->refusal) : 0;
        if (k != -EBADMSG)
                return k;
        *of->refusal = (struct refusal){0};
        *ret = false;
        return 0;
}

static int append_json(const struct reading *of, const struct result_record *record) {
        _cleanup_(json_writer_deinit) struct json_writer w = {0};
        _cleanup_free_ char *json = NULL;
        struct report_rows *rows = of->rows;
        size_t before = rows->json.length;
        bool curve;
        if (rows->n_json < rows->n) /* an earlier one had no room */
                return 0;
        int k = read_curve(of, record, &curve);
        if (k < 0)
                return k;
        render_result_charted(&w, record, curve ? of->latency : NULL);
        k = json_writer_steal(&w, &json, NULL);
        if (k < 0)
                return k;
        text_puts(&rows->json, before > 0 ? "," : "");
        text_script_json(&rows->json, json);
        rows->n_curves += curve;
        if (rows->json.length > JSON_MAX + rows->n_curves * CURVE_BYTES)
                rows->json.length = before;
        else
                rows->n_json++;
        return rows->json.error;
}

static int visit_row(void *userdata, const struct result_record *record) {
        const struct reading *of = userdata;
        struct report_rows *rows = of->rows;
        rows->cut = rows->n == REPORT_ROWS_MAX;
        if (rows->cut)
                return 1;
        int k = append_json(of, record);
        if (k >= 0 && !util_grow(rows->items, rows->n, rows->size))
                k = -ENOMEM;
        if (k < 0)
                return k;
        struct report_row *row = &rows->items[rows->n];
        *row = (struct report_row){.runs = record->runs, .runs_planned = record->runs_planned};
        rows->n++;
        memcpy(row->figures, record->figures, sizeof(row->figures));
        row->error = record->error ? strdup(record->error) : NULL;
        if (record->error && !row->error)
                return -ENOMEM;
        k = json_parse_stored(record->point_json, &row->point);
        return k < 0 ? k : json_parse_stored(record->flags_json, &row->flags);
}

int report_rows_load(struct service *s, int64_t experiment_id, struct report_rows *ret, struct refusal *r) {
        _cleanup_free_ struct histogram *latency = malloc(sizeof(*latency));
        struct reading of = {ret, s, latency, r};
        size_t before;
        int k = 0;
        *ret = (struct report_rows){0};
        if (!latency)
                return -ENOMEM;
        do {
                before = ret->n;
                k = service_results(s, experiment_id, (uint32_t) before, POINTS_AT_A_TIME, visit_row, &of, r);
        } while (k == 0 && ret->n > before);
        return k < 0 ? k : 0;
}

void report_rows_deinit(struct report_rows *rows) {
        for (size_t i = 0; i < rows->n; i++) {
                json_free(rows->items[i].point);
                json_free(rows->items[i].flags);
                free(rows->items[i].error);
        }
        free(rows->items);
        text_deinit(&rows->json);
        *rows = (struct report_rows){0};
}

/* ---- words ---- */

const struct json *report_member(const struct json *object, const char *key) {
        return object && json_type(object) == JSON_OBJECT ? json_get(object, key) : NULL;
}

static void put_json(struct text *t, const struct json *value) {
        _cleanup_free_ char *json = json_print(value);
        if (!json && t->error == 0)
                t->error = -ENOMEM;
        text_html(t, json);
}

/* "sender CPU 0": an end's place, "bind 0" behind it where its memory is bound. */
static void put_end(struct text *t, const struct json *end) {
        const struct json *cpu = report_member(end, "cpu"), *node = report_member(end, "node");
        const struct json *memory = report_member(end, "memory");
        text_html(t, json_key(end));
        text_puts(t, cpu ? " CPU " : node ? " node " : "");
        if (cpu || node)
                put_json(t, cpu ? cpu : node);
        if (memory && report_member(memory, "nodes") && report_member(memory, "policy")) {
                text_puts(t, ", memory ");
                report_put_value(t, report_member(memory, "policy"));
                text_puts(t, " ");
                put_json(t, report_member(memory, "nodes"));
        }
}

static bool is_placement_by_hand(const struct json *object) {
        for (const struct json *i = json_first(object); i; i = json_next(i))
                if (json_type(i) == JSON_OBJECT && !report_member(i, "cpu") && !report_member(i, "node"))
                        return false;
        return json_first(object) && json_type(json_first(object)) == JSON_OBJECT;
}

void report_put_value(struct text *t, const struct json *value) {
        const char *word;
        if (!value || json_type(value) == JSON_NULL)
                return;
        if (json_as_string(value, &word) == 0) {
                text_html(t, word);
        } else if (json_type(value) == JSON_OBJECT && is_placement_by_hand(value)) {
                for (const struct json *i = json_first(value); i; i = json_next(i)) {
                        put_end(t, i);
                        text_puts(t, json_next(i) ? "; " : "");
                }
        } else {
                put_json(t, value);
        }
}

/* ---- the table ---- */

/* The table's columns. */
struct columns {
        const char *fields[AXIS_COUNT]; /* that differ between the points */
        size_t n_fields;
        struct common {
                const char *name;
                const struct json *value;
                bool lacking; /* some points have no such field */
        } common[AXIS_COUNT]; /* that all have alike that have it */
        size_t n_common;
        enum figure figures[FIGURE_COUNT];
        size_t n_figures;
};

static bool same_value(const struct json *a, const struct json *b) {
        _cleanup_free_ char *one = a ? json_print(a) : NULL;
        _cleanup_free_ char *other = b ? json_print(b) : NULL;
        return !a == !b && (!one || !other ? one == other : strcmp(one, other) == 0);
}

/* The usual figures that a row has: latencies, which come first where they were measured, or all others. */
static void add_figures(struct columns *c, const struct report_rows *rows, bool latencies) {
        for (enum figure f = 0; f < FIGURE_COUNT; f++) {
                bool is_latency = figure_terms[f].group == FIGURES_LATENCY, has = false;
                for (size_t k = 0; figure_terms[f].usual && is_latency == latencies && k < rows->n && !has; k++)
                        has = rows->items[k].figures[f].n > 0;
                if (has)
                        c->figures[c->n_figures++] = f;
        }
}

/* A field that some rows lack varies among the others only: which have it follows from their further fields. */
static struct columns columns_of(const struct report_rows *rows) {
        struct columns c = {0};
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const char *name = axes[i].value.name;
                const struct json *first = NULL;
                bool varies = false, lacking = false;
                for (size_t k = 0; k < rows->n && !varies; k++) {
                        const struct json *value = report_member(rows->items[k].point, name);
                        lacking |= !value;
                        varies = first && value && !same_value(first, value);
                        first = first ? first : value;
                }
                if (varies)
                        c.fields[c.n_fields++] = name;
                else if (first)
                        c.common[c.n_common++] = (struct common){name, first, lacking};
        }
        add_figures(&c, rows, true);
        add_figures(&c, rows, false);
        return c;
}

static double divisor_of(enum figure f, const char **ret_unit) {
        *ret_unit = figure_terms[f].unit;
        for (size_t i = 0; i < ELEMENTS(units); i++)
                if (strcmp(units[i].unit, figure_terms[f].unit) == 0) {
                        *ret_unit = units[i].read;
                        return units[i].divisor;
                }
        return 1;
}

static void put_field_title(struct text *t, const char *name) {
        for (; *name; name++)
                text_append(t, *name == '_' ? " " : name, 1);
}

static void put_head(struct text *t, const struct columns *c) {
        text_puts(t, "<thead><tr>");
        for (size_t i = 0; i < c->n_fields; i++) {
                text_puts(t, "<th scope=\"col\">");
                put_field_title(t, c->fields[i]);
                if (strcmp(c->fields[i], axes[AXIS_MESSAGE_SIZE].value.name) == 0)
                        text_puts(t, "<span class=\"unit\">bytes</span>");
                text_puts(t, "</th>");
        }
        text_puts(t, "<th scope=\"col\" class=\"number\">runs</th>");
        for (size_t i = 0; i < c->n_figures; i++) {
                const char *unit;
                (void) divisor_of(c->figures[i], &unit);
                text_printf(t, "<th scope=\"col\" class=\"number%s\">", i >= PRINTED_FIGURES ? " screen" : "");
                text_html(t, figure_terms[c->figures[i]].title);
                if (*unit)
                        text_printf(t, "<span class=\"unit\">%s</span>", unit);
                text_puts(t, "</th>");
        }
        text_puts(t, "<th scope=\"col\">notes</th></tr></thead>");
}

/* The median, and below it the interval, or the extremes where none is claimed. */
static void put_statistic(struct text *t, const struct statistic *s, double divisor) {
        if (s->n == 0) {
                text_puts(t, "–");
                return;
        }
        text_number(t, s->median / divisor);
        if (s->n < 2)
                return;
        text_puts(t, s->has_ci95 ? " <span class=\"range\">[" : " <span class=\"range\">");
        text_number(t, (s->has_ci95 ? s->ci95_low : s->min) / divisor);
        text_puts(t, " – ");
        text_number(t, (s->has_ci95 ? s->ci95_high : s->max) / divisor);
        text_puts(t, s->has_ci95 ? "]</span>" : "</span>");
}

static bool has_flag(const struct report_row *row, const char *flag) {
        const char *word;
        for (const struct json *i = row->flags ? json_first(row->flags) : NULL; i; i = json_next(i))
                if (json_as_string(i, &word) == 0 && strcmp(word, flag) == 0)
                        return true;
        return false;
}

/* Whether several rows were measured and all of them have the flag. */
static bool all_have(const struct report_rows *rows, const char *flag) {
        size_t measured = 0;
        for (size_t i = 0; i < rows->n; i++) {
                if (rows->items[i].runs == 0)
                        continue;
                if (!has_flag(&rows->items[i], flag))
                        return false;
                measured++;
        }
        return measured > 1;
}

/* The row's flags that all of them have, or those that are its own. */
static void put_flags(struct text *t, const struct report_rows *rows, const struct report_row *row, bool shared) {
        const char *word;
        for (const struct json *i = row->flags ? json_first(row->flags) : NULL; i; i = json_next(i))
                if (json_as_string(i, &word) == 0 && all_have(rows, word) == shared) {
                        text_puts(t, "<span class=\"flag\">");
                        text_html(t, word);
                        text_puts(t, "</span> ");
                }
}

/* Lines that text of these letters takes where it is wrapped. */
static size_t lines_of_text(size_t letters) {
        return (letters + WRAPPED_LETTERS - 1) / WRAPPED_LETTERS;
}

/* Lines that the notes of a row take on paper: a flag is not broken. */
static size_t lines_of_notes(const struct report_rows *rows, const struct report_row *row) {
        size_t lines = 0, room = 0;
        const char *word;
        for (const struct json *i = row->flags ? json_first(row->flags) : NULL; i; i = json_next(i)) {
                if (json_as_string(i, &word) < 0 || all_have(rows, word))
                        continue;
                size_t letters = strlen(word) + 2; /* and what parts it from the next */
                if (letters > room) {
                        lines++;
                        room = WRAPPED_LETTERS + 2;
                }
                room -= letters < room ? letters : room;
        }
        return lines + (row->error ? lines_of_text(strlen(row->error)) : 0);
}

/* Lines that a row takes on paper, those of its highest cell. */
static size_t lines_of(const struct report_rows *rows, const struct report_row *row, const struct columns *c) {
        size_t most = lines_of_notes(rows, row);
        for (size_t i = 0; i < c->n_fields; i++) {
                struct text cell = {0};
                report_put_value(&cell, report_member(row->point, c->fields[i]));
                most = lines_of_text(cell.length) > most ? lines_of_text(cell.length) : most;
                text_deinit(&cell);
        }
        return most > 0 ? most : 1;
}

/* How many of the first rows are printed. */
static size_t count_printed(const struct report_rows *rows, const struct columns *c) {
        size_t n = 0, lines = 0;
        while (n < rows->n && n < PRINTED_ROWS) {
                lines += lines_of(rows, &rows->items[n], c);
                if (lines > PRINTED_LINES)
                        break;
                n++;
        }
        return n;
}

static void put_row(struct text *t, const struct report_rows *rows, size_t at, const struct columns *c, bool printed) {
        const struct report_row *row = &rows->items[at];
        text_puts(t, printed ? "<tr>" : "<tr class=\"screen\">");
        for (size_t i = 0; i < c->n_fields; i++) {
                const struct json *value = report_member(row->point, c->fields[i]);
                text_puts(t, value && json_type(value) == JSON_OBJECT ? "<td class=\"wrap\">" : "<td>");
                report_put_value(t, value);
                text_puts(t, "</td>");
        }
        text_printf(t, "<td class=\"number\">%u", row->runs);
        if (row->runs != row->runs_planned)
                text_printf(t, " of %u", row->runs_planned);
        text_puts(t, "</td>");
        for (size_t i = 0; i < c->n_figures; i++) {
                const char *unit;
                double divisor = divisor_of(c->figures[i], &unit);
                text_printf(t, "<td class=\"number%s\">", i >= PRINTED_FIGURES ? " screen" : "");
                put_statistic(t, &row->figures[c->figures[i]], divisor);
                text_puts(t, "</td>");
        }
        text_puts(t, "<td class=\"wrap\">");
        put_flags(t, rows, row, false);
        text_html(t, row->error);
        text_puts(t, "</td></tr>\n");
}

static void put_common(struct text *t, const struct report_rows *rows, const struct columns *c) {
        text_puts(t, "<p class=\"caption\">Of all points: ");
        for (size_t i = 0; i < c->n_common; i++) {
                text_puts(t, i > 0 ? ", " : "");
                put_field_title(t, c->common[i].name);
                text_puts(t, " ");
                report_put_value(t, c->common[i].value);
                text_puts(t, c->common[i].lacking ? " where it applies" : "");
        }
        text_puts(t, ".</p>\n");
        for (size_t i = 0; i < rows->n; i++)
                if (rows->items[i].runs > 0) { /* what they share, the first has */
                        text_puts(t, "<p class=\"caption\">");
                        put_flags(t, rows, &rows->items[i], true);
                        text_puts(t, "</p>\n");
                        break;
                }
}

void report_put_rows(struct text *t, const struct report_rows *rows) {
        struct columns c = columns_of(rows);
        size_t at = 0, begin = t->length;
        if (rows->n == 0) {
                text_puts(t, "<p class=\"soft\">No point was planned.</p>");
                return;
        }
        const size_t printed = count_printed(rows, &c);
        put_common(t, rows, &c);
        text_puts(t, "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"Table of results\"><table>");
        put_head(t, &c);
        text_puts(t, "<tbody>\n");
        for (; at < rows->n && t->length - begin < TABLE_MAX; at++)
                put_row(t, rows, at, &c, at < printed);
        text_puts(
                t,
                "</tbody></table></div>\n<p class=\"hint\">The median of the runs; in brackets its interval, else the "
                "smallest and the largest run.");
        if (rows->cut || at < rows->n)
                text_printf(t, " The first %zu points are here; GET /experiments/{id}/results has all of them.", at);
        if (rows->n_json != at || rows->cut) /* fewer than the table, or more */
                text_printf(t, " The charts have the first %zu.", rows->n_json);
        if (at > printed)
                text_printf(t,
                            "<span class=\"paper\"> %zu more points are in the file that this was printed from.</span>",
                            at - printed);
        text_puts(t, "</p>");
}
