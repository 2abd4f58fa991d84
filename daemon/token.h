/* SPDX-License-Identifier: MIT */
#pragma once

/* The bearer token for writing over TCP. */

#define TOKEN_LENGTH_MIN 32u
#define TOKEN_LENGTH_MAX 256u

/* Reads the token from `path`; makes the file (32 random bytes in hex, mode 0600) when there is none. *ret is
 * malloc()ed. Returns 0, or a negative errno with a sentence in ret_detail[DETAIL_MAX]: -EPERM when another user owns
 * the file or may read it, -EBADMSG when its content is no token, -ELOOP when it is a symbolic link. */
int token_load(const char *path, char **ret, char *ret_detail);
