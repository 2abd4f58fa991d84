/* SPDX-License-Identifier: MIT */

/* The layout's error bound, percentiles by nearest rank, and the V2 encoding against vectors that the HdrHistogram
 * library for Python (hdrhistogram 0.10) wrote of the same values. */

#include "schema/measure/histogram.h"

#include "check.h"
#include "recorded.h"
#include "schema/json/base64.h"
#include "schema/measure/recorder.h"
#include "schema/util.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <zlib.h>

static struct histogram *empty(void) {
        struct histogram *h = calloc(1, sizeof(*h));
        if (!h)
                abort();
        return h;
}

static void buckets_cover_every_value(void) {
        /* contiguous, and no wider than 1/128 of their lowest value */
        for (uint32_t i = 0; i < HISTOGRAM_COUNTS - 1; i++) {
                uint64_t low = histogram_bucket_lowest(i), high = histogram_bucket_highest(i);
                CHECK(low <= histogram_bucket_middle(i) && histogram_bucket_middle(i) <= high);
                CHECK_UINT(histogram_bucket_lowest(i + 1), high + 1);
                CHECK((high - low) * 128 <= low);
                if (high <= HISTOGRAM_HIGHEST_NS) {
                        CHECK_UINT(histogram_index(low), i);
                        CHECK_UINT(histogram_index(high), i);
                }
        }
        CHECK(histogram_index(HISTOGRAM_HIGHEST_NS) < HISTOGRAM_COUNTS);
        CHECK_UINT(histogram_index(UINT64_MAX), histogram_index(HISTOGRAM_HIGHEST_NS));
        CHECK_UINT(histogram_index(0), 0);
        CHECK_UINT(histogram_index(255), 255);
        CHECK_UINT(histogram_index(256), 256);
        CHECK_UINT(histogram_index(257), 256);
}

/* What was longer than the highest value stands in its bucket: the histogram has to own up to it. */
static void the_limit_is_reported(void) {
        static const struct {
                uint64_t ns;
                bool at_limit;
        } rows[] = {
                {0, false},
                {NSEC_PER_SEC, false},
                {99 * NSEC_PER_SEC, false},
                {HISTOGRAM_HIGHEST_NS, true},
                {HISTOGRAM_HIGHEST_NS + 1, true},
                {300 * NSEC_PER_SEC, true},
                {UINT64_MAX, true},
        };
        struct histogram *h = empty();
        CHECK(!histogram_is_at_limit(h));
        free(h);
        for (size_t i = 0; i < ELEMENTS(rows); i++) {
                h = empty();
                histogram_record(h, 1000);
                histogram_record(h, rows[i].ns);
                if (histogram_is_at_limit(h) != rows[i].at_limit)
                        CHECK_FAIL("%llu ns", (unsigned long long) rows[i].ns);
                free(h);
        }
}

static void quantiles(void) {
        struct histogram *h = empty();
        struct latency_summary s;

        CHECK_INT(histogram_summarize(h, &s), -ENODATA);
        CHECK_UINT(histogram_quantile(h, 0.5), 0);
        for (uint64_t v = 1; v <= 10; v++)
                histogram_record(h, v);
        CHECK_UINT(histogram_quantile(h, 0), 1);
        CHECK_UINT(histogram_quantile(h, 0.1), 1);
        CHECK_UINT(histogram_quantile(h, 0.5), 5);
        CHECK_UINT(histogram_quantile(h, 0.51), 6);
        CHECK_UINT(histogram_quantile(h, 0.9), 9);
        CHECK_UINT(histogram_quantile(h, 0.91), 10);
        CHECK_UINT(histogram_quantile(h, 1), 10);
        CHECK_INT(histogram_summarize(h, &s), 0);
        CHECK_UINT(s.count, 10);
        CHECK_UINT(s.min, 1);
        CHECK_UINT(s.p50, 5);
        CHECK_UINT(s.p90, 9);
        CHECK_UINT(s.p99, 10);
        CHECK_UINT(s.max, 10);
        CHECK(s.mean == 5.5);
        free(h);
}

