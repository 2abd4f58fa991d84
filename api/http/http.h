/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_HTTP_H
#define IPCLAB_API_HTTP_H

/*
 * An HTTP/1.1 server on one listening socket. http.c is the only file that uses libmicrohttpd; its interface is plain
 * requests and responses.
 *
 * `admit` is called with a request's head, in the server's own thread, and must not wait; `handle` is called with the
 * whole request in a worker's thread, and may wait. Refusals of the server's own are made by `refuse`, so that every
 * response has the same headers.
 */

#include "api/http/peers.h"
#include "api/http/response.h"

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

/*
 * A response body that is read as the client takes it, by the server's thread.
 *
 * read() fills up to `size` bytes and returns how many, or one of the values below. When it returns HTTP_STREAM_WAIT,
 * work() is called; when that returns false, it is called again after http_stream_wake(), or when the stream has sent
 * nothing for HTTP_STREAM_QUIET_NS, and each second when it is no event stream.
 */
#define HTTP_STREAM_WAIT ((ssize_t) 0)
#define HTTP_STREAM_END ((ssize_t) -1)
#define HTTP_STREAM_BROKEN ((ssize_t) -2) /* the client shall see that the body is not whole */
#define HTTP_STREAM_QUIET_NS (15 * NSEC_PER_SEC)

struct http_stream_ops {
        ssize_t (*read)(void *userdata, char *buffer, size_t size);
        /* Called after HTTP_STREAM_WAIT, in a thread that may wait and does not handle requests: prepares the bytes for
         * read(). False: there are none yet. */
        bool (*work)(void *userdata);
        void (*free)(void *userdata);
        bool waits; /* an event stream: sleeps until it is woken, and ends with its client or the server */
};

/* Owns userdata from here on, also when it fails. ops is static. */
int http_stream_new(struct http_stream **ret, const struct http_stream_ops *ops, void *userdata);
void http_stream_free(struct http_stream *s); /* NULL-safe */
void http_stream_wake(struct http_stream *s); /* from any thread, until the stream's free() was called */

#endif
