/* SPDX-License-Identifier: MIT */

/* Any bytes as a packet of this version of the protocol. What is accepted is encoded to the same bytes again: every
 * byte has a meaning. */

#include "fuzz.h"
#include "schema/detail.h"
#include "schema/protocol/protocol.h"

#include <errno.h>
#include <string.h>

#define VERSION_AT 4u /* behind the magic number */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        struct message m;
        char detail[DETAIL_MAX] = "";
        uint8_t *again = NULL, *packet = malloc(size ? size : 1);
        size_t length = 0;

        FUZZ_CHECK(packet);
        memcpy(packet, data, size);
        if (size >= VERSION_AT + sizeof(uint16_t)) /* else an older version's corpus would end here */
                memcpy(packet + VERSION_AT, &(uint16_t){PROTOCOL_VERSION}, sizeof(uint16_t));
        int r = message_decode(packet, size, &m, detail);
        if (r < 0) {
                free(packet);
                FUZZ_CHECK(r == -EBADMSG && detail[0] && strnlen(detail, sizeof(detail)) < sizeof(detail));
                return 0;
        }
        FUZZ_CHECK(message_encode(&m, &again, &length) == 0);
        FUZZ_CHECK(length == size && memcmp(again, packet, size) == 0);
        free(again);
        free(packet);
        message_deinit(&m);
        return 0;
}
