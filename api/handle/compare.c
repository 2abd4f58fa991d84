/* SPDX-License-Identifier: MIT */

/* Comparisons: what was asked, and the answer as JSON, a row at a time. */

#include "api/handle/handlers.h"
#include "api/handle/render.h"
#include "api/http/feed.h"
#include "schema/util.h"

#include <string.h>

static const char *const side_names[SIDE_COUNT] = {[SIDE_BASELINE] = "baseline", [SIDE_CANDIDATE] = "candidate"};

/* ---- the query ---- */

/* A positive decimal; 0 when it was not given. */
static int read_id(const struct request *q, const char *name, int64_t *ret, struct refusal *r) {
        const char *text = request_parameter(q, name);
        *ret = 0;
        if (text && (decimal_parse(text, ret) < 0 || *ret <= 0))
                return refuse_parameter(r, name, text, "an experiment's id");
        return 0;
}

static int read_margin(const struct request *q, double *ret, struct refusal *r) {
        const char *text = request_parameter(q, "delta");
        *ret = COMPARE_MARGIN;
        if (!text)
                return 0;
        struct json *value = NULL;
        int k = json_parse(text, strlen(text), &value, NULL);
        double margin = 0;
        if (k == 0)
                (void) json_as_double(value, &margin); /* what is no number stays 0 */
        json_free(value);
        if (k == -ENOMEM)
                return k;
        if (!(margin > 0 && margin < 1))
                return refuse_parameter(r, "delta", text, "a number above 0 and below 1");
        *ret = margin;
        return 0;
}

static int read_force(const struct request *q, bool *ret, struct refusal *r) {
        const char *text = request_parameter(q, "force");
        *ret = text && strcmp(text, "true") == 0;
        return !text || *ret || strcmp(text, "false") == 0 ? 0 : refuse_parameter(r, "force", text, "true or false");
}

/* Of an axis: the value itself is judged where the axis is known. */
static int read_word(const struct request *q, const char *name, const char *wanted, const char **ret,
                     struct refusal *r) {
        *ret = request_parameter(q, name);
        if (*ret && (*ret)[strspn(*ret, " \t\r\n")] == '\0')
                return refuse_parameter(r, name, *ret, "%s", wanted);
        return 0;
}

static int refuse_missing(struct refusal *r, const char *name, const char *wanted) {
        return refuse(r, 400, "missing-parameter", "", "The query parameter \"%s\" is missing: %s.", name, wanted);
}

static int read_axis(const struct request *q, struct comparison_query *c, int64_t experiment, struct refusal *r) {
        static const char wanted[] = "a value of the axis";
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                int k = read_word(q, side_names[side], wanted, &c->values[side], r);
                if (k < 0)
                        return k;
                if (!c->values[side])
                        return refuse_missing(r, side_names[side], wanted);
        }
        if (experiment == 0)
                return refuse_missing(r, "experiment", "the id of the experiment that has the axis");
        c->experiments[SIDE_BASELINE] = c->experiments[SIDE_CANDIDATE] = experiment;
        return 0;
}

static int read_experiments(const struct request *q, struct comparison_query *c, int64_t experiment,
                            struct refusal *r) {
        const char *baseline = request_parameter(q, side_names[SIDE_BASELINE]);
        int k = read_word(q, side_names[SIDE_BASELINE], "an experiment's id or a baseline's name", &baseline, r);
        if (k == 0 && baseline && baseline[strspn(baseline, "0123456789")] != '\0')
                c->baseline = baseline;
        else if (k == 0)
                k = read_id(q, side_names[SIDE_BASELINE], &c->experiments[SIDE_BASELINE], r);
        if (k == 0)
                k = read_id(q, side_names[SIDE_CANDIDATE], &c->experiments[SIDE_CANDIDATE], r);
        if (k < 0)
                return k;
        if (experiment > 0)
                return refuse_missing(r, "axis", "the axis whose values are compared within the experiment");
        for (size_t side = 0; side < SIDE_COUNT; side++)
                if (c->experiments[side] == 0 && !(side == SIDE_BASELINE && c->baseline))
                        return refuse_missing(r, side_names[side], "an experiment's id");
        return 0;
}

