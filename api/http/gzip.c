/* SPDX-License-Identifier: MIT */

#include "api/http/gzip.h"

#include "api/http/negotiate.h"
#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define FORMAT 16   /* added to the window's bits: gzip's header and checksum, instead of zlib's own */
#define LEAST 1024u /* bytes of a body that is compressed: a smaller one fits one packet as it is */

static const struct {
        int level, window_bits, memory_level;
} uses[] = {
        [GZIP_BODY] = {1, 13, 6},
        [GZIP_FILE] = {6, 15, 8},
};

int gzip_init(struct gzip *g, enum gzip_use use) {
        *g = (struct gzip){0};
        int code = deflateInit2(&g->stream, uses[use].level, Z_DEFLATED, uses[use].window_bits + FORMAT,
                                uses[use].memory_level, Z_DEFAULT_STRATEGY);
        return code == Z_OK ? 0 : -ENOMEM;
}

void gzip_deinit(struct gzip *g) {
        (void) deflateEnd(&g->stream);
        *g = (struct gzip){0};
}

int gzip_put(struct gzip *g, struct text *out, const char *data, size_t length, bool last) {
        uint8_t buffer[16384];
        g->stream.next_in = (const Bytef *) data;
        g->stream.avail_in = (uInt) length;
        do {
                g->stream.next_out = buffer;
                g->stream.avail_out = sizeof(buffer);
                if (deflate(&g->stream, last ? Z_FINISH : Z_SYNC_FLUSH) == Z_STREAM_ERROR)
                        return -EIO;
                text_append(out, (const char *) buffer, sizeof(buffer) - g->stream.avail_out);
        } while (g->stream.avail_out == 0);
        return out->error;
}

/* What is compressed already, and the dashboard's files, which have a compressed form of their own and a strong tag. */
static bool is_settled(const struct response *p, const char *type) {
        const char *tag = response_get_header(p, "ETag");
        return strcmp(type, "application/gzip") == 0 || (tag && tag[0] == '"') ||
               response_get_header(p, "Content-Encoding") != NULL;
}

int gzip_accepted(const struct request *q, struct response *p, const char *type) {
        if (is_settled(p, type))
                return 0;
        response_vary(p, "Accept-Encoding");
        int k = negotiate_coding(q, "gzip");
        if (k > 0)
                response_header(p, "Content-Encoding", "gzip");
        return k;
}

int gzip_response(const struct request *q, struct response *p) {
        const char *type = response_get_header(p, "Content-Type");
        _cleanup_(gzip_deinit) struct gzip g = {0};
        _cleanup_(text_deinit) struct text out = {0};
        if (p->stream || !p->body || !type || p->length < LEAST)
                return 0;
        int k = gzip_accepted(q, p, type);
        if (k > 0)
                k = gzip_init(&g, GZIP_BODY);
        else
                return k;
        if (k >= 0)
                k = gzip_put(&g, &out, p->body, p->length, true);
        if (k < 0)
                return k;
        if (!p->borrowed)
                free(p->body);
        p->borrowed = false;
        p->length = out.length;
        p->body = util_steal(&out.data);
        return 0;
}
