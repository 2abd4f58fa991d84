/* SPDX-License-Identifier: MIT */

/* JSON pointers (RFC 6901), cut off where they would grow beyond JSON_POINTER_MAX. */

#include "schema/json/json.h"

#include "schema/json/utf8.h"

#include <stdio.h>
#include <string.h>

void json_pointer_key(char pointer[JSON_POINTER_MAX], const char *parent, const char *key) {
        size_t n = strnlen(parent, JSON_POINTER_MAX - 1), left = strlen(key);
        memmove(pointer, parent, n);
        if (n + 1 < JSON_POINTER_MAX)
                pointer[n++] = '/';
        while (left > 0) {
                const char *escaped = *key == '~' ? "~0" : *key == '/' ? "~1" : NULL;
                size_t length = utf8_length(key, left), add = escaped ? 2 : length > 0 ? length : 1;
                if (n + add >= JSON_POINTER_MAX)
                        break;
                memcpy(pointer + n, escaped ? escaped : key, add);
                n += add;
                key += escaped ? 1 : add;
                left -= escaped ? 1 : add;
        }
        pointer[n] = '\0';
}

void json_pointer_index(char pointer[JSON_POINTER_MAX], const char *parent, size_t index) {
        char token[24];
        snprintf(token, sizeof(token), "%zu", index);
        json_pointer_key(pointer, parent, token);
}
