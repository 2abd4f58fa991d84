/* SPDX-License-Identifier: MIT */

/*
 * The fields of a spec that may be lists: one row each, and how spec_parse() reads them by their rows.
 */

#include "schema/spec/axes.h"

#include "schema/json/json.h"
#include "schema/spec/parser.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define VALUE_TEXT_MAX 16u

static bool moves(const struct point *p) {
        return workload_has_transport(p->workload);
}

static bool has_copy_mode(const struct point *p) {
        return point_has_copy_mode(p->workload, p->transport);
}

static bool copy_mode_is_possible(const struct point *p) {
        return transport_terms[p->transport].copy_modes & 1u << p->copy_mode;
}

static bool has_engine(const struct point *p) {
        return point_has_engine(p->workload, p->transport);
}

static bool has_wait(const struct point *p) {
        return point_has_wait(p->workload, p->transport);
}

/* Messages are assembled from fields over tcp in every copy mode, elsewhere in one-copy only (writev, sendmsg). */
static bool has_fields(const struct point *p) {
        return has_copy_mode(p) && (transport_terms[p->transport].assembles_fields || p->copy_mode == COPY_ONE);
}

static bool has_direction(const struct point *p) {
        return point_has_direction(p->workload, p->transport);
}

/* An axis where io_uring moves a stream: else a message is under way at a time. */
static bool has_queue(const struct point *p) {
        return p->workload == WORKLOAD_STREAM && transport_terms[p->transport].has_queue &&
               p->engine == ENGINE_IO_URING;
}

static bool is_syscall(const struct point *p) {
        return p->workload == WORKLOAD_SYSCALL;
}

static bool has_processes(const struct point *p) {
        return workload_has_processes(p->workload);
}

static bool stands_twice(const struct point *p) {
        return p->instance > 0;
}

#define TYPE_OF(member) __typeof__(((struct point *) NULL)->member)
#define NUMBER(member, low, high, normal)                                                                              \
        VALUE(value_number, struct point, member), .least = (low), .most = (high),                                     \
                                                   .standard = &(const TYPE_OF(member)) {                              \
                normal                                                                                                 \
        }
/* The first word is the standard one. */
#define WORD(member, vocabulary)                                                                                       \
        VALUE(value_word, struct point, member), .words = &(vocabulary), .standard = &(const TYPE_OF(member)) {        \
                0                                                                                                      \
        }

