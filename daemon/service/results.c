/* SPDX-License-Identifier: MIT */

/*
 * The results table: for each point the statistics over its done runs. Computed when it is asked for, from what the
 * runs reported, so that a better statistic later applies to old experiments too.
 */

#include "daemon/analysis/order.h"
#include "daemon/log.h"
#include "daemon/result/cost.h"
#include "daemon/result/effective.h"
#include "daemon/result/figure.h"
#include "daemon/result/result.h"
#include "daemon/service/internal.h"
#include "schema/figures.h"
#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define POINTS_PER_PAGE 32u

/* Of figures that runs of another version did not have. */
#define UNTOLD "the runs do not tell it"

/* What runs say in words. The last that says one is believed: what is asked of a point is the same for all of them. */
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
        size_t n_runs, n_steady, n_unsteady;
        char *reasons[FIGURE_COUNT]; /* why the last run that has none has none; NULL: it does not say */
        char *words[WORD_COUNT];     /* NULL: no run says it */
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

static const char *known_latency_kind(const struct json *result) {
        const struct json *kind = result_member(result_member(result, "latency_ns"), "kind");
        const char *name;
        if (!kind || json_as_string(kind, &name) < 0)
                return NULL;
        for (const char *const *i = figure_groups[FIGURES_LATENCY].kinds; *i; i++)
                if (strcmp(name, *i) == 0)
                        return *i;
        return NULL;
}

/* Reasons stand beside a figure as NAME_reason. */
static const char *reason_for(enum figure f, const struct json *object, const struct json *result) {
        char name[64];
        if (!object && figure_groups[figure_terms[f].group].end == FIGURE_OF_OTHER && result_word(result, "counted_by"))
                return "the run has one agent";
        (void) snprintf(name, sizeof(name), "%s_reason", figure_terms[f].name);
        return result_word(object, name);
}

static int keep(char **kept, const char *text) {
        char *copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        free(*kept);
        *kept = copy;
        return 0;
}

static int collect_figure(const struct json *result, enum figure i, struct columns *c) {
        double v;
        if (result_figure(i, result, &v)) {
                c->values[i][c->n[i]++] = v;
                return 0;
        }
        const char *reason = reason_for(i, figure_object(i, result), result);
        return reason ? keep(&c->reasons[i], reason) : 0;
}

static void collect_steady(const struct json *result, struct columns *c) {
        const struct json *member = result_member(result, "steady");
        bool steady;
        if (!member || json_as_bool(member, &steady) < 0)
                return;
        if (steady)
                c->n_steady++;
        else
                c->n_unsteady++;
}

/* One that is not is enough, and one that nobody can tell is too many. */
static const char *steady_of(const struct columns *c) {
        if (c->n_unsteady > 0)
                return "false";
        return c->n_runs > 0 && c->n_steady == c->n_runs ? "true" : NULL;
}

