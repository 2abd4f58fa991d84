/* SPDX-License-Identifier: MIT */

/* Base64 for binary data in JSON. Called by histogram.c and protocol.c. */

#include "schema/json/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_encode(const uint8_t *data, size_t length, char **ret) {
        if (length > SIZE_MAX / 2)
                return -ENOMEM;
        char *text = malloc((length + 2) / 3 * 4 + 1), *p = text;
        if (!text)
                return -ENOMEM;

        for (size_t i = 0; i < length; i += 3) {
                size_t left = length - i;
                uint32_t group = (uint32_t) data[i] << 16;
                if (left > 1)
                        group |= (uint32_t) data[i + 1] << 8;
                if (left > 2)
                        group |= data[i + 2];
                *p++ = alphabet[group >> 18];
                *p++ = alphabet[group >> 12 & 63];
                *p++ = '=';
                *p++ = '=';
                if (left > 1)
                        p[-2] = alphabet[group >> 6 & 63];
                if (left > 2)
                        p[-1] = alphabet[group & 63];
        }
        *p = '\0';
        *ret = text;
        return 0;
}

static int value_of(char c) {
        const char *at = c ? strchr(alphabet, c) : NULL;
        return at ? (int) (at - alphabet) : -1;
}

/* Four characters to at most three bytes; padding only where `last`. Returns the count, or -1. */
static int decode_group(const char *text, int last, uint8_t *out) {
        int pad = 0;
        if (last)
                pad = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;

        uint32_t group = 0;
        for (int i = 0; i < 4; i++) {
                int v = i < 4 - pad ? value_of(text[i]) : 0;
                if (v < 0)
                        return -1;
                group = group << 6 | (uint32_t) v;
        }
        if ((pad == 1 && group & 0xff) || (pad == 2 && group & 0xffff))
                return -1;
        for (int i = 0; i < 3 - pad; i++)
                out[i] = (uint8_t) (group >> (16 - 8 * i));
        return 3 - pad;
}

int base64_decode(const char *text, uint8_t **ret, size_t *ret_length) {
        size_t length = strlen(text), used = 0;
        if (length % 4 != 0)
                return -EBADMSG;
        uint8_t *data = malloc(length / 4 * 3 + 1);
        if (!data)
                return -ENOMEM;

        for (size_t i = 0; i < length; i += 4) {
                int n = decode_group(text + i, i + 4 == length, data + used);
                if (n < 0) {
                        free(data);
                        return -EBADMSG;
                }
                used += (size_t) n;
        }
        *ret = data;
        *ret_length = used;
        return 0;
}
