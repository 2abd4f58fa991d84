/* SPDX-License-Identifier: MIT */
#pragma once

/* UTF-8 as RFC 3629 has it. */

#include <stddef.h>

/* Bytes of the well-formed character that s begins with (of n bytes): 1 … 4, or 0 when there is none: overlong
 * forms, surrogates and what lies above U+10FFFF are none. */
size_t utf8_length(const char *s, size_t n);
