/* SPDX-License-Identifier: MIT */

/*
 * The points that a spec's axes span, and which of them neither mechanism nor build can do. Called by the daemon when
 * an experiment is posted, after spec_parse().
 */

#include "schema/spec-internal.h"

#include "schema/util.h"

#include <string.h>

/* One word of a point against what its transport ever has and has in this build. */
static int check_word(const char *field, const char *word, unsigned bit, unsigned ever, unsigned now,
                      const struct transport_term *t, struct refusal *r) {
        char pointer[32];
        snprintf(pointer, sizeof(pointer), "/%s", field);
        if (ever != 0 && !(ever & bit))
                return refuse(r, 422, "impossible-combination", pointer, "%s %s is not possible with transport %s",
                              field, word, t->name);
        if (ever != 0 && !(now & bit))
                return refuse(r, 422, "not-available", pointer,
                              "%s %s is not available with transport %s: this build does not have it yet", field, word,
                              t->name);
        return 0;
}

static int check_transport(const struct point *p, struct refusal *r) {
        const struct transport_term *t = &transport_terms[p->transport];
        if (t->unavailable)
                return refuse(r, 422, "not-available", "/transport", "transport %s is not available: %s", t->name,
                              t->unavailable);
        if (!(t->workloads & 1u << p->workload))
                return refuse(r, 422, "not-available", "/workload",
                              "workload %s is not available with transport %s: this build does not have it yet",
                              workload_name(p->workload), t->name);
        if (check_word("copy_mode", copy_mode_name(p->copy_mode), 1u << p->copy_mode, t->ever_copy_modes, t->copy_modes,
                       t, r) < 0 ||
            check_word("engine", engine_name(p->engine), 1u << p->engine, t->ever_engines, t->engines, t, r) < 0 ||
            check_word("wait", wait_mode_name(p->wait), 1u << p->wait, t->ever_waits, t->waits, t, r) < 0)
                return -EINVAL;
        return 0;
}

int point_check(const struct point *p, struct refusal *r) {
        const char *why = workload_unavailable(p->workload);
        if (why)
                return refuse(r, 422, "not-available", "/workload", "workload %s is not available: %s",
                              workload_name(p->workload), why);
        if (workload_has_transport(p->workload) && check_transport(p, r) < 0)
                return -EINVAL;
        if (!placement_fits(&p->placement, p->workload, p->transport))
                return refuse(r, 422, "impossible-combination", "/placement",
                              "the placement names roles that workload %s does not have here: they are %s%s%s",
                              workload_name(p->workload), role_name(p->workload, p->transport, END_FIRST),
                              workload_agents(p->workload) == 2 ? " and " : "",
                              workload_agents(p->workload) == 2 ? role_name(p->workload, p->transport, END_SECOND)
                                                                : "");
        return 0;
}

/* How many values of each axis mean something for a workload over a transport; 1 where the field folds away. */
struct extent {
        size_t transports, message_sizes, threads, copy_modes, engines, waits, placements;
};

static struct extent extent_of(const struct spec *s, enum workload w, enum transport t) {
        bool moves = workload_has_transport(w);
        return (struct extent){
                .transports = moves ? s->n_transports : 1,
                .message_sizes = moves ? s->n_message_sizes : 1,
                .threads = moves ? s->n_threads : 1,
                .copy_modes = point_has_copy_mode(w, t) ? s->n_copy_modes : 1,
                .engines = point_has_engine(w, t) ? s->n_engines : 1,
                .waits = point_has_wait(w, t) ? s->n_waits : 1,
                .placements = s->n_placements,
        };
}

/* Combinations of all axes; no overflow: each list has at most SPEC_LIST_MAX values, most far fewer words. */
static uint64_t count(const struct spec *s) {
        uint64_t n = 0;
        for (size_t w = 0; w < s->n_workloads; w++)
                for (size_t t = 0; t < extent_of(s, s->workloads[w], s->transports[0]).transports; t++) {
                        struct extent e = extent_of(s, s->workloads[w], s->transports[t]);
                        n += (uint64_t) e.message_sizes * e.threads * e.copy_modes * e.engines * e.waits * e.placements;
                }
        return n;
}

