/* SPDX-License-Identifier: MIT */

/* See failing.h. Called from the api's threads by the advice. */

#include "daemon/service/advice/failing.h"

#include "daemon/host/environment/build.h"
#include "daemon/service/evidence.h"
#include "schema/json/json.h"
#include "schema/json/view.h"
#include "schema/spec/axes.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

/* Members of a spec by which runs may fail that would not fail without them. */
static const char *const options[] = {"require", "tune", "transport_options", "chunk", "rate"};

static bool lasts(enum fact_name f) {
        return f != FACT_DEVICE_IRQS && f != FACT_NTP;
}

/* The machine's state as runs depend on it: of an environment, all facts that do not change by themselves, and the
 * build. -EBADMSG: no object; -ENOMEM. */
static int print_state(const struct json *environment, const struct json *build, char **ret) {
        return environment_print_facts(environment, lasts, build, ret);
}

int failing_state_now(struct service *s, const struct json *environment, char **ret) {
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_freep) struct json *build = NULL;
        int r = 0;
        if (s->hooks.build) {
                _cleanup_(json_writer_deinit) struct json_writer w = {};
                build_put(s->hooks.build, &w);
                r = json_writer_steal(&w, &text, NULL);
                if (r == 0)
                        r = json_parse(text, strlen(text), &build, NULL);
        }
        return r < 0 ? r : print_state(environment, build, ret);
}

/* 1: the run's environment before it was that of now. */
static int was_as_now(const char *environment_json, const char *state) {
        _cleanup_free_ char *before = NULL;
        _cleanup_(json_freep) struct json *root = NULL;
        if (!environment_json)
                return 0;
        int r = json_parse(environment_json, strlen(environment_json), &root, NULL);
        if (r == 0 && json_type(root) == JSON_OBJECT)
                r = print_state(json_get(root, "before"), json_get(root, "build"), &before);
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* damaged, or without an environment */
        return before && strcmp(before, state) == 0;
}

/* Whether the question has a value of the axis. */
static bool is_given(enum axis_name x) {
        return x == AXIS_WORKLOAD || x == AXIS_MESSAGE_SIZE || x == AXIS_THREADS || x == AXIS_PLACEMENT;
}

/* Whether any value will do: the transport is what is looked for, and two instances are one thing. */
static bool is_free(enum axis_name x) {
        return x == AXIS_TRANSPORT || x == AXIS_INSTANCE;
}

/* The point of the question with default options. */
static bool is_asked(const struct advice_question *q, const struct point *p) {
        if (!advice_concerns(q, p) || p->message_size != q->message_size || !workload_has_transport(p->workload))
                return false;
        for (enum axis_name x = 0; x < AXIS_COUNT; x++) {
                const struct value *v = &axes[x].value;
                if (!is_given(x) && !is_free(x) && axis_applies(&axes[x], p) &&
                    !v->type->equal(v, axis_of(&axes[x], p), v->standard))
                        return false;
        }
        return true;
}

/* What is read of an experiment, and where it goes. */
struct search {
        struct store *store;
        const struct advice_question *q;
        const char *state;
        struct failing_transport *list;
        size_t n;
        int64_t experiment_id;
        bool has_spec, with_options; /* of its spec, which is read where one of its points is the one */
        char *wanted[AXIS_COUNT];    /* of a point of the question, each axis as JSON; NULL: any value */
        struct json_view view;       /* of one point after the other */
};

static int write_wanted(struct search *x) {
        const struct point p = {.workload = x->q->workload,
                                .message_size = x->q->message_size,
                                .threads = x->q->threads,
                                .placement.kind = x->q->placement};
        int r = 0;
        for (enum axis_name i = 0; r == 0 && i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                _cleanup_(json_writer_deinit) struct json_writer w = {};
                if (is_free(i))
                        continue;
                v->type->write(v, &w, is_given(i) ? axis_of(&axes[i], &p) : v->standard);
                r = json_writer_steal(&w, &x->wanted[i], NULL);
        }
        return r;
}

static void search_deinit(struct search *x) {
        for (size_t i = 0; i < AXIS_COUNT; i++)
                free(x->wanted[i]);
        json_view_deinit(&x->view);
}

/* Whether an axis of the point differs from the question's. Nearly all points of a large experiment do, and to parse
 * them takes ten times as long. 1: it does. */
