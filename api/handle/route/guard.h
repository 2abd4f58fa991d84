/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Access control by a request's head. Over TCP every program of the machine can reach the API, web pages in a browser
 * included: a page of another origin must neither read (its own name rebound to 127.0.0.1: Host) nor write (Origin,
 * content type, token). The unix socket is guarded by its file mode instead.
 *
 * All return 0, or -EINVAL with *r filled.
 */

#include "api/state.h"

/* The gate (gate.h) has already refused requests with an ambiguous framing. */
int guard_expectation(const struct request *q, struct refusal *r);
int guard_host(const struct api *a, const struct request *q, struct refusal *r);
int guard_origin(const struct request *q, struct refusal *r);
int guard_token(const struct api *a, const struct request *q, struct refusal *r);

enum body_rule { BODY_NONE, BODY_OPTIONAL, BODY_JSON, BODY_GZIP };
size_t guard_body_max(const struct api *a, enum body_rule rule); /* bytes */
int guard_body(const struct api *a, const struct request *q, enum body_rule rule, struct refusal *r);
