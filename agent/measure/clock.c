/* SPDX-License-Identifier: MIT */

#include "agent/measure/clock.h"

#include "schema/util.h"

#include <stdbool.h>

#define COST_TRIALS 500u
#define COST_READS 8u
#define QUANTUM_READS 20000u
#define QUANTUM_ADVANCES 16u
#define QUANTUM_NS (50 * NSEC_PER_MSEC)
#define ROUNDING_NS 2u /* two differences of the same steps are at most so far apart */

/* The shortest of many, which no interruption delayed. At least 1, as 0 stands for "not measured". */
static uint64_t measure_cost(void) {
        uint64_t best = UINT64_MAX;
        for (unsigned i = 0; i < COST_TRIALS; i++) {
                uint64_t begin = util_now_ns();
                for (unsigned k = 1; k < COST_READS; k++)
                        (void) util_now_ns();
                uint64_t end = util_now_ns(); /* from the first's end to here: COST_READS of them */
                if (end - begin < best)
                        best = end - begin;
        }
        best = (best + COST_READS / 2) / COST_READS;
        return best ? best : 1;
}

void clock_steps_add(struct clock_steps *s, uint64_t difference_ns) {
        if (difference_ns < CLOCK_DIFFERENCES)
                s->seen[difference_ns / 64] |= UINT64_C(1) << difference_ns % 64;
        if (difference_ns == 0)
                return;
        s->advances++;
        if (s->smallest_ns == 0 || difference_ns < s->smallest_ns)
                s->smallest_ns = difference_ns;
}

uint64_t clock_steps_quantum(const struct clock_steps *s) {
        uint64_t best = s->smallest_ns, first = 0, last = 0, middle = 0; /* doubled: middle */
        bool any = false, had = false;
        for (uint64_t d = 0; d <= CLOCK_DIFFERENCES + ROUNDING_NS; d++) {
                bool seen = d < CLOCK_DIFFERENCES && s->seen[d / 64] >> d % 64 & 1;
                if (seen) {
                        if (!any)
                                first = d;
                        last = d;
                        any = true;
                        if (last - first > ROUNDING_NS)
                                return 1;
                } else if (any && d > last + ROUNDING_NS) { /* the differences from first to last are one, rounded */
                        uint64_t apart = (first + last - middle + 1) / 2;
                        if (had && apart < best)
                                best = apart;
                        middle = first + last;
                        had = true;
                        any = false;
                }
        }
        return best;
}

/* Enough readings for differences of several lengths, and of a coarse clock several steps. */
static uint64_t measure_quantum(void) {
        struct clock_steps s = {0};
        uint64_t begin_ns = util_now_ns(), last_ns = begin_ns;
        for (unsigned i = 0; i < QUANTUM_READS || s.advances < QUANTUM_ADVANCES; i++) {
                uint64_t now_ns = util_now_ns();
                clock_steps_add(&s, now_ns - last_ns);
                last_ns = now_ns;
                if (now_ns - begin_ns > QUANTUM_NS)
                        break;
        }
        return clock_steps_quantum(&s);
}

struct clock_facts clock_measure(void) {
        return (struct clock_facts){.cost_ns = measure_cost(), .quantum_ns = measure_quantum()};
}