static int is_another(struct search *x, const char *point_json) {
        int r = json_view_read(&x->view, point_json);
        if (r < 0)
                return r;
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct json_part *part = x->wanted[i] ? json_part_get(x->view.parts, axes[i].value.name) : NULL;
                if (json_part_get(part, "kind")) /* a placement with more than its kind */
                        continue;
                if (part &&
                    (part->length != strlen(x->wanted[i]) || memcmp(part->text, x->wanted[i], part->length) != 0))
                        return 1;
        }
        return 0;
}

static int has_options(const char *merged_json, bool *ret) {
        _cleanup_(json_freep) struct json *spec = NULL;
        int r = json_parse_stored(merged_json, &spec);
        *ret = false;
        for (size_t i = 0; r == 0 && i < ELEMENTS(options); i++)
                *ret |= json_get(spec, options[i]) != NULL;
        return r;
}

static int read_options(struct search *x) {
        struct experiment_extent e = {0};
        if (x->has_spec)
                return 0;
        int r = store_read_extent(x->store, x->experiment_id, &e);
        if (r == 0)
                r = has_options(e.merged_json, &x->with_options);
        experiment_extent_deinit(&e);
        x->has_spec = r == 0;
        return r;
}

static bool is_listed(const struct search *x, enum transport t) {
        for (size_t i = 0; i < x->n; i++)
                if (x->list[i].transport == t)
                        return true;
        return false;
}

static int take(struct search *x, enum transport t, int64_t point_id) {
        struct failed_point f = {0};
        int r = store_failed_point(x->store, point_id, FAILING_RUNS_LEAST, &f);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = was_as_now(f.environment_json, x->state);
        if (r > 0)
                x->list[x->n++] = (struct failing_transport){.transport = t,
                                                             .experiment_id = x->experiment_id,
                                                             .runs = f.n_failed,
                                                             .error = util_steal(&f.error)};
        failed_point_deinit(&f);
        return r < 0 ? r : 0;
}

/* 1: no other point of the experiment is of use. */
static int visit(void *userdata, int64_t point_id, const char *point_json) {
        struct search *x = userdata;
        struct point p;
        int r = is_another(x, point_json);
        if (r != 0)
                return r == -ENOMEM ? r : 0;
        r = point_from_json(point_json, strlen(point_json), &p);
        if (r < 0)
                return r == -EINVAL ? 0 : r; /* of another version */
        if (!is_asked(x->q, &p) || is_listed(x, p.transport))
                return 0;
        r = read_options(x);
        if (r < 0)
                return r;
        return x->with_options ? 1 : take(x, p.transport, point_id);
}

static int search(struct search *x, const struct experiment_change *list, size_t n_list,
                  struct failing_unreadable *unreadable) {
        uint32_t left = FAILING_POINTS_MAX;
        for (size_t i = 0; i < n_list && left > 0; i++) {
                uint32_t n_visited = 0;
                x->experiment_id = list[i].id;
                x->has_spec = false;
                int r = store_visit_points(x->store, list[i].id, left, visit, x, &n_visited);
                left -= n_visited;
                if (r == -EBADMSG)
                        unreadable->ids[unreadable->n++] = list[i].id;
                else if (r < 0 && r != -ENOENT) /* forgotten meanwhile */
                        return r;
        }
        return 0;
}

int failing_list(struct service *s, const struct advice_question *q, const char *state, struct failing_transport *ret,
                 size_t *ret_n, struct failing_unreadable *ret_unreadable, struct refusal *r) {
        struct experiment_change *list = NULL;
        size_t n = 0;
        struct reader *reader;
        *ret_n = 0;
        ret_unreadable->n = 0;
        int error = service_reader_get(s, &reader, r);
        if (error < 0)
                return error;
        struct search x = {.store = reader->store, .q = q, .state = state, .list = ret};
        error = write_wanted(&x);
        if (error == 0)
                error = store_failed(reader->store, FAILING_EXPERIMENTS_MAX, &list, &n);
        if (error == 0)
                error = search(&x, list, n, ret_unreadable);
        service_reader_put(s, reader);
        search_deinit(&x);
        free(list);
        *ret_n = x.n;
        return error < 0 ? service_fail(s, r, error, "reading what failed", 0) : 0;
}
