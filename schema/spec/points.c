/* SPDX-License-Identifier: MIT */

/*
 * The points that a spec's axes span, and which of them the mechanism cannot do. Called by the daemon when an
 * experiment is posted, after spec_parse().
 */

#include "schema/spec/axes.h"
#include "schema/spec/internal.h"

#include "schema/transport/file-layout.h"
#include "schema/util.h"

#include <string.h>

#define AGENT_DESCRIPTORS 64u /* control, peer, event descriptors, files below /proc, stdio */

static int check_values(const struct point *p, struct refusal *r) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct value *v = &axes[i].value;
                char pointer[JSON_POINTER_MAX];
                if (!axes[i].possible || !axis_applies(&axes[i], p) || axes[i].possible(p))
                        continue;
                json_pointer_key(pointer, "", v->name);
                return refuse(r, 422, "impossible-combination", pointer, "%s %s is not possible with transport %s",
                              v->name, v->words->name(*(const unsigned *) axis_of(&axes[i], p)),
                              transport_name(p->transport));
        }
        if (p->engine == ENGINE_IO_URING && point_zero_copy(p) == ZERO_COPY_SPLICE)
                return refuse(
                        r, 422, "impossible-combination", "/copy_mode",
                        "copy_mode zero-copy is not possible with engine io_uring over transport %s: io_uring has "
                        "no vmsplice",
                        transport_name(p->transport));
        return 0;
}

/* Why several messages cannot be under way at once; NULL: they can. */
static const char *no_queue(const struct spec *s, const struct point *p) {
        if (p->copy_mode == COPY_ZERO)
                return "copy_mode zero-copy, whose sends have a queue of their own";
        if (p->direction == DIRECTION_BOTH)
                return "direction both, where an end waits for neither of its directions alone";
        if (spec_point_rate(s, p) > 0 || s->search.latency_p99_below_us > 0)
                return "a rate, as the messages of an open loop are sent one by one, when each is due";
        return NULL;
}

static int check_queue(const struct spec *s, const struct point *p, struct refusal *r) {
        const char *why = point_is_queued(p) ? no_queue(s, p) : NULL;
        if (!why)
                return 0;
        return refuse(r, 422, "impossible-combination", "/queue_depth",
                      "queue_depth %" PRIu32 " is not possible with %s", p->queue_depth, why);
}

static int check_source(const struct point *p, struct refusal *r) {
        const char *why = NULL;
        if (p->source == SOURCE_COLD && p->copy_mode == COPY_ZERO)
                why = "copy_mode zero-copy, whose messages take turns in memory that the kernel still reads";
        else if (p->source == SOURCE_COLD && point_is_queued(p))
                why = "a queue_depth above 1, whose messages have memory of their own";
        return why ? refuse(r, 422, "impossible-combination", "/source", "source cold is not possible with %s", why)
                   : 0;
}

/* How many bytes end a window without messages? And a thread that has none to move measures nothing. */
static int check_end(const struct spec *s, const struct point *p, struct refusal *r) {
        if (!workload_has_transport(p->workload) && s->end.bytes)
                return refuse(r, 422, "impossible-combination", "/bytes",
                              "bytes cannot end the window of workload %s, which moves none: give messages or "
                              "duration_seconds",
                              workload_name(p->workload));
        uint64_t n = window_end_messages(&s->end, p);
        if (n == 0 || n >= p->threads)
                return 0;
        return refuse(r, 422, "impossible-combination", s->end.bytes ? "/bytes" : "/messages",
                      "the window ends after %" PRIu64 " messages, fewer than threads, %" PRIu32
                      ": each thread moves one at least",
                      n, p->threads);
}

/* 0, or -EINVAL with *r (status, code, pointer, sentence) for a point that the mechanism cannot do. */
static int point_check(const struct spec *s, const struct point *p, struct refusal *r) {
        if (check_values(p, r) < 0 || check_queue(s, p, r) < 0 || check_source(p, r) < 0 || check_end(s, p, r) < 0)
                return -EINVAL;
        if (!placement_fits(&p->placement, p->workload, p->transport))
                return refuse(r, 422, "impossible-combination", "/placement",
                              "the placement names roles that workload %s does not have here; it has %s%s%s",
                              workload_name(p->workload), role_name(p->workload, p->transport, END_FIRST),
                              workload_agents(p->workload) == 2 ? " and " : "",
                              workload_agents(p->workload) == 2 ? role_name(p->workload, p->transport, END_SECOND)
                                                                : "");
        return 0;
}

/* The number of combinations of the axes from `axis` on; p has the values of those before. No overflow: at most four
 * lists of SPEC_LIST_MAX values are open in a point, the others are of few words or numbers. */
