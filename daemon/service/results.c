/* SPDX-License-Identifier: MIT */

/*
 * The results table: for each point the statistics over its done runs. It is computed on request, from what the
 * runs reported, so that a better statistic later applies to old experiments too. The rows of experiments that have
 * finished stay in the cache, page by page.
 */

#include "daemon/analysis/statistics/serial.h"
#include "daemon/log.h"
#include "daemon/result/cost.h"
#include "daemon/result/effective.h"
#include "daemon/result/figure.h"
#include "daemon/result/result.h"
#include "daemon/service/internal.h"
#include "daemon/service/service.h"
#include "schema/figures.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define POINTS_PER_PAGE 32u
#define ROWS_PER_ITEM 8u
/* Limit for one experiment: a row has some 6 kB, and the rows of ten thousand points would evict everything else. */
#define ITEMS_MAX 32u

/* The reason for figures that runs of another version did not have. */
#define NOT_REPORTED "the runs do not report it"

/* Members of results that are words. The last run that has one counts: the runs of a point have the same settings. */
enum word { LOOP, VERIFY, VERIFY_REASON, LATENCY_REASON, ONE_WAY_REASON, STEADY_REASON, COUNTED_BY, WORD_COUNT };
static const char *const words[WORD_COUNT] = {
        [LOOP] = "loop",
        [VERIFY] = "verify",
        [VERIFY_REASON] = "verify_reason",
        [LATENCY_REASON] = "latency_reason",
        [ONE_WAY_REASON] = "latency_one_way_ns_reason",
        [STEADY_REASON] = "steady_reason",
        [COUNTED_BY] = "counted_by",
};

/* The values of a point's done runs, figure by figure: a run that has none of one adds nothing to it. */
struct columns {
        double *values[FIGURE_COUNT];
        size_t n[FIGURE_COUNT];
        size_t n_few[FIGURE_COUNT]; /* of these, runs with too few latencies for the percentile */
        size_t n_runs, n_steady, n_unsteady;
        char *reasons[FIGURE_COUNT]; /* of the last run without the figure; NULL: it gives none */
        char *words[WORD_COUNT];     /* NULL: no run has it */
        struct effective_values effective;
};

static void columns_deinit(struct columns *c) {
        for (size_t i = 0; i < FIGURE_COUNT; i++) {
                free(c->values[i]);
                free(c->reasons[i]);
        }
        for (size_t i = 0; i < WORD_COUNT; i++)
                free(c->words[i]);
        effective_values_deinit(&c->effective);
}

static int columns_init(struct columns *c, size_t n_runs) {
        for (size_t i = 0; i < FIGURE_COUNT; i++) {
                c->values[i] = reallocarray(NULL, n_runs ? n_runs : 1, sizeof(double));
                if (!c->values[i])
                        return -ENOMEM; /* the caller frees the others */
        }
        return 0;
}

static const char *known_latency_kind(const struct json_part *result) {
        const struct json_part *kind = json_part_get(json_part_get(result, "latency_ns"), "kind");
        for (const char *const *i = figure_groups[FIGURES_LATENCY].kinds; *i; i++)
                if (json_part_is(kind, *i))
                        return *i;
        return NULL;
}

static void replace_text(char **saved, char *text) {
        free(*saved);
        *saved = text;
}

/* Replaces *saved by the member, if the object has it and it is a string. */
static int save_word(char **saved, const struct json_part *object, const char *name) {
        char *word;
        int r = json_part_string(json_part_get(object, name), &word);
        if (r == 0)
                replace_text(saved, word);
        return r == -EINVAL ? 0 : r;
}

/* Reasons stand beside a figure as NAME_reason. */
static int save_reason(enum figure f, const struct json_part *object, const struct json_part *result, char **saved) {
        char name[64];
        if (!object && figure_groups[figure_terms[f].group].end == FIGURE_OF_OTHER &&
            json_part_get(result, "counted_by")) {
                char *reason = strdup("the run has one agent");
                if (!reason)
                        return -ENOMEM;
                replace_text(saved, reason);
                return 0;
        }
        (void) snprintf(name, sizeof(name), "%s_reason", figure_terms[f].name);
        return save_word(saved, object, name);
}