/* The i-th combination of the axes inside one workload and transport, placement fastest. */
static void fill(const struct spec *s, enum workload w, enum transport t, size_t i, struct point *p) {
        struct extent e = extent_of(s, w, t);

        memset(p, 0, sizeof(*p));
        p->workload = w;
        p->placement = s->placements[i % e.placements];
        i /= e.placements;
        if (!workload_has_transport(w))
                return;
        p->transport = t;
        if (point_has_wait(w, t))
                p->wait = s->waits[i % e.waits];
        i /= e.waits;
        if (point_has_engine(w, t))
                p->engine = s->engines[i % e.engines];
        i /= e.engines;
        if (point_has_copy_mode(w, t))
                p->copy_mode = s->copy_modes[i % e.copy_modes];
        i /= e.copy_modes;
        p->threads = s->threads[i % e.threads];
        i /= e.threads;
        p->message_size = s->message_sizes[i];
}

static int add(const struct spec *s, const struct point *p, struct point_list *list, struct refusal *r) {
        if (point_check(p, r) == 0) {
                list->points[list->n_points++] = *p;
                return 0;
        }
        if (!s->skip_impossible)
                return -EINVAL;
        struct point_skipped *skipped = &list->skipped[list->n_skipped++];
        skipped->point = *p;
        snprintf(skipped->reason, sizeof(skipped->reason), "%.*s", (int) sizeof(skipped->reason) - 1, r->detail);
        return 0;
}

static int span(const struct spec *s, struct point_list *list, struct refusal *r) {
        for (size_t w = 0; w < s->n_workloads; w++)
                for (size_t t = 0; t < extent_of(s, s->workloads[w], s->transports[0]).transports; t++) {
                        struct extent e = extent_of(s, s->workloads[w], s->transports[t]);
                        size_t n = e.message_sizes * e.threads * e.copy_modes * e.engines * e.waits * e.placements;
                        for (size_t i = 0; i < n; i++) {
                                struct point p;
                                fill(s, s->workloads[w], s->transports[t], i, &p);
                                int x = add(s, &p, list, r);
                                if (x < 0)
                                        return x;
                        }
                }
        return 0;
}

/* `limit` is "points" or "runs". */
static int check_count(const char *limit, const char *pointer, uint64_t n, unsigned most, struct refusal *r) {
        char value[32], most_text[32];
        if (n <= most)
                return 0;
        snprintf(value, sizeof(value), "%" PRIu64, n);
        snprintf(most_text, sizeof(most_text), "%u", most);
        return refuse_limit(r, pointer, limit, most_text, value, "the experiment has %s %s, at most %s are allowed",
                            value, limit, most_text);
}

int spec_points(const struct spec *s, struct point_list *ret, struct refusal *r) {
        struct point_list list = {.points = NULL};
        uint64_t n = count(s);

        int x = check_count("points", "", n, SPEC_POINTS_MAX, r);
        if (x < 0)
                return x;
        list.points = calloc(n + 1, sizeof(*list.points)); /* never 0, for which calloc() may give NULL */
        list.skipped = calloc(s->skip_impossible ? n + 1 : 1, sizeof(*list.skipped));
        x = list.points && list.skipped ? span(s, &list, r) : -ENOMEM;
        if (x == 0 && list.n_points == 0)
                x = refuse(r, 422, "no-points", "", "no point is left to run; the first was left out: %s",
                           list.skipped[0].reason);
        if (x == 0)
                x = check_count("runs", "/repetitions", (uint64_t) list.n_points * s->repetitions, SPEC_RUNS_MAX, r);
        if (x < 0) {
                point_list_deinit(&list);
                return x;
        }
        *ret = list;
        return 0;
}

void point_list_deinit(struct point_list *list) {
        free(list->points);
        free(list->skipped);
        memset(list, 0, sizeof(*list));
}