static int read_query(const struct request *q, struct comparison_query *ret, struct refusal *r) {
        int64_t experiment;
        int k = read_margin(q, &ret->margin, r);
        if (k == 0)
                k = read_force(q, &ret->force, r);
        if (k == 0)
                k = read_id(q, "experiment", &experiment, r);
        if (k == 0)
                k = read_word(q, "axis", "the name of an axis", &ret->axis, r);
        if (k < 0)
                return k;
        return ret->axis ? read_axis(q, ret, experiment, r) : read_experiments(q, ret, experiment, r);
}

/* ---- the answer ---- */

static void put_experiment(struct json_writer *w, const struct comparison_answer *a, enum comparison_side side) {
        const struct comparison_experiment *e = &a->experiments[side];
        json_put_key(w, side_names[side]);
        json_object_begin(w);
        json_member_i64(w, "experiment_id", e->id);
        json_member_string(w, "name", e->name);
        json_member_string(w, "state", e->state);
        json_member_string(w, "version", e->version);
        json_member_time(w, "created_at", e->created_at);
        json_member_raw(w, "value", a->values[side]);
        json_object_end(w);
}

static void put_differences(struct json_writer *w, const struct difference_list *list, bool environment) {
        json_put_key(w, "differences");
        json_array_begin(w);
        for (size_t i = 0; i < list->n; i++) {
                const struct difference *d = &list->items[i];
                json_object_begin(w);
                json_member_string(w, "key", d->key);
                for (size_t side = 0; side < SIDE_COUNT; side++)
                        json_member_raw(w, side_names[side], d->values[side]);
                if (environment)
                        json_member_bool(w, "unlike", d->unlike);
                json_object_end(w);
        }
        json_array_end(w);
}

static void put_head(struct json_writer *w, const struct comparison_answer *a) {
        json_put_key(w, "environment");
        json_object_begin(w);
        json_member_bool(w, "alike", a->alike);
        json_member_bool(w, "forced", a->forced);
        put_differences(w, &a->environment, true);
        json_object_end(w);
        json_put_key(w, "settings");
        json_object_begin(w);
        put_differences(w, &a->settings, false);
        json_object_end(w);
        json_member_bool(w, "interleaved", a->axis != NULL); /* their runs took turns: drift is in both sides */
        json_member_string(w, "axis", a->axis);
        for (size_t side = 0; side < SIDE_COUNT; side++)
                put_experiment(w, a, (enum comparison_side) side);
        json_member_double(w, "delta", a->margin);
        json_member_string(w, "correction", "holm");
        json_member_u64(w, "tests", a->n_tests);
        json_put_key(w, "verdicts");
        json_object_begin(w);
        for (size_t v = 0; v < ELEMENTS(a->verdicts); v++)
                json_member_u64(w, comparison_verdict((enum compare_verdict) v), a->verdicts[v]);
        json_object_end(w);
}

static void put_interval(struct json_writer *w, const char *key, bool known, double low, double high, double level) {
        json_put_key(w, key);
        if (!known) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_double(w, "low", low);
        json_member_double(w, "high", high);
        json_member_double(w, "level", level);
        json_object_end(w);
}

static void put_undecided(struct json_writer *w, const struct comparison *c) {
        bool undecided = c->verdict == COMPARE_UNDECIDED;
        json_put_key(w, "visible_difference");
        if (undecided && c->has_visible)
                json_put_double(w, c->visible);
        else
                json_put_null(w);
        json_put_key(w, "runs_needed");
        if (undecided && c->runs_needed > 0)
                json_put_u64(w, c->runs_needed);
        else
                json_put_null(w);
}

static void put_figure(struct json_writer *w, const struct comparison_figure *f) {
        const struct comparison *c = f->c;
        json_object_begin(w);
        json_member_string(w, "verdict", comparison_verdict(c->verdict));
        json_member_double(w, "ratio", c->ratio);
        put_interval(w, "interval", c->has_interval, c->low, c->high, c->level);
        put_interval(w, "equivalence_interval", c->has_equivalence, c->equivalence_low, c->equivalence_high,
                     c->equivalence_level);
        json_member_double(w, "p", c->p);
        json_member_double(w, "p_adjusted", c->p_adjusted);
        json_member_bool(w, "differs", c->differs);
        json_member_bool(w, "paired", f->paired);
        json_member_u64(w, "runs_baseline", f->n[SIDE_BASELINE]);
        json_member_u64(w, "runs_candidate", f->n[SIDE_CANDIDATE]);
        put_undecided(w, c);
        json_object_end(w);
}

