/* SPDX-License-Identifier: MIT */

/*
 * The comparison: the query is checked, both sides are read (study.c), points are matched, the runs of each pair become
 * tests, and all tests of the answer are corrected together. Called from the api's threads.
 */

#include "daemon/service/compare/comparison.h"

#include "daemon/analysis/adaptive.h"
#include "daemon/result/figure.h"
#include "daemon/service/compare/difference.h"
#include "daemon/service/compare/machine.h"
#include "daemon/service/compare/study.h"
#include "daemon/service/evidence.h"
#include "daemon/service/service.h"
#include "schema/hash.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ROWS_MAX 65536u /* of one axis; as many as there are points in other answers */

static const char *const side_names[SIDE_COUNT] = {[SIDE_BASELINE] = "baseline", [SIDE_CANDIDATE] = "candidate"};

/* One side: points of a study. */
struct side {
        const struct compared *study;
        const struct compared_point **points;
        bool *matched;
        size_t n;
};

/* The pairs of points, as indices into both sides. */
struct pairs_of_points {
        struct {
                size_t baseline, candidate;
        } * items;
        size_t n, size;
};

/* The parts of a comparison. */
struct work {
        struct service *service;
        const struct comparison_query *query;
        int64_t ids[SIDE_COUNT];             /* of the query's experiments */
        struct compared studies[SIDE_COUNT]; /* the second is empty with an axis */
        const struct axis *axis;
        struct point values[SIDE_COUNT];           /* with the axis set */
        struct adaptive_watch watches[SIDE_COUNT]; /* the second is empty with an axis */
        struct side sides[SIDE_COUNT];
        struct compared_figures figures;
        struct pairs_of_points pairs;
        struct comparison_answer *answer;
};

static void work_deinit(struct work *w) {
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                free(w->sides[side].points);
                free(w->sides[side].matched);
                compared_deinit(&w->studies[side]);
        }
        free(w->pairs.items);
        comparison_answer_free(w->answer);
}

static int fail(struct work *w, struct refusal *r, int error) {
        return service_fail(w->service, r, error, "comparing the runs", 0);
}

/* ---- the axis ---- */

static int print_value(const struct axis *a, const struct point *p, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        a->value.type->write(&a->value, &w, axis_of(a, p));
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

static bool has_value(const struct axis *a, const struct compared_point *p, const struct point *value) {
        return p->point && axis_applies(a, p->point) &&
               a->value.type->equal(&a->value, axis_of(a, p->point), axis_of(a, value));
}

/* A word need not be quoted: a value that is no JSON is taken as a word. */
static int read_value(struct work *w, enum comparison_side side, struct refusal *r) {
        const char *text = w->query->values[side];
        const struct axis *a = w->axis;
        struct json *json = NULL;
        char *quoted = NULL, pointer[JSON_POINTER_MAX];
        int error = json_parse(text, strlen(text), &json, NULL);
        if (error == -EINVAL) {
                struct json_writer writer;
                json_writer_init(&writer);
                json_put_string(&writer, text);
                error = json_writer_steal(&writer, &quoted, NULL);
                json_writer_deinit(&writer);
                if (error == 0)
                        error = json_parse(quoted, strlen(quoted), &json, NULL);
        }
        free(quoted);
        if (error < 0)
                return fail(w, r, error);
        json_pointer_key(pointer, "", a->value.name);
        error = a->value.type->read(&a->value, json, pointer, (char *) &w->values[side] + a->value.offset, r);
        json_free(json);
        return error == -EINVAL || error == 0 ? error : fail(w, r, error);
}

/* "pipe", "fifo": the values that the experiment has, as far as there is room for them. */
static int list_values(struct work *w, char *list, size_t size) {
        const struct compared *st = &w->studies[SIDE_BASELINE];
        size_t used = 0;
        (void) snprintf(list, size, "none");
        for (size_t i = 0; i < st->n && used < size; i++) {
                bool seen = !st->points[i].point || !axis_applies(w->axis, st->points[i].point);
                for (size_t k = 0; k < i && !seen; k++)
                        seen = has_value(w->axis, &st->points[k], st->points[i].point);
                if (seen)
                        continue;
                _cleanup_free_ char *value = NULL;
                int r = print_value(w->axis, st->points[i].point, &value);
                if (r < 0)
                        return r;
                used += (size_t) snprintf(list + used, size - used, "%s%s", used ? ", " : "", value);
        }
        return 0;
}

static int require_value(struct work *w, enum comparison_side side, struct refusal *r) {
        const struct compared *st = &w->studies[SIDE_BASELINE];
        char list[256];
        for (size_t i = 0; i < st->n; i++)
                if (has_value(w->axis, &st->points[i], &w->values[side]))
                        return 0;
        int error = list_values(w, list, sizeof(list));
        if (error < 0)
                return fail(w, r, error);
        return refuse(r, 422, "no-such-value", "",
                      "experiment %" PRId64 " has no %s %.100s, which is the %s; it has %s", st->e.id,
                      w->axis->value.name, w->query->values[side], side_names[side], list);
}

static int find_axis(struct work *w, struct refusal *r) {
        char list[256];
        size_t used = 0;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                if (strcmp(axes[i].value.name, w->query->axis) == 0) {
                        w->axis = &axes[i];
                        return 0;
                }
                if (used < sizeof(list))
                        used += (size_t) snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
                                                  axes[i].value.name);
        }
        return refuse(r, 422, "unknown-axis", "", "there is no axis \"%.80s\"; there are %s", w->query->axis, list);
}

