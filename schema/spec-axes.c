/* SPDX-License-Identifier: MIT */

/*
 * The fields of a spec that may be lists. One row each: how a value is read, when two are the same, what holds when
 * the field is not there. Called by spec_parse().
 */

#include "schema/spec-parser.h"

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

static int message_size_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {
        return parser_integer(p, v, pointer, "message_size", 1, SPEC_MESSAGE_SIZE_MAX, ret);
}

static bool message_size_equal(const void *a, const void *b) {
        return *(const uint64_t *) a == *(const uint64_t *) b;
}

static int threads_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {
        uint64_t n = 0;
        int r = parser_integer(p, v, pointer, "threads", 1, SPEC_THREADS_MAX, &n);
        if (r == 0)
                *(uint32_t *) ret = (uint32_t) n;
        return r;
}

static bool threads_equal(const void *a, const void *b) {
        return *(const uint32_t *) a == *(const uint32_t *) b;
}

static int placement_read(struct parser *p, const struct json *v, const char *pointer, void *ret) {
        return placement_parse(v, pointer, ret, p->r);
}

static bool placement_same(const void *a, const void *b) {
        return placement_equal(a, b);
}

static int duplicate(struct parser *p, const char *pointer, const struct axis *a, size_t first) {
        return refuse(p->r, 422, "duplicate-value", pointer, "%s: this value stands in the list already, at index %zu",
                      a->field, first);
}

static int read_list(struct parser *p, const struct axis *a, const struct json *list, char *elements) {
        char parent[JSON_POINTER_MAX], pointer[JSON_POINTER_MAX];
        size_t i = 0;

        pointer_key(parent, "", a->field);
        for (const struct json *v = json_first(list); v; v = json_next(v), i++) {
                pointer_index(pointer, parent, i);
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

        pointer_key(pointer, "", a->field);
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

int parser_axes(struct parser *p) {
        static const enum workload stream = WORKLOAD_STREAM;
        static const enum transport pipe = TRANSPORT_PIPE;
        static const enum copy_mode two = COPY_TWO;
        static const enum engine system_call = ENGINE_SYSCALL;
        static const enum wait_mode block = WAIT_BLOCK;
        static const uint64_t page = 4096;
        static const uint32_t one = 1;
        struct placement anywhere;
        int r;

        placement_init(&anywhere);
        const struct axis workloads = {"workload", sizeof(stream), workload_read, workload_equal, &stream};
        const struct axis transports = {"transport", sizeof(pipe), transport_read, transport_equal, &pipe};
        const struct axis sizes = {"message_size", sizeof(page), message_size_read, message_size_equal, &page};
        const struct axis threads = {"threads", sizeof(one), threads_read, threads_equal, &one};
        const struct axis copies = {"copy_mode", sizeof(two), copy_mode_read, copy_mode_equal, &two};
        const struct axis engines = {"engine", sizeof(system_call), engine_read, engine_equal, &system_call};
        const struct axis waits = {"wait", sizeof(block), wait_mode_read, wait_mode_equal, &block};
        const struct axis placements = {"placement", sizeof(anywhere), placement_read, placement_same, &anywhere};
        if ((r = READ(p, &workloads, workloads)) < 0 || (r = READ(p, &transports, transports)) < 0 ||
            (r = READ(p, &sizes, message_sizes)) < 0 || (r = READ(p, &threads, threads)) < 0 ||
            (r = READ(p, &copies, copy_modes)) < 0 || (r = READ(p, &engines, engines)) < 0 ||
            (r = READ(p, &waits, waits)) < 0 || (r = READ(p, &placements, placements)) < 0)
                return r;
        return 0;
}

/* Whether no transport of this build has the word, and whether any combination of the spec could mean it: one that
 * cannot must not be passed over in silence. */
typedef unsigned (*bits_of)(const struct transport_term *t);

static unsigned copy_bits(const struct transport_term *t) {
        return t->copy_modes | 1u << COPY_TWO;
}

static unsigned engine_bits(const struct transport_term *t) {
        return t->engines | 1u << ENGINE_SYSCALL;
}

static unsigned wait_bits(const struct transport_term *t) {
        return t->waits | 1u << WAIT_BLOCK;
}

static bool meant_somewhere(const struct spec *s, bool (*has_meaning)(enum workload, enum transport)) {
        for (size_t w = 0; w < s->n_workloads; w++)
                for (size_t t = 0; t < s->n_transports; t++)
                        if (has_meaning(s->workloads[w], s->transports[t]))
                                return true;
        return false;
}

static int unavailable(struct parser *p, const char *field, size_t index, const char *word, const char *why) {
        const struct json *v = parser_get(p, field);
        char pointer[JSON_POINTER_MAX];

        pointer_key(pointer, "", field);
        if (v && json_type(v) == JSON_ARRAY)
                pointer_index(pointer, pointer, index);
        return refuse(p->r, 422, "not-available", pointer, "%s %s is not available: %s", field, word, why);
}

static int check_bit(struct parser *p, const char *field, size_t index, const char *word, unsigned value, bits_of bits,
                     bool (*has_meaning)(enum workload, enum transport)) {
        unsigned any = 0;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                any |= bits(&transport_terms[t]);
        if (any & 1u << value)
                return 0;
        if (p->spec->skip_impossible && meant_somewhere(p->spec, has_meaning))
                return 0; /* spec_points() lists the points that are left out */
        return unavailable(p, field, index, word, "this build does not have it yet");
}

int parser_axes_available(struct parser *p) {
        const struct spec *s = p->spec;
        int r = 0;

        for (size_t i = 0; r == 0 && !s->skip_impossible && i < s->n_workloads; i++)
                if (workload_unavailable(s->workloads[i]))
                        r = unavailable(p, "workload", i, workload_name(s->workloads[i]),
                                        workload_unavailable(s->workloads[i]));
        for (size_t i = 0; r == 0 && !s->skip_impossible && i < s->n_transports; i++)
                if (transport_terms[s->transports[i]].unavailable)
                        r = unavailable(p, "transport", i, transport_name(s->transports[i]),
                                        transport_terms[s->transports[i]].unavailable);
        for (size_t i = 0; r == 0 && i < s->n_copy_modes; i++)
                r = check_bit(p, "copy_mode", i, copy_mode_name(s->copy_modes[i]), s->copy_modes[i], copy_bits,
                              point_has_copy_mode);
        for (size_t i = 0; r == 0 && i < s->n_engines; i++)
                r = check_bit(p, "engine", i, engine_name(s->engines[i]), s->engines[i], engine_bits, point_has_engine);
        for (size_t i = 0; r == 0 && i < s->n_waits; i++)
                r = check_bit(p, "wait", i, wait_mode_name(s->waits[i]), s->waits[i], wait_bits, point_has_wait);
        return r;
}
