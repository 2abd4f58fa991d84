/* SPDX-License-Identifier: MIT */

/*
 * From a packet to a message. The other side may be broken or hostile: each member is asked for by name, type and
 * range, each object has exactly the members it should have, and whatever was allocated is freed on the way out.
 */

#include "schema/json/base64.h"
#include "schema/protocol/protocol.h"
#include "schema/spec/internal.h"
#include "schema/util.h"

#include <stdarg.h>
#include <string.h>

#define DETAIL_MAX 200u
#define ERRNO_MAX 4095

static const char *const type_names[] = {
        [MESSAGE_HELLO] = "hello",       [MESSAGE_SETUP] = "setup",   [MESSAGE_COUNT] = "count",
        [MESSAGE_COUNTING] = "counting", [MESSAGE_READY] = "ready",   [MESSAGE_START] = "start",
        [MESSAGE_ALIVE] = "alive",       [MESSAGE_SAMPLE] = "sample", [MESSAGE_THREAD] = "thread",
        [MESSAGE_REPORT] = "report",     [MESSAGE_ERROR] = "error",
};

static const char *const fault_names[] = {[FAULT_OWN] = "own", [FAULT_PEER] = "peer"};

const char *message_type_name(enum message_type type) {
        return (unsigned) type < ELEMENTS(type_names) ? type_names[type] : NULL;
}

const char *fault_name(enum fault whose) {
        return (unsigned) whose < ELEMENTS(fault_names) ? fault_names[whose] : NULL;
}

