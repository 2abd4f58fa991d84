/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The cost of a message and of a byte in CPU time, cycles, cache misses and the like: an agent's counters divided by
 * the messages and bytes that the same agent sent and received in the same window. An agent that only sends or only
 * receives has one of the two. The bytes of a pingpong count both ways, as its CPU time is for both, and its messages
 * are round trips. With two streams at once the load of an end is what it received and what the other received from it.
 */

#include "schema/protocol/protocol.h"

struct json_writer;

enum derived {
        DERIVED_CPU_NS_PER_MESSAGE,
        DERIVED_CPU_NS_PER_GIGABYTE, /* of 10^9 bytes */
        DERIVED_CYCLES_PER_BYTE,
        DERIVED_CYCLES, /* from here on per message */
        DERIVED_INSTRUCTIONS,
        DERIVED_L1D_READ_MISSES,
        DERIVED_LLC_MISSES,
        DERIVED_DTLB_MISSES,
        DERIVED_BRANCH_MISSES,
        DERIVED_CONTEXT_SWITCHES,
        DERIVED_COUNT,
};

struct derived_figure {
        bool known;
        double value;
        char reason[256]; /* a sentence when not known */
};

struct result_derived {
        struct derived_figure figures[DERIVED_COUNT];
};

/* Derives them from one agent's report; `other` is its peer's, which is read with direction both only and may be NULL
 * where there is no peer. */
void result_derive(const struct point *p, const struct message_report *m, const struct message_report *other,
                   struct result_derived *ret);
/* Adds the other agent's, unknown when either is: the cost for both of a message, or a byte, that one sent and the
 * other received. */
void result_derived_add(struct result_derived *into, const struct result_derived *other);
/* Members of an object under construction: "cpu_ns_per_message", "cycles_per_byte", "llc_misses_per_message" and so on;
 * null where unknown, with NAME_reason beside. */
void result_derived_to_json(const struct result_derived *d, struct json_writer *w);
