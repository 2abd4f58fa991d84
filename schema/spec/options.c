/* SPDX-License-Identifier: MIT */

/*
 * transport_options: each has one row, which has its type and its range; which transports have it is in their
 * own rows (schema/transport/table.h). Parser, writer and the daemon-agent protocol read the same table.
 */

#include "schema/spec/parser.h"

#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <string.h>

enum kind { NUMBER, POWER_OF_TWO, TOGGLE, WORD, NAME };

/* The words of an option, of which the first is what none means. */
static const char *file_sync_word(unsigned v) {
        return file_sync_name((enum file_sync) v);
}

static const char *memfd_word(unsigned v) {
        return memfd_source_name((enum memfd_source) v);
}

static const struct option {
        const char *name;
        enum kind kind;
        size_t offset;        /* in struct transport_options */
        uint64_t least, most; /* of words: most is their number */
        const char *are_for;
        const char *(*word)(unsigned v);
} options[OPTION_COUNT] = {
#define AT(member) offsetof(struct transport_options, member)
        [OPTION_PIPE_SIZE] = {"pipe_size", NUMBER, AT(pipe_size), 4096, 1u << 30, "pipe and fifo", NULL},
        [OPTION_MSGQ_DEPTH] = {"msgq_depth", NUMBER, AT(msgq_depth), 1, 65536, "message queues", NULL},
        [OPTION_RING_BYTES] = {"ring_bytes", POWER_OF_TWO, AT(ring_bytes), RING_BYTES_MIN, RING_BYTES_MAX,
                               "shared memory", NULL},
        [OPTION_HUGE_PAGES] = {"huge_pages", TOGGLE, AT(huge_pages), 0, 0, "shm-posix, shm-sysv and mmap-anonymous",
                               NULL},
        [OPTION_FILE_SYNC] = {"file_sync", WORD, AT(file_sync), 0, FILE_SYNC_COUNT, "file", file_sync_word},
        [OPTION_SNDBUF] = {"sndbuf", NUMBER, AT(sndbuf), 4096, (1u << 30) - 1, "sockets", NULL},
        [OPTION_RCVBUF] = {"rcvbuf", NUMBER, AT(rcvbuf), 4096, (1u << 30) - 1, "tcp", NULL},
        [OPTION_NODELAY] = {"nodelay", TOGGLE, AT(nodelay), 0, 0, "tcp", NULL},
        [OPTION_BUSY_POLL] = {"busy_poll", NUMBER, AT(busy_poll), 1, 1000000, "tcp", NULL},
        [OPTION_CONGESTION] = {"congestion", NAME, AT(congestion), 1, SPEC_CONGESTION_MAX, "tcp", NULL},
        [OPTION_MEMFD] = {"memfd", WORD, AT(memfd), 0, MEMFD_COUNT, "memfd", memfd_word},
#undef AT
};

static const struct option *find(const char *name) {
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (strcmp(options[i].name, name) == 0)
                        return &options[i];
        return NULL;
}

static int take_number(struct parser *p, const struct json *v, const char *pointer, const struct option *o,
                       uint64_t *ret) {
        uint64_t number = 0;
        int r = parser_integer(p, v, pointer, o->name, o->least, o->most, &number);
        if (r < 0)
                return r;
        if (o->kind == POWER_OF_TWO && (number & (number - 1)) != 0)
                return refuse(p->r, 422, "wrong-value", pointer, "%s is a power of two, not %" PRIu64, o->name, number);
        *ret = number;
        return 0;
}

