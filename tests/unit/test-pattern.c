/* SPDX-License-Identifier: MIT */

/* The checksum's pattern: every byte counts, messages differ, and a fault is reported with its place. */

#include "agent/base/failure.h"
#include "agent/loop/pattern.h"
#include "check.h"

#include <errno.h>

static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 1000, 4096, 4103};

static void test_fill_and_match(void) {
        unsigned char m[5000];
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                uint64_t key = pattern_key(3, 1, 1234567);
                memset(m, 0xee, sizeof m);
                pattern_fill(m, sizes[i], key);
                CHECK(pattern_matches(m, sizes[i], key));
                CHECK_UINT(m[sizes[i]], 0xee); /* not a byte beyond */
        }
}

static void test_every_byte_counts(void) {
        unsigned char m[4103];
        uint64_t key = pattern_key(0, 0, 9);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                pattern_fill(m, sizes[i], key);
                for (size_t at = 0; at < sizes[i]; at++) {
                        m[at] ^= 1;
                        CHECK(!pattern_matches(m, sizes[i], key));
                        m[at] ^= 1;
                }
                CHECK(pattern_matches(m, sizes[i], key));
        }
}

/* Another number, thread or direction is another message; so is one that is shifted by a word. */
static void test_messages_differ(void) {
        unsigned char m[72];
        pattern_fill(m, sizeof m, pattern_key(1, 0, 50));
        CHECK(!pattern_matches(m, 64, pattern_key(1, 0, 51)));
        CHECK(!pattern_matches(m, 64, pattern_key(1, 0, 49)));
        CHECK(!pattern_matches(m, 64, pattern_key(1, 1, 50)));
        CHECK(!pattern_matches(m, 64, pattern_key(2, 0, 50)));
        CHECK(!pattern_matches(m + 8, 64, pattern_key(1, 0, 50)));
}

/* One byte distinguishes one message in 256 on average: not fewer than chance. */
static void test_short_messages_differ(void) {
        unsigned same = 0;
        unsigned char m;
        for (uint64_t n = 0; n < 10000; n++) {
                pattern_fill(&m, 1, pattern_key(0, 0, n));
                same += pattern_matches(&m, 1, pattern_key(0, 0, n + 1));
        }
        CHECK(same > 10 && same < 90);
}

/* A byte of each line and no other, whatever the number of lines. */
static void test_touch(void) {
        unsigned char m[9 * PATTERN_LINE];
        memset(m, 100, sizeof m);
        for (unsigned line = 0; line < 9; line++)
                m[line * PATTERN_LINE] = 1;
        for (size_t size = 0; size <= sizeof m; size++)
                CHECK_UINT(pattern_touch(m, size), (size + PATTERN_LINE - 1) / PATTERN_LINE);
}

static void test_explain_bytes(void) {
        unsigned char m[100];
        struct failure f = {};
        pattern_fill(m, sizeof m, pattern_key(2, 0, 7));
        unsigned char right = m[97];
        char expected[64];
        m[97] = (unsigned char) ~m[97]; /* in the tail */
        m[99] = (unsigned char) ~m[99];
        CHECK_INT(pattern_explain(&f, m, sizeof m, 2, 0, 7), -EBADMSG);
        (void) snprintf(expected, sizeof expected, "offset 97: expected 0x%02x, got 0x%02x", right,
                        (unsigned char) ~right);
        CHECK(strstr(f.detail, "thread 2, message 7"));
        CHECK(strstr(f.detail, expected));
        CHECK(strstr(f.detail, "(2 of 100 bytes differ)"));
}

static void test_explain_order(void) {
        unsigned char m[100];
        struct failure f = {};
        pattern_fill(m, sizeof m, pattern_key(0, 1, 19));
        CHECK_INT(pattern_explain(&f, m, sizeof m, 0, 1, 20), -EBADMSG);
        CHECK(strstr(f.detail, "got message 19 where message 20 was due"));
}

static void test_first_failure_stays(void) {
        struct failure f = {};
        CHECK_INT(failure_set(&f, EPIPE, "the cause %d", 1), -EPIPE);
        CHECK_INT(failure_set(&f, EINVAL, "what came of it"), -EINVAL);
        CHECK_STRING(f.detail, "the cause 1");
        CHECK_INT(f.error, EPIPE);
        struct failure none = {};
        CHECK_INT(failure_set(&none, 0, "no errno"), -EIO);
}

int main(void) {
        RUN(test_fill_and_match);
        RUN(test_every_byte_counts);
        RUN(test_messages_differ);
        RUN(test_short_messages_differ);
        RUN(test_touch);
        RUN(test_explain_bytes);
        RUN(test_explain_order);
        RUN(test_first_failure_stays);
        return check_end();
}
