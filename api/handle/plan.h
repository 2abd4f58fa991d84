/* SPDX-License-Identifier: MIT */
#pragma once

#include "api/state.h"

/* Answers a POST of an experiment with what it would be; key: NULL, or the Idempotency-Key. 0; negative errno with *r.
 */
int respond_plan(struct api *a, const struct request *q, const char *key, struct response *p, struct refusal *r);
