/* SPDX-License-Identifier: MIT */

/* Encodes a message as a packet, by the rows of wire.c. */

#include "schema/protocol/wire.h"
#include "schema/spec/axes.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <string.h>

/* A packet under construction; whatever does not fit makes it too long, and the rest is not written. */
struct packet {
        uint8_t *data; /* PROTOCOL_PACKET_MAX bytes */
        size_t length;
        int error;
};

static void put(struct packet *p, const void *data, size_t n) {
        if (p->error == 0 && n > PROTOCOL_PACKET_MAX - p->length)
                p->error = -EMSGSIZE;
        if (p->error < 0 || n == 0)
                return;
        memcpy(p->data + p->length, data, n);
        p->length += n;
}

static void put_sized(struct packet *p, const void *data, size_t n) {
        uint32_t length = (uint32_t) n;
        if (n > PROTOCOL_PACKET_MAX) {
                p->error = p->error < 0 ? p->error : -EMSGSIZE;
                return;
        }
        put(p, &length, sizeof(length));
        put(p, data, n);
}

static void put_text(struct packet *p, const char *text) {
        put_sized(p, text, text ? strlen(text) : 0);
}

/* The exact sum stands behind the encoding, which has none. */
static void put_latency(struct packet *p, const struct message_sample *s) {
        _cleanup_free_ uint8_t *data = NULL;
        size_t length = s->latency_length;
        if (!s->latency) {
                put_sized(p, NULL, 0);
                return;
        }
        int r = s->latency_v2 ? 0 : histogram_encode(s->latency, &data, &length);
        if (r < 0 && p->error == 0)
                p->error = r;
        if (r < 0)
                return;
        put_sized(p, s->latency_v2 ? s->latency_v2 : data, length);
        put(p, &s->latency->sum_ns, sizeof(s->latency->sum_ns));
}

static void put_count(struct packet *p, const struct perf_count *c) {
        uint8_t known = c->known;
        put(p, &known, sizeof(known));
        put(p, &c->value, sizeof(c->value));
        put(p, &c->fraction, sizeof(c->fraction));
        put(p, &c->error, sizeof(c->error));
}

static void put_series(struct packet *p, const struct probe_series *s) {
        put(p, &s->absence, sizeof(s->absence));
        put(p, s->round_ns, sizeof(s->round_ns));
}

static void put_proof(struct packet *p, const struct proof_report *proof) {
        const struct proof_arrays *of = &proof->of;
        put(p, proof, offsetof(struct proof_report, of));
        put_sized(p, of->pages, of->n_pages * sizeof(*of->pages));
        put_sized(p, of->threads, of->n_threads * sizeof(*of->threads));
        put_sized(p, of->groups, of->n_groups * sizeof(*of->groups));
        put_sized(p, of->sizes, of->n_sizes * sizeof(*of->sizes));
        put_sized(p, of->counts, of->n_counts * sizeof(*of->counts));
        put_sized(p, of->numbers, of->n_numbers * sizeof(*of->numbers));
}

static void put_effective(struct packet *p, const struct effective *e) {
        uint32_t n = (uint32_t) e->n;
        put(p, &n, sizeof(n));
        for (size_t i = 0; i < e->n; i++) {
                const struct effective_row *row = &e->rows[i];
                const uint8_t head[] = {(uint8_t) row->setting, (uint8_t) row->group, (uint8_t) row->kind};
                put(p, head, sizeof(head));
                if (row->kind == EFFECTIVE_TEXT || row->kind == EFFECTIVE_REASON)
                        put_text(p, row->text);
                else if (row->kind == EFFECTIVE_REAL)
                        put(p, &row->real, sizeof(row->real));
                else if (row->kind != EFFECTIVE_NULL)
                        put(p, &row->number, sizeof(row->number));
        }
}
_Static_assert(SETTING_COUNT <= UINT8_MAX, "a setting is a byte");

static void put_field(struct packet *p, const struct wire_field *f, const struct message *m) {
        const void *member = (const char *) m + f->offset;
        const void *pointer;
        uint8_t byte;
        size_t n;
        switch (f->kind) {
        case WIRE_U32:
                put(p, member, sizeof(uint32_t));
                return;
        case WIRE_U64:
        case WIRE_RATE:
                put(p, member, sizeof(uint64_t));
                return;
        case WIRE_BOOL:
                byte = *(const bool *) member;
                put(p, &byte, sizeof(byte));
                return;
        case WIRE_POINT:
                for (size_t i = 0; i < AXIS_COUNT; i++)
                        if (i != AXIS_PLACEMENT)
                                put(p, axis_of(&axes[i], member), axes[i].value.size);
                return;
        case WIRE_OPTIONS:
                for (size_t i = 0; i < option_values.n; i++)
                        put(p, (const char *) member + value_at(&option_values, i)->offset,
                            value_at(&option_values, i)->size);
                return;
        case WIRE_NODES:
                put(p, member, sizeof(struct node_set));
                return;
        case WIRE_CHARS:
                put_text(p, member);
                return;
        case WIRE_CPUS:
                memcpy(&pointer, member, sizeof(pointer));
                memcpy(&n, (const char *) member + sizeof(pointer), sizeof(n));
                put_sized(p, pointer, n * sizeof(int32_t));
                return;
        case WIRE_PROOF:
                memcpy(&pointer, member, sizeof(pointer));
                put_proof(p, pointer);
                return;
        case WIRE_EFFECTIVE:
                memcpy(&pointer, member, sizeof(pointer));
                put_effective(p, pointer);
                return;
        case WIRE_COUNT:
                put_count(p, member);
                return;
        case WIRE_LATENCY:
                put_latency(p, &m->sample);
                return;
        case WIRE_PARTS:
                put_sized(p, m->parts.list, m->parts.n * sizeof(m->parts.list[0]));
                return;
        case WIRE_SERIES:
                put_series(p, member);
                return;
        }
}

int message_encode(const struct message *m, uint8_t **ret, size_t *ret_length) {
        const struct wire_layout *l = wire_layout_of(m->type);
        _cleanup_free_ uint8_t *data = l ? malloc(PROTOCOL_PACKET_MAX) : NULL;
        struct packet p = {.data = data, .length = sizeof(struct wire_header)};
        if (!data)
                return l ? -ENOMEM : -EINVAL;
        for (size_t i = 0; i < l->n; i++)
                put_field(&p, &l->fields[i], m);
        if (p.error < 0)
                return p.error;
        const struct wire_header header = {.magic = WIRE_MAGIC,
                                           .version = PROTOCOL_VERSION,
                                           .type = (uint16_t) m->type,
                                           .length = (uint32_t) p.length};
        memcpy(data, &header, sizeof(header));
        *ret = util_steal(&data);
        *ret_length = p.length;
        return 0;
}
