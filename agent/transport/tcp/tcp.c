/* SPDX-License-Identifier: MIT */

/*
 * TCP on loopback: a server and a client with a connection for each thread; see tcp.h. This file has the worker's
 * memory beside its connection, and the transport's report.
 */

#include "agent/transport/tcp/tcp.h"
#include "agent/loop/buffer.h"
#include "agent/transport/transport.h"
#include "schema/protocol/effective.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool both_ways(const struct agent *a) {
        return a->setup.point.workload == WORKLOAD_PINGPONG || agent_is_duplex(a);
}

bool tcp_agent_sends(const struct agent *a) {
        return both_ways(a) || agent_sends(a);
}

bool tcp_agent_receives(const struct agent *a) {
        return both_ways(a) || !agent_sends(a);
}

bool tcp_stamps(const struct agent *a) {
        return point_is_stamped(&a->setup.point, a->setup.stamp, a->setup.rate);
}

/* The interval of stamped messages, a power of two: one in TCP_STAMP_BYTES bytes, or each. */
static uint64_t stamp_every(const struct agent *a) {
        uint64_t every = 1;
        while (every * a->setup.point.message_size < TCP_STAMP_BYTES)
                every *= 2;
        return every;
}

int tcp_open(struct agent *a) {
        struct tcp *t = calloc(1, sizeof *t);
        if (!t)
                return failure_set(&a->failure, ENOMEM, "no memory for the connections");
        t->listener = -1;
        a->transport_data = t;
        a->sent_again = tcp_sent_again;
        return tcp_connect_all(a, t);
}

void tcp_close(struct agent *a) {
        struct tcp *t = a->transport_data;
        if (t)
                (void) util_close(t->listener);
        free(t);
        a->transport_data = NULL;
}

/* Fills the fields with the letters of the study's messages: 'A' in the first field, 'B' in the second … */
static void fill_letters(struct fields *f) {
        for (unsigned i = 0; i < f->n; i++)
                memset(f->iov[i].iov_base, 'A' + (int) i % 26, f->iov[i].iov_len);
}

/* The next message of a cold source, where a message is its only field. */
static void next_packed(struct worker *w) {
        struct tcp_channel *c = w->channel;
        fields_next(c->fields);
        c->packed = c->fields->iov[0].iov_base;
}

/* A single field needs no packing. Else a worker that only sends packs into its buffer, and one that also receives has
 * another buffer for that. */
static int make_packed(struct worker *w, struct tcp_channel *c) {
        if (c->fields->n == 1) {
                c->packed = c->fields->iov[0].iov_base;
                if (w->source_next)
                        w->source_next = next_packed;
                return 0;
        }
        if (!tcp_agent_receives(w->agent)) {
                c->packed = w->buffer;
                return 0;
        }
        int r = buffer_map(w, w->buffer_length, &c->packed);
        if (r == 0)
                c->packed_length = w->buffer_length;
        return r;
}

static int make_messages(struct worker *w, struct tcp_channel *c) {
        const struct point *p = &w->agent->setup.point;
        int r;
        if (p->copy_mode == COPY_ZERO) {
                r = zerocopy_new(w, w->size, p->fields, &c->zerocopy);
                for (uint32_t i = 0; r == 0 && i < c->zerocopy->n; i++)
                        fill_letters(c->zerocopy->messages[i]);
                return r;
        }
        r = fields_new(w, w->size, p->fields, &c->fields);
        for (uint64_t i = 0; r == 0 && i < c->fields->copies; i++, fields_next(c->fields)) /* many of a cold source */
                fill_letters(c->fields);
        if (r == 0 && p->copy_mode == COPY_TWO)
                r = make_packed(w, c);
        return r;
}

int tcp_attach(struct worker *w) {
        struct tcp_channel *c = calloc(1, sizeof *c);
        int r = c ? 0 : -ENOMEM;
        w->channel = c;
        if (c)
                c->stamp_mask = stamp_every(w->agent) - 1;
        w->is_notified = w->agent->setup.point.copy_mode == COPY_ZERO && tcp_agent_sends(w->agent);
        if (r == 0 && tcp_agent_sends(w->agent))
                r = make_messages(w, c);
        if (r < 0)
                return failure_set(&w->failure, -r, "no memory for the messages of thread %" PRIu32 ": %s", w->index,
                                   strerrordesc_np(-r));
        return tcp_stamps(w->agent) && tcp_agent_receives(w->agent) ? worker_make_recorder(w) : 0;
}

void tcp_detach(struct worker *w) {
        struct tcp_channel *c = w->channel;
        if (!c)
                return;
        (void) fields_free(c->fields);
        (void) zerocopy_free(c->zerocopy);
        if (c->packed_length)
                buffer_unmap(c->packed, c->packed_length);
        free(c);
        w->channel = NULL;
}

