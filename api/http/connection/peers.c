/* SPDX-License-Identifier: MIT */

/* Counts the resources that peers hold: a tree of up to three levels, whose root is the listener. Called by http.c,
 * connections.c and whoever makes bodies. */

#include "api/http/connection/peers.h"

#include "schema/util.h"

#include <pthread.h>
#include <string.h>

struct peer {
        struct peers *peers;
        struct peer *above; /* NULL: it is the root */
        enum peer_level level;
        char name[PEER_NAME_MAX];
        unsigned refs; /* of those below it, too */
        size_t used[PEER_SHARES];
        struct peer *prev, *next;
};

struct peers {
        const struct peer_limits *limits;
        pthread_mutex_t lock;
        struct peer root;
        struct peer *first; /* all but the root */
        struct peer_turn *first_turn, *last_turn;
};

static const struct {
        const char *name, *code;
} shares[PEER_SHARES] = {
        [PEER_CONNECTIONS] = {"connections", "unavailable"},
        [PEER_DEAR] = {"expensive requests", "too-many-requests"},
        [PEER_STREAMS] = {"event streams", "too-many-subscribers"},
        [PEER_BODY_BYTES] = {"answer bytes", "unavailable"},
        [PEER_HELD_BYTES] = {"held answer bytes", "unavailable"},
        [PEER_SENT_BYTES] = {"request bytes", "unavailable"},
};

static const char *const whose[PEER_LEVELS] = {
        [PEER_ALL] = "of all clients", [PEER_USER] = "of one user", [PEER_ADDRESS] = "of one address"};

int peer_refuse(const struct peer_limits *limits, enum peer_level level, enum peer_share share, struct refusal *r) {
        size_t most = limits->most[share][level];
        refuse(r, 503, shares[share].code, "", "There may be %zu %s %s at once, and they are used up: try again.", most,
               shares[share].name, whose[level]);
        (void) snprintf(r->limit, sizeof(r->limit), "%s %s", shares[share].name, whose[level]);
        (void) snprintf(r->limit_value, sizeof(r->limit_value), "%zu", most);
        return -EAGAIN;
}

int peers_new(struct peers **ret, const struct peer_limits *limits) {
        struct peers *p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->limits = limits;
        p->root = (struct peer){.peers = p, .refs = 1};
        pthread_mutex_init(&p->lock, NULL);
        *ret = p;
        return 0;
}

void peers_free(struct peers *p) {
        if (!p)
                return;
        pthread_mutex_destroy(&p->lock);
        free(p);
}

size_t peers_used(struct peers *p, enum peer_share share) {
        pthread_mutex_lock(&p->lock);
        size_t used = p->root.used[share];
        pthread_mutex_unlock(&p->lock);
        return used;
}

/* The functions from here to peers_get() are called with the lock held. */

static struct peer *find(const struct peers *p, const struct peer *above, const char *name) {
        struct peer *i = p->first;
        while (i && (i->above != above || strcmp(i->name, name) != 0))
                i = i->next;
        return i;
}

/* Consumes the caller's reference to `above`. */
static struct peer *get_below(struct peers *p, struct peer *above, enum peer_level level, const char *name) {
        struct peer *found = find(p, above, name);
        if (found) {
                found->refs++;
                above->refs--; /* found has one, so that it is not the last */
                return found;
        }
        struct peer *made = calloc(1, sizeof(*made));
        if (!made)
                return NULL;
        *made = (struct peer){.peers = p, .above = above, .level = level, .refs = 1, .next = p->first};
        (void) snprintf(made->name, sizeof(made->name), "%s", name);
        if (made->next)
                made->next->prev = made;
        p->first = made;
        return made;
}

static void unref(struct peer *peer) {
        while (--peer->refs == 0) { /* never the root */
                struct peer *above = peer->above;
                if (peer->prev)
                        peer->prev->next = peer->next;
                else
                        peer->peers->first = peer->next;
                if (peer->next)
                        peer->next->prev = peer->prev;
                free(peer);
                peer = above;
        }
}

struct peer *peers_get(struct peers *p, const char *user, const char *address) {
        pthread_mutex_lock(&p->lock);
        struct peer *peer = &p->root, *below = peer;
        peer->refs++;
        if (*user)
                below = get_below(p, peer, PEER_USER, user);
        if (below && *address) {
                peer = below;
                below = get_below(p, peer, PEER_ADDRESS, address);
        }
        if (!below)
                unref(peer);
        pthread_mutex_unlock(&p->lock);
        return below;
}

const struct peer *peer_owner(const struct peer *peer) {
        return peer && peer->level == PEER_ADDRESS && peer->above->level == PEER_USER ? peer->above : peer;
}

