/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_DAEMON_RESULT_DERIVED_H
#define IPCLAB_DAEMON_RESULT_DERIVED_H

/*
 * What a message and a byte cost in CPU time and cycles: an agent's counters divided by what the same agent sent or
 * received in the same window.
 */

#include "schema/protocol.h"

struct json_writer;

enum derived {
        DERIVED_CPU_NS_PER_MESSAGE,
        DERIVED_CPU_NS_PER_GIGABYTE, /* of 10^9 bytes */
        DERIVED_CYCLES_PER_BYTE,
        DERIVED_COUNT,
};

struct derived_figure {
        bool known;
        double value, count, divisor; /* value = count / divisor, or a sum of such */
        char reason[256];             /* a sentence when not known */
};

struct result_derived {
        struct derived_figure figures[DERIVED_COUNT];
};

/* From one agent's report. 0; -EBADMSG when its counters are no JSON object; -ENOMEM. */
int result_derive(const struct point *p, const struct message_report *m, struct result_derived *ret);
/* Both agents together, unknown when either is: what the two spent on a message that one sent and the other received;
 * or, when each received messages of its own, on one of all these. */
void result_derived_add(struct result_derived *into, const struct result_derived *other, bool both_receive);
/* Members of an object under construction: "cpu_ns_per_message", "cpu_ns_per_gigabyte", "cycles_per_byte"; null where
 * unknown, with NAME_reason beside. */
void result_derived_to_json(const struct result_derived *d, struct json_writer *w);

#endif
