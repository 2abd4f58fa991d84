/* SPDX-License-Identifier: MIT */

/*
 * The fields of a spec that may be lists. One row each: how a value is read, when two are the same, what holds when
 * the field is not there. Called by spec_parse().
 */

#include "schema/spec/parser.h"

#include "schema/util.h"

#include <string.h>

struct axis {
        const char *field;
        size_t size; /* of an element */
        int (*read)(struct parser *p, const struct json *v, const char *pointer, void *ret);
        bool (*equal)(const void *a, const void *b);
        const void *standard; /* the element when the field is not there */
};

/* Reader of a word and equality, for an enum of terms.h. */
#define WORD_AXIS(word, type, field, count)                                                                            \
        static const char *word##_word(unsigned v) {                                                                   \
                return word##_name((enum type) v);                                                                     \
        }                                                                                                              \
        static int word##_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {               \
                unsigned value = 0;                                                                                    \
                int r = parser_word(p, v, pointer, field, word##_word, count, &value);                                 \
                if (r == 0)                                                                                            \
                        *(enum type *) ret = (enum type) value;                                                        \
                return r;                                                                                              \
        }                                                                                                              \
        static bool word##_equal(const void *a, const void *b) {                                                       \
                return *(const enum type *) a == *(const enum type *) b;                                               \
        }

WORD_AXIS(workload, workload, "workload", WORKLOAD_COUNT)
WORD_AXIS(transport, transport, "transport", TRANSPORT_COUNT)
WORD_AXIS(copy_mode, copy_mode, "copy_mode", COPY_COUNT)
WORD_AXIS(engine, engine, "engine", ENGINE_COUNT)
WORD_AXIS(wait_mode, wait_mode, "wait", WAIT_COUNT)
WORD_AXIS(direction, data_direction, "direction", DIRECTION_COUNT)
WORD_AXIS(system_call, system_call, "call", SYSTEM_CALL_COUNT)

/* The same for numbers of 32 and 64 bits. */
#define NUMBER_AXIS(word, type, field, least, most)                                                                    \
        static int word##_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {               \
                uint64_t n = 0;                                                                                        \
                int r = parser_integer(p, v, pointer, field, least, most, &n);                                         \
                if (r == 0)                                                                                            \
                        *(type *) ret = (type) n;                                                                      \
                return r;                                                                                              \
        }                                                                                                              \
        static bool word##_equal(const void *a, const void *b) {                                                       \
                return *(const type *) a == *(const type *) b;                                                         \
        }

NUMBER_AXIS(message_size, uint64_t, "message_size", 1, SPEC_MESSAGE_SIZE_MAX)
NUMBER_AXIS(threads, uint32_t, "threads", 1, SPEC_THREADS_MAX)
NUMBER_AXIS(fields, uint32_t, "fields", 1, SPEC_FIELDS_MAX)
NUMBER_AXIS(processes, uint32_t, "processes", SPEC_PROCESSES_MIN, SPEC_PROCESSES_MAX)
NUMBER_AXIS(working_set, uint64_t, "working_set", 0, SPEC_WORKING_SET_MAX)

static int placement_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {
        return placement_parse(v, pointer, ret, p->r);
}

static bool placement_are_equal(const void *a, const void *b) {
        return placement_equal(a, b);
}

static int duplicate(struct parser *p, const char *pointer, const struct axis *a, size_t first) {
        return refuse(p->r, 422, "duplicate-value", pointer, "%s: this value stands in the list already, at index %zu",
                      a->field, first);
}

static int read_list(struct parser *p, const struct axis *a, const struct json *list, char *elements) {
        char parent[JSON_POINTER_MAX], pointer[JSON_POINTER_MAX];
        size_t i = 0;

        json_pointer_key(parent, "", a->field);
        for (const struct json *v = json_first(list); v; v = json_next(v), i++) {
                json_pointer_index(pointer, parent, i);
                int r = a->read(p, v, pointer, elements + i * a->size);
                if (r < 0)
                        return r;
                for (size_t j = 0; j < i; j++)
                        if (a->equal(elements + j * a->size, elements + i * a->size))
                                return duplicate(p, pointer, a, j);
        }
        return 0;
}

