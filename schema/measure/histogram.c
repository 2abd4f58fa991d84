/* SPDX-License-Identifier: MIT */

/*
 * What is done with histograms outside the measured loop: sums, differences, percentiles. The layout is in the header;
 * the encodings are in histogram-codec.c. Called by the agent's leader and the daemon.
 */

#include "schema/measure/histogram.h"

#include <errno.h>
#include <math.h>

uint64_t histogram_bucket_lowest(uint32_t index) {
        if (index < HISTOGRAM_SUB_BUCKETS)
                return index;
        uint32_t bucket = (index >> HISTOGRAM_HALF_MAGNITUDE) - 1;
        uint64_t sub = (index & (HISTOGRAM_HALF - 1)) + HISTOGRAM_HALF;
        return sub << bucket;
}

uint64_t histogram_bucket_highest(uint32_t index) {
        return histogram_bucket_lowest(index + 1) - 1;
}

uint64_t histogram_bucket_middle(uint32_t index) {
        uint64_t lowest = histogram_bucket_lowest(index);
        return lowest + (histogram_bucket_lowest(index + 1) - lowest) / 2;
}

void histogram_add(struct histogram *into, const struct histogram *h) {
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                into->counts[i] += h->counts[i];
        if (__builtin_add_overflow(into->sum_ns, h->sum_ns, &into->sum_ns))
                into->sum_ns = HISTOGRAM_SUM_MAX;
}

void histogram_subtract(struct histogram *dst, const struct histogram *later, const struct histogram *earlier) {
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                dst->counts[i] = later->counts[i] - earlier->counts[i];
        dst->sum_ns = later->sum_ns - earlier->sum_ns;
}

uint64_t histogram_total(const struct histogram *h) {
        uint64_t total = 0;
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                total += h->counts[i];
        return total;
}

static uint64_t value_at(const struct histogram *h, uint64_t total, double q) {
        /* The nearest rank. One step down first: 0.9 as a double is above 9/10, and 0.9 of 10 values is the ninth. */
        double wanted = ceil(nextafter(q, 0) * (double) total);
        uint64_t rank = wanted < 1 ? 1 : wanted >= (double) total ? total : (uint64_t) wanted, seen = 0;

        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++) {
                seen += h->counts[i];
                if (seen >= rank)
                        return histogram_bucket_middle(i);
        }
        return 0;
}

bool histogram_is_at_limit(const struct histogram *h) {
        for (uint32_t i = histogram_index(HISTOGRAM_HIGHEST_NS); i < HISTOGRAM_COUNTS; i++)
                if (h->counts[i] > 0)
                        return true;
        return false;
}

uint64_t histogram_quantile(const struct histogram *h, double q) {
        uint64_t total = histogram_total(h);
        return total == 0 ? 0 : value_at(h, total, q);
}

static double mean_of(const struct histogram *h, uint64_t total) {
        double sum_ns = (double) h->sum_ns;
        if (h->sum_ns == HISTOGRAM_SUM_MAX) {
                sum_ns = 0;
                for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++)
                        sum_ns += (double) h->counts[i] * (double) histogram_bucket_middle(i);
        }
        return sum_ns / (double) total;
}

int histogram_summarize(const struct histogram *h, struct latency_summary *ret) {
        uint32_t first = 0, last = HISTOGRAM_COUNTS;
        uint64_t total = histogram_total(h);

        if (total == 0)
                return -ENODATA;
        while (h->counts[first] == 0)
                first++;
        while (h->counts[last - 1] == 0)
                last--;
        *ret = (struct latency_summary){
                .count = total,
                .min = histogram_bucket_lowest(first),
                .p50 = value_at(h, total, 0.5),
                .p90 = value_at(h, total, 0.9),
                .p99 = value_at(h, total, 0.99),
                .p99_9 = value_at(h, total, 0.999),
                .max = histogram_bucket_highest(last - 1),
                .mean = mean_of(h, total),
        };
        return 0;
}

/* The least and the most that values with these counts add up to. */
static void sum_limits(const struct histogram *h, uint64_t *ret_least_ns, uint64_t *ret_most_ns) {
        unsigned __int128 least = 0, most = 0;
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS; i++) {
                least += (unsigned __int128) h->counts[i] * histogram_bucket_lowest(i);
                most += (unsigned __int128) h->counts[i] * histogram_bucket_highest(i);
        }
        *ret_least_ns = least < HISTOGRAM_SUM_MAX ? (uint64_t) least : HISTOGRAM_SUM_MAX;
        *ret_most_ns = most < HISTOGRAM_SUM_MAX && !histogram_is_at_limit(h) ? (uint64_t) most : HISTOGRAM_SUM_MAX;
}

bool histogram_may_sum(const struct histogram *h, uint64_t sum_ns) {
        uint64_t least_ns, most_ns;
        sum_limits(h, &least_ns, &most_ns);
        return least_ns <= sum_ns && sum_ns <= most_ns;
}