static int take_axis(struct work *w, struct refusal *r) {
        int error = 0;
        for (size_t side = 0; error == 0 && side < SIDE_COUNT; side++) {
                error = read_value(w, (enum comparison_side) side, r);
                if (error == 0)
                        error = require_value(w, (enum comparison_side) side, r);
        }
        if (error == 0 && w->axis->value.type->equal(&w->axis->value, axis_of(w->axis, &w->values[SIDE_BASELINE]),
                                                     axis_of(w->axis, &w->values[SIDE_CANDIDATE])))
                return refuse(r, 422, "same-value", "", "baseline and candidate are both %s %.100s",
                              w->axis->value.name, w->query->values[SIDE_BASELINE]);
        return error;
}

/* ---- both sides ---- */

static int fill_side(struct work *w, enum comparison_side side) {
        struct side *s = &w->sides[side];
        int r = evidence_watch(&w->studies[side].e, &w->watches[side]);
        if (r < 0)
                return r;
        s->study = &w->studies[w->axis ? SIDE_BASELINE : side];
        size_t size = s->study->n ? s->study->n : 1;
        s->points = reallocarray(NULL, size, sizeof(void *));
        s->matched = calloc(size, sizeof(*s->matched));
        if (!s->points || !s->matched)
                return -ENOMEM;
        for (size_t i = 0; i < s->study->n; i++)
                if (!w->axis || has_value(w->axis, &s->study->points[i], &w->values[side]))
                        s->points[s->n++] = &s->study->points[i];
        return 0;
}

static int find_baseline(struct work *w, struct refusal *r) {
        struct baseline_record b;
        int error = service_baseline(w->service, w->query->baseline, &b, r);
        if (error < 0)
                return error;
        w->ids[SIDE_BASELINE] = b.experiment_id;
        baseline_record_deinit(&b);
        return 0;
}

static int load_sides(struct work *w, struct refusal *r) {
        const struct comparison_query *q = w->query;
        int error = q->axis ? find_axis(w, r) : q->baseline ? find_baseline(w, r) : 0;
        if (error == 0 && !q->axis && w->ids[SIDE_BASELINE] == w->ids[SIDE_CANDIDATE])
                return refuse(r, 422, "same-experiment", "", "baseline and candidate are both experiment %" PRId64,
                              w->ids[SIDE_BASELINE]);
        if (error == 0)
                error = compared_load(w->service, w->ids[SIDE_BASELINE], q->axis != NULL, &w->studies[SIDE_BASELINE],
                                      r);
        if (error == 0 && !q->axis)
                error = compared_load(w->service, w->ids[SIDE_CANDIDATE], false, &w->studies[SIDE_CANDIDATE], r);
        if (error == 0 && q->axis)
                error = take_axis(w, r);
        if (error < 0)
                return error;
        error = fill_side(w, SIDE_BASELINE);
        if (error == 0)
                error = fill_side(w, SIDE_CANDIDATE);
        return error < 0 ? fail(w, r, error) : 0;
}

/* ---- differences ---- */

static bool are_alike(const struct difference_list *list) {
        for (size_t i = 0; i < list->n; i++)
                if (list->items[i].unlike)
                        return false;
        return true;
}

/* What was changed and put back within a run has no other value. */
static const char *value_words(const struct difference *d, enum comparison_side side) {
        return d->values[side] ? d->values[side] : side == SIDE_BASELINE ? "one value" : "another meanwhile";
}

