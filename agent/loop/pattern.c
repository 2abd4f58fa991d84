/* SPDX-License-Identifier: MIT */

/* The cold side of verification: the failure's sentence for a message that does not match. */

#include "agent/loop/pattern.h"

#include "agent/base/failure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define SEARCH 1024 /* messages before and after the expected one that are compared */

static unsigned char expected_byte(uint64_t key, size_t offset) {
        uint64_t word = key + (offset / 8 + 1) * PATTERN_GOLDEN;
        unsigned char bytes[8];
        memcpy(bytes, &word, 8);
        return bytes[offset % 8];
}

/* Finds the number whose key a misplaced message matches. Short messages match by chance and are not searched for. */
static bool find_number(const unsigned char *message, size_t from, size_t size, uint32_t thread, unsigned direction,
                        uint64_t number, uint64_t *ret) {
        if (size - from < 8)
                return false;
        uint64_t first = number > SEARCH ? number - SEARCH : 0;
        for (uint64_t n = first; n <= number + SEARCH; n++)
                if (n != number && pattern_matches_from(message, from, size, pattern_key(thread, direction, n))) {
                        *ret = n;
                        return true;
                }
        return false;
}

int pattern_explain_from(struct failure *f, const unsigned char *message, size_t from, size_t size, uint32_t thread,
                         unsigned direction, uint64_t number) {
        uint64_t key = pattern_key(thread, direction, number), other;
        size_t offset = 0, wrong = 0;
        for (size_t i = size; i-- > from;)
                if (message[i] != expected_byte(key, i)) {
                        offset = i;
                        wrong++;
                }
        if (find_number(message, from, size, thread, direction, number, &other))
                return failure_set(f, EBADMSG,
                                   "checksum: thread %" PRIu32 " got message %" PRIu64 " where message %" PRIu64
                                   " was due",
                                   thread, other, number);
        return failure_set(f, EBADMSG,
                           "checksum: thread %" PRIu32 ", message %" PRIu64 ", offset %zu: expected 0x%02x, got 0x%02x "
                           "(%zu of %zu bytes differ)",
                           thread, number, offset, expected_byte(key, offset), message[offset], wrong, size);
}
