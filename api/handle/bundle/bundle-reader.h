/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads the JSON of an uploaded bundle as it is decompressed, value by value, so that no more of it is held than one of
 * its rows or runs. Nothing of it is trusted: its length is bounded, and so is that of each value.
 *
 * All return 0, or a negative errno with *r filled (413, 422) where there are words for the client.
 */

#include "api/http/text.h"
#include "schema/refusal.h"

#include <nettle/sha2.h>
#include <stdint.h>
#define ZLIB_CONST /* what is read is not written */
#include <zlib.h>

#define BUNDLE_JSON_MAX                                                                                                \
        ((size_t) 512 << 20)                /* bytes of the whole, 16384 runs of 24 KiB and some; a file of 64 MiB may \
                                               have a thousand times as many */
#define BUNDLE_VALUE_MAX ((size_t) 8 << 20) /* of one value */
/* Lists, objects and what is in them, of one value: each takes 80 bytes when it is parsed, though it may have two in
 * the file. A spec of REQUEST_BODY_MAX has half as many at most; the rest is for the points that were left out. */
#define BUNDLE_NODES_MAX ((size_t) 1 << 20)
#define BUNDLE_GZIP_WINDOW (15 + 16) /* zlib's way of naming gzip's format */

struct bundle_reader {
        z_stream gzip;
        struct text text; /* decompressed, from `at` on not read yet */
        size_t at;
        uint64_t total;
        bool ended;
};

int bundle_reader_init(struct bundle_reader *b, const void *data, size_t length);
void bundle_reader_deinit(struct bundle_reader *b);

/* The SHA-256 of all of it, in hex. */
int bundle_read_digest(const void *data, size_t length, char ret[static 2 * SHA256_DIGEST_SIZE + 1], struct refusal *r);
/* 1: this text comes next, and was read; 0: it does not. */
int bundle_read_word(struct bundle_reader *b, const char *word, struct refusal *r);
/* The text of the value that comes next, malloc()ed; whether it is JSON is not known yet. `where` names it. */
int bundle_read_value(struct bundle_reader *b, const char *where, char **ret, struct refusal *r);
/* That there is no more. */
int bundle_read_end(struct bundle_reader *b, struct refusal *r);