const struct axis axes[AXIS_COUNT] = {
        [AXIS_WORKLOAD] = {{"workload", "What is done with the transport", WORD(workload, workload_words)},
                           .usual = true,
                           .decides = true},
        [AXIS_TRANSPORT] = {{"transport", "The mechanism that carries the bytes", WORD(transport, transport_words)},
                            .applies = moves,
                            .usual = true,
                            .decides = true},
        [AXIS_MESSAGE_SIZE] = {{"message_size", "Bytes of a message",
                                NUMBER(message_size, 1, SPEC_MESSAGE_SIZE_MAX, 4096)},
                               .applies = moves,
                               .usual = true},
        [AXIS_THREADS] = {{"threads", "Connections (tcp) or pairs of threads", NUMBER(threads, 1, SPEC_THREADS_MAX, 1)},
                          .applies = moves,
                          .usual = true,
                          .absent = &(const uint32_t){1}},
        [AXIS_COPY_MODE] = {{"copy_mode", "How the bytes get into the mechanism", WORD(copy_mode, copy_mode_words)},
                            .applies = has_copy_mode,
                            .possible = copy_mode_is_possible,
                            .decides = true,
                            .strict = true},
        [AXIS_ENGINE] = {{"engine", "What issues the operations", WORD(engine, engine_words)},
                         .applies = has_engine,
                         .decides = true,
                         .strict = true},
        [AXIS_WAIT] = {{"wait", "How an end waits for its peer", WORD(wait, wait_mode_words)},
                       .applies = has_wait,
                       .strict = true},
        [AXIS_FIELDS] = {{"fields",
                          "Fields that a message is assembled from, which differ by at most a byte; a message has as "
                          "many as it has bytes at most; over tcp in every copy_mode, over others in one-copy",
                          NUMBER(fields, 1, SPEC_FIELDS_MAX, SPEC_FIELDS_DEFAULT)},
                         .applies = has_fields},
        [AXIS_DIRECTION] = {{"direction", "Which way a stream goes: down is from server to client",
                             WORD(direction, direction_words)},
                            .applies = has_direction,
                            .strict = true},
        [AXIS_QUEUE_DEPTH] = {{"queue_depth",
                               "Messages of a stream that each end has under way at once, linked so that they stay in "
                               "order, with engine io_uring",
                               NUMBER(queue_depth, 1, SPEC_QUEUE_DEPTH_MAX, 1)},
                              .applies = has_queue,
                              .later = true,
                              .strict = true},
        [AXIS_SOURCE] = {{"source",
                          "A sender's bytes: of one message's memory (hot), or of twice the last cache (cold)",
                          WORD(source, source_words)},
                         .applies = moves,
                         .later = true,
                         .strict = true},
        [AXIS_CALL] = {{"call", "What workload syscall calls", WORD(call, system_call_words)},
                       .applies = is_syscall,
                       .usual = true},
        [AXIS_PROCESSES] = {{"processes", "Processes that workload context-switch hands the CPU round",
                             NUMBER(processes, SPEC_PROCESSES_MIN, SPEC_PROCESSES_MAX, SPEC_PROCESSES_MIN)},
                            .applies = has_processes,
                            .usual = true},
        [AXIS_WORKING_SET] = {{"working_set",
                               "Bytes that each process of workload context-switch touches between two switches",
                               NUMBER(working_set, 0, SPEC_WORKING_SET_MAX, 0)},
                              .applies = has_processes},
        [AXIS_PLACEMENT] = {.value = {"placement", "The CPU and the memory node of each agent",
                                      VALUE(value_placement, struct point, placement), .standard = &placement_default},
                            .usual = true},
        [AXIS_INSTANCE] = {{"instance",
                            "Which of two equal points it is, in an experiment whose points stand twice: their "
                            "difference is what the machine makes of one thing measured twice",
                            VALUE(value_number, struct point, instance), .least = 1, .most = SPEC_INSTANCES,
                            .standard = &(const uint32_t){0}},
                           .field = "points",
                           .applies = stands_twice,
                           .decides = true,
                           .later = true},
};

void axis_set(const struct axis *a, const struct spec *s, size_t i, struct point *p) {
        const char *values = s->axes[a - axes].values;
        memcpy((char *) p + a->value.offset, values + i * a->value.size, a->value.size);
}

void axis_clear(const struct axis *a, struct point *p) {
        if (a->absent)
                memcpy((char *) p + a->value.offset, a->absent, a->value.size);
        else
                value_drop(&a->value, p);
}

void axes_put_enum(struct json_writer *w) {
        json_member_array(w, "enum");
        for (size_t i = 0; i < AXIS_COUNT; i++)
                json_put_string(w, axes[i].value.name);
        json_array_end(w);
}

const char *points_incomparable(const struct point *a, const struct point *b, enum figure f) {
        bool is_sum = f == FIGURE_THROUGHPUT || f == FIGURE_MESSAGES;
        return is_sum && point_streams(a) != point_streams(b)
                       ? "that of one side is the sum of two streams at once, and that of the other is of one"
                       : NULL;
}

bool points_match(const struct point *a, const struct point *b, enum axis_name except) {
        for (size_t i = 0; i < AXIS_COUNT; i++) {
                const struct axis *x = &axes[i];
                if (i != except && axis_applies(x, a) && axis_applies(x, b) &&
                    !x->value.type->equal(&x->value, axis_of(x, a), axis_of(x, b)))
                        return false;
        }
        return true;
}

static bool is_baseline(const struct spec_compare *c, const struct point *p) {
        const struct axis *x = &axes[c->axis];
        return axis_applies(x, p) &&
               (c->every_pair || x->value.type->equal(&x->value, axis_of(x, p), axis_of(x, &c->baseline)));
}

static bool are_compared(const struct spec_compare *c, const struct point *baseline, const struct point *candidate) {
        const struct axis *x = &axes[c->axis];
        return axis_applies(x, candidate) &&
               !x->value.type->equal(&x->value, axis_of(x, candidate), axis_of(x, baseline)) &&
               points_match(baseline, candidate, c->axis);
}

bool points_next_pair(const struct spec_compare *c, const struct point *points, size_t n, struct point_pair *pair) {
        for (size_t i = pair->baseline, from = pair->next; i < n; i++, from = 0) {
                if (!is_baseline(c, &points[i]))
                        continue;
                for (size_t k = c->every_pair && from <= i ? i + 1 : from; k < n; k++)
                        if (are_compared(c, &points[i], &points[k])) {
                                *pair = (struct point_pair){.baseline = i, .candidate = k, .next = k + 1};
                                return true;
                        }
        }
        return false;
}