/* "governor (performance, powersave)", as far as there is room. */
static void list_unlike(const struct difference_list *list, char *ret, size_t size) {
        size_t used = 0;
        *ret = '\0';
        for (size_t i = 0; i < list->n && used < size; i++)
                if (list->items[i].unlike)
                        used += (size_t) snprintf(ret + used, size - used, "%s%s (%.60s, %.60s)", used ? ", " : "",
                                                  list->items[i].key, value_words(&list->items[i], SIDE_BASELINE),
                                                  value_words(&list->items[i], SIDE_CANDIDATE));
}

static int refuse_unlike(const struct work *w, struct refusal *r) {
        char text[300];
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                const struct difference_list *changed = &w->answer->experiments[side].changed;
                if (are_alike(changed))
                        continue;
                list_unlike(changed, text, sizeof(text));
                return refuse(r, 409, "unlike-environments", "",
                              "the environment of experiment %" PRId64
                              " changed between its first run and its last in %s; force=true compares it all the same",
                              w->ids[side], text);
        }
        list_unlike(&w->answer->environment, text, sizeof(text));
        return refuse(r, 409, "unlike-environments", "",
                      "the environments of experiments %" PRId64 " and %" PRId64
                      " differ in %s; force=true compares them all the same",
                      w->ids[SIDE_BASELINE], w->ids[SIDE_CANDIDATE], text);
}

/* "environment-differs:KEY", "environment-changed:KEY": of which fact; NULL: of none. */
static const char *flagged_fact(const struct json *flag) {
        static const char *const kinds[] = {"environment-differs:", "environment-changed:"};
        const char *text = NULL;
        if (json_as_string(flag, &text) < 0)
                return NULL;
        for (size_t i = 0; i < ELEMENTS(kinds); i++)
                if (strncmp(text, kinds[i], strlen(kinds[i])) == 0)
                        return text + strlen(kinds[i]);
        return NULL;
}

/* What the flags of a run add; its environment is read only where they name a fact that is not listed yet. */
static int differ_in_run(struct work *w, const struct compared *st, const struct changed_run *run,
                         struct difference_list *list, struct refusal *r) {
        _cleanup_free_ char *environment = NULL;
        struct json *flags = NULL;
        int error = json_parse_written(run->flags_json, strlen(run->flags_json), &flags);
        if (error < 0)
                return fail(w, r, error);
        for (const struct json *i = json_first(flags); error == 0 && i; i = json_next(i)) {
                const char *key = flagged_fact(i);
                if (!key || difference_listed(list, key))
                        continue;
                if (!environment)
                        error = compared_run_environment(w->service, run->id, &environment, r);
                if (error == 0) {
                        error = difference_flagged(key, st->environment_json, environment, list);
                        error = error < 0 ? fail(w, r, error) : 0;
                }
        }
        json_free(flags);
        return error;
}

/* Compares the first run of an experiment with its last, and with those between that have a flag: what is the same at
 * both ends may have been another meanwhile. */
static int differ_within(struct work *w, enum comparison_side side, struct difference_list *list, struct refusal *r) {
        _cleanup_free_ char *last = NULL;
        const struct compared *st = &w->studies[side];
        struct changed_run *runs = NULL;
        size_t n = 0;
        int error = compared_last_environment(w->service, st->e.id, &last, r);
        if (error < 0 || !last)
                return error;
        error = difference_environments(st->environment_json, last, list);
        error = error < 0 ? fail(w, r, error) : compared_changed_runs(w->service, st->e.id, &runs, &n, r);
        for (size_t i = 0; error == 0 && i < n; i++)
                error = differ_in_run(w, st, &runs[i], list, r);
        store_changed_runs_free(runs, n);
        return error;
}

/* "this host", or another host's label; where it has none, each bundle is of a host of its own. */
static int host_of(const struct compared *c, char **ret) {
        _cleanup_(json_view_deinit) struct json_view imported = {0};
        _cleanup_free_ char *host = NULL, *digest = NULL;
        if (!c->e.imported_json) {
                *ret = strdup("this host");
                return *ret ? 0 : -ENOMEM;
        }
        int r = json_view_read(&imported, c->e.imported_json);
        if (r < 0)
                return r;
        r = json_part_string(json_part_get(imported.parts, "host"), &host);
        if (r == -EINVAL) /* it has no label */
                r = json_part_string(json_part_get(imported.parts, "sha256"), &digest);
        if (r < 0)
                return r == -EINVAL ? -EBADMSG : r;
        r = host ? asprintf(ret, "other host %s", host) : asprintf(ret, "other host, bundle %.12s", digest);
        return r < 0 ? -ENOMEM : 0;
}

