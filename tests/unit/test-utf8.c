/* SPDX-License-Identifier: MIT */

/* Well-formed UTF-8: every code point there and back, and both sides of each of RFC 3629's limits. */

#include "schema/json/utf8.h"
#include "schema/util.h"
#include "tests/unit/check.h"

/* Any number up to 2^21 in the form that UTF-8 has for so many bits; returns how many bytes. */
static size_t utf8_put(uint32_t c, char out[4]) {
        if (c < 0x80) {
                out[0] = (char) c;
                return 1;
        }
        if (c < 0x800) {
                out[0] = (char) (0xc0 | c >> 6);
                out[1] = (char) (0x80 | (c & 0x3f));
                return 2;
        }
        if (c < 0x10000) {
                out[0] = (char) (0xe0 | c >> 12);
                out[1] = (char) (0x80 | (c >> 6 & 0x3f));
                out[2] = (char) (0x80 | (c & 0x3f));
                return 3;
        }
        out[0] = (char) (0xf0 | c >> 18);
        out[1] = (char) (0x80 | (c >> 12 & 0x3f));
        out[2] = (char) (0x80 | (c >> 6 & 0x3f));
        out[3] = (char) (0x80 | (c & 0x3f));
        return 4;
}

static void every_code_point_is_itself_again(void) {
        for (uint32_t c = 0; c <= 0x10ffff; c++) {
                char s[4];
                size_t n = utf8_put(c, s), want = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
                bool surrogate = c >= 0xd800 && c <= 0xdfff;
                if (n != want || utf8_length(s, n) != (surrogate ? 0 : n))
                        CHECK_FAIL("U+%04X is put as %zu bytes and read as %zu", c, n, utf8_length(s, n));
                /* cut by a byte it is no character, and what lies behind the given length is not read */
                if (utf8_length(s, n - 1) != 0)
                        CHECK_FAIL("U+%04X without its last byte is read as %zu", c, utf8_length(s, n - 1));
        }
}

static void reads_both_sides_of_each_limit(void) {
        static const struct {
                const char *bytes;
                size_t length;
        } cases[] = {
                {"\x7f", 1},
                {"\x80", 0}, /* a continuation that continues nothing */
                {"\xbf", 0},
                {"\xc0\x80", 0}, /* NUL, overlong */
                {"\xc1\xbf", 0},
                {"\xc2\x80", 2},
                {"\xdf\xbf", 2},
                {"\xdf\x7f", 0},
                {"\xdf\xc0", 0},
                {"\xe0\x9f\xbf", 0}, /* overlong */
                {"\xe0\xa0\x80", 3},
                {"\xed\x9f\xbf", 3},
                {"\xed\xa0\x80", 0}, /* U+D800 */
                {"\xed\xbf\xbf", 0}, /* U+DFFF */
                {"\xee\x80\x80", 3},
                {"\xef\xbf\xbf", 3},
                {"\xef\xbf\x3f", 0},
                {"\xf0\x8f\xbf\xbf", 0}, /* overlong */
                {"\xf0\x90\x80\x80", 4},
                {"\xf4\x8f\xbf\xbf", 4}, /* U+10FFFF */
                {"\xf4\x90\x80\x80", 0},
                {"\xf5\x80\x80\x80", 0},
                {"\xf0\x90\x80\x40", 0},
                {"\xf0\x90\xc0\x80", 0},
                {"\xff", 0},
                {"a\xff", 1}, /* the first character only */
        };
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                size_t n = utf8_length(cases[i].bytes, strlen(cases[i].bytes));
                if (n != cases[i].length)
                        CHECK_FAIL("case %zu is read as %zu bytes, expected %zu", i, n, cases[i].length);
        }
        CHECK_UINT(utf8_length("", 0), 0);
        CHECK_UINT(utf8_length("", 1), 1); /* NUL is a character like any */
}

int main(void) {
        RUN(every_code_point_is_itself_again);
        RUN(reads_both_sides_of_each_limit);
        return check_end();
}