/* An object being taken apart: the first fault sticks, and what was not asked for is one. */
struct reader {
        const struct json *object;
        size_t taken;
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

static void exhaust(struct reader *r, int error) {
        if (r->error == 0) {
                r->error = error;
                r->detail[0] = '\0';
        }
}

static const struct json *take(struct reader *r, const char *key) {
        if (r->error < 0)
                return NULL;
        const struct json *v = json_get(r->object, key);
        if (v)
                r->taken++;
        else
                fault(r, "member \"%s\" is missing", key);
        return v;
}

static const struct json *take_typed(struct reader *r, const char *key, enum json_type type, const char *what) {
        const struct json *v = take(r, key);
        if (v && json_type(v) != type) {
                fault(r, "member \"%s\" is not %s", key, what);
                return NULL;
        }
        return v;
}

static int64_t take_integer(struct reader *r, const char *key, int64_t least, int64_t most) {
        const struct json *v = take_typed(r, key, JSON_INTEGER, "an integer");
        int64_t number = least;
        if (v && (json_as_i64(v, &number) < 0 || number < least || number > most)) {
                fault(r, "member \"%s\" is not %" PRId64 " … %" PRId64, key, least, most);
                return least;
        }
        return number;
}

static bool take_bool(struct reader *r, const char *key) {
        const struct json *v = take_typed(r, key, JSON_BOOL, "true or false");
        bool b = false;
        if (v)
                (void) json_as_bool(v, &b); /* the type has been checked */
        return b;
}

static uint64_t take_u64(struct reader *r, const char *key) {
        const struct json *v = take(r, key);
        uint64_t number = 0;
        if (v && json_as_u64_text(v, &number) < 0)
                fault(r, "member \"%s\" is not a decimal string of 64 bits", key);
        return number;
}

static const char *take_string(struct reader *r, const char *key) {
        const struct json *v = take_typed(r, key, JSON_STRING, "a string");
        const char *s = "";
        if (v)
                (void) json_as_string(v, &s); /* the type has been checked */
        return s;
}

/* An object as text; NULL for null where that is allowed. */
static char *take_object_text(struct reader *r, const char *key, bool or_null) {
        const struct json *v = take(r, key);
        if (!v || (or_null && json_type(v) == JSON_NULL))
                return NULL;
        if (json_type(v) != JSON_OBJECT) {
                fault(r, "member \"%s\" is not an object", key);
                return NULL;
        }
        char *text = json_print(v);
        if (!text)
                exhaust(r, -ENOMEM);
        return text;
}

/* Begins on a member that is an object; end_object() hands its fault and its thoroughness back to the parent. */
static struct reader begin_object(struct reader *r, const char *key) {
        struct reader inner = {.object = take_typed(r, key, JSON_OBJECT, "an object"), .detail = r->detail};
        inner.error = r->error;
        return inner;
}

static void end_object(struct reader *r, struct reader *inner, const char *name) {
        if (inner->error == 0 && inner->taken != json_length(inner->object))
                fault(inner, "%s has members that it should not have", name);
        r->error = inner->error;
}

static void take_cpus(struct reader *r, const char *key, int32_t **ret, size_t *ret_n) {
        const struct json *list = take_typed(r, key, JSON_ARRAY, "a list");
        size_t n = list ? json_length(list) : 0, i = 0;

        if (n > AGENT_CPUS_MAX)
                fault(r, "member \"%s\" has %zu CPUs, at most %u are allowed", key, n, AGENT_CPUS_MAX);
        if (n == 0 || r->error < 0)
                return;
        int32_t *cpus = calloc(n, sizeof(*cpus));
        if (!cpus)
                return exhaust(r, -ENOMEM);
        for (const struct json *v = json_first(list); v; v = json_next(v)) {
                int64_t cpu;
                if (json_as_i64(v, &cpu) < 0 || cpu < 0 || cpu >= (int64_t) SPEC_CPUS_MAX) {
                        free(cpus);
                        return fault(r, "member \"%s\" has an entry that is no CPU", key);
                }
                cpus[i++] = (int32_t) cpu;
        }
        *ret = cpus;
        *ret_n = n;
}

static void take_node_set(struct reader *r, const char *key, struct node_set *ret) {
        const struct json *list = take_typed(r, key, JSON_ARRAY, "a list");
        for (const struct json *v = list ? json_first(list) : NULL; v; v = json_next(v)) {
                int64_t node;
                if (json_as_i64(v, &node) < 0 || node < 0 || node >= (int64_t) SPEC_NODES_MAX ||
                    node_set_has(ret, (unsigned) node))
                        return fault(r, "member \"%s\" has an entry that is no node, or has it twice", key);
                node_set_add(ret, (unsigned) node);
        }
}

static void take_policy(struct reader *r, const char *key, enum memory_policy *ret) {
        const char *word = take_string(r, key);
        if (r->error == 0 && memory_policy_from_name(word, ret) < 0)
                fault(r, "\"%s\" is no memory policy", key);
}

static void take_options(struct reader *r, struct transport_options *ret) {
        const struct json *v = take_typed(r, "options", JSON_OBJECT, "an object");
        struct refusal why = {.status = 0};
        if (v && values_read(&option_values, v, "/options", ret, &why) < 0)
                fault(r, "%.60s: %.120s", why.pointer, why.detail);
}

static void take_placement(struct reader *r, struct agent_placement *p) {
        struct reader inner = begin_object(r, "placement");
        take_cpus(&inner, "cpus", &p->cpus, &p->n_cpus);
        p->roam = take_bool(&inner, "roam");
        take_cpus(&inner, "leader_cpus", &p->leader_cpus, &p->n_leader_cpus);
        take_policy(&inner, "memory", &p->memory);
        take_node_set(&inner, "memory_nodes", &p->memory_nodes);
        take_policy(&inner, "buffer", &p->buffer);
        take_node_set(&inner, "buffer_nodes", &p->buffer_nodes);
        end_object(r, &inner, "placement");
}

static void take_setup(struct reader *r, struct message_setup *s) {
        const char *end = take_string(r, "end");
        s->end = strcmp(end, "first") == 0 ? END_FIRST : END_SECOND;
        if (s->end == END_SECOND && strcmp(end, "second") != 0)
                fault(r, "\"end\" is neither first nor second");
        const struct json *point = take(r, "point");
        if (point && point_take(point, false, &s->point) < 0)
                fault(r, "\"point\" is not a point without its placement");
        const char *verify = take_string(r, "verify");
        if (r->error == 0 && verify_from_name(verify, &s->verify) < 0)
                fault(r, "\"verify\" is none of none, touch, checksum");
        s->duration_ns = take_u64(r, "duration_ns");
        s->messages = take_u64(r, "messages");
        if (r->error == 0 && (s->duration_ns == 0) == (s->messages == 0))
                fault(r, "exactly one of duration_ns and messages ends the window");
        s->messages_over = take_u64(r, "messages_over");
        if (r->error == 0 && s->messages_over && (s->messages == 0 || s->messages_over >= s->point.threads))
                fault(r, "\"messages_over\" is not of some of the threads");
        s->warmup_ns = take_u64(r, "warmup_ns");
        s->interval_ns = take_u64(r, "interval_ns");
        s->stall_ns = take_u64(r, "stall_ns");
        const struct json *rate = take(r, "rate");
        if (rate && (json_as_double(rate, &s->rate) < 0 || s->rate < 0))
                fault(r, "\"rate\" is not a number from 0 on");
        s->chunk_bytes = take_u64(r, "chunk_bytes");
        take_options(r, &s->options);
        take_placement(r, &s->placement);
}

static void take_counting(struct reader *r, struct message_counting *c) {
        const struct json *list = take_typed(r, "errors", JSON_ARRAY, "a list"), *v;
        if (list && json_length(list) != PERF_HANDLES_MAX)
                fault(r, "member \"errors\" has %zu entries, %zu are due", json_length(list), PERF_HANDLES_MAX);
        if (!list || r->error < 0)
                return;
        v = json_first(list);
        for (size_t event = 0; event < PERF_EVENT_COUNT; event++)
                for (size_t mode = 0; mode < PERF_MODE_COUNT; mode++, v = json_next(v)) {
                        int64_t error;
                        if (json_as_i64(v, &error) < 0 || error < 0 || error > ERRNO_MAX)
                                return fault(r, "member \"errors\" has an entry that is not 0 … %d", ERRNO_MAX);
                        c->errors[event][mode] = (int) error;
                }
}

static void take_latency(struct reader *r, struct histogram **ret) {
        const struct json *v = json_get(r->object, "latency");
        if (v && json_type(v) == JSON_NULL) {
                r->taken++;
                return;
        }
        _cleanup_free_ uint8_t *data = NULL;
        size_t length = 0;
        struct reader inner = begin_object(r, "latency");
        const char *text = take_string(&inner, "v2");
        uint64_t sum = take_u64(&inner, "sum_ns");
        end_object(r, &inner, "latency");
        if (r->error < 0)
                return;

        struct histogram *h = calloc(1, sizeof(*h));
        int x = h ? base64_decode(text, &data, &length) : -ENOMEM;
        if (x == 0)
                x = histogram_decode(data, length, h);
        if (x < 0) {
                free(h);
                return x == -ENOMEM ? exhaust(r, x) : fault(r, "\"v2\" is not a histogram of this layout");
        }
        h->sum_ns = sum;
        *ret = h;
}

static void take_sample(struct reader *r, struct message_sample *s) {
        s->thread = (uint32_t) take_integer(r, "thread", 0, SPEC_THREADS_MAX - 1);
        s->second = (uint32_t) take_integer(r, "second", 0, UINT32_MAX);
        s->interval_ns = take_u64(r, "interval_ns");
        s->messages = take_u64(r, "messages");
        s->bytes = take_u64(r, "bytes");
        s->counters = take_object_text(r, "counters", true);
        take_latency(r, &s->latency);
}

static void take_alive(struct reader *r, struct message_alive *a) {
        static const char *const phases[] = {"warmup", "window", "draining"};
        const char *phase = take_string(r, "phase");
        for (size_t i = 0; i < ELEMENTS(phases); i++)
                if (strcmp(phases[i], phase) == 0) {
                        snprintf(a->phase, sizeof(a->phase), "%s", phases[i]);
                        return;
                }
        fault(r, "\"phase\" is none of warmup, window, draining");
}

static void take_fault(struct reader *r, enum fault *ret) {
        const char *whose = take_string(r, "fault");
        for (size_t i = 0; i < ELEMENTS(fault_names); i++)
                if (strcmp(fault_names[i], whose) == 0) {
                        *ret = (enum fault) i;
                        return;
                }
        fault(r, "\"fault\" is neither own nor peer");
}

static void take_error(struct reader *r, struct message_error *e) {
        take_fault(r, &e->fault);
        e->error = (int) take_integer(r, "error", 0, ERRNO_MAX);
        const char *detail = take_string(r, "detail");
        if (strlen(detail) >= sizeof(e->detail))
                return fault(r, "\"detail\" is longer than %zu bytes", sizeof(e->detail) - 1);
        snprintf(e->detail, sizeof(e->detail), "%s", detail);
}

static void take_body(struct reader *r, struct message *m) {
        switch (m->type) {
        case MESSAGE_HELLO:
                m->hello.pid = take_integer(r, "pid", 1, INT32_MAX);
                return;
        case MESSAGE_SETUP:
                return take_setup(r, &m->setup);
        case MESSAGE_COUNT:
                m->count.tid = (int32_t) take_integer(r, "tid", 1, INT32_MAX);
                return;
        case MESSAGE_COUNTING:
                return take_counting(r, &m->counting);
        case MESSAGE_READY:
                m->ready.proof = take_object_text(r, "proof", false);
                m->ready.effective = take_object_text(r, "effective", false);
                return;
        case MESSAGE_START:
                m->start.start_ns = take_u64(r, "start_ns");
                return;
        case MESSAGE_ALIVE:
                return take_alive(r, &m->alive);
        case MESSAGE_SAMPLE:
                return take_sample(r, &m->sample);
        case MESSAGE_THREAD:
                m->thread.thread = (uint32_t) take_integer(r, "thread", 0, SPEC_THREADS_MAX - 1);
                m->thread.messages = take_u64(r, "messages");
                m->thread.bytes = take_u64(r, "bytes");
                m->thread.counters = take_object_text(r, "counters", false);
                return;
        case MESSAGE_REPORT:
                m->report.window_ns = take_u64(r, "window_ns");
                m->report.messages = take_u64(r, "messages");
                m->report.bytes = take_u64(r, "bytes");
                m->report.proof = take_object_text(r, "proof", false);
                m->report.effective = take_object_text(r, "effective", false);
                m->report.counters = take_object_text(r, "counters", false);
                return;
        case MESSAGE_ERROR:
                return take_error(r, &m->error);
        }
}

static void take_head(struct reader *r, struct message *m) {
        int64_t version = take_integer(r, "v", 0, INT32_MAX);
        if (r->error == 0 && version != PROTOCOL_VERSION)
                fault(r, "protocol version %" PRId64 ", this side speaks %d", version, PROTOCOL_VERSION);
        const char *type = take_string(r, "type");
        for (size_t i = 0; i < ELEMENTS(type_names); i++)
                if (strcmp(type_names[i], type) == 0) {
                        m->type = (enum message_type) i;
                        return;
                }
        fault(r, "unknown message type");
}

int message_decode(const char *text, size_t length, struct message *ret, char *ret_detail) {
        char detail[DETAIL_MAX] = "";
        struct json *root = NULL;
        struct json_error e = {.pointer = ""};
        struct message m;

        memset(&m, 0, sizeof(m));
        struct reader outer = {.detail = detail};
        int r = length > PROTOCOL_PACKET_MAX ? -EINVAL : json_parse(text, length, &root, &e);
        if (r == -EINVAL)
                fault(&outer, "not JSON: %.150s", length > PROTOCOL_PACKET_MAX ? "the packet is too long" : e.detail);
        else if (r < 0)
                exhaust(&outer, r);
        else if (json_type(root) != JSON_OBJECT)
                fault(&outer, "a message is an object");
        else {
                outer.object = root;
                take_head(&outer, &m);
                if (outer.error == 0) {
                        take_body(&outer, &m);
                        end_object(&outer, &outer, message_type_name(m.type));
                }
        }
        json_free(root);
        if (outer.error < 0) {
                message_deinit(&m);
                if (ret_detail)
                        memcpy(ret_detail, detail, DETAIL_MAX);
                return outer.error;
        }
        *ret = m;
        return 0;
}

void message_deinit(struct message *m) {
        switch (m->type) {
        case MESSAGE_SETUP:
                free(m->setup.placement.cpus);
                free(m->setup.placement.leader_cpus);
                break;
        case MESSAGE_READY:
                free(m->ready.proof);
                free(m->ready.effective);
                break;
        case MESSAGE_SAMPLE:
                free(m->sample.latency);
                free(m->sample.counters);
                break;
        case MESSAGE_THREAD:
                free(m->thread.counters);
                break;
        case MESSAGE_REPORT:
                free(m->report.proof);
                free(m->report.effective);
                free(m->report.counters);
                break;
        case MESSAGE_HELLO:
        case MESSAGE_COUNT:
        case MESSAGE_COUNTING:
        case MESSAGE_START:
        case MESSAGE_ALIVE:
        case MESSAGE_ERROR:
                break;
        }
        memset(m, 0, sizeof(*m));
}