static int read_axis(struct parser *p, const struct axis *a, void **ret, size_t *ret_n) {
        const struct json *v = parser_get(p, a->field);
        char pointer[JSON_POINTER_MAX];
        size_t n = v && json_type(v) == JSON_ARRAY ? json_length(v) : 1;
        int r = 0;

        json_pointer_key(pointer, "", a->field);
        if (n == 0)
                return refuse(p->r, 422, "empty-list", pointer, "%s: an empty list; it needs at least one value",
                              a->field);
        if (n > SPEC_LIST_MAX) {
                char value[32], most[32];
                snprintf(value, sizeof(value), "%zu", n);
                snprintf(most, sizeof(most), "%u", SPEC_LIST_MAX);
                return refuse_limit(p->r, pointer, "values in a list", most, value, "%s: %s values, at most %s",
                                    a->field, value, most);
        }
        _cleanup_free_ char *elements = calloc(n, a->size);
        if (!elements)
                return -ENOMEM;
        if (!v)
                memcpy(elements, a->standard, a->size);
        else if (json_type(v) == JSON_ARRAY)
                r = read_list(p, a, v, elements);
        else
                r = a->read(p, v, pointer, elements);
        if (r < 0)
                return r;
        *ret = util_steal(&elements);
        *ret_n = n;
        return 0;
}

