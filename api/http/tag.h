/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Entity tags (RFC 9110, 8.8.3 and 13.1.2): a client that has the current form of what it requests receives 304 in
 * place of the body.
 */

#include "api/http/request.h"
#include "api/http/response.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether If-None-Match names the tag, which is given with its quotation marks: a list of tags, weak or not, or "*". */
bool tag_is_known(const struct request *q, const char *tag);

/*
 * Before its body is compressed: tags the response to a GET or HEAD whose body is whole, by what the body has, so that
 * nothing is answered with 304 that has changed; and takes the body out where the client has it. A stream is made while
 * it is sent: it has the tag that its handler gave it by tag_version(), or none.
 */
void tag_response(const struct request *q, struct response *p);

/*
 * Tags a response that is not made yet, of which the content follows from the request, the type, and what `version`
 * identifies. true: the client has it; the response is 304, and has no body to be made.
 */
bool tag_version(const struct request *q, struct response *p, const char *type, uint64_t version);
