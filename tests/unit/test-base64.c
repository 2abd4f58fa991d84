/* SPDX-License-Identifier: MIT */

/* Base64: the vectors of RFC 4648, section 10, every length there and back, and whatever is not strictly base64. */

#include "schema/json/base64.h"
#include "schema/util.h"
#include "tests/unit/check.h"

#include <errno.h>

static void encodes_the_rfcs_vectors(void) {
        static const struct {
                const char *bytes, *text;
        } cases[] = {{"", ""},
                     {"f", "Zg=="},
                     {"fo", "Zm8="},
                     {"foo", "Zm9v"},
                     {"foob", "Zm9vYg=="},
                     {"fooba", "Zm9vYmE="},
                     {"foobar", "Zm9vYmFy"},
                     {"\xfb\xff\xfe", "+//+"}};
        for (size_t i = 0; i < ELEMENTS(cases); i++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_free_ uint8_t *bytes = NULL;
                size_t length = 99;
                CHECK_INT(base64_encode((const uint8_t *) cases[i].bytes, strlen(cases[i].bytes), &text), 0);
                CHECK_STRING(text, cases[i].text);
                CHECK_INT(base64_decode(cases[i].text, &bytes, &length), 0);
                CHECK_UINT(length, strlen(cases[i].bytes));
                CHECK(memcmp(bytes, cases[i].bytes, length) == 0);
        }
}

/* Exactly as long as the data: a byte read or written beyond is found by the sanitizer. */
static void every_byte_survives_at_every_length(void) {
        for (size_t length = 0; length <= 257; length++) {
                _cleanup_free_ uint8_t *data = malloc(length ? length : 1), *back = NULL;
                _cleanup_free_ char *text = NULL;
                size_t n = 99;
                CHECK(data);
                for (size_t i = 0; i < length; i++)
                        data[i] = (uint8_t) (i * 167 + length);
                CHECK_INT(base64_encode(data, length, &text), 0);
                CHECK_UINT(strlen(text), (length + 2) / 3 * 4);
                CHECK_INT(base64_decode(text, &back, &n), 0);
                CHECK_UINT(n, length);
                CHECK(memcmp(back, data, length) == 0);
        }
}

static void refuses_what_is_not_strict(void) {
        static const char *const texts[] = {
                "Z",        "Zg",       "Zg=",     "Zm9vY",   /* not whole groups */
                "Zg==Zg==", "Zm8=Zm9v",                       /* padding before the end */
                "====",     "Z===",     "Zm=v",    "=m9v",    /* padding in the wrong place */
                "Zh==",     "Zm9=",                           /* unused bits that are not zero */
                "Zm9 ",     "Zm\n9",    " Zm9",    "Zm9v\n",  /* white space */
                "Zm-v",     "Zm_v",     "Zm9\x80", "Zm9\xff", /* other alphabets */
                "Zm9v====",
        };
        for (size_t i = 0; i < ELEMENTS(texts); i++) {
                uint8_t *bytes = NULL;
                size_t length = 99;
                int r = base64_decode(texts[i], &bytes, &length);
                free(bytes);
                if (r != -EBADMSG || bytes || length != 99)
                        CHECK_FAIL("\"%s\" gave %d and %zu bytes", texts[i], r, length);
        }
}

/* The length is checked before anything is read: none of these bytes are there. */
static void refuses_a_length_that_no_text_has(void) {
        char *text = NULL;
        CHECK_INT(base64_encode((const uint8_t *) "x", SIZE_MAX, &text), -ENOMEM);
        CHECK_INT(base64_encode((const uint8_t *) "x", SIZE_MAX / 2 + 1, &text), -ENOMEM);
        CHECK(!text);
}

int main(void) {
        RUN(encodes_the_rfcs_vectors);
        RUN(every_byte_survives_at_every_length);
        RUN(refuses_what_is_not_strict);
        RUN(refuses_a_length_that_no_text_has);
        return check_end();
}
