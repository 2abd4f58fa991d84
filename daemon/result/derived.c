/* SPDX-License-Identifier: MIT */

/* Quotients of an agent's own counters and what it carried, each null for a reason of its own. Called by result.c. */

#include "daemon/result/derived.h"

#include "schema/json/json.h"
#include "schema/util.h"

#include <stdio.h>

enum count { COUNT_CPU_NS, COUNT_SWITCHES, COUNT_HARDWARE };

static const struct {
        const char *name;
        enum count count;
        enum perf_event event; /* of the hardware's */
        bool per_byte;         /* else per message */
        double scale;
} terms[DERIVED_COUNT] = {
        [DERIVED_CPU_NS_PER_MESSAGE] = {"cpu_ns_per_message", COUNT_CPU_NS, 0, false, 1},
        [DERIVED_CPU_NS_PER_GIGABYTE] = {"cpu_ns_per_gigabyte", COUNT_CPU_NS, 0, true, 1e9},
        [DERIVED_CYCLES_PER_BYTE] = {"cycles_per_byte", COUNT_HARDWARE, PERF_CYCLES, true, 1},
        [DERIVED_CYCLES] = {"cycles_per_message", COUNT_HARDWARE, PERF_CYCLES, false, 1},
        [DERIVED_INSTRUCTIONS] = {"instructions_per_message", COUNT_HARDWARE, PERF_INSTRUCTIONS, false, 1},
        [DERIVED_L1D_READ_MISSES] = {"l1d_read_misses_per_message", COUNT_HARDWARE, PERF_L1D_READ_MISSES, false, 1},
        [DERIVED_LLC_MISSES] = {"llc_misses_per_message", COUNT_HARDWARE, PERF_LLC_MISSES, false, 1},
        [DERIVED_DTLB_MISSES] = {"dtlb_misses_per_message", COUNT_HARDWARE, PERF_DTLB_MISSES, false, 1},
        [DERIVED_BRANCH_MISSES] = {"branch_misses_per_message", COUNT_HARDWARE, PERF_BRANCH_MISSES, false, 1},
        [DERIVED_CONTEXT_SWITCHES] = {"context_switches_per_message", COUNT_SWITCHES, 0, false, 1},
};

static void set_unknown(struct derived_figure *f, const char *reason) {
        *f = (struct derived_figure){.known = false};
        (void) snprintf(f->reason, sizeof(f->reason), "%s", reason);
}

/* The load of an end in its window, sent and received. */
struct load {
        double messages, bytes;
};

/* A round trip is one message here, as everywhere, and carries its bytes twice. With two streams at once an
 * end counts the bytes it received; the bytes it sent follow from the other end's rate, as the windows may differ. */
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

static void derive(size_t i, const struct counters_totals *counters, const struct load *load,
                   struct derived_figure *ret) {
        double divisor = terms[i].per_byte ? load->bytes : load->messages;
        const struct perf_count hardware = perf_totals_of(&counters->perf, terms[i].event);
        const struct usage *u = &counters->usage;
        double count = terms[i].count == COUNT_CPU_NS ? (double) u->cpu_ns
                       : terms[i].count == COUNT_SWITCHES
                               ? (double) u->voluntary_switches + (double) u->involuntary_switches
                               : (double) hardware.value;
        if (divisor <= 0)
                set_unknown(ret, terms[i].per_byte ? "this workload moves no data" : "there was no message");
        else if (terms[i].count == COUNT_HARDWARE && !hardware.known)
                set_unknown(ret, perf_reason(hardware.error));
        else
                *ret = (struct derived_figure){.known = true, .value = count * terms[i].scale / divisor};
}

void result_derive(const struct point *p, const struct message_report *m, const struct message_report *other,
                   struct result_derived *ret) {
        if (p->workload == WORKLOAD_CONTEXT_SWITCH) {
                for (size_t i = 0; i < DERIVED_COUNT; i++)
                        set_unknown(&ret->figures[i],
                                    "a round passes through several processes, of which one is counted");
                return;
        }
        const struct load load = load_of(p, m, other);
        for (size_t i = 0; i < DERIVED_COUNT; i++)
                derive(i, &m->counters, &load, &ret->figures[i]);
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
                if (f->known)
                        json_member_double(w, terms[i].name, f->value);
                else
                        json_member_unknown(w, terms[i].name, f->reason);
        }
}
