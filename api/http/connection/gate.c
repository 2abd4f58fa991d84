/* SPDX-License-Identifier: MIT */

/* Follows requests byte by byte, by RFC 9112; called by relay.c. */

#include "api/http/connection/gate.h"

#include "schema/util.h"

#include <string.h>
#include <strings.h>

static int malformed(struct refusal *r, const char *what) {
        return refuse(r, 400, "malformed-request", "", "%s", what);
}

static int too_many(struct refusal *r, int status, const char *slug, const char *name, uint32_t most) {
        (void) refuse(r, status, slug, "", "The request has more than %u %s.", most, name);
        snprintf(r->limit, sizeof(r->limit), "%s", name);
        snprintf(r->limit_value, sizeof(r->limit_value), "%u", most);
        return -EINVAL;
}

static bool is_token_byte(char c) {
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
               (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_control(char c) {
        return (unsigned char) c < 0x20 || c == 0x7f;
}

/* A word that is longer than every known one is none of them. */
static void add_to_word(struct gate *g, char c) {
        if (g->word_length < sizeof(g->word) - 1)
                g->word[g->word_length++] = c;
        g->word[g->word_length] = '\0';
}

static void clear_word(struct gate *g) {
        g->word_length = 0;
        g->word[0] = '\0';
}

/* ---- request line ---- */

static int end_line(struct gate *g, struct refusal *r) {
        const char *v = g->word;
        bool is_http = strncmp(v, "HTTP/", 5) == 0 && strlen(v) == 8 && v[6] == '.';
        if (g->spaces > 2 && is_http)
                return refuse(r, 400, "malformed-target", "",
                              "The request target contains the byte 0x20, which must be percent-encoded.");
        if (g->spaces != 2 || !is_http)
                return malformed(r, "The request line is not METHOD TARGET HTTP/1.1.");
        g->marks = 0;
        g->http_1_0 = strcmp(v, "HTTP/1.0") == 0;
        if (!g->http_1_0 && strcmp(v, "HTTP/1.1") != 0)
                return refuse(r, 505, "http-version-not-supported", "",
                              "HTTP/1.1 and HTTP/1.0 are served here, not %s.", v);
        return 0;
}

static int on_line(struct gate *g, char c, struct refusal *r) {
        if (c == '\r' && g->line == 0 && g->empty++ == GATE_EMPTY_MAX)
                return malformed(r, "Too many empty lines stand before the request line.");
        if (c == '\r') {
                g->state = GATE_LINE_END;
                return g->line == 0 ? 0 : end_line(g, r);
        }
        if (g->line++ == GATE_LINE_MAX) {
                char limit[16];
                snprintf(limit, sizeof(limit), "%u", GATE_LINE_MAX);
                refuse_limit(r, "", "request line bytes", limit, "", "The request line is longer than %u bytes.",
                             GATE_LINE_MAX);
                r->status = 414;
                snprintf(r->code, sizeof(r->code), "target-too-long");
                return -EINVAL;
        }
        if (is_control(c))
                return refuse(r, 400, "malformed-target", "",
                              "The request line contains the byte 0x%02x, which must be percent-encoded.",
                              (unsigned char) c);
        if (c == ' ') {
                if (g->line == 1)
                        return malformed(r, "The request line begins with a space.");
                if (g->word_length == 0)
                        return refuse(r, 400, "malformed-target", "", "The request line has two spaces in a row.");
                g->spaces++;
                clear_word(g);
                return 0;
        }
        if (g->spaces == 0 && !is_token_byte(c))
                return malformed(r, "The method contains a character that is not allowed there.");
        if (c == '&' && ++g->marks == GATE_PARTS_MAX)
                return too_many(r, 400, "malformed-target", "parameters", GATE_PARTS_MAX);
        add_to_word(g, c);
        return 0;
}

/* ---- header fields ---- */

static int too_large(struct refusal *r, const char *name, uint32_t most) {
        return too_many(r, 431, "headers-too-large", name, most);
}

static int end_length(struct gate *g, struct refusal *r) {
        if (g->has_length)
                return malformed(r, "There is more than one Content-Length.");
        g->has_length = true;
        /* 2^63 has 19 digits; the word is cut at 31 */
        if (g->word[0] == '\0' || g->word[strspn(g->word, "0123456789")] != '\0' || strlen(g->word) > 18)
                return malformed(r, "Content-Length is not a number of bytes.");
        g->left = strtoull(g->word, NULL, 10);
        return 0;
}

static int end_value(struct gate *g, struct refusal *r) {
        if (g->word_length > 0 && g->word[g->word_length - 1] == ' ')
                g->word[--g->word_length] = '\0';
        if (g->trailers || g->field == GATE_OTHER || g->field == GATE_COOKIE)
                return 0;
        if (g->field == GATE_CONTENT_LENGTH)
                return end_length(g, r);
        if (g->http_1_0)
                return malformed(r, "HTTP/1.0 has no Transfer-Encoding.");
        if (g->chunked || strcasecmp(g->word, "chunked") != 0)
                return refuse(r, 501, "not-implemented", "",
                              "The only Transfer-Encoding understood is \"chunked\", once.");
        g->chunked = true;
        return 0;
}

static int on_name(struct gate *g, char c, struct refusal *r) {
        if (c != ':') {
                if (!is_token_byte(c))
                        return malformed(r, "A header's name contains a character that is not allowed there.");
                add_to_word(g, c);
                return 0;
        }
        g->field = strcasecmp(g->word, "Content-Length") == 0      ? GATE_CONTENT_LENGTH
                   : strcasecmp(g->word, "Transfer-Encoding") == 0 ? GATE_TRANSFER_ENCODING
                   : strcasecmp(g->word, "Cookie") == 0            ? GATE_COOKIE
                                                                   : GATE_OTHER;
        g->state = GATE_VALUE;
        clear_word(g);
        return 0;
}

static int on_field(struct gate *g, char c, struct refusal *r) {
        if (c == '\r') {
                g->state = GATE_HEAD_END;
                return 0;
        }
        if (!is_token_byte(c))
                return malformed(r, c == ' ' || c == '\t' ? "A header is folded over lines." : "A header has no name.");
        if (g->fields++ == GATE_FIELDS_MAX)
                return too_large(r, "header fields", GATE_FIELDS_MAX);
        g->state = GATE_NAME;
        clear_word(g);
        add_to_word(g, c);
        return 0;
}

static int on_value(struct gate *g, char c, struct refusal *r) {
        if (c == '\r') {
                g->state = GATE_VALUE_END;
                return end_value(g, r);
        }
        if (is_control(c) && c != '\t')
                return malformed(r, "A header's value contains a control character.");
        if (g->field == GATE_COOKIE && (c == ';' || c == ',') && ++g->marks == GATE_PARTS_MAX)
                return too_large(r, "cookies", GATE_PARTS_MAX);
        bool blank = c == ' ' || c == '\t', last_blank = g->word_length > 0 && g->word[g->word_length - 1] == ' ';
        if (g->word_length > 0 && blank)
                g->drops = g->field == GATE_CONTENT_LENGTH || g->field == GATE_TRANSFER_ENCODING;
        if (!blank)
                add_to_word(g, c);
        else if (g->word_length > 0 && !last_blank)
                add_to_word(g, ' ');
        return 0;
}

/* ---- bodies ---- */

static void next_request(struct gate *g) {
        *g = (struct gate){.state = GATE_LINE, .requests = g->requests + 1};
}

static int end_head(struct gate *g, struct refusal *r) {
        if (g->trailers) {
                next_request(g);
                return 0;
        }
        if (g->chunked && g->has_length)
                return malformed(r, "Content-Length and Transfer-Encoding exclude each other.");
        clear_word(g);
        g->in_body = true;
        if (g->chunked)
                g->state = GATE_CHUNK_SIZE;
        else if (g->left > 0)
                g->state = GATE_BODY;
        else
                next_request(g);
        return 0;
}

static int on_chunk_size(struct gate *g, char c, struct refusal *r) {
        if (c != '\r' && c != ';') {
                if (g->word_length == 8 || c == '\0' || !strchr("0123456789abcdefABCDEF", c))
                        return malformed(r, "A chunk's size is not a hexadecimal number of at most 8 digits.");
                add_to_word(g, c);
                return 0;
        }
        if (g->word_length == 0)
                return malformed(r, "A chunk has no size.");
        g->left = strtoull(g->word, NULL, 16);
        g->line = 0;
        g->state = c == ';' ? GATE_CHUNK_EXTENSION : GATE_CHUNK_SIZE_END;
        return 0;
}

static int on_chunk_extension(struct gate *g, char c, struct refusal *r) {
        if (c == '\r')
                g->state = GATE_CHUNK_SIZE_END;
        else if (g->line++ == GATE_LINE_MAX || (is_control(c) && c != '\t'))
                return malformed(r, "A chunk's extension is too long, or contains a control character.");
        return 0;
}

static void begin_chunk(struct gate *g) {
        clear_word(g);
        g->trailers = g->left == 0;
        g->head = g->fields = 0;
        g->state = g->trailers ? GATE_FIELD : GATE_CHUNK;
}

/* ---- one byte of anything but a body ---- */

static int expect(struct gate *g, char c, char wanted, int next, struct refusal *r) {
        if (c != wanted)
                return malformed(r, "A line does not end with CR and LF.");
        g->state = next;
        return 0;
}

static int on_byte(struct gate *g, char c, struct refusal *r) {
        int k = 0;
        if (g->state >= GATE_FIELD && g->state <= GATE_HEAD_END && g->head++ >= GATE_HEAD_MAX)
                return too_large(r, "header bytes", GATE_HEAD_MAX);
        switch (g->state) {
        case GATE_LINE:
                return on_line(g, c, r);
        case GATE_LINE_END:
                return expect(g, c, '\n', g->line > 0 ? GATE_FIELD : GATE_LINE, r);
        case GATE_FIELD:
                return on_field(g, c, r);
        case GATE_NAME:
                return on_name(g, c, r);
        case GATE_VALUE:
                return on_value(g, c, r);
        case GATE_VALUE_END:
                return expect(g, c, '\n', GATE_FIELD, r);
        case GATE_HEAD_END:
                k = expect(g, c, '\n', GATE_LINE, r);
                return k < 0 ? k : end_head(g, r);
        case GATE_CHUNK_SIZE:
                return on_chunk_size(g, c, r);
        case GATE_CHUNK_EXTENSION:
                return on_chunk_extension(g, c, r);
        case GATE_CHUNK_SIZE_END:
                k = expect(g, c, '\n', GATE_CHUNK, r);
                if (k >= 0)
                        begin_chunk(g);
                return k;
        case GATE_CHUNK_CR:
                return expect(g, c, '\r', GATE_CHUNK_LF, r);
        case GATE_CHUNK_LF:
                return expect(g, c, '\n', GATE_CHUNK_SIZE, r);
        case GATE_BODY:
        case GATE_CHUNK:
                break;
        }
        return 0;
}

size_t gate_pass(struct gate *g, char *data, size_t n, size_t *ret_read, struct refusal *r) {
        size_t i = 0, kept = 0;
        while (i < n) {
                if (g->state != GATE_BODY && g->state != GATE_CHUNK) {
                        g->drops = false;
                        if (on_byte(g, data[i], r) < 0)
                                break;
                        data[kept] = data[i++];
                        kept += !g->drops;
                        continue;
                }
                size_t some = g->left < n - i ? (size_t) g->left : n - i;
                memmove(data + kept, data + i, some);
                g->left -= some;
                i += some;
                kept += some;
                if (g->left == 0 && g->state == GATE_CHUNK)
                        g->state = GATE_CHUNK_CR;
                else if (g->left == 0)
                        next_request(g);
        }
        *ret_read = i;
        return kept;
}
