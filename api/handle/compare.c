/* SPDX-License-Identifier: MIT */

/* Comparisons: the request's parameters, and the response as JSON, a row at a time. */

#include "api/handle/handlers.h"
#include "api/handle/render/lists.h"
#include "api/handle/render/render.h"
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
        double margin;
        if (number_parse(text, &margin) < 0 || margin <= 0 || margin >= 1)
                return refuse_parameter(r, "delta", text, "a number above 0 and below 1");
        *ret = margin;
        return 0;
}

static int read_force(const struct request *q, bool *ret, struct refusal *r) {
        const char *text = request_parameter(q, "force");
        *ret = text && strcmp(text, "true") == 0;
        return !text || *ret || strcmp(text, "false") == 0 ? 0 : refuse_parameter(r, "force", text, "true or false");
}

/* A value of an axis. It is checked later, where the axis is known. */
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
        static const char *const wanted[SIDE_COUNT] = {
                [SIDE_BASELINE] = "an experiment's id or a baseline's name", [SIDE_CANDIDATE] = "an experiment's id"};
        int k = read_word(q, side_names[SIDE_BASELINE], wanted[SIDE_BASELINE], &baseline, r);
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
                        return refuse_missing(r, side_names[side], wanted[side]);
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

/* What matters of it; the boot may be another. */
static void put_changed(struct json_writer *w, const struct difference_list *list) {
        json_member_array(w, "environment_changed");
        for (size_t i = 0; i < list->n; i++) {
                if (!list->items[i].unlike)
                        continue;
                json_object_begin(w);
                json_member_string(w, "key", list->items[i].key);
                json_member_raw(w, "first", list->items[i].values[SIDE_BASELINE]);
                json_member_raw(w, "last", list->items[i].values[SIDE_CANDIDATE]);
                json_object_end(w);
        }
        json_array_end(w);
}

static void put_experiment(struct json_writer *w, const struct comparison_answer *a, enum comparison_side side) {
        const struct comparison_experiment *e = &a->experiments[side];
        json_member_object(w, side_names[side]);
        json_member_i64(w, "experiment_id", e->id);
        json_member_string(w, "name", e->name);
        json_member_string(w, "state", e->state);
        json_member_string(w, "version", e->version);
        json_member_time(w, "created_at", e->created_at);
        json_member_raw(w, "value", a->values[side]);
        json_member_u64(w, "repetitions_added", e->added);
        put_changed(w, &e->changed);
        json_object_end(w);
}

