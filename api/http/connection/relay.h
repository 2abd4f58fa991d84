/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Accepts a listener's clients, and relays between each and the HTTP library, which has one end of a socket pair: the
 * client's bytes pass a gate (gate.h), the library's bytes are forwarded unchanged. The library reads its sockets
 * itself, ahead of what it parses, so that no other code could check the bytes first.
 *
 * The response to a request that the gate refuses is sent when the library has responded to those before it, and the
 * connection is closed then. The library drops what it has not responded to when it reads the end of the stream, so the
 * end is forwarded only when the response to the last whole request is on its way. A client that reads nothing for
 * RELAY_STALLED_NS is disconnected, however slowly another reads. The relay is one thread, and its memory is
 * RELAY_BUFFER bytes for each client.
 */

#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RELAY_CLIENTS_MAX 256u
#define RELAY_BUFFER 4096u
#define RELAY_STALLED_NS (10 * NSEC_PER_SEC)
#define RELAY_CROWDED_NS NSEC_PER_SEC /* so long where others wait for its place */

struct relay;

struct relay_options {
        int fd;           /* listening, non-blocking; stays the caller's */
        unsigned clients; /* at once, RELAY_CLIENTS_MAX at most */
        /* The library's end, which it owns from here on, also when it fails. User and address as peers_get() takes
         * them; the number is the client's, and never used again. 0 or negative errno. */
        int (*accepted)(void *userdata, int fd, const char *user, const char *address, uint64_t number);
        /* The whole response for a refusal, malloc()ed, and counted as sent; NULL: no memory. */
        char *(*refused)(void *userdata, const struct refusal *r, size_t *ret_length);
        void *userdata;
};

int relay_new(struct relay **ret, const struct relay_options *o);
/* To be called when the response to a client's next request is known to the library, which from then on reads nothing
 * before it has sent it. Of a client that has gone it changes nothing. May be called from any thread. */
void relay_responded(struct relay *r, uint64_t number);
/* Whether that client has taken nothing of its answers for RELAY_CROWDED_NS. May be called from any thread. */
bool relay_stands_still(struct relay *r, uint64_t number);
/* Whether that client has left, so that nobody will take its answers; one that only sends no more has not. May be
 * called from any thread. */
bool relay_has_gone(struct relay *r, uint64_t number);
void relay_quiesce(struct relay *r); /* stops accepting */
/* After the library has closed all its ends: what it sent is still delivered until the deadline (CLOCK_MONOTONIC).
 * NULL-safe. */
void relay_free(struct relay *r, uint64_t deadline_ns);
