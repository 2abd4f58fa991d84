/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages' contents and the receiver's check of them (verify).
 *
 * A checked message is keyed by its thread, its direction and its number, so that a lost, repeated, swapped or
 * shifted message differs nearly everywhere and not only in a header: 8-byte word i of it is key + (i + 1) * GOLDEN,
 * in the machine's byte order; a tail shorter than a word has the first bytes of one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PATTERN_GOLDEN UINT64_C(0x9e3779b97f4a7c15)
#define PATTERN_LINE 64u /* "touch" reads a byte of each */

struct failure;

/* splitmix64's finalizer: neighbouring numbers get unlike keys. Source: Steele, Lea, Flood, OOPSLA 2014. */
static inline uint64_t pattern_mix(uint64_t x) {
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        return x ^ (x >> 31);
}

/* direction: 0 from the first end, 1 from the second. */
static inline uint64_t pattern_key(uint32_t thread, unsigned direction, uint64_t number) {
        return pattern_mix((number * 2 + direction) * PATTERN_GOLDEN + pattern_mix(thread + 1));
}

static inline void pattern_fill(unsigned char *message, size_t size, uint64_t key) {
        size_t words = size / 8, tail = size % 8;
        for (size_t i = 0; i < words; i++) {
                key += PATTERN_GOLDEN;
                memcpy(message + 8 * i, &key, 8);
        }
        if (tail) {
                key += PATTERN_GOLDEN;
                memcpy(message + 8 * words, &key, tail);
        }
}

/* Writes the bytes [offset, offset + length) of a message to `part`. */
static inline void pattern_fill_part(unsigned char *part, size_t offset, size_t length, uint64_t key) {
        size_t head = (8 - offset % 8) % 8;
        uint64_t word = key + (offset / 8 + 1) * PATTERN_GOLDEN;
        if (head > length)
                head = length;
        memcpy(part, (const unsigned char *) &word + offset % 8, head);
        pattern_fill(part + head, length - head, key + (offset + head) / 8 * PATTERN_GOLDEN);
}

static inline bool pattern_matches(const unsigned char *message, size_t size, uint64_t key) {
        size_t words = size / 8, tail = size % 8;
        uint64_t differ = 0;
        for (size_t i = 0; i < words; i++) {
                uint64_t word;
                memcpy(&word, message + 8 * i, 8);
                key += PATTERN_GOLDEN;
                differ |= word ^ key;
        }
        if (tail) {
                key += PATTERN_GOLDEN;
                return differ == 0 && memcmp(message + 8 * words, &key, tail) == 0;
        }
        return differ == 0;
}

/* A byte of every cache line, summed; four lines to a turn. A turn of one line has five instructions, whose cost
 * depends on their alignment: at 64 KiB one program took 1.6 times as long as another, which was 8 % of a stream of
 * datagrams, while the core's other thread was busy. */
static inline uint64_t pattern_touch(const unsigned char *message, size_t size) {
        uint64_t sum = 0, other = 0;
        size_t i = 0;
        for (; i + 3 * PATTERN_LINE < size; i += 4 * PATTERN_LINE) {
                sum += (uint64_t) message[i] + message[i + PATTERN_LINE];
                other += (uint64_t) message[i + 2 * PATTERN_LINE] + message[i + 3 * PATTERN_LINE];
        }
        for (; i < size; i += PATTERN_LINE)
                sum += message[i];
        return sum + other;
}

/* Compares a message from byte `from` on (whole words); the bytes before it are not part of the pattern. */
static inline bool pattern_matches_from(const unsigned char *message, size_t from, size_t size, uint64_t key) {
        return pattern_matches(message + from, size - from, key + from / 8 * PATTERN_GOLDEN);
}

/* Reports how a message differs from byte `from` on: thread, number, offset, byte expected and got, and whether it is
 * another message of the same stream. Returns -EBADMSG. */
int pattern_explain_from(struct failure *f, const unsigned char *message, size_t from, size_t size, uint32_t thread,
                         unsigned direction, uint64_t number);
static inline int pattern_explain(struct failure *f, const unsigned char *message, size_t size, uint32_t thread,
                                  unsigned direction, uint64_t number) {
        return pattern_explain_from(f, message, 0, size, thread, direction, number);
}