static uint64_t count(const struct spec *s, struct point *p, size_t axis) {
        const struct axis *a = &axes[axis];
        uint64_t n = 0;

        if (axis == AXIS_COUNT)
                return 1;
        if (!axis_is_settable(a, p)) {
                axis_clear(a, p);
                return count(s, p, axis + 1);
        }
        if (!a->decides)
                return s->axes[axis].n * count(s, p, axis + 1);
        for (size_t i = 0; i < s->axes[axis].n; i++) {
                axis_set(a, s, i, p);
                n += count(s, p, axis + 1);
        }
        return n;
}

uint64_t spec_points_most(const struct spec *s) {
        struct point p = {0};
        const struct placement *placements = s->axes[AXIS_PLACEMENT].values;
        for (size_t i = 0; i < s->axes[AXIS_PLACEMENT].n; i++)
                if (placement_is_pairs(&placements[i]))
                        return SPEC_POINTS_MAX;
        uint64_t n = count(s, &p, 0);
        return n < SPEC_POINTS_MAX ? n : SPEC_POINTS_MAX;
}

/* The axes from `axis` on that have a meaning for a point; p has the values of those before. */
static unsigned met(const struct spec *s, struct point *p, size_t axis) {
        const struct axis *a = &axes[axis];
        unsigned bits = 0;

        if (axis == AXIS_COUNT)
                return 0;
        if (!axis_is_settable(a, p)) {
                axis_clear(a, p);
                return met(s, p, axis + 1);
        }
        for (size_t i = 0; i < (a->decides ? s->axes[axis].n : 1); i++) {
                axis_set(a, s, i, p);
                if (a->possible && !a->possible(p))
                        continue;
                bits |= (axis_applies(a, p) ? 1u << axis : 0) | met(s, p, axis + 1);
        }
        return bits;
}

unsigned spec_axes_met(const struct spec *spec) {
        struct point p = {0};
        return met(spec, &p, 0);
}

