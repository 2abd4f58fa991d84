/* SPDX-License-Identifier: MIT */

/* Any bytes as a histogram in V2 encoding. What decodes must summarize without contradiction, and survive encoding. */

#include "fuzz.h"
#include "schema/measure/histogram.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static struct histogram h, again;
        struct latency_summary s;
        uint8_t *encoded = NULL;
        size_t length;

        int r = histogram_decode(data, size, &h);
        if (r < 0) {
                FUZZ_CHECK(r == -EBADMSG);
                return 0;
        }
        if (histogram_summarize(&h, &s) == 0)
                FUZZ_CHECK(s.min <= s.p50 && s.p50 <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.p99_9 && s.p99_9 <= s.max);
        FUZZ_CHECK(histogram_encode(&h, &encoded, &length) == 0);
        FUZZ_CHECK(histogram_decode(encoded, length, &again) == 0);
        FUZZ_CHECK(memcmp(&h, &again, sizeof(h)) == 0);
        free(encoded);
        return 0;
}