static int differ_between(struct work *w, struct refusal *r) {
        const struct compared *b = &w->studies[SIDE_BASELINE], *c = &w->studies[SIDE_CANDIDATE];
        struct comparison_answer *a = w->answer;
        int error = difference_environments(b->environment_json, c->environment_json, &a->environment);
        _cleanup_free_ char *baseline = NULL, *candidate = NULL;
        if (error == 0)
                error = host_of(b, &baseline);
        if (error == 0)
                error = host_of(c, &candidate);
        if (error == 0)
                error = difference_texts("host", baseline, candidate, true, &a->environment);
        if (error == 0)
                error = difference_texts("ipclab_version", b->e.version, c->e.version, true, &a->environment);
        if (error == 0)
                error = difference_specs(b->e.merged_json, c->e.merged_json, &a->settings);
        if (error < 0)
                return fail(w, r, error);
        for (size_t side = 0; error == 0 && side < SIDE_COUNT; side++)
                error = differ_within(w, (enum comparison_side) side, &a->experiments[side].changed, r);
        return error;
}

static int take_differences(struct work *w, struct refusal *r) {
        struct comparison_answer *a = w->answer;
        /* both values of an axis were measured in one experiment, side by side */
        int error = w->axis ? differ_within(w, SIDE_BASELINE, &a->environment, r) : differ_between(w, r);
        if (error < 0)
                return error;
        a->alike = are_alike(&a->environment) && are_alike(&a->experiments[SIDE_BASELINE].changed) &&
                   are_alike(&a->experiments[SIDE_CANDIDATE].changed);
        a->forced = !a->alike && w->query->force;
        return a->alike || a->forced || w->axis ? 0 : refuse_unlike(w, r);
}

/* ---- rows ---- */

static bool are_a_pair(const struct compared_point *a, const struct compared_point *b, const struct axis *except) {
        if (!except)
                return a->hash == b->hash && strcmp(a->point_json, b->point_json) == 0;
        return points_match(a->point, b->point, (enum axis_name)(except - axes));
}

static int take_points(const struct compared_point *p, struct comparison_points *ret) {
        *ret = (struct comparison_points){.point_json = strdup(p->point_json),
                                          .runs = p->runs,
                                          .runs_failed = p->runs_failed,
                                          .runs_noisy = p->runs_noisy};
        memcpy(ret->runs_disputed, p->runs_disputed, sizeof(ret->runs_disputed));
        return ret->point_json ? 0 : -ENOMEM;
}

/* The values of one test, COMPARISON_RUNS_MAX a side, or COMPARISON_PAIRS_MAX pairs. */
struct values {
        double *of[SIDE_COUNT];
        size_t n[SIDE_COUNT];
};

static void values_deinit(struct values *v) {
        free(v->of[SIDE_BASELINE]);
        free(v->of[SIDE_CANDIDATE]);
}

static double value_of(const struct compared_point *p, size_t run, size_t f) {
        return p->values[run * p->n_figures + f];
}

static void take_pairs(const struct compared_point *b, const struct compared_point *c, size_t f, struct values *v) {
        size_t n = 0;
        for (size_t i = 0, k = 0; i < b->runs && n < COMPARISON_PAIRS_MAX; i++) {
                if (isnan(value_of(b, i, f)) ||
                    !compare_find_block(c->blocks, sizeof(*c->blocks), c->runs, b->blocks[i], &k) ||
                    isnan(value_of(c, k, f)))
                        continue;
                v->of[SIDE_BASELINE][n] = value_of(b, i, f);
                v->of[SIDE_CANDIDATE][n++] = value_of(c, k, f);
        }
        v->n[SIDE_BASELINE] = v->n[SIDE_CANDIDATE] = n;
}

static const char *why_missing(const struct values *v) {
        if (v->n[SIDE_BASELINE] == 0 && v->n[SIDE_CANDIDATE] == 0)
                return "no done run of either side has this figure";
        if (v->n[SIDE_BASELINE] == 0)
                return "no done run of the baseline has this figure";
        if (v->n[SIDE_CANDIDATE] == 0)
                return "no done run of the candidate has this figure";
        for (size_t side = 0; side < SIDE_COUNT; side++)
                for (size_t i = 0; i < v->n[side]; i++)
                        if (!(v->of[side][i] > 0 && isfinite(v->of[side][i])))
                                return "a run's figure is not above 0, and there is no ratio of such";
        return NULL;
}

/* Runs are paired where both points are of one experiment, and enough of their runs for an interval lie in the same
 * blocks. */
