/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An HTTP/1.1 server on one listening socket. http.c is the only file that uses libmicrohttpd; its interface is plain
 * requests and responses.
 *
 * `admit` is called with a request's head, in the server's own thread, and must not wait; `handle` is called with the
 * whole request in a worker's thread, and may wait. Refusals of the server's own are made by `refuse`, so that every
 * response has the same headers.
 */

#include "api/http/connection/budget.h"
#include "api/http/connection/peers.h"
#include "api/http/response.h"
#include "api/http/stream.h"

#define HTTP_BODY_MAX REQUEST_BODY_MAX

struct http;

struct http_handler {
        bool (*admit)(void *userdata, struct request *q, struct response *p); /* false: refused with *p */
        void (*handle)(void *userdata, struct request *q, struct response *p);
        /* A refusal of the server's own. q is NULL when it is made before there is a request, to be sent later. */
        void (*refuse)(void *userdata, const struct request *q, const struct refusal *r, struct response *p);
        void (*count)(void *userdata, unsigned status); /* such a one was sent */
        void *userdata;
};

struct http_options {
        int fd;                           /* listening; the server owns it from a successful start on */
        bool local;                       /* AF_UNIX */
        unsigned clients;                 /* accepted at once, RELAY_CLIENTS_MAX at most */
        const struct peer_limits *limits; /* borrowed */
        struct budget *bodies;            /* that `admit` takes each request's body_cost of; borrowed */
        unsigned workers;                 /* that handle requests */
        unsigned exporters;               /* that make what streams send */
        struct http_handler handler;
};

int http_start(struct http **ret, const struct http_options *o);
/* Stops accepting connections and requests, and ends event streams. NULL-safe, like the next. */
void http_quiesce(struct http *h);
/* Finishes requests under way until the deadline (CLOCK_MONOTONIC), then cuts their connections off. Returns the number
 * of those. */
unsigned http_stop(struct http *h, uint64_t deadline_ns);

size_t http_used(struct http *h, enum peer_share share); /* by all of its clients */
