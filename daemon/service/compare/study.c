/* SPDX-License-Identifier: MIT */

/* See the header. Points are read a page at a time, so that a large experiment holds no reader for long. */

#include "daemon/service/compare/study.h"

#include "daemon/result/figure.h"
#include "daemon/service/service.h"
#include "schema/hash.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define POINTS_PER_PAGE 16u

void compared_deinit(struct compared *st) {
        for (size_t i = 0; i < st->n; i++) {
                free(st->points[i].point_json);
                free(st->points[i].point);
                free(st->points[i].values);
                free(st->points[i].blocks);
        }
        free(st->points);
        free(st->environment_json);
        experiment_record_deinit(&st->e);
        *st = (struct compared){0};
}

static void take_run(const struct figures_run *run, const struct compared_figures *figures, struct compared_point *p) {
        p->runs_failed += run->state == STATE_FAILED;
        if (run->state != STATE_DONE)
                return;
        for (size_t i = 0; i < figures->n; i++)
                p->values[(size_t) p->runs * figures->n + i] = run->values[figures->of[i]];
        p->blocks[p->runs++] = run->block;
        p->runs_noisy += run->noisy;
        for (size_t i = 0; i < DISPUTED_COUNT; i++)
                p->runs_disputed[i] += run->disputed[i];
        p->few |= run->few;
        p->requested |= run->requested;
}

/* Its memory is freed with the study, after an error too. */
static int take_point(struct figures_point *from, bool with_point, struct compared_point *p) {
        struct compared_figures figures;
        figures_compared(&figures);
        size_t n = from->n_runs ? from->n_runs : 1;
        p->point_json = util_steal(&from->point_json);
        p->values = reallocarray(NULL, n, figures.n * sizeof(double));
        p->blocks = calloc(n, sizeof(*p->blocks));
        if (!p->values || !p->blocks)
                return -ENOMEM;
        p->hash = hash_more(HASH_BEGIN, p->point_json, strlen(p->point_json));
        p->n_figures = figures.n;
        for (size_t i = 0; i < from->n_runs; i++)
                take_run(&from->runs[i], &figures, p);
        if (!with_point)
                return 0;
        _cleanup_free_ struct point *point = malloc(sizeof(*point));
        if (!point)
                return -ENOMEM;
        int r = point_from_json(p->point_json, strlen(p->point_json), point);
        if (r == 0)
                p->point = util_steal(&point);
        return r == -ENOMEM ? r : 0;
}

static int take_page(struct compared *st, struct figures_point *page, size_t n, bool with_points) {
        if (!util_resize(st->points, st->n + n))
                return -ENOMEM;
        memset(st->points + st->n, 0, n * sizeof(*st->points));
        int r = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = take_point(&page[i], with_points, &st->points[st->n++]);
        return r;
}

static int load_points(struct service *s, struct compared *st, bool with_points, struct refusal *r) {
        for (;;) {
                struct figures_point *page = NULL;
                size_t n = 0;
                int error = SERVICE_READ(s, r, "experiment", st->e.id,
                                         store_figures(store, st->e.id, (uint32_t) st->n, POINTS_PER_PAGE, &page, &n));
                if (error < 0)
                        return error;
                error = n > 0 ? take_page(st, page, n, with_points) : 0;
                store_figures_free(page, n);
                if (error < 0)
                        return service_fail(s, r, error, "reading the runs", 0);
                if (n == 0)
                        return 0;
        }
}

static int load_environment(struct service *s, int64_t id, bool last, char **ret, struct refusal *r) {
        *ret = NULL;
        int error = SERVICE_READ(s, r, "reading the environment", 0, store_environment(store, id, last, ret));
        return error == -ENOENT ? 0 : error;
}

int compared_last_environment(struct service *s, int64_t experiment_id, char **ret, struct refusal *r) {
        return load_environment(s, experiment_id, true, ret, r);
}

int compared_changed_runs(struct service *s, int64_t experiment_id, struct changed_run **ret, size_t *ret_n,
                          struct refusal *r) {
        return SERVICE_READ(s, r, "reading the runs' flags", 0, store_changed_runs(store, experiment_id, ret, ret_n));
}

int compared_run_environment(struct service *s, int64_t run_id, char **ret, struct refusal *r) {
        return SERVICE_READ(s, r, "run", run_id, store_run_environment(store, run_id, ret));
}

int compared_load(struct service *s, int64_t experiment_id, bool with_points, struct compared *ret, struct refusal *r) {
        struct compared st = {0};
        int error = service_experiment(s, experiment_id, &st.e, r);
        if (error < 0)
                return error;
        error = load_points(s, &st, with_points, r);
        if (error == 0)
                error = load_environment(s, experiment_id, false, &st.environment_json, r);
        if (error < 0) {
                compared_deinit(&st);
                return error;
        }
        *ret = st;
        return 0;
}
