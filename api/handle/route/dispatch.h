/* SPDX-License-Identifier: MIT */
#pragma once

/* Dispatches a request to its route's handler, after the guards; http.c calls these through struct http_handler. */

#include "api/state.h"

bool dispatch_admit(void *userdata, struct request *q, struct response *p);
void dispatch_handle(void *userdata, struct request *q, struct response *p);
/* q NULL: the response is prepared for later, and dispatch_count() counts it when it is sent. */
void dispatch_refuse(void *userdata, const struct request *q, const struct refusal *r, struct response *p);
void dispatch_count(void *userdata, unsigned status);
