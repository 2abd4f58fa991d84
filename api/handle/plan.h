/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_PLAN_H
#define IPCLAB_API_PLAN_H

#include "api/handle/state.h"

/* Answers a POST of an experiment with what it would be; key: NULL, or the Idempotency-Key. 0; negative errno with *r.
 */
int respond_plan(struct api *a, const struct request *q, const char *key, struct response *p, struct refusal *r);

#endif
