/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_DISPATCH_H
#define IPCLAB_API_DISPATCH_H

/* From a request to its route's handler, with the guards on the way; http.c calls these through struct http_handler. */

#include "api/handle/state.h"

bool dispatch_admit(void *userdata, struct request *q, struct response *p);
void dispatch_handle(void *userdata, struct request *q, struct response *p);
/* q NULL: a text for later, which is no answer until dispatch_count() says so. */
void dispatch_refuse(void *userdata, const struct request *q, const struct refusal *r, struct response *p);
void dispatch_count(void *userdata, unsigned status);

#endif
