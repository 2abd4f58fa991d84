/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_SCHEMA_RECORDER_H
#define IPCLAB_SCHEMA_RECORDER_H

/*
 * The histogram that a measured loop writes: one writer, any number of readers, no lock. Each bucket has its own sum
 * beside its count, so that a copy's sum is that of the values it counts, however many are recorded while it is taken:
 * a writer that is stopped between two stores makes it wrong by the one value that it records. See histogram.h for the
 * layout.
 */

#include "schema/measure/histogram.h"

struct recorder_bucket {
        uint64_t turns; /* twice the values; odd while one is recorded */
        uint64_t sum_ns;
};

struct recorder {
        struct recorder_bucket buckets[HISTOGRAM_COUNTS];
};

/* Three plain stores in one cache line, no read-modify-write on the bus. Hot: inline. */
static inline void recorder_record(struct recorder *r, uint64_t ns) {
        struct recorder_bucket *b = &r->buckets[histogram_index(ns)];
        uint64_t turns = __atomic_load_n(&b->turns, __ATOMIC_RELAXED);
        __atomic_store_n(&b->turns, turns + 1, __ATOMIC_RELAXED);
        __atomic_store_n(&b->sum_ns, __atomic_load_n(&b->sum_ns, __ATOMIC_RELAXED) + ns, __ATOMIC_RELEASE);
        __atomic_store_n(&b->turns, turns + 2, __ATOMIC_RELEASE);
}

/* Writes all of *ret. */
void recorder_copy(const struct recorder *r, struct histogram *ret);

#endif