#define READ(p, axis, member)                                                                                          \
        __extension__({                                                                                                \
                void *_list = NULL;                                                                                    \
                int _r = read_axis(p, axis, &_list, &(p)->spec->n_##member);                                           \
                (p)->spec->member = _list;                                                                             \
                _r;                                                                                                    \
        })

/* An axis of elements like `standard`, which holds when the field is not there. */
#define AXIS(field, word, standard)                                                                                    \
        { field, sizeof(standard), word##_read, word##_equal, &(standard) }

static int general_axes(struct parser *p) {
        static const enum workload stream = WORKLOAD_STREAM;
        static const enum transport pipe = TRANSPORT_PIPE;
        static const uint64_t page = 4096;
        static const uint32_t one = 1;
        struct placement anywhere;
        int r;

        placement_init(&anywhere);
        const struct axis workloads = AXIS("workload", workload, stream),
                          transports = AXIS("transport", transport, pipe),
                          sizes = AXIS("message_size", message_size, page), threads = AXIS("threads", threads, one),
                          placements = {"placement", sizeof(anywhere), placement_read, placement_are_equal, &anywhere};
        if ((r = READ(p, &workloads, workloads)) < 0 || (r = READ(p, &transports, transports)) < 0 ||
            (r = READ(p, &sizes, message_sizes)) < 0 || (r = READ(p, &threads, threads)) < 0 ||
            (r = READ(p, &placements, placements)) < 0)
                return r;
        return 0;
}

static int special_axes(struct parser *p) {
        static const enum copy_mode two_copy = COPY_TWO;
        static const enum engine system_calls = ENGINE_SYSCALL;
        static const enum wait_mode block = WAIT_BLOCK;
        static const enum data_direction down = DIRECTION_DOWN;
        static const enum system_call getpid_call = SYSTEM_CALL_GETPID;
        static const uint32_t eight = SPEC_FIELDS_STANDARD, two = SPEC_PROCESSES_MIN;
        static const uint64_t nothing = 0;
        int r;

        static const struct axis copies = AXIS("copy_mode", copy_mode, two_copy),
                                 engines = AXIS("engine", engine, system_calls), waits = AXIS("wait", wait_mode, block),
                                 fields = AXIS("fields", fields, eight),
                                 directions = AXIS("direction", direction, down),
                                 calls = AXIS("call", system_call, getpid_call),
                                 processes = AXIS("processes", processes, two),
                                 working_sets = AXIS("working_set", working_set, nothing);
        if ((r = READ(p, &copies, copy_modes)) < 0 || (r = READ(p, &engines, engines)) < 0 ||
            (r = READ(p, &waits, waits)) < 0 || (r = READ(p, &fields, fields)) < 0 ||
            (r = READ(p, &directions, directions)) < 0 || (r = READ(p, &calls, calls)) < 0 ||
            (r = READ(p, &processes, processes)) < 0 || (r = READ(p, &working_sets, working_sets)) < 0)
                return r;
        return 0;
}

int parser_axes(struct parser *p) {
        int r = general_axes(p);
        return r < 0 ? r : special_axes(p);
}

/*
 * What a spec says of a mechanism beside its name. The first word of each is the standard one, which asks for nothing
 * and may stand anywhere.
 */
struct mechanism {
        const char *field;
        const char *(*word)(unsigned);
        bool (*has_meaning)(enum workload, enum transport);
        unsigned *values; /* the axis, whose enum is an unsigned */
        size_t *n;
};

static bool is_meant(const struct spec *s, const struct mechanism *m) {
        for (size_t w = 0; w < s->n_workloads; w++)
                for (size_t t = 0; t < s->n_transports; t++)
                        if (m->has_meaning(s->workloads[w], s->transports[t]))
                                return true;
        return false;
}

/* "pipe, fifo and tcp": those that the bits stand for. */
static void list_names(char list[200], const char *(*name)(unsigned), unsigned bits) {
        const char *joint = "";
        size_t used = 0;
        list[0] = '\0';
        for (unsigned i = 0; bits >> i; i++) {
                unsigned rest = bits >> i >> 1;
                if (!(bits >> i & 1u))
                        continue;
                used += (size_t) snprintf(list + used, 200 - used, "%s%s", joint, name(i));
                joint = rest & (rest - 1) ? ", " : " and ";
        }
}

/* Where a field means something, all of its values do, but for copy modes. */
static bool has_value(const struct mechanism *m, unsigned transport, unsigned value) {
        return m->has_meaning != point_has_copy_mode || transport_terms[transport].copy_modes & 1u << value;
}

static int meaningless(struct parser *p, const struct mechanism *m, size_t index) {
        unsigned workloads = 0, transports = 0, value = m->values[index];
        char pointer[JSON_POINTER_MAX], by_workload[200], by_transport[200];

        for (unsigned w = 0; w < WORKLOAD_COUNT; w++)
                for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                        if (m->has_meaning((enum workload) w, (enum transport) t) && has_value(m, t, value)) {
                                workloads |= 1u << w;
                                transports |= 1u << t;
                        }
        list_names(by_workload, workload_word, workloads);
        list_names(by_transport, transport_word, transports);
        json_pointer_key(pointer, "", m->field);
        if (json_type(parser_get(p, m->field)) == JSON_ARRAY)
                json_pointer_index(pointer, pointer, index);
        return refuse(p->r, 422, "wrong-combination", pointer,
                      "%s %s is for %s over %s, and no point of this experiment is one", m->field, m->word(value),
                      by_workload, by_transport);
}

/* What is posted and no point of the spec can have must not be passed over in silence; what only the preset says gives
 * way. */
static int check_meaning(struct parser *p, const struct mechanism *m) {
        if (is_meant(p->spec, m))
                return 0;
        for (size_t i = 0; parser_is_posted(p, m->field) && i < *m->n; i++)
                if (m->values[i] != 0)
                        return meaningless(p, m, i);
        m->values[0] = 0;
        *m->n = 1;
        return 0;
}

int parser_mechanisms(struct parser *p) {
        struct spec *s = p->spec;
        const struct mechanism all[] = {
                {"copy_mode", copy_mode_word, point_has_copy_mode, (unsigned *) s->copy_modes, &s->n_copy_modes},
                {"engine", engine_word, point_has_engine, (unsigned *) s->engines, &s->n_engines},
                {"wait", wait_mode_word, point_has_wait, (unsigned *) s->waits, &s->n_waits},
                {"direction", direction_word, point_has_direction, (unsigned *) s->directions, &s->n_directions},
        };
        int r = 0;
        for (size_t i = 0; r == 0 && i < ELEMENTS(all); i++)
                r = check_meaning(p, &all[i]);
        return r;
}