static int take_values(const struct work *w, const struct compared_point *b, const struct compared_point *c, size_t f,
                       struct values *v, struct comparison_figure *ret) {
        const struct compared_point *const points[SIDE_COUNT] = {b, c};
        /* without those runs alone the others would be a choice: slow ones have few messages */
        bool few = (b->few | c->few) & UINT64_C(1) << w->figures.of[f];
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                v->of[side] = reallocarray(NULL, COMPARISON_PAIRS_MAX, sizeof(double));
                if (!v->of[side])
                        return -ENOMEM;
        }
        if (w->axis)
                take_pairs(b, c, f, v);
        ret->paired = v->n[SIDE_BASELINE] >= compare_runs_least(true, 1);
        if (!ret->paired)
                memset(v->n, 0, sizeof(v->n));
        for (size_t side = 0; !ret->paired && side < SIDE_COUNT; side++)
                for (size_t i = 0; i < points[side]->runs && v->n[side] < COMPARISON_RUNS_MAX; i++)
                        if (!isnan(value_of(points[side], i, f)))
                                v->of[side][v->n[side]++] = value_of(points[side], i, f);
        const char *incomparable =
                w->axis ? points_incomparable(b->point, c->point, w->figures.of[f]) : NULL; /* else they are equal */
        bool requested = (b->requested | c->requested) & UINT64_C(1) << w->figures.of[f];
        ret->missing = incomparable ? incomparable
                       : few        ? figure_terms[w->figures.of[f]].few
                       : requested  ? figure_terms[w->figures.of[f]].requested
                                    : why_missing(v);
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                ret->n[side] = v->n[side];
                double *fitted = reallocarray(v->of[side], v->n[side] ? v->n[side] : 1, sizeof(double));
                v->of[side] = fitted ? fitted : v->of[side];
        }
        return 0;
}

static size_t count_values(const struct compared_point *p, size_t f) {
        size_t n = 0;
        for (size_t i = 0; i < p->runs; i++)
                n += !isnan(value_of(p, i, f));
        return n;
}

/* Runs of the side that has more of them, which are in none of the n pairs. */
static uint32_t count_alone(const struct compared_point *b, const struct compared_point *c, size_t f, size_t n) {
        size_t n_b = count_values(b, f), n_c = count_values(c, f);
        return (uint32_t) ((n_b > n_c ? n_b : n_c) - n);
}

/* All tests of the answer. */
struct tests {
        struct values *values;
        struct compare_row *rows;
        struct comparison *results;
        struct comparison_figure **figures; /* where the result goes */
        size_t n;
};

static void tests_deinit(struct tests *t) {
        for (size_t i = 0; i < t->n; i++)
                values_deinit(&t->values[i]);
        free(t->values);
        free(t->rows);
        free(t->results);
        free(t->figures);
}

static int tests_init(struct tests *t, size_t most) {
        size_t n = most ? most : 1;
        t->values = calloc(n, sizeof(*t->values));
        t->rows = calloc(n, sizeof(*t->rows));
        t->results = calloc(n, sizeof(*t->results));
        t->figures = calloc(n, sizeof(struct comparison_figure *));
        return t->values && t->rows && t->results && t->figures ? 0 : -ENOMEM;
}

static bool is_in_blocks(const struct compared_point *p) {
        return p->runs > 0 && p->blocks[0] > 0;
}

/* The runs of either side are as many as its own looks made them. */
static uint32_t looks_at(const struct work *w, enum figure f) {
        uint32_t baseline = adaptive_looks_at(&w->watches[SIDE_BASELINE], f),
                 candidate = adaptive_looks_at(&w->watches[SIDE_CANDIDATE], f);
        return baseline > candidate ? baseline : candidate;
}

static int add_tests(const struct work *w, const struct compared_point *b, const struct compared_point *c,
                     struct comparison_row *row, struct tests *t) {
        for (size_t i = 0; i < w->figures.n; i++) {
                enum figure f = w->figures.of[i];
                struct values v = {0};
                int r = take_values(w, b, c, i, &v, &row->figures[i]);
                if (r < 0 || row->figures[i].missing) {
                        values_deinit(&v);
                        if (r < 0)
                                return r;
                        continue;
                }
                t->rows[t->n] = (struct compare_row){
                        .baseline = v.of[SIDE_BASELINE],
                        .candidate = v.of[SIDE_CANDIDATE],
                        .n_baseline = v.n[SIDE_BASELINE],
                        .n_candidate = v.n[SIDE_CANDIDATE],
                        .paired = row->figures[i].paired,
                        .less_is_faster = figure_terms[f].faster == FIGURE_LESS_IS_FASTER,
                        .runs_most = comparison_runs_most(w->axis && is_in_blocks(b) && is_in_blocks(c)),
                        .looks = looks_at(w, f),
                        .n_alone = row->figures[i].paired ? count_alone(b, c, i, v.n[SIDE_BASELINE]) : 0,
                };
                t->figures[t->n] = &row->figures[i];
                t->values[t->n++] = v;
        }
        return 0;
}

