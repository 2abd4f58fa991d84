/* SPDX-License-Identifier: MIT */
#pragma once

/* Content negotiation by Accept (RFC 9110, 12.5.1) and Accept-Encoding (12.5.3). */

#include "api/http/request.h"

/* The offered type (index into `types`, up to a NULL) that the client likes best, the first among equals; without an
 * Accept header the first. -EINVAL with *r (406) when it accepts none of them. */
int negotiate(const struct request *q, const char *const types[], struct refusal *r);

/* Whether the client takes a body in that content coding ("gzip"): 1 or 0. Without an Accept-Encoding header it does
 * not: a client that sends none seldom decodes any. -ENOMEM. */
int negotiate_coding(const struct request *q, const char *coding);
