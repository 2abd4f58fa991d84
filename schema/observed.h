/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * When the lack of a flag means that nothing was there: the machine beside a run is observed by readings about a second
 * apart, and a time in which a reading is missing, or came late, was not observed. The daemon judges a run's window by
 * it (daemon/host/disturbance/disturbance.h has the reasons), the API each sample.
 */

#include "schema/util.h"

#include <stdbool.h>
#include <stdint.h>

/* What is left over of a window is a second of its own from here on; less is too short for counts in steps of 10 ms. */
#define OBSERVED_REST_NS (NSEC_PER_SEC / 2)
/* The part of a time that may lie in no second; how late a timer may be, which is more than that part of a short time;
 * and the longest second of the plan with an end as late. */
#define OBSERVED_MISSING_PART 20u
#define OBSERVED_LATE_NS (NSEC_PER_SEC / 10)
#define OBSERVED_LONG_NS (NSEC_PER_SEC + OBSERVED_REST_NS + OBSERVED_LATE_NS)

/* Whether so much of a time may lie in no second. */
static inline bool observed_without(uint64_t length_ns, uint64_t missing_ns) {
        uint64_t most_ns = length_ns / OBSERVED_MISSING_PART;
        return missing_ns <= (most_ns > OBSERVED_LATE_NS ? most_ns : OBSERVED_LATE_NS);
}
