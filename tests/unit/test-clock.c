/* SPDX-License-Identifier: MIT */

/* The quantum of clocks whose steps are known, each reading of which takes about so long; and this machine's clock. */

#include "agent/measure/clock.h"

#include "check.h"
#include "schema/util.h"

#include <math.h>

/* Readings of a clock that advances in steps, rounded down to whole nanoseconds, between which `reading` passes, and of
 * every 16th twice as much. */
static uint64_t quantum_of(double step, double reading, unsigned n) {
        struct clock_steps s = {0};
        double at = 1e6;
        uint64_t last = 0;
        for (unsigned i = 0; i < n; i++) {
                uint64_t now = (uint64_t) (floor(at / step) * step);
                if (i > 0)
                        clock_steps_add(&s, now - last);
                last = now;
                at += reading * (1 + (i % 16 == 15) + 0.01 * (i % 7));
        }
        return clock_steps_quantum(&s);
}

static void quanta(void) {
        static const struct {
                double step, reading;
                uint64_t least, most;
        } rows[] = {
                {10, 25, 9, 11},          /* 100 MHz: the smallest difference is 20 */
                {10, 3, 9, 11},           /* and so is one that most readings do not see advance */
                {125.0 / 3, 25, 40, 43},  /* 24 MHz */
                {125.0 / 3, 130, 40, 43}, /* which takes longer to read than it takes to advance */
                {100, 30, 99, 101},       {1e6, 30, 1000000, 1000000}, /* of the timer's tick */
                {1.0 / 3, 21.7, 1, 1},                                 /* 3 GHz */
                {1, 40.3, 1, 1},
        };
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                uint64_t got = quantum_of(rows[i].step, rows[i].reading, 200000);
                if (got < rows[i].least || got > rows[i].most)
                        CHECK_FAIL("a step of %g ns, readings of %g: %" PRIu64, rows[i].step, rows[i].reading, got);
        }
}

static void few_differences(void) {
        struct clock_steps s = {0};
        CHECK_UINT(clock_steps_quantum(&s), 0);
        clock_steps_add(&s, 0);
        CHECK_UINT(clock_steps_quantum(&s), 0);
        clock_steps_add(&s, CLOCK_DIFFERENCES + 7);
        CHECK_UINT(clock_steps_quantum(&s), CLOCK_DIFFERENCES + 7);
        clock_steps_add(&s, CLOCK_DIFFERENCES - 1);
        CHECK_UINT(clock_steps_quantum(&s), CLOCK_DIFFERENCES - 1);
        clock_steps_add(&s, 30);
        CHECK_UINT(clock_steps_quantum(&s), 30);
        clock_steps_add(&s, 40);
        CHECK_UINT(clock_steps_quantum(&s), 10);
}

/* The quantum divides what the clock shows, but for the rounding: here within what consecutive readings differ by. */
static void of_this_machine(void) {
        struct clock_facts facts = clock_measure();
        uint64_t smallest = UINT64_MAX, last = util_now_ns();
        for (unsigned i = 0; i < 100000; i++) {
                uint64_t now = util_now_ns();
                if (now != last && now - last < smallest)
                        smallest = now - last;
                last = now;
        }
        CHECK(facts.cost_ns > 0 && facts.cost_ns < NSEC_PER_MSEC);
        CHECK(facts.quantum_ns > 0 && facts.quantum_ns <= smallest);
}

int main(void) {
        RUN(quanta);
        RUN(few_differences);
        RUN(of_this_machine);
        return check_end();
}