/* For any values: min <= p50 <= … <= max, the mean between them, each within 1 % of the truth. */
static void summary_is_ordered(void) {
        uint64_t x = 88172645463325252u;
        for (int round = 0; round < 200; round++) {
                struct histogram *h = empty();
                struct latency_summary s;
                uint64_t low = UINT64_MAX, high = 0;
                for (int i = 0; i < 100; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        uint64_t v = 1 + (x >> (28 + x % 35));
                        low = v < low ? v : low;
                        high = v > high ? v : high;
                        histogram_record(h, v);
                }
                CHECK_INT(histogram_summarize(h, &s), 0);
                free(h);
                CHECK(s.min <= s.p50 && s.p50 <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.p99_9 && s.p99_9 <= s.max);
                CHECK(s.mean >= (double) s.min && s.mean <= (double) s.max);
                CHECK(s.min <= low && (double) (low - s.min) <= 0.01 * (double) low);
                CHECK(s.max >= high && (double) (s.max - high) <= 0.01 * (double) high);
        }
}

static void adding_and_subtracting(void) {
        static struct recorder live;
        static struct histogram before, after, second, sum;

        recorder_record(&live, 100);
        recorder_record(&live, 5000);
        recorder_copy(&live, &before);
        recorder_record(&live, 5000);
        recorder_record(&live, 70000);
        recorder_copy(&live, &after);
        histogram_subtract(&second, &after, &before);
        CHECK_UINT(histogram_total(&second), 2);
        CHECK_UINT(second.sum_ns, 75000);
        CHECK_UINT(second.counts[histogram_index(100)], 0);
        CHECK_UINT(second.counts[histogram_index(5000)], 1);
        histogram_add(&sum, &before);
        histogram_add(&sum, &second);
        CHECK(memcmp(&sum, &after, sizeof(sum)) == 0);
}

/* A second of an open loop that was overloaded for minutes, many times. */
static void a_sum_beyond_64_bits_does_not_wrap(void) {
        static struct histogram second, all;
        struct latency_summary s;
        second.counts[histogram_index(90 * NSEC_PER_SEC)] = 150000000;
        second.sum_ns = UINT64_C(150000000) * 90 * NSEC_PER_SEC;
        CHECK(second.sum_ns > INT64_MAX);
        for (int i = 0; i < 3; i++) {
                histogram_add(&all, &second);
                CHECK_INT(histogram_summarize(&all, &s), 0);
                CHECK(fabs(s.mean / (90.0 * NSEC_PER_SEC) - 1) < 0.005);
        }
}

static void record_times(struct histogram *h, uint64_t value, unsigned times) {
        while (times--)
                histogram_record(h, value);
}

static struct histogram *example(void) {
        struct histogram *h = empty();
        record_times(h, 1, 1);
        record_times(h, 2, 3);
        record_times(h, 255, 2);
        record_times(h, 256, 1);
        record_times(h, 257, 1);
        record_times(h, 1000, 7);
        record_times(h, 1234567, 5);
        record_times(h, UINT64_C(99999999999), 1);
        record_times(h, UINT64_C(100000000000), 1);
        return h;
}

/* HdrHistogram(1, 100000000000, 2) with the values above: the payload inside its encode(). */
static const char library_v2[] = "HISTEwAAABAAAAAAAAAAAgAAAAAAAAABAAAAF0h26AA/8AAAAAAAAAECBvcDBATxAw61FArFIAQ=";
/* The same by us, and read back by that library as the same counts. One byte differs: it writes a lone zero as a run
 * of one, and we write it as a zero, as the format's description does. */
static const char example_v2[] = "HISTEwAAABAAAAAAAAAAAgAAAAAAAAABAAAAF0h26AA/8AAAAAAAAAACBvcDBATxAw61FArFIAQ=";

static void encoding(void) {
        struct histogram *h = example();
        uint8_t *data = NULL;
        char *text = NULL;
        size_t length = 0;

        CHECK_INT(histogram_encode(h, &data, &length), 0);
        CHECK_INT(base64_encode(data, length, &text), 0);
        CHECK_STRING(text, example_v2);
        free(text);
        free(data);
        free(h);
}

static void decoding_what_the_library_wrote(void) {
        struct histogram *want = example(), *got = empty();
        uint8_t *data = NULL;
        size_t length = 0;

        CHECK_INT(base64_decode(library_v2, &data, &length), 0);
        CHECK_INT(histogram_decode(data, length, got), 0);
        CHECK(memcmp(want->counts, got->counts, sizeof(want->counts)) == 0);
        CHECK(got->sum_ns > want->sum_ns / 100 * 99 && got->sum_ns < want->sum_ns / 100 * 101);
        free(data);
        free(want);
        free(got);
}

