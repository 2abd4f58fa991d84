/* SPDX-License-Identifier: MIT */

/*
 * Histograms as bytes: HdrHistogram's V2 encoding, so that its tools read what ipclab exports, and the only form in
 * which a histogram leaves a process; and the summary of one as members of JSON. Decoding trusts nothing: an agent or a
 * database file may send anything.
 *
 * Source: the V2 format as HdrHistogram documents it: big-endian header, then counts as ZigZag LEB128 of at most
 * nine bytes, a negative one standing for a run of zeros.
 */

#include "schema/json/base64.h"
#include "schema/json/json.h"
#include "schema/measure/histogram.h"
#include "schema/util.h"

#include <endian.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

#define COOKIE UINT32_C(0x1c849313)
#define COOKIE_COMPRESSED UINT32_C(0x1c849314)
#define HEADER_SIZE 40u
#define VARINT_MAX 9u

static uint8_t *put32(uint8_t *p, uint32_t v) {
        v = htobe32(v);
        memcpy(p, &v, sizeof(v));
        return p + sizeof(v);
}

static uint8_t *put64(uint8_t *p, uint64_t v) {
        v = htobe64(v);
        memcpy(p, &v, sizeof(v));
        return p + sizeof(v);
}

static uint32_t get32(const uint8_t *p) {
        uint32_t v;
        memcpy(&v, p, sizeof(v));
        return be32toh(v);
}

/* Everything in front of the counts but the cookie and the payload's length: fixed by the layout. */
static void put_layout(uint8_t *p) {
        double ratio = 1.0;
        uint64_t ratio_bits;
        memcpy(&ratio_bits, &ratio, sizeof(ratio));

        p = put32(p, 0); /* normalizing index offset */
        p = put32(p, HISTOGRAM_DIGITS);
        p = put64(p, HISTOGRAM_LOWEST_NS);
        p = put64(p, HISTOGRAM_HIGHEST_NS);
        (void) put64(p, ratio_bits);
}

static uint8_t *put_varint(uint8_t *p, int64_t v) {
        uint64_t z = (uint64_t) v << 1 ^ (v < 0 ? UINT64_MAX : 0);
        for (unsigned i = 0; i < VARINT_MAX - 1 && z >= 0x80; i++) {
                *p++ = (uint8_t) (z | 0x80);
                z >>= 7;
        }
        *p++ = (uint8_t) z; /* the ninth byte carries eight bits */
        return p;
}

/* Returns the bytes read, or 0 when there are too few. */
static size_t get_varint(const uint8_t *p, size_t n, int64_t *ret) {
        uint64_t z = 0;
        for (size_t i = 0; i < n && i < VARINT_MAX; i++) {
                bool last = i == VARINT_MAX - 1;
                z |= (uint64_t) (last ? p[i] : p[i] & 0x7f) << (7 * i);
                if (last || !(p[i] & 0x80)) {
                        *ret = (int64_t) (z >> 1 ^ (z & 1 ? UINT64_MAX : 0));
                        return i + 1;
                }
        }
        return 0;
}

int histogram_encode(const struct histogram *h, uint8_t **ret, size_t *ret_length) {
        uint32_t n = HISTOGRAM_COUNTS;
        while (n > 0 && h->counts[n - 1] == 0)
                n--;

        uint8_t *data = malloc(HEADER_SIZE + (size_t) n * VARINT_MAX);
        if (!data)
                return -ENOMEM;
        uint8_t *p = data + HEADER_SIZE;
        for (uint32_t i = 0; i < n;) {
                uint32_t zeros = 0;
                while (h->counts[i + zeros] == 0) /* ends: the last count is none */
                        zeros++;
                if (zeros > 1)
                        p = put_varint(p, -(int64_t) zeros);
                else
                        p = put_varint(p, (int64_t) h->counts[i]);
                i += zeros > 1 ? zeros : 1;
        }
        (void) put32(data, COOKIE);
        (void) put32(data + 4, (uint32_t) (p - data - HEADER_SIZE));
        put_layout(data + 8);
        *ret = data;
        *ret_length = (size_t) (p - data);
        return 0;
}

