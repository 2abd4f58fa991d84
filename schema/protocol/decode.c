/* SPDX-License-Identifier: MIT */

/*
 * From a packet to a message, by the rows of wire.c. The other side may be broken or hostile: each field is compared
 * with what remains of the packet and with its range, nothing may be left over, and whatever was allocated is freed on
 * the way out.
 */

#include "schema/detail.h"
#include "schema/json/base64.h"
#include "schema/json/utf8.h"
#include "schema/protocol/protocol.h"
#include "schema/protocol/wire.h"
#include "schema/spec/axes.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* A packet being taken apart: the first fault stays. */
struct reader {
        const uint8_t *next;
        size_t left;
        int error;
        char *detail; /* DETAIL_MAX bytes */
};

__attribute__((format(printf, 2, 3))) static void fault(struct reader *r, const char *format, ...) {
        if (r->error < 0)
                return;
        r->error = -EBADMSG;
        va_list arguments;
        va_start(arguments, format);
        if (vsnprintf(r->detail, DETAIL_MAX, format, arguments) < 0)
                r->detail[0] = '\0';
        va_end(arguments);
}

static void exhaust(struct reader *r) {
        if (r->error == 0)
                r->error = -ENOMEM;
}

static bool take(struct reader *r, const char *name, void *ret, size_t n) {
        if (r->error == 0 && r->left < n)
                fault(r, "the packet ends within %s", name);
        if (r->error < 0)
                return false;
        memcpy(ret, r->next, n);
        r->next += n;
        r->left -= n;
        return true;
}

/* The bytes of what begins with its length, where they lie; NULL on a fault. */
static const uint8_t *take_sized(struct reader *r, const char *name, size_t *ret_length) {
        uint32_t length;
        if (!take(r, name, &length, sizeof(length)))
                return NULL;
        if (length > r->left) {
                fault(r, "%s has %" PRIu32 " bytes, %zu are left of the packet", name, length, r->left);
                return NULL;
        }
        const uint8_t *data = r->next;
        r->next += length;
        r->left -= length;
        *ret_length = length;
        return data;
}

static void take_u32(struct reader *r, const struct wire_field *f, void *ret) {
        uint32_t v;
        if (!take(r, f->name, &v, sizeof(v)))
                return;
        if (v < f->least || v > f->most)
                fault(r, "%s is %" PRIu32 ", %" PRIu64 " … %" PRIu64 " are allowed", f->name, v, f->least, f->most);
        else
                memcpy(ret, &v, sizeof(v));
}

static void take_u64(struct reader *r, const struct wire_field *f, void *ret) {
        uint64_t v;
        if (!take(r, f->name, &v, sizeof(v)))
                return;
        if (v > f->most)
                fault(r, "%s is %" PRIu64 ", at most %" PRIu64 " is allowed", f->name, v, f->most);
        else
                memcpy(ret, &v, sizeof(v));
}

static void take_bool(struct reader *r, const struct wire_field *f, bool *ret) {
        uint8_t v;
        if (!take(r, f->name, &v, sizeof(v)))
                return;
        if (v > 1)
                fault(r, "%s is %u, neither 0 nor 1", f->name, v);
        else
                *ret = v;
}

static void take_rate(struct reader *r, const struct wire_field *f, double *ret) {
        double v;
        if (!take(r, f->name, &v, sizeof(v)))
                return;
        if (!(v >= 0 && v <= SPEC_RATE_MAX) || signbit(v))
                fault(r, "%s is %g, 0 … %g are allowed", f->name, v, SPEC_RATE_MAX);
        else
                *ret = v;
}

/* absent: what it has where it does not apply or is not given; NULL: zeroes. */
static void take_value(struct reader *r, const struct wire_field *f, const struct value *v, const void *absent,
                       void *holder) {
        void *member = (char *) holder + v->offset;
        char detail[DETAIL_MAX / 2];
        if (!take(r, f->name, member, v->size) || (!absent && !value_is_given(v, holder)))
                return;
        if (value_check(v, member, detail, sizeof(detail)) < 0)
                fault(r, "%s: %s", f->name, detail);
}

static void take_point(struct reader *r, const struct wire_field *f, struct point *ret) {
        for (size_t i = 0; i < AXIS_COUNT; i++)
                if (i != AXIS_PLACEMENT)
                        take_value(r, f, &axes[i].value, axes[i].absent, ret);
}

