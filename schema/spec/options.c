/* SPDX-License-Identifier: MIT */

/*
 * transport_options: each has one row, which says its type, its range, and the transports that it means something for.
 * Parser, writer and the daemon-agent protocol read the same table.
 */

#include "schema/spec/parser.h"

#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <string.h>

#define BIT(t) (1u << TRANSPORT_##t)
#define PIPES (BIT(PIPE) | BIT(FIFO))
#define UNIX_SOCKETS (BIT(UNIX_STREAM) | BIT(UNIX_DGRAM) | BIT(UNIX_SEQPACKET))
#define QUEUES (BIT(MSGQ_SYSV) | BIT(MSGQ_POSIX))
#define RINGS (BIT(SHM_POSIX) | BIT(SHM_SYSV) | BIT(MMAP_FILE) | BIT(MMAP_ANONYMOUS))

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyz0123456789_-"

enum kind { NUMBER, POWER_OF_TWO, TOGGLE, SYNC_WORD, NAME };

static const struct option {
        const char *name;
        enum kind kind;
        size_t offset; /* in struct transport_options */
        uint64_t least, most;
        unsigned transports;
        const char *are_for;
} options[] = {
#define AT(member) offsetof(struct transport_options, member)
        {"pipe_size", NUMBER, AT(pipe_size), 4096, 1u << 30, PIPES, "pipe and fifo"},
        {"msgq_depth", NUMBER, AT(msgq_depth), 1, 65536, QUEUES, "message queues"},
        {"ring_bytes", POWER_OF_TWO, AT(ring_bytes), RING_BYTES_MIN, RING_BYTES_MAX, RINGS, "shared memory"},
        {"huge_pages", TOGGLE, AT(huge_pages), 0, 0, RINGS & ~BIT(MMAP_FILE), "shm-posix, shm-sysv and mmap-anonymous"},
        {"file_sync", SYNC_WORD, AT(file_sync), 0, 0, BIT(FILE), "file"},
        {"sndbuf", NUMBER, AT(sndbuf), 4096, (1u << 30) - 1, UNIX_SOCKETS | BIT(TCP), "sockets"},
        {"rcvbuf", NUMBER, AT(rcvbuf), 4096, (1u << 30) - 1, BIT(TCP), "tcp"}, /* unix(7): no effect there */
        {"nodelay", TOGGLE, AT(nodelay), 0, 0, BIT(TCP), "tcp"},
        {"busy_poll", NUMBER, AT(busy_poll), 1, 1000000, BIT(TCP), "tcp"},
        {"congestion", NAME, AT(congestion), 1, SPEC_CONGESTION_MAX, BIT(TCP), "tcp"},
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

static const char *sync_word(unsigned v) {
        return file_sync_name((enum file_sync) v);
}

static int take_sync(struct parser *p, const struct json *v, const char *pointer, const struct option *o,
                     enum file_sync *ret) {
        unsigned word = 0;
        int r = parser_word(p, v, pointer, o->name, sync_word, FILE_SYNC_COUNT, &word);
        if (r == 0)
                *ret = (enum file_sync) word;
        return r;
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
        if (strspn(s, NAME_CHARACTERS) != n)
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
        case SYNC_WORD:
                return take_sync(p, v, pointer, o, member);
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
        case SYNC_WORD:
                return *(const enum file_sync *) member != FILE_SYNC_PAGE_CACHE;
        case NAME:
                return *(const char *) member != '\0';
        }
        return false;
}

int options_check_ranges(const struct transport_options *t, char *ret_detail, size_t size) {
        for (size_t i = 0; i < ELEMENTS(options); i++) {
                const struct option *o = &options[i];
                const char *member = (const char *) t + o->offset;
                uint64_t number = 0;
                if (!given(t, o))
                        continue;
                if (o->kind == NUMBER || o->kind == POWER_OF_TWO) {
                        memcpy(&number, member, sizeof(number));
                        if (number >= o->least && number <= o->most && (o->kind == NUMBER || !(number & (number - 1))))
                                continue;
                        (void) snprintf(ret_detail, size, "%s is %" PRIu64 " … %" PRIu64 "%s, not %" PRIu64, o->name,
                                        o->least, o->most, o->kind == NUMBER ? "" : ", a power of two", number);
                        return -EINVAL;
                }
                if (o->kind == NAME && strspn(member, NAME_CHARACTERS) != strlen(member)) {
                        (void) snprintf(ret_detail, size, "%s is of a-z, 0-9, _ and -", o->name);
                        return -EINVAL;
                }
        }
        return 0;
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
                case SYNC_WORD:
                        json_put_string(w, file_sync_name(*(const enum file_sync *) member));
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
        case SYNC_WORD:
                *(enum file_sync *) member = FILE_SYNC_PAGE_CACHE;
                break;
        case NAME:
                *(char *) member = '\0';
                break;
        }
}

/* Of those that the spec names: whether a transport of it has a use for each. */
int options_check(struct parser *p, const struct json *v) {
        unsigned transports = 0;
        for (size_t w = 0; w < p->spec->n_workloads; w++)
                for (size_t t = 0; workload_has_transport(p->spec->workloads[w]) && t < p->spec->n_transports; t++)
                        transports |= 1u << p->spec->transports[t];
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                const struct option *o = find(json_key(m));
                char pointer[JSON_POINTER_MAX];
                if (!o || o->transports & transports) /* options_take() has refused what has no row */
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
                if (!workload_has_transport(p->workload) || !(options[i].transports & 1u << p->transport))
                        drop(&ret, &options[i]);
        return ret;
}

void transport_option_names_put(struct json_writer *w, enum transport t) {
        json_array_begin(w);
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (options[i].transports & 1u << t)
                        json_put_string(w, options[i].name);
        json_array_end(w);
}