static int list_pages_of(const struct worker *w, struct page_list *list) {
        const struct tcp_channel *c = w->channel;
        int r = 0;
        if (c->fields)
                r = page_list_add(list, PAGES_BUFFER, w->index, c->fields->memory, c->fields->length);
        if (r == 0 && c->packed_length)
                r = page_list_add(list, PAGES_BUFFER, w->index, c->packed, c->packed_length);
        for (uint32_t i = 0; r == 0 && c->zerocopy && i < c->zerocopy->n; i++)
                r = page_list_add(list, PAGES_BUFFER, w->index, c->zerocopy->messages[i]->memory,
                                  c->zerocopy->messages[i]->length);
        return r;
}

int tcp_pages(const struct agent *a, struct page_list *list) {
        int r = 0;
        for (uint32_t i = 0; r == 0 && i < a->n_workers; i++)
                r = list_pages_of(&a->workers[i], list);
        return r;
}

const char *tcp_send_method(const struct agent *a) {
        static const char *const methods[ENGINE_COUNT][COPY_COUNT] = {
                [ENGINE_SYSCALL] = {"send", "sendmsg", "sendmsg MSG_ZEROCOPY"},
                [ENGINE_IO_URING] = {"send", "sendmsg", "sendmsg_zc"}};
        static const char *const methods_of_one[ENGINE_COUNT][COPY_COUNT] = {
                [ENGINE_SYSCALL] = {"send", "send", "send MSG_ZEROCOPY"},
                [ENGINE_IO_URING] = {"send", "send", "send_zc"}};
        const struct point *p = &a->setup.point;
        bool one = p->fields == 1 || p->message_size == 1; /* a message has at most as many fields as bytes */
        return (one ? methods_of_one : methods)[p->engine][p->copy_mode];
}

static void put_sending(const struct agent *a, struct effective *e) {
        const struct tcp_channel *c = a->workers[0].channel;
        effective_add_text(e, SETTING_SEND_METHOD, tcp_send_method(a));
        effective_add_number(e, SETTING_FIELDS, tcp_fields(c)->n);
        if (!c->zerocopy)
                return;
        effective_add_number(e, SETTING_POOL_MESSAGES, c->zerocopy->n);
        zerocopy_limits(a->setup.point.engine == ENGINE_SYSCALL, e);
}

bool tcp_receives_many(const struct agent *a, const char **ret_reason) {
        const char *reason = NULL;
        bool all = true;
        for (uint32_t i = 0; i < a->n_workers; i++) {
                const struct tcp_channel *c = a->workers[i].channel;
                all = all && c->multishot;
                reason = reason ? reason : c->no_multishot;
        }
        *ret_reason = reason;
        return all;
}

static void put_receiving(const struct agent *a, struct effective *e) {
        const char *reason;
        bool many = tcp_receives_many(a, &reason);
        bool waits = a->setup.point.engine == ENGINE_IO_URING && !agent_is_duplex(a); /* until_whole() of uring.c */
        effective_add_text(e, SETTING_RECEIVE_METHOD, many ? "recv multishot" : waits ? "recv MSG_WAITALL" : "recv");
        if (reason)
                effective_add_reason(e, SETTING_RECEIVE_METHOD, reason);
}

static void put_latency(const struct agent *a, struct effective *e) {
        static const char too_short[] =
                "messages shorter than " UTIL_TEXT(SPEC_STAMPED_MIN) " bytes do not carry their send time";
        if (a->setup.point.workload != WORKLOAD_STREAM)
                return;
        effective_add_bool(e, SETTING_STAMP, tcp_stamps(a));
        if (tcp_stamps(a)) {
                if (!a->setup.stamp)
                        effective_add_reason(e, SETTING_STAMP,
                                             "a rate in both directions: messages carry their due time");
                effective_add_number(e, SETTING_LATENCY_EVERY_MESSAGES, stamp_every(a));
                return;
        }
        if (a->setup.rate > 0 && !agent_is_duplex(a)) {
                effective_add_number(e, SETTING_LATENCY_EVERY_MESSAGES, 1); /* by the schedule, which both ends know */
                return;
        }
        effective_add_unknown(e, SETTING_LATENCY_EVERY_MESSAGES,
                              a->setup.point.message_size < SPEC_STAMPED_MIN ? too_short : "stamp is off");
}

void tcp_effective(const struct agent *a, struct effective *e) {
        const struct tcp *t = a->transport_data;
        if (tcp_agent_sends(a))
                put_sending(a, e);
        if (tcp_agent_receives(a))
                put_receiving(a, e);
        put_latency(a, e);
        tcp_sockets_effective(a, e);
        if (a->end == END_FIRST)
                effective_add_number(e, SETTING_STRANGERS_REFUSED, t->refused);
}

const struct transport_ops transport_tcp = {
        .transport = TRANSPORT_TCP,
        .engine = ENGINE_SYSCALL,
        .uring = &transport_uring_tcp,
        .open = tcp_open,
        .attach = tcp_attach,
        .detach = tcp_detach,
        .close = tcp_close,
        .loops = tcp_syscall_loops,
        .effective = tcp_effective,
        .pages = tcp_pages,
};
