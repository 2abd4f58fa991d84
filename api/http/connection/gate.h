/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A filter in front of the HTTP library: only requests in HTTP/1.0 and 1.1 (RFC 9112) whose framing has one meaning
 * pass. The library refuses others in HTML of its own, one of them twice, and cuts text at a NUL; here they are refused
 * with a problem as elsewhere. A byte passes as soon as it is known to be part of a well-formed request, so that no
 * byte is delayed, and the library receives only whole, well-formed lines.
 */

#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GATE_LINE_MAX 8192u  /* bytes of a request line */
#define GATE_HEAD_MAX 16384u /* bytes of a request's header fields, or of its trailers */
#define GATE_FIELDS_MAX 100u /* of these */
#define GATE_EMPTY_MAX 8u    /* empty lines before a request */
#define GATE_PARTS_MAX 100u  /* parameters of a target, or cookies: the library splits both, in little memory */

struct gate {
        enum {
                GATE_LINE,
                GATE_LINE_END,
                GATE_FIELD,
                GATE_NAME,
                GATE_VALUE,
                GATE_VALUE_END,
                GATE_HEAD_END,
                GATE_BODY,
                GATE_CHUNK_SIZE,
                GATE_CHUNK_EXTENSION,
                GATE_CHUNK_SIZE_END,
                GATE_CHUNK,
                GATE_CHUNK_CR,
                GATE_CHUNK_LF,
        } state;
        uint32_t line, head; /* bytes so far */
        uint32_t fields;
        uint32_t empty;  /* lines before the request's own */
        uint32_t spaces; /* of the request line */
        uint32_t marks;  /* between parameters, or cookies */
        char word[32];   /* of the request line the one after the last space; a field's name; a value */
        uint32_t word_length;
        enum { GATE_OTHER, GATE_CONTENT_LENGTH, GATE_TRANSFER_ENCODING, GATE_COOKIE } field;
        bool http_1_0, has_length, chunked, trailers;
        bool drops;        /* the byte that was read last */
        uint64_t left;     /* of the body, or of the chunk */
        bool in_body;      /* a whole head has passed, its body has not */
        uint64_t requests; /* that have passed in whole */
};

/* How many bytes may pass: the first of data when it returns. *ret_read is how many of the n these were made of; fewer
 * than n when the next one is refused, with *r filled. White space behind the value of Content-Length and
 * Transfer-Encoding does not pass: it is no part of the value (RFC 9112, 5), and the library takes it for one. A zeroed
 * gate expects a connection's first request; one that refused is not used again. */
size_t gate_pass(struct gate *g, char *data, size_t n, size_t *ret_read, struct refusal *r);
