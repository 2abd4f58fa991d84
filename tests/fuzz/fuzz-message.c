/* SPDX-License-Identifier: MIT */

/* Any bytes as a packet of the protocol. What decodes must encode, and decode again to the same bytes. */

#include "fuzz.h"
#include "schema/protocol/protocol.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct message m, again;
        char detail[200] = "", *text = NULL, *second = NULL;
        size_t length, second_length;

        int r = message_decode((const char *) data, size, &m, detail);
        if (r < 0) {
                FUZZ_CHECK(r == -EBADMSG && detail[0] && strnlen(detail, sizeof(detail)) < sizeof(detail));
                return 0;
        }
        r = message_encode(&m, &text, &length);
        FUZZ_CHECK(r == 0 || r == -EMSGSIZE); /* escapes can make it longer than it came */
        if (r == 0) {
                FUZZ_CHECK(message_decode(text, length, &again, detail) == 0);
                FUZZ_CHECK(message_encode(&again, &second, &second_length) == 0);
                FUZZ_CHECK(length == second_length && memcmp(text, second, length) == 0);
                message_deinit(&again);
        }
        free(second);
        free(text);
        message_deinit(&m);
        return 0;
}
