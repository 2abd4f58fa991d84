/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The facts of the clock by which messages are timed, measured on the calling thread's CPU in a millisecond or two.
 *
 * The quantum is the step in which the clock advances. Consecutive readings differ by whole steps: a counter of 100 MHz
 * that takes 25 ns to read gives differences of 20, 30 and 40 ns, the smallest of which is not the step. So the quantum
 * is the smallest distance between two of the differences, or the smallest difference itself, whichever is less.
 * Readings are rounded to whole nanoseconds, which shifts each difference by up to one: differences that close together
 * count as one, and a step too small to be distinguished from that is 1.
 */

#include "schema/protocol/protocol.h"

struct clock_facts clock_measure(void);

/* Differences of consecutive readings. */
#define CLOCK_DIFFERENCES 4096u /* the longer ones count only as the smallest */
struct clock_steps {
        uint64_t seen[CLOCK_DIFFERENCES / 64]; /* bits */
        uint64_t smallest_ns;                  /* but 0; 0: there was none */
        unsigned advances;                     /* differences other than 0 */
};

void clock_steps_add(struct clock_steps *s, uint64_t difference_ns);
/* 0: the clock has not advanced. */
uint64_t clock_steps_quantum(const struct clock_steps *s);