static int collect_run(const char *result_json, struct columns *c, const char **latency_kind) {
        struct json *result;
        struct json_error error;
        int r = json_parse(result_json, strlen(result_json), &result, &error);
        if (r < 0) {
                if (r != -ENOMEM)
                        log_error("a stored result is not JSON: %s", error.detail);
                return r == -ENOMEM ? r : -EBADMSG;
        }
        c->n_runs++;
        collect_steady(result, c);
        for (size_t i = 0; r == 0 && i < FIGURE_COUNT; i++)
                r = collect_figure(result, (enum figure) i, c);
        for (size_t i = 0; r == 0 && i < WORD_COUNT; i++) {
                const char *word = result_word(result, words[i]);
                if (word)
                        r = keep(&c->words[i], word);
        }
        if (r == 0)
                r = effective_values_add(&c->effective, result);
        if (!*latency_kind)
                *latency_kind = known_latency_kind(result);
        json_free(result);
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
        struct flag *flags = reallocarray(f->flags, f->n + 1, sizeof(*flags));
        if (!flags)
                return -ENOMEM;
        f->flags = flags;
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
        _cleanup_(json_writer_deinit) struct json_writer names, runs;
        json_writer_init(&names);
        json_writer_init(&runs);
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

/* Of a figure that no run has: what the last run says, else what is known of all that say nothing. */
static const char *reason_of(const struct columns *c, enum figure f) {
        if (c->reasons[f])
                return c->reasons[f];
        return figure_terms[f].absent ? figure_terms[f].absent : UNTOLD;
}

/* Whether a row's object has one reason for all of its figures. */
static bool has_common_reason(enum figure f) {
        return figure_groups[figure_terms[f].group].in_row != NULL;
}

static const char *one_way_reason(const struct columns *c, const struct result_record *row) {
        if (c->words[ONE_WAY_REASON])
                return c->words[ONE_WAY_REASON];
        bool round_trips = row->figures[FIGURE_BOTH_WAYS].n > 0;
        return round_trips && result_loop_is_open(c->words[LOOP]) ? RESULT_ONE_WAY_REASON : RESULT_BOTH_WAYS_REASON;
}

/* Of all figures that are null although there are runs. */
static int print_reasons(const struct columns *c, const struct result_record *row, char **ret) {
        struct json_writer w;
        json_writer_init(&w);
        json_object_begin(&w);
        for (size_t i = 0; c->n_runs > 0 && i < FIGURE_COUNT; i++)
                if (c->n[i] == 0 && !has_common_reason((enum figure) i)) {
                        char name[64];
                        figure_name((enum figure) i, name, sizeof(name));
                        json_member_string(&w, name, reason_of(c, (enum figure) i));
                }
        if (c->n_runs > 0 && (!row->latency_kind || row->figures[FIGURE_LATENCY_P50].n == 0))
                json_member_string(&w, "latency_ns", c->words[LATENCY_REASON] ? c->words[LATENCY_REASON] : UNTOLD);
        if (c->n_runs > 0 && row->figures[FIGURE_ONE_WAY_P50].n == 0)
                json_member_string(&w, figure_groups[FIGURES_ONE_WAY].in_row, one_way_reason(c, row));
        if (c->n_runs > 0 && !row->steady)
                json_member_string(&w, "steady", c->words[STEADY_REASON] ? c->words[STEADY_REASON] : UNTOLD);
        if (!c->words[VERIFY] && c->words[VERIFY_REASON])
                json_member_string(&w, "verify", c->words[VERIFY_REASON]);
        json_object_end(&w);
        int r = json_writer_steal(&w, ret, NULL);
        json_writer_deinit(&w);
        return r;
}

static int fill_statistics(const struct point_record *p, struct result_record *row) {
        _cleanup_(columns_deinit) struct columns c = {0};
        int r = columns_init(&c, p->n_runs);
        for (size_t i = 0; r == 0 && i < p->n_runs; i++)
                if (p->runs[i].state == STATE_DONE && p->runs[i].result_json)
                        r = collect_run(p->runs[i].result_json, &c, &row->latency_kind);
        for (size_t i = 0; r == 0 && i < FIGURE_COUNT; i++)
                r = order_summarize(c.values[i], c.n[i], &row->figures[i]);
        row->steady = steady_of(&c);
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
        struct result_record row = {.point_json = util_steal(&p->point_json), .runs_planned = (uint32_t) p->n_runs};
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

static int visit_point(struct service *s, struct point_record *p,
                       int (*visit)(void *userdata, const struct result_record *row), void *userdata,
                       struct refusal *r) {
        _cleanup_(result_record_deinit) struct result_record row = {0};
        int error = make_row(p, &row);
        return error < 0 ? service_fail(s, r, error, "summing the runs up", 0) : visit(userdata, &row);
}

const char *service_effective_name(size_t i) {
        return effective_name(i);
}

int service_results(struct service *s, int64_t experiment_id, uint32_t from, uint32_t limit,
                    int (*visit)(void *userdata, const struct result_record *row), void *userdata, struct refusal *r) {
        for (uint32_t left = limit; left > 0;) {
                uint32_t some = left < POINTS_PER_PAGE ? left : POINTS_PER_PAGE;
                struct point_record *page = NULL;
                size_t n = 0;
                struct reader *reader;
                int error = service_reader_get(s, &reader, r);
                if (error < 0)
                        return error;
                error = store_points(reader->store, experiment_id, from, some, &page, &n);
                service_reader_put(s, reader);
                if (error < 0)
                        return service_fail(s, r, error, "experiment", experiment_id);
                for (size_t i = 0; error == 0 && i < n; i++)
                        error = visit_point(s, &page[i], visit, userdata, r);
                store_points_free(page, n);
                if (error != 0 || n == 0)
                        return error;
                from += (uint32_t) n;
                left -= (uint32_t) n;
        }
        return 0;
}
