/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The histogram that a measured loop writes: one writer, any number of readers, no lock. Each bucket has its own sum
 * beside its count, and while a value is recorded the sum without it stands there, too: a copy's sum is exactly that of
 * the values it counts, however many are recorded meanwhile and wherever the writer is stopped. See histogram.h for the
 * layout.
 */

#include "schema/measure/histogram.h"

struct recorder_bucket {
        uint64_t turns;     /* twice the values; odd while one is recorded */
        uint64_t sum_ns;    /* while it is even */
        uint64_t before_ns; /* while it is odd: the sum of turns / 2 values */
};

struct recorder {
        struct recorder_bucket buckets[HISTOGRAM_COUNTS];
};

/* Plain stores, no read-modify-write on the bus. A reader that sees one of a sum sees the turn before it, too, and so
 * does not take that sum for an older one. Hot: inline. */
static inline void recorder_record(struct recorder *r, uint64_t ns) {
        struct recorder_bucket *b = &r->buckets[histogram_index(ns)];
        uint64_t turns = __atomic_load_n(&b->turns, __ATOMIC_RELAXED);
        uint64_t sum_ns = __atomic_load_n(&b->sum_ns, __ATOMIC_RELAXED);
        __atomic_store_n(&b->before_ns, sum_ns, __ATOMIC_RELEASE);
        __atomic_store_n(&b->turns, turns + 1, __ATOMIC_RELEASE);
        __atomic_store_n(&b->sum_ns, sum_ns + ns, __ATOMIC_RELEASE);
        __atomic_store_n(&b->turns, turns + 2, __ATOMIC_RELEASE);
}

/* Writes all of *ret; sum_ns modulo 2^64. */
void recorder_copy(const struct recorder *r, struct histogram *ret);