static void export_is_the_compressed_form(void) {
        struct histogram *h = example();
        char *text = NULL;
        uint8_t *packed = NULL, plain[256];
        size_t length = 0;
        uLongf n = sizeof(plain);

        CHECK_INT(histogram_export(h, &text), 0);
        CHECK(strncmp(text, "HISTFAAAA", 9) == 0); /* by which the log format's readers know it */
        CHECK_INT(base64_decode(text, &packed, &length), 0);
        CHECK_UINT((size_t) packed[6] << 8 | packed[7], length - 8);
        CHECK_INT(uncompress(plain, &n, packed + 8, length - 8), Z_OK);
        free(text);
        CHECK_INT(base64_encode(plain, n, &text), 0);
        CHECK_STRING(text, example_v2);
        free(text);
        free(packed);
        free(h);
}

static void extremes_travel(void) {
        struct histogram *h = empty(), *back = empty();
        uint8_t *data = NULL;
        size_t length = 0;

        CHECK_INT(histogram_encode(h, &data, &length), 0);
        CHECK_UINT(length, 40);
        CHECK_INT(histogram_decode(data, length, back), 0);
        CHECK_UINT(histogram_total(back), 0);
        free(data);

        h->counts[0] = INT64_MAX; /* nine bytes, all eight bits of the last */
        h->counts[1] = (uint64_t) 1 << 56;
        h->counts[7] = 127;
        h->counts[histogram_index(HISTOGRAM_HIGHEST_NS)] = 1;
        CHECK_INT(histogram_encode(h, &data, &length), 0);
        CHECK_INT(histogram_decode(data, length, back), 0);
        CHECK(memcmp(h->counts, back->counts, sizeof(h->counts)) == 0);
        free(data);
        free(h);
        free(back);
}