/* Adds one decoded count; a sum that would overflow is refused. */
static int take_count(struct histogram *h, uint32_t index, uint64_t count, uint64_t *total) {
        uint64_t sum;
        if (index > histogram_index(HISTOGRAM_HIGHEST_NS))
                return -EBADMSG;
        if (__builtin_add_overflow(*total, count, total) ||
            __builtin_mul_overflow(count, histogram_bucket_middle(index), &sum) ||
            __builtin_add_overflow(h->sum_ns, sum, &h->sum_ns))
                return -EBADMSG;
        h->counts[index] = count;
        return 0;
}

static int decode_counts(const uint8_t *p, size_t n, struct histogram *h) {
        uint64_t total = 0;
        uint32_t index = 0;

        while (n > 0) {
                int64_t v;
                size_t used = get_varint(p, n, &v);
                if (used == 0)
                        return -EBADMSG;
                p += used;
                n -= used;
                if (v >= 0) {
                        int r = take_count(h, index++, (uint64_t) v, &total);
                        if (r < 0)
                                return r;
                } else {
                        if (v < -(int64_t) (HISTOGRAM_COUNTS - index))
                                return -EBADMSG;
                        index += (uint32_t) -v;
                }
        }
        return 0;
}

int histogram_decode(const uint8_t *data, size_t length, struct histogram *ret) {
        uint8_t layout[HEADER_SIZE - 8];
        put_layout(layout);
        if (length < HEADER_SIZE || get32(data) != COOKIE || get32(data + 4) != length - HEADER_SIZE ||
            memcmp(data + 8, layout, sizeof(layout)) != 0)
                return -EBADMSG;

        struct histogram *h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        int r = decode_counts(data + HEADER_SIZE, length - HEADER_SIZE, h);
        if (r == 0)
                *ret = *h;
        free(h);
        return r;
}

int histogram_export(const struct histogram *h, char **ret) {
        _cleanup_free_ uint8_t *plain = NULL;
        _cleanup_free_ uint8_t *packed = NULL;
        size_t length;

        int r = histogram_encode(h, &plain, &length);
        if (r < 0)
                return r;
        uLongf packed_length = compressBound(length);
        packed = malloc(8 + packed_length);
        if (!packed || compress2(packed + 8, &packed_length, plain, length, Z_DEFAULT_COMPRESSION) != Z_OK)
                return -ENOMEM; /* the buffer is large enough: no other failure is left */
        (void) put32(packed, COOKIE_COMPRESSED);
        (void) put32(packed + 4, (uint32_t) packed_length);
        return base64_encode(packed, 8 + packed_length, ret);
}

int histogram_import(const char *text, struct histogram *ret) {
        _cleanup_free_ uint8_t *packed = NULL;
        _cleanup_free_ uint8_t *plain = NULL;
        size_t length = 0;

        int r = base64_decode(text, &packed, &length);
        if (r < 0)
                return r;
        if (length < 8 || get32(packed) != COOKIE_COMPRESSED || get32(packed + 4) != length - 8)
                return -EBADMSG;
        uLongf plain_length = HEADER_SIZE + HISTOGRAM_COUNTS * VARINT_MAX;
        uLong packed_length = length - 8;
        plain = malloc(plain_length);
        if (!plain)
                return -ENOMEM;
        int code = uncompress2(plain, &plain_length, packed + 8, &packed_length);
        if (code == Z_MEM_ERROR)
                return -ENOMEM;
        if (code != Z_OK || packed_length != length - 8)
                return -EBADMSG;
        return histogram_decode(plain, plain_length, ret);
}

void latency_summary_put(struct json_writer *w, const struct latency_summary *s, const char *kind, uint64_t divisor) {
        const struct {
                const char *key;
                uint64_t ns;
        } times[] = {{"min", s->min}, {"p50", s->p50},     {"p90", s->p90},
                     {"p99", s->p99}, {"p99_9", s->p99_9}, {"max", s->max}};
        for (size_t i = 0; i < ELEMENTS(times); i++)
                json_member_u64(w, times[i].key, times[i].ns / divisor);
        json_member_u64(w, "mean", (uint64_t) llround(s->mean / (double) divisor));
        json_member_string(w, "kind", kind);
        json_member_u64(w, "count", s->count);
}
