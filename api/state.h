/* SPDX-License-Identifier: MIT */
#pragma once

/* The state of a running API, private to the files of api/. */

#include "api/http/connection/budget.h"
#include "api/http/connection/peers.h"
#include "api/http/http.h"
#include "daemon/service/service.h"

#include <pthread.h>
#include <stdatomic.h>

#define API_HOSTS_MAX 32u

enum { LISTENER_TCP, LISTENER_LOCAL, LISTENER_COUNT };

struct assets;

struct api {
        struct service *service;
        uint64_t started_ns; /* of this process: another one may be of another version, or have another store */
        char *token;
        char *hosts[API_HOSTS_MAX]; /* Host values that are ours, over TCP */
        size_t n_hosts;
        struct assets *assets;
        char *openapi; /* made once */
        size_t openapi_length;
        int fds[LISTENER_COUNT]; /* not served yet, or -1 */
        unsigned clients;        /* of each listener, at once */
        struct peer_limits limits[LISTENER_COUNT];
        size_t body_max;      /* bytes of any request's body; REQUEST_FILE_MAX where memory is not limited */
        struct budget bodies; /* of all that are held at once */
        _Atomic(struct http *) listeners[LISTENER_COUNT]; /* NULL: not served, or not yet */
        pthread_mutex_t tcp_problem_lock;
        char *tcp_problem;     /* why TCP is not served yet, or NULL */
        atomic_bool importing; /* a bundle is taken in: one at a time, as its JSON takes many times its bytes */
        atomic_uint_fast64_t responses[6]; /* by hundreds of the status; [0] is not used */
};