static void take_options(struct reader *r, const struct wire_field *f, struct transport_options *ret) {
        for (size_t i = 0; i < option_values.n; i++)
                take_value(r, f, value_at(&option_values, i), NULL, ret);
}

/* Whether these are characters of UTF-8, and none of them NUL. */
static bool is_text(const uint8_t *data, size_t length) {
        for (size_t n = 0; n < length;) {
                size_t c = utf8_length((const char *) data + n, length - n);
                if (c == 0 || data[n] == '\0')
                        return false;
                n += c;
        }
        return true;
}

static void take_chars(struct reader *r, const struct wire_field *f, char *ret) {
        size_t length = 0;
        const uint8_t *data = take_sized(r, f->name, &length);
        if (!data)
                return;
        if (length >= f->most)
                fault(r, "%s has %zu bytes, at most %" PRIu64 " are allowed", f->name, length, f->most - 1);
        else if (!is_text(data, length))
                fault(r, "%s is not UTF-8 text", f->name);
        else
                memcpy(ret, data, length); /* the NUL is there: the message begins as zeros */
}

static void take_cpus(struct reader *r, const struct wire_field *f, void *ret) {
        size_t length = 0;
        const uint8_t *data = take_sized(r, f->name, &length);
        if (!data)
                return;
        size_t n = length / sizeof(int32_t);
        if (length % sizeof(int32_t) != 0 || n > f->most)
                return fault(r, "%s has %zu bytes, which are not those of at most %" PRIu64 " CPUs", f->name, length,
                             f->most);
        if (n == 0)
                return;
        int32_t *cpus = malloc(length);
        if (!cpus)
                return exhaust(r);
        memcpy(cpus, data, length);
        memcpy(ret, &cpus, sizeof(cpus)); /* freed with the message from here on */
        memcpy((char *) ret + sizeof(cpus), &n, sizeof(n));
        for (size_t i = 0; i < n; i++)
                if (cpus[i] < 0 || cpus[i] >= (int32_t) SPEC_CPUS_MAX)
                        return fault(r, "%s has an entry that is no CPU: %" PRId32, f->name, cpus[i]);
}

/* *ret is a pointer to rows of this size. */
static void take_array(struct reader *r, const struct wire_field *f, void *ret, size_t *ret_n, size_t size) {
        size_t length = 0;
        const uint8_t *data = take_sized(r, f->name, &length);
        if (!data || length == 0)
                return;
        if (length % size != 0)
                return fault(r, "%s has rows of %zu bytes, which are not those of %zu each", f->name, length, size);
        void *array = malloc(length);
        if (!array)
                return exhaust(r);
        memcpy(array, data, length);
        memcpy(ret, &array, sizeof(array));
        *ret_n = length / size;
}

static void take_proof(struct reader *r, const struct wire_field *f, struct proof_report **ret) {
        char detail[DETAIL_MAX];
        struct proof_report *p = calloc(1, sizeof(*p));
        if (!p)
                return exhaust(r);
        *ret = p; /* freed with the message from here on */
        struct proof_arrays *of = &p->of;
        (void) take(r, f->name, p, offsetof(struct proof_report, of));
        take_array(r, f, &of->pages, &of->n_pages, sizeof(*of->pages));
        take_array(r, f, &of->threads, &of->n_threads, sizeof(*of->threads));
        take_array(r, f, &of->groups, &of->n_groups, sizeof(*of->groups));
        take_array(r, f, &of->sizes, &of->n_sizes, sizeof(*of->sizes));
        take_array(r, f, &of->counts, &of->n_counts, sizeof(*of->counts));
        take_array(r, f, &of->numbers, &of->n_numbers, sizeof(*of->numbers));
        if (r->error == 0 && proof_report_check(p, detail) < 0)
                fault(r, "%s: %s", f->name, detail);
}

static void take_row(struct reader *r, const struct wire_field *f, struct effective_row *ret) {
        const struct wire_field text = {.name = f->name, .most = sizeof(ret->text)};
        uint8_t head[3];
        if (!take(r, f->name, head, sizeof(head)))
                return;
        ret->setting = head[0];
        ret->group = head[1];
        ret->kind = head[2];
        if (ret->kind == EFFECTIVE_TEXT || ret->kind == EFFECTIVE_REASON)
                take_chars(r, &text, ret->text);
        else if (ret->kind == EFFECTIVE_REAL)
                (void) take(r, f->name, &ret->real, sizeof(ret->real));
        else if (ret->kind != EFFECTIVE_NULL)
                (void) take(r, f->name, &ret->number, sizeof(ret->number));
}

