/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The open connections of one listener, and the deadlines that the HTTP library does not have: its own timeout starts
 * afresh with every byte, so that a client that sends byte by byte holds a connection for ever. Here a request has an
 * absolute deadline, and when all connections are in use (peers.h) the one that has waited longest for its client to
 * send a request is closed.
 *
 * A thread ends late connections by shutting the socket down; the library then notices and closes it. All functions may
 * be called from any thread.
 */

#include "api/http/connection/peers.h"

#include <stdint.h>

enum connection_state {
        CONNECTION_FRESH,  /* no whole request line was received yet */
        CONNECTION_IDLE,   /* between two requests */
        CONNECTION_HEAD,   /* the request line was received, headers follow */
        CONNECTION_BODY,   /* the headers were received, the body follows */
        CONNECTION_BUSY,   /* the request is handled or its response sent */
        CONNECTION_STREAM, /* events are sent, without a deadline */
};

struct connection_limits {
        uint64_t head_ns;             /* for a request's head, and for the first request line */
        uint64_t body_ns;             /* for its body */
        uint64_t idle_ns;             /* between two requests */
        uint64_t busy_ns;             /* a response this old is cut off when all connections are in use */
        const char *timeout_response; /* whole HTTP response for a request past its deadline; borrowed */
        size_t timeout_length;
        const char *full_response[PEER_LEVELS]; /* the same for a connection above a limit, by the limit's level */
        size_t full_length[PEER_LEVELS];
        void (*tick)(void *userdata); /* called about once a second while there are connections */
        /* One of the responses above was sent. Must only count: all connections wait for it. */
        void (*answered)(void *userdata, unsigned status);
        /* Whether the client with that number takes nothing of its answers. Must not call back. */
        bool (*stands_still)(void *userdata, uint64_t number);
        void *userdata;
};

struct connection;
struct connections;

int connections_new(struct connections **ret, const struct connection_limits *limits);
/* After the HTTP library has closed every connection. NULL-safe. */
void connections_free(struct connections *c);

/* Takes a share of the peer's connections, and a reference to it; the number is the client's. NULL: no memory; the
 * connection must be shut down by the caller. */
struct connection *connections_add(struct connections *c, int fd, struct peer *peer, uint64_t number);
void connections_remove(struct connections *c, struct connection *connection); /* before its fd is closed */

/* False: its deadline passed, or it was closed for another one; do not use it any more. */
bool connection_enter(struct connections *c, struct connection *connection, enum connection_state state);

struct peer *connection_peer(const struct connection *connection);

/* Whether the other side has closed its end. */
bool connection_hung_up(const struct connection *connection);

/* Writes a whole response past the HTTP library and ends the connection, for refusals that the library cannot send. */
void connection_refuse(struct connections *c, struct connection *connection, const char *text, size_t length);

unsigned connections_count(struct connections *c);
/* Shuts down those that wait for a request (all = false), or every one. */
void connections_shutdown(struct connections *c, bool all);