struct peer *peer_ref(struct peer *peer) {
        if (peer) {
                pthread_mutex_lock(&peer->peers->lock);
                peer->refs++;
                pthread_mutex_unlock(&peer->peers->lock);
        }
        return peer;
}

struct peer *peer_unref(struct peer *peer) {
        if (peer) {
                struct peers *p = peer->peers;
                pthread_mutex_lock(&p->lock);
                unref(peer);
                pthread_mutex_unlock(&p->lock);
        }
        return NULL;
}

enum peer_level peer_level(const struct peer *peer) {
        return peer->level;
}

bool peer_is_below(const struct peer *peer, const struct peer *above) {
        while (peer && peer != above)
                peer = peer->above;
        return peer == above;
}

/* ---- shares ---- */

/* The caller holds the lock. */
static const struct peer *find_full(const struct peer *peer, enum peer_share share) {
        while (peer && peer->used[share] < peer->peers->limits->most[share][peer->level])
                peer = peer->above;
        return peer;
}

/* The first that waits and need not, before this one or (NULL) of all. The caller holds the lock. */
static struct peer_turn *find_turn(const struct peers *p, const struct peer_turn *before) {
        struct peer_turn *t = p->first_turn;
        while (t && t != before && find_full(t->peer, PEER_BODY_BYTES))
                t = t->next;
        return t == before ? NULL : t;
}

static void wake_next(const struct peers *p) {
        struct peer_turn *t = find_turn(p, NULL);
        if (t)
                t->wake(t->userdata);
}

static void add(struct peer *peer, enum peer_share share, size_t n) {
        for (; peer; peer = peer->above)
                peer->used[share] += n;
}

const struct peer *peer_full(struct peer *peer, enum peer_share share) {
        if (!peer)
                return NULL;
        pthread_mutex_lock(&peer->peers->lock);
        const struct peer *full = find_full(peer, share);
        pthread_mutex_unlock(&peer->peers->lock);
        return full;
}

void peer_add(struct peer *peer, enum peer_share share, size_t n) {
        if (!peer)
                return;
        pthread_mutex_lock(&peer->peers->lock);
        add(peer, share, n);
        pthread_mutex_unlock(&peer->peers->lock);
}

int peer_take(struct peer *peer, enum peer_share share, size_t n, struct refusal *r) {
        if (!peer)
                return 0;
        pthread_mutex_lock(&peer->peers->lock);
        const struct peer *full = find_full(peer, share);
        if (!full && share == PEER_BODY_BYTES && find_turn(peer->peers, NULL))
                full = peer; /* what is free of it is for a body that waits */
        if (!full)
                add(peer, share, n);
        pthread_mutex_unlock(&peer->peers->lock);
        return full ? peer_refuse(peer->peers->limits, full->level, share, r) : 0;
}

void peer_give(struct peer *peer, enum peer_share share, size_t n) {
        if (!peer)
                return;
        pthread_mutex_lock(&peer->peers->lock);
        for (struct peer *i = peer; i; i = i->above)
                i->used[share] -= n;
        if (share == PEER_BODY_BYTES)
                wake_next(peer->peers);
        pthread_mutex_unlock(&peer->peers->lock);
}

/* ---- turns ---- */

static void turn_append(struct peers *p, struct peer_turn *t) {
        t->prev = p->last_turn;
        t->next = NULL;
        if (t->prev)
                t->prev->next = t;
        else
                p->first_turn = t;
        p->last_turn = t;
        t->waits = true;
}

static void turn_remove(struct peers *p, struct peer_turn *t) {
        if (t->prev)
                t->prev->next = t->next;
        else
                p->first_turn = t->next;
        if (t->next)
                t->next->prev = t->prev;
        else
                p->last_turn = t->prev;
        t->waits = false;
}

bool peer_turn_begin(struct peer_turn *t) {
        if (!t->peer)
                return true;
        struct peers *p = t->peer->peers;
        pthread_mutex_lock(&p->lock);
        bool may = !find_full(t->peer, PEER_BODY_BYTES) && !find_turn(p, t->waits ? t : NULL);
        if (may && t->waits)
                turn_remove(p, t);
        else if (!may && !t->waits)
                turn_append(p, t);
        pthread_mutex_unlock(&p->lock);
        return may;
}

void peer_turn_end(struct peer_turn *t) {
        if (!t->peer)
                return;
        struct peers *p = t->peer->peers;
        pthread_mutex_lock(&p->lock);
        if (t->waits)
                turn_remove(p, t);
        wake_next(p);
        pthread_mutex_unlock(&p->lock);
}
