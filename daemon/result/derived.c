/* SPDX-License-Identifier: MIT */

/* Quotients of an agent's own counters and what it carried, each null for a reason of its own. Called by result.c. */

#include "daemon/result/derived.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

static const struct {
        const char *name;
        const char *counter;
        bool per_byte;
        double scale;
} terms[DERIVED_COUNT] = {
        [DERIVED_CPU_NS_PER_MESSAGE] = {"cpu_ns_per_message", "task_clock_ns", false, 1},
        [DERIVED_CPU_NS_PER_GIGABYTE] = {"cpu_ns_per_gigabyte", "task_clock_ns", true, 1e9},
        [DERIVED_CYCLES_PER_BYTE] = {"cycles_per_byte", "cycles", true, 1},
};

static void set_unknown(struct derived_figure *f, const char *reason) {
        *f = (struct derived_figure){.known = false};
        (void) snprintf(f->reason, sizeof(f->reason), "%s", reason);
}

/* Why a counter is null: "reasons" has it by name, or once for all that the hardware would count. */
static const char *reason_of(const struct json *counters, const char *counter) {
        const struct json *reasons = json_get(counters, "reasons");
        if (!reasons || json_type(reasons) != JSON_OBJECT)
                return "the agent did not count it";
        const struct json *reason = json_get(reasons, counter);
        const char *text;
        if (!reason)
                reason = json_get(reasons, "hardware");
        return reason && json_as_string(reason, &text) == 0 ? text : "the agent did not count it";
}

/* What an end carried in its window, sent and received. */
struct load {
        double messages, bytes;
};

/* A round trip is one message here, as everywhere, and carries its bytes twice. Of two streams at once an end counts
 * what it received; what it sent, the other did: at that rate, as the windows may be of different lengths. */
static struct load load_of(const struct point *p, const struct message_report *m, const struct message_report *other) {
        struct load load = {.messages = (double) m->messages, .bytes = (double) m->bytes};
        if (p->workload == WORKLOAD_PINGPONG)
                load.bytes *= 2;
        if (point_has_direction(p->workload, p->transport) && p->direction == DIRECTION_BOTH && other->window_ns) {
                double windows = (double) m->window_ns / (double) other->window_ns;
                load.messages += (double) other->messages * windows;
                load.bytes += (double) other->bytes * windows;
        }
        return load;
}

static void derive(size_t i, const struct json *counters, const struct load *load, struct derived_figure *ret) {
        double divisor = terms[i].per_byte ? load->bytes : load->messages;
        const struct json *counter = json_get(counters, terms[i].counter);
        double count;
        if (divisor <= 0)
                set_unknown(ret, terms[i].per_byte ? "this workload moves no data" : "there was no message");
        else if (!counter || json_as_double(counter, &count) < 0)
                set_unknown(ret, reason_of(counters, terms[i].counter));
        else
                *ret = (struct derived_figure){.known = true, .value = count * terms[i].scale / divisor};
}

int result_derive(const struct point *p, const struct message_report *m, const struct message_report *other,
                  struct result_derived *ret) {
        struct json *counters;
        if (p->workload == WORKLOAD_CONTEXT_SWITCH) {
                for (size_t i = 0; i < DERIVED_COUNT; i++)
                        set_unknown(&ret->figures[i],
                                    "a round passes through several processes, of which one is counted");
                return 0;
        }
        int r = json_parse(m->counters, strlen(m->counters), &counters, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        const struct load load = load_of(p, m, other);
        if (json_type(counters) == JSON_OBJECT)
                for (size_t i = 0; i < DERIVED_COUNT; i++)
                        derive(i, counters, &load, &ret->figures[i]);
        else
                r = -EBADMSG;
        json_free(counters);
        return r;
}

void result_derived_add(struct result_derived *into, const struct result_derived *other) {
        for (size_t i = 0; i < DERIVED_COUNT; i++) {
                struct derived_figure *a = &into->figures[i];
                const struct derived_figure *b = &other->figures[i];
                if (a->known && b->known)
                        a->value += b->value;
                else if (a->known)
                        *a = *b;
        }
}

void result_derived_to_json(const struct result_derived *d, struct json_writer *w) {
        for (size_t i = 0; i < DERIVED_COUNT; i++) {
                const struct derived_figure *f = &d->figures[i];
                char name[64];
                if (f->known) {
                        json_member_double(w, terms[i].name, f->value);
                        continue;
                }
                (void) snprintf(name, sizeof(name), "%s_reason", terms[i].name);
                json_member_null(w, terms[i].name);
                json_member_string(w, name, f->reason);
        }
}
