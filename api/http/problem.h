/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Refusals as application/problem+json (RFC 9457): type ("urn:ipclab:problem:" and the refusal's slug), title, status,
 * detail, instance, and where they apply pointer, limit {"name", "value"} and value.
 */

#include "api/http/response.h"

#define PROBLEM_TYPE_PREFIX "urn:ipclab:problem:"

/* Replaces what the response held. Without memory the response has a status and no body. `instance` may be NULL. */
void problem_respond(struct response *p, const struct refusal *r, const char *instance);

/* A refusal for a negative errno without a sentence: 500, or 503 for a deadline. */
void problem_from_errno(struct refusal *r, int error);