static void take_effective(struct reader *r, const struct wire_field *f, struct effective **ret) {
        uint32_t n;
        if (!take(r, f->name, &n, sizeof(n)))
                return;
        if (n > EFFECTIVE_ROWS_MAX)
                return fault(r, "%s has %" PRIu32 " rows, at most %u are allowed", f->name, n, EFFECTIVE_ROWS_MAX);
        struct effective *e = effective_new();
        if (!e)
                return exhaust(r);
        *ret = e; /* freed with the message from here on */
        while (r->error == 0 && e->n < n) {
                struct effective_row *row = &e->rows[e->n++];
                take_row(r, f, row);
                if (r->error == 0 && effective_check(e) < 0)
                        fault(r, "%s has a row that does not belong there: setting %u, group %u, kind %u", f->name,
                              (unsigned) row->setting, (unsigned) row->group, (unsigned) row->kind);
        }
}

/* A count that is known has no error, and a fraction of the time; one that is not has nothing but the error. */
static void take_count(struct reader *r, const struct wire_field *f, struct perf_count *ret) {
        struct perf_count c = {.known = false};
        uint8_t known;
        if (!take(r, f->name, &known, sizeof(known)) || !take(r, f->name, &c.value, sizeof(c.value)) ||
            !take(r, f->name, &c.fraction, sizeof(c.fraction)) || !take(r, f->name, &c.error, sizeof(c.error)))
                return;
        c.known = known == 1;
        bool whole = c.known ? c.fraction > 0 && c.fraction <= 1 && c.error == 0
                             : c.value == 0 && c.fraction == 0 && !signbit(c.fraction);
        if (known > 1 || !whole || c.error > 0 || c.error < -ERRNO_MAX)
                fault(r, "%s is no count: known %u, fraction %g, error %d", f->name, known, c.fraction, c.error);
        else
                *ret = c;
}

static void take_latency(struct reader *r, struct message_sample *s) {
        size_t length = 0;
        const uint8_t *data = take_sized(r, "sample.latency", &length);
        if (!data || length == 0)
                return;
        s->latency = calloc(1, sizeof(*s->latency));
        s->latency_v2 = malloc(length);
        if (!s->latency || !s->latency_v2)
                return exhaust(r);
        memcpy(s->latency_v2, data, length);
        s->latency_length = length;
        int e = histogram_decode(data, length, s->latency);
        if (e == -ENOMEM)
                return exhaust(r);
        if (e < 0)
                return fault(r, "sample.latency is not a histogram of this layout");
        (void) take(r, "sample.latency.sum_ns", &s->latency->sum_ns, sizeof(s->latency->sum_ns));
}

static void take_parts(struct reader *r, const struct wire_field *f, struct message_parts *ret) {
        size_t length = 0;
        const uint8_t *data = take_sized(r, f->name, &length);
        if (!data)
                return;
        size_t n = length / sizeof(ret->list[0]);
        if (length % sizeof(ret->list[0]) != 0 || n == 0 || n > f->most)
                return fault(r, "%s has %zu bytes, which are not those of 1 … %" PRIu64 " parts", f->name, length,
                             f->most);
        memcpy(ret->list, data, length);
        ret->n = (uint32_t) n;
        uint64_t end_ns = ret->begin_ns;
        for (size_t i = 0; i < n; i++) {
                uint64_t interval_ns = ret->list[i].interval_ns;
                if (interval_ns == 0 || __builtin_add_overflow(end_ns, interval_ns, &end_ns))
                        return fault(r, "%s has a part of %" PRIu64 " ns", f->name, interval_ns);
                if (ret->list[i].stopped_ns > interval_ns)
                        return fault(r, "%s has a stop of %" PRIu64 " ns in a part of %" PRIu64 " ns", f->name,
                                     ret->list[i].stopped_ns, interval_ns);
        }
}

