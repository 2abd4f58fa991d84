/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A body that is made portion by portion while the client takes it: lists, tables, samples and events. The first
 * portion is made at once, so that what goes wrong there is answered with a problem; a list that it holds as a whole is
 * answered with its length. Each portion is counted among the peer's bytes until it has been sent. A client that
 * accepts gzip gets the portions compressed, but for events.
 */

#include "api/http/response.h"
#include "api/http/text.h"

/* A source ends a portion when it has this much: as much as a page of the store has (STORE_PAGE_BYTES), so that one
 * page fills it and little of what was read is thrown away. */
#define FEED_PORTION ((size_t) 64 << 10)

enum { FEED_MORE, FEED_LAST };

struct feed_source {
        /* Appends the next portion to *out, in a thread that may wait. FEED_MORE, FEED_LAST, or a negative errno, with
         * *r filled when there are words for the client. */
        int (*fill)(void *userdata, struct text *out, struct refusal *r);
        void (*free)(void *userdata);
        bool waits; /* an event stream: after an empty portion http_stream_wake() wakes it; else comes the next one */
};

/* Answers 200 with the body. Owns userdata from here on, also when it fails. `type` is the Content-Type; source is
 * static. */
int feed_respond(const struct request *q, struct response *p, const char *type, const struct feed_source *source,
                 void *userdata, struct refusal *r);
