/* SPDX-License-Identifier: MIT */

#include "api/http/response.h"

#include "api/http/connection/peers.h"
#include "api/http/stream.h"
#include "schema/util.h"

#include <malloc.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

/* From here on malloc() takes a block from the system, and gives it back when it is freed; unless it finds room among
 * blocks that were freed before, where the block's pages stay with the process, behind a small one that is in use. */
#define LARGE ((size_t) 128 << 10)

void response_made(size_t length) {
        if (length >= LARGE)
                (void) malloc_trim(0);
}

void response_reset(struct response *p) {
        pairs_deinit(&p->headers);
        if (!p->borrowed)
                free(p->body);
        http_stream_free(p->stream);
        peer_give(p->peer, PEER_BODY_BYTES, p->cost);
        *p = (struct response){0};
}

void response_deinit(struct response *p) {
        response_reset(p);
}

void response_header(struct response *p, const char *name, const char *format, ...) {
        char value[1024];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(value, sizeof(value), format, args);
        va_end(args);
        int k = n < 0 || (size_t) n >= sizeof(value) ? -E2BIG
                                                     : pairs_add(&p->headers, name, strlen(name), value, (size_t) n);
        if (k < 0 && p->error == 0)
                p->error = k;
}

void response_vary(struct response *p, const char *name) {
        for (size_t i = 0; i < p->headers.n; i++)
                if (strcasecmp(p->headers.items[i].name, "Vary") == 0) {
                        char *both = NULL;
                        if (asprintf(&both, "%s, %s", p->headers.items[i].value, name) < 0) {
                                p->error = p->error < 0 ? p->error : -ENOMEM;
                                return;
                        }
                        free(p->headers.items[i].value);
                        p->headers.items[i].value = both;
                        return;
                }
        response_header(p, "Vary", "%s", name);
}

void response_body(struct response *p, int status, const char *type, char *body, size_t length) {
        p->status = status;
        p->body = body;
        p->length = length;
        response_header(p, "Content-Type", "%s", type);
}

int response_json(struct response *p, int status, struct json_writer *w) {
        char *text;
        size_t length;
        int k = json_writer_steal(w, &text, &length);
        if (k < 0)
                return k;
        response_body(p, status, "application/json", text, length);
        return 0;
}

const char *response_get_header(const struct response *p, const char *name) {
        for (size_t i = 0; i < p->headers.n; i++)
                if (strcasecmp(p->headers.items[i].name, name) == 0)
                        return p->headers.items[i].value;
        return NULL;
}

char *response_print(const struct response *p, size_t *ret_length) {
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);
        if (!f)
                return NULL;
        fprintf(f, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Length: %zu\r\n", p->status,
                status_phrase(p->status), p->length);
        for (size_t i = 0; i < p->headers.n; i++)
                fprintf(f, "%s: %s\r\n", p->headers.items[i].name, p->headers.items[i].value);
        fprintf(f, "\r\n");
        if (p->length > 0)
                fwrite(p->body, 1, p->length, f);
        if (fclose(f) != 0) {
                free(text);
                return NULL;
        }
        *ret_length = length;
        return text;
}

const char *status_phrase(int status) {
        static const struct {
                int status;
                const char *phrase;
        } phrases[] = {
                {200, "OK"},
                {201, "Created"},
                {204, "No Content"},
                {304, "Not Modified"},
                {400, "Bad Request"},
                {401, "Unauthorized"},
                {403, "Forbidden"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {406, "Not Acceptable"},
                {408, "Request Timeout"},
                {409, "Conflict"},
                {411, "Length Required"},
                {413, "Content Too Large"},
                {414, "URI Too Long"},
                {415, "Unsupported Media Type"},
                {417, "Expectation Failed"},
                {421, "Misdirected Request"},
                {422, "Unprocessable Content"},
                {429, "Too Many Requests"},
                {431, "Request Header Fields Too Large"},
                {500, "Internal Server Error"},
                {501, "Not Implemented"},
                {503, "Service Unavailable"},
                {505, "HTTP Version Not Supported"},
                {507, "Insufficient Storage"},
        };
        for (size_t i = 0; i < ELEMENTS(phrases); i++)
                if (phrases[i].status == status)
                        return phrases[i].phrase;
        return "Error";
}
