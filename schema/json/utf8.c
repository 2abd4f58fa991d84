/* SPDX-License-Identifier: MIT */

/* One definition of well-formed UTF-8 for the JSON reader and writer. Source: RFC 3629, section 4. */

#include "schema/json/utf8.h"

static int continuation(const char *s) {
        return ((unsigned char) *s & 0xc0) == 0x80;
}

size_t utf8_length(const char *s, size_t n) {
        if (n == 0)
                return 0;
        unsigned char c = (unsigned char) s[0], next = n > 1 ? (unsigned char) s[1] : 0;

        if (c < 0x80)
                return 1;
        if (c < 0xc2) /* a stray continuation, or overlong */
                return 0;
        if (c < 0xe0)
                return n >= 2 && continuation(s + 1) ? 2 : 0;
        if (c < 0xf0) {
                if (n < 3 || !continuation(s + 1) || !continuation(s + 2))
                        return 0;
                if ((c == 0xe0 && next < 0xa0) || (c == 0xed && next > 0x9f)) /* overlong; surrogates */
                        return 0;
                return 3;
        }
        if (c > 0xf4 || n < 4 || !continuation(s + 1) || !continuation(s + 2) || !continuation(s + 3))
                return 0;
        if ((c == 0xf0 && next < 0x90) || (c == 0xf4 && next > 0x8f)) /* overlong; above U+10FFFF */
                return 0;
        return 4;
}