static int collect_figures(const struct json_part *result, struct columns *c) {
        const struct json_part *objects[FIGURES_GROUPS];
        int r = 0;
        figure_objects(result, objects);
        for (enum figure f = 0; r == 0 && f < FIGURE_COUNT; f++) {
                const struct json_part *object = objects[figure_terms[f].group];
                double v;
                enum figure_state state = figure_read(objects, f, &v);
                c->n_few[f] += state == FIGURE_FEW;
                if (state != FIGURE_ABSENT)
                        c->values[f][c->n[f]++] = v;
                else
                        r = save_reason(f, object, result, &c->reasons[f]);
        }
        return r;
}

static void collect_steady(const struct json_part *result, struct columns *c) {
        bool steady;
        if (!json_part_bool(json_part_get(result, "steady"), &steady))
                return;
        if (steady)
                c->n_steady++;
        else
                c->n_unsteady++;
}

static int collect_run(const char *result_json, struct json_view *view, struct columns *c, const char **latency_kind) {
        int r = json_view_read(view, result_json);
        if (r < 0) {
                if (r != -ENOMEM)
                        log_error("a stored result is not JSON");
                return r;
        }
        const struct json_part *result = view->parts;
        c->n_runs++;
        collect_steady(result, c);
        r = collect_figures(result, c);
        for (size_t i = 0; r == 0 && i < WORD_COUNT; i++)
                r = save_word(&c->words[i], result, words[i]);
        if (r == 0)
                r = effective_values_add(&c->effective, result);
        if (!*latency_kind)
                *latency_kind = known_latency_kind(result);
        return r;
}

/* Flags of all runs, each once, in the order in which they first appear. */
struct flag_set {
        struct flag {
                const char *name;
                uint64_t runs; /* that have it */
        } * flags;
        struct json **trees; /* that own the names; room for one per run */
        size_t n, n_trees;
};

static void flag_set_deinit(struct flag_set *f) {
        for (size_t i = 0; i < f->n_trees; i++)
                json_free(f->trees[i]);
        free(f->trees);
        free(f->flags);
}

static int flag_set_add(struct flag_set *f, const char *name) {
        for (size_t i = 0; i < f->n; i++)
                if (strcmp(f->flags[i].name, name) == 0) {
                        f->flags[i].runs++;
                        return 0;
                }
        if (!util_resize(f->flags, f->n + 1))
                return -ENOMEM;
        f->flags[f->n++] = (struct flag){.name = name, .runs = 1};
        return 0;
}