/* A name as the kernel has them: it must not become part of a path or of another setting. */
static int take_name(struct parser *p, const struct json *v, const char *pointer, const struct option *o, char *ret) {
        const char *s;
        size_t n;

        if (json_as_string(v, &s) < 0)
                return parser_wrong_type(p, v, pointer, "a name");
        n = strlen(s);
        if (n < o->least || n > o->most) {
                char value[32], limit[32];
                snprintf(value, sizeof(value), "%zu", n);
                snprintf(limit, sizeof(limit), "%" PRIu64, n < o->least ? o->least : o->most);
                return refuse_limit(p->r, pointer, "characters of a name", limit, value,
                                    "%s has %" PRIu64 " … %" PRIu64 " characters, not %s", o->name, o->least, o->most,
                                    value);
        }
        if (strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
                return refuse(p->r, 422, "wrong-value", pointer, "%s is of a-z, 0-9, _ and -", o->name);
        memcpy(ret, s, n + 1);
        return 0;
}

static int take_option(struct parser *p, const struct json *v, const char *pointer, const struct option *o,
                       struct transport_options *ret) {
        void *member = (char *) ret + o->offset;
        switch (o->kind) {
        case NUMBER:
        case POWER_OF_TWO:
                return take_number(p, v, pointer, o, member);
        case TOGGLE:
                return parser_toggle(p, v, pointer, member);
        case WORD:
                return parser_word(p, v, pointer, o->name, o->word, (unsigned) o->most, member);
        case NAME:
                return take_name(p, v, pointer, o, member);
        }
        return -EINVAL;
}

int options_take(struct parser *p, const struct json *v, const char *pointer, struct transport_options *ret) {
        if (json_type(v) != JSON_OBJECT)
                return parser_wrong_type(p, v, pointer, "an object");
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                const struct option *o = find(json_key(m));
                char here[JSON_POINTER_MAX];
                if (!o) {
                        const char *names[ELEMENTS(options)];
                        for (size_t i = 0; i < ELEMENTS(options); i++)
                                names[i] = options[i].name;
                        return parser_unknown_member(p, pointer, m, names, ELEMENTS(options));
                }
                pointer_key(here, pointer, json_key(m));
                int r = take_option(p, m, here, o, ret);
                if (r < 0)
                        return r;
        }
        return 0;
}

static bool given(const struct transport_options *t, const struct option *o) {
        const void *member = (const char *) t + o->offset;
        switch (o->kind) {
        case NUMBER:
        case POWER_OF_TWO:
                return *(const uint64_t *) member != 0;
        case TOGGLE:
                return *(const enum toggle *) member != TOGGLE_UNSET;
        case WORD:
                return *(const unsigned *) member != 0;
        case NAME:
                return *(const char *) member != '\0';
        }
        return false;
}

void options_put(struct json_writer *w, const struct transport_options *t) {
        json_object_begin(w);
        for (size_t i = 0; i < ELEMENTS(options); i++) {
                const struct option *o = &options[i];
                const void *member = (const char *) t + o->offset;
                if (!given(t, o))
                        continue;
                json_put_key(w, o->name);
                switch (o->kind) {
                case NUMBER:
                case POWER_OF_TWO:
                        json_put_u64(w, *(const uint64_t *) member);
                        break;
                case TOGGLE:
                        json_put_bool(w, *(const enum toggle *) member == TOGGLE_ON);
                        break;
                case WORD:
                        json_put_string(w, o->word(*(const unsigned *) member));
                        break;
                case NAME:
                        json_put_string(w, member);
                        break;
                }
        }
        json_object_end(w);
}

bool options_any(const struct transport_options *t) {
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (given(t, &options[i]))
                        return true;
        return false;
}

static void drop(struct transport_options *t, const struct option *o) {
        void *member = (char *) t + o->offset;
        switch (o->kind) {
        case NUMBER:
        case POWER_OF_TWO:
                *(uint64_t *) member = 0;
                break;
        case TOGGLE:
                *(enum toggle *) member = TOGGLE_UNSET;
                break;
        case WORD:
                *(unsigned *) member = 0;
                break;
        case NAME:
                *(char *) member = '\0';
                break;
        }
}

/* Of those that the spec names: whether a transport of it has a use for each. */
int options_check(struct parser *p, const struct json *v) {
        unsigned meant = 0;
        for (size_t w = 0; w < p->spec->n_workloads; w++)
                for (size_t t = 0; workload_has_transport(p->spec->workloads[w]) && t < p->spec->n_transports; t++)
                        meant |= transport_terms[p->spec->transports[t]].options;
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                const struct option *o = find(json_key(m));
                char pointer[JSON_POINTER_MAX];
                if (!o || meant & 1u << (o - options)) /* options_take() has refused what has no row */
                        continue;
                pointer_key(pointer, "/transport_options", json_key(m));
                if (parser_is_posted(p, "transport_options"))
                        return refuse(p->r, 422, "wrong-combination", pointer,
                                      "%s is for %s, and no transport of this experiment is one", o->name, o->are_for);
                drop(&p->spec->options, o);
        }
        return 0;
}

struct transport_options options_for_point(const struct transport_options *t, const struct point *p) {
        struct transport_options ret = *t;
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (!workload_has_transport(p->workload) || !(transport_terms[p->transport].options & 1u << i))
                        drop(&ret, &options[i]);
        return ret;
}

void transport_option_names_put(struct json_writer *w, enum transport t) {
        json_array_begin(w);
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (transport_terms[t].options & 1u << i)
                        json_put_string(w, options[i].name);
        json_array_end(w);
}
