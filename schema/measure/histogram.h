/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Latency histogram: log-linear, HdrHistogram's layout with lowest value 1 ns, highest 100 s and two significant
 * digits (256 sub-buckets, 128 per further octave), so a value is known to 1/128 (0.79 %) at worst. The agent's worker
 * records (recorder.h), its leader takes copies and subtracts the one before. It stands in schema/ because agent and
 * daemon must agree on it bit by bit.
 *
 * Source: HdrHistogram's documented bucket layout and V2 encoding (ZigZag LEB128 counts, negative = run of zeros).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_writer;

#define HISTOGRAM_LOWEST_NS UINT64_C(1)
#define HISTOGRAM_HIGHEST_NS UINT64_C(100000000000)
#define HISTOGRAM_DIGITS 2
#define HISTOGRAM_SUB_BUCKETS 256u
#define HISTOGRAM_HALF 128u
#define HISTOGRAM_HALF_MAGNITUDE 7u
#define HISTOGRAM_BUCKETS 30u /* 256 << 29 > 1e11 */
#define HISTOGRAM_COUNTS ((HISTOGRAM_BUCKETS + 1u) * HISTOGRAM_HALF)
#define HISTOGRAM_SUM_MAX UINT64_MAX /* an overloaded open loop is there in minutes: each message waits longer */

struct histogram {
        uint64_t counts[HISTOGRAM_COUNTS];
        uint64_t sum_ns; /* exact, for the mean; HISTOGRAM_SUM_MAX: as much or more */
};

/* Bucket of a value; values above the highest go to the highest's bucket, and histogram_is_at_limit() reports them.
 * Hot: inline. */
static inline uint32_t histogram_index(uint64_t ns) {
        if (ns > HISTOGRAM_HIGHEST_NS)
                ns = HISTOGRAM_HIGHEST_NS;
        /* magnitude above the linear part; `| 255` keeps small values in bucket 0 */
        uint32_t bucket = 56u - (uint32_t) __builtin_clzll(ns | (HISTOGRAM_SUB_BUCKETS - 1));
        uint32_t sub = (uint32_t) (ns >> bucket);
        return (bucket << HISTOGRAM_HALF_MAGNITUDE) + sub;
}

uint64_t histogram_bucket_lowest(uint32_t index);  /* lowest value of a bucket */
uint64_t histogram_bucket_highest(uint32_t index); /* highest value of a bucket */
uint64_t histogram_bucket_middle(uint32_t index);

void histogram_add(struct histogram *into, const struct histogram *h);
/* dst = later - earlier; both are copies of the same recorder. */
void histogram_subtract(struct histogram *dst, const struct histogram *later, const struct histogram *earlier);
uint64_t histogram_total(const struct histogram *h);
/* Whether it has values in the bucket of the highest (from 99.86 s on), where all that is above it went, too: the
 * percentiles and the maximum that lie there are too small, by how much is not known. The sum is exact all the same. */
bool histogram_is_at_limit(const struct histogram *h);

struct latency_summary {
        uint64_t count, min, p50, p90, p99, p99_9, max; /* ns; percentiles are bucket middles */
        double mean;                                    /* ns, of the sum; at its limit, of the middles */
};
/* Returns 0, or -ENODATA for an empty histogram. */
int histogram_summarize(const struct histogram *h, struct latency_summary *ret);
/* The members of its object; divisor 2: half of each time. */
void latency_summary_put(struct json_writer *w, const struct latency_summary *s, const char *kind, uint64_t divisor);
/* Value at quantile 0 … 1 (nearest rank); 0 for an empty histogram. */
uint64_t histogram_quantile(const struct histogram *h, double q);

/* HdrHistogram V2 encoding, uncompressed (cookie 0x1c849303 | 0x10). malloc()ed; -ENOMEM. The exact sum does not
 * travel in it: carry sum_ns beside it. */
int histogram_encode(const struct histogram *h, uint8_t **ret, size_t *ret_length);
/* Accepts only this layout (2 digits, 1 ns … 100 s) and counts whose total and sum fit in 64 bits; -EBADMSG on
 * anything else; -ENOMEM. sum_ns is estimated from the bucket middles. */
int histogram_decode(const uint8_t *data, size_t length, struct histogram *ret);
/* The log format's form: V2 compressed (zlib) and base64, as HdrHistogram's tools read it. NUL-terminated. */
int histogram_export(const struct histogram *h, char **ret);
/* The inverse, of any text: -EBADMSG where it is not what histogram_export() makes of this layout; -ENOMEM. sum_ns is
 * estimated from the bucket middles. */
int histogram_import(const char *text, struct histogram *ret);
/* Whether values with these counts may have that sum: each is in its bucket, or above the highest. */
bool histogram_may_sum(const struct histogram *h, uint64_t sum_ns);