static int add(const struct spec *s, const struct point *p, struct point_list *list, struct refusal *r) {
        if (point_check(s, p, r) == 0) {
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

/* Adds each combination of the axes from `axis` on; p has the values of those before. */
static int span(const struct spec *s, struct point *p, size_t axis, struct point_list *list, struct refusal *r) {
        const struct axis *a = &axes[axis];
        int x = 0;

        if (axis == AXIS_COUNT) {
                /* A placement that stands for many pairs has one for a workload of one agent where both of its ends are
                 * the same. */
                bool of_a_pair = p->placement.roles == ROLES_ANY && workload_agents(p->workload) == 1;
                return of_a_pair && !placement_make_single(&p->placement) ? 0 : add(s, p, list, r);
        }
        if (!axis_is_settable(a, p)) {
                axis_clear(a, p);
                return span(s, p, axis + 1, list, r);
        }
        for (size_t i = 0; x == 0 && i < s->axes[axis].n; i++) {
                axis_set(a, s, i, p);
                x = span(s, p, axis + 1, list, r);
        }
        return x;
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

static int check_runs(const struct spec *s, size_t n_points, struct refusal *r) {
        if (s->until.relative_ci > 0)
                return check_count("runs", "/until/max_repetitions", (uint64_t) n_points * s->until.max_repetitions,
                                   SPEC_RUNS_MAX, r);
        uint64_t rates = s->search.latency_p99_below_us > 0 ? 1 + SPEC_SEARCH_RATES_MAX : 1; /* and the closed loop */
        return check_count("runs", "/repetitions", n_points * rates * s->repetitions, SPEC_RUNS_MAX, r);
}

/* A row without the figure would never be known well enough. */
static int check_until(const struct spec *s, const struct point_list *list, struct refusal *r) {
        for (size_t i = 0; s->until.relative_ci > 0 && i < list->n_points; i++) {
                const struct point *p = &list->points[i];
                const char *why = until_figure_missing(s, p);
                bool moves = workload_has_transport(p->workload);
                if (why)
                        return refuse(r, 422, "wrong-combination", "/until/figure", "a run of %s%s%s has no %s: %s",
                                      workload_name(p->workload), moves ? " over " : "",
                                      moves ? transport_name(p->transport) : "",
                                      until_figure_words.name(s->until.figure), why);
        }
        return 0;
}

/* The points have a pair to compare, and SPEC_PAIRS_MAX pairs at most, as each look at them takes time. The count stops
 * above that limit: 16384 points have 134 million pairs. */
static int check_compare(const struct spec *s, const struct point_list *list, struct refusal *r) {
        const enum figure figure = until_figure(s->until.figure);
        const char *why = NULL;
        static const char most[] = UTIL_TEXT(SPEC_PAIRS_MAX), value[] = "more than " UTIL_TEXT(SPEC_PAIRS_MAX);
        const struct spec_compare *c = &s->until.compare;
        struct point_pair pair = {0};
        size_t n = 0;
        if (!c->given)
                return 0;
        while (n <= SPEC_PAIRS_MAX && !why && points_next_pair(c, list->points, list->n_points, &pair)) {
                why = points_incomparable(&list->points[pair.baseline], &list->points[pair.candidate], figure);
                n++;
        }
        if (why)
                return refuse(r, 422, "wrong-combination", "/until/compare",
                              "the %s of points that differ in their %s is not compared: %s",
                              until_figure_words.name(s->until.figure), axes[c->axis].value.name, why);
        if (n == 0)
                return refuse(r, 422, "wrong-combination", "/until/compare",
                              "no two points of the experiment differ in their %s alone%s", axes[c->axis].value.name,
                              c->every_pair ? "" : ", one of them the baseline");
        return n <= SPEC_PAIRS_MAX ? 0
                                   : refuse_limit(r, "/until/compare", "pairs", most, value,
                                                  "the experiment has %s pairs, at most %s are allowed", value, most);
}

/* Only messages have a rate. */
static int check_search(const struct spec *s, const struct point_list *list, struct refusal *r) {
        for (size_t i = 0; s->search.latency_p99_below_us > 0 && i < list->n_points; i++)
                if (!workload_has_transport(list->points[i].workload))
                        return refuse(r, 422, "wrong-combination", "/search",
                                      "search looks for a rate of messages, and workload %s sends none",
                                      workload_name(list->points[i].workload));
        return 0;
}

unsigned spec_transports(const struct spec *s) {
        const enum workload *workloads = s->axes[AXIS_WORKLOAD].values;
        const enum transport *transports = s->axes[AXIS_TRANSPORT].values;
        unsigned bits = 0;

        for (size_t w = 0; w < s->axes[AXIS_WORKLOAD].n; w++)
                for (size_t t = 0; workload_has_transport(workloads[w]) && t < s->axes[AXIS_TRANSPORT].n; t++)
                        bits |= 1u << transports[t];
        return bits;
}

int spec_points(const struct spec *s, struct point_list *ret, struct refusal *r) {
        struct point_list list = {.points = NULL};
        struct point p = {.workload = WORKLOAD_STREAM};
        uint64_t n = count(s, &p, 0);

        int x = check_count("points", "", n, SPEC_POINTS_MAX, r);
        if (x < 0)
                return x;
        list.points = calloc(n + 1, sizeof(*list.points)); /* never 0, for which calloc() may give NULL */
        list.skipped = calloc(s->skip_impossible ? n + 1 : 1, sizeof(*list.skipped));
        x = list.points && list.skipped ? span(s, &p, 0, &list, r) : -ENOMEM;
        if (x == 0 && list.n_points == 0)
                x = refuse(r, 422, "no-points", "", "no point is left to run; one reason: %s", list.skipped[0].reason);
        if (x == 0)
                x = check_runs(s, list.n_points, r);
        if (x == 0)
                x = check_until(s, &list, r);
        if (x == 0)
                x = check_compare(s, &list, r);
        if (x == 0)
                x = check_search(s, &list, r);
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

/* A thread's, of those that lie between the ends. */
static uint64_t channel_descriptors(const struct point *p) {
        switch (transport_terms[p->transport].descriptors) {
        case DESCRIPTORS_NONE:
                return 0;
        case DESCRIPTORS_ONE:
                return 1;
        case DESCRIPTORS_PER_DIRECTION:
                return point_directions(p);
        case DESCRIPTORS_PER_SLOT:
                return 1 + point_directions(p) * file_layout_of(p, (uint64_t) sysconf(_SC_PAGESIZE)).slots;
        }
        return 0;
}

/* Sends without copying have a ring of their own, beside the receiver's, too. */
static uint64_t ring_descriptors(const struct point *p) {
        if (p->engine != ENGINE_IO_URING)
                return 0;
        return p->copy_mode == COPY_ZERO && point_goes_both_ways(p) ? 2 : 1;
}

uint64_t point_descriptors(const struct point *p) {
        uint64_t pending =
                transport_terms[p->transport].has_listener ? POINT_PENDING_MAX + 1 : 0; /* and the listener */
        if (workload_has_processes(p->workload))                                        /* which have a pipe each */
                return UINT64_C(2) * p->processes + AGENT_DESCRIPTORS;
        if (!workload_has_transport(p->workload))
                return AGENT_DESCRIPTORS;
        return p->threads * (channel_descriptors(p) + ring_descriptors(p)) + pending + AGENT_DESCRIPTORS;
}
