/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_RELAY_H
#define IPCLAB_API_RELAY_H

/*
 * Accepts a listener's clients, and stands between each and the HTTP library, which gets one end of a socket pair: what
 * the client sends goes through a gate (gate.h), what the library sends goes on as it is. The library reads from its
 * sockets by itself, ahead of what it parses, so that nobody else could look first.
 *
 * A request that the gate refuses is answered when the library has answered those before it, and with that the
 * connection ends. A client that takes nothing for RELAY_STALLED_NS is dropped. One thread, without memory of its own
 * but for RELAY_BUFFER bytes of each client's.
 */

#include "schema/refusal.h"

#include <stdint.h>
#include <sys/socket.h>

#define RELAY_CLIENTS_MAX 256u
#define RELAY_BUFFER 4096u
#define RELAY_STALLED_NS (10 * NSEC_PER_SEC)

struct relay;

struct relay_options {
        int fd; /* listening, non-blocking; stays the caller's */
        /* The library's end, which it owns from here on, also when it fails. Address and length are of the TCP peer; of
         * a unix one, AF_UNIX with its uid in sun_path. 0 or negative errno. */
        int (*accepted)(void *userdata, int fd, const struct sockaddr *address, socklen_t length);
        /* The whole response for a refusal, malloc()ed, and counted as sent; NULL: no memory. */
        char *(*refused)(void *userdata, const struct refusal *r, size_t *ret_length);
        void *userdata;
};

int relay_new(struct relay **ret, const struct relay_options *o);
void relay_quiesce(struct relay *r); /* accepts nobody any more */
/* After the library has closed all its ends: what it sent is still delivered until the deadline (CLOCK_MONOTONIC).
 * NULL-safe. */
void relay_free(struct relay *r, uint64_t deadline_ns);

#endif
