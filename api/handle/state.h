/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_STATE_H
#define IPCLAB_API_STATE_H

/* What one running API consists of; shared by the files of api/, and by nobody else. */

#include "api/api.h"
#include "api/http/budget.h"
#include "api/http/http.h"
#include "daemon/service/service.h"

#include <stdatomic.h>

#define API_HOSTS_MAX 32u
#define API_SUBSCRIBERS_MAX 32u /* event streams at once, of each listener */

enum { LISTENER_TCP, LISTENER_LOCAL, LISTENER_COUNT };

struct assets;

struct api {
        struct service *service;
        char *token;
        char *hosts[API_HOSTS_MAX]; /* Host values that are ours, over TCP */
        size_t n_hosts;
        struct assets *assets;
        char *openapi; /* made once */
        size_t openapi_length;
        int fds[LISTENER_COUNT]; /* not served yet, or -1 */
        struct http *listeners[LISTENER_COUNT];
        atomic_uint subscribers[LISTENER_COUNT];
        struct budget budgets[LISTENER_COUNT];
        struct budget held[LISTENER_COUNT]; /* answers that are held as data while bodies are made of them */
        atomic_uint_fast64_t responses[6];  /* by hundreds of the status; [0] is not used */
};

#endif
