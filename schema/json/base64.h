/* SPDX-License-Identifier: MIT */
#pragma once

/* Base64 (RFC 4648, section 4) for histograms inside JSON. */

#include <stddef.h>
#include <stdint.h>

/* NUL-terminated text, malloc()ed; -ENOMEM. */
int base64_encode(const uint8_t *data, size_t length, char **ret);
/* Strict: padding required, no white space, unused bits zero. malloc()ed; -EBADMSG, -ENOMEM. */
int base64_decode(const char *text, uint8_t **ret, size_t *ret_length);
