/* SPDX-License-Identifier: MIT */

/* Any bytes as a packet of the protocol. What is accepted is encoded to the same bytes again: every byte has a meaning.
 */

#include "fuzz.h"
#include "schema/protocol/protocol.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct message m;
        char detail[200] = "";
        uint8_t *again = NULL;
        size_t length = 0;

        int r = message_decode(data, size, &m, detail);
        if (r < 0) {
                FUZZ_CHECK(r == -EBADMSG && detail[0] && strnlen(detail, sizeof(detail)) < sizeof(detail));
                return 0;
        }
        FUZZ_CHECK(message_encode(&m, &again, &length) == 0);
        FUZZ_CHECK(length == size && memcmp(again, data, size) == 0);
        free(again);
        message_deinit(&m);
        return 0;
}