/* Payloads behind a right header. */
static const struct {
        const char *what;
        uint8_t bytes[40];
        size_t n;
        int want;
} payloads[] = {
        {"one count", {2}, 1, 0},
        {"a number without its end", {0x80}, 1, -EBADMSG},
        {"a run of zeros beyond the end", {0xff, 0xff, 0x7f}, 3, -EBADMSG},
        {"the most negative number", {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 9, -EBADMSG},
        {"a run up to the last bucket and a count there", {0xfb, 0x3d, 2}, 3, -EBADMSG},
        {"a sum beyond 64 bits", {0xe7, 0x07, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 11, -EBADMSG},
        {"a total beyond 64 bits",
         {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff,
          0xff, 0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         27,
         -EBADMSG},
};

static void payload_table(void) {
        struct histogram *h = empty(), *unchanged = empty();
        uint8_t *header = NULL;
        size_t length = 0;

        CHECK_INT(histogram_encode(h, &header, &length), 0);
        for (size_t i = 0; i < ELEMENTS(payloads); i++) {
                uint8_t data[100];
                memcpy(data, header, 40);
                data[7] = (uint8_t) payloads[i].n;
                memcpy(data + 40, payloads[i].bytes, payloads[i].n);
                memset(h, 0x55, sizeof(*h));
                memset(unchanged, 0x55, sizeof(*unchanged));
                if (histogram_decode(data, 40 + payloads[i].n, h) != payloads[i].want)
                        CHECK_FAIL("%s", payloads[i].what);
                if (payloads[i].want < 0)
                        CHECK(memcmp(h, unchanged, sizeof(*h)) == 0);
        }
        for (size_t at = 0; at < 40; at++) { /* no byte of the header may differ */
                uint8_t data[40];
                memcpy(data, header, 40);
                data[at] ^= 1;
                CHECK_INT(histogram_decode(data, 40, h), -EBADMSG);
        }
        for (size_t n = 0; n < 40; n++)
                CHECK_INT(histogram_decode(header, n, h), -EBADMSG);
        free(header);
        free(h);
        free(unchanged);
}

static void base64_vectors(void) {
        static const char *const vectors[][2] = {
                /* RFC 4648, section 10 */
                {"", ""},
                {"f", "Zg=="},
                {"fo", "Zm8="},
                {"foo", "Zm9v"},
                {"foob", "Zm9vYg=="},
                {"fooba", "Zm9vYmE="},
                {"foobar", "Zm9vYmFy"},
        };
        static const char *const wrong[] = {
                "Zg", "Zg=", "Zg=a", "=g==", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm 9"};
        for (size_t i = 0; i < ELEMENTS(vectors); i++) {
                char *text = NULL;
                uint8_t *data = NULL;
                size_t n = 99;
                CHECK_INT(base64_encode((const uint8_t *) vectors[i][0], strlen(vectors[i][0]), &text), 0);
                CHECK_STRING(text, vectors[i][1]);
                CHECK_INT(base64_decode(text, &data, &n), 0);
                CHECK_UINT(n, strlen(vectors[i][0]));
                CHECK(memcmp(data, vectors[i][0], n) == 0);
                free(text);
                free(data);
        }
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                uint8_t *data = NULL;
                size_t n;
                if (base64_decode(wrong[i], &data, &n) != -EBADMSG)
                        CHECK_FAIL("accepted: %s", wrong[i]);
        }
}

/* A writer that is stopped before each of its stores, and whose value is none of those that stand there. */
static void a_value_half_recorded_is_in_neither(void) {
        static struct recorder live;
        static struct histogram copy;
        struct recorder_bucket *b = &live.buckets[histogram_index(5000)];
        for (uint64_t n = 0; n < 3; n++) {
                const struct recorder_bucket states[] = {
                        {.turns = 2 * n, .sum_ns = 5000 * n, .before_ns = 1},
                        {.turns = 2 * n, .sum_ns = 5000 * n, .before_ns = 5000 * n},
                        {.turns = 2 * n + 1, .sum_ns = 5000 * n, .before_ns = 5000 * n},
                        {.turns = 2 * n + 1, .sum_ns = 5000 * n + 1, .before_ns = 5000 * n},
                };
                for (size_t i = 0; i < ELEMENTS(states); i++) {
                        *b = states[i];
                        recorder_copy(&live, &copy);
                        CHECK_UINT(histogram_total(&copy), n);
                        CHECK_UINT(copy.sum_ns, 5000 * n);
                }
        }
}

#define MOST_NS 255u /* up to here each value has a bucket of its own: the counts have their exact sum */

static struct recorder recorded;
static bool enough;

static void *record(void *unused) {
        for (uint64_t v = 0; !__atomic_load_n(&enough, __ATOMIC_RELAXED); v += 7)
                recorder_record(&recorded, v % (MOST_NS + 1));
        return unused;
}

/* However much is recorded while a copy is taken, and wherever the writer is stopped. */
static void a_copy_has_the_sum_of_its_counts(void) {
        static struct histogram copy;
        pthread_t writer;
        CHECK_INT(pthread_create(&writer, NULL, record, NULL), 0);
        for (unsigned i = 0; i < 2000; i++) {
                uint64_t counted_ns = 0;
                recorder_copy(&recorded, &copy);
                for (uint64_t v = 0; v <= MOST_NS; v++)
                        counted_ns += copy.counts[histogram_index(v)] * v;
                if (copy.sum_ns != counted_ns)
                        CHECK_FAIL("copy %u: the sum is %" PRIu64 ", of the counts %" PRIu64, i, copy.sum_ns,
                                   counted_ns);
        }
        __atomic_store_n(&enough, true, __ATOMIC_RELAXED);
        CHECK_INT(pthread_join(writer, NULL), 0);
        CHECK(histogram_total(&copy) > 0);
}

int main(void) {
        RUN(buckets_cover_every_value);
        RUN(the_limit_is_reported);
        RUN(quantiles);
        RUN(summary_is_ordered);
        RUN(adding_and_subtracting);
        RUN(a_sum_beyond_64_bits_does_not_wrap);
        RUN(a_value_half_recorded_is_in_neither);
        RUN(a_copy_has_the_sum_of_its_counts);
        RUN(encoding);
        RUN(decoding_what_the_library_wrote);
        RUN(export_is_the_compressed_form);
        RUN(extremes_travel);
        RUN(payload_table);
        RUN(base64_vectors);
        return check_end();
}