static int add_pair(struct pairs_of_points *p, size_t baseline, size_t candidate) {
        if (p->n == p->size) {
                size_t size = p->size ? 2 * p->size : 64;
                void *items = reallocarray(p->items, size, sizeof(*p->items));
                if (!items)
                        return -ENOMEM;
                p->items = items;
                p->size = size;
        }
        p->items[p->n].baseline = baseline;
        p->items[p->n++].candidate = candidate;
        return 0;
}

static int match_points(struct work *w, struct refusal *r) {
        struct side *b = &w->sides[SIDE_BASELINE], *c = &w->sides[SIDE_CANDIDATE];
        for (size_t i = 0; i < b->n; i++)
                for (size_t k = 0; k < c->n; k++) {
                        if (!are_a_pair(b->points[i], c->points[k], w->axis))
                                continue;
                        b->matched[i] = c->matched[k] = true;
                        if (w->pairs.n == ROWS_MAX)
                                return refuse(r, 422, "too-many-rows", "",
                                              "the values of axis %s match in more than %u pairs of points",
                                              w->axis ? w->axis->value.name : "", ROWS_MAX);
                        if (add_pair(&w->pairs, i, k) < 0)
                                return fail(w, r, -ENOMEM);
                        if (!w->axis)
                                break;
                }
        if (w->pairs.n > 0)
                return 0;
        if (w->axis)
                return refuse(r, 422, "nothing-in-common", "",
                              "no point of %s %.80s equals one of %.80s in all other axes", w->axis->value.name,
                              w->query->values[SIDE_BASELINE], w->query->values[SIDE_CANDIDATE]);
        return refuse(r, 422, "nothing-in-common", "",
                      "experiments %" PRId64 " and %" PRId64 " have no point in common: %zu and %zu points, none equal",
                      w->ids[SIDE_BASELINE], w->ids[SIDE_CANDIDATE], b->n, c->n);
}

static int take_unmatched(struct work *w, enum comparison_side side) {
        const struct side *s = &w->sides[side];
        struct comparison_answer *a = w->answer;
        a->unmatched[side] = calloc(s->n ? s->n : 1, sizeof(char *));
        if (!a->unmatched[side])
                return -ENOMEM;
        for (size_t i = 0; i < s->n; i++) {
                if (s->matched[i])
                        continue;
                char *text = strdup(s->points[i]->point_json);
                if (!text)
                        return -ENOMEM;
                a->unmatched[side][a->n_unmatched[side]++] = text;
        }
        return 0;
}

static int make_rows(struct work *w, struct tests *t) {
        const struct pairs_of_points *pairs = &w->pairs;
        struct comparison_answer *a = w->answer;
        a->rows = calloc(pairs->n, sizeof(*a->rows));
        if (!a->rows || tests_init(t, pairs->n * w->figures.n) < 0)
                return -ENOMEM;
        int r = 0;
        for (size_t i = 0; r == 0 && i < pairs->n; i++) {
                const struct compared_point *b = w->sides[SIDE_BASELINE].points[pairs->items[i].baseline];
                const struct compared_point *c = w->sides[SIDE_CANDIDATE].points[pairs->items[i].candidate];
                struct comparison_row *row = &a->rows[a->n_rows++];
                row->figures = calloc(w->figures.n, sizeof(*row->figures));
                r = row->figures ? take_points(b, &row->sides[SIDE_BASELINE]) : -ENOMEM;
                if (r == 0)
                        r = take_points(c, &row->sides[SIDE_CANDIDATE]);
                if (r == 0)
                        r = add_tests(w, b, c, row, t);
        }
        return r;
}

/* Whether the rows are a map: COMPARISON_MAP_PAIRS placements or more, each of which is given end by end. */
static bool is_map(const struct comparison_answer *a) {
        struct {
                const char *text;
                size_t length;
        } seen[COMPARISON_MAP_PAIRS], at;
        size_t n = 0;
        for (size_t i = 0; i < a->n_rows && n < COMPARISON_MAP_PAIRS; i++) {
                const char *point = a->rows[i].sides[SIDE_BASELINE].point_json;
                if (!json_find_member(point, axes[AXIS_PLACEMENT].value.name, &at.text, &at.length) || *at.text != '{')
                        continue;
                size_t k = 0;
                while (k < n && (seen[k].length != at.length || memcmp(seen[k].text, at.text, at.length) != 0))
                        k++;
                if (k == n)
                        seen[n++] = at;
        }
        return n == COMPARISON_MAP_PAIRS;
}

