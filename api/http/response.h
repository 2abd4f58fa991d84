/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A response as handlers make it: status, headers, and a body that is either text or a stream that is read as the
 * client takes it.
 */

#include "api/http/request.h"
#include "schema/json/json.h"

#include <sys/types.h>

struct peer;
struct http_stream; /* stream.h */

struct response {
        int status;
        struct pairs headers;
        char *body; /* malloc()ed, or borrowed for as long as the server runs */
        size_t length;
        bool borrowed;
        struct http_stream *stream; /* instead of a body; belongs to the response */
        struct peer *peer;          /* the cost is given back to its share of bytes; may be NULL */
        size_t cost;
        int error; /* memory ran out while headers were added: answered with 500 */
};

void response_deinit(struct response *p);
/* Drops what was set so far. */
void response_reset(struct response *p);
void response_header(struct response *p, const char *name, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* Names a field of the request by which the response was chosen; all of them stand in one header. */
void response_vary(struct response *p, const char *name);
/* Takes body over. */
void response_body(struct response *p, int status, const char *type, char *body, size_t length);
/* Takes the writer's text over as application/json; the writer's error when it had one. */
int response_json(struct response *p, int status, struct json_writer *w);
/* Returns the memory from which a body of `length` bytes was made to the system, if the body is large. The caller has
 * freed that memory before. */
void response_made(size_t length);
const char *response_get_header(const struct response *p, const char *name);

/* The whole response as it is sent, with "Connection: close": for responses that do not go through the HTTP library.
 * malloc()ed; NULL without memory. */
char *response_print(const struct response *p, size_t *ret_length);

const char *status_phrase(int status);
