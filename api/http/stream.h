/* SPDX-License-Identifier: MIT */
#pragma once

#include "schema/util.h"

#include <stdbool.h>
#include <sys/types.h>

struct http_stream;

/*
 * A response body that is read as the client takes it, by the server's thread; the server (http.c) implements it.
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