static int judge(struct work *w, struct tests *t) {
        struct comparison_answer *a = w->answer;
        const struct compare_rule rule = {.margin = w->query->margin,
                                          .correction = is_map(a) ? MULTIPLE_BENJAMINI_HOCHBERG : MULTIPLE_HOLM};
        int r = compare_rows(t->rows, t->n, &rule, t->results);
        for (size_t i = 0; r == 0 && i < t->n; i++) {
                t->figures[i]->c = &t->results[i];
                a->verdicts[t->results[i].verdict]++;
        }
        a->comparisons = util_steal(&t->results);
        a->n_tests = t->n;
        a->correction = rule.correction;
        a->margin = rule.margin;
        return r;
}

static int compare_points(struct work *w, struct refusal *r) {
        _cleanup_(tests_deinit) struct tests tests = {0};
        int error = make_rows(w, &tests);
        if (error == 0)
                error = judge(w, &tests);
        for (size_t side = 0; error == 0 && side < SIDE_COUNT; side++)
                error = take_unmatched(w, (enum comparison_side) side);
        return error < 0 ? fail(w, r, error) : 0;
}

/* For an axis: the settings in force are those of the experiment's evidence, whose rows are its points in their order.
 */
static int take_unlike(struct work *w, struct refusal *r) {
        const struct compared *st = &w->studies[SIDE_BASELINE];
        const struct evidence *e;
        struct cache_item *item;
        int error = evidence_get(w->service, st->e.id, st->e.change, &e, &item, r);
        if (error == -EBADMSG) /* what can be read of it was compared */
                return 0;
        if (error < 0)
                return error;
        for (size_t i = 0; error == 0 && i < w->pairs.n; i++) {
                size_t at[SIDE_COUNT] = {
                        (size_t) (w->sides[SIDE_BASELINE].points[w->pairs.items[i].baseline] - st->points),
                        (size_t) (w->sides[SIDE_CANDIDATE].points[w->pairs.items[i].candidate] - st->points)};
                if (at[SIDE_BASELINE] >= e->n_rows || at[SIDE_CANDIDATE] >= e->n_rows) /* of a search's rates */
                        continue;
                const struct findings_row *const rows[SIDE_COUNT] = {&e->rows[at[SIDE_BASELINE]],
                                                                     &e->rows[at[SIDE_CANDIDATE]]};
                error = comparison_write_unlike(rows, &w->answer->rows[i].unlike);
        }
        cache_release(&w->service->cache, item);
        return error < 0 ? fail(w, r, error) : 0;
}

/* ---- the answer ---- */

static int take_experiments(struct work *w) {
        struct comparison_answer *a = w->answer;
        int r = 0;
        for (size_t side = 0; r == 0 && side < SIDE_COUNT; side++) {
                const struct experiment_record *e = &w->sides[side].study->e;
                struct comparison_experiment *to = &a->experiments[side];
                *to = (struct comparison_experiment){.id = e->id,
                                                     .name = e->name ? strdup(e->name) : NULL,
                                                     .version = strdup(e->version),
                                                     .state = state_name(e->state),
                                                     .created_at = e->created_at};
                if ((e->name && !to->name) || !to->version)
                        r = -ENOMEM;
                if (r == 0)
                        r = evidence_added(e, w->sides[side].study->n, &to->added);
                if (r == 0 && w->axis)
                        r = print_value(w->axis, &w->values[side], &a->values[side]);
        }
        if (r == 0 && w->axis) {
                a->axis = strdup(w->axis->value.name);
                r = a->axis ? 0 : -ENOMEM;
        }
        return r;
}

static int compare_alone(struct service *s, const struct comparison_query *q, struct comparison_answer **ret,
                         struct refusal *r) {
        _cleanup_(work_deinit) struct work w = {.service = s, .query = q};
        memcpy(w.ids, q->experiments, sizeof(w.ids));
        figures_compared(&w.figures);
        w.answer = calloc(1, sizeof(*w.answer));
        if (!w.answer)
                return fail(&w, r, -ENOMEM);
        int error = load_sides(&w, r);
        if (error == 0) {
                error = take_experiments(&w);
                if (error < 0)
                        return fail(&w, r, error);
        }
        if (error == 0)
                error = match_points(&w, r);
        if (error == 0)
                error = take_differences(&w, r);
        w.answer->has_machine = !w.axis;
        if (error == 0 && !w.axis)
                error = machine_compare(s, w.ids, &w.answer->machine, r);
        if (error == 0)
                error = compare_points(&w, r);
        if (error == 0 && w.axis)
                error = take_unlike(&w, r);
        if (error == 0)
                *ret = util_steal(&w.answer);
        return error;
}