static void put_row(struct json_writer *w, const struct comparison_row *row) {
        struct comparison_figures figures;
        char name[64];
        comparison_figures(&figures);
        json_object_begin(w);
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                const struct comparison_points *p = &row->sides[side];
                json_put_key(w, side_names[side]);
                json_object_begin(w);
                json_member_raw(w, "point", p->point_json);
                json_member_u64(w, "runs", p->runs);
                json_member_u64(w, "runs_failed", p->runs_failed);
                json_member_u64(w, "runs_noisy", p->runs_noisy);
                json_object_end(w);
        }
        json_put_key(w, "figures");
        json_object_begin(w);
        for (size_t i = 0; i < figures.n; i++) {
                figure_name(figures.of[i], name, sizeof(name));
                json_put_key(w, name);
                if (row->figures[i].missing)
                        json_put_null(w);
                else
                        put_figure(w, &row->figures[i]);
        }
        json_object_end(w);
        json_put_key(w, "reasons");
        json_object_begin(w);
        for (size_t i = 0; i < figures.n; i++) {
                figure_name(figures.of[i], name, sizeof(name));
                if (row->figures[i].missing)
                        json_member_string(w, name, row->figures[i].missing);
        }
        json_object_end(w);
        json_object_end(w);
}

/* ---- the body ---- */

struct body {
        struct budget *budget; /* of the listener's answers that are held */
        size_t cost;
        struct comparison_answer *answer;
        bool begun;
        enum comparison_side side; /* whose unmatched points are next; SIDE_COUNT: rows */
        size_t next;
};

static void body_free(void *userdata) {
        struct body *b = userdata;
        comparison_answer_free(b->answer);
        if (b->budget)
                budget_give(b->budget, b->cost);
        free(b);
}

/* The head, and the key of the first list behind it. */
static void fill_head(struct body *b, struct text *out) {
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        put_head(&w, b->answer);
        json_object_end(&w);
        char *text = NULL;
        size_t length = 0;
        int k = json_writer_steal(&w, &text, &length);
        if (k < 0 && out->error == 0)
                out->error = k;
        if (k == 0)
                text_append(out, text, length - 1); /* the lists follow */
        free(text);
        text_printf(out, ",\"only_in_%s\":[", side_names[SIDE_BASELINE]);
}

static void fill_item(struct body *b, struct text *out) {
        const struct comparison_answer *a = b->answer;
        if (b->next > 0)
                text_puts(out, ",");
        if (b->side < SIDE_COUNT) {
                text_puts(out, a->unmatched[b->side][b->next++]);
                return;
        }
        _cleanup_(json_writer_deinit) struct json_writer w;
        json_writer_init(&w);
        put_row(&w, &a->rows[b->next++]);
        text_json(out, &w);
}

static int fill_body(void *userdata, struct text *out, struct refusal *r) {
        struct body *b = userdata;
        const struct comparison_answer *a = b->answer;
        (void) r;
        if (!b->begun)
                fill_head(b, out);
        b->begun = true;
        while (out->error == 0 && out->length < FEED_PORTION) {
                size_t end = b->side < SIDE_COUNT ? a->n_unmatched[b->side] : a->n_rows;
                if (b->next < end) {
                        fill_item(b, out);
                } else if (b->side < SIDE_COUNT) {
                        b->side++;
                        b->next = 0;
                        if (b->side < SIDE_COUNT)
                                text_printf(out, "],\"only_in_%s\":[", side_names[b->side]);
                        else
                                text_puts(out, "],\"rows\":[");
                } else {
                        text_puts(out, "]}");
                        return out->error < 0 ? out->error : FEED_LAST;
                }
        }
        return out->error < 0 ? out->error : FEED_MORE;
}

static const struct feed_source body_source = {.fill = fill_body, .free = body_free};

HANDLER(handle_compare) {
        struct comparison_query query = {0};
        int k = read_query(q, &query, r);
        if (k < 0)
                return k;
        struct budget *budget = &a->held[q->local ? LISTENER_LOCAL : LISTENER_TCP];
        if (!budget_is_open(budget))
                return feed_refuse(r);
        struct body *b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        k = service_compare(a->service, &query, &b->answer, r);
        if (k < 0) {
                body_free(b);
                return k;
        }
        b->budget = budget;
        b->cost = budget_cost(comparison_answer_bytes(b->answer));
        budget_take(budget, b->cost);
        return feed_respond(a, q, p, "application/json", &body_source, b, r);
}
