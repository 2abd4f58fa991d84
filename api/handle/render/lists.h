/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A body of one JSON object that has long lists at its end, made from an answer that is held whole: {head…, "key":
 * [items…], …}. The items are written while the client takes them, and the answer counts among the peer's held bytes
 * until then.
 */

#include "api/state.h"
#include "schema/json/json.h"

struct lists_source {
        const char *const *keys; /* of the lists, in their order; ended by NULL */
        /* Members of the object that is open; at least one. */
        void (*put_head)(struct json_writer *w, const void *answer);
        size_t (*length)(const void *answer, size_t list);
        void (*put_item)(struct json_writer *w, const void *answer, size_t list, size_t i);
        void (*free)(void *answer);
};

/* 0, or the refusal of a peer whose share is used up: check it before the response is made. */
int lists_admit(const struct request *q, struct refusal *r);
/* Answers 200. `bytes`: what the answer takes in memory. Owns the answer from here on, also when it fails; source is
 * static. */
int lists_respond(const struct request *q, struct response *p, const struct lists_source *source, void *answer,
                  size_t bytes, struct refusal *r);