/* ---- from the cache ---- */

/* The query as the cache's key, without the experiments' changes. */
static int print_question(const struct comparison_query *q, const int64_t ids[SIDE_COUNT], char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        json_array_begin(&w);
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                json_put_i64(&w, ids[side]);
                if (q->axis)
                        json_put_string(&w, q->values[side]);
        }
        if (q->axis)
                json_put_string(&w, q->axis);
        json_put_double(&w, q->margin);
        json_put_bool(&w, q->force);
        json_array_end(&w);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

struct comparison_key {
        char *question; /* NULL: the answer has no place in the cache, or there is none */
        int64_t changes[SIDE_COUNT];
        struct cache_item item;
};

/* Reports no errors: the reading of the sides reports them. */
static int make_key(struct service *s, const struct comparison_query *q, struct comparison_key *ret) {
        struct refusal ignored = {0};
        struct comparison_key key = {.item = {.kind = CACHE_COMPARISON, .free_payload = comparison_answer_free}};
        int64_t ids[SIDE_COUNT] = {q->experiments[SIDE_BASELINE], q->experiments[SIDE_CANDIDATE]};
        struct baseline_record b;
        *ret = key;
        if (q->baseline && service_baseline(s, q->baseline, &b, &ignored) < 0)
                return 0;
        if (q->baseline) {
                ids[SIDE_BASELINE] = b.experiment_id;
                baseline_record_deinit(&b);
        }
        for (size_t side = 0; side < SIDE_COUNT; side++) {
                struct experiment_record e;
                if (service_experiment(s, ids[side], &e, &ignored) < 0)
                        return 0;
                bool finished = e.state != STATE_QUEUED && e.state != STATE_RUNNING;
                key.changes[side] = e.change;
                experiment_record_deinit(&e);
                if (!finished)
                        return 0;
        }
        int r = print_question(q, ids, &key.question);
        if (r < 0)
                return r;
        key.item.id = (int64_t) hash_more(HASH_BEGIN, key.question, strlen(key.question));
        key.item.change = (int64_t) hash_more(HASH_BEGIN, key.changes, sizeof(key.changes));
        *ret = key;
        return 0;
}

/* Two questions may have one hash. */
static struct comparison_answer *find_answer(struct service *s, const struct comparison_key *key) {
        if (!key->question)
                return NULL;
        struct cache_item *item = cache_get(&s->cache, key->item.kind, key->item.id, key->item.change);
        struct comparison_answer *a = item ? item->payload : NULL;
        if (a && strcmp(a->question, key->question) == 0 && memcmp(a->changes, key->changes, sizeof(a->changes)) == 0)
                return a;
        cache_release(&s->cache, item);
        return NULL;
}

static int compare_anew(struct service *s, const struct comparison_query *q, struct comparison_key *key,
                        struct comparison_answer **ret, struct refusal *r) {
        struct comparison_answer *a = NULL;
        int error = compare_alone(s, q, &a, r);
        if (error == 0 && key->question) {
                a->question = util_steal(&key->question);
                memcpy(a->changes, key->changes, sizeof(a->changes));
                a->cache = &s->cache;
                key->item.payload = a;
                key->item.bytes = comparison_answer_bytes(a);
                error = cache_add(&s->cache, &key->item, &a->item);
                if (error < 0) {
                        comparison_answer_free(a);
                        return service_fail(s, r, error, "keeping the comparison", 0);
                }
        }
        if (error == 0)
                *ret = a;
        return error;
}

/* Thousands of runs take megabytes and seconds, so comparisons take turns; one that waited may find the answer. */
static int compare_in_turn(struct service *s, const struct comparison_query *q, struct comparison_key *key,
                           struct comparison_answer **ret, struct refusal *r) {
        int error = service_turn_begin(s, &s->comparison, "another comparison", r);
        if (error < 0)
                return error;
        struct comparison_answer *a = find_answer(s, key);
        if (!a)
                error = compare_anew(s, q, key, &a, r);
        service_turn_end(s, &s->comparison);
        if (error == 0)
                *ret = a;
        return error;
}

int service_compare(struct service *s, const struct comparison_query *q, struct comparison_answer **ret,
                    struct refusal *r) {
        struct comparison_key key = {0};
        int error = make_key(s, q, &key);
        if (error < 0)
                return service_fail(s, r, error, "comparing the runs", 0);
        struct comparison_answer *a = find_answer(s, &key);
        if (!a)
                error = compare_in_turn(s, q, &key, &a, r);
        free(key.question);
        if (error == 0)
                *ret = a;
        return error;
}