static void take_series(struct reader *r, const struct wire_field *f, struct probe_series *ret) {
        if (!take(r, f->name, &ret->absence, sizeof(ret->absence)) ||
            !take(r, f->name, ret->round_ns, sizeof(ret->round_ns)))
                return;
        if (ret->absence >= PROBE_ABSENCE_COUNT)
                return fault(r, "%s is absent for a reason %" PRIu32 " that is unknown here", f->name, ret->absence);
        for (size_t i = 0; i < PROBE_ROUNDS; i++) {
                uint64_t ns = ret->round_ns[i];
                if (ret->absence == PROBE_TAKEN ? ns == 0 || ns > PROBE_ROUND_MAX_NS : ns != 0)
                        return fault(r, "%s has a round of %" PRIu64 " ns", f->name, ns);
        }
}

static void take_field(struct reader *r, const struct wire_field *f, struct message *m) {
        void *member = (char *) m + f->offset;
        switch (f->kind) {
        case WIRE_U32:
                return take_u32(r, f, member);
        case WIRE_U64:
                return take_u64(r, f, member);
        case WIRE_BOOL:
                return take_bool(r, f, member);
        case WIRE_RATE:
                return take_rate(r, f, member);
        case WIRE_POINT:
                return take_point(r, f, member);
        case WIRE_OPTIONS:
                return take_options(r, f, member);
        case WIRE_NODES:
                (void) take(r, f->name, member, sizeof(struct node_set));
                return;
        case WIRE_CHARS:
                return take_chars(r, f, member);
        case WIRE_CPUS:
                return take_cpus(r, f, member);
        case WIRE_PROOF:
                return take_proof(r, f, member);
        case WIRE_EFFECTIVE:
                return take_effective(r, f, member);
        case WIRE_COUNT:
                return take_count(r, f, member);
        case WIRE_LATENCY:
                return take_latency(r, &m->sample);
        case WIRE_PARTS:
                return take_parts(r, f, &m->parts);
        case WIRE_SERIES:
                return take_series(r, f, member);
        }
}

/* Checks that relate several fields. */
static void check_setup(struct reader *r, const struct message_setup *s) {
        const struct point *p = &s->point;
        if (workload_has_transport(p->workload) != (p->message_size > 0))
                fault(r, "setup.point.message_size is %" PRIu64 ", which workload %s cannot have", p->message_size,
                      workload_name(p->workload));
        if ((s->duration_ns == 0) == (s->messages == 0))
                fault(r, "exactly one of setup.duration_ns and setup.messages ends the window");
        if (s->messages_over && (s->messages == 0 || s->messages_over >= p->threads))
                fault(r, "setup.messages_over is %" PRIu64 ", which are not some of %" PRIu32 " threads",
                      s->messages_over, p->threads);
}

static void take_header(struct reader *r, size_t length, struct wire_header *ret) {
        if (!take(r, "the header", ret, sizeof(*ret)))
                return;
        if (ret->magic != WIRE_MAGIC)
                fault(r, "the packet does not begin as a message does");
        else if (ret->version != PROTOCOL_VERSION)
                fault(r, "protocol version %u, this side has %d", ret->version, PROTOCOL_VERSION);
        else if (!wire_layout_of((enum message_type) ret->type))
                fault(r, "unknown message type %u", ret->type);
        else if (ret->length != length)
                fault(r, "the packet has %zu bytes, its header has %" PRIu32, length, ret->length);
}

int message_decode(const uint8_t *data, size_t length, struct message *ret, char *ret_detail) {
        char detail[DETAIL_MAX] = "";
        struct reader r = {.next = data, .left = length, .detail = detail};
        struct wire_header header = {.type = 0};
        struct message m;

        memset(&m, 0, sizeof(m));
        if (length > PROTOCOL_PACKET_MAX)
                fault(&r, "the packet has %zu bytes, at most %u are allowed", length, PROTOCOL_PACKET_MAX);
        take_header(&r, length, &header);
        if (r.error == 0) {
                const struct wire_layout *l = wire_layout_of((enum message_type) header.type);
                m.type = (enum message_type) header.type;
                for (size_t i = 0; i < l->n && r.error == 0; i++)
                        take_field(&r, &l->fields[i], &m);
                if (r.error == 0 && m.type == MESSAGE_SETUP)
                        check_setup(&r, &m.setup);
                if (r.error == 0 && r.left > 0)
                        fault(&r, "%zu bytes follow the last field of %s", r.left, l->name);
        }
        if (r.error < 0) {
                message_deinit(&m);
                if (ret_detail)
                        memcpy(ret_detail, detail, DETAIL_MAX);
                return r.error;
        }
        *ret = m;
        return 0;
}