static int flag_set_merge(struct flag_set *f, const char *flags_json) {
        int r = json_parse(flags_json, strlen(flags_json), &f->trees[f->n_trees], NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        const struct json *list = f->trees[f->n_trees++];
        if (json_type(list) != JSON_ARRAY)
                return -EBADMSG;
        for (const struct json *flag = json_first(list); flag; flag = json_next(flag)) {
                const char *name;
                r = json_as_string(flag, &name) < 0 ? -EBADMSG : flag_set_add(f, name);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int flag_set_print(const struct flag_set *f, struct result_record *row) {
        _cleanup_(json_writer_deinit) struct json_writer names = {}, runs = {};
        json_array_begin(&names);
        json_object_begin(&runs);
        for (size_t i = 0; i < f->n; i++) {
                json_put_string(&names, f->flags[i].name);
                json_member_u64(&runs, f->flags[i].name, f->flags[i].runs);
        }
        json_array_end(&names);
        json_object_end(&runs);
        int r = json_writer_steal(&names, &row->flags_json, NULL);
        return r < 0 ? r : json_writer_steal(&runs, &row->flag_runs_json, NULL);
}

static int unite_flags(const struct point_record *p, struct result_record *row) {
        _cleanup_(flag_set_deinit) struct flag_set flags = {.trees = calloc(p->n_runs + 1, sizeof(void *))};
        if (!flags.trees)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_runs; i++) {
                int r = flag_set_merge(&flags, p->runs[i].flags_json);
                if (r < 0)
                        return r;
        }
        return flag_set_print(&flags, row);
}

static const char *one_way_reason(const struct columns *c, const struct result_record *row) {
        if (c->words[ONE_WAY_REASON])
                return c->words[ONE_WAY_REASON];
        bool round_trips = row->figures[FIGURE_BOTH_WAYS].n > 0;
        return round_trips && result_loop_is_open(c->words[LOOP]) ? RESULT_ONE_WAY_REASON
                                                                  : figure_terms[FIGURE_BOTH_WAYS].absent;
}

/* Writes the reasons of all figures that are null although there are runs, and of percentiles that nothing is concluded
 * from. */
static int print_reasons(const struct columns *c, const struct result_record *row, char **ret) {
        _cleanup_(json_writer_deinit) struct json_writer w = {};
        json_object_begin(&w);
        for (size_t i = 0; c->n_runs > 0 && i < FIGURE_COUNT; i++)
                if (c->n[i] == 0 &&
                    !figure_groups[figure_terms[i].group].in_row) { /* the object has one reason for all */
                        char name[64];
                        figure_name((enum figure) i, name, sizeof(name));
                        const char *common = figure_terms[i].absent ? figure_terms[i].absent : NOT_REPORTED;
                        json_member_string(&w, name, c->reasons[i] ? c->reasons[i] : common); /* the last run's */
                }
        for (size_t i = 0; i < FIGURE_COUNT; i++)
                if (c->n_few[i] > 0) {
                        char name[64];
                        figure_name((enum figure) i, name, sizeof(name));
                        json_member_string(&w, name, figure_terms[i].few);
                }
        if (c->n_runs > 0 && (!row->latency_kind || row->figures[FIGURE_LATENCY_P50].n == 0))
                json_member_string(&w, "latency_ns",
                                   c->words[LATENCY_REASON] ? c->words[LATENCY_REASON] : NOT_REPORTED);
        if (c->n_runs > 0 && row->figures[FIGURE_ONE_WAY_P50].n == 0)
                json_member_string(&w, figure_groups[FIGURES_ONE_WAY].in_row, one_way_reason(c, row));
        if (c->n_runs > 0 && !row->steady)
                json_member_string(&w, "steady", c->words[STEADY_REASON] ? c->words[STEADY_REASON] : NOT_REPORTED);
        if (c->n_runs > 0 && !row->serial.known)
                json_member_string(
                        &w, "autocorrelation",
                        c->n[row->serial_figure] < SERIAL_RUNS_LEAST
                                ? "fewer than " UTIL_TEXT(SERIAL_RUNS_LEAST) " runs: too few to estimate it from"
                                : "all runs have the same figure");
        if (!c->words[VERIFY] && c->words[VERIFY_REASON])
                json_member_string(&w, "verify", c->words[VERIFY_REASON]);
        json_object_end(&w);
        return json_writer_steal(&w, ret, NULL);
}

/* The figure by which rows of this kind are compared first. */
static enum figure first_figure(const struct columns *c, const struct result_record *row) {
        bool timed = row->latency_kind && c->n[FIGURE_LATENCY_P50] > 0;
        if (c->n[FIGURE_COST] > 0)
                return FIGURE_COST;
        return timed && (strcmp(row->latency_kind, "rtt") == 0 || result_loop_is_open(c->words[LOOP]))
                       ? FIGURE_LATENCY_P50
                       : FIGURE_THROUGHPUT;
}

static int fill_statistics(const struct point_record *p, struct result_record *row) {
        _cleanup_(columns_deinit) struct columns c = {0};
        _cleanup_(json_view_deinit) struct json_view view = {0};
        int r = columns_init(&c, p->n_runs);
        for (size_t i = 0; r == 0 && i < p->n_runs; i++)
                if (p->runs[i].state == STATE_DONE && p->runs[i].result_json)
                        r = collect_run(p->runs[i].result_json, &view, &c, &row->latency_kind);
        for (size_t i = 0; r == 0 && i < FIGURE_COUNT; i++) {
                r = serial_summarize(c.values[i], c.n[i], &row->figures[i], NULL);
                row->figures[i].has_hodges_lehmann &= !figure_terms[i].quantile;
        }
        /* false if any run is not steady; true only if it is known of all */
        bool are_steady = c.n_runs > 0 && c.n_steady == c.n_runs;
        row->steady = c.n_unsteady > 0 ? "false" : are_steady ? "true" : NULL;
        row->serial_figure = first_figure(&c, row);
        if (r == 0)
                r = serial_judge(c.values[row->serial_figure], c.n[row->serial_figure], &row->serial);
        if (r == 0)
                r = print_reasons(&c, row, &row->reasons_json);
        if (r == 0)
                r = effective_values_print(&c.effective, &row->effective_json);
        row->loop = util_steal(&c.words[LOOP]);
        row->verify = util_steal(&c.words[VERIFY]);
        row->counted_by = util_steal(&c.words[COUNTED_BY]);
        return r;
}

static int make_row(struct point_record *p, struct result_record *ret) {
        struct result_record row = {
                .point_json = util_steal(&p->point_json), .rate = p->rate, .runs_planned = (uint32_t) p->n_runs};
        row.run_ids = reallocarray(NULL, p->n_runs ? p->n_runs : 1, sizeof(*row.run_ids));
        if (!row.run_ids) {
                result_record_deinit(&row);
                return -ENOMEM;
        }
        for (size_t i = 0; i < p->n_runs; i++) {
                struct point_run *run = &p->runs[i];
                if (run->state == STATE_DONE)
                        row.run_ids[row.runs++] = run->id;
                row.runs_failed += run->state == STATE_FAILED;
                if (run->state == STATE_FAILED && run->error) {
                        free(row.error);
                        row.error = util_steal(&run->error);
                }
        }
        int r = fill_statistics(p, &row);
        if (r == 0)
                r = unite_flags(p, &row);
        if (r < 0) {
                result_record_deinit(&row);
                return r;
        }
        *ret = row;
        return 0;
}

static int read_points(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                       struct point_record **ret, size_t *ret_n, struct refusal *r) {
        return SERVICE_READ(s, r, "experiment", experiment_id,
                            store_points(store, experiment_id, from, limit, ret, ret_n));
}

const char *service_effective_name(size_t i) {
        return effective_name(i);
}

/* ---- rows that stay in the cache ---- */

struct rows {
        struct result_record items[ROWS_PER_ITEM];
        uint32_t n;
};

static void rows_free(void *payload) {
        struct rows *rows = payload;
        for (uint32_t i = 0; i < rows->n; i++)
                result_record_deinit(&rows->items[i]);
        free(rows);
}

static size_t rows_bytes(const struct rows *rows) {
        size_t bytes = sizeof(*rows);
        for (uint32_t i = 0; i < rows->n; i++) {
                const struct result_record *row = &rows->items[i];
                const char *const texts[] = {row->point_json, row->loop,           row->verify,
                                             row->counted_by, row->reasons_json,   row->flags_json,
                                             row->error,      row->flag_runs_json, row->effective_json};
                bytes += row->runs_planned * sizeof(*row->run_ids);
                for (size_t k = 0; k < ELEMENTS(texts); k++)
                        bytes += texts[k] ? strlen(texts[k]) + 1 : 0;
        }
        return bytes;
}

static int make_rows(struct service *s, int64_t experiment_id, uint32_t from, struct rows *rows, struct refusal *r) {
        while (rows->n < ROWS_PER_ITEM) {
                struct point_record *page = NULL;
                size_t n = 0;
                int error = read_points(s, experiment_id, from + rows->n, ROWS_PER_ITEM - rows->n, &page, &n, r);
                if (error < 0)
                        return error;
                for (size_t i = 0; error == 0 && i < n; i++) {
                        error = make_row(&page[i], &rows->items[rows->n]);
                        rows->n += error == 0;
                }
                store_points_free(page, n);
                if (error < 0)
                        return service_fail(s, r, error, "summing the runs up", 0);
                if (n == 0)
                        return 0;
        }
        return 0;
}

/* The rows of the points from `number` times ROWS_PER_ITEM on. */
static int get_rows(struct service *s, const struct experiment_record *e, uint32_t number, struct cache_item **ret,
                    struct refusal *r) {
        struct cache_item item = {.kind = CACHE_RESULTS,
                                  .id = e->id * ITEMS_MAX + number,
                                  .change = e->change,
                                  .free_payload = rows_free};
        *ret = cache_get(&s->cache, item.kind, item.id, item.change);
        if (*ret)
                return 0;
        struct rows *rows = calloc(1, sizeof(*rows));
        int error = rows ? make_rows(s, e->id, number * ROWS_PER_ITEM, rows, r)
                         : service_fail(s, r, -ENOMEM, "summing the runs up", 0);
        if (error == 0) {
                item.payload = rows;
                item.bytes = rows_bytes(rows);
                error = cache_add(&s->cache, &item, ret);
                if (error < 0)
                        (void) service_fail(s, r, error, "summing the runs up", 0);
        }
        if (error < 0 && rows)
                rows_free(rows);
        return error;
}

/* ---- the table ---- */

/* The request of a reader of the table. */
struct visitor {
        int (*visit)(void *userdata, const struct result_record *row);
        void *userdata;
};

/* *ret_n: how many rows were visited without an end; 0: there are none. */
static int visit_cached(struct service *s, const struct experiment_record *e, uint32_t from, uint32_t limit,
                        const struct visitor *v, uint32_t *ret_n, struct refusal *r) {
        struct cache_item *item;
        int error = get_rows(s, e, from / ROWS_PER_ITEM, &item, r);
        if (error < 0)
                return error;
        const struct rows *rows = item->payload;
        *ret_n = 0;
        for (uint32_t i = from % ROWS_PER_ITEM; error == 0 && i < rows->n && *ret_n < limit; i++, ++*ret_n)
                error = v->visit(v->userdata, &rows->items[i]);
        cache_release(&s->cache, item);
        return error;
}

static int visit_stored(struct service *s, const struct experiment_record *e, uint32_t from, uint32_t limit,
                        const struct visitor *v, uint32_t *ret_n, struct refusal *r) {
        struct point_record *page = NULL;
        size_t n = 0;
        int error = read_points(s, e->id, from, limit < POINTS_PER_PAGE ? limit : POINTS_PER_PAGE, &page, &n, r);
        if (error < 0)
                return error;
        for (size_t i = 0; error == 0 && i < n; i++) {
                _cleanup_(result_record_deinit) struct result_record row = {0};
                error = make_row(&page[i], &row);
                error = error < 0 ? service_fail(s, r, error, "summing the runs up", 0) : v->visit(v->userdata, &row);
        }
        store_points_free(page, n);
        *ret_n = (uint32_t) n;
        return error;
}

int service_results(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                    int (*visit)(void *userdata, const struct result_record *row), void *userdata, struct refusal *r) {
        const struct visitor v = {visit, userdata};
        _cleanup_(experiment_record_deinit) struct experiment_record e = {0};
        int error = service_experiment(s, experiment_id, &e, r);
        bool finished = e.state != STATE_QUEUED && e.state != STATE_RUNNING;
        for (uint32_t n = 1; error == 0 && limit > 0 && n > 0; from += n, limit -= n)
                error = finished && from < ITEMS_MAX * ROWS_PER_ITEM ? visit_cached(s, &e, from, limit, &v, &n, r)
                                                                     : visit_stored(s, &e, from, limit, &v, &n, r);
        return error;
}