/* Gives the points of both groups one number. */
static void unite(uint32_t *groups, size_t n, uint32_t a, uint32_t b) {
        uint32_t to = a < b ? a : b, from = a < b ? b : a;
        for (size_t i = 0; from != to && i < n; i++)
                if (groups[i] == from)
                        groups[i] = to;
}

bool spec_compares_points(const struct spec *s) {
        return s->axes[AXIS_INSTANCE].n > 1 || s->until.compare.given;
}

int points_group(const struct spec *s, const struct point *points, size_t n, uint32_t **ret) {
        bool twice = s->axes[AXIS_INSTANCE].n > 1;
        struct point_pair pair = {0};
        *ret = NULL;
        if (!spec_compares_points(s))
                return 0;
        uint32_t *groups = reallocarray(NULL, n + 1, sizeof(*groups));
        if (!groups)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                groups[i] = (uint32_t) i;
        for (size_t i = 1; twice && i < n; i++) /* the last axis: instances are neighbours */
                if (points_match(&points[i - 1], &points[i], AXIS_INSTANCE))
                        groups[i] = groups[i - 1];
        while (s->until.compare.given && points_next_pair(&s->until.compare, points, n, &pair))
                unite(groups, n, groups[pair.baseline], groups[pair.candidate]);
        *ret = groups;
        return 0;
}

static const char *axis_value_text(const struct axis *a, const struct point *p, char ret[VALUE_TEXT_MAX]) {
        uint32_t number;
        memcpy(&number, axis_of(a, p),
               sizeof(number)); /* a word's index, or a number: no strict axis has a wider one */
        if (a->value.words)
                return a->value.words->name(number);
        (void) snprintf(ret, VALUE_TEXT_MAX, "%" PRIu32, number);
        return ret;
}

static int read_list(struct parser *p, const struct axis *a, const struct json *list, char *elements) {
        char parent[JSON_POINTER_MAX], pointer[JSON_POINTER_MAX];
        size_t i = 0;

        json_pointer_key(parent, "", a->value.name);
        for (const struct json *v = json_first(list); v; v = json_next(v), i++) {
                json_pointer_index(pointer, parent, i);
                int r = a->value.type->read(&a->value, v, pointer, elements + i * a->value.size, p->r);
                if (r < 0)
                        return r;
                for (size_t j = 0; j < i; j++)
                        if (a->value.type->equal(&a->value, elements + j * a->value.size, elements + i * a->value.size))
                                return refuse(p->r, 422, "duplicate-value", pointer,
                                              "%s: this value stands in the list already, at index %zu; \"points\": "
                                              "\"twice\" measures every point twice",
                                              a->value.name, j);
        }
        return 0;
}

static int read_axis(struct parser *p, const struct axis *a, struct axis_list *ret) {
        const struct json *v = parser_get(p, a->value.name);
        char pointer[JSON_POINTER_MAX];
        size_t n = v && json_type(v) == JSON_ARRAY ? json_length(v) : 1;
        int r = 0;

        json_pointer_key(pointer, "", a->value.name);
        if (n == 0)
                return refuse(p->r, 422, "empty-list", pointer, "%s: an empty list; it needs at least one value",
                              a->value.name);
        if (n > SPEC_LIST_MAX) {
                char value[32], most[32];
                snprintf(value, sizeof(value), "%zu", n);
                snprintf(most, sizeof(most), "%u", SPEC_LIST_MAX);
                return refuse_limit(p->r, pointer, "values in a list", most, value, "%s: %s values, at most %s",
                                    a->value.name, value, most);
        }
        _cleanup_free_ char *elements = calloc(n, a->value.size);
        if (!elements)
                return -ENOMEM;
        if (!v)
                memcpy(elements, a->value.standard, a->value.size);
        else if (json_type(v) == JSON_ARRAY)
                r = read_list(p, a, v, elements);
        else
                r = a->value.type->read(&a->value, v, pointer, elements, p->r);
        if (r < 0)
                return r;
        *ret = (struct axis_list){.values = util_steal(&elements), .n = n};
        return 0;
}

