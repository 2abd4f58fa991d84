/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Compression with gzip: of files that are made while they are sent, and of the bodies that a client accepts so
 * (RFC 9110, 8.4.1). One compressed body takes some 70 KiB while it is made, beside what its peer is counted.
 */

#include "api/http/response.h"
#include "api/http/text.h"

#define ZLIB_CONST /* what is read is not written */
#include <zlib.h>

enum gzip_use {
        GZIP_BODY, /* made anew for each request, on a machine that may measure: fast, and of little memory */
        GZIP_FILE  /* a client keeps it: small */
};

struct gzip {
        z_stream stream;
};

/* A zeroed one is fine to deinit. 0 or -ENOMEM. */
int gzip_init(struct gzip *g, enum gzip_use use);
void gzip_deinit(struct gzip *g);
/* Appends what is compressed so far, all of it, so that a client that waits for it gets it; `last` ends the stream. */
int gzip_put(struct gzip *g, struct text *out, const char *data, size_t length, bool last);

/* Whether a body of this type is sent compressed: 1 or 0, or -ENOMEM. Adds the headers that this needs. */
int gzip_accepted(const struct request *q, struct response *p, const char *type);
/* Compresses a body that was made as a whole for a client that accepts it. A body of less than a packet stays as it is.
 */
int gzip_response(const struct request *q, struct response *p);
