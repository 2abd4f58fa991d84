/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A hash that distinguishes texts and versions of a file, for keys of caches and for ETags. It is no protection:
 * two texts of one hash are easily found. Source: Fowler, Noll and Vo, FNV-1a of 64 bits.
 */

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN UINT64_C(14695981039346656037)

/* h: HASH_BEGIN, or the hash of what comes before. */
static inline uint64_t hash_more(uint64_t h, const void *data, size_t n) {
        const unsigned char *bytes = data;
        for (size_t i = 0; i < n; i++)
                h = (h ^ bytes[i]) * UINT64_C(1099511628211);
        return h;
}
