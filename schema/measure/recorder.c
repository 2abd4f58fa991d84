/* SPDX-License-Identifier: MIT */

/* See recorder.h. */

#include "schema/measure/recorder.h"

/* A try takes nanoseconds, and the next value of a bucket comes later than that, unless the writer stands still. */
#define TRIES 16

static void add_bucket(const struct recorder_bucket *b, uint64_t *ret_count, uint64_t *sum_ns) {
        uint64_t turns = __atomic_load_n(&b->turns, __ATOMIC_ACQUIRE), read_ns = 0;
        for (unsigned i = 0; turns && i < TRIES; i++) {
                uint64_t before = turns;
                read_ns = __atomic_load_n(&b->sum_ns, __ATOMIC_ACQUIRE);
                turns = __atomic_load_n(&b->turns, __ATOMIC_ACQUIRE);
                if (turns == before && turns % 2 == 0)
                        break;
        }
        *ret_count = turns / 2;
        *sum_ns += read_ns;
}

void recorder_copy(const struct recorder *r, struct histogram *ret) {
        ret->sum_ns = 0;
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                add_bucket(&r->buckets[i], &ret->counts[i], &ret->sum_ns);
}
