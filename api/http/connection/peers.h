/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The resources that the clients of one listener hold, together and each: connections, expensive requests, event
 * streams, and the bytes of requests and of responses that they have not read yet. A client without a token may have
 * many connections, but must not use up all resources.
 *
 * Shares are limited at up to three levels. A peer of the unix socket is a user. A TCP peer is the user of the other
 * end's socket, which the kernel knows on loopback, and its address: 127.0.0.1 is the address of nearly everybody, and
 * one user may have all of 127.0.0.0/8.
 *
 * A share is open until it is used up. Bytes that are taken then may exceed it once, by one body for each thread that
 * makes bodies, so that a body larger than the share can be sent at all; those of requests by one. Any thread may call.
 */

#include "schema/refusal.h"

#include <stdbool.h>
#include <stddef.h>

enum peer_share {
        PEER_CONNECTIONS,
        PEER_DEAR,       /* requests of routes that are marked as dear, until their answers were taken */
        PEER_STREAMS,    /* of events */
        PEER_BODY_BYTES, /* of bodies that are made and not taken yet */
        PEER_HELD_BYTES, /* of answers that are held as data while bodies are made of them */
        PEER_SENT_BYTES, /* of requests' bodies, as announced, until they are answered */
        PEER_SHARES,
};

enum peer_level { PEER_ALL, PEER_USER, PEER_ADDRESS, PEER_LEVELS };

struct peer_limits {
        size_t most[PEER_SHARES][PEER_LEVELS];
};

#define PEER_NAME_MAX 64u

struct peers;
struct peer;

int peers_new(struct peers **ret, const struct peer_limits *limits); /* limits are borrowed */
void peers_free(struct peers *p);                                    /* after the last peer; NULL-safe */
size_t peers_used(struct peers *p, enum peer_share share);

/* user: a uid in digits, or "" when it is not known; address: "" for a peer of the unix socket. NULL: no memory. */
struct peer *peers_get(struct peers *p, const char *user, const char *address);
struct peer *peer_ref(struct peer *peer);
struct peer *peer_unref(struct peer *peer); /* returns NULL */
enum peer_level peer_level(const struct peer *peer);
/* The owner of a connection: the user, whatever the address; the address where the user is not known. NULL of NULL. */
const struct peer *peer_owner(const struct peer *peer);
/* Whether the resources of `peer` count as those of `above`. */
bool peer_is_below(const struct peer *peer, const struct peer *above);

/* The functions below take NULL for a request without a connection, which is not counted. */

/* The level whose share is used up; NULL: it is open. */
const struct peer *peer_full(struct peer *peer, enum peer_share share);
/* Takes n of it, open or not. */
void peer_add(struct peer *peer, enum peer_share share, size_t n);
/* Takes n; or -EAGAIN, with *r (503) naming the share and its limit, when it is used up. */
int peer_take(struct peer *peer, enum peer_share share, size_t n, struct refusal *r);
void peer_give(struct peer *peer, enum peer_share share, size_t n);

/* The place of a body under way among those that wait for PEER_BODY_BYTES: it is too late for a refusal, so that they
 * have the share in the order in which they came, before bodies that are still to begin. */
struct peer_turn {
        struct peer *peer;
        void (*wake)(void *userdata); /* when it may be tried again; with the peers locked, so it calls none of these */
        void *userdata;
        struct peer_turn *prev, *next;
        bool waits;
};

/* True: a portion may be made, whose bytes peer_add() takes; false: it waits from now on, at its place. */
bool peer_turn_begin(struct peer_turn *t);
void peer_turn_end(struct peer_turn *t); /* leaves its place, if any, to the next one */

/* 503 in the words of a share that is used up. Returns -EAGAIN. */
int peer_refuse(const struct peer_limits *limits, enum peer_level level, enum peer_share share, struct refusal *r);

/* Bytes of a body, as shares count them: one up to this is not counted, as a refusal must always be possible. */
#define PEER_SMALL ((size_t) 16 << 10)
static inline size_t peer_cost(size_t bytes) {
        return bytes > PEER_SMALL ? bytes : 0;
}
