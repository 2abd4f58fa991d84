/* SPDX-License-Identifier: MIT */

#include "api/handle/bundle/bundle-reader.h"

#include "schema/util.h"

#include <errno.h>
#include <string.h>

#define CHUNK 32768u

int bundle_reader_init(struct bundle_reader *b, const void *data, size_t length) {
        *b = (struct bundle_reader){.gzip = {.avail_in = (uInt) length}};
        b->gzip.next_in = data;
        return inflateInit2(&b->gzip, BUNDLE_GZIP_WINDOW) == Z_OK ? 0 : -ENOMEM;
}

void bundle_reader_deinit(struct bundle_reader *b) {
        (void) inflateEnd(&b->gzip);
        text_deinit(&b->text);
        *b = (struct bundle_reader){.at = 0};
}

/* Decompresses some more; the text that was read is dropped first. */
static int read_more(struct bundle_reader *b, struct refusal *r) {
        char chunk[CHUNK];
        if (b->ended)
                return 0;
        b->gzip.next_out = (Bytef *) chunk;
        b->gzip.avail_out = sizeof(chunk);
        int code = inflate(&b->gzip, Z_NO_FLUSH);
        if (code == Z_MEM_ERROR)
                return -ENOMEM;
        b->ended = code == Z_STREAM_END;
        if ((code != Z_OK && code != Z_STREAM_END) || (b->ended && b->gzip.avail_in > 0))
                return refuse(r, 422, "not-gzip", "", "The file is not gzip, or not all of it: %.80s.",
                              b->gzip.msg ? b->gzip.msg : "it ends too early, or something follows it");
        size_t n = sizeof(chunk) - b->gzip.avail_out;
        b->total += n;
        if (b->total > BUNDLE_JSON_MAX) {
                char most[24], value[32];
                (void) snprintf(most, sizeof(most), "%zu", BUNDLE_JSON_MAX);
                (void) snprintf(value, sizeof(value), "more than %zu", BUNDLE_JSON_MAX);
                (void) refuse_limit(r, "", "bytes of a bundle's JSON", most, value,
                                    "The file has more than %s bytes of JSON.", most);
                r->status = 413;
                return -EINVAL;
        }
        if (b->at > 0) {
                memmove(b->text.data, b->text.data + b->at, b->text.length - b->at);
                b->text.length -= b->at;
                b->at = 0;
        }
        text_append(&b->text, chunk, n);
        return b->text.error;
}

int bundle_read_digest(const void *data, size_t length, char ret[static 2 * SHA256_DIGEST_SIZE + 1],
                       struct refusal *r) {
        _cleanup_(bundle_reader_deinit) struct bundle_reader b = {.at = 0};
        uint8_t digest[SHA256_DIGEST_SIZE];
        struct sha256_ctx context;
        sha256_init(&context);
        int k = bundle_reader_init(&b, data, length);
        while (k == 0 && !b.ended) {
                k = read_more(&b, r);
                if (k == 0 && b.text.length > 0)
                        sha256_update(&context, b.text.length, (const uint8_t *) b.text.data);
                text_clear(&b.text);
        }
        if (k < 0)
                return k;
        sha256_digest(&context, sizeof(digest), digest);
        for (size_t i = 0; i < sizeof(digest); i++)
                (void) snprintf(ret + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int require(struct bundle_reader *b, size_t n, struct refusal *r) {
        int k = 0;
        while (k == 0 && b->text.length - b->at < n && !b->ended)
                k = read_more(b, r);
        return k;
}

int bundle_read_word(struct bundle_reader *b, const char *word, struct refusal *r) {
        size_t n = strlen(word);
        int k = require(b, n, r);
        if (k < 0)
                return k;
        if (b->text.length - b->at < n || memcmp(b->text.data + b->at, word, n) != 0)
                return 0;
        b->at += n;
        return 1;
}

/* The end of a value in a text that grows. */
struct scan {
        size_t n, depth;
        size_t nodes;
        bool in_string, escaped;
};

/* Behind the last byte of the value, or 0: it goes on. A number or a word ends before what follows it. */
static size_t scan_byte(struct scan *s, char c) {
        s->n++;
        if (s->in_string) {
                s->in_string = s->escaped || c != '"';
                s->escaped = !s->escaped && c == '\\';
                return !s->in_string && s->depth == 0 ? s->n : 0;
        }
        if ((c == ',' || c == '}' || c == ']') && s->depth == 0)
                return s->n - 1;
        s->in_string = c == '"';
        s->depth += c == '{' || c == '[';
        s->nodes += c == '{' || c == '[' || c == ',';
        if (c != '}' && c != ']')
                return 0;
        return --s->depth == 0 ? s->n : 0;
}

int bundle_read_value(struct bundle_reader *b, const char *where, char **ret, struct refusal *r) {
        struct scan s = {0};
        size_t length = 0;
        while (length == 0) {
                int k = require(b, s.n + 1, r);
                if (k < 0)
                        return k;
                if (b->text.length - b->at <= s.n)
                        return refuse(r, 422, "not-a-bundle", where, "The file ends within a value.");
                if (s.n >= BUNDLE_VALUE_MAX)
                        return refuse(r, 422, "not-a-bundle", where, "The value has more than %zu bytes.",
                                      BUNDLE_VALUE_MAX);
                if (s.nodes >= BUNDLE_NODES_MAX)
                        return refuse(r, 422, "not-a-bundle", where, "The value has more than %zu values in it.",
                                      BUNDLE_NODES_MAX);
                if (s.n == 0 && strchr(",}]", b->text.data[b->at]))
                        return refuse(r, 422, "not-a-bundle", where, "A value is missing.");
                length = scan_byte(&s, b->text.data[b->at + s.n]);
        }
        char *text = strndup(b->text.data + b->at, length);
        if (!text)
                return -ENOMEM;
        b->at += length;
        *ret = text;
        return 0;
}

int bundle_read_end(struct bundle_reader *b, struct refusal *r) {
        int k = require(b, 1, r);
        if (k == 0 && b->text.length > b->at)
                return refuse(r, 422, "not-a-bundle", "", "There is more after the bundle's end.");
        return k;
}
