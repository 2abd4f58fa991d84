/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_TEST_RECORDED_H
#define IPCLAB_TEST_RECORDED_H

/* A value more in a histogram that nobody else reads or writes. */

#include "schema/measure/histogram.h"

static inline void histogram_record(struct histogram *h, uint64_t ns) {
        h->counts[histogram_index(ns)]++;
        h->sum_ns += ns;
}

#endif