static void put_differences(struct json_writer *w, const struct difference_list *list, bool environment) {
        json_member_array(w, "differences");
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

/* The machine's own state at both times: what it did to the probes, it did to the runs. */
static void put_machine(struct json_writer *w, const struct machine *m) {
        json_put_key(w, "machine");
        if (!m) {
                json_put_null(w);
                return;
        }
        json_object_begin(w);
        json_member_string(w, "state", machine_state_name(m->state));
        json_member_string(w, "reason", m->reason);
        json_member_object(w, "runs_uncompared");
        for (size_t side = 0; side < SIDE_COUNT; side++)
                json_member_u64(w, side_names[side], m->uncompared[side]);
        json_object_end(w);
        json_member_array(w, "probes");
        for (size_t i = 0; i < m->n; i++) {
                const struct machine_figure *f = &m->items[i];
                json_object_begin(w);
                json_member_raw(w, "cpus", f->cpus);
                json_member_u64(w, "cpu", f->cpu);
                json_member_string(w, "what", f->what);
                for (size_t side = 0; side < SIDE_COUNT; side++)
                        json_member_double(w, side_names[side], f->medians[side]);
                json_member_double(w, "ratio", f->c.ratio);
                render_interval(w, "interval", f->c.has_interval, f->c.low, f->c.high, f->c.level);
                json_member_u64(w, "runs_baseline", f->n[SIDE_BASELINE]);
                json_member_u64(w, "runs_candidate", f->n[SIDE_CANDIDATE]);
                json_member_bool(w, "differs", f->differs);
                json_object_end(w);
        }
        json_array_end(w);
        json_object_end(w);
}

static void put_head(struct json_writer *w, const void *answer) {
        const struct comparison_answer *a = answer;
        json_member_object(w, "environment");
        json_member_bool(w, "alike", a->alike);
        json_member_bool(w, "forced", a->forced);
        put_differences(w, &a->environment, true);
        json_object_end(w);
        put_machine(w, a->has_machine ? &a->machine : NULL);
        json_member_object(w, "settings");
        put_differences(w, &a->settings, false);
        json_object_end(w);
        json_member_bool(w, "interleaved", a->axis != NULL); /* their runs took turns: drift is in both sides */
        json_member_string(w, "axis", a->axis);
        for (size_t side = 0; side < SIDE_COUNT; side++)
                put_experiment(w, a, (enum comparison_side) side);
        json_member_double(w, "delta", a->margin);
        json_member_string(w, "correction", multiple_names[a->correction]);
        json_member_u64(w, "tests", a->n_tests);
        json_member_object(w, "verdicts");
        for (size_t v = 0; v < ELEMENTS(a->verdicts); v++)
                json_member_u64(w, comparison_verdict((enum compare_verdict) v), a->verdicts[v]);
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
        if (undecided && c->runs_needed > 0 && !c->out_of_reach)
                json_put_u64(w, c->runs_needed);
        else
                json_put_null(w);
        if (!c->out_of_reach)
                return;
        char reason[160];
        (void) snprintf(reason, sizeof(reason),
                        "it would take more than the %u runs of a side that take part; a quieter machine or a longer "
                        "window would decide",
                        c->runs_most);
        json_member_string(w, "runs_needed_reason", reason);
}

#define TOO_FEW                                                                                                        \
        " has fewer than " UTIL_TEXT(                                                                                  \
                SERIAL_RUNS_LEAST) " runs, too few to tell whether each depends on the one before it: "

/* A side that cannot be judged is not known to be of independent runs. */
static void put_widening(struct json_writer *w, const struct comparison *c) {
        static const char *const reasons[2][2] = {
                {NULL, "the candidate" TOO_FEW "the intervals count what the baseline's runs show alone"},
                {"the baseline" TOO_FEW "the intervals count what the candidate's runs show alone",
                 "each side" TOO_FEW "the intervals are those of independent runs"},
        };
        const char *reason = reasons[c->baseline_unjudged][c->candidate_unjudged];
        if (!reason) {
                json_member_double(w, "widening", c->widening);
                return;
        }
        json_member_null(w, "widening");
        json_member_string(w, "widening_reason", reason);
}

static void put_figure(struct json_writer *w, const struct comparison_figure *f) {
        const struct comparison *c = f->c;
        json_object_begin(w);
        json_member_string(w, "verdict", comparison_verdict(c->verdict));
        json_member_double(w, "ratio", c->ratio);
        render_interval(w, "interval", c->has_interval, c->low, c->high, c->level);
        render_interval(w, "equivalence_interval", c->has_equivalence, c->equivalence_low, c->equivalence_high,
                        c->equivalence_level);
        json_member_double(w, "p", c->p);
        json_member_double(w, "p_adjusted", c->p_adjusted);
        json_member_bool(w, "differs", c->differs);
        json_member_bool(w, "paired", f->paired);
        put_widening(w, c);
        json_member_string(w, "test", f->paired && !c->by_runs ? "signed-rank" : "rank-sum");
        json_member_u64(w, "runs_baseline", f->n[SIDE_BASELINE]);
        json_member_u64(w, "runs_candidate", f->n[SIDE_CANDIDATE]);
        put_undecided(w, c);
        json_object_end(w);
}

static void put_row(struct json_writer *w, const struct comparison_row *row) {
        struct compared_figures figures;
        char name[64];
        figures_compared(&figures);
        json_object_begin(w);
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                const struct comparison_points *p = &row->sides[side];
                json_member_object(w, side_names[side]);
                json_member_raw(w, "point", p->point_json);
                json_member_u64(w, "runs", p->runs);
                json_member_u64(w, "runs_failed", p->runs_failed);
                json_member_u64(w, "runs_noisy", p->runs_noisy);
                render_disputed(w, "runs_disputed", p->runs_disputed);
                json_object_end(w);
        }
        json_member_object(w, "figures");
        for (size_t i = 0; i < figures.n; i++) {
                figure_name(figures.of[i], name, sizeof(name));
                json_put_key(w, name);
                if (row->figures[i].missing)
                        json_put_null(w);
                else
                        put_figure(w, &row->figures[i]);
        }
        json_object_end(w);
        json_member_object(w, "reasons");
        for (size_t i = 0; i < figures.n; i++) {
                figure_name(figures.of[i], name, sizeof(name));
                if (row->figures[i].missing)
                        json_member_string(w, name, row->figures[i].missing);
        }
        json_object_end(w);
        json_member_string(w, "unlike", row->unlike);
        json_object_end(w);
}

/* ---- the body ---- */

/* The lists: the unmatched points of each side, then the rows. */
static const char *const list_keys[] = {"only_in_baseline", "only_in_candidate", "rows", NULL};

static size_t list_length(const void *answer, size_t list) {
        const struct comparison_answer *a = answer;
        return list < SIDE_COUNT ? a->n_unmatched[list] : a->n_rows;
}

static void put_item(struct json_writer *w, const void *answer, size_t list, size_t i) {
        const struct comparison_answer *a = answer;
        if (list < SIDE_COUNT)
                json_put_raw(w, a->unmatched[list][i]);
        else
                put_row(w, &a->rows[i]);
}

static void answer_free(void *answer) {
        comparison_answer_release(answer);
}

static const struct lists_source answer_source = {
        .keys = list_keys, .put_head = put_head, .length = list_length, .put_item = put_item, .free = answer_free};

HANDLER(handle_compare) {
        struct comparison_query query = {0};
        struct comparison_answer *answer;
        int k = read_query(q, &query, r);
        if (k == 0)
                k = lists_admit(q, r);
        if (k == 0)
                k = service_compare(a->service, &query, &answer, r);
        if (k < 0)
                return k;
        return lists_respond(q, p, &answer_source, answer, comparison_answer_bytes(answer), r);
}
