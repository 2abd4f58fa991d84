/* SPDX-License-Identifier: MIT */
#ifndef IPCLAB_API_CONNECTIONS_H
#define IPCLAB_API_CONNECTIONS_H

/*
 * The open connections of one listener, and the deadlines that the HTTP library does not have: its own timeout starts
 * afresh with every byte, so that a client that drips them holds a connection for ever. Here a request has an absolute
 * time to arrive in, and a full house makes room by closing the connection that has waited longest without a request.
 *
 * A thread ends what is late by shutting the socket down; the library then notices and closes it. All functions may be
 * called from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum connection_state {
        CONNECTION_FRESH,  /* nothing came yet, or not a whole request line */
        CONNECTION_IDLE,   /* between two requests */
        CONNECTION_HEAD,   /* request line is there, headers are coming */
        CONNECTION_BODY,   /* headers are there, the body is coming */
        CONNECTION_BUSY,   /* being handled or answered */
        CONNECTION_STREAM, /* sends events, for as long as it likes */
};

struct connection_limits {
        unsigned total;               /* connections at once, after which room is made */
        unsigned per_peer;            /* of one address (TCP) or user (unix) */
        uint64_t head_ns;             /* for a request's head, and for the first request line */
        uint64_t body_ns;             /* for its body */
        uint64_t idle_ns;             /* between two requests */
        uint64_t busy_ns;             /* an answer this old gives way when the house is full */
        const char *timeout_response; /* whole HTTP response for a request that came too slowly; borrowed */
        size_t timeout_length;
        const char *full_response; /* the same for a connection that there is no room for */
        size_t full_length;
        void (*tick)(void *userdata); /* called about once a second while there are connections */
        /* One of the responses above was sent. Must only count: all connections wait for it. */
        void (*answered)(void *userdata, unsigned status);
        void *userdata;
};

struct connection;
struct connections;

int connections_new(struct connections **ret, const struct connection_limits *limits);
/* After the HTTP library has let go of every connection. NULL-safe. */
void connections_free(struct connections *c);

/* peer: as relay.h gives it; NULL: unknown. NULL: no memory; the connection must be shut down by the caller. */
struct connection *connections_add(struct connections *c, int fd, const struct sockaddr *peer);
void connections_remove(struct connections *c, struct connection *connection); /* before its fd is closed */

/* False: its time ran out, or it had to give way: touch it no more. */
bool connection_enter(struct connections *c, struct connection *connection, enum connection_state state);

/* Whether the other side has closed its end. */
bool connection_hung_up(const struct connection *connection);

/* Writes a whole response past the HTTP library and ends the connection; for refusals that the library has no moment
 * for. */
void connection_refuse(struct connections *c, struct connection *connection, const char *text, size_t length);

unsigned connections_count(struct connections *c);
/* Shuts down those that wait for a request (all = false), or every one. */
void connections_shutdown(struct connections *c, bool all);

#endif
