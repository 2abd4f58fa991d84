/* SPDX-License-Identifier: MIT */
/* Writes GET /transports: each transport, whether this host has it, and its limits. */

#include "daemon/admission/admission.h"
#include "daemon/admission/capacity.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <string.h>

struct uring_answer {
        const char *reason, *zerocopy_reason; /* NULL: allowed */
        char text[CAPACITY_REASON_MAX], zerocopy_text[CAPACITY_REASON_MAX];
};

/* The words that the bits stand for. */
static void put_words(struct json_writer *w, const char *key, const struct vocabulary *words, unsigned bits) {
        json_member_array(w, key);
        for (unsigned v = 0; v < words->n; v++)
                if (bits & 1u << v)
                        json_put_string(w, words->name(v));
        json_array_end(w);
}

static unsigned workloads_with_transport(void) {
        unsigned bits = 0;
        for (unsigned v = 0; v < WORKLOAD_COUNT; v++)
                bits |= workload_has_transport((enum workload) v) ? 1u << v : 0;
        return bits;
}

static void put_engines(struct json_writer *w, const struct transport_term *term, const struct uring_answer *uring) {
        json_member_object(w, "engines");
        for (unsigned e = 0; term->has_engine && e < ENGINE_COUNT; e++) {
                const char *reason = e == ENGINE_IO_URING ? uring->reason : NULL;
                json_member_object(w, engine_name((enum engine) e));
                json_member_bool(w, "available", !reason);
                json_member_string(w, "reason", reason);
                if (e == ENGINE_IO_URING) {
                        json_member_bool(w, "kernel_allows", !uring->reason);
                        json_member_string(w, "kernel_reason", uring->reason);
                        if (term->zero_copy == ZERO_COPY_NOTIFY) {
                                const char *why = uring->reason ? uring->reason : uring->zerocopy_reason;
                                json_member_bool(w, "zero_copy", !why);
                                json_member_string(w, "zero_copy_reason", why);
                        }
                }
                json_object_end(w);
        }
        json_object_end(w);
}

/* shmmax is 2^64 - 2^24 by default; a number that JSON readers would round is written as text (schema/json/json.h). */
static void member_exact(struct json_writer *w, const char *key, uint64_t v) {
        if (v <= (uint64_t) JSON_INTEGER_MAX)
                json_member_u64(w, key, v);
        else
                json_member_u64_text(w, key, v);
}

static void put_limit(struct json_writer *w, const char *key, const char *name, uint64_t value, const char *raise) {
        json_member_object(w, key);
        json_member_string(w, "name", name);
        member_exact(w, "value", value);
        json_member_string(w, "raise", raise);
        json_object_end(w);
}

/* "limit" is the host's limit of largest_message. Where the spec's own limit is lower, "message_limit" has that, and
 * "limit" limits largest_transfer alone; where memory limits the message, it limits nothing else. "at_start" is the
 * value before it is raised for a run with longer messages. */
static void put_limits(struct json_writer *w, const struct capacity *c) {
        if (c->by_memory) {
                put_limit(w, "limit", c->memory.limit, c->memory.bytes, c->memory.raise);
                json_member_null(w, "at_start");
        } else if (c->reach) {
                put_limit(w, "limit", c->reach_limit, c->reach_value, c->reach_raise);
                put_limit(w, "at_start", c->limit, c->value, c->raise);
        } else {
                put_limit(w, "limit", c->limit, c->value, c->raise);
                json_member_null(w, "at_start");
        }
        if (c->largest_message == SPEC_MESSAGE_SIZE_MAX)
                put_limit(w, "message_limit", "message_size of a spec", SPEC_MESSAGE_SIZE_MAX,
                          "cannot be raised: no spec may request more");
        else
                json_member_null(w, "message_limit");
}

static void put_capacity(struct json_writer *w, const struct capacity *c) {
        json_member_object(w, "capacity");
        if (!c->known) {
                json_member_null(w, "largest_message");
                json_member_null(w, "largest_transfer");
                json_member_null(w, "limit");
                json_member_null(w, "at_start");
                json_member_null(w, "message_limit");
                json_member_string(w, "reason", c->reason);
        } else {
                json_member_u64(w, "largest_message", c->largest_message);
                member_exact(w, "largest_transfer", c->largest_transfer);
                put_limits(w, c);
                json_member_null(w, "reason");
        }
        json_object_end(w);
}

static int put_transport(struct json_writer *w, struct hostfs *h, const struct capacity_question *q,
                         const struct agent_identity *agents, const struct uring_answer *uring) {
        const struct transport_term *term = &transport_terms[q->transport];
        char why[CAPACITY_REASON_MAX];
        const char *reason = agents && agents->trouble[0] ? agents->trouble : capacity_unavailable(h, q, why);
        struct capacity c;

        int r = capacity_read(h, q, &c);
        if (r < 0)
                return r;
        json_object_begin(w);
        json_member_string(w, "name", term->name);
        json_member_string(w, "title", term->title);
        json_member_bool(w, "available", !reason);
        json_member_string(w, "reason", reason);
        put_words(w, "workloads", &workload_words, workloads_with_transport());
        put_engines(w, term, uring);
        put_words(w, "copy_modes", &copy_mode_words, term->copy_modes);
        put_words(w, "waits", &wait_mode_words, term->has_wait ? ~0u : 0);
        json_put_key(w, "options");
        transport_option_names_put(w, q->transport);
        json_member_bool(w, "message_bound", term->delivery == DELIVERY_WHOLE);
        put_capacity(w, &c);
        json_object_end(w);
        return 0;
}

static int put_items(struct json_writer *w, struct hostfs *h, const struct admission_host *host,
                     const struct uring_answer *uring) {
        int r = 0;
        json_member_array(w, "items");
        for (unsigned t = 0; r == 0 && t < TRANSPORT_COUNT; t++) {
                const struct capacity_question q = {.transport = (enum transport) t,
                                                    .runtime_dir = host->runtime_dir,
                                                    .queues = host->queues,
                                                    .space = transport_terms[t].carrier == CARRIER_FILE ? host->space
                                                                                                        : NULL};
                r = put_transport(w, h, &q, host->agents, uring);
        }
        json_array_end(w);
        json_member_null(w, "next");
        return r;
}

int capacity_to_json(const struct admission_host *host, char **ret) {
        _cleanup_(hostfs_deinit) struct hostfs h = {};
        struct uring_answer uring = {.reason = NULL};
        _cleanup_(json_writer_deinit) struct json_writer w = {};

        int r = hostfs_init(&h, host->root);
        if (r < 0)
                return r;
        uring.reason = capacity_io_uring(&h, host->agents, uring.text);
        uring.zerocopy_reason = capacity_io_uring_zerocopy(&h, host->agents, uring.zerocopy_text);
        json_object_begin(&w);
        r = put_items(&w, &h, host, &uring);
        json_object_end(&w);
        if (r == 0)
                r = json_writer_steal(&w, ret, NULL);
        return r;
}
