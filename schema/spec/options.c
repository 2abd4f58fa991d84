/* SPDX-License-Identifier: MIT */

/*
 * transport_options: each has one row with its type and its range; which transports have it is in the transports' rows
 * (schema/transport/table.h). The parser, the writer, the JSON Schema and the protocol between daemon and agent read
 * the same table.
 */

#include "schema/spec/parser.h"

#include "schema/transport/ring-layout.h"
#include "schema/util.h"

#include <string.h>

static const struct option {
        struct value value;
        bool sizes_buffer; /* in bytes: buffer_bytes stands for it where it is not given */
} options[OPTION_COUNT] = {
#define NUMBER(member, low, high) VALUE(value_number, struct transport_options, member), .least = (low), .most = (high)
#define OTHER(type_of_value, member) VALUE(type_of_value, struct transport_options, member)
        [OPTION_BUFFER_BYTES] =
                {.value = {"buffer_bytes",
                           "Bytes of the buffer of every transport that has one, a power of two: of a pipe, of "
                           "a socket's send buffer and tcp's receive buffer (which the kernel doubles for its "
                           "own needs), of a ring, of a message queue in whole messages; pipe_size, sndbuf, "
                           "rcvbuf, ring_bytes and msgq_depth go before it",
                           OTHER(value_power_of_two, buffer_bytes), .least = SPEC_BUFFER_MIN, .most = SPEC_BUFFER_MAX}},
        [OPTION_PIPE_SIZE] = {.value = {"pipe_size", "Bytes of a pipe's buffer (F_SETPIPE_SZ)",
                                        NUMBER(pipe_size, 4096, 1u << 30)},
                              .sizes_buffer = true},
        [OPTION_MSGQ_DEPTH] = {.value = {"msgq_depth", "Messages that a queue holds", NUMBER(msgq_depth, 1, 65536)}},
        [OPTION_RING_BYTES] = {.value = {"ring_bytes", "Bytes of the ring in shared memory",
                                         OTHER(value_power_of_two, ring_bytes), .least = RING_BYTES_MIN,
                                         .most = RING_BYTES_MAX},
                               .sizes_buffer = true},
        [OPTION_HUGE_PAGES] = {.value = {"huge_pages", "Shared memory on huge pages", OTHER(value_toggle, huge_pages),
                                         .standard = &(const enum toggle){TOGGLE_OFF}}},
        [OPTION_GATHER] =
                {.value = {"gather",
                           "Whether the reader of a stream's ring that has caught up lets messages gather for some "
                           "microseconds before it looks again, whatever \"wait\" is",
                           OTHER(value_toggle, gather), .standard = &(const enum toggle){TOGGLE_ON}}},
        [OPTION_FILE_SYNC] =
                {.value = {"file_sync",
                           "How a message in a plain file reaches its reader: through the page cache, past it "
                           "(O_DIRECT), or after "
                           "fsync; the latter two not where the runtime directory is in memory",
                           OTHER(value_word, file_sync), .words = &file_sync_words,
                           .standard = &(const enum file_sync){FILE_SYNC_PAGE_CACHE}}},
        [OPTION_SNDBUF] = {.value = {"sndbuf", "Bytes for SO_SNDBUF, which the kernel doubles",
                                     NUMBER(sndbuf, 4096, (1u << 30) - 1)},
                           .sizes_buffer = true},
        [OPTION_RCVBUF] = {.value = {"rcvbuf", "Bytes for SO_RCVBUF, which the kernel doubles",
                                     NUMBER(rcvbuf, 4096, (1u << 30) - 1)},
                           .sizes_buffer = true},
        [OPTION_NODELAY] = {.value = {"nodelay", "TCP_NODELAY", OTHER(value_toggle, nodelay),
                                      .standard = &(const enum toggle){TOGGLE_ON}}},
        [OPTION_BUSY_POLL] = {.value = {"busy_poll", "Microseconds for SO_BUSY_POLL", NUMBER(busy_poll, 1, 1000000)}},
        [OPTION_CONGESTION] = {.value = {"congestion", "TCP_CONGESTION", OTHER(value_name, congestion), .least = 1,
                                         .most = SPEC_CONGESTION_MAX}},
        [OPTION_MEMFD] = {.value = {"memfd", "Where a message's memory comes from: made for it, or out of a pool",
                                    OTHER(value_word, memfd), .words = &memfd_source_words,
                                    .standard = &(const enum memfd_source){MEMFD_FRESH}}},
};

static unsigned transports_of(size_t option) {
        unsigned bits = 0;
        for (unsigned t = 0; t < TRANSPORT_COUNT; t++)
                if (transport_terms[t].options & 1u << option)
                        bits |= 1u << t;
        return bits;
}

const struct value_table option_values = {VALUE_ROWS(options), .transports = transports_of};

static int refuse_option(struct parser *p, const struct option *o, const char *pointer) {
        char names[WORDS_LIST_MAX];
        words_list(names, &transport_words, transports_of((size_t) (o - options)));
        return refuse(p->r, 422, "wrong-combination", pointer,
                      "%s is for %s, and no transport of this experiment is one", o->value.name, names);
}

/* Checks that for each option that the spec names one of its transports has a use. */
int options_check(struct parser *p, const struct json *v) {
        unsigned transports = spec_transports(p->spec);
        for (const struct json *m = json_first(v); m; m = json_next(m)) {
                /* a row begins with its value, and what has no row has been refused */
                const struct option *o = (const void *) value_find(&option_values, json_key(m));
                char pointer[JSON_POINTER_MAX];
                if (!o || transports_of((size_t) (o - options)) & transports)
                        continue;
                json_pointer_key(pointer, "/transport_options", json_key(m));
                if (parser_is_posted(p, "transport_options"))
                        return refuse_option(p, o, pointer);
                value_drop(&o->value, &p->spec->options);
        }
        return 0;
}

struct transport_options options_for_point(const struct transport_options *t, const struct point *p) {
        struct transport_options ret = *t;
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (!workload_has_transport(p->workload) || !(transport_terms[p->transport].options & 1u << i))
                        value_drop(&options[i].value, &ret);
                else if (ret.buffer_bytes && options[i].sizes_buffer && !value_is_given(&options[i].value, &ret))
                        *(uint64_t *) (void *) ((char *) &ret + options[i].value.offset) = ret.buffer_bytes;
        return ret;
}

const char *options_pointer(const struct transport_options *t, const char *pointer) {
        static const char where[] = "/transport_options/";
        if (!t->buffer_bytes || strncmp(pointer, where, sizeof(where) - 1) != 0)
                return pointer;
        const struct value *v = value_find(&option_values, pointer + sizeof(where) - 1);
        return !v || value_is_given(v, t) ? pointer : "/transport_options/buffer_bytes";
}

void transport_option_names_put(struct json_writer *w, enum transport t) {
        json_array_begin(w);
        for (size_t i = 0; i < ELEMENTS(options); i++)
                if (transport_terms[t].options & 1u << i)
                        json_put_string(w, options[i].value.name);
        json_array_end(w);
}