int parser_axes(struct parser *p) {
        int r = 0;
        for (size_t i = 0; r == 0 && i < AXIS_COUNT; i++)
                r = read_axis(p, &axes[i], &p->spec->axes[i]);
        return r;
}

/* The words of the points that an axis has a meaning for, as bits. */
struct reach {
        unsigned workloads, transports, engines;
};

/* q has the value of the axis. */
static struct reach reach_of(const struct axis *a, const struct point *q) {
        struct reach r = {0};
        for (unsigned i = 0; i < WORKLOAD_COUNT * TRANSPORT_COUNT * ENGINE_COUNT * COPY_COUNT; i++) {
                struct point at = *q;
                at.workload = (enum workload)(i / COPY_COUNT / ENGINE_COUNT / TRANSPORT_COUNT);
                at.transport = (enum transport)(i / COPY_COUNT / ENGINE_COUNT % TRANSPORT_COUNT);
                if (a != &axes[AXIS_ENGINE])
                        at.engine = (enum engine)(i / COPY_COUNT % ENGINE_COUNT);
                if (a != &axes[AXIS_COPY_MODE])
                        at.copy_mode = (enum copy_mode)(i % COPY_COUNT);
                if (!axis_applies(a, &at) || (a->possible && !a->possible(&at)))
                        continue;
                r.workloads |= 1u << at.workload;
                r.transports |= 1u << at.transport;
                r.engines |= 1u << at.engine;
        }
        return r;
}

unsigned axis_workloads(const struct axis *a) {
        return reach_of(a, &(const struct point){0}).workloads;
}

unsigned axis_transports(const struct axis *a) {
        const struct point q = {.workload = WORKLOAD_STREAM};
        return reach_of(a, &q).transports;
}

/* Refuses a value that no point of the experiment can have, naming the workloads, transports or engines that can. */
static int meaningless(struct parser *p, const struct axis *a, size_t index) {
        char pointer[JSON_POINTER_MAX], workloads[WORDS_LIST_MAX], transports[WORDS_LIST_MAX], value[VALUE_TEXT_MAX];
        struct point q = {.workload = WORKLOAD_STREAM};

        axis_set(a, p->spec, index, &q);
        const struct reach reach = reach_of(a, &q);
        words_list(workloads, &workload_words, reach.workloads);
        words_list(transports, &transport_words, reach.transports);
        json_pointer_key(pointer, "", a->value.name);
        if (json_type(parser_get(p, a->value.name)) == JSON_ARRAY)
                json_pointer_index(pointer, pointer, index);
        bool io_uring_only = a != &axes[AXIS_ENGINE] && reach.engines == 1u << ENGINE_IO_URING;
        return refuse(p->r, 422, "wrong-combination", pointer,
                      "%s %s is for %s over %s%s, and no point of this experiment is one", a->value.name,
                      axis_value_text(a, &q, value), workloads, transports,
                      io_uring_only ? " with engine io_uring" : "");
}

/* Refuses a posted value that no point of the spec can have, unless it is the default. Such a value of the preset is
 * dropped. */
static int check_meaning(struct parser *p, const struct axis *a) {
        const struct axis_list *transports = &p->spec->axes[AXIS_TRANSPORT], *engines = &p->spec->axes[AXIS_ENGINE];
        struct axis_list *list = &p->spec->axes[a - axes];
        struct point q = {.workload = WORKLOAD_STREAM};

        for (size_t i = 0; i < p->spec->axes[AXIS_WORKLOAD].n * transports->n * engines->n; i++) {
                axis_set(&axes[AXIS_WORKLOAD], p->spec, i / engines->n / transports->n, &q);
                axis_set(&axes[AXIS_TRANSPORT], p->spec, i / engines->n % transports->n, &q);
                axis_set(&axes[AXIS_ENGINE], p->spec, i % engines->n, &q);
                if (a->applies(&q))
                        return 0;
        }
        for (size_t i = 0; parser_is_posted(p, a->value.name) && i < list->n; i++) {
                axis_set(a, p->spec, i, &q);
                if (!a->value.type->equal(&a->value, axis_of(a, &q), a->value.standard))
                        return meaningless(p, a, i);
        }
        memcpy(list->values, a->value.standard, a->value.size);
        list->n = 1;
        return 0;
}

int parser_meanings(struct parser *p) {
        int r = 0;
        for (size_t i = 0; r == 0 && i < AXIS_COUNT; i++)
                if (axes[i].strict)
                        r = check_meaning(p, &axes[i]);
        return r;
}
