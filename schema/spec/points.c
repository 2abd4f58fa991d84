/* SPDX-License-Identifier: MIT */

/*
 * The points that a spec's axes span, and which of them the mechanism cannot do. Called by the daemon when an
 * experiment is posted, after spec_parse().
 */

#include "schema/spec/internal.h"

#include "schema/transport/file-layout.h"
#include "schema/util.h"

#include <string.h>

#define AGENT_DESCRIPTORS 64u /* control, peer, event descriptors, files below /proc, stdio */

static int check_transport(const struct point *p, struct refusal *r) {
        const struct transport_term *t = &transport_terms[p->transport];
        if (t->copy_modes != 0 && !(t->copy_modes & 1u << p->copy_mode))
                return refuse(r, 422, "impossible-combination", "/copy_mode",
                              "copy_mode %s is not possible with transport %s", copy_mode_name(p->copy_mode), t->name);
        if (p->engine == ENGINE_IO_URING && p->copy_mode == COPY_ZERO && t->zero_copy == ZERO_COPY_SPLICE)
                return refuse(
                        r, 422, "impossible-combination", "/copy_mode",
                        "copy_mode zero-copy is not possible with engine io_uring over transport %s: io_uring has "
                        "no vmsplice",
                        t->name);
        return 0;
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
        if (workload_has_transport(p->workload) && check_transport(p, r) < 0)
                return -EINVAL;
        if (check_end(s, p, r) < 0)
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

/* How many values of each axis mean something for a workload over a transport; 1 where the field folds away. Fields
 * mean something for some copy modes only: the others take the first value alone. */
struct extent {
        size_t transports, message_sizes, threads, copy_modes, engines, waits, fields, directions, calls, processes,
                working_sets, placements;
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
                .fields = point_has_fields(w, t, COPY_ONE) ? s->n_fields : 1,
                .directions = point_has_direction(w, t) ? s->n_directions : 1,
                .calls = workload_has_call(w) ? s->n_calls : 1,
                .processes = workload_has_processes(w) ? s->n_processes : 1,
                .working_sets = workload_has_processes(w) ? s->n_working_sets : 1,
                .placements = s->n_placements,
        };
}

/* Combinations of all axes but copy_mode and fields; no overflow: at most three lists of SPEC_LIST_MAX values are open
 * in one of them, the others are of few words or numbers. */
static uint64_t product(const struct extent *e) {
        return (uint64_t) e->message_sizes * e->threads * e->engines * e->waits * e->directions * e->calls *
               e->processes * e->working_sets * e->placements;
}

/* Copy modes, each with as many fields as it has. */
static uint64_t copies(const struct spec *s, enum workload w, enum transport t, const struct extent *e) {
        uint64_t n = 0;
        for (size_t i = 0; i < e->copy_modes; i++)
                n += point_has_fields(w, t, s->copy_modes[i]) ? e->fields : 1;
        return n;
}

static uint64_t count(const struct spec *s) {
        uint64_t n = 0;
        for (size_t w = 0; w < s->n_workloads; w++)
                for (size_t t = 0; t < extent_of(s, s->workloads[w], s->transports[0]).transports; t++) {
                        struct extent e = extent_of(s, s->workloads[w], s->transports[t]);
                        n += product(&e) * copies(s, s->workloads[w], s->transports[t], &e);
                }
        return n;
}

/* The next digit of a number whose base is each axis' extent in turn. */
static size_t digit(size_t *i, size_t extent) {
        size_t d = *i % extent;
        *i /= extent;
        return d;
}

static void fill_alone(const struct spec *s, const struct extent *e, size_t i, struct point *p) {
        p->threads = 1;
        if (workload_has_processes(p->workload)) {
                p->working_set = s->working_sets[digit(&i, e->working_sets)];
                p->processes = s->processes[digit(&i, e->processes)];
        }
        if (workload_has_call(p->workload))
                p->call = s->calls[digit(&i, e->calls)];
}

/* The i-th combination of the axes inside one workload and transport, placement fastest. False where a further number
 * of fields would give the point before it again. */
static bool fill(const struct spec *s, enum workload w, enum transport t, size_t i, struct point *p) {
        struct extent e = extent_of(s, w, t);
        size_t fields;

        memset(p, 0, sizeof(*p));
        p->workload = w;
        p->placement = s->placements[digit(&i, e.placements)];
        if (!workload_has_transport(w)) {
                fill_alone(s, &e, i, p);
                return true;
        }
        p->transport = t;
        if (point_has_direction(w, t))
                p->direction = s->directions[digit(&i, e.directions)];
        fields = digit(&i, e.fields);
        if (point_has_wait(w, t))
                p->wait = s->waits[digit(&i, e.waits)];
        if (point_has_engine(w, t))
                p->engine = s->engines[digit(&i, e.engines)];
        if (point_has_copy_mode(w, t))
                p->copy_mode = s->copy_modes[digit(&i, e.copy_modes)];
        p->threads = s->threads[digit(&i, e.threads)];
        p->message_size = s->message_sizes[i];
        if (point_has_fields(w, t, p->copy_mode))
                p->fields = s->fields[fields];
        return fields == 0 || p->fields;
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

/* A placement that stands for many pairs has one for a workload of one agent where both of its ends are the same. */
static bool is_of_a_pair(const struct point *p) {
        return p->placement.roles == ROLES_ANY && workload_agents(p->workload) == 1;
}

static int span_transport(const struct spec *s, enum workload w, enum transport t, struct point_list *list,
                          struct refusal *r) {
        struct extent e = extent_of(s, w, t);
        size_t n = product(&e) * e.copy_modes * e.fields;
        int x = 0;

        for (size_t i = 0; x == 0 && i < n; i++) {
                struct point p;
                if (!fill(s, w, t, i, &p))
                        continue;
                if (is_of_a_pair(&p) && !placement_make_single(&p.placement))
                        continue;
                x = add(s, &p, list, r);
        }
        return x;
}

static int span(const struct spec *s, struct point_list *list, struct refusal *r) {
        int x = 0;
        for (size_t w = 0; x == 0 && w < s->n_workloads; w++)
                for (size_t t = 0; x == 0 && t < extent_of(s, s->workloads[w], s->transports[0]).transports; t++)
                        x = span_transport(s, s->workloads[w], s->transports[t], list, r);
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
                x = refuse(r, 422, "no-points", "", "no point is left to run; one reason: %s", list.skipped[0].reason);
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

/* Sends without copying have a ring of their own, beside that of who receives, too. */
static uint64_t ring_descriptors(const struct point *p) {
        bool both_ways = p->workload == WORKLOAD_PINGPONG || p->direction == DIRECTION_BOTH;
        if (p->engine != ENGINE_IO_URING)
                return 0;
        return p->copy_mode == COPY_ZERO && both_ways ? 2 : 1;
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
