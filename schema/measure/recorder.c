/* SPDX-License-Identifier: MIT */

#include "schema/measure/recorder.h"

/* Reads again as long as a turn begins or ends meanwhile, which a writer that stands still does not do: the next value
 * of a bucket comes much later than three loads take. */
static void add_bucket(const struct recorder_bucket *b, uint64_t *ret_count, uint64_t *sum_ns) {
        uint64_t turns, now = __atomic_load_n(&b->turns, __ATOMIC_ACQUIRE), read_ns;
        do {
                turns = now;
                read_ns = __atomic_load_n(turns % 2 ? &b->before_ns : &b->sum_ns, __ATOMIC_ACQUIRE);
                now = __atomic_load_n(&b->turns, __ATOMIC_ACQUIRE);
        } while (now != turns);
        *ret_count = turns / 2;
        *sum_ns += read_ns;
}

void recorder_copy(const struct recorder *r, struct histogram *ret) {
        ret->sum_ns = 0;
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                add_bucket(&r->buckets[i], &ret->counts[i], &ret->sum_ns);
}
